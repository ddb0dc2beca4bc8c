//! A dry run: a graph program submits its tasks to a host's [`SubmittedGraph`], and nothing runs. Unit tests look at the tasks.
//!
//! [`DryRun`] adds what a test knows and a host does not: every kernel is one of the library, called as the library says, and
//! every task is published once. Its GM is a map of words.

use std::collections::HashMap;
use std::vec::Vec;

use crate::host::GraphSize;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{
    BuildError, EdgeOutcome, GraphBuilder, HostedBuilder, LaunchArgs, Submission, SubmittedGraph,
    TaskDesc, TaskSpec, link_and_publish,
};

/// A task that was submitted.
pub(crate) struct SubmittedTask {
    pub(crate) func_id: FuncId,
    pub(crate) kind: CoreKind,
    pub(crate) args: Vec<u64>,
    pub(crate) producers: Vec<usize>,
}

/// What a program submitted.
pub(crate) struct Submitted {
    pub(crate) tasks: Vec<SubmittedTask>,
}

impl Submitted {
    pub(crate) fn tasks_of(&self, kind: CoreKind) -> usize {
        self.tasks.iter().filter(|task| task.kind == kind).count()
    }

    pub(crate) fn edges(&self) -> usize {
        self.tasks.iter().map(|task| task.producers.len()).sum()
    }

    pub(crate) fn size(&self) -> GraphSize {
        let words: usize = self.tasks.iter().map(|task| task.args.len()).sum();
        GraphSize {
            tasks: self.tasks.len() as u64,
            arg_words: words as u64,
            edges: self.edges() as u64,
        }
    }
}

/// The builder of a dry run.
pub(crate) struct DryRun {
    orch_args: Vec<u64>,
    graph: SubmittedGraph<'static>,
    /// Whether each task is published.
    published: Vec<bool>,
    pub(crate) memory: HashMap<u64, u32>,
}

impl DryRun {
    pub(crate) fn new(orch_args: &[u64]) -> Self {
        Self {
            orch_args: orch_args.to_vec(),
            graph: SubmittedGraph::new(&[]),
            published: Vec::new(),
            memory: HashMap::new(),
        }
    }

    /// Puts a table into GM.
    pub(crate) fn put(&mut self, at: GmAddr, words: impl IntoIterator<Item = u32>) {
        for (index, word) in (0_u64..).zip(words) {
            self.memory.insert(at.0 + 4 * index, word);
        }
    }

    /// What `program` submits; every task must be published.
    pub(crate) fn of(
        mut self,
        program: fn(&mut Self) -> Result<(), BuildError>,
    ) -> Result<Submitted, BuildError> {
        program(&mut self)?;
        assert!(self.published.iter().all(|is_published| *is_published), "a task is not published");
        let (_, parts) = self.graph.finish();
        let task = |(index, task): (usize, &pto_abi::image::ImageTask)| SubmittedTask {
            func_id: FuncId(task.func_id),
            kind: CoreKind::try_from(task.kind).expect("the kind that was submitted"),
            args: parts.args[task.first_arg as usize..][..task.arg_count.into()].to_vec(),
            producers: parts.producers_of(index).iter().map(|place| *place as usize).collect(),
        };
        Ok(Submitted { tasks: parts.tasks.iter().enumerate().map(task).collect() })
    }

    /// Adds a task, unpublished.
    fn add(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        let kernel = pto_aicore_kernels::LIBRARY.get(task.func_id.index());
        let kernel = kernel.ok_or(Fault::BUILD_KERNEL_MISSING)?;
        assert_eq!(kernel.kind, task.kind, "{} runs on the other kind of core", kernel.name);
        assert_eq!(task.args.len(), kernel.args.len(), "{} takes {:?}", kernel.name, kernel.args);
        let id = self.graph.add_task(task)?;
        self.published.push(false);
        Ok(id)
    }
}

impl HostedBuilder for DryRun {}

impl GraphBuilder for DryRun {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::of(&self.orch_args)
    }

    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc: TaskDesc::Kernel(task), after, publish, .. } = submission else {
            return Ok(None);
        };
        let id = self.add(task)?;
        link_and_publish(self, id, (after, publish))?;
        Ok(Some(id))
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        let outcome = self.graph.add_edge(producer, consumer)?;
        assert!(!self.published[consumer.slot as usize], "an edge to a published task");
        Ok(outcome)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        self.graph.publish(task)?;
        let before = std::mem::replace(&mut self.published[task.slot as usize], true);
        assert!(!before, "a task is published twice");
        Ok(())
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.memory.get(&address.0).copied().ok_or(Fault::BUILD_GM_RANGE)
    }
}

//! A [`GraphBuilder`] that only records: graph programs are tested against it, without device or firmware.

use std::collections::HashMap;
use std::vec::Vec;

use crate::host::GraphSize;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{EdgeOutcome, GraphBuilder, HostedBuilder, TaskSpec};

/// One recorded task.
pub(crate) struct Recorded {
    pub(crate) func_id: FuncId,
    pub(crate) kind: CoreKind,
    pub(crate) args: Vec<u64>,
    pub(crate) producers: Vec<usize>,
    pub(crate) published: bool,
}

/// Records tasks and edges; its GM is a map of words.
pub(crate) struct Recorder {
    orch_args: Vec<u64>,
    pub(crate) tasks: Vec<Recorded>,
    pub(crate) memory: HashMap<u64, u32>,
}

const GENERATION: u32 = 9;

impl Recorder {
    pub(crate) fn new(orch_args: &[u64]) -> Self {
        Self { orch_args: orch_args.to_vec(), tasks: Vec::new(), memory: HashMap::new() }
    }

    /// Puts a table into GM.
    pub(crate) fn put(&mut self, at: GmAddr, words: impl IntoIterator<Item = u32>) {
        for (index, word) in (0_u64..).zip(words) {
            self.memory.insert(at.0 + 4 * index, word);
        }
    }

    pub(crate) fn tasks_of(&self, kind: CoreKind) -> usize {
        self.tasks.iter().filter(|task| task.kind == kind).count()
    }

    pub(crate) fn edges(&self) -> usize {
        self.tasks.iter().map(|task| task.producers.len()).sum()
    }

    /// The size of what was recorded; every task must be published.
    pub(crate) fn size(&self) -> GraphSize {
        assert!(self.tasks.iter().all(|task| task.published), "a task is not published");
        let words: usize = self.tasks.iter().map(|task| task.args.len()).sum();
        GraphSize {
            tasks: self.tasks.len() as u64,
            arg_words: words as u64,
            edges: self.edges() as u64,
        }
    }

    fn task(&mut self, id: TaskId) -> Result<&mut Recorded, Fault> {
        assert_eq!(id.generation, GENERATION, "the program made up an id");
        self.tasks.get_mut(id.slot as usize).ok_or(Fault::BUILD_UNKNOWN_TASK)
    }
}

impl HostedBuilder for Recorder {}

impl GraphBuilder for Recorder {
    fn orch_args(&self) -> &[u64] {
        &self.orch_args
    }

    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        let kernel = pto_aicore_kernels::LIBRARY.get(task.func_id.index());
        let kernel = kernel.ok_or(Fault::BUILD_KERNEL_MISSING)?;
        assert_eq!(kernel.kind, task.kind, "{} runs on the other kind of core", kernel.name);
        let words = kernel.args.split(", ").filter(|name| !name.is_empty()).count();
        assert_eq!(task.args.len(), words, "{} takes {}", kernel.name, kernel.args);
        let slot = u32::try_from(self.tasks.len()).map_err(|_| Fault::BUILD_TASKS_FULL)?;
        self.tasks.push(Recorded {
            func_id: task.func_id,
            kind: task.kind,
            args: task.args.to_vec(),
            producers: Vec::new(),
            published: false,
        });
        Ok(TaskId { slot, generation: GENERATION })
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        assert_ne!(producer, consumer, "an edge from a task to itself");
        self.task(producer)?;
        let task = self.task(consumer)?;
        assert!(!task.published, "an edge to a published task");
        task.producers.push(producer.slot as usize);
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        let task = self.task(task)?;
        assert!(!task.published, "a task is published twice");
        task.published = true;
        Ok(())
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.memory.get(&address.0).copied().ok_or(Fault::BUILD_GM_RANGE)
    }
}

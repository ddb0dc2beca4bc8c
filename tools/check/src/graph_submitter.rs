//! Submitting the tasks and edges of a graph once more. The streaming runtime has a submitter of its own (`submit.rs`).
//!
//! Tasks are added in their order. A task is published where the program does that, and the tasks that it waits for are there; else at
//! the end.

use std::collections::HashMap;

use pto_abi::{Fault, FuncId, GmAddr, TaskId};
use pto_graph::{Chain, GraphBuilder, Submission, TaskDesc, TaskSpec};

use crate::held::Held;
use crate::memory_map::Addresses;
use crate::program::{Action, Argument, Program, Publish, Task};
use crate::submit::{Refused, tensor_view};

/// The kernels of one task, first to last.
type Ends = Vec<TaskId>;

/// Adds the tasks of a graph.
pub(crate) struct GraphSubmitter<'p, G> {
    program: &'p Program,
    placed: &'p Addresses,
    graph: &'p mut G,
    /// Tasks by id: what waits, and what is waited for. They differ where a chain's kernels are tasks.
    ids: HashMap<u32, Ends>,
    /// Who is waited for, by task.
    producers: HashMap<u32, Vec<u32>>,
    /// Tasks that a line of their own publishes.
    waiting: HashMap<u32, &'p Task>,
    /// Tasks that wait for one which is not there yet.
    deferred: Vec<&'p Task>,
}

impl<'p, G: GraphBuilder> GraphSubmitter<'p, G> {
    pub(crate) fn new(program: &'p Program, placed: &'p Addresses, graph: &'p mut G) -> Self {
        let mut producers: HashMap<u32, Vec<u32>> = HashMap::new();
        for step in &program.steps {
            match step.action {
                Action::Add(index) => {
                    let task = &program.tasks[index];
                    producers.entry(task.id).or_default().extend(&task.after);
                }
                Action::Edge { producer, consumer } => {
                    producers.entry(consumer).or_default().push(producer);
                }
                _ => {}
            }
        }
        let (ids, waiting) = (HashMap::new(), HashMap::new());
        Self { program, placed, graph, ids, producers, waiting, deferred: Vec::new() }
    }

    pub(crate) fn submit(mut self) -> Result<(), Refused> {
        for (at, step) in self.program.steps.iter().enumerate() {
            let refused = |fault| Refused { fault, step: Some(at) };
            self.step(&step.action).map_err(refused)?;
        }
        let deferred = std::mem::take(&mut self.deferred);
        let refused = |fault| Refused { fault, step: None };
        deferred.into_iter().try_for_each(|task| self.connect(task)).map_err(refused)
    }

    fn step(&mut self, action: &Action) -> Result<(), Fault> {
        match action {
            Action::Add(index) => {
                let task = &self.program.tasks[*index];
                self.add(task)?;
                match task.publish {
                    Publish::Now => self.finish(task),
                    Publish::Later => {
                        self.waiting.insert(task.id, task);
                        Ok(())
                    }
                }
            }
            Action::Publish(id) => {
                let task = self.waiting.remove(id).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
                self.finish(task)
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, task: &'p Task) -> Result<(), Fault> {
        let ends = match self.chain(task)? {
            Some(chain) => vec![chain],
            None => self.kernels(task)?,
        };
        self.ids.insert(task.id, ends);
        Ok(())
    }

    /// Adds a chain; `None`: it is none, or the builder has none.
    fn chain(&mut self, task: &Task) -> Result<Option<TaskId>, Fault> {
        if !task.is_chain() {
            return Ok(None);
        }
        let held = Held::of(task, |view| {
            let base = self.placed.bases.get(view.tensor).copied().unwrap_or(GmAddr::NULL);
            Ok::<_, Fault>(tensor_view(view, base, self.program.tensors[view.tensor].bytes))
        })?;
        let parts: Vec<_> = held.iter().map(Held::parts).collect();
        let links: Vec<_> = held.iter().zip(&parts).map(|(held, parts)| held.link(parts)).collect();
        let chain = Chain::new(&links);
        self.graph.submit_desc(Submission::new(TaskDesc::Chain(&chain)).unpublished())
    }

    /// Adds the kernels of a task, each of which waits for the one before.
    fn kernels(&mut self, task: &Task) -> Result<Ends, Fault> {
        let mut ids = Vec::new();
        for kernel in task.calls() {
            let args: Vec<u64> = kernel.args.iter().map(|arg| self.word(arg)).collect();
            let func = FuncId(kernel.func);
            let id = self.graph.add_task(TaskSpec::new(func, task.kind, &args))?;
            if let Some(before) = ids.last() {
                self.graph.add_edge(*before, id)?;
            }
            ids.push(id);
        }
        Ok(ids)
    }

    /// Publishes a task, or puts that off until the tasks are there that it waits for.
    fn finish(&mut self, task: &'p Task) -> Result<(), Fault> {
        let producers = self.producers.get(&task.id).map_or(&[][..], Vec::as_slice);
        match producers.iter().all(|producer| self.ids.contains_key(producer)) {
            true => self.connect(task),
            false => {
                self.deferred.push(task);
                Ok(())
            }
        }
    }

    /// Adds the edges of a task, and publishes it.
    fn connect(&mut self, task: &Task) -> Result<(), Fault> {
        let ids = self.ids.get(&task.id).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        let first = *ids.first().ok_or(Fault::BUILD_CHAIN_EMPTY)?;
        for producer in self.producers.get(&task.id).into_iter().flatten() {
            let producer = self.ids.get(producer).and_then(|ids| ids.last());
            self.graph.add_edge(*producer.ok_or(Fault::BUILD_UNKNOWN_TASK)?, first)?;
        }
        ids.iter().try_for_each(|id| self.graph.publish(*id))
    }

    /// An argument as the kernel gets it: the address of a tensor's part, or a word.
    fn word(&self, arg: &Argument) -> u64 {
        match (arg, arg.view()) {
            (_, Some((view, _))) => {
                let base = self.placed.bases.get(view.tensor).copied().unwrap_or(GmAddr::NULL);
                base.offset(view.offset * view.element.bytes()).0
            }
            (Argument::Scalar(word), None) => *word,
            _ => 0,
        }
    }
}

//! Building a graph on the host: the same builder programs as on the AICPU, the same errors.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use pto_abi::image::TaskRecord;
use pto_abi::kinds::GraphFlags;
use pto_abi::limits::{MAX_ARGS, MAX_FUNC_ID, MAX_IMAGE_EDGES, MAX_ORCH_ARGS, MAX_TASKS};
use pto_abi::{BuildError, EdgeOutcome, Fault, GmAddr, GraphBuilder, TaskId, TaskSpec};

use crate::cycle::{self, Edges};
use crate::{Device, Error, GraphImage};

/// Generations of task ids: each graph has its own, so that an id of another graph is recognised.
static GENERATIONS: AtomicU32 = AtomicU32::new(1);

/// A graph under construction on the host; `publish` only marks. Costs 24 bytes a task, 8 bytes an
/// argument, 8 bytes an edge.
pub struct HostGraph<'d> {
    device: &'d Device,
    orch_args: Vec<u64>,
    generation: u32,
    limits: Limits,
    records: Vec<TaskRecord>,
    published: Vec<bool>,
    args: Vec<u64>,
    /// Edge `i` leads from `producers[i]` to `consumers[i]`.
    producers: Vec<u32>,
    consumers: Vec<u32>,
    /// Edges came consumer by consumer, in the order of the tasks: they need no sorting.
    grouped: bool,
    /// Every producer was added before its consumers: there is no cycle.
    topological: bool,
    refusal: RefCell<Option<Refusal>>,
}

#[derive(Clone, Copy)]
struct Limits {
    tasks: usize,
    arg_words: usize,
    edges: usize,
}

const _: () = assert!(MAX_IMAGE_EDGES == u32::MAX as u64);

impl Limits {
    const WIRE: Self = Self {
        tasks: MAX_TASKS as usize,
        // Records index argument words and edges with 32 bits.
        arg_words: u32::MAX as usize,
        edges: u32::MAX as usize,
    };
}

#[derive(Clone)]
struct Refusal {
    fault: Fault,
    what: String,
}

impl<'d> HostGraph<'d> {
    /// An empty graph for `device`. `orch_args` are the words that the builder program reads, at most
    /// [`MAX_ORCH_ARGS`].
    #[must_use]
    pub fn new(device: &'d Device, orch_args: &[u64]) -> Self {
        Self {
            device,
            orch_args: orch_args.to_vec(),
            generation: GENERATIONS.fetch_add(1, Ordering::Relaxed),
            limits: Limits::WIRE,
            records: Vec::new(),
            published: Vec::new(),
            args: Vec::new(),
            producers: Vec::new(),
            consumers: Vec::new(),
            grouped: true,
            topological: true,
            refusal: RefCell::new(None),
        }
    }

    /// Runs a builder program to the end: `HostGraph::build(&device, &words, paged_attention::build)`.
    ///
    /// # Errors
    /// `Build` when the program fails, with what it was refused; those of [`HostGraph::finish`].
    pub fn build(
        device: &'d Device,
        orch_args: &[u64],
        program: impl FnOnce(&mut Self) -> Result<(), BuildError>,
    ) -> Result<GraphImage, Error> {
        let mut graph = Self::new(device, orch_args);
        match program(&mut graph) {
            Ok(()) => graph.finish(),
            Err(BuildError::Fault(fault)) => Err(Error::Build { fault, what: graph.why(fault) }),
            Err(BuildError::Failed(code)) => Err(Error::Build {
                fault: Fault::BUILD_FAILED,
                what: format!("its own code is {code}"),
            }),
        }
    }

    /// How many tasks it has.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.records.len()
    }

    /// How many edges it has.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.producers.len()
    }

    /// The image of the graph.
    ///
    /// # Errors
    /// `OrchArgs`: more words than a run can carry. `NotPublished`: a task was added and not published.
    /// `Cycle`: tasks that wait for each other, by name.
    pub fn finish(mut self) -> Result<GraphImage, Error> {
        if self.orch_args.len() > MAX_ORCH_ARGS {
            return Err(Error::OrchArgs { given: self.orch_args.len() });
        }
        let unpublished =
            || self.published.iter().enumerate().filter(|(_, published)| !**published);
        if let Some((first, _)) = unpublished().next() {
            return Err(Error::NotPublished { first, count: unpublished().count() });
        }
        let starts = self.number_edges();
        if !self.grouped {
            self.group_edges(&starts);
        }
        let mut flags = GraphFlags::empty();
        if self.topological {
            flags |= GraphFlags::TOPOLOGICAL;
        } else if let Some(cycle) =
            cycle::find(Edges { starts: &starts, producers: &self.producers })
        {
            return Err(Error::Cycle { cycle });
        }
        Ok(GraphImage::encode(flags, &self.records, &self.producers, &self.args))
    }

    /// Gives each record its first edge; returns all of them, and the end.
    fn number_edges(&mut self) -> Vec<usize> {
        let mut next = 0;
        let mut starts = Vec::with_capacity(self.records.len() + 1);
        for record in &mut self.records {
            starts.push(next);
            // Edges are at most MAX_IMAGE_EDGES, 32 bits.
            record.first_edge = u32::try_from(next).unwrap_or(u32::MAX);
            next += record.edge_count as usize;
        }
        starts.push(next);
        starts
    }

    /// A counting sort of the edges by consumer; stable, so that producers keep the order they came in.
    fn group_edges(&mut self, starts: &[usize]) {
        let mut next = starts.to_vec();
        let mut grouped = vec![0; self.producers.len()];
        for (&producer, &consumer) in self.producers.iter().zip(&self.consumers) {
            let place = &mut next[consumer as usize];
            grouped[*place] = producer;
            *place += 1;
        }
        self.producers = grouped;
    }

    /// The index of a task of this graph.
    #[inline]
    fn index(&self, task: TaskId) -> Result<usize, Fault> {
        let index = task.slot as usize;
        if task.generation == self.generation && index < self.records.len() {
            return Ok(index);
        }
        Err(self.refuse_id(task))
    }

    #[cold]
    fn refuse_id(&self, task: TaskId) -> Fault {
        // `TaskId::NONE` has generation zero, as no graph has.
        if task.generation == 0 || task.generation == self.generation {
            let count = self.records.len();
            return self.refuse(Fault::BUILD_UNKNOWN_TASK, || {
                format!("task {task} was named, and the graph has {count} tasks")
            });
        }
        self.refuse(Fault::BUILD_STALE_TASK, || format!("task {task} belongs to another graph"))
    }

    /// Remembers what was refused, so that `build` can say it.
    #[cold]
    fn refuse(&self, fault: Fault, what: impl FnOnce() -> String) -> Fault {
        *self.refusal.borrow_mut() = Some(Refusal { fault, what: what() });
        fault
    }

    fn why(&self, fault: Fault) -> String {
        match &*self.refusal.borrow() {
            Some(refusal) if refusal.fault == fault => refusal.what.clone(),
            _ => format!("the builder gave up after {} tasks", self.records.len()),
        }
    }

    fn check_task(&self, task: &TaskSpec<'_>) -> Result<(), Fault> {
        let (func_id, index) = (task.func_id, self.records.len());
        if func_id.index() >= MAX_FUNC_ID {
            return Err(self.refuse(Fault::BUILD_UNKNOWN_FUNC, || {
                format!("task {index} names func id {func_id}, and the limit is {MAX_FUNC_ID}")
            }));
        }
        if task.kernel.is_null() && self.device.kernel_table().address(func_id).is_null() {
            return Err(self.refuse(Fault::BUILD_KERNEL_MISSING, || {
                format!("task {index} names func id {func_id}")
            }));
        }
        if task.args.len() > MAX_ARGS {
            let given = task.args.len();
            return Err(self.refuse(Fault::BUILD_TOO_MANY_ARGS, || {
                format!("task {index} has {given} arguments, and the limit is {MAX_ARGS}")
            }));
        }
        if self.device.cores(task.kind) == 0 {
            let kind = task.kind;
            return Err(self.refuse(Fault::BUILD_NO_CORE_OF_KIND, || {
                format!("task {index} needs {kind}, and the device has none")
            }));
        }
        self.check_room(task)
    }

    fn check_room(&self, task: &TaskSpec<'_>) -> Result<(), Fault> {
        if self.records.len() >= self.limits.tasks {
            let limit = self.limits.tasks;
            let what = || format!("a graph image holds {limit} tasks at most");
            return Err(self.refuse(Fault::BUILD_TASKS_FULL, what));
        }
        if self.limits.arg_words - self.args.len() < task.args.len() {
            let limit = self.limits.arg_words;
            let what = || format!("a graph image holds {limit} argument words at most");
            return Err(self.refuse(Fault::BUILD_PAYLOADS_FULL, what));
        }
        Ok(())
    }
}

impl fmt::Debug for HostGraph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostGraph of {} tasks and {} edges", self.task_count(), self.edge_count())
    }
}

impl GraphBuilder for HostGraph<'_> {
    fn orch_args(&self) -> &[u64] {
        &self.orch_args
    }

    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.check_task(&task)?;
        // `check_task` has bounded all three.
        let slot = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let first_arg = u32::try_from(self.args.len()).unwrap_or(u32::MAX);
        let arg_count = u8::try_from(task.args.len()).unwrap_or(u8::MAX);
        self.args.extend_from_slice(task.args);
        self.records.push(TaskRecord {
            kernel: task.kernel.0,
            first_arg,
            first_edge: 0,
            edge_count: 0,
            func_id: task.func_id.0,
            arg_count,
            kind: task.kind.get(),
        });
        self.published.push(false);
        Ok(TaskId { slot, generation: self.generation })
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.index(producer)?;
        let index = self.index(consumer)?;
        if producer.slot == consumer.slot {
            let what = || format!("task {producer}");
            return Err(self.refuse(Fault::BUILD_SELF_EDGE, what));
        }
        if self.published[index] {
            let what = || format!("the edge {producer} -> {consumer}");
            return Err(self.refuse(Fault::BUILD_CONSUMER_PUBLISHED, what));
        }
        if self.producers.len() >= self.limits.edges {
            let limit = self.limits.edges;
            let what = || format!("a graph image holds {limit} edges at most");
            return Err(self.refuse(Fault::BUILD_EDGES_FULL, what));
        }
        self.grouped &= self.consumers.last().is_none_or(|last| *last <= consumer.slot);
        self.topological &= producer.slot < consumer.slot;
        self.records[index].edge_count += 1;
        self.producers.push(producer.slot);
        self.consumers.push(consumer.slot);
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        let index = self.index(task)?;
        if std::mem::replace(&mut self.published[index], true) {
            return Err(self.refuse(Fault::BUILD_ALREADY_PUBLISHED, || format!("task {task}")));
        }
        Ok(())
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.device.read_u32(address).ok_or_else(|| {
            self.refuse(Fault::BUILD_GM_RANGE, || format!("4 bytes at {address} were read"))
        })
    }
}

#[cfg(test)]
mod tests;

//! Building a graph on the host: the same builder programs as on the AICPU, the same errors.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use pto_abi::image::ImageTask;
use pto_abi::kinds::GraphFlags;
use pto_abi::limits::{MAX_ARGS, MAX_FUNC_ID, MAX_IMAGE_EDGES, MAX_ORCH_ARGS, MAX_TASKS};
use pto_abi::numbers::Counted;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::group::{TRANSFER, Transfer};
use pto_graph::{
    BuildError, EdgeOutcome, GraphBuilder, GraphParts, HostedBuilder, LaunchArgs, Publish,
    Submission, TaskDesc, TaskSpec, link_and_publish,
};

use crate::cycle::{self, Edges};
use crate::device::Device;
use crate::error::Error;
use crate::image::GraphImage;

/// Generations of task ids: each graph has its own, so that an id of another graph is recognised.
static GENERATIONS: AtomicU32 = AtomicU32::new(1);

/// A graph under construction on the host; `publish` only marks. Costs 24 bytes a task, 8 bytes an
/// argument, 4 bytes an edge, and 8 where edges do not all lead to the task that was added last. The memory goes from one graph
/// of a device to the next.
pub struct HostGraph<'d> {
    device: &'d Device,
    orch_args: Vec<u64>,
    generation: u32,
    limits: Limits,
    /// Where a task is not published, its kind has the bit [`UNPUBLISHED`].
    lists: GraphParts,
    unpublished: usize,
    /// Edge `i` leads from `producers[i]` to `consumers[i]`. `None`: each one has led to the task that was the last one, so
    /// that they are in the order in which the records count them, and `first_edge` is right.
    consumers: Option<Vec<u32>>,
    /// Every producer was added before its consumers: there is no cycle.
    topological: bool,
    /// A func id whose kernel is registered, and a kind of which there are cores.
    known: Option<(FuncId, CoreKind)>,
    has_transfers: bool,
    refusal: RefCell<Option<Refusal>>,
}

/// In `ImageTask::kind`, of a graph that is being built.
const UNPUBLISHED: u8 = 1 << 7;

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
            lists: device.spare().take(),
            unpublished: 0,
            consumers: None,
            topological: true,
            known: None,
            has_transfers: false,
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
        self.lists.tasks.len()
    }

    /// How many edges it has.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.lists.producers.len()
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
        if self.unpublished > 0 {
            let is_open = |task: &ImageTask| task.kind & UNPUBLISHED != 0;
            let first = self.lists.tasks.iter().position(is_open).unwrap_or(0);
            return Err(Error::NotPublished { first, count: self.unpublished });
        }
        if let Some(consumers) = self.consumers.take() {
            let starts = self.lists.order_edges(&consumers);
            let edges = Edges { starts: &starts, producers: &self.lists.producers };
            if !self.topological
                && let Some(cycle) = cycle::find(edges)
            {
                return Err(Error::Cycle { cycle });
            }
        }
        let mut flags = GraphFlags::empty();
        flags.set(GraphFlags::TOPOLOGICAL, self.topological);
        flags.set(GraphFlags::TRANSFERS, self.has_transfers);
        Ok(GraphImage::encode(flags, self.lists, self.device.spare().clone()))
    }

    /// Where the edges lead so far, of which each one led to the last task then.
    fn list_consumers(&self) -> Vec<u32> {
        let counts = (0..).zip(&self.lists.tasks).map(|(number, task)| (number, task.edge_count));
        counts.flat_map(|(task, count)| std::iter::repeat_n(task, count as usize)).collect()
    }

    /// The index of a task of this graph.
    #[inline]
    fn index(&self, task: TaskId) -> Result<usize, Fault> {
        let index = task.slot as usize;
        if task.generation == self.generation && index < self.lists.tasks.len() {
            return Ok(index);
        }
        Err(self.refuse_id(task))
    }

    #[cold]
    fn refuse_id(&self, task: TaskId) -> Fault {
        // `TaskId::NONE` has generation zero, as no graph has.
        if task.generation == 0 || task.generation == self.generation {
            let count = self.lists.tasks.len();
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
            _ => format!(
                "the builder gave up after {}",
                Counted(self.lists.tasks.len() as u64, "task")
            ),
        }
    }

    /// Whether the device can run the task, and the image can hold it with this many edges.
    #[inline]
    fn check_task(&mut self, task: &TaskSpec<'_>, edges: usize) -> Result<(), Fault> {
        let is_known = task.kernel.is_null() && self.known == Some((task.func_id, task.kind));
        if !is_known {
            self.check_kernel(task)?;
        }
        let Limits { tasks, arg_words, edges: most_edges } = self.limits;
        let has_room = self.lists.tasks.len() < tasks
            && task.args.len() <= arg_words - self.lists.args.len()
            && edges <= most_edges - self.lists.producers.len();
        if has_room && task.args.len() <= MAX_ARGS { Ok(()) } else { Err(self.refuse_room(task)) }
    }

    #[inline(never)]
    fn check_kernel(&mut self, task: &TaskSpec<'_>) -> Result<(), Fault> {
        let (func_id, index) = (task.func_id, self.lists.tasks.len());
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
        if self.device.cores(task.kind) == 0 {
            let kind = task.kind;
            return Err(self.refuse(Fault::BUILD_NO_CORE_OF_KIND, || {
                format!("task {index} needs {kind}, and the device has none")
            }));
        }
        self.known = task.kernel.is_null().then_some((func_id, task.kind));
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn refuse_room(&self, task: &TaskSpec<'_>) -> Fault {
        let (index, given) = (self.lists.tasks.len(), task.args.len());
        let Limits { tasks, arg_words, edges } = self.limits;
        if given > MAX_ARGS {
            return self.refuse(Fault::BUILD_TOO_MANY_ARGS, || {
                format!("task {index} has {given} arguments, and the limit is {MAX_ARGS}")
            });
        }
        if index >= tasks {
            let what = || format!("a graph image holds {tasks} tasks at most");
            return self.refuse(Fault::BUILD_TASKS_FULL, what);
        }
        if given > arg_words - self.lists.args.len() {
            let what = || format!("a graph image holds {arg_words} argument words at most");
            return self.refuse(Fault::BUILD_PAYLOADS_FULL, what);
        }
        let what = || format!("a graph image holds {edges} edges at most");
        self.refuse(Fault::BUILD_EDGES_FULL, what)
    }

    /// Adds a task with the last `edge_count` edges; `kind` may have the bit [`UNPUBLISHED`].
    #[inline]
    fn push(&mut self, task: &TaskSpec<'_>, kind: u8, edge_count: usize) -> TaskId {
        let slot = index_of(self.lists.tasks.len());
        self.lists.tasks.push(ImageTask {
            kernel: task.kernel.0,
            first_arg: index_of(self.lists.args.len()),
            first_edge: index_of(self.lists.producers.len() - edge_count),
            edge_count: index_of(edge_count),
            func_id: task.func_id.0,
            // `check_task` has bounded it by MAX_ARGS.
            arg_count: index_of(task.args.len()).to_le_bytes()[0],
            kind,
        });
        if !task.args.is_empty() {
            self.lists.args.extend_from_slice(task.args);
        }
        TaskId { slot, generation: self.generation }
    }

    /// Adds a transfer after its producers: a task that the transfer engine does instead of a core. A
    /// [`Communicator`](pto_graph::group::Communicator) makes it (`send_transfer` and the others); the device is a [`RankDevice`](crate::group::RankDevice) of a group.
    ///
    /// # Errors
    /// `TRANSFER_NO_ENGINE`: the device is in no group; those of [`GraphBuilder::submit`].
    pub fn submit_transfer(
        &mut self,
        transfer: &Transfer,
        producers: &[TaskId],
    ) -> Result<TaskId, Fault> {
        self.submit_transfer_words(&transfer.words(), producers)
    }

    /// As [`submit_transfer`](Self::submit_transfer), by the words of a transfer.
    pub(crate) fn submit_transfer_words(
        &mut self,
        words: &[u64],
        producers: &[TaskId],
    ) -> Result<TaskId, Fault> {
        if !self.device.has_transfers() {
            return Err(self.refuse(Fault::TRANSFER_NO_ENGINE, || {
                "a transfer was added, and the device is in no group".to_owned()
            }));
        }
        let id = self.submit(TaskSpec::new(TRANSFER, CoreKind::AIV, words), producers)?;
        let added = self.lists.tasks.last_mut();
        added.into_iter().for_each(|task| task.kind = pto_abi::task::TRANSFER);
        self.has_transfers = true;
        Ok(id)
    }

    /// Adds a task that is published; a refused task leaves the graph unchanged.
    #[inline(always)]
    fn submit_kernel(
        &mut self,
        task: &TaskSpec<'_>,
        producers: &[TaskId],
    ) -> Result<TaskId, Fault> {
        self.check_task(task, producers.len())?;
        let (next, generation) = (index_of(self.lists.tasks.len()), self.generation);
        let stand = self.lists.producers.len();
        self.lists.producers.reserve(producers.len());
        for producer in producers {
            if producer.generation != generation || producer.slot >= next {
                self.lists.producers.truncate(stand);
                return Err(self.refuse_producers(producers));
            }
            self.lists.producers.push(producer.slot);
        }
        if let Some(consumers) = &mut self.consumers {
            consumers.extend(std::iter::repeat_n(next, producers.len()));
        }
        let id = self.push(task, task.kind.get(), producers.len());
        Ok(id)
    }

    /// Adds a task that the program publishes.
    fn add_kernel(&mut self, task: &TaskSpec<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        self.check_task(task, 0)?;
        self.unpublished += 1;
        let id = self.push(task, task.kind.get() | UNPUBLISHED, 0);
        link_and_publish(self, id, (producers, Publish::Later))?;
        Ok(id)
    }

    /// A producer in a call of `submit` that is none.
    #[cold]
    #[inline(never)]
    fn refuse_producers(&self, producers: &[TaskId]) -> Fault {
        let next = index_of(self.lists.tasks.len());
        for &producer in producers {
            if producer == (TaskId { slot: next, generation: self.generation }) {
                return self.refuse(Fault::BUILD_SELF_EDGE, || format!("task {producer}"));
            }
            if let Err(fault) = self.index(producer) {
                return fault;
            }
        }
        Fault::BUILD_UNKNOWN_TASK
    }
}

/// An index into a list, which `check_task` has bounded by 32 bits.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "bounded; a check costs a task three instructions"
)]
const fn index_of(length: usize) -> u32 {
    length as u32
}

impl fmt::Debug for HostGraph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostGraph of {} tasks and {} edges", self.task_count(), self.edge_count())
    }
}

impl HostedBuilder for HostGraph<'_> {}

impl GraphBuilder for HostGraph<'_> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::of(&self.orch_args)
    }

    // Always: left to the compiler, it is inlined in one build and not in the next, which is 45 instructions a task.
    #[inline(always)]
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc: TaskDesc::Kernel(task), after, publish, .. } = submission else {
            return Ok(None);
        };
        match publish {
            Publish::Now => self.submit_kernel(&task, after).map(Some),
            Publish::Later => self.add_kernel(&task, after).map(Some),
        }
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.index(producer)?;
        let index = self.index(consumer)?;
        if producer.slot == consumer.slot {
            let what = || format!("task {producer}");
            return Err(self.refuse(Fault::BUILD_SELF_EDGE, what));
        }
        if self.lists.tasks[index].kind & UNPUBLISHED == 0 {
            let what = || format!("the edge {producer} -> {consumer}");
            return Err(self.refuse(Fault::BUILD_CONSUMER_PUBLISHED, what));
        }
        if self.lists.producers.len() >= self.limits.edges {
            let limit = self.limits.edges;
            let what = || format!("a graph image holds {limit} edges at most");
            return Err(self.refuse(Fault::BUILD_EDGES_FULL, what));
        }
        if self.consumers.is_none() && index + 1 != self.lists.tasks.len() {
            self.consumers = Some(self.list_consumers());
        }
        if let Some(consumers) = &mut self.consumers {
            consumers.push(consumer.slot);
        }
        self.topological &= producer.slot < consumer.slot;
        self.lists.tasks[index].edge_count += 1;
        self.lists.producers.push(producer.slot);
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        let index = self.index(task)?;
        let kept = &mut self.lists.tasks[index];
        if kept.kind & UNPUBLISHED == 0 {
            return Err(self.refuse(Fault::BUILD_ALREADY_PUBLISHED, || format!("task {task}")));
        }
        kept.kind &= !UNPUBLISHED;
        self.unpublished -= 1;
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

//! The loader of `host_build_graph`: makes tasks of a graph image, and starts a graph again that the arena already holds.
//!
//! ```text
//! load:   open (header) -> checksum -> for each task: check, edges, arguments, line -> start
//! again:  open (header), the one of the loaded graph -> for each task: its counts    -> start
//! start:  outstanding, ready queues, build_done: the schedulers, who have waited for it, begin
//! ```
//! Schedulers wait until the whole graph is loaded (docs/decisions/graph-images.md). So no other instance touches a line meanwhile, nothing is atomic by more
//! than its type, and a wrong image ends the run before a task has run. An edge is counted where it is read, so that the
//! fanin of its consumer and the fanout of its producer cannot differ.

mod again;

use heapless::Vec;
use pto_abi::image::{
    EntryReader, FieldMismatch, GraphHeader, ImageReaders, ImageTask, ImageTaskCheck, SealedImage,
};
use pto_abi::kinds::{RunFlags, TaskState};
use pto_abi::limits::{MAX_FANOUT, MAX_FUNC_ID};
use pto_abi::runtime::{InstanceLine, NOBODY};
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{NO_CHUNK, TRANSFER, Task};
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};

use crate::blame::{Blame, BlameSlot};
use crate::builder::BLOCK_0_OF_1;
use crate::fanout::{ConsumerSlot, slot_of_consumer};
use crate::launch::Launch;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::state::{has_block_shape, kind_of};

/// Ready tasks that are pushed at once: eight lines of a queue's slots.
const READY_AT_ONCE: usize = 64;
/// Image tasks that are loaded between two looks at faults: what a reader holds.
const IMAGE_TASKS_A_LOOK: usize = 32;
/// Tasks that are reset between two looks at faults.
const TASKS_A_LOOK: usize = 256;
/// In `Loader::known`: nothing was looked up yet.
const NOTHING: u32 = u32::MAX;

/// Loads the image of a launch, or takes the graph that the run before has loaded, and starts it; returns how many tasks it has.
///
/// # Errors
/// What is wrong with the image (`GRAPH_..`) or with what a task asks for (`BUILD_..`), or the fault that another instance
/// has raised meanwhile. `GRAPH_NOT_LOADED`: it is to run again, and is not loaded.
pub(crate) fn load<S: Sharing, M: Machine>(
    launch: &Launch<'_>,
    line: &InstanceLine,
    machine: &mut M,
) -> Result<u64, Blame> {
    let mut loader = Loader::new(launch, line, machine);
    loader.run::<S>().map_err(|fault| {
        // A graph that is not complete counts as not loaded.
        line.added.store(0, Ordering::Relaxed);
        loader.blame.of(fault)
    })
}

/// A graph on its way into the arena.
struct Loader<'l, 'a, M> {
    launch: &'l Launch<'a>,
    line: &'l InstanceLine,
    machine: &'l mut M,
    /// The lines of the graph's tasks.
    tasks: &'a [Task],
    next_chunk: u32,
    /// Func id and kind of the task before, and the kernel that is registered for it.
    known: u32,
    kernel: GmAddr,
    ready: [Vec<u32, READY_AT_ONCE>; CoreKind::COUNT],
    /// Whether a task is a transfer.
    has_transfers: bool,
    traced_ns: u64,
    blame: BlameSlot,
}

impl<'l, 'a, M: Machine> Loader<'l, 'a, M> {
    fn new(launch: &'l Launch<'a>, line: &'l InstanceLine, machine: &'l mut M) -> Self {
        Self {
            launch,
            line,
            machine,
            tasks: &[],
            next_chunk: 0,
            known: NOTHING,
            kernel: GmAddr::NULL,
            ready: [Vec::new(), Vec::new()],
            has_transfers: false,
            traced_ns: 0,
            blame: BlameSlot::default(),
        }
    }

    fn run<S: Sharing>(&mut self) -> Result<u64, Fault> {
        let image = SealedImage::open(self.launch.image()?)
            .map_err(|refusal| self.refuse_image(&refusal))?;
        let (count, tasks) = (image.task_count(), self.launch.state.tasks);
        let Some(tasks) = tasks.get(..count as usize) else {
            let (found, expected) = (count.into(), tasks.len() as u64);
            return Err(self.refuse_image(&FieldMismatch {
                fault: Fault::GRAPH_TASK_COUNT,
                found,
                expected,
            }));
        };
        self.tasks = tasks;
        if self.launch.flags.contains(RunFlags::RUN_AGAIN) {
            self.reset_all::<S>(&image)?;
        } else {
            self.load_all::<S>(&image)?;
        }
        self.start::<S>(image.header());
        Ok(count.into())
    }

    fn load_all<S: Sharing>(&mut self, image: &SealedImage<'_>) -> Result<(), Fault> {
        self.launch.state.progress.loaded_run.store(0, Ordering::Relaxed);
        image.check_sum().map_err(|refusal| self.refuse_image(&refusal))?;
        let mut parts = image.readers();
        let mut check = image.task_check();
        let mut index = 0;
        while index < image.task_count() {
            index = self.load_some::<S>(index, &mut parts, &mut check)?;
            self.line.added.store(index.into(), Ordering::Relaxed);
        }
        check.end().map_err(|refusal| self.refuse_image(&refusal))
    }

    /// Loads the tasks that are copied at once, from the task `first` on: checks them, and then does one thing after the
    /// other, each in a loop that has its words in registers. Returns the number of the task after them.
    #[inline(always)]
    fn load_some<S: Sharing>(
        &mut self,
        first: u32,
        parts: &mut ImageReaders<'_>,
        check: &mut ImageTaskCheck,
    ) -> Result<u32, Fault> {
        self.look_for_faults()?;
        let image_tasks = parts.tasks.up_to(IMAGE_TASKS_A_LOOK);
        let from = first as usize;
        let tasks: &[Task] = self.tasks.get(from..from + image_tasks.len()).unwrap_or(&[]);
        if tasks.is_empty() {
            // `open` has found all of them in the image.
            return Err(Fault::GRAPH_TASK_COUNT);
        }
        let first_arg = check.args();
        check.tasks(image_tasks).map_err(|(index, refusal)| {
            let func = image_tasks
                .get(index as usize)
                .map_or(NOBODY, |image_task| image_task.func_id.into());
            self.refuse(first + index, func, &refusal)
        })?;
        if self.machine.traces() {
            self.trace_added(first, image_tasks);
        }
        // Where no order is claimed, consumers may come before their producers.
        let all = if first == 0 { self.tasks } else { &[] };
        let opened = if check.is_topological() { tasks } else { all };
        for task in opened {
            // No consumers yet.
            task.fanout.store(0, Ordering::Relaxed);
            task.last_chunk.store(NO_CHUNK, Ordering::Relaxed);
        }
        self.connect(first, image_tasks, &mut parts.producers, check)?;
        self.copy_args(first, image_tasks, &mut parts.args, first_arg)?;
        let generation = self.launch.run_epoch;
        let mut slot = first;
        for (task, image_task) in tasks.iter().zip(image_tasks) {
            let kernel = self.kernel_of(slot, image_task)?;
            task.kernel.store(kernel.0, Ordering::Relaxed);
            // Each task before has its arguments and a word of block context.
            task.payload.store(image_task.first_arg + slot, Ordering::Relaxed);
            task.func_id.store(image_task.func_id, Ordering::Relaxed);
            task.arg_count.store(image_task.arg_count, Ordering::Relaxed);
            task.kind.store(image_task.kind, Ordering::Relaxed);
            task.edges_in.store(image_task.edge_count, Ordering::Relaxed);
            task.generation.store(generation, Ordering::Relaxed);
            self.publish::<S>(slot, task, image_task.edge_count);
            slot += 1;
        }
        Ok(slot)
    }

    /// Whether the run has failed meanwhile.
    #[inline(never)]
    fn look_for_faults(&self) -> Result<(), Fault> {
        let fault = &self.launch.state.fault;
        if fault.is_raised() { Err(fault.first().unwrap_or(Fault::RUN_CANCELLED)) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn refuse_image(&mut self, refusal: &FieldMismatch) -> Fault {
        self.refuse(NOBODY, NOBODY, refusal)
    }

    /// Stores which task and func id are concerned, if any, and returns the fault.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, slot: u32, func: u32, refusal: &FieldMismatch) -> Fault {
        let task = TaskId { slot, generation: self.launch.run_epoch };
        let task = if slot == NOBODY { TaskId::NONE } else { task };
        let blame = Blame::of(refusal.fault).detail(refusal.found, refusal.expected);
        self.blame.leave(blame.task(task).func(func))
    }

    /// The kernel's code, or why the task cannot run.
    #[inline(always)]
    fn kernel_of(&mut self, slot: u32, image_task: &ImageTask) -> Result<GmAddr, Fault> {
        let func_and_kind = u32::from(image_task.func_id) | u32::from(image_task.kind) << 16;
        if func_and_kind != self.known {
            self.look_up(slot, image_task)?;
            self.known = func_and_kind;
        }
        let kernel = if image_task.kernel == 0 { self.kernel } else { GmAddr(image_task.kernel) };
        if kernel.is_null() { Err(self.no_kernel(slot, image_task)) } else { Ok(kernel) }
    }

    /// Finds out about func id and kind.
    #[inline(never)]
    fn look_up(&mut self, slot: u32, image_task: &ImageTask) -> Result<(), Fault> {
        let func = FuncId(image_task.func_id);
        let (found, expected) = (image_task.kind.into(), 0);
        let refusal = if func.index() >= MAX_FUNC_ID {
            let (found, expected) = (func.0.into(), MAX_FUNC_ID as u64 - 1);
            FieldMismatch { fault: Fault::BUILD_UNKNOWN_FUNC, found, expected }
        } else {
            match CoreKind::try_from(image_task.kind) {
                Ok(kind) if self.launch.workers.count(kind) > 0 => {
                    self.kernel = self.launch.arena.kernel_addr(func);
                    return Ok(());
                }
                _ if image_task.kind == TRANSFER => {
                    self.kernel = self.launch.arena.kernel_addr(func);
                    return self.expect_transfers(slot, func);
                }
                Ok(_) => FieldMismatch { fault: Fault::BUILD_NO_CORE_OF_KIND, found, expected },
                Err(_) => FieldMismatch { fault: Fault::BUILD_UNKNOWN_KIND, found, expected },
            }
        };
        Err(self.refuse(slot, func.0.into(), &refusal))
    }

    /// From here on there may be transfers: the lines of all tasks get what a transfer needs.
    #[cold]
    #[inline(never)]
    fn expect_transfers(&mut self, slot: u32, func: FuncId) -> Result<(), Fault> {
        if !self.has_transfers {
            let count = self.tasks.len();
            let mut slots = 0..u32::try_from(count).unwrap_or(u32::MAX);
            if !M::TRANSFERS || !slots.all(|slot| self.launch.state.set_transfer(slot)) {
                let (fault, expected) = (Fault::TRANSFER_NO_ENGINE, 0);
                let refusal = FieldMismatch { fault, found: count as u64, expected };
                return Err(self.refuse(slot, func.0.into(), &refusal));
            }
            self.has_transfers = true;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn no_kernel(&mut self, slot: u32, image_task: &ImageTask) -> Fault {
        let (fault, found) = (Fault::BUILD_KERNEL_MISSING, image_task.func_id.into());
        self.refuse(slot, image_task.func_id.into(), &FieldMismatch { fault, found, expected: 0 })
    }

    /// Adds each task to the consumers of its producers.
    #[inline(always)]
    fn connect<const N: usize>(
        &mut self,
        first: u32,
        image_tasks: &[ImageTask],
        producers: &mut EntryReader<'_, u32, N>,
        check: &ImageTaskCheck,
    ) -> Result<(), Fault> {
        for (slot, image_task) in (first..).zip(image_tasks) {
            let mut left = image_task.edge_count as usize;
            let before = self.tasks.get(..check.producers_below(slot) as usize).unwrap_or(&[]);
            while left > 0 {
                let some = producers.up_to(left);
                if some.is_empty() {
                    // The check of the task has found them in the image.
                    return Err(Fault::GRAPH_EDGE_COUNT);
                }
                left -= some.len();
                for &producer in some {
                    let Some(task) = before.get(producer as usize) else {
                        return Err(self.refuse_producer(slot, producer, check));
                    };
                    if producer == slot {
                        return Err(self.refuse_producer(slot, producer, check));
                    }
                    let count = task.fanout.load(Ordering::Relaxed);
                    if let Some(entry) = task.consumers.get(count as usize) {
                        entry.store(slot, Ordering::Relaxed);
                    } else {
                        self.put_in_chunk(slot, producer, task)?;
                    }
                    task.fanout.store(count + 1, Ordering::Relaxed);
                    self.trace(TraceKind::EDGE, slot, producer);
                }
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn refuse_producer(&mut self, slot: u32, producer: u32, check: &ImageTaskCheck) -> Fault {
        let mut refusal = check.refuse_producer(slot, producer);
        if producer == slot && !check.is_topological() {
            refusal = FieldMismatch { fault: Fault::BUILD_SELF_EDGE, found: 0, expected: 0 };
        }
        self.refuse(slot, NOBODY, &refusal)
    }

    /// Writes the task into a chunk, because the producer's own line is full.
    #[inline(never)]
    fn put_in_chunk(&mut self, slot: u32, producer: u32, task: &Task) -> Result<(), Fault> {
        let chunks = self.launch.state.chunks;
        let count = task.fanout.load(Ordering::Relaxed);
        let last = task.last_chunk.load(Ordering::Relaxed);
        let (index, at) = match slot_of_consumer(count) {
            ConsumerSlot::Chunk(at) => (last, at),
            _ => (self.next_chunk, 0),
        };
        let chunk = chunks.get(index as usize).filter(|_| count < MAX_FANOUT);
        let Some(entry) = chunk.and_then(|chunk| chunk.consumers.get(at)) else {
            let (fault, expected) = (Fault::BUILD_EDGES_FULL, chunks.len() as u64);
            let refusal = FieldMismatch { fault, found: self.next_chunk.into(), expected };
            return Err(self.refuse(producer, NOBODY, &refusal));
        };
        entry.store(slot, Ordering::Relaxed);
        if at == 0 {
            match chunks.get(last as usize).filter(|_| last != NO_CHUNK) {
                None => task.first_chunk.store(index, Ordering::Relaxed),
                Some(previous) => previous.next.store(index, Ordering::Relaxed),
            }
            task.last_chunk.store(index, Ordering::Relaxed);
            self.next_chunk += 1;
        }
        Ok(())
    }

    /// Copies the arguments of tasks, from the word `first_arg` of the image on, and after each task's a word of block context
    /// (block 0 of 1).
    #[inline(always)]
    fn copy_args<const N: usize>(
        &mut self,
        first: u32,
        image_tasks: &[ImageTask],
        args: &mut EntryReader<'_, u64, N>,
        first_arg: u64,
    ) -> Result<(), Fault> {
        let payloads = self.launch.state.payloads;
        let from = usize::try_from(first_arg + u64::from(first)).unwrap_or(usize::MAX);
        let mut words = payloads.get(from..).unwrap_or(&[]);
        for image_task in image_tasks {
            let mut left = usize::from(image_task.arg_count);
            while left > 0 && !words.is_empty() {
                let values = args.up_to(left.min(words.len()));
                if values.is_empty() {
                    // The check of the task has found them in the image.
                    return Err(Fault::GRAPH_ARG_WORDS);
                }
                for (word, value) in words.iter().zip(values) {
                    word.store(*value, Ordering::Relaxed);
                }
                left -= values.len();
                words = words.get(values.len()..).unwrap_or(&[]);
            }
            let Some((context, next)) = words.split_first() else {
                return Err(self.payloads_full(first, payloads.len()));
            };
            context.store(BLOCK_0_OF_1, Ordering::Relaxed);
            words = next;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn payloads_full(&mut self, slot: u32, capacity: usize) -> Fault {
        let (fault, expected) = (Fault::BUILD_PAYLOADS_FULL, capacity as u64);
        self.refuse(slot, NOBODY, &FieldMismatch { fault, found: expected + 1, expected })
    }

    /// Lets the task wait for its producers, or adds it to the ready ones. No scheduler looks before the start.
    #[inline(always)]
    fn publish<S: Sharing>(&mut self, slot: u32, task: &Task, edges_in: u32) {
        let forgotten = u32::from(mutant::is(Mutant::LoadsAnEdgeTooFew) && edges_in > 1);
        task.fanin.store(edges_in - forgotten, Ordering::Relaxed);
        task.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        self.trace(TraceKind::PUBLISHED, slot, 0);
        if edges_in == 0 {
            self.trace(TraceKind::READY, slot, 0);
            self.make_ready::<S>(slot, task);
        }
        self.machine.loaded(slot);
    }

    #[inline(always)]
    fn make_ready<S: Sharing>(&mut self, slot: u32, task: &Task) {
        let kind = kind_of(task);
        let ready = &mut self.ready[kind.index()];
        // There is room: a full one is pushed at once.
        ready.push(slot).unwrap_or_default();
        if ready.is_full() {
            self.push_ready::<S>(kind);
        }
    }

    #[inline(never)]
    fn push_ready<S: Sharing>(&mut self, kind: CoreKind) {
        let ready = &mut self.ready[kind.index()];
        if M::TRANSFERS && self.has_transfers {
            let (tasks, state) = (self.tasks, &self.launch.state);
            let is_transfer = |slot: u32| {
                let task = tasks.get(slot as usize);
                task.is_some_and(|task| has_block_shape(task.kind.load(Ordering::Relaxed)))
            };
            ready
                .iter()
                .filter(|slot| is_transfer(**slot))
                .for_each(|slot| state.post_ready(*slot));
            ready.retain(|slot| !is_transfer(*slot));
        }
        self.launch.state.queue(kind).push::<S>(ready);
        ready.clear();
    }

    /// The graph is complete: lets the schedulers begin.
    fn start<S: Sharing>(&mut self, header: &GraphHeader) {
        CoreKind::ALL.iter().for_each(|kind| self.push_ready::<S>(*kind));
        let count = self.tasks.len() as u64;
        self.line.added.store(count, Ordering::Relaxed);
        self.line.published.store(count, Ordering::Relaxed);
        self.line.edges.store(header.edge_count, Ordering::Relaxed);
        let progress = self.launch.state.progress;
        progress.loaded_checksum.store(header.checksum, Ordering::Relaxed);
        progress.loaded_edges.store(header.edge_count, Ordering::Relaxed);
        progress.loaded_tasks.store(header.task_count, Ordering::Relaxed);
        progress.loaded_run.store(self.launch.run_epoch, Ordering::Relaxed);
        let raise = if mutant::is(Mutant::NeverRaises) { 0 } else { count };
        S::fetch_add(&progress.outstanding, raise, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `SharedState::build_is_done`; a scheduler that sees it sees the tasks and the raise.
        progress.build_done.store(1, Ordering::Release);
        self.machine.published();
    }

    /// The events of tasks that are added.
    #[inline(never)]
    fn trace_added(&mut self, first: u32, image_tasks: &[ImageTask]) {
        self.traced_ns = self.machine.now_ns();
        for (slot, image_task) in (first..).zip(image_tasks) {
            let func_and_kind = u32::from(image_task.func_id) | u32::from(image_task.kind) << 16;
            self.trace(TraceKind::ADDED, slot, func_and_kind);
        }
    }

    /// One event, if they are wanted, at the time of the last look.
    #[inline(always)]
    fn trace(&mut self, kind: TraceKind, task: u32, extra: u32) {
        if self.machine.traces() {
            let time_ns = self.traced_ns;
            self.machine.trace(TracePoint { time_ns, kind, task, extra });
        }
    }
}

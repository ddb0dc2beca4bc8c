//! The loader of `host_build_graph`: makes tasks of a graph image, and starts a graph again that stands already.
//!
//! ```text
//! load:   open (header, checksum) -> for each record: check, edges, arguments, line -> start
//! again:  the header is that of what was loaded -> for each task: reset its counts  -> start
//! start:  outstanding, ready queues, build_done: the schedulers, who have waited for it, begin
//! ```
//! Schedulers wait until all of it stands (decision 0044). So nobody else touches a line meanwhile, nothing is atomic by more
//! than its type, and a wrong image ends the run before a task has run. An edge is counted where it is read, so that the
//! fanin of its consumer and the fanout of its producer cannot differ.

mod again;

use heapless::Vec;
use pto_abi::image::{ImageReaders, Reader, RecordCheck, Refusal, SealedImage, TaskRecord};
use pto_abi::kinds::TaskState;
use pto_abi::limits::{MAX_FANOUT, MAX_FUNC_ID};
use pto_abi::runtime::{InstanceLine, NOBODY};
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{NO_CHUNK, Task};
use pto_abi::trace::{TraceKind, TraceRecord};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};

pub(crate) use self::again::again;
use crate::blame::Blame;
use crate::builder::{BLOCK_0_OF_1, BuilderHost};
use crate::fanout::{Place, place_of};
use crate::launch::Launch;
use crate::mutant::{self, Mutant};

/// Ready tasks that are pushed at once: eight lines of a queue's slots.
const READY_AT_ONCE: usize = 64;
/// Tasks that are reset between two looks at faults.
const TASKS_A_LOOK: usize = 256;
/// In `Loader::known`: nothing was looked up yet.
const NOTHING: u32 = u32::MAX;

/// Loads the image of a launch and starts it; how many tasks it has.
///
/// # Errors
/// What is wrong with the image (`GRAPH_..`) or with what a record asks for (`BUILD_..`), or the fault that somebody else
/// has raised meanwhile.
pub(crate) fn load<S: Sharing, H: BuilderHost>(
    launch: &Launch<'_>,
    line: &InstanceLine,
    host: H,
) -> Result<u64, Blame> {
    let image = SealedImage::open(launch.image().map_err(Blame::of)?).map_err(refused)?;
    let Some(mut parts) = image.readers() else { return Err(Blame::of(Fault::GRAPH_TOTAL_BYTES)) };
    let mut loader = Loader::new(launch, line, host, image.task_count())?;
    let mut check = image.record_check();
    if !image.is_topological() {
        // Consumers may stand before their producers.
        loader.tasks.iter().for_each(open_fanout);
    }
    let mut index = 0;
    while index < image.task_count() {
        if let Err(blame) = loader.load_some::<S>(&mut index, &mut parts, &mut check) {
            // Nothing of a graph stands that is not whole.
            line.added.store(0, Ordering::Relaxed);
            return Err(blame);
        }
        line.added.store(index.into(), Ordering::Relaxed);
    }
    check.end().map_err(refused)?;
    let (progress, header) = (launch.state.progress, image.header());
    progress.loaded_edges.store(header.edge_count, Ordering::Relaxed);
    progress.loaded_checksum.store(header.checksum, Ordering::Relaxed);
    progress.loaded_tasks.store(header.task_count, Ordering::Relaxed);
    Ok(loader.start::<S>(header.edge_count))
}

/// A graph on its way into the arena.
struct Loader<'l, 'a, H> {
    launch: &'l Launch<'a>,
    line: &'l InstanceLine,
    host: H,
    /// The lines of the graph's tasks.
    tasks: &'a [Task],
    has_kind: [bool; CoreKind::COUNT],
    next_chunk: u32,
    /// Func id and kind of the record before, and the kernel that is registered for it.
    known: u32,
    kernel: GmAddr,
    ready: [Vec<u32, READY_AT_ONCE>; CoreKind::COUNT],
    traced_ns: u64,
}

impl<'l, 'a, H: BuilderHost> Loader<'l, 'a, H> {
    fn new(
        launch: &'l Launch<'a>,
        line: &'l InstanceLine,
        host: H,
        count: u32,
    ) -> Result<Self, Blame> {
        let tasks: &'a [Task] = launch.state.tasks;
        let capacity = tasks.len() as u64;
        let too_many = Blame::of(Fault::GRAPH_TASK_COUNT).detail(count.into(), capacity);
        Ok(Self {
            launch,
            line,
            host,
            tasks: tasks.get(..count as usize).ok_or(too_many)?,
            has_kind: launch.has_kind(),
            next_chunk: 0,
            known: NOTHING,
            kernel: GmAddr::NULL,
            ready: [Vec::new(), Vec::new()],
            traced_ns: 0,
        })
    }

    /// Loads the records that are copied at once: first checks them, then one thing after the other, each in a loop that has
    /// its words in registers. `first` counts them.
    fn load_some<S: Sharing>(
        &mut self,
        first: &mut u32,
        parts: &mut ImageReaders<'_>,
        check: &mut RecordCheck,
    ) -> Result<(), Blame> {
        self.look_for_faults()?;
        let records = parts.records.up_to(usize::MAX);
        let (from, to) = (*first as usize, *first as usize + records.len());
        let Some(tasks) = self.tasks.get(from..to).filter(|tasks| !tasks.is_empty()) else {
            // `open` has found all of them in the image.
            return Err(Blame::of(Fault::GRAPH_TASK_COUNT));
        };
        let before = *check;
        check.records(records).map_err(|(index, refusal)| {
            let func = records.get(index as usize).map_or(NOBODY, |record| record.func_id.into());
            refused(refusal).task(self.id(*first + index)).func(func)
        })?;
        if H::TRACES {
            self.trace_added(*first, records);
        }
        if check.is_topological() {
            tasks.iter().for_each(open_fanout);
        }
        self.connect(*first, records, &mut parts.producers, check)?;
        self.copy_args(*first, records, &mut parts.args, (&before, check))?;
        let generation = self.launch.run_epoch;
        for (slot, (task, record)) in (*first..).zip(tasks.iter().zip(records)) {
            let kernel = self.kernel_of(slot, record)?;
            task.kernel.store(kernel.0, Ordering::Relaxed);
            // Each task before has its arguments and a word of block context.
            task.payload.store(record.first_arg + slot, Ordering::Relaxed);
            task.func_id.store(record.func_id, Ordering::Relaxed);
            task.arg_count.store(record.arg_count, Ordering::Relaxed);
            task.kind.store(record.kind, Ordering::Relaxed);
            task.edges_in.store(record.edge_count, Ordering::Relaxed);
            task.generation.store(generation, Ordering::Relaxed);
            self.publish::<S>(slot, task, record.edge_count);
        }
        *first += u32::try_from(records.len()).unwrap_or(0);
        Ok(())
    }

    /// Whether the run has failed meanwhile.
    fn look_for_faults(&self) -> Result<(), Blame> {
        let fault = &self.launch.state.fault;
        if fault.is_raised() {
            return Err(Blame::of(fault.first().unwrap_or(Fault::RUN_CANCELLED)));
        }
        Ok(())
    }

    /// The kernel's code, or why the task cannot run.
    #[inline(always)]
    fn kernel_of(&mut self, slot: u32, record: &TaskRecord) -> Result<GmAddr, Blame> {
        let func_and_kind = u32::from(record.func_id) | u32::from(record.kind) << 16;
        if func_and_kind != self.known {
            self.look_up(slot, record)?;
            self.known = func_and_kind;
        }
        let kernel = if record.kernel == 0 { self.kernel } else { GmAddr(record.kernel) };
        if kernel.is_null() { Err(self.no_kernel(slot, record)) } else { Ok(kernel) }
    }

    #[inline(never)]
    fn look_up(&mut self, slot: u32, record: &TaskRecord) -> Result<(), Blame> {
        let func = FuncId(record.func_id);
        let blame = |fault| Blame::of(fault).func(func.0.into()).task(self.id(slot));
        if func.index() >= MAX_FUNC_ID {
            let (found, bound) = (func.0.into(), MAX_FUNC_ID as u64 - 1);
            return Err(blame(Fault::BUILD_UNKNOWN_FUNC).detail(found, bound));
        }
        let Ok(kind) = CoreKind::try_from(record.kind) else {
            return Err(blame(Fault::BUILD_UNKNOWN_KIND).detail(record.kind.into(), 0));
        };
        if !self.has_kind[kind.index()] {
            return Err(blame(Fault::BUILD_NO_CORE_OF_KIND).detail(record.kind.into(), 0));
        }
        self.kernel = self.launch.arena.kernel_addr(func);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn no_kernel(&self, slot: u32, record: &TaskRecord) -> Blame {
        let blame = Blame::of(Fault::BUILD_KERNEL_MISSING).func(record.func_id.into());
        blame.task(self.id(slot)).detail(record.func_id.into(), 0)
    }

    /// Puts each task behind its producers.
    #[inline(always)]
    fn connect<const N: usize>(
        &mut self,
        first: u32,
        records: &[TaskRecord],
        producers: &mut Reader<'_, u32, N>,
        check: &RecordCheck,
    ) -> Result<(), Blame> {
        for (slot, record) in (first..).zip(records) {
            let mut left = record.edge_count as usize;
            let before = self.tasks.get(..check.producers_below(slot) as usize).unwrap_or(&[]);
            if let Some(all) = producers.held(left) {
                self.append(slot, all, before, check)?;
                continue;
            }
            while left > 0 {
                let some = producers.up_to(left);
                if some.is_empty() {
                    // The check of the record has found them in the image.
                    return Err(Blame::of(Fault::GRAPH_EDGE_COUNT));
                }
                left -= some.len();
                self.append(slot, some, before, check)?;
            }
        }
        Ok(())
    }

    /// Puts a task behind some of its producers, which stand in `before`.
    #[inline(always)]
    fn append(
        &mut self,
        slot: u32,
        producers: &[u32],
        before: &[Task],
        check: &RecordCheck,
    ) -> Result<(), Blame> {
        for &producer in producers {
            let Some(task) = before.get(producer as usize) else {
                return Err(self.refuse_producer(slot, producer, check));
            };
            if producer == slot {
                return Err(self.refuse_producer(slot, producer, check));
            }
            let count = task.fanout.load(Ordering::Relaxed);
            if let Some(place) = task.consumers.get(count as usize) {
                place.store(slot, Ordering::Relaxed);
            } else {
                self.put_in_chunk(slot, producer, task)?;
            }
            task.fanout.store(count + 1, Ordering::Relaxed);
            self.trace(TraceKind::EDGE, slot, producer);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn refuse_producer(&self, slot: u32, producer: u32, check: &RecordCheck) -> Blame {
        if producer == slot && !check.is_topological() {
            return Blame::of(Fault::BUILD_SELF_EDGE).task(self.id(slot));
        }
        refused(check.refuse_producer(slot, producer)).task(self.id(slot))
    }

    /// Puts the task where the producer's own line has no place left.
    #[inline(never)]
    fn put_in_chunk(&mut self, slot: u32, producer: u32, task: &Task) -> Result<(), Blame> {
        let chunks = self.launch.state.chunks;
        let count = task.fanout.load(Ordering::Relaxed);
        let mut last = task.last_chunk.load(Ordering::Relaxed);
        let mut at = 0;
        if let Place::Chunk(place) = place_of(count) {
            at = place;
        } else {
            let previous = last;
            last = self.next_chunk;
            if (last as usize) < chunks.len() {
                match chunks.get(previous as usize).filter(|_| previous != NO_CHUNK) {
                    None => task.first_chunk.store(last, Ordering::Relaxed),
                    Some(previous) => previous.next.store(last, Ordering::Relaxed),
                }
                task.last_chunk.store(last, Ordering::Relaxed);
                self.next_chunk = last + 1;
            }
        }
        let chunk = chunks.get(last as usize).filter(|_| count < MAX_FANOUT);
        let Some(place) = chunk.and_then(|chunk| chunk.consumers.get(at)) else {
            let blame = Blame::of(Fault::BUILD_EDGES_FULL).task(self.id(producer));
            return Err(blame.detail(self.next_chunk.into(), chunks.len() as u64));
        };
        place.store(slot, Ordering::Relaxed);
        Ok(())
    }

    /// Copies the arguments of tasks, and behind them a word of block context (block 0 of 1). `around`: the check before and
    /// behind the records.
    #[inline(always)]
    fn copy_args<const N: usize>(
        &mut self,
        first: u32,
        records: &[TaskRecord],
        args: &mut Reader<'_, u64, N>,
        around: (&RecordCheck, &RecordCheck),
    ) -> Result<(), Blame> {
        let payloads = self.launch.state.payloads;
        let (from, to) = (around.0.args(), around.1.args());
        let range = (from + u64::from(first), to + u64::from(first) + records.len() as u64);
        let range = usize::try_from(range.0).ok().zip(usize::try_from(range.1).ok());
        let Some(mut words) = range.and_then(|(from, to)| payloads.get(from..to)) else {
            let blame = Blame::of(Fault::BUILD_PAYLOADS_FULL).task(self.id(first));
            return Err(blame.detail(to + self.tasks.len() as u64, payloads.len() as u64));
        };
        for record in records {
            let mut left = usize::from(record.arg_count);
            while left > 0 {
                let values = args.up_to(left);
                if values.is_empty() {
                    // The check of the records has found them in the image.
                    return Err(Blame::of(Fault::GRAPH_ARG_WORDS));
                }
                for (word, value) in words.iter().zip(values) {
                    word.store(*value, Ordering::Relaxed);
                }
                left -= values.len();
                words = words.get(values.len()..).unwrap_or(&[]);
            }
            if let Some((context, next)) = words.split_first() {
                context.store(BLOCK_0_OF_1, Ordering::Relaxed);
                words = next;
            }
        }
        Ok(())
    }

    /// Lets the task wait for its producers, or puts it among the ready ones. Nobody looks before the start.
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
        self.host.loaded(slot);
    }

    #[inline(always)]
    fn make_ready<S: Sharing>(&mut self, slot: u32, task: &Task) {
        let kind = crate::state::kind_of(task);
        if self.ready[kind.index()].push(slot).is_err() {
            self.push_ready::<S>(kind);
            // There is room now.
            self.ready[kind.index()].push(slot).unwrap_or_default();
        }
    }

    #[inline(never)]
    fn push_ready<S: Sharing>(&mut self, kind: CoreKind) {
        let ready = &mut self.ready[kind.index()];
        self.launch.state.queue(kind).push::<S>(ready);
        ready.clear();
    }

    /// Everything stands: lets the schedulers begin. How many tasks there are.
    fn start<S: Sharing>(mut self, edges: u64) -> u64 {
        CoreKind::ALL.iter().for_each(|kind| self.push_ready::<S>(*kind));
        let count = self.tasks.len() as u64;
        self.line.added.store(count, Ordering::Relaxed);
        self.line.published.store(count, Ordering::Relaxed);
        self.line.edges.store(edges, Ordering::Relaxed);
        let progress = self.launch.state.progress;
        progress.loaded_run.store(self.launch.run_epoch, Ordering::Relaxed);
        let raise = if mutant::is(Mutant::NeverRaises) { 0 } else { count };
        S::fetch_add(&progress.outstanding, raise, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `SharedState::build_is_done`; who sees it sees the tasks and the raise.
        progress.build_done.store(1, Ordering::Release);
        self.host.published();
        count
    }

    fn id(&self, slot: u32) -> TaskId {
        TaskId { slot, generation: self.launch.run_epoch }
    }

    /// The events of tasks that are added.
    #[inline(never)]
    fn trace_added(&mut self, first: u32, records: &[TaskRecord]) {
        self.traced_ns = self.host.now_ns();
        for (slot, record) in (first..).zip(records) {
            let func_and_kind = u32::from(record.func_id) | u32::from(record.kind) << 16;
            self.trace(TraceKind::ADDED, slot, func_and_kind);
        }
    }

    /// One event, if they are wanted, at the time of the last look.
    #[inline(always)]
    fn trace(&mut self, kind: TraceKind, task: u32, extra: u32) {
        if H::TRACES {
            let time_ns = self.traced_ns;
            self.host.trace(TraceRecord { time_ns, kind, task, extra });
        }
    }
}

/// No consumers yet.
#[inline(always)]
fn open_fanout(task: &Task) {
    task.fanout.store(0, Ordering::Relaxed);
    task.last_chunk.store(NO_CHUNK, Ordering::Relaxed);
}

fn refused(refusal: Refusal) -> Blame {
    Blame::of(refusal.fault).detail(refusal.found, refusal.expected)
}

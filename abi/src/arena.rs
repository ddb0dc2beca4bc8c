//! The runtime arena: how the capacities of a launch become regions, and a typed view of them.
//!
//! [`ArenaLayout`] plans the bytes (host side); [`Arena`] is what the header claims, and nothing is proved of it:
//! the firmware works with a `pto_aicpu_fw::Launch`, which it checks.

use crate::CoreKind;
use crate::limits::{MAX_AICPU_INSTANCES, MAX_TASKS};
use crate::log_ring::{LogCursor, LogEntry};
use crate::ready::{QueueEnds, slots_for};
use crate::runtime::{Region, Runtime, region};
use crate::stream::StreamCapacities;
use crate::task::{EdgeChunk, Task, chunks_for};
use crate::trace::{MAX_RING_EVENTS, TraceCapacities};

/// How much of each resource a launch provides for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacities {
    /// Tasks of one run.
    pub tasks: u32,
    /// Argument words of one run, without the block context (one word a task, which is added).
    pub arg_words: u64,
    /// Edges of one run.
    pub edges: u64,
    /// Bytes of the graph image.
    pub image_bytes: u64,
    /// Entries of each instance's log ring.
    pub log_entries: u32,
    /// Trace rings.
    pub trace: TraceCapacities,
    /// What the streaming builder keeps; `tasks`, `arg_words` and `edges` are then its rings.
    pub stream: StreamCapacities,
}

impl Default for Capacities {
    fn default() -> Self {
        Self {
            tasks: 16_384,
            arg_words: 8 * 16_384,
            edges: 65_536,
            image_bytes: 0,
            log_entries: 64,
            trace: TraceCapacities::OFF,
            stream: StreamCapacities::OFF,
        }
    }
}

impl Capacities {
    /// For a streaming run whose window holds all of a graph of this size at once.
    #[must_use]
    pub fn streamed_whole(self) -> Self {
        let tasks = self.tasks.max(1).checked_next_power_of_two().unwrap_or(u32::MAX);
        let map_entries = tasks.saturating_mul(4).max(16_384);
        let per_slot = 16 * u64::from(tasks);
        let (edges, arg_words) = (self.edges.max(per_slot), self.arg_words.max(per_slot));
        let stream = StreamCapacities { window: tasks, map_entries, ..StreamCapacities::STANDARD };
        Self { tasks, edges, arg_words, stream, ..self }
    }
}

/// Why capacities cannot be provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityError {
    /// Which capacity.
    pub name: &'static str,
    /// What was asked for.
    pub asked: u64,
    /// The limit.
    pub limit: u64,
}

impl core::fmt::Display for CapacityError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "capacity {} is {}, and the limit is {}", self.name, self.asked, self.limit)
    }
}

impl core::error::Error for CapacityError {}

/// Where everything stands in an arena of given capacities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaLayout {
    /// The directory.
    pub regions: [Region; region::COUNT],
    /// Size of the arena.
    pub total_bytes: u64,
}

const LINE: u64 = 64;
/// Indices of words, chunks and slots are 32 bits wide.
const MAX_INDEX: u64 = u32::MAX as u64 - 1;

impl ArenaLayout {
    /// Plans an arena.
    ///
    /// # Errors
    /// Which capacity exceeds its limit.
    pub fn plan(capacities: &Capacities) -> Result<Self, CapacityError> {
        let limit = |name, asked: u64, limit: u64| {
            if asked <= limit { Ok(asked) } else { Err(CapacityError { name, asked, limit }) }
        };
        let tasks = limit("tasks", capacities.tasks.into(), MAX_TASKS.into())?;
        let words = capacities.arg_words.saturating_add(tasks);
        let words = limit("arg_words", words, MAX_INDEX)?;
        let edges = limit("edges", capacities.edges, crate::limits::MAX_IMAGE_EDGES)?;
        let image = limit("image_bytes", capacities.image_bytes, 1 << 40)?;
        let ring_events = capacities.trace.instance_events.max(capacities.trace.core_events);
        limit("trace", ring_events.into(), MAX_RING_EVENTS.into())?;
        let stream = limit("stream", capacities.stream.bytes().unwrap_or(u64::MAX), 1 << 40)?;
        let mut sizes = [0; region::COUNT];
        sizes[region::TASKS] = tasks * size_of::<Task>() as u64;
        sizes[region::PAYLOADS] = words * 8;
        sizes[region::EDGES] = chunks_for(edges) * size_of::<EdgeChunk>() as u64;
        sizes[region::READY] = ready_bytes(capacities.tasks);
        sizes[region::LOGS] = logs_bytes(capacities.log_entries);
        sizes[region::GRAPH] = image;
        sizes[region::TRACE] = capacities.trace.bytes();
        sizes[region::STREAM] = stream;
        Ok(Self::place(sizes))
    }

    fn place(sizes: [u64; region::COUNT]) -> Self {
        let mut end = size_of::<Runtime>() as u64;
        let regions = sizes.map(|bytes| {
            let offset = if bytes == 0 { 0 } else { end };
            end = (end + bytes).next_multiple_of(LINE);
            Region { offset, bytes }
        });
        Self { regions, total_bytes: end }
    }
}

const fn ready_bytes(tasks: u32) -> u64 {
    let queue = size_of::<QueueEnds>() as u64 + slots_for(tasks) as u64 * 8;
    queue * CoreKind::COUNT as u64
}

const fn logs_bytes(entries: u32) -> u64 {
    let ring = size_of::<LogCursor>() as u64 + entries as u64 * size_of::<LogEntry>() as u64;
    ring * MAX_AICPU_INSTANCES as u64
}

#[cfg(not(any(loom, shuttle)))]
pub use view::Arena;

#[cfg(not(any(loom, shuttle)))]
mod view {
    use core::mem::offset_of;

    use super::{
        Capacities, EdgeChunk, LogCursor, LogEntry, QueueEnds, Region, Runtime, Task, chunks_for,
        region,
    };
    use crate::gm::{GmWindow, LiveWords};
    use crate::handshake::Handshake;
    use crate::limits::{MAX_AICPU_INSTANCES, MAX_FUNC_ID, MAX_WORKERS};
    use crate::log_ring::LogRing;
    use crate::runtime::{
        Epitaph, FaultLine, InstanceLine, OrchArgs, Progress, RunConfig, RuntimeHeader, WorkerEntry,
    };
    use crate::stream::StreamHeader;
    use crate::sync::{AtomicU64, Ordering};
    use crate::{CoreKind, Fault, FuncId, GmAddr};

    /// A part of GM that holds at least a `Runtime`. Nothing is proved of its contents.
    #[derive(Clone, Copy)]
    pub struct Arena<'a> {
        gm: GmWindow<'a>,
        window: GmWindow<'a>,
        progress: &'a Progress,
        fault: &'a FaultLine,
        instances: &'a [InstanceLine],
        workers: &'a [Handshake],
    }

    impl<'a> Arena<'a> {
        /// The arena of `bytes` bytes at `address`; `None`: GM does not hold it, it does not hold a
        /// `Runtime`, or it is misaligned.
        #[must_use]
        pub fn new(gm: GmWindow<'a>, address: GmAddr, bytes: u64) -> Option<Self> {
            let window = gm.part(gm.offset_of(address, bytes)?, bytes)?;
            window.pointer(0, size_of::<Runtime>() as u64, align_of::<Runtime>())?;
            let instances = offset_of!(Runtime, instances) as u64;
            Some(Self {
                gm,
                window,
                progress: window.live(offset_of!(Runtime, progress) as u64)?,
                fault: window.live(offset_of!(Runtime, fault) as u64)?,
                instances: window.live_slice(instances, MAX_AICPU_INSTANCES)?,
                workers: window.live_slice(offset_of!(Runtime, workers) as u64, MAX_WORKERS)?,
            })
        }

        /// All of GM.
        #[must_use]
        pub const fn gm(&self) -> GmWindow<'a> {
            self.gm
        }

        /// The bytes.
        #[must_use]
        pub const fn window(&self) -> GmWindow<'a> {
            self.window
        }

        /// Reads the header.
        #[must_use]
        pub fn header(&self) -> RuntimeHeader {
            self.plain(offset_of!(Runtime, header))
        }

        /// Writes the header.
        pub fn set_header(&self, header: &RuntimeHeader) {
            self.set_plain(offset_of!(Runtime, header), header);
        }

        /// Reads the configuration.
        #[must_use]
        pub fn config(&self) -> RunConfig {
            self.plain(offset_of!(Runtime, config))
        }

        /// Writes the configuration.
        pub fn set_config(&self, config: &RunConfig) {
            self.set_plain(offset_of!(Runtime, config), config);
        }

        /// Reads the directory of regions.
        #[must_use]
        pub fn regions(&self) -> [Region; region::COUNT] {
            self.plain(offset_of!(Runtime, regions))
        }

        /// Writes the directory of regions.
        pub fn set_regions(&self, regions: &[Region; region::COUNT]) {
            self.set_plain(offset_of!(Runtime, regions), regions);
        }

        /// Reads the builder's arguments.
        #[must_use]
        pub fn orch_args(&self) -> OrchArgs {
            // By a loop: one volatile copy of it all is 2 KiB of code.
            let mut orch: OrchArgs = bytemuck::Zeroable::zeroed();
            let words = bytemuck::cast_slice_mut::<u8, u64>(bytemuck::bytes_of_mut(&mut orch));
            for (index, word) in words.iter_mut().enumerate() {
                *word = self.plain(offset_of!(Runtime, orch) + 8 * index);
            }
            orch
        }

        /// Writes the builder's arguments.
        pub fn set_orch_args(&self, orch: &OrchArgs) {
            self.set_plain(offset_of!(Runtime, orch), orch);
        }

        /// Where the code of `func_id` is; null: not registered.
        #[must_use]
        #[inline]
        pub fn kernel_addr(&self, func_id: FuncId) -> GmAddr {
            if func_id.index() >= MAX_FUNC_ID {
                return GmAddr::NULL;
            }
            self.plain(offset_of!(Runtime, kernel_addrs) + 8 * func_id.index())
        }

        /// Writes the table of kernels.
        pub fn set_kernel_addrs(&self, addresses: &[u64; MAX_FUNC_ID]) {
            let bytes = bytemuck::bytes_of(addresses);
            let offset = offset_of!(Runtime, kernel_addrs) as u64;
            self.window.write_bytes(offset, bytes).unwrap_or_default();
        }

        /// Reads an entry of the worker table; the index is taken modulo the limit.
        #[must_use]
        pub fn worker_entry(&self, worker: usize) -> WorkerEntry {
            self.plain(offset_of!(Runtime, worker_table) + 8 * (worker % MAX_WORKERS))
        }

        /// Writes an entry of the worker table; the index is taken modulo the limit.
        pub fn set_worker_entry(&self, worker: usize, entry: &WorkerEntry) {
            self.set_plain(offset_of!(Runtime, worker_table) + 8 * (worker % MAX_WORKERS), entry);
        }

        /// Reads the epitaph.
        #[must_use]
        pub fn epitaph(&self) -> Epitaph {
            self.plain(offset_of!(Runtime, epitaph))
        }

        /// Writes the epitaph. Only the agent that raised the fault does.
        pub fn set_epitaph(&self, epitaph: &Epitaph) {
            self.set_plain(offset_of!(Runtime, epitaph), epitaph);
        }

        /// The words of termination.
        #[must_use]
        pub const fn progress(&self) -> &'a Progress {
            self.progress
        }

        /// The first fault.
        #[must_use]
        pub const fn fault(&self) -> &'a FaultLine {
            self.fault
        }

        /// The lines of the AICPU instances.
        #[must_use]
        pub const fn instances(&self) -> &'a [InstanceLine] {
            self.instances
        }

        /// The handshake lines of the workers.
        #[must_use]
        pub const fn workers(&self) -> &'a [Handshake] {
            self.workers
        }

        /// Resets the live words for a new run. Only while no agent runs.
        pub fn prepare_run(&self) {
            let progress = self.progress();
            progress.build_done.store(0, Ordering::Relaxed);
            progress.outstanding.store(0, Ordering::Relaxed);
            self.fault().code.store(0, Ordering::Relaxed);
            self.fault().epitaph_ready.store(0, Ordering::Relaxed);
            for line in self.instances() {
                let [aic, aiv] = &line.free_cores;
                for word in [&line.phase, &line.busy_cores, aic, aiv] {
                    word.store(0, Ordering::Relaxed);
                }
                let counts = [&line.added, &line.published, &line.completed];
                for word in counts.into_iter().chain([&line.edges, &line.edges_satisfied]) {
                    word.store(0, Ordering::Relaxed);
                }
            }
            let ready = self.regions()[region::READY];
            for kind in CoreKind::ALL {
                self.ready_queue(ready, *kind).into_iter().for_each(|(ends, _)| ends.discard());
            }
            let stream = self.stream_header(self.regions()[region::STREAM]);
            stream.into_iter().for_each(|header| header.board.reset());
            self.reset_traces();
        }

        /// Tells the streaming builder the sizes of its rings; `None`: the region is not in the arena.
        pub fn set_stream_sizes(&self, at: Region, capacities: &Capacities) -> Option<()> {
            let header = self.stream_header(at)?;
            let stream = &capacities.stream;
            header.window.store(stream.window, Ordering::Relaxed);
            header.map_entries.store(stream.map_entries, Ordering::Relaxed);
            header.heap_rings.store(stream.heap_rings, Ordering::Relaxed);
            header.first_task.store(0, Ordering::Relaxed);
            header.heap_bytes.store(stream.heap_bytes, Ordering::Relaxed);
            let words = capacities.arg_words.saturating_add(capacities.tasks.into());
            header.arg_words.store(words, Ordering::Relaxed);
            header.edge_chunks.store(chunks_for(capacities.edges), Ordering::Relaxed);
            Some(())
        }

        /// The header of the streaming builder; `None`: the region is not in the arena.
        #[must_use]
        pub fn stream_header(&self, at: Region) -> Option<&'a StreamHeader> {
            self.window.part(at.offset, at.bytes)?.live(0)
        }

        /// The tasks.
        ///
        /// # Errors
        /// `RUNTIME_REGION_TASKS`.
        pub fn tasks(&self, at: Region) -> Result<&'a [Task], Fault> {
            self.region(at, Fault::RUNTIME_REGION_TASKS)
        }

        /// The argument words.
        ///
        /// # Errors
        /// `RUNTIME_REGION_PAYLOADS`.
        pub fn payloads(&self, at: Region) -> Result<&'a [AtomicU64], Fault> {
            self.region(at, Fault::RUNTIME_REGION_PAYLOADS)
        }

        /// The chunks of consumers.
        ///
        /// # Errors
        /// `RUNTIME_REGION_EDGES`.
        pub fn chunks(&self, at: Region) -> Result<&'a [EdgeChunk], Fault> {
            self.region(at, Fault::RUNTIME_REGION_EDGES)
        }

        /// The ready queue of one core kind: ends and slots; `None`: the region is not in the arena.
        #[must_use]
        pub fn ready_queue(
            &self,
            at: Region,
            kind: CoreKind,
        ) -> Option<(&'a QueueEnds, &'a [AtomicU64])> {
            let part = self.window.part(at.offset, at.bytes)?;
            let each = at.bytes / CoreKind::COUNT as u64;
            let start = each.checked_mul(kind.index() as u64)?;
            let slots = each.checked_sub(size_of::<QueueEnds>() as u64)? / 8;
            let ends = part.live(start)?;
            let slots = usize::try_from(slots).ok()?;
            Some((ends, part.live_slice(start + size_of::<QueueEnds>() as u64, slots)?))
        }

        /// The log ring of one instance; `None`: the region is not in the arena.
        #[must_use]
        pub fn log_ring(&self, at: Region, instance: usize) -> Option<LogRing<'a>> {
            let part = self.window.part(at.offset, at.bytes)?;
            let each = at.bytes / MAX_AICPU_INSTANCES as u64;
            let start = each.checked_mul(u64::try_from(instance).ok()?)?;
            let cursor_bytes = size_of::<LogCursor>() as u64;
            let count = each.checked_sub(cursor_bytes)? / size_of::<LogEntry>() as u64;
            let entries = part.live_slice(start + cursor_bytes, usize::try_from(count).ok()?)?;
            Some(LogRing { cursor: part.live(start)?, entries })
        }

        /// The window of a region.
        ///
        /// # Errors
        /// `fault`, when the region is not in the arena.
        pub fn region_window(&self, at: Region, fault: Fault) -> Result<GmWindow<'a>, Fault> {
            let clear = at.bytes == 0 || at.offset >= size_of::<Runtime>() as u64;
            let part = self.window.part(at.offset, at.bytes).filter(|_| clear);
            part.ok_or(fault)
        }

        fn region<T: LiveWords>(&self, at: Region, fault: Fault) -> Result<&'a [T], Fault> {
            let part = self.region_window(at, fault)?;
            if !at.bytes.is_multiple_of(size_of::<T>() as u64) {
                return Err(fault);
            }
            let count = at.bytes / size_of::<T>() as u64;
            usize::try_from(count).ok().and_then(|count| part.live_slice(0, count)).ok_or(fault)
        }

        fn plain<T: bytemuck::Pod>(&self, offset: usize) -> T {
            // `new` proved that the window holds a Runtime, and `offset` lies in it.
            self.window.read(offset as u64).unwrap_or(T::zeroed())
        }

        fn set_plain<T: bytemuck::Pod>(&self, offset: usize, value: &T) {
            // As in `plain`: the offset lies in the Runtime, so that the write cannot fail.
            self.window.write(offset as u64, value).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ArenaLayout, Capacities};
    use crate::limits::MAX_TASKS;
    use crate::runtime::{Runtime, region};

    const NONE: Capacities = Capacities {
        tasks: 0,
        arg_words: 0,
        edges: 0,
        image_bytes: 0,
        log_entries: 0,
        trace: crate::trace::TraceCapacities::OFF,
        stream: crate::stream::StreamCapacities::OFF,
    };

    #[test]
    fn an_arena_costs_what_its_capacities_need() {
        let capacities =
            Capacities { tasks: 100, arg_words: 400, edges: 300, log_entries: 4, ..NONE };
        let layout = ArenaLayout::plan(&capacities).unwrap();
        let of = |index: usize| layout.regions[index].bytes;
        assert_eq!(of(region::TASKS), 6_400);
        assert_eq!(of(region::PAYLOADS), 500 * 8);
        assert_eq!(of(region::EDGES), 50 * 64);
        assert_eq!(of(region::READY), 2 * (128 + 128 * 8));
        assert_eq!(layout.regions[region::GRAPH].offset, 0);
        assert!(layout.total_bytes < size_of::<Runtime>() as u64 + 32 * 1024);
        for pair in layout.regions.windows(2).filter(|pair| pair[1].bytes > 0) {
            assert!(pair[1].offset >= pair[0].offset + pair[0].bytes && pair[1].offset % 64 == 0);
        }
    }

    #[test]
    fn the_smallest_arena_has_queues() {
        let layout = ArenaLayout::plan(&NONE).unwrap();
        assert_eq!(layout.regions[region::READY].bytes, 2 * (128 + 64));
        for tasks in 0..=40 {
            let layout = ArenaLayout::plan(&Capacities { tasks, ..NONE }).unwrap();
            let queue = layout.regions[region::READY].bytes / 2;
            assert!(queue.is_multiple_of(64), "the second queue of {tasks} tasks is not aligned");
        }
    }

    #[test]
    fn a_capacity_above_its_limit_is_named() {
        let over = |change: fn(&mut Capacities)| {
            let mut capacities = Capacities::default();
            change(&mut capacities);
            ArenaLayout::plan(&capacities).unwrap_err().name
        };
        assert_eq!(over(|c| c.tasks = MAX_TASKS + 1), "tasks");
        assert_eq!(over(|c| c.arg_words = u64::from(u32::MAX)), "arg_words");
        assert_eq!(over(|c| c.edges = u64::MAX), "edges");
        assert_eq!(over(|c| c.image_bytes = u64::MAX), "image_bytes");
        assert_eq!(over(|c| c.trace.core_events = u32::MAX), "trace");
    }
}

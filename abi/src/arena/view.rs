//! An arena as the agents of a run see it: checked views of its regions, and copies of its plain fields.

use core::mem::offset_of;

use super::Capacities;
use crate::fault::Fault;
use crate::gm::{GmWindow, LiveWords};
use crate::handshake::Handshake;
use crate::ids::{FuncId, GmAddr};
use crate::kinds::CoreKind;
use crate::limits::{MAX_AICPU_INSTANCES, MAX_FUNC_ID, MAX_WORKERS};
use crate::log_ring::LogRing;
use crate::log_ring::{LogCursor, LogEntry};
use crate::ready::QueueEnds;
use crate::runtime::{
    Epitaph, FaultLine, InstanceLine, OrchArgs, Progress, RunConfig, RuntimeHeader, WorkerEntry,
};
use crate::runtime::{Region, Runtime, region};
use crate::stream::{BlockLine, StreamHeader, StreamPlan};
use crate::sync::{AtomicU64, Ordering};
use crate::task::{EdgeChunk, Task, chunks_for};

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
        let entry = self.kernel_addrs().get(func_id.index());
        entry.map_or(GmAddr::NULL, |entry| GmAddr(entry.load(Ordering::Relaxed)))
    }

    /// Where the code of each function is, by its id.
    #[must_use]
    #[inline]
    pub fn kernel_addrs(&self) -> &'a [AtomicU64] {
        // `new` proved that the window holds a Runtime.
        let table = offset_of!(Runtime, kernel_addrs) as u64;
        self.window.live_slice(table, MAX_FUNC_ID).unwrap_or_default()
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
            for word in
                counts.into_iter().chain([&line.edges, &line.edges_satisfied, &line.chained])
            {
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

    /// Writes the sizes of the streaming builder's rings; `None`: the region is not in the arena.
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

    /// What tasks are beyond one kernel on one core, by slot; `None`: the run does not stream.
    #[must_use]
    pub fn block_lines(&self, at: Region) -> Option<&'a [BlockLine]> {
        let capacities = self.stream_header(at)?.capacities();
        let plan = StreamPlan::of(&capacities).filter(|plan| plan.bytes <= at.bytes)?;
        let window = self.window.part(at.offset, at.bytes)?;
        window.live_slice(plan.blocks, capacities.window as usize)
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

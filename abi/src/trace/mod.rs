//! Trace rings in device memory: what happened to which task, and when. One ring per AICPU instance and one
//! per core, each with one writer.
//!
//! ```text
//! TraceHeader | ring of instance 0 | .. | ring of instance n-1 | ring of core 0 | .. | ring of core m-1
//!               ring: TraceCursor, TraceReader, 2^k TraceEvents
//! ```
//! A full ring overwrites its oldest events, or takes no more (`RunFlags::TRACE_KEEP_OLDEST`); either way the
//! reader knows how many are missing. Or its writer waits until the host has read some (`RunFlags::TRACE_WAITS`), and
//! none is. The region exists only in runs that are traced.

use bytemuck::{Pod, Zeroable};

use crate::closed_set;
use crate::gm::about_to_write;
use crate::kinds::RunFlags;
use crate::limits::MAX_TASKS;
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

closed_set! {
    /// What happened to a task.
    pub struct TraceKind(u8) {
        /// It exists. Extra: func id, and core kind from bit 16 on.
        ADDED = 1, "added";
        /// It waits for the producer in extra.
        EDGE = 2, "edge";
        /// The producer in extra had completed when the edge was added. Not of one whose slot is another task's by then.
        EDGE_SATISFIED = 3, "edge satisfied";
        /// The task is visible to schedulers.
        PUBLISHED = 4, "published";
        /// The task's last producer has completed.
        READY = 5, "ready";
        /// The doorbell of the worker in extra.
        DISPATCHED = 6, "dispatched";
        /// The core begins with it.
        STARTED = 7, "started";
        /// The core has finished it.
        FINISHED = 8, "finished";
        /// The scheduler has seen that it is finished, and releases its consumers. Extra: the worker.
        COMPLETED = 9, "completed";
        /// Its predicate is false: it completes without running, and the scheduler releases its consumers.
        SKIPPED = 10, "skipped";
        /// The next doorbell in this ring is for one part of the task. Extra: the low bits of its `BlockContext`: the number of the
        /// block, and from bit 24 on the number of the core among those of its kind in the block.
        PART = 11, "part";
        /// The scheduler has seen that a part is finished. Extra: the worker.
        COLLECTED = 12, "collected";
        /// Parts of the task have the kernel in extra: its func id, and from bit 16 on their lane (0 the cube core, 1 and 2 the
        /// vector cores).
        LANE = 13, "lane";
    }
}

/// Bits of `TraceEvent::what` that hold the kind; those above hold the extra.
pub const KIND_BITS: u32 = 7;
/// The largest extra.
pub const MAX_EXTRA: u32 = u32::MAX >> KIND_BITS;
const _: () = assert!(MAX_TASKS - 1 <= MAX_EXTRA, "a slot fits an extra");
/// Bits of `TraceEvent::task` that hold the slot; those above hold its lap.
pub const SLOT_BITS: u32 = 25;
const _: () = assert!(MAX_TASKS - 1 < 1 << SLOT_BITS, "a slot leaves bits for its lap");
/// Laps that an event distinguishes.
pub const LAPS: u32 = 1 << (u32::BITS - SLOT_BITS);

/// The low bits of a slot's generation: which of the tasks that had the slot an event is of.
#[must_use]
pub const fn lap_of(generation: u32) -> u8 {
    // Masked: seven bits.
    (generation & (LAPS - 1)) as u8
}

shared_struct! {
    /// What the trace region consists of; written by the host.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct TraceHeader [size = 64, align = 4] {
        /// Rings of AICPU instances.
        0 => instances: u32,
        /// Events that the ring of an instance holds: a power of two.
        4 => instance_events: u32,
        /// Rings of cores.
        8 => cores: u32,
        /// Events that the ring of a core holds: a power of two.
        12 => core_events: u32,
        /// Not used; zero.
        16 => reserved: [u32; 12],
    }
}

shared_struct! {
    /// The writer's end of one ring.
    #[derive(Default)]
    pub struct TraceCursor [size = 64, align = 64] {
        /// Events written since the run began, overwritten ones included.
        0 => written: AtomicU64,
        /// Events that a full ring did not take.
        8 => refused: AtomicU64,
        /// Not used; zero.
        16 => reserved: [AtomicU64; 6],
    }
}

shared_struct! {
    /// The reader's end of one ring, in a line of its own; of rings whose writers wait.
    #[derive(Default)]
    pub struct TraceReader [size = 64, align = 64] {
        /// Events that the host has read.
        0 => read: AtomicU64,
        /// Not used; zero.
        8 => reserved: [AtomicU64; 7],
    }
}

shared_struct! {
    /// One event.
    #[derive(Default)]
    pub struct TraceEvent [size = 16, align = 16] {
        /// The clock of the agent that wrote it.
        0 => time_ns: AtomicU64,
        /// Slot of the task, and from bit 25 on the low bits of the slot's generation: a streaming run uses slots again.
        8 => task: AtomicU32,
        /// `TraceKind`, and the extra from bit 7 on.
        12 => what: AtomicU32,
    }
}

/// Events that a line of a cache holds.
const EVENTS_A_LINE: u64 = 64 / size_of::<TraceEvent>() as u64;
/// How far before an event is written its line is asked for, in lines: events of a long run fit no cache. Of 2, 4 and 8 lines of an instance's ring
/// the best in a model of the rings (docs/decisions/trace-rings.md).
const LINES_AHEAD: u64 = 8;
/// The same of a core: its ring is written so seldom that a line is there in time, and of all cores together more lines would fill the first cache.
const LINES_AHEAD_OF_A_CORE: u64 = 2;

/// One event, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// The clock of the agent that saw it.
    pub time_ns: u64,
    /// What happened.
    pub kind: TraceKind,
    /// Slot of the task.
    pub task: u32,
    /// See [`TraceKind`]; at most [`MAX_EXTRA`].
    pub extra: u32,
}

/// How large the rings of a launch are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCapacities {
    /// Rings of AICPU instances.
    pub instances: u32,
    /// Events of an instance's ring; rounded up to a power of two, at least 4.
    pub instance_events: u32,
    /// Rings of cores.
    pub cores: u32,
    /// Events of a core's ring; rounded up likewise.
    pub core_events: u32,
}

impl TraceCapacities {
    /// No trace.
    pub const OFF: Self = Self { instances: 0, instance_events: 0, cores: 0, core_events: 0 };

    /// Whether the run is not traced.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.instances == 0
    }

    /// The header of the region.
    #[must_use]
    pub const fn header(&self) -> TraceHeader {
        TraceHeader {
            instances: self.instances,
            instance_events: ring_events(self.instance_events),
            cores: self.cores,
            core_events: ring_events(self.core_events),
            reserved: [0; 12],
        }
    }

    /// Size of the region; none when there is no trace.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        if self.is_off() { 0 } else { self.header().bytes() }
    }
}

impl TraceHeader {
    /// Size of the region.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        size_of::<Self>() as u64
            + self.instances as u64 * ring_bytes(self.instance_events)
            + self.cores as u64 * ring_bytes(self.core_events)
    }
}

/// The most events of one ring.
pub const MAX_RING_EVENTS: u32 = 1 << 30;
const MIN_RING_EVENTS: u32 = 4;

const fn ring_events(asked: u32) -> u32 {
    if asked < MIN_RING_EVENTS {
        return MIN_RING_EVENTS;
    }
    match asked.checked_next_power_of_two() {
        Some(events) if events <= MAX_RING_EVENTS => events,
        _ => MAX_RING_EVENTS,
    }
}

const fn ring_bytes(events: u32) -> u64 {
    RING_HEAD_BYTES + events as u64 * size_of::<TraceEvent>() as u64
}

/// The bytes before the events of a ring.
pub(crate) const RING_HEAD_BYTES: u64 =
    size_of::<TraceCursor>() as u64 + size_of::<TraceReader>() as u64;

/// Whose ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOwner {
    /// An AICPU instance.
    Instance(u32),
    /// A worker.
    Core(u32),
}

impl TraceHeader {
    /// Where the ring of `owner` begins in the region, and how many events it holds.
    #[must_use]
    pub fn ring(&self, owner: TraceOwner) -> Option<(u64, u32)> {
        let first_core =
            size_of::<Self>() as u64 + u64::from(self.instances) * ring_bytes(self.instance_events);
        match owner {
            TraceOwner::Instance(index) if index < self.instances => {
                let before = u64::from(index) * ring_bytes(self.instance_events);
                Some((size_of::<Self>() as u64 + before, self.instance_events))
            }
            TraceOwner::Core(index) if index < self.cores => Some((
                first_core + u64::from(index) * ring_bytes(self.core_events),
                self.core_events,
            )),
            _ => None,
        }
    }
}

/// What a full ring does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It overwrites its oldest events: the end of the run is known.
    #[default]
    DropOldest,
    /// It takes no more events: the beginning of the run is known.
    KeepOldest,
    /// Its writer waits until the host has read some: the whole run is known, and takes longer.
    Wait,
}

impl WhenFull {
    /// The flags of a run whose rings do that.
    #[must_use]
    pub const fn flags(self) -> RunFlags {
        match self {
            Self::DropOldest => RunFlags::empty(),
            Self::KeepOldest => RunFlags::TRACE_KEEP_OLDEST,
            Self::Wait => RunFlags::TRACE_WAITS,
        }
    }

    /// What the rings of a run with these flags do.
    #[must_use]
    pub const fn of(flags: RunFlags) -> Self {
        if flags.contains(RunFlags::TRACE_WAITS) {
            Self::Wait
        } else if flags.contains(RunFlags::TRACE_KEEP_OLDEST) {
            Self::KeepOldest
        } else {
            Self::DropOldest
        }
    }
}

/// The ring of one agent.
#[derive(Clone, Copy)]
pub struct TraceLane<'a> {
    cursor: &'a TraceCursor,
    reader: &'a TraceReader,
    events: &'a [TraceEvent],
    when_full: WhenFull,
    /// How far before an event is written its line is asked for, in events.
    ahead: u64,
}

impl<'a> TraceLane<'a> {
    /// The ring of this agent; `None`: the number of its events is not a power of two.
    #[must_use]
    pub fn new(
        owner: TraceOwner,
        ends: (&'a TraceCursor, &'a TraceReader),
        events: &'a [TraceEvent],
        when_full: WhenFull,
    ) -> Option<Self> {
        let (cursor, reader) = ends;
        let lines = match owner {
            TraceOwner::Instance(_) => LINES_AHEAD,
            TraceOwner::Core(_) => LINES_AHEAD_OF_A_CORE,
        };
        let ahead = lines * EVENTS_A_LINE;
        events.len().is_power_of_two().then_some(Self { cursor, reader, events, when_full, ahead })
    }

    /// Writes an event of a slot in this lap ([`lap_of`]). One writer per ring. `false`: the ring is full, and the writer
    /// has to wait for the reader.
    #[inline]
    #[must_use]
    pub fn write(&self, point: TracePoint, lap: u8) -> bool {
        let number = self.cursor.written.load(Ordering::Relaxed);
        if self.when_full != WhenFull::DropOldest && number >= self.events.len() as u64 {
            match self.when_full {
                WhenFull::Wait if !self.is_full() => {}
                WhenFull::Wait => return false,
                _ => {
                    self.refuse();
                    return true;
                }
            }
        }
        let Some(event) = self.event(number) else { return true };
        if number.is_multiple_of(EVENTS_A_LINE)
            && let Some(ahead) = self.event(number + self.ahead)
        {
            about_to_write(ahead);
        }
        event.time_ns.store(point.time_ns, Ordering::Relaxed);
        event.task.store(point.task | u32::from(lap) << SLOT_BITS, Ordering::Relaxed);
        let what = u32::from(point.kind.get()) | point.extra << KIND_BITS;
        event.what.store(what, Ordering::Relaxed);
        // Release: pairs with the Acquire loads of written in `read_all` and `read_new`.
        self.cursor.written.store(number + 1, Ordering::Release);
        true
    }

    /// Counts an event that the ring does not take.
    pub fn refuse(&self) {
        let refused = self.cursor.refused.load(Ordering::Relaxed);
        self.cursor.refused.store(refused + 1, Ordering::Relaxed);
    }

    /// Events that were written since the run began.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.cursor.written.load(Ordering::Relaxed)
    }

    /// Events that the reader has read; of a ring whose writer waits.
    #[must_use]
    pub fn read_so_far(&self) -> u64 {
        // Acquire: pairs with the Release store of read in `read_new`; the writer may overwrite these entries.
        self.reader.read.load(Ordering::Acquire)
    }

    /// Events that it holds.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.events.len() as u64
    }

    /// Whether every event that it holds has still to be read.
    fn is_full(&self) -> bool {
        self.written().saturating_sub(self.read_so_far()) >= self.capacity()
    }

    /// Forgets everything. Only while no agent writes.
    pub fn reset(&self) {
        self.reader.read.store(0, Ordering::Relaxed);
        self.cursor.written.store(0, Ordering::Relaxed);
        self.cursor.refused.store(0, Ordering::Relaxed);
    }

    /// Passes the events that were written since the last call to `each`, with the laps of their slots, the oldest
    /// first, and frees their entries for the writer; returns how many there were, and how many of them were none. One
    /// reader per ring, whose writer waits.
    pub fn read_new(&self, mut each: impl FnMut(TracePoint, u8)) -> (u64, u64) {
        // Acquire: pairs with the Release store of written in `write`.
        let written = self.cursor.written.load(Ordering::Acquire);
        let read = self.reader.read.load(Ordering::Relaxed);
        let mut wrong = 0;
        for number in read..written {
            match self.event(number).and_then(|event| self.read(event, number)) {
                Some((point, lap)) => each(point, lap),
                None => wrong += 1,
            }
        }
        // Release: pairs with the Acquire load in `read_so_far`: what was read is not needed any more.
        self.reader.read.store(written, Ordering::Release);
        (written.saturating_sub(read), wrong)
    }

    /// Events that the ring did not take.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.cursor.refused.load(Ordering::Relaxed)
    }

    /// Passes every event to `each`, with the lap of its slot, the oldest first; returns how many are missing. Meant for a ring that is
    /// no longer written; events that a writer overwrites meanwhile count as missing.
    pub fn read_all(&self, mut each: impl FnMut(TracePoint, u8)) -> u64 {
        // Acquire: pairs with the Release store of written in `write`.
        let written = self.cursor.written.load(Ordering::Acquire);
        let read = self.reader.read.load(Ordering::Relaxed);
        let first = written.saturating_sub(self.events.len() as u64).max(read);
        let mut missing = first - read + self.refused();
        for number in first..written {
            match self.event(number).and_then(|event| self.read(event, number)) {
                Some((point, lap)) => each(point, lap),
                None => missing += 1,
            }
        }
        missing
    }

    fn read(&self, event: &TraceEvent, number: u64) -> Option<(TracePoint, u8)> {
        let what = event.what.load(Ordering::Relaxed);
        let task = event.task.load(Ordering::Relaxed);
        let point = TracePoint {
            time_ns: event.time_ns.load(Ordering::Relaxed),
            task: task & ((1 << SLOT_BITS) - 1),
            // The mask keeps seven bits.
            kind: TraceKind::try_from((what & ((1 << KIND_BITS) - 1)) as u8).ok()?,
            extra: what >> KIND_BITS,
        };
        // Acquire: as in `read_all`; an agent that missed its deadline may be overwriting the entry.
        let written = self.cursor.written.load(Ordering::Acquire);
        (written <= number + self.events.len() as u64).then_some((point, lap_of(task >> SLOT_BITS)))
    }

    #[inline]
    fn event(&self, number: u64) -> Option<&'a TraceEvent> {
        // A power of two: the mask keeps what fits an index.
        #[expect(clippy::cast_possible_truncation, reason = "masked by the number of events")]
        let index = number as usize & self.events.len().wrapping_sub(1);
        self.events.get(index)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

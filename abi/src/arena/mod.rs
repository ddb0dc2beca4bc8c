//! The runtime arena: how the capacities of a launch become regions, and a typed view of them.
//!
//! [`ArenaLayout`] plans the bytes (host side); [`Arena`] is what the header claims, and nothing is proved of it:
//! the firmware works with a `pto_aicpu_fw::Launch`, which it checks.

use crate::kinds::CoreKind;
use crate::limits::{MAX_AICPU_INSTANCES, MAX_ARGS, MAX_TASKS};
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

/// The offset of each region in an arena of given capacities.
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
        let words = limit("arg_words", words, MAX_INDEX - MAX_ARGS as u64)?;
        let edges = limit("edges", capacities.edges, crate::limits::MAX_IMAGE_EDGES)?;
        let image = limit("image_bytes", capacities.image_bytes, 1 << 40)?;
        let ring_events = capacities.trace.instance_events.max(capacities.trace.core_events);
        limit("trace", ring_events.into(), MAX_RING_EVENTS.into())?;
        let stream = limit("stream", capacities.stream.bytes().unwrap_or(u64::MAX), 1 << 40)?;
        let mut sizes = [0; region::COUNT];
        sizes[region::TASKS] = tasks * size_of::<Task>() as u64;
        // The streaming builder's ring of words runs on past its end.
        let run_on = if stream > 0 { MAX_ARGS as u64 } else { 0 };
        sizes[region::PAYLOADS] = (words + run_on) * 8;
        sizes[region::EDGES] = chunks_for(edges) * size_of::<EdgeChunk>() as u64;
        sizes[region::READY] = ready_bytes(capacities.tasks);
        sizes[region::LOGS] = logs_bytes(capacities.log_entries);
        sizes[region::GRAPH] = image;
        sizes[region::TRACE] = capacities.trace.bytes();
        sizes[region::STREAM] = stream;
        Ok(Self::lay_out(sizes))
    }

    fn lay_out(sizes: [u64; region::COUNT]) -> Self {
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
mod traces;
#[cfg(not(any(loom, shuttle)))]
mod view;

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

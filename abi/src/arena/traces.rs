//! The trace rings of an arena.

use super::view::Arena;
use crate::runtime::{Region, region};
use crate::trace::{RING_HEAD_BYTES, TraceCursor, TraceHeader, TraceLane, TraceOwner, WhenFull};

/// Trace rings.
impl<'a> Arena<'a> {
    /// Empties every ring. Only while no agent writes.
    pub(crate) fn reset_traces(&self) {
        let at = self.regions()[region::TRACE];
        let Some(header) = self.trace_header(at) else { return };
        let instances = (0..header.instances).map(TraceOwner::Instance);
        for owner in instances.chain((0..header.cores).map(TraceOwner::Core)) {
            if let Some(lane) = self.trace_lane(at, owner, WhenFull::default()) {
                lane.reset();
            }
        }
    }

    /// What the trace region says of itself; `None`: there is none, it is not in the arena, or its size
    /// is not the one that it says.
    #[must_use]
    pub fn trace_header(&self, at: Region) -> Option<TraceHeader> {
        let part = self.window().part(at.offset, at.bytes).filter(|_| at.bytes > 0)?;
        let header: TraceHeader = part.read(0)?;
        (header.bytes() == at.bytes).then_some(header)
    }

    /// Writes the header of the trace region. `None`: the region does not hold it.
    #[must_use]
    pub fn set_trace_header(&self, at: Region, header: &TraceHeader) -> Option<()> {
        self.window().part(at.offset, at.bytes)?.write(0, header)
    }

    /// The trace ring of `owner`; `None`: there is none.
    #[must_use]
    pub fn trace_lane(
        &self,
        at: Region,
        owner: TraceOwner,
        when_full: WhenFull,
    ) -> Option<TraceLane<'a>> {
        let (start, events) = self.trace_header(at)?.ring(owner)?;
        let part = self.window().part(at.offset, at.bytes)?;
        let cursor = part.live(start)?;
        let reader = part.live(start + size_of::<TraceCursor>() as u64)?;
        let first = start + RING_HEAD_BYTES;
        let events = part.live_slice(first, usize::try_from(events).ok()?)?;
        TraceLane::new(owner, (cursor, reader), events, when_full)
    }
}

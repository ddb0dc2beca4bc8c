//! Where an instance's trace events go: a type, so that a machine that records none pays nothing.
//!
//! [`Platform::TRACES`](crate::Platform::TRACES) decides at compile time; a host that traces on demand
//! instantiates the firmware twice.

use pto_abi::trace::{TraceLane, TraceRecord};

/// Takes the events of one agent.
pub trait Tracer<'a>: Copy {
    /// Whether events are wanted at all.
    const TRACES: bool;

    /// The tracer over a ring. Without a ring it takes events and drops them.
    fn over(lane: Option<TraceLane<'a>>) -> Self;

    /// Takes an event.
    fn record(&self, record: TraceRecord);
}

/// No events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer<'_> for NoTrace {
    const TRACES: bool = false;

    fn over(_: Option<TraceLane<'_>>) -> Self {
        Self
    }

    #[inline]
    fn record(&self, _: TraceRecord) {}
}

impl<'a> Tracer<'a> for Option<TraceLane<'a>> {
    const TRACES: bool = true;

    fn over(lane: Self) -> Self {
        lane
    }

    #[inline]
    fn record(&self, record: TraceRecord) {
        if let Some(lane) = self {
            lane.record(record);
        }
    }
}

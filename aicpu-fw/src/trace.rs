//! Where an instance's trace events go: a type, so that a machine that records none pays nothing.
//!
//! [`Platform::TRACES`](crate::Platform::TRACES) decides at compile time; a host that traces on demand
//! instantiates the firmware twice. Rings are written by a `TraceWriter`.

use pto_abi::trace::TracePoint;

#[cfg(not(any(loom, shuttle)))]
use crate::trace_writer::TraceWriter;
/// No rings: they are in the arena, whose words are not those of a model checker.
#[cfg(any(loom, shuttle))]
pub type TraceWriter<'a> = core::marker::PhantomData<&'a ()>;

/// Takes the events of one agent.
pub trait Tracer<'a>: Copy {
    /// Whether events are wanted at all.
    const TRACES: bool;

    /// The tracer over a ring. Without a ring it takes events and drops them.
    fn over(writer: Option<TraceWriter<'a>>) -> Self;

    /// Takes an event. Where it has to wait for its reader, `pause` passes some time, and says what the clock shows then.
    fn record(&self, record: TracePoint, pause: impl FnMut() -> u64);
}

/// No events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer<'_> for NoTrace {
    const TRACES: bool = false;

    fn over(_: Option<TraceWriter<'_>>) -> Self {
        Self
    }

    #[inline]
    fn record(&self, _: TracePoint, _: impl FnMut() -> u64) {}
}

//! How a run is recorded, as a user asks for it.

use pto_abi::trace::WhenFull;

/// How a run is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Events that the ring of an AICPU instance holds; `None`: as many as the run's capacities can cause, or 16,384 where
    /// a full ring waits.
    pub instance_events: Option<u32>,
    /// Events that the ring of a core holds; `None`: eight times its share of the tasks, at least 4,096 or as
    /// many as the run's capacities can cause; or 16,384 where a full ring waits.
    pub core_events: Option<u32>,
    /// What a full ring does. With [`WhenFull::Wait`] a thread of the host reads the rings while the run lasts; a host that
    /// reads nothing for half the stall budget ends the run with `STALL_TRACE`. A stream with more tasks than its window
    /// holds is recorded as a whole so; otherwise its timeline has one end of it, and says how much (`recorded` in
    /// [`Trace::run`](crate::timeline::Trace::run)).
    pub when_full: WhenFull,
}

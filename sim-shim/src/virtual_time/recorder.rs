//! The trace rings of a recorded run, written by the machine: in virtual time it knows when something happens,
//! and the clock that the firmware looks at is the one of a step.
//!
//! The rings and their events are those of every hosting mode (`pto_abi::trace`). Recording takes no virtual time, so
//! that a recorded run has the trace hash of the same run unrecorded.

use pto_abi::trace::{TraceKind, TraceLane, TraceOwner, TraceRecord};
use pto_aicpu_fw::Launch;

/// The rings of one run; none, if it is not recorded.
pub(super) struct Recorder {
    instances: Vec<TraceLane<'static>>,
    cores: Vec<TraceLane<'static>>,
}

impl Recorder {
    pub(super) fn of(launch: &Launch<'static>) -> Self {
        if !launch.is_traced() {
            return Self { instances: Vec::new(), cores: Vec::new() };
        }
        let workers = u32::try_from(launch.workers.len()).unwrap_or(0);
        let instances = (0..launch.aicpu_instances).map(TraceOwner::Instance);
        let cores = (0..workers).map(TraceOwner::Core);
        // `Launch::accept` has found a ring for everybody.
        Self {
            instances: instances.map_while(|owner| launch.trace_lane(owner)).collect(),
            cores: cores.map_while(|owner| launch.trace_lane(owner)).collect(),
        }
    }

    /// An event of an AICPU instance.
    #[inline]
    pub(super) fn instance(&self, instance: usize, time_ns: u64, kind: TraceKind, of: (u32, u32)) {
        if let Some(lane) = self.instances.get(instance) {
            lane.record(TraceRecord { time_ns, kind, task: of.0, extra: of.1 });
        }
    }

    /// An event of a core.
    #[inline]
    pub(super) fn core(&self, worker: u32, time_ns: u64, kind: TraceKind, task: u32) {
        if let Some(lane) = self.cores.get(worker as usize) {
            lane.record(TraceRecord { time_ns, kind, task, extra: 0 });
        }
    }
}

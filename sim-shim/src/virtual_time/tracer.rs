//! The trace rings of a traced run, written by the machine: in virtual time it knows when something happens,
//! and the clock that the firmware looks at is the one of a step.
//!
//! The rings and their events are those of every hosting mode (`pto_abi::trace`). Tracing takes no virtual time, so
//! that a traced run has the trace hash of the same run untraced. Where a full ring waits for its reader, the machine
//! waits, in real time, and virtual time is still: as if the host read everything at once. A host that is
//! silent ([`Tracer::host_is_silent`]) has read what was written until then, and the first ring that is full after that is
//! `STALL_TRACE`.

use pto_abi::trace::{TraceKind, TraceOwner, TracePoint};
use pto_aicpu_fw::{Launch, TraceWriter};

use crate::clock;

/// How long the machine waits for its host, in real time, before it gives up: the host may be on a busy machine.
const TIMEOUT_NS: u64 = 30_000_000_000;

/// The rings of one run; none, if it is not traced.
pub(super) struct Tracer {
    rings: Vec<TraceWriter<'static>>,
    instances: usize,
    /// By ring: what the host had read before it fell silent.
    read_until: Option<Vec<u64>>,
    waits: bool,
}

impl Tracer {
    pub(super) fn of(launch: &Launch<'static>) -> Self {
        let workers = u32::try_from(launch.workers.len()).unwrap_or(0);
        let instances = (0..launch.aicpu_instances).map(TraceOwner::Instance);
        let owners = instances.chain((0..workers).map(TraceOwner::Core));
        // `Launch::accept` has found a ring for everybody, if the run is traced.
        let rings = owners.map_while(|owner| launch.trace_writer(owner));
        Self {
            rings: rings.map(|ring| ring.with_timeout(TIMEOUT_NS)).collect(),
            instances: launch.aicpu_instances as usize,
            read_until: None,
            waits: launch.trace_waits(),
        }
    }

    /// Whether the run is traced.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        !self.rings.is_empty()
    }

    /// An event of an AICPU instance.
    #[inline]
    pub(super) fn instance(&self, instance: usize, time_ns: u64, kind: TraceKind, of: (u32, u32)) {
        self.write(instance, TracePoint { time_ns, kind, task: of.0, extra: of.1 });
    }

    /// An event of a core: of a task, and of which kernel of a chain.
    #[inline]
    pub(super) fn core(&self, worker: u32, time_ns: u64, kind: TraceKind, of: (u32, u32)) {
        let ring = self.instances + worker as usize;
        self.write(ring, TracePoint { time_ns, kind, task: of.0, extra: of.1 });
    }

    #[inline]
    fn write(&self, ring: usize, point: TracePoint) {
        let Some(writer) = self.rings.get(ring) else { return };
        if self.waits && self.is_unread(ring, writer) {
            return writer.give_up(point);
        }
        writer.write(point, clock::pause);
    }

    /// Whether the ring is full of what a silent host has not read.
    fn is_unread(&self, ring: usize, writer: &TraceWriter<'static>) -> bool {
        let read_until = self.read_until.as_ref().and_then(|read| read.get(ring));
        let lane = writer.lane();
        read_until.is_some_and(|read| lane.written() - read >= lane.capacity())
    }

    /// From now on the host reads nothing.
    pub(super) fn host_is_silent(&mut self) {
        self.read_until = Some(self.rings.iter().map(|ring| ring.lane().written()).collect());
    }
}

//! The events of the timeline that a builder writes, with the time at which it last read the clock.

use pto_abi::trace::{TraceKind, TracePoint};

use crate::machine::Machine;

/// The machine around the builder, and when the clock was looked at last: where a task is added, and where it is published.
pub(crate) struct Events<'m, M> {
    machine: &'m mut M,
    time_ns: u64,
}

impl<'m, M: Machine> Events<'m, M> {
    pub(crate) const fn new(machine: &'m mut M) -> Self {
        Self { machine, time_ns: 0 }
    }

    /// The machine around the builder.
    #[inline]
    pub(crate) const fn machine(&mut self) -> &mut M {
        self.machine
    }

    /// The time of the last look, and the machine around the builder.
    pub(crate) const fn parts(&mut self) -> (u64, &mut M) {
        (self.time_ns, self.machine)
    }

    /// Looks at the clock, if events are wanted.
    #[inline]
    pub(crate) fn look_at_clock(&mut self) {
        if self.machine.traces() {
            self.time_ns = self.machine.now_ns();
        }
    }

    /// One event, if they are wanted, at the time of the last look.
    #[inline]
    pub(crate) fn trace(&mut self, kind: TraceKind, task: u32, extra: u32) {
        if self.machine.traces() {
            self.machine.trace(TracePoint { time_ns: self.time_ns, kind, task, extra });
        }
    }

    /// A task was added: now, or when the builder had published the one before.
    #[inline]
    pub(crate) fn added(&mut self, task: u32, func_id: u16, kind: u8) {
        if self.machine.traces() && (self.time_ns == 0 || self.machine.took_time()) {
            self.time_ns = self.machine.now_ns();
        }
        self.trace(TraceKind::ADDED, task, u32::from(func_id) | u32::from(kind) << 16);
    }

    /// A task has these kernels, each on a lane of its block shape.
    pub(crate) fn lanes(&mut self, task: u32, lanes: impl Iterator<Item = (u32, u32)>) {
        if self.machine.traces() {
            for (lane, func_id) in lanes {
                self.trace(TraceKind::LANE, task, func_id | lane << 16);
            }
        }
    }

    /// A task is published, now.
    #[inline]
    pub(crate) fn published(&mut self, task: u32) {
        self.look_at_clock();
        self.trace(TraceKind::PUBLISHED, task, 0);
    }
}

//! Faults that the machine injects: what a device in trouble does, once, at a point that is chosen beforehand.

/// One fault of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// What goes wrong.
    pub trouble: Trouble,
    /// The core concerned; for the builder's troubles of no meaning.
    pub worker: u32,
    /// Which task of that core, or which of the builder's tasks, counted from 0.
    pub at: u32,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The core never answers the greeting.
    NoAnswer,
    /// The core does not come back from the kernel.
    Hang,
    /// The core takes this many times as long for every kernel from there on.
    Slow(u32),
    /// The core reports the task, and reports it again when it has the next one.
    FinishTwice,
    /// The core reports an id that it was not given.
    WrongId,
    /// The core reports the id of the task before; nothing, if there is none.
    OldId,
    /// The core sees the doorbell this many nanoseconds late.
    DoorbellDelayed(u64),
    /// The core never sees the doorbell.
    DoorbellLost,
    /// The scheduler sees the core's report this many nanoseconds late.
    StatusDelayed(u64),
    /// The core does not write its results' lines back (needs the line model to be seen).
    NoFlush,
    /// The core does not invalidate its cache before the task (needs the line model to be seen).
    NoInvalidate,
    /// The line of a task that was just published is overwritten: its state is none.
    CorruptLine,
    /// The line of a task that was just published counts one producer too many.
    CorruptCount,
    /// The host dies when a task is published, and the driver takes the device back.
    HostDies,
    /// The host reads no trace rings any more from the publish of a task on.
    HostSilent,
    /// The builder program does not go on after a publish.
    BuilderStops,
    /// The builder program gives up with an error of its own.
    BuilderFails,
}

/// The error with which a builder gives up that was made to fail.
pub const INJECTED_ERROR: i32 = 4711;

impl Trouble {
    /// How much later something happens, in nanoseconds.
    #[must_use]
    pub const fn delay_ns(self) -> Option<u64> {
        match self {
            Self::DoorbellDelayed(ns) | Self::StatusDelayed(ns) => Some(ns),
            _ => None,
        }
    }

    /// Whether it concerns the builder, or a task of the builder's, rather than a core.
    #[must_use]
    pub const fn is_builders(self) -> bool {
        matches!(self, Self::BuilderStops | Self::BuilderFails) || self.is_at_publish()
    }

    /// Whether it happens when a task has just been published.
    pub(super) const fn is_at_publish(self) -> bool {
        matches!(self, Self::CorruptLine | Self::CorruptCount | Self::HostDies | Self::HostSilent)
    }
}

impl Injection {
    /// Whether `trouble` is to happen to this task of this core.
    #[inline]
    pub(super) fn hits(&self, worker: u32, at: u64) -> bool {
        self.worker == worker && u64::from(self.at) == at && !self.trouble.is_builders()
    }
}

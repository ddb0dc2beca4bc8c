//! The jobs that the service starts on executors, and their results.

use std::sync::Arc;
use std::time::Duration;

use super::command_object::RunCommand;
use super::copies::CopyCommand;
use super::error::FailureCause;
use super::guarded::HostFunction;
use super::ids::StreamId;
use crate::control::RunControl;
use crate::error::Error;

/// Work that takes time.
pub(super) enum Job {
    /// Run the resident firmware until it returns.
    Resident(RunControl),
    /// A run that has the cores alone.
    Run(StreamId, Box<RunCommand>, RunControl),
    /// A copy, and when it can begin in virtual time (ns).
    Copy(StreamId, CopyCommand, u64),
    /// A function of the host.
    Call(StreamId, HostFunction),
}

/// The result of a job.
pub(super) enum Report {
    /// The firmware has returned.
    FirmwareExited(FirmwareExit),
    /// The command of a stream is over.
    Over(StreamId, Result<(), FailureCause>),
    /// A copy of a stream is over, at this virtual time (ns).
    Copied(StreamId, Result<(), FailureCause>, u64),
}

/// How a launch ended.
#[derive(Clone, Debug)]
pub(super) enum LaunchOutcome {
    /// The launch has ended.
    Done,
    /// The launch has failed.
    Failed(FailureCause),
    /// The launch has not begun.
    NotBegun,
}

/// How the resident firmware has returned.
pub(super) struct FirmwareExit {
    /// How long it was up, or why it ended.
    pub(super) result: Result<Duration, Arc<Error>>,
    /// Launches that were in flight when a fault ended it, those of each stream in order.
    pub(super) interrupted: Vec<InterruptedLaunch>,
}

/// A launch that was in flight.
#[derive(Clone, Debug)]
pub(super) struct InterruptedLaunch {
    /// The slot of its stream on the board.
    pub(super) slot: usize,
    pub(super) outcome: LaunchOutcome,
}

/// What runs a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worker {
    /// The cores.
    Cores,
    /// The copy workers.
    Copies,
    /// The threads for functions of the host.
    Functions,
}

impl Job {
    /// The stream of its command; `None`: it is for several streams.
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Resident(_) => None,
            Self::Run(stream, ..) | Self::Copy(stream, ..) | Self::Call(stream, _) => Some(*stream),
        }
    }

    /// What runs it.
    pub(super) fn worker(&self) -> Worker {
        match self {
            Self::Resident(..) | Self::Run(..) => Worker::Cores,
            Self::Copy(..) => Worker::Copies,
            Self::Call(..) => Worker::Functions,
        }
    }
}

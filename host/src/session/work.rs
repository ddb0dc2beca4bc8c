//! The jobs that the service gives to others, and their results.

use std::sync::Arc;
use std::time::Duration;

use super::copies::Copy;
use super::error::Cause;
use super::guarded::HostFunction;
use super::ids::StreamId;
use super::kept::RunCommand;
use crate::control::RunControl;
use crate::error::Error;

/// Something that takes time.
pub(super) enum Job {
    /// The firmware comes up.
    Resident(RunControl),
    /// A run that has the cores for itself.
    Run(StreamId, Box<RunCommand>, RunControl),
    /// A copy, and when it can begin in virtual time.
    Copy(StreamId, Copy, u64),
    /// A function of the host.
    Call(StreamId, HostFunction),
}

/// What has become of a job.
pub(super) enum Report {
    /// The firmware has returned.
    Ended(Ended),
    /// The one command of a stream.
    Over(StreamId, Result<(), Cause>),
    /// The same of a copy in virtual time, and when it was over.
    Copied(StreamId, Result<(), Cause>, u64),
}

/// What has become of a launch.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It is over.
    Done,
    /// It has failed.
    Failed(Cause),
    /// It has not begun.
    NotBegun,
}

/// What has come of a firmware that has returned.
pub(super) struct Ended {
    /// How long it was up, or why it ended.
    pub(super) result: Result<Duration, Arc<Error>>,
    /// Launches that were on their way when a fault ended it, those of each stream in their order.
    pub(super) left: Vec<Left>,
}

/// A launch that was on its way.
#[derive(Clone, Debug)]
pub(super) struct Left {
    /// The place of its stream on the board.
    pub(super) stream: usize,
    pub(super) outcome: Outcome,
}

/// Who does a job.
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
    /// Whose command it is; `None`: that of several streams.
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Resident(_) => None,
            Self::Run(stream, ..) | Self::Copy(stream, ..) | Self::Call(stream, _) => Some(*stream),
        }
    }

    /// Who does it.
    pub(super) fn worker(&self) -> Worker {
        match self {
            Self::Resident(..) | Self::Run(..) => Worker::Cores,
            Self::Copy(..) => Worker::Copies,
            Self::Call(..) => Worker::Functions,
        }
    }
}

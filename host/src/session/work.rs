//! What the service hands out to be done, and what it gets back.

use super::capture::KernelCall;
use super::copies::Copy;
use super::error::Cause;
use super::ids::StreamId;
use super::kept::{HostFunction, RunCommand};
use crate::RunControl;

/// Something that takes time.
pub(super) enum Job {
    /// Launches of one or several streams, for the cores.
    Batch(Vec<Launch>, RunControl),
    /// A run that has the cores for itself.
    Run(StreamId, Box<RunCommand>, RunControl),
    /// A copy.
    Copy(StreamId, Copy),
    /// A function of the host.
    Call(StreamId, HostFunction),
}

/// A launch in a batch. Those of one stream follow each other in its order, and each waits for the one before.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) stream: StreamId,
    pub(super) call: KernelCall,
}

/// What has become of a job.
pub(super) enum Report {
    /// For each launch of the batch, in its order.
    Batch(Vec<(StreamId, Outcome)>),
    /// The one command of a stream.
    Over(StreamId, Result<(), Cause>),
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
    /// Who does it.
    pub(super) fn worker(&self) -> Worker {
        match self {
            Self::Batch(..) | Self::Run(..) => Worker::Cores,
            Self::Copy(..) => Worker::Copies,
            Self::Call(..) => Worker::Functions,
        }
    }
}

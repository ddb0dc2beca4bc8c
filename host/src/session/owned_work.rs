//! What a stream runs, owned: the caller goes on while it waits in the ring; and the ticket for its report.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::image::GraphImage;
use crate::options::Work;
use crate::report::RunReport;

/// A [`Work`] that owns what it consists of.
#[derive(Clone, Debug)]
pub enum OwnedWork {
    /// As [`Work::HostGraph`].
    HostGraph(Arc<GraphImage>),
    /// As [`Work::AicpuBuilder`].
    AicpuBuilder {
        /// The program's name.
        builder: String,
        /// The words that it reads; at most 128.
        orch_args: Vec<u64>,
    },
    /// As [`Work::Stream`].
    Stream {
        /// The program's name.
        builder: String,
        /// The words that it reads; at most 128.
        orch_args: Vec<u64>,
    },
}

impl OwnedWork {
    /// The work, borrowed.
    #[must_use]
    pub fn as_work(&self) -> Work<'_> {
        match self {
            Self::HostGraph(image) => Work::HostGraph(image),
            Self::AicpuBuilder { builder, orch_args } => Work::AicpuBuilder { builder, orch_args },
            Self::Stream { builder, orch_args } => Work::Stream { builder, orch_args },
        }
    }
}

impl From<GraphImage> for OwnedWork {
    fn from(image: GraphImage) -> Self {
        Self::HostGraph(Arc::new(image))
    }
}

impl From<Arc<GraphImage>> for OwnedWork {
    fn from(image: Arc<GraphImage>) -> Self {
        Self::HostGraph(image)
    }
}

/// For the report of a run that was submitted.
#[derive(Clone, Default)]
pub struct RunTicket(Arc<Mutex<Option<RunReport>>>);

impl RunTicket {
    /// Takes the report; `None`: the run is not over, has failed, or its report was taken.
    #[must_use]
    pub fn take_report(&self) -> Option<RunReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn set(&self, report: RunReport) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

impl fmt::Debug for RunTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "RunTicket {{ has a report: {} }}", kept.is_some())
    }
}

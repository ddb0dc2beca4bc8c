//! A stream that launches kernels, and what is captured of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pto_host::Session;
use pto_host::abi::{FuncId, GmAddr};
use pto_host::session::{Event, Recording, SessionError, Stream};

use crate::failure::{Failure, FailureKind};

/// A stream of kernels. It keeps the session open.
pub struct SharedKernelStream {
    stream: Stream,
    // Behind the stream: the session ends after it.
    _session: Arc<Session>,
}

/// An event of a session.
pub struct SharedEvent {
    event: Event,
    _session: Arc<Session>,
}

/// What was captured of one or several streams: a graph of launches, which is launched as one command.
pub struct SharedRecording {
    recording: Recording,
    _session: Arc<Session>,
}

impl SharedEvent {
    pub(super) fn new(session: &Arc<Session>) -> Result<Arc<Self>, Failure> {
        let event = session.event()?;
        Ok(Arc::new(Self { event, _session: Arc::clone(session) }))
    }
}

impl SharedKernelStream {
    pub(super) fn new(session: &Arc<Session>) -> Result<Arc<Self>, Failure> {
        let stream = session.stream()?;
        Ok(Arc::new(Self { stream, _session: Arc::clone(session) }))
    }

    /// Launches a kernel that the device has, in so many blocks.
    ///
    /// # Errors
    /// Those of [`Stream::launch_blocks`].
    pub fn launch(&self, func_id: u32, blocks: u32, args: &[u64]) -> Result<(), Failure> {
        let func_id = u16::try_from(func_id).map_err(|_| {
            let message = format!("there is no func id {func_id}; the largest one is {}", u16::MAX);
            Failure::new(FailureKind::INVALID_ARGUMENT, message)
        })?;
        self.stream.launch_blocks(FuncId(func_id), blocks, args)?;
        Ok(())
    }

    /// Records an event when everything before it is over.
    ///
    /// # Errors
    /// Those of [`Stream::record`].
    pub fn record(&self, event: &SharedEvent) -> Result<(), Failure> {
        self.stream.record(&event.event)?;
        Ok(())
    }

    /// Waits for the last record of an event; a stream that waits for one of a capture takes part in it.
    ///
    /// # Errors
    /// Those of [`Stream::wait`].
    pub fn wait(&self, event: &SharedEvent) -> Result<(), Failure> {
        self.stream.wait(&event.event)?;
        Ok(())
    }

    /// From here on, launches are written down and not done.
    ///
    /// # Errors
    /// Those of [`Stream::begin_capture`].
    pub fn begin_capture(&self) -> Result<(), Failure> {
        Ok(self.stream.begin_capture()?)
    }

    /// Ends the capture that was begun on this stream: what was launched meanwhile.
    ///
    /// # Errors
    /// Those of [`Stream::end_capture`].
    pub fn end_capture(&self) -> Result<Arc<SharedRecording>, Failure> {
        let recording = self.stream.end_capture()?;
        Ok(Arc::new(SharedRecording { recording, _session: Arc::clone(&self._session) }))
    }

    /// Launches what was captured, as one command, with other addresses in the place of some arguments.
    ///
    /// # Errors
    /// `OTHER_SESSION`; those of [`Stream::launch_recording`].
    pub fn launch_recording(
        &self,
        recording: &SharedRecording,
        bindings: &[(u64, u64)],
    ) -> Result<(), Failure> {
        if !Arc::ptr_eq(&recording._session, &self._session) {
            let what = "the recording".to_owned();
            return Err(SessionError::OtherSession { what }.into());
        }
        let bindings: Vec<_> =
            bindings.iter().map(|(from, to)| (GmAddr(*from), GmAddr(*to))).collect();
        self.stream.launch_recording(&recording.recording, &bindings)?;
        Ok(())
    }

    /// Waits until everything is over, at most for so long.
    ///
    /// # Errors
    /// Those of [`Stream::synchronize`] and [`Stream::synchronize_within`].
    pub fn synchronize(&self, limit: Option<Duration>) -> Result<(), Failure> {
        match limit {
            None => Ok(self.stream.synchronize()?),
            Some(limit) => Ok(self.stream.synchronize_within(limit)?),
        }
    }
}

impl fmt::Debug for SharedKernelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.stream.id())
    }
}

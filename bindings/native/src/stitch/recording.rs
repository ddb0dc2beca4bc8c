//! Recordings of streams with the tensors that their commands name.

use std::sync::Arc;

use pto_host::Session;
use pto_host::abi::GmAddr;
use pto_host::session::{Recording, SessionError, Stream};

use super::tensor::SharedTensor;
use crate::failure::Failure;

/// The commands that were captured of one or several streams. It holds the tensors that its commands name, and owns the session.
pub struct TensorRecording {
    recording: Recording,
    tensors: Vec<Arc<SharedTensor>>,
    session: Session,
}

impl TensorRecording {
    /// Ends the capture that was begun on this stream.
    ///
    /// # Errors
    /// Those of [`Stream::end_capture`].
    pub fn end(stream: &Stream) -> Result<Self, Failure> {
        let holds = stream.holds();
        let recording = stream.end_capture()?;
        let tensors = holds.into_iter().filter_map(|one| one.downcast().ok()).collect();
        Ok(Self { recording, tensors, session: stream.session().clone() })
    }

    /// Launches it on a stream; `bindings` replaces addresses by others.
    ///
    /// # Errors
    /// `OTHER_SESSION`; `TENSOR_MOVED`: a tensor that it names was given to a call since, and no binding replaces it; those of
    /// [`Stream::launch_recording`].
    pub fn launch(&self, stream: &Stream, bindings: &[(GmAddr, GmAddr)]) -> Result<(), Failure> {
        if !self.session.is_same(stream.session()) {
            return Err(SessionError::OtherSession { what: "the recording".to_owned() }.into());
        }
        for tensor in &self.tensors {
            let address = tensor.first_byte();
            let is_bound = bindings.iter().any(|(from, _)| *from == address);
            if !is_bound && self.recording.has_argument(address) {
                tensor.address_for(stream)?;
            }
        }
        stream.launch_recording(&self.recording, bindings)?;
        Ok(())
    }
}

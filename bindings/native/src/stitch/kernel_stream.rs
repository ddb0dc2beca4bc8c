//! A stream that launches kernels and copies, and what is captured of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pto_host::Session;
use pto_host::abi::{FuncId, GmAddr};
use pto_host::session::{
    Event, HostBuffer, Notify, Recording, Reduction, SessionError, Stream, ValueTest,
};
use pto_host::workloads::tile::DType;

use super::tensor::SharedTensor;
use crate::failure::{Failure, FailureKind};

/// A stream of kernels. It keeps the session open. A capture that was begun on it and not ended goes with it.
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

/// A flag on the device of a session.
pub struct SharedNotify {
    notify: Notify,
    session: Arc<Session>,
}

/// What was captured of one or several streams: a graph of launches and other commands, which is launched again and again.
pub struct SharedRecording {
    recording: Recording,
    /// The tensors that its commands name.
    tensors: Vec<Arc<SharedTensor>>,
    _session: Arc<Session>,
}

impl SharedEvent {
    pub(super) fn new(session: &Arc<Session>) -> Result<Arc<Self>, Failure> {
        let event = session.event()?;
        Ok(Arc::new(Self { event, _session: Arc::clone(session) }))
    }

    /// Whether its last record is complete; an event that was never recorded is.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.event.is_complete()
    }

    /// When its last record became complete, since the session was opened; `None`: it is not, or its record was skipped.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        self.event.time()
    }
}

impl SharedNotify {
    pub(super) fn new(session: &Arc<Session>) -> Result<Arc<Self>, Failure> {
        let notify = session.notify()?;
        Ok(Arc::new(Self { notify, session: Arc::clone(session) }))
    }

    /// Where its word is: 1 means raised.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.notify.address().0
    }
}

impl SharedKernelStream {
    pub(super) fn new(session: &Arc<Session>) -> Result<Arc<Self>, Failure> {
        let stream = session.stream()?;
        Ok(Arc::new(Self { stream, _session: Arc::clone(session) }))
    }

    /// The address of a tensor, for a command of this stream. While the stream is captured, the recording will hold the tensor.
    ///
    /// # Errors
    /// `OTHER_SESSION`, `TENSOR_MOVED`.
    pub fn address_of(&self, tensor: &Arc<SharedTensor>) -> Result<u64, Failure> {
        tensor.check_session(&self._session)?;
        let address = tensor.address()?;
        self.stream.hold(tensor);
        Ok(address)
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

    /// Copies bytes of the host to the device. They are read when the copy's turn comes: of a recording, in each launch.
    ///
    /// # Errors
    /// Those of [`Stream::copy_to_device`].
    pub fn copy_to_device(&self, to: u64, from: HostBuffer) -> Result<(), Failure> {
        self.stream.copy_to_device(GmAddr(to), from)?;
        Ok(())
    }

    /// Copies bytes of the device to the host.
    ///
    /// # Errors
    /// Those of [`Stream::copy_from_device`].
    pub fn copy_from_device(&self, from: u64, to: &HostBuffer) -> Result<(), Failure> {
        self.stream.copy_from_device(GmAddr(from), to)?;
        Ok(())
    }

    /// Copies bytes on the device.
    ///
    /// # Errors
    /// Those of [`Stream::copy_on_device`].
    pub fn copy_on_device(&self, from: u64, to: u64, bytes: u64) -> Result<(), Failure> {
        self.stream.copy_on_device(GmAddr(from), GmAddr(to), bytes)?;
        Ok(())
    }

    /// Fills bytes of the device.
    ///
    /// # Errors
    /// Those of [`Stream::fill`].
    pub fn fill(&self, to: u64, byte: u8, bytes: u64) -> Result<(), Failure> {
        self.stream.fill(GmAddr(to), byte, bytes)?;
        Ok(())
    }

    /// Reduces bytes of the device into others: `how` is `sum`, `max` or `min`, `dtype` the name of an element type.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: there is no such reduction or element type; those of [`Stream::reduce`].
    pub fn reduce(
        &self,
        (how, dtype): (&str, &str),
        (from, to): (u64, u64),
        bytes: u64,
    ) -> Result<(), Failure> {
        let invalid = |message| Failure::new(FailureKind::INVALID_ARGUMENT, message);
        let reduction = match how {
            "sum" => Reduction::Sum,
            "max" => Reduction::Max,
            "min" => Reduction::Min,
            _ => return Err(invalid(format!("there is no reduction {how:?}: sum, max or min"))),
        };
        let dtype = DType::from_name(dtype)
            .ok_or_else(|| invalid(format!("there is no element type {dtype:?}")))?;
        self.stream.reduce((reduction, dtype), GmAddr(from), GmAddr(to), bytes)?;
        Ok(())
    }

    /// Calls a function on a thread of the session; the stream waits for its return. Each launch of a recording calls it.
    ///
    /// # Errors
    /// Those of [`Stream::call_each`].
    pub fn call(&self, function: impl Fn() + Send + Sync + 'static) -> Result<(), Failure> {
        self.stream.call_each(function)?;
        Ok(())
    }

    /// Writes a word of the device.
    ///
    /// # Errors
    /// Those of [`Stream::write_value`].
    pub fn write_value(&self, at: u64, value: u64) -> Result<(), Failure> {
        self.stream.write_value(GmAddr(at), value)?;
        Ok(())
    }

    /// Waits until a word of the device is as the test says: `equal`, `at least` (with signs), `and` (a bit in common) or `nor` (a bit set in neither).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: there is no such test; those of [`Stream::wait_value`].
    pub fn wait_value(&self, at: u64, test: &str, value: u64) -> Result<(), Failure> {
        let found = ValueTest::ALL.iter().find(|known| known.name() == test);
        let test = found.ok_or_else(|| {
            let known: Vec<_> = ValueTest::ALL.iter().map(|known| known.name()).collect();
            let message = format!("there is no test {test:?} of a value: {}", known.join(", "));
            Failure::new(FailureKind::INVALID_ARGUMENT, message)
        })?;
        self.stream.wait_value(GmAddr(at), *test, value)?;
        Ok(())
    }

    /// Raises a flag.
    ///
    /// # Errors
    /// `OTHER_SESSION`; those of [`Stream::notify`].
    pub fn notify(&self, notify: &SharedNotify) -> Result<(), Failure> {
        self.stream.notify(self.own(notify)?)?;
        Ok(())
    }

    /// Waits for a flag, and lowers it.
    ///
    /// # Errors
    /// `OTHER_SESSION`; those of [`Stream::wait_notify`].
    pub fn wait_notify(&self, notify: &SharedNotify) -> Result<(), Failure> {
        self.stream.wait_notify(self.own(notify)?)?;
        Ok(())
    }

    fn own<'n>(&self, notify: &'n SharedNotify) -> Result<&'n Notify, Failure> {
        if Arc::ptr_eq(&notify.session, &self._session) {
            return Ok(&notify.notify);
        }
        Err(SessionError::OtherSession { what: "the flag".to_owned() }.into())
    }

    /// Resets an event when everything before it is over: it is not complete until it is recorded again.
    ///
    /// # Errors
    /// Those of [`Stream::reset`].
    pub fn reset(&self, event: &SharedEvent) -> Result<(), Failure> {
        self.stream.reset(&event.event)?;
        Ok(())
    }

    /// Whether everything is over that was asked.
    ///
    /// # Errors
    /// Those of [`Stream::query`].
    pub fn query(&self) -> Result<bool, Failure> {
        Ok(self.stream.query()?)
    }

    /// Drops the commands that have not begun.
    pub fn abort(&self) {
        self.stream.abort();
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

    /// From here on, what the stream is asked is written down and not done.
    ///
    /// # Errors
    /// Those of [`Stream::begin_capture`].
    pub fn begin_capture(&self) -> Result<(), Failure> {
        Ok(self.stream.begin_capture()?)
    }

    /// Ends the capture that was begun on this stream: what was asked meanwhile.
    ///
    /// # Errors
    /// Those of [`Stream::end_capture`].
    pub fn end_capture(&self) -> Result<Arc<SharedRecording>, Failure> {
        let holds = self.stream.holds();
        let recording = self.stream.end_capture()?;
        let tensors = holds.into_iter().filter_map(|one| one.downcast().ok()).collect();
        Ok(Arc::new(SharedRecording { recording, tensors, _session: Arc::clone(&self._session) }))
    }

    /// Launches what was captured, with other addresses in the place of some.
    ///
    /// # Errors
    /// `OTHER_SESSION`; `TENSOR_MOVED`: a tensor that the recording names was given to a call since, and nothing stands in its place; those of
    /// [`Stream::launch_recording`].
    pub fn launch_recording(
        &self,
        recording: &SharedRecording,
        bindings: &[(u64, u64)],
    ) -> Result<(), Failure> {
        if !Arc::ptr_eq(&recording._session, &self._session) {
            let what = "the recording".to_owned();
            return Err(SessionError::OtherSession { what }.into());
        }
        for tensor in &recording.tensors {
            let address = tensor.first_byte();
            let is_bound = bindings.iter().any(|(from, _)| *from == address);
            if !is_bound && recording.recording.has_argument(GmAddr(address)) {
                tensor.address()?;
                self.stream.hold(tensor);
            }
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

    /// As [`synchronize`](Self::synchronize); now and then `goes_on` is asked, and where it says no, the wait ends.
    ///
    /// # Errors
    /// Those of [`Stream::synchronize_while`].
    pub fn synchronize_while(
        &self,
        limit: Option<Duration>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        Ok(self.stream.synchronize_while(limit, goes_on)?)
    }
}

impl Drop for SharedKernelStream {
    fn drop(&mut self) {
        if self.stream.is_captured() {
            // Refused where the capture was begun on another stream, with which it goes.
            let _ = self.stream.end_capture();
        }
    }
}

impl fmt::Debug for SharedKernelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.stream.id())
    }
}

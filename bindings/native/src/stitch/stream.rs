//! A stream that runs programs on tensors that others hold.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pto_host::Session;
use pto_host::stitch::{HostTensor, Inputs, LoadedProgram, ProgramStream, Tensor};
use pto_host::workloads::program::Layout;
use pto_host::workloads::tile::DType;

use super::request::Request;
use super::tensor::SharedTensor;
use crate::failure::{Failure, FailureKind};

/// A stream of a session. It keeps the session open.
pub struct SharedStream {
    stream: ProgramStream<'static>,
    session: Weak<Session>,
}

impl SharedStream {
    pub(super) fn new(stream: ProgramStream<'static>, session: &Arc<Session>) -> Arc<Self> {
        Arc::new(Self { stream, session: Arc::downgrade(session) })
    }

    fn tensor(&self, tensor: Tensor) -> Arc<SharedTensor> {
        SharedTensor::new(tensor, &self.session)
    }

    /// Runs a program, and returns at once: the outputs by name, which may be given to the next run, and the tensors that were given and
    /// that the program updates.
    ///
    /// # Errors
    /// Those of [`ProgramStream::run`]; `TENSOR_MOVED`. Then nothing ran, and nothing was taken.
    pub fn run(
        &self,
        program: &LoadedProgram,
        request: &Request,
    ) -> Result<Vec<(String, Arc<SharedTensor>)>, Failure> {
        let described = program.program();
        let mut uses = request.locked(described)?;
        let mut inputs = Inputs::new();
        for one in &mut uses {
            inputs = one.lend(described, inputs)?;
        }
        let inputs = request.numbered(described, inputs)?;
        let mut outputs = self.stream.run(program, inputs)?;
        drop(uses);
        let names: Vec<String> = outputs.names().into_iter().map(str::to_owned).collect();
        let mut results = Vec::new();
        for name in names {
            let tensor = outputs.take(&name)?;
            results.push((name, self.tensor(tensor)));
        }
        let call = format!("program {}", described.name());
        for (name, tensor, is_updated) in request.given(described) {
            // The same tensor may be given under two names.
            let taken = tensor.write().take(name, &call);
            if let (Ok(taken), true) = (taken, is_updated) {
                results.push((name.to_owned(), self.tensor(taken)));
            }
        }
        Ok(results)
    }

    /// Copies elements of the host to the device.
    ///
    /// # Errors
    /// Those of [`HostTensor::new`] and [`ProgramStream::to_device`]; the text is no layout.
    pub fn to_device(
        &self,
        (dtype, shape): (DType, &[u64]),
        elements: Vec<u8>,
        layout: &str,
    ) -> Result<Arc<SharedTensor>, Failure> {
        let layout = parsed(layout, dtype, shape)?;
        let tensor = HostTensor::new(dtype, shape, elements)?;
        Ok(self.tensor(self.stream.to_device(&tensor, &layout)?))
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// Those of [`ProgramStream::zeros`]; the text is no layout.
    pub fn zeros(
        &self,
        (dtype, shape): (DType, &[u64]),
        layout: &str,
    ) -> Result<Arc<SharedTensor>, Failure> {
        let layout = parsed(layout, dtype, shape)?;
        Ok(self.tensor(self.stream.zeros(dtype, shape, &layout)?))
    }

    /// Waits for a tensor and copies its elements to the host, row-major.
    ///
    /// # Errors
    /// Those of [`ProgramStream::to_host`]; `TENSOR_MOVED`.
    pub fn to_host(&self, tensor: &SharedTensor) -> Result<HostTensor, Failure> {
        Ok(self.stream.to_host(tensor.read().tensor("the tensor")?)?)
    }

    /// The tensor in a layout: the same one where it has the layout, otherwise a new one beside it.
    ///
    /// # Errors
    /// Those of [`ProgramStream::converted`]; `TENSOR_MOVED`; the text is no layout.
    pub fn to_layout(
        &self,
        tensor: &Arc<SharedTensor>,
        layout: &str,
    ) -> Result<Arc<SharedTensor>, Failure> {
        let state = tensor.read();
        let found = state.tensor("the tensor")?;
        let layout = parsed(layout, found.dtype(), found.shape())?;
        if found.has_layout(&layout) {
            return Ok(Arc::clone(tensor));
        }
        Ok(self.tensor(self.stream.converted(found, &layout)?))
    }

    /// A new tensor of another element type.
    ///
    /// # Errors
    /// Those of [`ProgramStream::to_dtype`]; `TENSOR_MOVED`.
    pub fn to_dtype(
        &self,
        tensor: &SharedTensor,
        dtype: DType,
    ) -> Result<Arc<SharedTensor>, Failure> {
        let converted = self.stream.to_dtype(tensor.read().tensor("the tensor")?, dtype)?;
        Ok(self.tensor(converted))
    }

    /// Takes a tensor over from another stream: this stream waits for what the other one was asked so far.
    ///
    /// # Errors
    /// Those of [`ProgramStream::take_over`]; `TENSOR_MOVED`.
    pub fn take_over(
        &self,
        tensor: &SharedTensor,
        from: &Self,
    ) -> Result<Arc<SharedTensor>, Failure> {
        let mut state = tensor.write();
        let owner = state.tensor("the tensor")?.stream();
        if owner != from.stream.id() {
            let message = format!("the tensor belongs to {owner}, and not to {}", from.stream.id());
            return Err(Failure::new(FailureKind::OTHER_STREAM, message));
        }
        let taken = state.take("the tensor", &format!("{}", self.stream.id()))?;
        Ok(self.tensor(self.stream.take_over(taken, &from.stream)?))
    }

    /// Submits the runs that wait for others to share their launch.
    ///
    /// # Errors
    /// Those of [`ProgramStream::flush`].
    pub fn flush(&self) -> Result<(), Failure> {
        Ok(self.stream.flush()?)
    }

    /// Waits until everything that was asked is over, at most for `limit`.
    ///
    /// # Errors
    /// Those of [`ProgramStream::synchronize_within`].
    pub fn synchronize(&self, limit: Option<Duration>) -> Result<(), Failure> {
        match limit {
            None => Ok(self.stream.synchronize()?),
            Some(limit) => Ok(self.stream.synchronize_within(limit)?),
        }
    }

    /// As [`synchronize`](Self::synchronize); now and then `goes_on` is asked, and where it says no, the wait ends.
    ///
    /// # Errors
    /// Those of [`ProgramStream::synchronize_while`].
    pub fn synchronize_while(
        &self,
        limit: Option<Duration>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        Ok(self.stream.synchronize_while(limit, goes_on)?)
    }

    /// Drops the runs that have not begun.
    pub fn abort(&self) {
        self.stream.abort();
    }
}

fn parsed(layout: &str, dtype: DType, shape: &[u64]) -> Result<Layout, Failure> {
    Layout::parse(layout, dtype, shape)
        .map_err(|what| Failure::new(FailureKind::INVALID_ARGUMENT, what))
}

impl fmt::Debug for SharedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.stream.id())
    }
}

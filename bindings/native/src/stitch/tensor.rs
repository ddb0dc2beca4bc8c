//! A tensor that several owners name. When the last one lets it go, its memory goes to the next tensor of its stream.
//!
//! ```text
//! Here --a run or a take-over takes it--> Gone(which call), for good
//! ```

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pto_host::abi::GmAddr;
use pto_host::session::{SessionError, Stream};
use pto_host::stitch::{HostTensor, ProgramStream, Tensor};
use pto_host::workloads::program::TensorLayout;
use pto_host::workloads::tile::DType;

use crate::failure::{Failure, FailureKind};

/// A tensor on the device that may have several owners, and that calls may take.
#[derive(Debug)]
pub struct SharedTensor {
    state: RwLock<State>,
    address: GmAddr,
}

/// Whether the tensor is there.
#[derive(Debug)]
pub(super) enum State {
    Here(Tensor),
    /// The call that took it.
    Gone(String),
}

impl State {
    /// The tensor.
    pub(super) fn tensor(&self, what: &str) -> Result<&Tensor, Failure> {
        match self {
            Self::Here(tensor) => Ok(tensor),
            Self::Gone(call) => Err(gone(what, call)),
        }
    }

    /// The tensor, to be changed.
    pub(super) fn tensor_mut(&mut self, what: &str) -> Result<&mut Tensor, Failure> {
        match self {
            Self::Here(tensor) => Ok(tensor),
            Self::Gone(call) => Err(gone(what, call)),
        }
    }

    /// Takes the tensor. Later uses get an error that names `call`.
    pub(super) fn take(&mut self, what: &str, call: &str) -> Result<Tensor, Failure> {
        match std::mem::replace(self, Self::Gone(call.to_owned())) {
            Self::Here(tensor) => Ok(tensor),
            Self::Gone(earlier) => {
                let failure = gone(what, &earlier);
                *self = Self::Gone(earlier);
                Err(failure)
            }
        }
    }
}

fn gone(what: &str, call: &str) -> Failure {
    let message = format!("{what} is not there any more: it was given to {call}");
    Failure::new(FailureKind::TENSOR_MOVED, message)
}

impl SharedTensor {
    pub(super) fn new(tensor: Tensor) -> Arc<Self> {
        let address = tensor.address();
        Arc::new(Self { state: RwLock::new(State::Here(tensor)), address })
    }

    /// Where its first byte is, or was when a call took the tensor.
    #[must_use]
    pub const fn first_byte(&self) -> GmAddr {
        self.address
    }

    /// Where its first byte is, for a command of a stream. While the stream is captured, the recording will hold the tensor.
    ///
    /// # Errors
    /// `OTHER_SESSION`, `TENSOR_MOVED`.
    pub fn address_for(self: &Arc<Self>, stream: &Stream) -> Result<GmAddr, Failure> {
        if !self.look(|tensor| tensor.is_of(stream.session()))? {
            return Err(SessionError::OtherSession { what: "the tensor".to_owned() }.into());
        }
        stream.hold(self);
        Ok(self.address)
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the tensor.
    ///
    /// # Errors
    /// `TENSOR_MOVED`.
    pub fn look<R>(&self, look: impl FnOnce(&Tensor) -> R) -> Result<R, Failure> {
        Ok(look(self.read().tensor(WHAT)?))
    }

    /// Whether the tensor is there: no call has taken it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        matches!(&*self.read(), State::Here(_))
    }

    /// Copies elements of the host to the device.
    ///
    /// # Errors
    /// Those of [`HostTensor::new`] and [`ProgramStream::to_device`]; the text is no layout.
    pub fn to_device(
        stream: &ProgramStream,
        (dtype, shape): (DType, &[u64]),
        elements: Vec<u8>,
        layout: &str,
    ) -> Result<Arc<Self>, Failure> {
        let layout = parsed(layout, dtype, shape)?;
        let tensor = HostTensor::new(dtype, shape, elements)?;
        Ok(Self::new(stream.to_device(&tensor, &layout)?))
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// Those of [`ProgramStream::zeros`]; the text is no layout.
    pub fn zeros(
        stream: &ProgramStream,
        (dtype, shape): (DType, &[u64]),
        layout: &str,
    ) -> Result<Arc<Self>, Failure> {
        let layout = parsed(layout, dtype, shape)?;
        Ok(Self::new(stream.zeros(dtype, shape, &layout)?))
    }

    /// Waits for the tensor and copies its elements to the host, row-major.
    ///
    /// # Errors
    /// Those of [`ProgramStream::to_host`]; `TENSOR_MOVED`.
    pub fn to_host(&self, stream: &ProgramStream) -> Result<HostTensor, Failure> {
        Ok(stream.to_host(self.read().tensor(WHAT)?)?)
    }

    /// The tensor in a layout: the same one where it has the layout, otherwise a new one.
    ///
    /// # Errors
    /// Those of [`ProgramStream::converted`]; `TENSOR_MOVED`; the text is no layout.
    pub fn to_layout(
        self: &Arc<Self>,
        stream: &ProgramStream,
        layout: &str,
    ) -> Result<Arc<Self>, Failure> {
        let state = self.read();
        let found = state.tensor(WHAT)?;
        let layout = parsed(layout, found.dtype(), found.shape())?;
        if found.has_layout(&layout) {
            return Ok(Arc::clone(self));
        }
        Ok(Self::new(stream.converted(found, &layout)?))
    }

    /// A new tensor of another element type.
    ///
    /// # Errors
    /// Those of [`ProgramStream::to_dtype`]; `TENSOR_MOVED`.
    pub fn to_dtype(&self, stream: &ProgramStream, dtype: DType) -> Result<Arc<Self>, Failure> {
        Ok(Self::new(stream.to_dtype(self.read().tensor(WHAT)?, dtype)?))
    }

    /// Moves the tensor from one stream to another, which waits for what the first one was asked so far.
    ///
    /// # Errors
    /// Those of [`ProgramStream::take_over`]; `TENSOR_MOVED`.
    pub fn hand_over(
        &self,
        from: &ProgramStream,
        to: &ProgramStream,
    ) -> Result<Arc<Self>, Failure> {
        let mut state = self.write();
        let owner = state.tensor(WHAT)?.stream();
        if owner != from.id() {
            let message = format!("the tensor belongs to {owner}, and not to {}", from.id());
            return Err(Failure::new(FailureKind::OTHER_STREAM, message));
        }
        let taken = state.take(WHAT, &to.id().to_string())?;
        Ok(Self::new(to.take_over(taken, from)?))
    }
}

/// The name of the tensor in errors of calls with one tensor.
pub(super) const WHAT: &str = "the tensor";

fn parsed(layout: &str, dtype: DType, shape: &[u64]) -> Result<TensorLayout, Failure> {
    TensorLayout::parse(layout, dtype, shape)
        .map_err(|what| Failure::new(FailureKind::INVALID_ARGUMENT, what))
}

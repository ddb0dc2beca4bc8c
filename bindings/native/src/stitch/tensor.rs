//! A tensor that several owners name. When the last one lets it go, its memory goes to the next tensor of its stream.
//!
//! ```text
//! Here --a run or a take-over takes it--> Gone(which call), for good
//! ```

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use pto_host::Session;
use pto_host::session::SessionError;
use pto_host::stitch::Tensor;
use pto_host::workloads::tile::DType;

use crate::failure::{Failure, FailureKind};

/// A tensor on the device.
#[derive(Debug)]
pub struct SharedTensor {
    state: RwLock<State>,
    address: u64,
    session: Weak<Session>,
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

    /// Takes the tensor away; who asks for it later is told which call has it.
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
    pub(super) fn new(tensor: Tensor, session: &Weak<Session>) -> Arc<Self> {
        let (address, session) = (tensor.address().0, Weak::clone(session));
        Arc::new(Self { state: RwLock::new(State::Here(tensor)), address, session })
    }

    /// Where its first byte is, or was when a call took the tensor.
    #[must_use]
    pub const fn first_byte(&self) -> u64 {
        self.address
    }

    /// That it is one of this session.
    ///
    /// # Errors
    /// `OTHER_SESSION`.
    pub(super) fn check_session(&self, session: &Arc<Session>) -> Result<(), Failure> {
        if self.session.as_ptr() == Arc::as_ptr(session) {
            return Ok(());
        }
        Err(SessionError::OtherSession { what: "the tensor".to_owned() }.into())
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<R>(&self, look: impl FnOnce(&Tensor) -> R) -> Result<R, Failure> {
        Ok(look(self.read().tensor("the tensor")?))
    }

    /// The element type.
    ///
    /// # Errors
    /// `TENSOR_MOVED`.
    pub fn dtype(&self) -> Result<DType, Failure> {
        self.look(Tensor::dtype)
    }

    /// Where its first byte is.
    ///
    /// # Errors
    /// `TENSOR_MOVED`.
    pub fn address(&self) -> Result<u64, Failure> {
        self.look(|tensor| tensor.address().0)
    }

    /// The extents.
    ///
    /// # Errors
    /// `TENSOR_MOVED`.
    pub fn shape(&self) -> Result<Vec<u64>, Failure> {
        self.look(|tensor| tensor.shape().to_vec())
    }

    /// The layout, as a text.
    ///
    /// # Errors
    /// `TENSOR_MOVED`.
    pub fn layout(&self) -> Result<String, Failure> {
        self.look(|tensor| tensor.layout().to_string())
    }

    /// Bytes that it takes on the device.
    ///
    /// # Errors
    /// `TENSOR_MOVED`.
    pub fn bytes(&self) -> Result<u64, Failure> {
        self.look(Tensor::bytes)
    }

    /// Whether it should be on the chip, and found no room there.
    ///
    /// # Errors
    /// `TENSOR_MOVED`.
    pub fn is_bounced(&self) -> Result<bool, Failure> {
        self.look(Tensor::is_bounced)
    }

    /// Whether the tensor is there: no call has taken it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        matches!(&*self.read(), State::Here(_))
    }
}

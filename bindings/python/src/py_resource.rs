//! `PyResource`: what an object of Python holds of a device. Its drop may wait for a thread that calls Python, so it is dropped without the GIL; and
//! a child of `fork` has none of those threads, so there it cannot be used, and it is not dropped at all.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pto_host::OfProcess;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::failure::raised_from;

/// A value that is dropped while other threads have the GIL.
pub(crate) struct Unlocked<T: Send>(ManuallyDrop<T>);

impl<T: Send> Unlocked<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    fn into_inner(self) -> T {
        let mut whole = ManuallyDrop::new(self);
        // SAFETY: the whole is not dropped, so nothing uses the value after this.
        unsafe { ManuallyDrop::take(&mut whole.0) }
    }
}

impl<T: Send> Deref for Unlocked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> DerefMut for Unlocked<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Send> Drop for Unlocked<T> {
    fn drop(&mut self) {
        // SAFETY: this is the only drop, and nothing uses the value after it.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        // Where the interpreter has ended, the value goes with the function that is not called.
        Python::try_attach(|py| py.detach(|| drop(value)));
    }
}

/// What an object of Python holds, in the process that opened it.
pub(crate) struct PyResource<T: Send>(Unlocked<OfProcess<T>>);

impl<T: Send> PyResource<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Unlocked::new(OfProcess::new(value)))
    }

    /// The value.
    pub(crate) fn get(&self) -> PyResult<&T> {
        self.0.get().map_err(raised_from)
    }

    /// The value, to be changed.
    pub(crate) fn get_mut(&mut self) -> PyResult<&mut T> {
        self.0.get_mut().map_err(raised_from)
    }

    /// The value alone.
    pub(crate) fn into_inner(self) -> PyResult<T> {
        self.0.into_inner().into_inner().map_err(raised_from)
    }
}

impl<T: Clone + Send> PyResource<T> {
    /// Another owner of the same value, for a call.
    pub(crate) fn share(&self) -> PyResult<Unlocked<T>> {
        Ok(Unlocked::new(self.get()?.clone()))
    }
}

/// Locks what objects of Python share, on a thread that has the GIL. The thread that holds the lock may wait for the GIL, as an exception does that is made under
/// the lock: so this thread gives the GIL up while it waits.
pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    Python::attach(|py| of.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner)
}

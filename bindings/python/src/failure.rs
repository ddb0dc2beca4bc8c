//! Failures become exceptions: `pto_runtime.PtoError` with code, name and remedy.

use pto_native::{Failure, FailureKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The exception of a failure.
pub(crate) fn raised(failure: &Failure) -> PyErr {
    Python::attach(|py| {
        let make = || {
            let class = py.import("pto_runtime.errors")?.getattr("PtoError")?;
            class.call1((failure.code, failure.name, &failure.message, &failure.remedy))
        };
        match make() {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    })
}

/// The exception of a failure that may be one of the host's.
pub(crate) fn raised_from(failure: impl Into<Failure>) -> PyErr {
    raised(&failure.into())
}

/// An argument that cannot be.
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    raised(&Failure::new(FailureKind::INVALID_ARGUMENT, message))
}

/// A name that is none of the known ones.
pub(crate) fn unknown(what: &str, name: &str, known: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what} {name:?}: use {known}"))
}

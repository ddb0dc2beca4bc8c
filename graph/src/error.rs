//! Why a program could not be built.

use core::fmt;

use pto_abi::fault::Fault;

/// Why a builder gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A call of the interface failed.
    Fault(Fault),
    /// The builder's own code, not zero by convention; reported with `BUILD_FAILED`.
    Failed(i32),
}

impl From<Fault> for BuildError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Failed(code) => write!(f, "the builder returned {code}"),
        }
    }
}

impl core::error::Error for BuildError {}

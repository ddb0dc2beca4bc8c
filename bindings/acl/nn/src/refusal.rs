//! Why a call is refused: a code of the interface and a sentence that names operator, argument and rule.

use std::fmt::Display;

/// A pointer is null.
pub(crate) const NULL_POINTER: i32 = 161_001;
/// An argument cannot be.
pub(crate) const INVALID: i32 = 161_002;
/// The device refuses.
pub(crate) const RUNTIME: i32 = 361_001;
/// A fault of this library.
pub(crate) const INNER: i32 = 561_000;

/// The error of a call.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) code: i32,
    pub(crate) text: String,
}

/// What a call gives.
pub(crate) type Checked<T = ()> = Result<T, Rejection>;

impl Rejection {
    #[cold]
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// An argument that cannot be: its name, and the rule.
    #[cold]
    pub(crate) fn invalid(argument: &str, rule: impl Display) -> Self {
        Self::new(INVALID, format!("{argument} {rule}"))
    }

    #[cold]
    pub(crate) fn null(argument: &str) -> Self {
        Self::new(NULL_POINTER, format!("{argument} is null; pass one"))
    }
}

impl From<pto_operators::OperatorError> for Rejection {
    fn from(error: pto_operators::OperatorError) -> Self {
        Self::new(INVALID, error.to_string())
    }
}

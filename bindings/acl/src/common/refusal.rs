//! Why a call fails: a code of the interface and a sentence.

use std::ops::Deref;

use super::codes;

/// The error of a call. It is boxed, so that the result of most calls fits a register.
#[derive(Clone, Debug)]
pub(crate) struct Refusal(Box<Reason>);

/// A code, and a sentence.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Deref for Refusal {
    type Target = Reason;

    fn deref(&self) -> &Reason {
        &self.0
    }
}

/// What a call gives.
pub(crate) type Answer<T = ()> = Result<T, Refusal>;

impl Refusal {
    #[cold]
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self(Box::new(Reason { code, text: text.into() }))
    }

    /// Replaces the refusal's code.
    pub(crate) fn with_code(mut self, code: i32) -> Self {
        self.0.code = code;
        self
    }

    /// An argument that the entry point itself refuses.
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(codes::BAD_ARGUMENT, text)
    }

    /// A value that the device refuses.
    pub(crate) fn value(text: impl Into<String>) -> Self {
        Self::new(codes::BAD_VALUE, text)
    }

    pub(crate) fn unsupported(text: impl Into<String>) -> Self {
        Self::new(codes::UNSUPPORTED, text)
    }

    /// Whether the thread's last error becomes this one: refusals of entry points do not count.
    pub(crate) fn is_kept(&self) -> bool {
        !(100_000..107_000).contains(&self.code)
    }
}

/// Refuses unless `holds`.
#[inline]
pub(crate) fn require(holds: bool, refusal: impl FnOnce() -> Refusal) -> Answer {
    if holds { Ok(()) } else { Err(refusal()) }
}

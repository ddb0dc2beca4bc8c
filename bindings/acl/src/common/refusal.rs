//! Why a call fails: a code of the interface and a sentence.

use super::codes;

/// A call that fails.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: i32,
    pub(crate) text: String,
}

/// What a call gives.
pub(crate) type Answer<T = ()> = Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
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
pub(crate) fn require(holds: bool, refusal: impl FnOnce() -> Refusal) -> Answer {
    if holds { Ok(()) } else { Err(refusal()) }
}

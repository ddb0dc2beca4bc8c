//! The result of a program, or why it failed.

use crate::session::error::SessionError;

/// The result of a program.
pub(super) struct ProgramOutcome {
    /// Commands that were submitted.
    pub(super) commands: u64,
    /// Streams that reported a failure or an abort.
    pub(super) failed_streams: u64,
    /// A hash of the results.
    pub(super) hash: u64,
}

/// Why a program failed.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) String);

impl From<SessionError> for Wrong {
    fn from(error: SessionError) -> Self {
        Self(error.to_string())
    }
}

impl From<crate::error::Error> for Wrong {
    fn from(error: crate::error::Error) -> Self {
        Self(error.to_string())
    }
}

/// `Wrong` with this text unless it `holds`.
pub(super) fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong(what())) }
}

/// The next number of a hash (splitmix64, Steele, Lea and Flood 2014).
pub(super) const fn mixed(word: u64) -> u64 {
    let z = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

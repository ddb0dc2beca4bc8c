//! Why an image or a header is refused: the fault of the field, the value found, and the value expected.

use crate::fault::Fault;

/// What a fault in an image or header found, and what it expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which field.
    pub fault: Fault,
    /// What stands there.
    pub found: u64,
    /// What should stand there, or the bound.
    pub expected: u64,
}

/// Fails with `fault` unless `found == expected`.
///
/// # Errors
/// The refusal.
pub const fn expect_equal(fault: Fault, found: u64, expected: u64) -> Result<(), Refusal> {
    if found == expected { Ok(()) } else { Err(Refusal { fault, found, expected }) }
}

/// Fails with `fault` unless `found <= bound`.
///
/// # Errors
/// The refusal.
pub const fn expect_at_most(fault: Fault, found: u64, bound: u64) -> Result<(), Refusal> {
    if found <= bound { Ok(()) } else { Err(Refusal { fault, found, expected: bound }) }
}

//! Why an image or a header is refused: the fault of the field, the value found, and the value expected.

use crate::fault::Fault;

/// A field of an image or header with a wrong value: the fault, the value found, and the value expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldMismatch {
    /// Which field.
    pub fault: Fault,
    /// The value of the field.
    pub found: u64,
    /// The value that it should have, or the bound.
    pub expected: u64,
}

/// Fails with `fault` unless `found == expected`.
///
/// # Errors
/// The mismatch.
pub const fn expect_equal(fault: Fault, found: u64, expected: u64) -> Result<(), FieldMismatch> {
    if found == expected { Ok(()) } else { Err(FieldMismatch { fault, found, expected }) }
}

/// Fails with `fault` unless `found <= bound`.
///
/// # Errors
/// The mismatch.
pub const fn expect_at_most(fault: Fault, found: u64, bound: u64) -> Result<(), FieldMismatch> {
    if found <= bound { Ok(()) } else { Err(FieldMismatch { fault, found, expected: bound }) }
}

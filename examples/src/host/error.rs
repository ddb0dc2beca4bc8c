//! What can be wrong with a request: each message says what, where, and what to do.

use std::format;
use std::string::String;

use crate::host::dtype::DType;
use crate::host::names;

/// Why an example cannot be prepared or checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that is not there.
    #[error("there is no {what} '{name}'; {known}")]
    Unknown {
        /// What the name should be one of.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The value of a parameter is not a number, or out of range.
    #[error("parameter '{name}' is '{found}'; it must be a whole number from {min} to {max}")]
    ParamValue {
        /// The parameter.
        name: &'static str,
        /// What was given.
        found: String,
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// The shape of an input implies a value that the parameter cannot have.
    #[error("input '{input}' makes '{name}' {value}; it must be from {min} to {max}")]
    ParamFromInput {
        /// The input.
        input: &'static str,
        /// The parameter.
        name: &'static str,
        /// What the shape implies.
        value: u64,
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// Two inputs imply different values of a parameter.
    #[error(
        "input '{first}' makes '{name}' {first_value}, and input '{second}' makes it {second_value}; \
         give inputs that belong together"
    )]
    ParamConflict {
        /// The parameter.
        name: &'static str,
        /// The one input.
        first: &'static str,
        /// What it implies.
        first_value: u64,
        /// The other input.
        second: &'static str,
        /// What that implies.
        second_value: u64,
    },
    /// An input of the wrong type.
    #[error("input '{input}' has elements of type {found}; it must have {expected}")]
    InputType {
        /// The input.
        input: &'static str,
        /// Its type.
        found: DType,
        /// What it should be.
        expected: DType,
    },
    /// An input of the wrong shape.
    #[error("input '{input}' has the shape {found}; it must have {expected}")]
    InputShape {
        /// The input.
        input: &'static str,
        /// Its shape.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Parameters or inputs that do not fit together.
    #[error("{0}")]
    Invalid(String),
    /// The matrix of a factorisation has none.
    #[error(
        "the matrix 'a' is not positive definite: the pivot of row {row} is not a finite number above zero; \
         give a symmetric matrix with eigenvalues above zero"
    )]
    NotDefinite {
        /// The first row, from 0, that has no pivot.
        row: u64,
    },
    /// More memory than the device has.
    #[error(
        "the tensors need {} of device memory and the graph {}, and {} are free; \
         make the problem smaller, or open the device with more memory (gm_bytes; `pto run --memory`)",
        size_text(*tensors), size_text(*graph), size_text(*available)
    )]
    Memory {
        /// Bytes of the tensors; `u64::MAX` means more than 64 bits can hold.
        tensors: u64,
        /// Bytes of tasks, edges and arguments.
        graph: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// More than a limit of the runtime.
    #[error(
        "the graph has {found} {what}, and the limit is {limit}; make the problem smaller, or its tiles larger"
    )]
    Limit {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The device refused something.
    #[error(transparent)]
    Device(#[from] pto_host::Error),
}

impl Error {
    /// [`Error::Unknown`], with the known names and the nearest.
    pub fn unknown<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        Self::Unknown { what, name: name.into(), known: names::known(name, known) }
    }
}

/// [`Error::Invalid`] out of a format string.
macro_rules! invalid {
    ($($arg:tt)*) => { $crate::host::Error::Invalid(std::format!($($arg)*)) };
}
pub(crate) use invalid;

/// A shape as people write it.
pub(crate) fn shape_text(shape: &[u64]) -> String {
    format!("{shape:?}")
}

/// A number of bytes as people write it.
fn size_text(bytes: u64) -> String {
    let units = [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(bits, _)| bytes >> bits > 0) {
        _ if bytes == u64::MAX => String::from("more than 16 EiB"),
        Some((bits, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << bits) as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::size_text;

    #[test]
    fn sizes_have_a_unit_that_fits() {
        let sizes = [0, 1023, 1536, 5 << 30, u64::MAX].map(size_text);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1.5 KiB", "5.0 GiB", "more than 16 EiB"]);
    }
}

//! Element types, reductions, tests of words and func ids, by their names and numbers.

use pto_host::abi::FuncId;
use pto_host::session::{Reduction, ValueTest};
use pto_host::workloads::tile::DType;

use crate::failure::{Failure, FailureKind};

/// The element type of this name.
///
/// # Errors
/// `INVALID_ARGUMENT`, with the names that there are; so for the other functions here.
pub fn element_type(name: &str) -> Result<DType, Failure> {
    named("element type", name, DType::ALL.iter().map(|one| (one.name(), *one)))
}

/// The reduction of this name: `sum`, `max` or `min`.
///
/// # Errors
/// As [`element_type`].
pub fn reduction(name: &str) -> Result<Reduction, Failure> {
    named("reduction", name, Reduction::ALL.iter().map(|one| (one.name(), *one)))
}

/// The test of a word that has this name: `equal`, `at least` (with signs), `and` (a bit in common) or `nor` (a bit set in neither).
///
/// # Errors
/// As [`element_type`].
pub fn value_test(name: &str) -> Result<ValueTest, Failure> {
    named("test of a value", name, ValueTest::ALL.iter().map(|one| (one.name(), *one)))
}

/// The func id with this number.
///
/// # Errors
/// `INVALID_ARGUMENT`: there is none.
pub fn func_id(number: u32) -> Result<FuncId, Failure> {
    u16::try_from(number).map(FuncId).map_err(|_| {
        let message = format!("there is no func id {number}; the largest one is {}", u16::MAX);
        Failure::new(FailureKind::INVALID_ARGUMENT, message)
    })
}

fn named<T>(
    what: &str,
    name: &str,
    all: impl Iterator<Item = (&'static str, T)> + Clone,
) -> Result<T, Failure> {
    let found = all.clone().find(|(known, _)| *known == name).map(|(_, one)| one);
    found.ok_or_else(|| {
        let known: Vec<_> = all.map(|(known, _)| known).collect();
        let message = format!("'{name}' is no {what}; there are {}", known.join(", "));
        Failure::new(FailureKind::INVALID_ARGUMENT, message)
    })
}

//! Applies the rules of [`crate::infer`] to the inputs of a kernel, for what the types alone do not contain: windows, ranges, axes.

use super::memory::In;
use crate::error::OperatorError;
use crate::infer::{Input, OperatorCheck};
use crate::operator::Operator;

/// The result of a rule on inputs of these types, which [`Operator::infer`] has accepted.
pub(crate) fn accepted<R>(
    operator: &Operator,
    inputs: &[Option<In<'_>>],
    rule: impl FnOnce(&OperatorCheck<'_>) -> Result<R, OperatorError>,
) -> Option<R> {
    let given: Vec<_> = inputs
        .iter()
        .map(|input| input.as_ref().map(|input| Input { ty: input.ty, constant: None }))
        .collect();
    let (names, _) = operator.signature();
    rule(&OperatorCheck { operator: operator.name(), names, inputs: &given }).ok()
}

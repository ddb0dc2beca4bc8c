//! Why a kernel ends without a result, and the error that a caller gets for it.

use crate::error::{Argument, OperatorError};
use crate::operator::Operator;

/// Why a kernel ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An index is outside of its axis.
    Index { index: i64, extent: u64 },
}

impl Failure {
    /// The error, with the operator's name and the rule that the index broke.
    pub(crate) fn into_error(self, operator: &Operator) -> OperatorError {
        let Self::Index { index, extent } = self;
        let rule = format!(
            "the index is {index}, and there are {extent} elements; use -{extent} to {}",
            extent.cast_signed() - 1
        );
        OperatorError { operator: operator.name(), argument: Argument::Input(1, "indices"), rule }
    }
}

//! Why an operator cannot be used so.

use std::fmt;

/// What an error is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// An input, by its position and its name.
    Input(usize, &'static str),
    /// An attribute, by its name.
    Attribute(&'static str),
    /// The operator as a whole.
    Operator,
}

/// Why an operator cannot be used so: operator, argument, rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operator {operator}{argument}: {rule}")]
pub struct OperatorError {
    /// The operator's name.
    pub operator: &'static str,
    /// What it is about.
    pub argument: Argument,
    /// What is, and what the rule is.
    pub rule: String,
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(at, name) => write!(f, ", input {at} ({name})"),
            Self::Attribute(name) => write!(f, ", attribute {name}"),
            Self::Operator => Ok(()),
        }
    }
}

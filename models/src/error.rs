//! Why a model cannot be read, or cannot become a program.

use std::fmt;

/// A node that cannot become operators, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The node's name, or that of its first output where it has none.
    pub node: String,
    /// Its type, with its domain where that is not the usual one.
    pub op_type: String,
    /// The version of the operator set that the model imports for it.
    pub version: i64,
    /// What is, and what the rule is.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, op_type, version, reason } = self;
        write!(f, "node {node} ({op_type}, version {version}): {reason}")
    }
}

/// Why a model cannot be read, or cannot become a program.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The file is none that this crate reads.
    #[error("{0}")]
    File(String),
    /// An input is given wrongly, or not at all.
    #[error("input {input}: {reason}")]
    Input {
        /// The input.
        input: String,
        /// What is, and what to do.
        reason: String,
    },
    /// Nodes cannot become operators: all of them.
    #[error("{}", all(.0))]
    Nodes(Vec<Problem>),
    /// The graph of operators does not become a program.
    #[error("{0}")]
    Lower(String),
    /// The device refuses the program, or the run ended with a fault.
    #[error("{0}")]
    Device(String),
}

impl fmt::Debug for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn all(problems: &[Problem]) -> String {
    let count = problems.len();
    let nodes =
        if count == 1 { "a node cannot".to_owned() } else { format!("{count} nodes cannot") };
    let mut text = format!("{nodes} become operators; nothing has run");
    for problem in problems {
        text.push_str(&format!("\n  {problem}"));
    }
    text
}

//! From a graph of operators to a program: tasks, edges, memory.

use pto_workload::program::Program;

use crate::error::OperatorError;
use crate::graph::OperatorGraph;
use crate::tensor::TensorType;

/// How a graph becomes a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Into how many tasks an operator is split at most: the number of cores.
    pub cores: usize,
    /// Tasks are named after nodes, where there are not more than this many; otherwise after operators. A session has 1,024 kernels.
    pub most_names: usize,
}

impl Default for LowerOptions {
    fn default() -> Self {
        Self { cores: 24, most_names: 800 }
    }
}

/// Why a node cannot become tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node}: {error}")]
pub struct LowerError {
    /// The node's name; that of the graph, where it is about all of it.
    pub node: String,
    /// Why.
    pub error: OperatorError,
}

/// A graph as a program.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program. Its inputs and outputs have the names of the graph's. A tensor without dimensions, with more than five, or without
    /// elements is a vector there, of one element at least.
    pub program: Program,
    /// The inputs, in the order of the graph.
    pub inputs: Vec<(String, TensorType)>,
    /// The outputs, in the order of the graph.
    pub outputs: Vec<(String, TensorType)>,
    /// For each task the number of its node; `None`: it only joins others.
    pub nodes: Vec<Option<usize>>,
    /// Bytes of all activations.
    pub activation_bytes: u64,
    /// Bytes of memory that they share.
    pub activation_peak: u64,
}

/// The name of the output in which tasks say that an index stood for no element, of a program that has such tasks: `u64[4]`.
pub const STATUS: &str = "pto.status";

/// What a run said in [`STATUS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing was wrong.
    Good,
    /// A node met an index that stands for no element.
    Index {
        /// The node's number.
        node: usize,
        /// The index.
        index: i64,
        /// The extent of the axis.
        extent: u64,
    },
}

impl Status {
    /// What the words of [`STATUS`] say.
    #[must_use]
    pub fn read(words: &[u64]) -> Self {
        match *words {
            [node, index, extent, ..] if node > 0 => Self::Index {
                node: usize::try_from(node - 1).unwrap_or(usize::MAX),
                index: index.cast_signed(),
                extent,
            },
            _ => Self::Good,
        }
    }
}

impl OperatorGraph {
    /// The program of the graph. Nodes whose values nobody needs are left out.
    ///
    /// # Errors
    /// All that cannot become tasks: each node with its reason.
    pub fn lower(&self, options: &LowerOptions) -> Result<Lowered, Vec<LowerError>> {
        let _ = options;
        let error = OperatorError {
            operator: "graph",
            argument: crate::error::Argument::Operator,
            rule: "is not implemented yet".to_owned(),
        };
        Err(vec![LowerError { node: self.name.clone(), error }])
    }
}

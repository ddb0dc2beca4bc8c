//! The nodes of the tree.

pub use pto_graph::group::{ExchangeKind, Reduction};

use super::axis::Axis;
use super::expr::Expr;
use super::view::TensorSlice;

/// A loop: its variable, and what it goes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The variable.
    pub var: String,
    /// Two more variables, of a ragged axis the row and the index in the row, of a sparse axis the row and the index in the
    /// indices.
    pub places: Option<[String; 2]>,
    /// The axis.
    pub axis: Axis,
}

impl Loop {
    /// A loop with one variable.
    #[must_use]
    pub fn new(var: &str, axis: Axis) -> Self {
        Self { var: var.to_owned(), places: None, axis }
    }
}

/// An argument of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskArgument {
    /// A view, for a tensor parameter.
    View(TensorSlice),
    /// An expression, for a scalar parameter: converted to its type.
    Expr(Expr),
    /// A number, for a scalar parameter: converted to its type.
    Number(f64),
    /// A symbol of type `f32`, for a scalar parameter: converted to its type.
    Symbol(String),
}

/// A call of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The number of the kernel.
    pub kernel: usize,
    /// What the task is known by where tasks are dispatched, and the token that it sends.
    pub axes: Vec<Expr>,
    /// An argument for each parameter, in their order.
    pub arguments: Vec<TaskArgument>,
}

/// A channel of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The channel's name.
    pub name: String,
    /// How many tokens it holds; 0: sender and receiver meet.
    pub depth: u64,
}

/// A process of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// The process's name.
    pub name: String,
    /// The rank of a group that runs it. In a group with fewer ranks it is on that rank modulo their number.
    pub rank: u16,
    /// The channels that it takes from.
    pub consumes: Vec<usize>,
    /// The channels that it sends to.
    pub produces: Vec<usize>,
    /// What it does.
    pub body: TreeNode,
}

impl Process {
    /// The process's name, and its rank where that is not the first one.
    #[must_use]
    pub fn called(&self) -> String {
        match self.rank {
            0 => self.name.clone(),
            rank => format!("{} on rank {rank}", self.name),
        }
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeNode {
    /// A node without content.
    Empty,
    /// The body for each element of an axis, in no order.
    ParallelFor(Loop, Box<Self>),
    /// The body for each element of an axis, one after the other.
    ForEach(Loop, Box<Self>),
    /// The body for each element of a sparse axis, in no order.
    Select(Loop, Box<Self>),
    /// One of two, by a predicate that is evaluated when it is reached.
    Cond {
        /// The predicate.
        predicate: Expr,
        /// Done where it is true.
        then: Box<Self>,
        /// Done where it is false.
        otherwise: Box<Self>,
    },
    /// A call of a kernel.
    Task(Task),
    /// Executes all of these nodes, in any order.
    Combine(Vec<Self>),
    /// Executes these nodes one after the other.
    Sequential(Vec<Self>),
    /// Writes a value to a slot.
    SlotSet {
        /// The slot.
        slot: u16,
        /// The value.
        value: Expr,
    },
    /// Writes an element of a tensor to a slot, after the element's producers have completed.
    SlotLoad {
        /// The slot.
        slot: u16,
        /// The view.
        view: TensorSlice,
        /// The row.
        row: Expr,
        /// The column.
        col: Expr,
    },
    /// Processes that run side by side and meet at channels.
    Pipeline(Vec<Process>),
    /// Runs a task, then sends a token: the task's first axis.
    Send {
        /// The channel.
        channel: usize,
        /// The task.
        task: Task,
    },
    /// The body for each token, until the channel is closed and empty.
    Consume {
        /// The channel.
        channel: usize,
        /// The variable that holds the token.
        var: String,
        /// The body.
        body: Box<Self>,
    },
    /// A tensor goes between ranks.
    Exchange(TensorExchange),
}

/// An exchange of a whole tensor with the other ranks of a group: what uses its tiles before and after is ordered by them.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorExchange {
    /// What becomes of it.
    pub kind: ExchangeKind,
    /// The tensor.
    pub tensor: usize,
    /// How elements are put together, where it reduces.
    pub reduction: Reduction,
    /// The other rank, where it names one.
    pub peer: Expr,
    /// By which a send and a receive meet.
    pub tag: Expr,
}

/// The word in front of the other rank, in the text of an exchange.
pub(super) const fn peer_word(kind: ExchangeKind) -> &'static str {
    match kind {
        ExchangeKind::SEND | ExchangeKind::REDUCE => "to",
        _ => "from",
    }
}

impl TensorExchange {
    /// One that names no other rank, of this tensor.
    #[must_use]
    pub const fn of_all(kind: ExchangeKind, tensor: usize, reduction: Reduction) -> Self {
        Self { kind, tensor, reduction, peer: Expr::Int(0), tag: Expr::Int(0) }
    }
}

/// The nodes inside of a node.
#[must_use]
pub fn children(node: &TreeNode) -> Vec<&TreeNode> {
    match node {
        TreeNode::ParallelFor(_, body)
        | TreeNode::ForEach(_, body)
        | TreeNode::Select(_, body)
        | TreeNode::Consume { body, .. } => vec![body],
        TreeNode::Cond { then, otherwise, .. } => vec![then, otherwise],
        TreeNode::Combine(nodes) | TreeNode::Sequential(nodes) => nodes.iter().collect(),
        TreeNode::Pipeline(processes) => processes.iter().map(|process| &process.body).collect(),
        TreeNode::Empty
        | TreeNode::Task(_)
        | TreeNode::SlotSet { .. }
        | TreeNode::SlotLoad { .. }
        | TreeNode::Exchange(_)
        | TreeNode::Send { .. } => Vec::new(),
    }
}

/// Whether a node sends to a channel.
pub(crate) fn sends(node: &TreeNode, channel: usize) -> bool {
    matches!(node, TreeNode::Send { channel: found, .. } if *found == channel)
        || children(node).into_iter().any(|node| sends(node, channel))
}

/// Whether a node consumes a channel.
pub(super) fn takes(node: &TreeNode, channel: usize) -> bool {
    matches!(node, TreeNode::Consume { channel: found, .. } if *found == channel)
        || children(node).into_iter().any(|node| takes(node, channel))
}

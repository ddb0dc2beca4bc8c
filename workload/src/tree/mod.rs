//! Workloads: a tree of loops over axes, whose leaves are tasks.
//!
//! [`Workload`] says everything and proves nothing. [`Workload::check`] turns it into [`Checked`], or says what is wrong, with
//! the loops around it, the kernel and the argument. What holding a [`Checked`] proves:
//!
//! - Every loop variable, tensor, kernel, slot and channel that the tree names exists; no variable hides another.
//! - Every expression is typed. Every task has an argument for each parameter of its kernel, and no other.
//! - Every view has at most two free dimensions, and its tile fits the tensor wherever indices are known.
//! - A pipeline is the whole tree; each of its channels has a process that sends and one that consumes.

mod axis;
mod check;
mod exact;
mod expr;
mod node;
mod parse;
mod parse_expr;
mod schedule;
mod text;
mod typing;
mod view;

pub use axis::Axis;
pub use check::{Checked, Warning, WorkloadError};
pub use expr::{BinaryOp, Expr, ScalarType, UnaryOp};
pub use node::{Argument, Channel, Loop, Node, Process, Task};
pub use schedule::{Dispatch, Schedule, Window, WindowMode};
pub use view::{Index, Tensor, View};

pub(crate) use check::sends;

use crate::kernel::TileKernel;

/// Slots of a run.
pub const SLOTS: usize = 256;

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The tensors that its tasks read and write.
    pub tensors: Vec<Tensor>,
    /// The kernels of its tasks.
    pub kernels: Vec<TileKernel>,
    /// The channels of its pipeline.
    pub channels: Vec<Channel>,
    /// How tasks go to workers.
    pub schedule: Schedule,
    /// The tree.
    pub root: Node,
}

impl Workload {
    /// A workload without tensors, kernels and channels, whose tasks all go to one worker.
    #[must_use]
    pub fn new(name: &str, root: Node) -> Self {
        Self {
            name: name.to_owned(),
            tensors: Vec::new(),
            kernels: Vec::new(),
            channels: Vec::new(),
            schedule: Schedule::default(),
            root,
        }
    }

    /// Reads the textual form.
    ///
    /// # Errors
    /// Where the text is not a workload.
    pub fn parse(text: &str) -> Result<Self, crate::ParseError> {
        parse::workload(text)
    }

    /// Checks everything that can be checked before the sizes are known.
    ///
    /// # Errors
    /// What is wrong first.
    pub fn check(self) -> Result<Checked, WorkloadError> {
        check::check(self)
    }
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text::workload(self, f)
    }
}

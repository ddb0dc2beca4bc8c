//! Workloads: a tree of loops over axes, whose leaves are tasks.
//!
//! [`Workload`] says everything and proves nothing. [`Workload::check`] turns it into [`Checked`], or says what is wrong, with
//! the loops around it, the kernel and the argument. What holding a [`Checked`] proves:
//!
//! - Every loop variable, tensor, kernel, slot and channel that the tree names exists; no variable hides another.
//! - Every expression is typed. Every task has an argument for each parameter of its kernel, and no other.
//! - Every view has at most two free dimensions, and its tile fits the tensor wherever indices are known.
//! - A pipeline is the whole tree; each of its channels has a process that sends and one that consumes. Of its processes on several ranks, each
//!   reads what its own rank writes, or what tokens bring along.
//!
//! Why it is so: `docs/decisions/workload-semantics.md`.

mod axis;
mod check;
mod exact;
mod expr;
mod node;
mod parse;
mod parse_expr;
mod ranks;
mod schedule;
mod text;
mod typing;
mod view;
mod workload;

pub use axis::Axis;
pub use check::{Checked, Warning, WorkloadError};
pub use expr::{BinaryOp, Expr, SLOTS, ScalarType, UnaryOp};
pub use node::{
    Channel, ExchangeKind, Loop, Process, Reduction, Task, TaskArgument, TensorExchange, TreeNode,
};
pub use schedule::{Dispatch, Schedule, TaskWindow, WindowMode};
pub use view::{Index, Tensor, TensorSlice};
pub use workload::Workload;

pub use node::children;
pub(crate) use node::sends;
pub(crate) use typing::common;

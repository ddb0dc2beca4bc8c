//! Plans: workloads in the form in which a device gets them, and the program that expands them.
//!
//! A **plan** is some hundred words whatever the sizes: the loops, expressions, views and kernels of a workload, without
//! addresses and without values that are bound by name. `pto-workload` writes it. [`Plan::accept`] checks it completely;
//! [`expand()`] is the program of the streaming runtime that walks it and submits a task for each kernel call, with tensors, so
//! that the edges follow from the tiles. Sizes, lengths, indices, predicates and slots are read when they are reached, after
//! their producers. The memory that the expansion needs does not depend on the number of tasks.
//!
//! ```text
//! LaunchPart: plan, bindings --> read --> Plan::accept --> expand: loops --> tasks --> tiles --> submit_tensors
//!                                                            |  axes, expressions
//!                                                            '--> epitaph: where a plan or a tile kernel ended, and why
//! ```
//! Where to look: [`layout`] the words; `accept.rs` the check; `expression.rs`, `axis.rs`, `tile.rs` and `tasks.rs` what a walk does at
//! each of them; `line.rs`, `ahead.rs` and `rows.rs` how a loop makes many calls at once; `grain.rs` which tasks are one dispatch; `heads.rs` what loops and choices begin with; `pipeline.rs` and `processes.rs` what communicates through `channels.rs`, by the rule in [`turns`], and `crossings.rs` what goes between ranks then; `schedule.rs` what orders tasks besides their tiles; [`epitaph`] what the host reads after a fault; [`task`] the arguments of a tile kernel.

mod accept;
mod ahead;
mod axis;
mod bindings;
mod channels;
mod crossings;
mod cursor;
#[cfg(test)]
mod differential;
pub mod epitaph;
mod expand;
mod expression;
mod grain;
mod heads;
mod kept;
mod launch_part;
pub mod layout;
mod line;
mod measure;
mod operand;
mod pipeline;
mod processes;
mod rows;
mod schedule;
mod stop;
pub mod task;
mod tasks;
mod tile;
pub mod turns;
mod values;
mod walk;

/// The name by which a launch asks for [`expand()`].
pub const BUILDER: &str = "workload";

pub use accept::{Plan, TensorUse};
pub use expand::expand;
pub use launch_part::LaunchPart;
pub use stop::Stop;

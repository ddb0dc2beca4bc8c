//! The interface of graph programs: [`GraphBuilder`] and [`StreamBuilder`], and the tasks and tensors that a program gives them.
//!
//! ```text
//! program  fn build<G: GraphBuilder>(graph: &mut G)          fn build<G: StreamBuilder>(stream: &mut G)
//!             |  TaskSpec, edges                                |  TensorTask: Arg, TensorView, Predicate, ...
//!             v                                                 v
//! builder  of the host (an image of the graph), of the firmware (tasks in the arena), of a check, of a test
//! ```
//! A program neither allocates nor knows where it runs: the same function builds on the host, on the device and in the
//! simulator. [`builder_set!`] gives programs the names by which a launch asks for one.
//!
//! Where to look: `submission.rs` what every submission is; `builder.rs` and `stream.rs` the two interfaces; `stream_op.rs` what a stream
//! does in addition to submissions; [`call`] calls of kernels that are checked; `task.rs`, `tensor_task.rs`, `chain.rs`, `link.rs`,
//! `template.rs` and `range.rs` what is submitted; [`signature`] what kernels expect, and the check of calls;
//! [`group`] transfers and collectives between devices; `tensor.rs` views; `block_shape.rs`, `predicate.rs`, `scope.rs`, `recording.rs` what else a streaming program may
//! ask for; [`task_list`] graphs as words in the memory of a device; [`owned`] (feature `alloc`) tasks that own what they name; `set.rs` programs by name; `submitted.rs` (feature `alloc`) a graph as a host or a test keeps it; `hosted.rs` and `foreign.rs` what programs in C need.
//!
//! The bytes that builders write are those of `pto_abi`; nothing here knows a platform, and nothing that runs on a device allocates.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

mod block_shape;
mod builder;
pub mod call;
mod chain;
mod chain_words;
mod collective;
mod element;
mod error;
mod exchange;
mod foreign;
mod forward;
pub mod group;
mod hosted;
mod link;
#[cfg(feature = "alloc")]
pub mod owned;
pub mod plan;
mod predicate;
mod range;
mod recording;
mod reduction;
mod scope;
mod set;
pub mod signature;
mod stream;
mod stream_op;
mod submission;
#[cfg(feature = "alloc")]
mod submitted;
mod task;
pub mod task_list;
mod template;
mod tensor;
mod tensor_range;
mod tensor_task;

pub use block_shape::{BlockShape, Priority, StartMode};
pub use builder::{EdgeOutcome, GraphBuilder, link_and_publish};
pub use chain::{Chain, ChainPlan};
pub use element::ElementType;
pub use error::BuildError;
pub use hosted::HostedBuilder;
pub use link::{Link, Variation};
pub use predicate::{Comparison, Predicate};
pub use range::{ListWalk, TaskRange, Wait, WaitWalk, WindowWalk};
pub use recording::{Bindings, Bound, MAX_BOUND, Recording};
pub use scope::{DependencyMode, ScopeId};
pub use set::{BuilderSet, NoBuilders, set_apart};
pub use stream::{Scope, StreamBuilder, submit_tensor_range_one_by_one};
pub use stream_op::{OpResult, StreamOp};
pub use submission::{Publish, Submission, TaskDesc};
#[cfg(feature = "alloc")]
pub use submitted::{GraphParts, SubmittedGraph};
pub use task::TaskSpec;
pub use template::{ChainTemplate, CodeOf, NotFilled, Origin};
pub use tensor::{
    HeapTag, MAX_TENSOR_BYTES, PLACEHOLDER, RECORDED_DEPTH, RawView, TensorView, ViewDefect,
};
pub use tensor_range::TensorRange;
pub use tensor_task::{Arg, TensorTask};

#[doc(hidden)]
/// For [`forward_graph_builder!`], whose callers may know the crate by another name.
#[doc(hidden)]
pub use pto_abi as abi;
pub use pto_abi::launch_args::LaunchArgs;
pub use pto_abi::symbol::symbol;

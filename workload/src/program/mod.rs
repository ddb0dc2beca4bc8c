//! Program files (`.ptop`): a plan or a graph, its kernels, and a description of every tensor that it takes and gives.
//!
//! ```text
//! workload --of_workload--> Program --to_bytes--> file, sealed --from_bytes--> Program
//! tasks    --new----------^   name, target, tensors with layouts, plan, graph or reference to a builder, constants, source
//! ```
//! What a file may hold, and how readers of other versions treat it: `format.rs`. What a tensor has to be: [`TensorDescription`]
//! and [`TensorLayout`]. A file proves nothing: reading checks the frame, the seal, every number, the plan, the kernels and that
//! all of them fit each other.
//!
//! Why it is so: `docs/decisions/program-files.md`.

mod block_shape;
mod builder;
mod bytes;
mod compile;
mod content;
mod description;
mod differences;
mod error;
mod format;
mod graph;
mod layout;
mod layout_text;
mod model;
mod native;
mod needs;
mod read;
mod roles;
mod version;
mod write;

pub use block_shape::{BlockShape, TensorElement, describe_block_shape};
pub use builder::BuilderReference;
pub use content::{ANY_TARGET, Program, ProgramBody};
pub use description::{Role, TensorDescription};
pub use differences::{Difference, differences};
pub use error::ProgramError;
pub use format::{Section, checksum, seal};
pub use graph::{GraphArgument, GraphTask};
pub use layout::{Format, MemorySpace, TensorLayout, dense_strides};
pub use model::{ModelDescription, ModelTensor};
pub use native::{NativeKernel, NativeKernels, NativeObject};
pub use needs::Needs;
pub use pto_graph::owned::OwnedPredicate;
pub use version::{MAGIC, MAJOR, MINOR};

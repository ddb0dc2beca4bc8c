//! Plans: a workload as some hundred words, whatever its sizes, and the code of its kernels.
//!
//! [`compile`] writes what [`pto_graph::plan`] reads. Nothing in it is bound: sizes, symbols, arrays and tensors get their
//! values for each run, so that a run with other sizes compiles nothing.
//!
//! ```text
//! Checked --compile--> Compiled: words --> AICPU: accepted, expanded to tasks
//!                                code  --> cores: accepted, executed by the tile machine
//!                                names --> what has to be bound; what a fault concerns
//! ```

mod compiled;
mod error;
mod expression;
mod fault;
mod kernels;
mod names;
mod nodes;
mod source_map;
mod stored;

pub use compiled::{Compiled, compile};
pub use error::PlanError;
pub use fault::RunFault;
pub use names::SymbolUse;
pub use source_map::SourceMap;
pub use stored::Stored;

//! Sessions and programs of the host for languages without lifetimes, which use its own streams, events and programs. Here is what those languages need
//! besides: tensors that calls take while others name them, and what texts name.
//!
//! ```text
//! session.rs: opens a session and its stitcher, loads programs with their native kernels
//! SharedTensor: here, or gone, and then it says to which call         tensor.rs
//!     RunRequest: the arguments of a run: shared tensors by name         request.rs
//!     TensorRecording: what was captured, with its tensors            recording.rs
//!     OperatorStream: operators on arrays, which are parts of such tensors   operators.rs
//! choices.rs: a program with roles and layouts as texts     tasks.rs: a program of tasks     names.rs: element types and others by their names
//! failure.rs: what went wrong
//! ```
//! A tensor is lent to a run by its role: an input is read, an updated tensor is changed in place, an output is written into. What is *given* is
//! gone when the run has been submitted. A run that is refused takes nothing.

mod choices;
mod failure;
mod names;
mod operators;
mod recording;
mod request;
mod session;
mod tasks;
mod tensor;

pub use choices::Choices;
pub use names::{element_type, func_id, reduction, value_test};
pub use operators::{OperatorArray, OperatorInput, OperatorStream};
pub use recording::TensorRecording;
pub use request::{Number, RunRequest};
pub use session::{load, open_session};
pub use tasks::{DescribedTensor, program_of_tasks, with_objects};
pub use tensor::SharedTensor;

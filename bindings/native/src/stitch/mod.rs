//! Programs and stitching for other languages: handles with reference counts in the place of borrows.
//!
//! ```text
//! SharedDevice --into_session--> SharedSession --load--> LoadedProgram      session.rs
//!                                     |--stream--> SharedStream              stream.rs
//!                                                     run(program, Request) -> SharedTensors      request.rs
//!                     |--kernel_stream--> SharedKernelStream             kernel_stream.rs
//!                                     launch, capture -> SharedRecording
//! SharedTensor: here, or gone, and then it says to which call                tensor.rs
//! choices.rs: a program with roles and layouts as texts     tasks.rs: a program of tasks     failure.rs: what went wrong
//! ```
//! A tensor is lent to a run by its role: an input is read, an updated tensor is changed in place, an output is written into. What is *given* is
//! gone when the run has been submitted. A run that is refused takes nothing.

mod choices;
mod failure;
mod kernel_stream;
mod request;
mod session;
mod stream;
mod tasks;
mod tensor;

pub use choices::Choices;
pub use kernel_stream::{SharedEvent, SharedKernelStream, SharedNotify, SharedRecording};
pub use request::{Number, Request};
pub use session::SharedSession;
pub use stream::SharedStream;
pub use tasks::{DescribedTensor, program_of_tasks, with_objects};
pub use tensor::SharedTensor;

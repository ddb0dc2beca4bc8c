//! Stitching: programs that were compiled apart run after one another on tensors that stay where they are.
//!
//! ```text
//! Session --> Stitcher --load--> LoadedProgram          stitcher.rs, loaded.rs
//!                |--stream--> ProgramStream              stream.rs
//!                               to_device, to_host       host_tensor.rs
//!                               launch_kernel            a kernel between programs, on their tensors
//!                               run(&program, inputs) -> Outputs      inputs.rs, outputs.rs
//!                               to_layout, converted     conversion.rs: a workload of its own, which the device runs
//!                |--place--> PlacedProgram              placed.rs: on memory that the caller has
//!                |--program_of--> Program               of_recording.rs: what was captured of a stream
//! Tensor: owns its block; a dropped one goes back to the pool            tensor.rs, pool.rs
//! Sequence: which tensor is converted where, in a round of programs      sequence.rs
//! Counters: what was copied, converted, bounced, allocated               counters.rs
//! ```
//! A tensor is moved into a run, borrowed by one, or borrowed mutably by one that updates it; the compiler refuses a use after a
//! move. A tensor in another layout than the program needs is refused with the call that converts it.
//! `docs/how-to/stitching.md` says what it is for.

mod builder_words;
mod conversion;
mod counters;
mod error;
mod grain;
mod host_tensor;
mod inputs;
mod joined;
mod listed;
mod loaded;
mod of_recording;
mod outputs;
mod placed;
mod pool;
mod sequence;
mod stitcher;
mod stitcher_core;
mod stream;
mod tensor;

pub use counters::Counters;
pub use error::StitchError;
pub use host_tensor::HostTensor;
pub use inputs::Inputs;
pub use loaded::LoadedProgram;
pub use outputs::Outputs;
pub use placed::{PlacedProgram, PlacedRun};
pub use sequence::{PlannedConversion, Sequence, SequencePlan, Step};
pub use stitcher::{StitchOptions, Stitcher};
pub use stream::{KernelArgument, ProgramStream};
pub use tensor::Tensor;

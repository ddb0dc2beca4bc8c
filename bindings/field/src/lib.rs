//! Programs of the field, as they are written in 2026, on our devices.
//!
//! An orchestration in C++ submits tasks with tensors; kernels in C++ run them. Both are shared objects that include the
//! headers in `include/`, which are ours. `docs/how-to/simpler-cpp.md` is for users.
//!
//! ```text
//! wire.rs      the bytes that both sides share      headers.rs  the headers as text
//! callable.rs  loads a program (loaded.rs)               call.rs     its arguments, and their copies on the device
//! device.rs    runs it                              outcome.rs  what became of it        codes.rs  their error codes
//! calls.rs     what the program calls               build.rs    its state: submit.rs, tensors.rs, scopes.rs, rule.rs, limits.rs
//! run_log.rs   what a run did (entry.rs: its tasks), for the field's files (formats.rs, timed_formats.rs): swimlane.rs when kernels ran (spans.rs), counters.rs how long pipes were busy, dump.rs what arguments were
//! races.rs     where the field's runtime would do something else: recordings.rs its graphs; lines.rs what its cores would lose
//! frames.rs    what kernels read of their tasks     core.rs     what calls a kernel on a core, shared.rs, meetings.rs, kernel_thread.rs, flags.rs,
//!              watch.rs (which kernels wait for nothing that can come)
//! listed.rs    a run on the emulated machine
//! ```
//!
//! Why it is so: `docs/decisions/simpler-programs.md`.

mod build;
mod call;
mod callable;
mod calls;
mod codes;
mod core;
mod counters;
mod device;
mod dump;
mod entry;
mod flags;
mod formats;
mod frames;
mod headers;
mod kernel_thread;
mod limits;
mod lines;
mod listed;
mod loaded;
mod meetings;
mod memory;
mod options;
mod outcome;
mod outputs;
mod races;
mod recordings;
mod rule;
mod run_log;
mod scopes;
mod shared;
mod spans;
mod submit;
mod swimlane;
mod tensors;
mod timed_formats;
mod views;
mod watch;
pub mod wire;

pub use build::LogLine;
pub use call::{Call, MemorySpace, Role, Tensor};
pub use callable::{Callable, KernelCode, ObjectCode, ProgramSource};
pub use codes::{ErrorCode, FieldError};
pub use counters::{Pipe, PipeCycles};
pub use device::FieldDevice;
pub use dump::{Content, DumpEntry, Dumped};
pub use entry::TaskEntry;
pub use headers::HEADERS;
pub use options::{CallOptions, EdgeRule, Keeps, Rings, TheirLimits};
pub use outcome::RunOutcome;
pub use run_log::{EdgeCause, EdgeEntry, RingCount, RunLog, ScopeEntry};
pub use swimlane::{KernelCall, Phase, Seen, SubmissionSpan, Swimlane, Work};
pub use timed_formats::Architecture;

//! The functions and structures that builder programs in C and C++ use. They are the same on every platform.
//!
//! ```text
//! build.rs    a build that foreign code makes: numbers of tasks, the first fault      numbers.rs  number <-> TaskId
//! calls.rs    the functions that it calls, over how a platform finds the build         stream.rs   those with tensors
//! range.rs    ranges of tasks: what differs from one to the next, what each of them waits for
//! object.rs   the bytes of class Runtime (bindings/include/runtime.h asserts the same)
//! field/      what kernels of the field find of their tasks
//! ```
//! A platform implements [`Finder`], which finds the build that a call belongs to: by the calling thread on a host, in a table
//! on a device. This crate checks every value that foreign code passes. It checks pointers for null and alignment only, and trusts
//! the author of the code that they are valid.
//!
//! Why it is so: `docs/decisions/foreign-builders.md`.

pub mod alias;
pub mod build;
pub mod calls;
pub mod field;
pub mod numbers;
pub mod object;
mod pointers;
pub mod range;
pub mod stream;

pub use alias::Alias;
pub use build::{Build, Finder, NewTask};

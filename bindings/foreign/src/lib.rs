//! What builder programs in C and C++ see, the same on every platform.
//!
//! ```text
//! build.rs    a build that foreign code makes: numbers of tasks, the first fault      numbers.rs  number <-> TaskId
//! calls.rs    the functions that it calls, over how a platform finds the build         stream.rs   those with tensors
//! object.rs   the bytes of class Runtime (bindings/include/runtime.h asserts the same)
//! ```
//! A platform implements [`Finder`]: the thread's builder on a host, a table of seats on a device. What foreign code
//! passes is checked here; the pointers are its author's word.
#![no_std]

pub mod build;
pub mod calls;
pub mod numbers;
pub mod object;
pub mod stream;

pub use build::{Build, Finder, NewTask};

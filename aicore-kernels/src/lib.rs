//! The code that runs on an AICore: the worker loop ([`worker`]) and the kernel library that it calls.
//!
//! A kernel is an `unsafe extern "C" fn(*const u64)`; [`library`] lists all of them and [`args`]
//! states the contract of their argument words. Every kernel has two layers: a safe function over
//! [`view::Vector`] and [`view::Matrix`] that does the arithmetic, and a wrapper that decodes the
//! words.
//!
//! Results are the same, bit for bit, on every target: the order of each sum is fixed by the shape
//! alone, there is no fused multiply-add and no call into a mathematics library. (The one exception
//! is the sign and payload of a NaN.)
#![no_std]

pub mod args;
pub mod attention;
pub mod call;
pub mod cholesky;
#[cfg(feature = "code")]
pub mod combine;
#[cfg(feature = "code")]
pub mod cost;
pub mod elementwise;
pub mod exp;
pub mod experts;
pub mod lanes;
pub mod layer;
pub mod library;
pub mod matmul;
pub mod newton;
pub mod parts;
pub mod probe;
pub mod reduce;
pub mod sqrt;
#[cfg(feature = "code")]
pub mod tile;
#[cfg(feature = "code")]
pub mod tile_task;
pub mod view;
pub mod worker;

pub use attention::update::UpdateFlags;
pub use call::call;
pub use library::{KernelFn, LibraryKernel, func};
#[cfg(feature = "code")]
pub use library::{LIBRARY, by_name};
pub use probe::{dag_value, mix, spin};

//! Tile kernels: built by a [`KernelBuilder`] or read from text, checked, printed, encoded.

mod builder;
mod encode;
mod lower;
pub(crate) mod parse;
mod text;
mod tile_kernel;

pub use builder::{KernelBuilder, KernelError, TileValue};
pub use tile_kernel::TileKernel;

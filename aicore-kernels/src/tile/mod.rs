//! Tile kernels: a small typed instruction set ([`op`]), and the **tile machine** that executes it, one instruction a tile.
//!
//! The host builds a kernel, or reads its text, and encodes it to bytes ([`bytes`]). The executing side accepts the bytes
//! once ([`Kernel::accept`]): every field is checked, types and shapes are derived again, and each value gets its slot in the
//! frame. [`Interpreter::run`] then executes the kernel on tensors ([`view::TileView`]); each access to a tensor is checked against the
//! tensor's memory.
//!
//! ```text
//! text, Python --builder--> Op, Op, ..  --bytes--> bytes --accept--> Kernel --Interpreter::run--> tensors, cycles
//! ```
//!
//! No floating-point result depends on the target: sums have a fixed order, products of `f32` are exact in the `f64` that they
//! are added in, and transcendental functions are polynomials of ours.
//!
//! Why it is so: `docs/decisions/tile-machine.md`.

pub(crate) mod arithmetic;
pub mod bytes;
mod call;
mod cause_words;
mod cycles;
pub mod dtype;
pub mod element;
mod elementwise;
mod extents;
pub mod fault;
mod frame;
#[cfg(target_arch = "x86_64")]
mod fused;
#[cfg(target_arch = "x86_64")]
mod in_place;
mod infer;
pub mod interpreter;
pub mod kernel;
#[cfg(target_arch = "x86_64")]
mod lines;
mod load;
pub mod math;
mod meet;
pub mod op;
mod operands;
pub mod param;
mod product;
mod reduce;
mod run;
mod select;
mod slices;
mod sort;
mod step;
pub mod view;
pub mod wide;

pub use call::Call;
pub use cause_words::CauseWords;
pub use dtype::DType;
pub use fault::{FaultCause, TileFault};
pub use infer::{Mistake, infer, spread};
pub use interpreter::Interpreter;
pub use kernel::{Kernel, Rejected};
pub use op::{Binary, Compare, Op, Reduce, Spread, TileType, Unary, ValueId};
pub use param::{Direction, Name, Param, ParamKind};
pub use step::limits;
pub use view::TileView;

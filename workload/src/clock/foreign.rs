//! Kernels whose bodies are elsewhere: machine code that was compiled from C++, say.
//!
//! The tile of every argument is in its tensor when the body is called; what the body does after that is its own affair.

use crate::kernel::TileKernel;
use pto_aicore_kernels::tile::{ParamKind, TileView};

use super::loop_scope::LoopScope;
use super::report::RunError;

/// The arguments of a task.
#[derive(Clone, Copy, Debug)]
pub struct ForeignCall<'c> {
    /// As one list: axes, the rows and columns that count of each tensor, the bits of the scalars.
    pub arguments: &'c [i64],
    /// How many of them are axes, rows and columns.
    pub axis_arguments: usize,
    /// The address of the first element of each tensor's tile.
    pub addresses: &'c [usize],
    /// The strides of its rows and columns, in elements.
    pub strides: &'c [[i64; 2]],
}

/// The body of a kernel.
pub trait Foreign {
    /// Runs; returns the cycles that the kernel reports.
    ///
    /// # Errors
    /// Why it did not run.
    fn run(&self, call: &ForeignCall) -> Result<u64, String>;
}

/// Runs the body of a task with this many axes; returns its cycles.
pub(super) fn run(
    body: &dyn Foreign,
    (kernel, axes): (&TileKernel, usize),
    (views, arguments): (&[TileView], &[i64]),
    scope: &LoopScope,
) -> Result<u64, RunError> {
    let failed = |message: String| RunError::Expression {
        scope: scope.clone(),
        message: format!("kernel {}: {message}", kernel.name()),
    };
    let tensors = kernel.params().iter().filter_map(|param| match param.kind {
        ParamKind::Tensor { tile, .. } => Some((param.name, tile.dtype)),
        ParamKind::Scalar(_) => None,
    });
    let mut addresses = Vec::with_capacity(views.len());
    for ((name, dtype), view) in tensors.zip(views) {
        let address = view.address(dtype);
        addresses.push(address.map_err(|cause| failed(format!("argument {name}: {cause}")))?);
    }
    let strides: Vec<[i64; 2]> = views.iter().map(TileView::strides).collect();
    let axis_arguments = axes + 2 * views.len();
    let call = ForeignCall { arguments, axis_arguments, addresses: &addresses, strides: &strides };
    body.run(&call).map_err(failed)
}

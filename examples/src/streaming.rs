//! What the programs with tensors share: tensors from orchestration words, their tiles, and tasks.

use pto_abi::limits::MAX_RANK;
use pto_abi::{Fault, GmAddr};
use pto_graph::{BuildError, ElementType, StreamBuilder, TensorTask, TensorView};

/// Elements of 4 bytes in a line. What several cores write stands in lines of their own: a core writes whole lines back.
pub(crate) const LINE: u64 = 16;

/// An extent, or a position, of a tensor.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: no tensor has it.
pub(crate) fn extent(size: u64) -> Result<u32, Fault> {
    u32::try_from(size).map_err(|_| Fault::BUILD_ORCH_ARGS)
}

/// A whole tensor of the host's, in row-major order.
///
/// # Errors
/// `BUILD_ORCH_ARGS`: no tensor has these extents.
pub(crate) fn dense(
    at: GmAddr,
    element: ElementType,
    shape: &[u64],
) -> Result<TensorView<'static>, Fault> {
    let mut extents = [0; MAX_RANK];
    let extents = extents.get_mut(..shape.len()).ok_or(Fault::BUILD_ORCH_ARGS)?;
    for (to, from) in extents.iter_mut().zip(shape) {
        *to = extent(*from)?;
    }
    Ok(TensorView::dense(at, element, extents))
}

/// [`dense`], of `f32`.
pub(crate) fn floats(at: GmAddr, shape: &[u64]) -> Result<TensorView<'static>, Fault> {
    dense(at, ElementType::F32, shape)
}

/// A part of one dimension: its start and its extent, as [`tiles`](crate::args::tiles) gives them.
pub(crate) fn part<'s>(
    view: TensorView<'s>,
    dim: usize,
    (start, len): (u64, u64),
) -> Result<TensorView<'s>, Fault> {
    Ok(view.slice(dim, extent(start)?, extent(len)?))
}

/// A tile of a matrix.
pub(crate) fn tile<'s>(
    matrix: TensorView<'s>,
    rows: (u64, u64),
    cols: (u64, u64),
) -> Result<TensorView<'s>, Fault> {
    part(part(matrix, 0, rows)?, 1, cols)
}

/// Submits a task of which the program needs no id.
///
/// # Errors
/// Those of [`StreamBuilder::submit_tensors`].
// Not inlined: programs are called with each kind of builder, and this is most of what they do.
#[inline(never)]
pub(crate) fn submit<G: StreamBuilder>(
    stream: &mut G,
    task: &TensorTask<'_>,
) -> Result<(), BuildError> {
    stream.submit_tensors(task)?;
    Ok(())
}

//! The graph of `leaky_relu`: one task for each tile, which waits for nothing.

use core::num::NonZeroU64;

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::{BuildError, GraphBuilder};

use crate::args::{check_elements, tiles};

/// Bytes of an element.
const F32: u64 = 4;
/// What negative elements are multiplied with.
pub const SLOPE: f32 = 0.0625;

crate::orch_args! {
    /// The words of `leaky_relu`; the addresses are those of `elements` `f32` each.
    pub struct Args {
        /// Input.
        x: GmAddr,
        /// Output.
        y: GmAddr,
        /// Elements of each tensor.
        elements: u64,
        /// Elements of a tile.
        tile: NonZeroU64,
    }
}

/// Builds the graph.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(graph.orch_args())?;
    check_elements(&[args.elements])?;
    for (start, n) in tiles(args.elements, args.tile) {
        let [x, y] = [args.x, args.y].map(|tensor| tensor.offset(start * F32));
        graph.submit(library::leaky_relu(x, SLOPE, y, n).task(), &[])?;
    }
    Ok(())
}

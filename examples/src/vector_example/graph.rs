//! The graph of `vector_example`. Per tile a diamond, all of it on vector cores:
//!
//! ```text
//!               .-> plus_1 = sum + 1 -.
//! sum = a + b --|                     |-> out = plus_1 * plus_2
//!               '-> plus_2 = sum + 2 -'
//! ```

use core::num::NonZeroU64;

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::{BuildError, GraphBuilder};

use crate::args::{check_elements, tiles};

/// Bytes of an element.
const F32: u64 = 4;
/// Tasks of one tile.
pub const TASKS_PER_TILE: u64 = 4;
/// Edges of one tile.
pub const EDGES_PER_TILE: u64 = 4;
/// Argument words of one tile: four kernels with four each.
pub const WORDS_PER_TILE: u64 = 16;

crate::orch_args! {
    /// The words of `vector_example`; the addresses are those of `elements` `f32` each.
    pub struct Args {
        /// Input.
        a: GmAddr,
        /// Input.
        b: GmAddr,
        /// Scratch: `a + b`.
        sum: GmAddr,
        /// Scratch: `a + b + 1`.
        plus_1: GmAddr,
        /// Scratch: `a + b + 2`.
        plus_2: GmAddr,
        /// Output.
        out: GmAddr,
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
        let at = |tensor: GmAddr| tensor.offset(start * F32);
        let (sum, plus_1, plus_2) = (at(args.sum), at(args.plus_1), at(args.plus_2));
        let add = library::add(at(args.a), at(args.b), sum, n);
        let add = graph.submit(add.task(), &[])?;
        let add_1 = graph.submit(library::add_scalar(sum, 1.0, plus_1, n).task(), &[add])?;
        let add_2 = graph.submit(library::add_scalar(sum, 2.0, plus_2, n).task(), &[add])?;
        let mul = library::mul(plus_1, plus_2, at(args.out), n);
        graph.submit(mul.task(), &[add_1, add_2])?;
    }
    Ok(())
}

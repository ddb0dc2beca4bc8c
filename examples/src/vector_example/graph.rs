//! The graph of `vector_example`. Per tile a diamond, all of it on vector cores:
//!
//! ```text
//!               .-> plus_1 = sum + 1 -.
//! sum = a + b --|                     |-> out = plus_1 * plus_2
//!               '-> plus_2 = sum + 2 -'
//! ```

use core::num::NonZeroU64;

use pto_abi::{CoreKind, FuncId, GmAddr, TaskId};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, GraphBuilder, TaskSpec};

use crate::args::{Word, check_elements, tiles};

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
        let at = |tensor: GmAddr| tensor.offset(start * F32).0;
        let (sum, plus_1, plus_2) = (at(args.sum), at(args.plus_1), at(args.plus_2));
        let add = vector(graph, func::ADD, &[at(args.a), at(args.b), sum, n], &[])?;
        let add_1 = vector(graph, func::ADD_SCALAR, &[sum, 1.0_f32.word(), plus_1, n], &[add])?;
        let add_2 = vector(graph, func::ADD_SCALAR, &[sum, 2.0_f32.word(), plus_2, n], &[add])?;
        vector(graph, func::MUL, &[plus_1, plus_2, at(args.out), n], &[add_1, add_2])?;
    }
    Ok(())
}

fn vector<G: GraphBuilder>(
    graph: &mut G,
    func_id: FuncId,
    args: &[u64],
    producers: &[TaskId],
) -> Result<TaskId, BuildError> {
    Ok(graph.submit(TaskSpec::new(func_id, CoreKind::AIV, args), producers)?)
}

//! The graph of `matmul`. A strip is `tile_m` rows of the result:
//!
//! ```text
//! per tile of a strip (AIC):  matmul -> matmul_acc -> .. -> matmul_acc     over K, into ab
//!                                                               |
//! per strip (AIV):            add: c = ab + d  <----------------'  from every tile of the strip
//! ```

use core::num::NonZeroU64;

use pto_abi::{CoreKind, GmAddr, TaskId};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, GraphBuilder, TaskSpec};

use crate::args::{Size, tiles};

/// Bytes of an element.
const F32: u64 = 4;
/// Argument words of `matmul` and `matmul_acc`.
pub const WORDS_PER_PRODUCT: u64 = 9;
/// Argument words of `add`.
pub const WORDS_PER_ADD: u64 = 4;

crate::orch_args! {
    /// The words of `matmul`; all matrices are `f32`, rows one after another.
    pub struct Args {
        /// Input, m by k.
        a: GmAddr,
        /// Input, k by n.
        b: GmAddr,
        /// Input, m by n.
        d: GmAddr,
        /// Scratch, m by n: `a @ b`.
        ab: GmAddr,
        /// Output, m by n.
        c: GmAddr,
        /// Rows of `a` and `c`.
        m: Size,
        /// Columns of `b` and `c`.
        n: Size,
        /// Columns of `a`, rows of `b`.
        k: Size,
        /// Rows of a strip.
        tile_m: NonZeroU64,
        /// Columns of a tile.
        tile_n: NonZeroU64,
        /// Depth of one product.
        tile_k: NonZeroU64,
    }
}

/// Builds the graph.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(graph.orch_args())?;
    let n = args.n.get();
    for (row, rows) in tiles(args.m.get(), args.tile_m) {
        let at = |matrix: GmAddr| matrix.offset(row * n * F32).0;
        let add = [at(args.ab), at(args.d), at(args.c), rows * n];
        let strip = graph.add_task(TaskSpec::new(func::ADD, CoreKind::AIV, &add))?;
        for (col, cols) in tiles(n, args.tile_n) {
            let tile = Tile { row, rows, col, cols };
            if let Some(last) = products(graph, &args, &tile)? {
                graph.add_edge(last, strip)?;
            }
        }
        graph.publish(strip)?;
    }
    Ok(())
}

/// A part of the result.
struct Tile {
    row: u64,
    rows: u64,
    col: u64,
    cols: u64,
}

/// Adds the products of one tile, each after the one before; returns the last.
fn products<G: GraphBuilder>(
    graph: &mut G,
    args: &Args,
    tile: &Tile,
) -> Result<Option<TaskId>, BuildError> {
    let (n, k) = (args.n.get(), args.k.get());
    let ab = args.ab.offset((tile.row * n + tile.col) * F32).0;
    let mut last: Option<TaskId> = None;
    for (start, depth) in tiles(k, args.tile_k) {
        let a = args.a.offset((tile.row * k + start) * F32).0;
        let b = args.b.offset((start * n + tile.col) * F32).0;
        let words = [a, b, ab, tile.rows, tile.cols, depth, k, n, n];
        let func_id = if last.is_none() { func::MATMUL } else { func::MATMUL_ACC };
        let task = TaskSpec::new(func_id, CoreKind::AIC, &words);
        last = Some(graph.submit(task, last.as_slice())?);
    }
    Ok(last)
}

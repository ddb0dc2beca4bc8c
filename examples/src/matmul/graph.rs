//! The graph of `matmul`. A strip is `tile_m` rows of the result:
//!
//! ```text
//! per tile of a strip (AIC):  matmul -> matmul_acc -> .. -> matmul_acc     over K, into ab
//!                                                               |
//! per strip (AIV):            add: c = ab + d  <----------------'  from every tile of the strip
//! ```

use core::num::NonZeroU64;

use pto_abi::{Fault, GmAddr, TaskId};
use pto_aicore_kernels::library;
use pto_graph::{BuildError, Chain, GraphBuilder, Link, Variation};

use crate::args::{Size, tiles};

/// Bytes of an element.
const F32: u64 = 4;
/// Argument words of `matmul` and `matmul_acc`.
pub const WORDS_PER_PRODUCT: u64 = 9;
/// Words of the chain of a tile: at most three links, of which one varies.
pub const WORDS_PER_CHAIN: u64 = 1 + 3 * (2 + WORDS_PER_PRODUCT) + 2;
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
        let at = |matrix: GmAddr| matrix.offset(row * n * F32);
        let add = library::add(at(args.ab), at(args.d), at(args.c), rows * n);
        let strip = graph.add_task(add.task())?;
        for (col, cols) in tiles(n, args.tile_n) {
            let tile = Tile { row, rows, col, cols };
            let last = products(graph, &args, &tile)?;
            graph.add_edge(last, strip)?;
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

/// Adds the products of one tile, which one core runs one after another; returns the last.
fn products<G: GraphBuilder>(
    graph: &mut G,
    args: &Args,
    tile: &Tile,
) -> Result<TaskId, BuildError> {
    let (n, k, depth) = (args.n.get(), args.k.get(), args.tile_k.get());
    let ab = args.ab.offset((tile.row * n + tile.col) * F32);
    let (rows, cols) = (tile.rows, tile.cols);
    let at = |start: u64| {
        let a = args.a.offset((tile.row * k + start) * F32);
        (a, args.b.offset((start * n + tile.col) * F32))
    };
    // The first product, those of whole tiles behind it, and the rest.
    let (whole, rest) = ((k / depth).saturating_sub(1), if k > depth { k % depth } else { 0 });
    let ((a, b), (next_a, next_b), (last_a, last_b)) = (at(0), at(depth), at(k - rest));
    let first = library::matmul(a, b, ab, rows, cols, depth.min(k), k, n, n);
    let next = library::matmul_acc(next_a, next_b, ab, rows, cols, depth, k, n, n);
    let last = library::matmul_acc(last_a, last_b, ab, rows, cols, rest, k, n, n);
    let moves = [step(0, depth), step(1, depth * n)];
    let times = u32::try_from(whole).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    let links = [
        Link::new(first.task()),
        Link::new(next.task()).times(times).varying(&moves),
        Link::new(last.task()),
    ];
    let links = match (times, rest) {
        (0, 0) => &links[..1],
        (0, _) => &[links[0], links[2]],
        (_, 0) => &links[..2],
        _ => &links[..],
    };
    Ok(graph.submit_chain(&Chain::new(links), &[])?)
}

/// An address that grows by so many elements.
fn step(arg: usize, elements: u64) -> Variation<'static> {
    Variation::by(arg, (elements * F32).cast_signed())
}

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
use pto_graph::call::Call;
use pto_graph::{BuildError, Chain, ChainTemplate, GraphBuilder, Link, Variation};

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
    let (n, sum) = (args.n.get(), Sum::of(&args)?);
    let mut whole = ChainTemplate::new();
    for (row, rows) in tiles(args.m.get(), args.tile_m) {
        let at = |matrix: GmAddr| matrix.offset(row * n * F32);
        let add = library::add(at(args.ab), at(args.d), at(args.c), rows * n);
        let strip = graph.add_task(add.task())?;
        for (col, cols) in tiles(n, args.tile_n) {
            let last = sum.submit(graph, &Tile { row, rows, col, cols }, &mut whole)?;
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

/// The sum over K of which each tile is made: a chain of products, which one core runs one after another.
struct Sum<'a> {
    args: &'a Args,
    /// Whole products after the first one.
    next: u32,
    /// Elements of K that are left after them.
    rest: u64,
}

impl<'a> Sum<'a> {
    fn of(args: &'a Args) -> Result<Self, Fault> {
        let (k, depth) = (args.k.get(), args.tile_k.get());
        let next = u32::try_from((k / depth).saturating_sub(1));
        let rest = if k > depth { k % depth } else { 0 };
        Ok(Self { args, next: next.map_err(|_| Fault::BUILD_ORCH_ARGS)?, rest })
    }

    /// Where in K each link begins: the first product, those after it, and the rest.
    fn starts(&self) -> impl Iterator<Item = u64> {
        let (k, depth) = (self.args.k.get(), self.args.tile_k.get());
        let next = (self.next > 0).then_some(depth);
        [Some(0), next, (self.rest > 0).then_some(k - self.rest)].into_iter().flatten()
    }

    /// The first arguments of the kernel that begins there: its parts of `a`, `b` and `ab`.
    fn addresses(&self, tile: &Tile, start: u64) -> [GmAddr; 3] {
        let (args, n, k) = (self.args, self.args.n.get(), self.args.k.get());
        let a = args.a.offset((tile.row * k + start) * F32);
        let b = args.b.offset((start * n + tile.col) * F32);
        [a, b, args.ab.offset((tile.row * n + tile.col) * F32)]
    }

    /// Submits the chain of a tile; returns its task. Those of whole tiles are of a template, because they differ in addresses only.
    fn submit<G: GraphBuilder>(
        &self,
        graph: &mut G,
        tile: &Tile,
        whole: &mut ChainTemplate,
    ) -> Result<TaskId, Fault> {
        let is_whole = (tile.rows, tile.cols) == (self.args.tile_m.get(), self.args.tile_n.get());
        if is_whole && whole.is_filled() {
            self.move_to(tile, whole)?;
            return graph.submit_template(whole, &[]);
        }
        let products = self.products(tile);
        let links = products.links(self.next);
        let chain = Chain::new(links.get(..self.starts().count()).unwrap_or(&links));
        if !is_whole {
            return graph.submit_chain(&chain, &[]);
        }
        graph.fill_template(whole, &chain)?;
        graph.submit_template(whole, &[])
    }

    /// The template is to be the chain of this tile.
    #[inline(never)]
    fn move_to(&self, tile: &Tile, whole: &mut ChainTemplate) -> Result<(), Fault> {
        for (link, start) in self.starts().enumerate() {
            for (arg, address) in self.addresses(tile, start).into_iter().enumerate() {
                whole.set(link, arg, address.0)?;
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn products(&self, tile: &Tile) -> Products {
        let (n, k, depth) = (self.args.n.get(), self.args.k.get(), self.args.tile_k.get());
        let adds = |start: u64, depth: u64| {
            let [a, b, ab] = self.addresses(tile, start);
            library::matmul_acc(a, b, ab, tile.rows, tile.cols, depth, k, n, n)
        };
        let [a, b, ab] = self.addresses(tile, 0);
        Products {
            first: library::matmul(a, b, ab, tile.rows, tile.cols, depth.min(k), k, n, n),
            next: adds(depth, depth),
            rest: adds(k - self.rest, self.rest),
            moves: [step(0, depth), step(1, depth * n)],
        }
    }
}

/// The kernels of a tile: the first product, one of those after it, and the rest.
struct Products {
    first: Call<u64, 9>,
    next: Call<u64, 9>,
    rest: Call<u64, 9>,
    /// From one of those after the first to the next.
    moves: [Variation<'static>; 2],
}

impl Products {
    /// The links of the chain; if `next` is zero, the rest is second. There may be fewer.
    fn links(&self, next: u32) -> [Link<'_>; 3] {
        let (first, rest) = (Link::new(self.first.task()), Link::new(self.rest.task()));
        if next == 0 {
            return [first, rest, rest];
        }
        [first, Link::new(self.next.task()).times(next).varying(&self.moves), rest]
    }
}

/// An address that grows by so many elements.
fn step(arg: usize, elements: u64) -> Variation<'static> {
    Variation::by(arg, (elements * F32).cast_signed())
}

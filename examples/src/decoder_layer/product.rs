//! A product whose sum is cut in pieces: a chain of kernels, of which the first overwrites a tile and the others add to it.

use core::num::NonZeroU64;

use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicore_kernels::library;
use pto_graph::call::Call;
use pto_graph::{BuildError, Chain, ChainTemplate, GraphBuilder, Link, TaskSpec, Variation};

use crate::paged_attention::graph::F32;
use crate::streaming::{StageTasks, extent};

/// A tile of `c = a @ b`, or of `c = a @ b + d`.
pub(super) struct Product {
    pub(super) a: GmAddr,
    pub(super) b: GmAddr,
    pub(super) c: GmAddr,
    pub(super) d: Option<GmAddr>,
    /// Rows, columns, and the elements of a sum.
    pub(super) size: [u64; 3],
    /// Distances between the rows of `a`, of `b`, of `c` and `d`.
    pub(super) ld: [u64; 3],
    /// Elements of a sum that one kernel adds.
    pub(super) piece: NonZeroU64,
}

/// The kernels of a product.
struct Pieces {
    first: First,
    /// Whole pieces after the first one.
    next: Call<u64, 9>,
    times: u32,
    varies: [Variation<'static>; 2],
    /// What is left.
    last: Option<Call<u64, 9>>,
}

/// Arguments of a first product that adds to another matrix.
const ADDS_WORDS: usize = 11;

enum First {
    Overwrites(Call<u64, 9>),
    Adds(Call<u64, ADDS_WORDS>),
}

impl First {
    const fn task(&self) -> TaskSpec<'_> {
        match self {
            Self::Overwrites(call) => call.task(),
            Self::Adds(call) => call.task(),
        }
    }
}

impl Product {
    /// Cuts it.
    fn pieces(&self) -> Result<Pieces, Fault> {
        let [_, _, k] = self.size;
        let piece = self.piece.get();
        let whole = (k / self.piece).saturating_sub(1);
        let rest = if k > piece { k % self.piece } else { 0 };
        let last = (rest > 0).then(|| self.adds(k - rest, rest));
        let by = |arg, elements: u64| Variation::by(arg, (elements * F32).cast_signed());
        Ok(Pieces {
            first: self.first(piece.min(k)),
            next: self.adds(piece, piece),
            times: extent(whole)?,
            varies: [by(0, piece), by(1, piece * self.ld[1])],
            last,
        })
    }

    fn first(&self, depth: u64) -> First {
        let &Self { a, b, c, d, size: [rows, cols, _], ld: [a_ld, b_ld, c_ld], .. } = self;
        match d {
            None => {
                First::Overwrites(library::matmul(a, b, c, rows, cols, depth, a_ld, b_ld, c_ld))
            }
            Some(d) => {
                let call =
                    library::matmul_add(a, b, d, c, rows, cols, depth, a_ld, b_ld, c_ld, c_ld);
                First::Adds(call)
            }
        }
    }

    /// Adds `depth` elements of the sum, from number `from` on.
    fn adds(&self, from: u64, depth: u64) -> Call<u64, 9> {
        let &Self { a, b, c, size: [rows, cols, _], ld: [a_ld, b_ld, c_ld], .. } = self;
        let (a, b) = (a.offset(from * F32), b.offset(from * b_ld * F32));
        library::matmul_acc(a, b, c, rows, cols, depth, a_ld, b_ld, c_ld)
    }
}

/// Products of a row of tiles: the chain of a tile is that of the first one, whose columns begin elsewhere. A narrower tile has a chain of its own.
pub(super) struct RowOfTiles {
    /// That of whole tiles, once there was one.
    template: ChainTemplate,
    /// Where the columns of the tile begin that the template is for, and how many these are.
    columns: (u64, u64),
}

impl RowOfTiles {
    pub(super) const fn new() -> Self {
        Self { template: ChainTemplate::new(), columns: (0, 0) }
    }

    /// Submits the products of the tile with these columns, to which alone `products` belong, as a task of the stage.
    pub(super) fn submit<G: GraphBuilder, const N: usize>(
        &mut self,
        graph: &mut G,
        columns: (u64, u64),
        products: [Product; N],
        (stage, after): (&mut StageTasks, &[TaskId]),
    ) -> Result<(), BuildError> {
        if self.template.is_filled() && self.columns.1 == columns.1 {
            self.move_to(columns)?;
            return stage.template(graph, &self.template, after);
        }
        let pieces = products.map(|product| product.pieces());
        let mut links = Links::none();
        for pieces in &pieces {
            links.add(pieces.as_ref().map_err(|fault| *fault)?);
        }
        if self.template.is_filled() {
            return stage.chain(graph, links.whole(), after);
        }
        graph.fill_template(&mut self.template, &Chain::new(links.whole()))?;
        self.columns = columns;
        stage.template(graph, &self.template, after)
    }

    /// The template is to be that of the tile with these columns.
    fn move_to(&mut self, columns: (u64, u64)) -> Result<(), Fault> {
        let elements = columns.0.wrapping_sub(self.columns.0);
        self.columns = columns;
        for link in 0..self.template.link_count() {
            // All matrices but the first one: those of `matmul` and `matmul_acc`, and of `matmul_add`, which has one more.
            let last = if self.template.arg_count(link) == ADDS_WORDS { 3 } else { 2 };
            for arg in 1..=last {
                self.template.advance(link, arg, elements.wrapping_mul(F32).cast_signed())?;
            }
        }
        Ok(())
    }
}

/// The links of one product, or of two.
struct Links<'p> {
    links: [Link<'p>; 6],
    count: usize,
}

impl<'p> Links<'p> {
    const fn none() -> Self {
        Self { links: [Link::new(NOTHING); 6], count: 0 }
    }

    fn whole(&self) -> &[Link<'p>] {
        self.links.get(..self.count).unwrap_or(&self.links)
    }

    /// The links of one more product: at most three.
    fn add(&mut self, pieces: &'p Pieces) {
        self.push(Link::new(pieces.first.task()));
        if pieces.times > 0 {
            let next = Link::new(pieces.next.task());
            self.push(next.times(pieces.times).varying(&pieces.varies));
        }
        if let Some(last) = &pieces.last {
            self.push(Link::new(last.task()));
        }
    }

    fn push(&mut self, link: Link<'p>) {
        if let Some(entry) = self.links.get_mut(self.count) {
            *entry = link;
        }
        self.count += 1;
    }
}

/// Fills the links that are not set yet.
const NOTHING: TaskSpec<'static> = TaskSpec::new(FuncId(0), CoreKind::AIC, &[]);

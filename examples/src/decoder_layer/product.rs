//! A product whose sum is cut in pieces: a chain of kernels, of which the first overwrites a tile and the others add to it.

use core::num::NonZeroU64;

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::call::Call;
use pto_graph::{BuildError, Link, TaskSpec, Variation};

use crate::paged_attention::graph::F32;
use crate::streaming::extent;

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
pub(super) struct Pieces {
    first: First,
    /// Whole pieces behind the first one.
    next: Call<u64, 9>,
    times: u32,
    varies: [Variation<'static>; 2],
    /// What is left.
    last: Option<Call<u64, 9>>,
}

enum First {
    Overwrites(Call<u64, 9>),
    Adds(Call<u64, 11>),
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
    pub(super) fn pieces(&self) -> Result<Pieces, BuildError> {
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

/// The links of one product, or of two.
pub(super) struct Links<'p> {
    links: [Link<'p>; 6],
    count: usize,
}

impl<'p> Links<'p> {
    pub(super) fn whole(&self) -> &[Link<'p>] {
        self.links.get(..self.count).unwrap_or(&self.links)
    }

    /// Those of another product behind these.
    pub(super) fn and(mut self, other: &Self) -> Self {
        for link in other.whole() {
            self.push(*link);
        }
        self
    }

    /// One more; there are at most three of a product.
    fn push(&mut self, link: Link<'p>) {
        if let Some(place) = self.links.get_mut(self.count) {
            *place = link;
        }
        self.count += 1;
    }
}

impl Pieces {
    pub(super) fn links(&self) -> Links<'_> {
        let mut links = Links { links: [Link::new(self.first.task()); 6], count: 1 };
        if self.times > 0 {
            let next = Link::new(self.next.task());
            links.push(next.times(self.times).varying(&self.varies));
        }
        if let Some(last) = &self.last {
            links.push(Link::new(last.task()));
        }
        links
    }
}

//! The graph of `paged_attention`. Per request, key-value head and block:
//!
//! ```text
//! qk (AIC) -> softmax_partial (AIV) -> pv (AIC) -> update (AIV)
//!                                                    ^      |
//!                          update of the block before'      '-> update of the next block
//! ```
//!
//! A *unit* is one such row of four tasks, with scratch of its own. Each kernel is a chain over some heads and blocks of one request:
//! one core runs it for all of them. Requests run side by side, those with long contexts first, because these take longest. The host says in which order that
//! is, and how long chains are, because it knows what kernels cost. What is left of a context after its whole runs comes after the whole runs of others, so
//! that the last chains are short. Context lengths and block numbers are read from GM.

use heapless::Vec;
use pto_abi::{Fault, GmAddr};
use pto_graph::{BuildError, GraphBuilder};

pub use super::row::BAD_BLOCK;
use super::row::{Cache, Cut, RequestHeads, Scratch};
pub(crate) use super::row::{F32, I32};
use crate::args::{Size, check_elements, tiles};

/// Tasks of one unit.
pub const TASKS_PER_UNIT: u64 = 4;
/// Argument words of one unit: qk, softmax, pv, update.
pub const WORDS_PER_UNIT: u64 = 9 + 9 + 9 + 12;
/// The builder's own error: the order names a request that there is not.
pub const BAD_ORDER: i32 = 3;
/// The builder's own error: a context length is not in 1 ..= `max_blocks * block_size`.
pub const BAD_CONTEXT_LEN: i32 = 1;

crate::orch_args! {
    /// The words of `paged_attention`.
    pub struct Args {
        /// `f32 [batch, kv_heads * rows, head_dim]`.
        q: GmAddr,
        /// `f32 [num_blocks, block_size, kv_heads, head_dim]`.
        k: GmAddr,
        /// As `k`.
        v: GmAddr,
        /// As `q`.
        out: GmAddr,
        /// `i32 [batch, max_blocks]`.
        block_table: GmAddr,
        /// `i32 [batch]`.
        context_lens: GmAddr,
        /// `i32 [batch]`: the requests in the order in which they are submitted.
        order: GmAddr,
        /// Scratch: scores, then probabilities, `f32 [units, rows, block_size]`.
        scores: GmAddr,
        /// Scratch: maxima, then sums, `f32 [units, 2, rows]`.
        block_stats: GmAddr,
        /// Scratch: `f32 [units, rows, head_dim]`.
        block_out: GmAddr,
        /// Scratch: running maxima, then sums, `f32 [batch, kv_heads, 2, rows]`.
        stats: GmAddr,
        /// Requests.
        batch: Size,
        /// Heads of the cache.
        kv_heads: Size,
        /// Query heads that share one head of the cache.
        rows: Size,
        /// Elements of a key, of a value and of a query.
        head_dim: Size,
        /// Tokens of a block.
        block_size: Size,
        /// Entries of a row of the block table.
        max_blocks: Size,
        /// Blocks of the cache.
        num_blocks: u64,
        /// What scores are multiplied by.
        scale: f32,
        /// Kernels that one core runs in one dispatch, about.
        chained: Size,
    }
}

impl Args {
    /// No tensor is larger than GM could be, so that no offset computed here overflows.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let pairs = [self.batch.get(), self.kv_heads.get()];
        let [rows, dim, size] = [self.rows, self.head_dim, self.block_size].map(Size::get);
        check_elements(&[pairs[0], self.max_blocks.get(), size])?;
        check_elements(&[self.num_blocks, size, pairs[1], dim])?;
        check_elements(&[pairs[0], pairs[1], self.max_blocks.get(), rows, size.max(dim).max(2)])
    }
}

/// Builds the graph.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, [`BAD_CONTEXT_LEN`], [`BAD_BLOCK`], and those of [`GraphBuilder`].
pub fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(graph.orch_args())?;
    args.check()?;
    let cut = Cut::of(args.chained, args.kv_heads);
    let cache = args.rows_cache(cut.run);
    let (mut rows, mut unit): (Vec<RequestHeads<'_>, ROWS>, _) = (Vec::new(), 0);
    for position in 0..args.batch.get() {
        let request = args.request(graph, position)?;
        let tokens = args.tokens(graph, request)?;
        for (kv_head, heads) in tiles(args.kv_heads.get(), cut.heads) {
            if rows.is_full() {
                submit(graph, &rows, cut.run)?;
                rows.clear();
            }
            let row = args.row(&cache, (request, kv_head, heads), (unit, tokens))?;
            unit += heads * row.blocks();
            // It has room.
            rows.push(row).unwrap_or_default();
        }
    }
    submit(graph, &rows, cut.run)
}

/// Rows that are submitted together.
const ROWS: usize = 32;

/// Submits rows: first the whole runs of all of them, and then what is left of them, less than a run each, the longest first. Chains that are submitted
/// last end last, and so they are to be short.
#[inline(never)]
fn submit<G: GraphBuilder>(
    graph: &mut G,
    rows: &[RequestHeads<'_>],
    run: usize,
) -> Result<(), BuildError> {
    let mut updates = [None; ROWS];
    for (row, update) in rows.iter().zip(&mut updates) {
        *update = row.submit_blocks(graph, 0..row.blocks() - row.rest(), &[], None)?;
    }
    for rest in (1..run as u64).rev() {
        for (row, update) in rows.iter().zip(&updates).filter(|(row, _)| row.rest() == rest) {
            let end = row.blocks();
            row.submit_blocks(graph, end - rest..end, &[], *update)?;
        }
    }
    Ok(())
}

impl Args {
    /// Tokens of a request.
    fn tokens<G: GraphBuilder>(&self, graph: &G, request: u64) -> Result<u64, BuildError> {
        let tokens = graph.read_u32(self.context_lens.offset(request * I32))?.into();
        let is_usable = tokens > 0 && tokens <= self.max_blocks.get() * self.block_size.get();
        if is_usable { Ok(tokens) } else { Err(BuildError::Failed(BAD_CONTEXT_LEN)) }
    }

    /// The request that is submitted at this index.
    fn request<G: GraphBuilder>(&self, graph: &G, position: u64) -> Result<u64, BuildError> {
        let request = graph.read_u32(self.order.offset(position * I32))?.into();
        if request < self.batch.get() { Ok(request) } else { Err(BuildError::Failed(BAD_ORDER)) }
    }

    fn rows_cache(&self, run: usize) -> Cache {
        let &Self { k, v, kv_heads, rows, head_dim, block_size, num_blocks, scale, .. } = self;
        Cache { k, v, kv_heads, rows, head_dim, block_size, num_blocks, scale, run }
    }

    /// Some heads of one request, whose first unit has this number.
    fn row<'c>(
        &self,
        cache: &'c Cache,
        (request, kv_head, heads): (u64, u64, u64),
        (unit, tokens): (u64, u64),
    ) -> Result<RequestHeads<'c>, Fault> {
        let (rows, dim, size) = (self.rows.get(), self.head_dim.get(), self.block_size.get());
        let pair = request * self.kv_heads.get() + kv_head;
        let at = |tensor: GmAddr, element: u64| tensor.offset(element * F32);
        let scratch = Scratch {
            scores: at(self.scores, unit * rows * size),
            stats: at(self.block_stats, unit * 2 * rows),
            new: at(self.block_out, unit * rows * dim),
            running: at(self.stats, pair * 2 * rows),
        };
        let (q, out) = (at(self.q, pair * rows * dim), at(self.out, pair * rows * dim));
        let table = self.block_table.offset(request * self.max_blocks.get() * I32);
        let heads = usize::try_from(heads).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
        Ok(RequestHeads { cache, q, out, kv_head, heads, tokens, table, scratch })
    }
}

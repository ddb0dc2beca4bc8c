//! The graph of `paged_attention`. Per request, key-value head and block:
//!
//! ```text
//! qk (AIC) -> softmax_partial (AIV) -> pv (AIC) -> update (AIV)
//!                                                    ^      |
//!                          update of the block before'      '-> update of the next block
//! ```
//!
//! A *unit* is one such row of four tasks, with scratch of its own, so that the blocks of one request run side
//! by side and only the updates wait for each other. Context lengths and block numbers are read from GM.

use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicore_kernels::{UpdateFlags, func};
use pto_graph::{BuildError, GraphBuilder, TaskSpec};

use crate::args::{Size, Word, check_elements, tiles};

/// Bytes of an element.
const F32: u64 = 4;
/// Bytes of an entry of a table.
pub(crate) const I32: u64 = 4;
/// Tasks of one unit.
pub const TASKS_PER_UNIT: u64 = 4;
/// Argument words of one unit: qk, softmax, pv, update.
pub const WORDS_PER_UNIT: u64 = 9 + 9 + 9 + 12;
/// The builder's own error: a context length is not in 1 ..= `max_blocks * block_size`.
pub const BAD_CONTEXT_LEN: i32 = 1;
/// The builder's own error: a block number is not below `num_blocks`.
pub const BAD_BLOCK: i32 = 2;

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
    let mut unit = 0;
    for request in 0..args.batch.get() {
        let tokens = graph.read_u32(args.context_lens.offset(request * I32))?.into();
        if tokens == 0 || tokens > args.max_blocks.get() * args.block_size.get() {
            return Err(BuildError::Failed(BAD_CONTEXT_LEN));
        }
        for kv_head in 0..args.kv_heads.get() {
            let mut row = Row { args: &args, request, kv_head, tokens, last: None };
            unit = row.build(graph, unit)?;
        }
    }
    Ok(())
}

/// One request and head of the cache: a chain of updates over the blocks of its context.
struct Row<'a> {
    args: &'a Args,
    request: u64,
    kv_head: u64,
    tokens: u64,
    last: Option<TaskId>,
}

impl Row<'_> {
    /// Adds the units of all blocks, numbered from `unit`; returns the number after the last.
    fn build<G: GraphBuilder>(&mut self, graph: &mut G, mut unit: u64) -> Result<u64, BuildError> {
        let size = self.args.block_size.non_zero();
        for (index, (start, tokens)) in (0_u64..).zip(tiles(self.tokens, size)) {
            let block = self.block(graph, index)?;
            let mut flags = UpdateFlags::empty();
            flags.set(UpdateFlags::FIRST, start == 0);
            flags.set(UpdateFlags::LAST, start + tokens == self.tokens);
            self.unit(graph, &Unit { number: unit, block, tokens, flags })?;
            unit += 1;
        }
        Ok(unit)
    }

    /// Where in the cache the request's block `index` is.
    fn block<G: GraphBuilder>(&self, graph: &G, index: u64) -> Result<u64, BuildError> {
        let entry = self.request * self.args.max_blocks.get() + index;
        let block = graph.read_u32(self.args.block_table.offset(entry * I32))?.into();
        if block < self.args.num_blocks { Ok(block) } else { Err(BuildError::Failed(BAD_BLOCK)) }
    }

    fn unit<G: GraphBuilder>(&mut self, graph: &mut G, unit: &Unit) -> Result<(), BuildError> {
        let args = self.args;
        let (rows, dim, size) = (args.rows.get(), args.head_dim.get(), args.block_size.get());
        let ld = args.kv_heads.get() * dim;
        let pair = self.request * args.kv_heads.get() + self.kv_head;
        let at = |tensor: GmAddr, element: u64| tensor.offset(element * F32).0;
        let cached = (unit.block * size * args.kv_heads.get() + self.kv_head) * dim;
        let (q, out) = (at(args.q, pair * rows * dim), at(args.out, pair * rows * dim));
        let scores = at(args.scores, unit.number * rows * size);
        let stats = args.block_stats.offset(unit.number * 2 * rows * F32);
        let (max, sum) = (stats.0, stats.offset(rows * F32).0);
        let new = at(args.block_out, unit.number * rows * dim);
        let running = args.stats.offset(pair * 2 * rows * F32);
        let (run_max, run_sum) = (running.0, running.offset(rows * F32).0);
        let n = unit.tokens;

        let words = [q, at(args.k, cached), scores, rows, n, dim, dim, ld, size];
        let qk = cube(graph, func::ATTENTION_QK, &words, &[])?;
        let words = [scores, scores, max, sum, rows, n, size, size, args.scale.word()];
        let softmax = vector(graph, func::ATTENTION_SOFTMAX_PARTIAL, &words, &[qk])?;
        let words = [scores, at(args.v, cached), new, rows, n, dim, size, ld, dim];
        let pv = cube(graph, func::ATTENTION_PV, &words, &[softmax])?;
        // The output is its own accumulator; the last update divides it in place.
        let flags = unit.flags.bits();
        let words = [max, sum, new, run_max, run_sum, out, out, rows, dim, dim, dim, flags];
        let task = TaskSpec::new(func::ATTENTION_UPDATE, CoreKind::AIV, &words);
        let update = match self.last {
            Some(last) => graph.submit(task, &[pv, last])?,
            None => graph.submit(task, &[pv])?,
        };
        self.last = Some(update);
        Ok(())
    }
}

/// One block of one [`Row`].
struct Unit {
    number: u64,
    block: u64,
    tokens: u64,
    flags: UpdateFlags,
}

fn cube<G: GraphBuilder>(
    graph: &mut G,
    func_id: FuncId,
    args: &[u64],
    producers: &[TaskId],
) -> Result<TaskId, BuildError> {
    Ok(graph.submit(TaskSpec::new(func_id, CoreKind::AIC, args), producers)?)
}

fn vector<G: GraphBuilder>(
    graph: &mut G,
    func_id: FuncId,
    args: &[u64],
    producers: &[TaskId],
) -> Result<TaskId, BuildError> {
    Ok(graph.submit(TaskSpec::new(func_id, CoreKind::AIV, args), producers)?)
}

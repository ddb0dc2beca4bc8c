//! Some heads of the cache of one request as chains: a kernel over the blocks of a context, for up to [`HEADS`] heads, is one
//! dispatch.
//!
//! ```text
//! blocks      0  1  2  ..  run-1 | run ..
//! qk          one core           | another core
//! softmax     one core           | ..
//! pv          one core           |
//! update      one core  -------> | behind those before
//! ```

use core::num::NonZeroU64;

use pto_abi::{GmAddr, TaskId};
use pto_aicore_kernels::{UpdateFlags, library};
use pto_graph::call::Call;
use pto_graph::{BuildError, Chain, GraphBuilder, Link, TaskSpec, Variation};

use crate::args::{Size, tiles};
/// Bytes of an element.
pub(crate) const F32: u64 = 4;

/// Bytes of an entry of a table.
pub(crate) const I32: u64 = 4;
/// The builder's own error: a block number is not below `num_blocks`.
pub const BAD_BLOCK: i32 = 2;

/// Heads of one row, at most: what is built and dispatched once for some heads costs a part.
pub(crate) const HEADS: usize = 4;
/// Blocks of a run, at most.
pub(crate) const RUN: usize = 16;

/// How the kernels of a row are cut in chains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Heads of a row.
    pub(crate) heads: NonZeroU64,
    /// Blocks of a run, at most [`RUN`].
    pub(crate) run: usize,
}

impl Cut {
    /// Chains of about so many kernels: those of the heads first, which share words, and then of some blocks.
    pub(crate) fn of(chained: Size, kv_heads: Size) -> Self {
        let heads = chained.get().min(kv_heads.get()).min(HEADS as u64);
        let heads = NonZeroU64::new(heads).unwrap_or(NonZeroU64::MIN);
        let run = usize::try_from(chained.get() / heads).unwrap_or(RUN).clamp(1, RUN);
        Self { heads, run }
    }

    /// The same where there are more cores than heads.
    pub(crate) fn of_one_head(chained: Size) -> Self {
        Self::of(chained, Size::ONE)
    }
}

/// The cache, and what is the same for all rows.
pub(crate) struct Cache {
    /// `f32 [num_blocks, block_size, kv_heads, head_dim]`.
    pub(crate) k: GmAddr,
    /// As `k`.
    pub(crate) v: GmAddr,
    /// Heads of the cache.
    pub(crate) kv_heads: Size,
    /// Query heads that share one head of the cache.
    pub(crate) rows: Size,
    /// Elements of a key, of a value and of a query.
    pub(crate) head_dim: Size,
    /// Tokens of a block.
    pub(crate) block_size: Size,
    /// Blocks of the cache.
    pub(crate) num_blocks: u64,
    /// What scores are multiplied by.
    pub(crate) scale: f32,
    /// Blocks of a run, at most [`RUN`].
    pub(crate) run: usize,
}

/// Memory for the units of one row: the heads of the first block, then those of the next.
#[derive(Clone, Copy)]
pub(crate) struct Scratch {
    /// Scores, then probabilities, `f32 [units, rows, block_size]`.
    pub(crate) scores: GmAddr,
    /// Maxima, then sums, `f32 [units, 2, rows]`.
    pub(crate) stats: GmAddr,
    /// `f32 [units, rows, head_dim]`.
    pub(crate) new: GmAddr,
    /// Running maxima, then sums, `f32 [heads, 2, rows]`.
    pub(crate) running: GmAddr,
}

impl Scratch {
    /// The memory from a unit on, which belongs to this head.
    fn from(self, (unit, head): (u64, u64), cache: &Cache) -> Self {
        let [scores, stats, new] = cache.unit();
        let skip = |at: GmAddr, elements: u64| at.offset(unit * elements * F32);
        Self {
            scores: skip(self.scores, scores),
            stats: skip(self.stats, stats),
            new: skip(self.new, new),
            running: self.running.offset(head * stats * F32),
        }
    }
}

impl Cache {
    /// Elements of one unit: scores, statistics, result.
    const fn unit(&self) -> [u64; 3] {
        let (rows, dim, size) = (self.rows.get(), self.head_dim.get(), self.block_size.get());
        [rows * size, 2 * rows, rows * dim]
    }

    /// The first element of a head in a block of the cache.
    const fn element(&self, block: u64, kv_head: u64) -> u64 {
        (block * self.block_size.get() * self.kv_heads.get() + kv_head) * self.head_dim.get()
    }
}

/// Heads of the cache of one request.
pub(crate) struct Row<'a> {
    pub(crate) cache: &'a Cache,
    /// `f32 [heads, rows, head_dim]`.
    pub(crate) q: GmAddr,
    /// As `q`.
    pub(crate) out: GmAddr,
    /// The first head.
    pub(crate) kv_head: u64,
    /// How many, at most [`HEADS`].
    pub(crate) heads: usize,
    /// Tokens of the context.
    pub(crate) tokens: u64,
    /// The request's row of the block table.
    pub(crate) table: GmAddr,
    pub(crate) scratch: Scratch,
}

impl Row<'_> {
    /// Submits the chains of all blocks, which wait for `after`; returns how many blocks there are, and the last update.
    // A call of its own: what it keeps of a run stands on the stack of no other builder.
    #[inline(never)]
    pub(crate) fn submit<G: GraphBuilder>(
        &self,
        graph: &mut G,
        after: &[TaskId],
    ) -> Result<(u64, Option<TaskId>), BuildError> {
        let (mut run, mut blocks, mut last) = (Run::default(), 0, None);
        for (start, tokens) in tiles(self.tokens, self.cache.block_size.non_zero()) {
            let mut flags = UpdateFlags::empty();
            flags.set(UpdateFlags::FIRST, start == 0);
            flags.set(UpdateFlags::LAST, start + tokens == self.tokens);
            run.push(self.block(graph, blocks)?, tokens, flags);
            blocks += 1;
            if run.len == self.cache.run.min(RUN) || flags.contains(UpdateFlags::LAST) {
                last = Some(self.run(graph, &run, (after, last))?);
                run = Run { first: blocks, ..Run::default() };
            }
        }
        Ok((blocks, last))
    }

    /// Where in the cache block `index` of the context begins, in elements.
    fn block<G: GraphBuilder>(&self, graph: &G, index: u64) -> Result<u64, BuildError> {
        let block = graph.read_u32(self.table.offset(index * I32))?.into();
        if block < self.cache.num_blocks {
            Ok(self.cache.element(block, self.kv_head))
        } else {
            Err(BuildError::Failed(BAD_BLOCK))
        }
    }

    /// Submits a run: a chain of each kernel over its blocks. The updates come after those of the run before.
    fn run<G: GraphBuilder>(
        &self,
        graph: &mut G,
        run: &Run,
        (after, last): (&[TaskId], Option<TaskId>),
    ) -> Result<TaskId, BuildError> {
        let scored = self.score(graph, run, after)?;
        let weighed = self.weigh(graph, run, scored)?;
        let summed = self.sum(graph, run, weighed)?;
        let after = [summed, last.unwrap_or(summed)];
        self.update(graph, run, after.get(..1 + usize::from(last.is_some())).unwrap_or(&after))
    }

    /// A unit: this head in a block of the run, which has so many tokens.
    fn unit(&self, run: &Run, (block, head): (usize, usize), tokens: u64) -> Unit<'_> {
        let (cache, head) = (self.cache, head as u64);
        let own = |at: GmAddr| at.offset(head * cache.rows.get() * cache.head_dim.get() * F32);
        let number = (run.first + block as u64) * self.heads as u64 + head;
        let (q, out) = (own(self.q), own(self.out));
        let scratch = self.scratch.from((number, head), cache);
        let element = run.cached.get(block).copied().unwrap_or(0) + head * cache.head_dim.get();
        let flags = run.flags.get(block).copied().unwrap_or(0);
        Unit { cache, q, out, scratch, element, tokens, flags }
    }

    /// A word for each unit of the run, block by block.
    // A function of its own, of which there is one for all columns and all builders: images that are built for size have no room for more.
    #[inline(never)]
    fn column(&self, run: &Run, word: fn(&Unit<'_>) -> u64) -> Column {
        let (mut words, mut count) = ([0; RUN * HEADS], 0);
        for block in 0..run.len {
            let tokens = run.tokens_of(block, self.cache);
            for head in 0..self.heads {
                if let Some(place) = words.get_mut(count) {
                    *place = word(&self.unit(run, (block, head), tokens));
                }
                count += 1;
            }
        }
        Column { words, count }
    }

    /// Submits a chain of a kernel over the units of the run, block by block.
    fn chain<G: GraphBuilder>(
        &self,
        graph: &mut G,
        (run, task): (&Run, TaskSpec<'_>),
        varies: &[Variation<'_>],
        after: &[TaskId],
    ) -> Result<TaskId, BuildError> {
        let times = u32::try_from(run.len * self.heads).unwrap_or(0);
        let links = [Link::new(task).times(times).varying(varies)];
        Ok(graph.submit_chain(&Chain::new(&links), after)?)
    }

    fn score<G: GraphBuilder>(
        &self,
        graph: &mut G,
        run: &Run,
        after: &[TaskId],
    ) -> Result<TaskId, BuildError> {
        let [scores, ..] = self.cache.unit().map(step);
        let queries = self.column(run, |unit| unit.q.0);
        let keys = self.column(run, |unit| unit.in_cache(unit.cache.k).0);
        let tokens = self.column(run, |unit| unit.tokens);
        let varies = [
            Variation::by(2, scores),
            Variation::of(0, queries.words()),
            Variation::of(1, keys.words()),
            Variation::of(4, tokens.words()),
        ];
        let qk = self.first(run).qk();
        self.chain(graph, (run, qk.task()), &varies, after)
    }

    fn weigh<G: GraphBuilder>(
        &self,
        graph: &mut G,
        run: &Run,
        scored: TaskId,
    ) -> Result<TaskId, BuildError> {
        let [scores, stats, _] = self.cache.unit().map(step);
        let tokens = self.column(run, |unit| unit.tokens);
        let varies = [
            Variation::by(0, scores),
            Variation::by(1, scores),
            Variation::by(2, stats),
            Variation::by(3, stats),
            Variation::of(5, tokens.words()),
        ];
        let softmax = self.first(run).softmax();
        self.chain(graph, (run, softmax.task()), &varies, &[scored])
    }

    fn sum<G: GraphBuilder>(
        &self,
        graph: &mut G,
        run: &Run,
        weighed: TaskId,
    ) -> Result<TaskId, BuildError> {
        let [scores, _, new] = self.cache.unit().map(step);
        let values = self.column(run, |unit| unit.in_cache(unit.cache.v).0);
        let tokens = self.column(run, |unit| unit.tokens);
        let varies = [
            Variation::by(0, scores),
            Variation::by(2, new),
            Variation::of(1, values.words()),
            Variation::of(4, tokens.words()),
        ];
        let pv = self.first(run).pv();
        self.chain(graph, (run, pv.task()), &varies, &[weighed])
    }

    fn update<G: GraphBuilder>(
        &self,
        graph: &mut G,
        run: &Run,
        after: &[TaskId],
    ) -> Result<TaskId, BuildError> {
        let [_, stats, new] = self.cache.unit().map(step);
        let maxima = self.column(run, |unit| unit.scratch.running.0);
        let sums = self.column(run, |unit| unit.scratch.running.0 + unit.cache.rows.get() * F32);
        let outs = self.column(run, |unit| unit.out.0);
        let flags = self.column(run, |unit| unit.flags);
        let varies = [
            Variation::by(0, stats),
            Variation::by(1, stats),
            Variation::by(2, new),
            Variation::of(3, maxima.words()),
            Variation::of(4, sums.words()),
            Variation::of(5, outs.words()),
            Variation::of(6, outs.words()),
            Variation::of(11, flags.words()),
        ];
        let update = self.first(run).update();
        self.chain(graph, (run, update.task()), &varies, after)
    }

    /// The first unit of a run.
    fn first(&self, run: &Run) -> Unit<'_> {
        self.unit(run, (0, 0), run.tokens_of(0, self.cache))
    }
}

/// A word for each unit of a run.
struct Column {
    words: [u64; RUN * HEADS],
    count: usize,
}

impl Column {
    fn words(&self) -> &[u64] {
        self.words.get(..self.count).unwrap_or(&self.words)
    }
}

/// One head in one block: where its tensors are.
struct Unit<'c> {
    cache: &'c Cache,
    q: GmAddr,
    out: GmAddr,
    scratch: Scratch,
    /// Where its keys, and its values, begin.
    element: u64,
    tokens: u64,
    /// Of its update.
    flags: u64,
}

impl Unit<'_> {
    /// Rows, elements of a head, tokens of a block, and the distance between tokens in the cache.
    const fn sizes(&self) -> [u64; 4] {
        let cache = self.cache;
        let (rows, dim, size) = (cache.rows.get(), cache.head_dim.get(), cache.block_size.get());
        [rows, dim, size, cache.kv_heads.get() * dim]
    }

    const fn in_cache(&self, cache: GmAddr) -> GmAddr {
        cache.offset(self.element * F32)
    }

    fn qk(&self) -> Call<u64, 9> {
        let [rows, dim, size, ld] = self.sizes();
        let (k, tokens) = (self.in_cache(self.cache.k), self.tokens);
        library::attention_qk(self.q, k, self.scratch.scores, rows, tokens, dim, dim, ld, size)
    }

    /// The probabilities replace the scores.
    fn softmax(&self) -> Call<u64, 9> {
        let [rows, _, size, _] = self.sizes();
        let Scratch { scores, stats: max, .. } = self.scratch;
        let (sum, scale, tokens) = (max.offset(rows * F32), self.cache.scale, self.tokens);
        library::attention_softmax_partial(
            scores, scores, max, sum, rows, tokens, size, size, scale,
        )
    }

    fn pv(&self) -> Call<u64, 9> {
        let [rows, dim, size, ld] = self.sizes();
        let (v, tokens) = (self.in_cache(self.cache.v), self.tokens);
        let Scratch { scores, new, .. } = self.scratch;
        library::attention_pv(scores, v, new, rows, tokens, dim, size, ld, dim)
    }

    /// The output is its own accumulator; the last update divides it in place.
    fn update(&self) -> Call<u64, 12> {
        let ([rows, dim, ..], out) = (self.sizes(), self.out);
        let Scratch { stats: max, new, running, .. } = self.scratch;
        let [sum, run_sum] = [max, running].map(|at| at.offset(rows * F32));
        let flags = self.flags;
        library::attention_update(
            max, sum, new, running, run_sum, out, out, rows, dim, dim, dim, flags,
        )
    }
}

/// Bytes of so many elements, as a step.
const fn step(elements: u64) -> i64 {
    // The arguments' check has bounded every tensor.
    (elements * F32).cast_signed()
}

/// Some blocks of one [`Row`], side by side. All but the last one are whole.
#[derive(Default)]
struct Run {
    /// The number of the first one.
    first: u64,
    len: usize,
    /// Of each block: where it begins in the cache, in elements; the flags of its update.
    cached: [u64; RUN],
    flags: [u64; RUN],
    /// Tokens of the last one.
    tokens: u64,
}

impl Run {
    /// Takes one more block; there is room.
    fn push(&mut self, cached: u64, tokens: u64, flags: UpdateFlags) {
        let columns = [&mut self.cached, &mut self.flags];
        for (column, word) in columns.into_iter().zip([cached, flags.bits()]) {
            if let Some(place) = column.get_mut(self.len) {
                *place = word;
            }
        }
        self.tokens = tokens;
        self.len += 1;
    }

    /// Tokens of a block.
    const fn tokens_of(&self, block: usize, cache: &Cache) -> u64 {
        if block + 1 == self.len { self.tokens } else { cache.block_size.get() }
    }
}

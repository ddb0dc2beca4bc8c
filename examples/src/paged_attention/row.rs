//! Some heads of the cache of one request as chains: a kernel over the blocks of a context, for up to [`HEADS`] heads, is one
//! dispatch.
//!
//! ```text
//! blocks      0  1  2  ..  run-1 | run ..
//! qk          one core           | another core
//! softmax     one core           | ..
//! pv          one core           |
//! update      one core  -------> | after those before
//! ```

use core::num::NonZeroU64;
use core::ops::Range;

use pto_abi::{Fault, GmAddr, TaskId};
use pto_aicore_kernels::{UpdateFlags, library};
use pto_graph::call::Call;
use pto_graph::{BuildError, Chain, GraphBuilder, Link, TaskSpec, Variation};

use crate::args::Size;
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
    /// The memory from a unit on.
    fn from(self, unit: u64, cache: &Cache) -> Self {
        let [scores, stats, new] = cache.unit();
        let skip = |at: GmAddr, elements: u64| at.offset(unit * elements * F32);
        Self {
            scores: skip(self.scores, scores),
            stats: skip(self.stats, stats),
            new: skip(self.new, new),
            running: self.running,
        }
    }
}

impl Cache {
    /// Elements of one unit: scores, statistics, result.
    const fn unit(&self) -> [u64; 3] {
        let (rows, dim, size) = (self.rows.get(), self.head_dim.get(), self.block_size.get());
        [rows * size, 2 * rows, rows * dim]
    }

    /// Elements of the queries of a head.
    const fn query(&self) -> u64 {
        self.rows.get() * self.head_dim.get()
    }

    /// The first element of a head in a block of the cache.
    const fn element(&self, block: u64, kv_head: u64) -> u64 {
        (block * self.block_size.get() * self.kv_heads.get() + kv_head) * self.head_dim.get()
    }
}

/// The heads of one request, with their cache.
pub(crate) struct RequestHeads<'a> {
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

/// A kernel over the units of a run: its first call, and how the others differ from it.
struct OfRun<'r, const ARGS: usize, const VARIES: usize> {
    call: Call<u64, ARGS>,
    varies: [Variation<'r>; VARIES],
}

impl RequestHeads<'_> {
    /// Submits the chains of all blocks, which wait for `after`; returns the last update.
    pub(crate) fn submit<G: GraphBuilder>(
        &self,
        graph: &mut G,
        after: &[TaskId],
    ) -> Result<Option<TaskId>, BuildError> {
        self.submit_blocks(graph, 0..self.blocks(), after, None)
    }

    /// Submits the chains of these blocks, the first of which begins a run. They wait for `after`, and the updates for `last`, the last one of the blocks
    /// before. Returns the last update.
    // A function of its own, so that its data is on the stack of no other builder.
    #[inline(never)]
    pub(crate) fn submit_blocks<G: GraphBuilder>(
        &self,
        graph: &mut G,
        blocks: Range<u64>,
        after: &[TaskId],
        mut last: Option<TaskId>,
    ) -> Result<Option<TaskId>, BuildError> {
        let size = self.cache.block_size.get();
        let mut run = BlockRange { first: blocks.start, ..BlockRange::default() };
        for block in blocks.clone() {
            let left = self.tokens - block * size;
            let mut flags = UpdateFlags::empty();
            flags.set(UpdateFlags::FIRST, block == 0);
            flags.set(UpdateFlags::LAST, left <= size);
            run.push(self.cache, self.block(graph, block)?, (left.min(size), flags));
            if run.len == self.cache.run || block + 1 == blocks.end {
                last = Some(self.run(graph, &run, (after, last))?);
                run = BlockRange { first: block + 1, ..BlockRange::default() };
            }
        }
        Ok(last)
    }

    /// Blocks of the context.
    pub(crate) fn blocks(&self) -> u64 {
        self.tokens.div_ceil(self.cache.block_size.get())
    }

    /// Blocks after its whole runs.
    #[inline(never)]
    pub(crate) fn rest(&self) -> u64 {
        self.blocks().checked_rem(self.cache.run as u64).unwrap_or(0)
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
        run: &BlockRange,
        (after, last): (&[TaskId], Option<TaskId>),
    ) -> Result<TaskId, Fault> {
        let OfRun { call, varies } = self.scores(run);
        let scored = self.chain(graph, (run, call.task()), &varies, after)?;
        let OfRun { call, varies } = self.weights(run);
        let weighed = self.chain(graph, (run, call.task()), &varies, &[scored])?;
        let OfRun { call, varies } = self.sums(run);
        let summed = self.chain(graph, (run, call.task()), &varies, &[weighed])?;
        let OfRun { call, varies } = self.updates(run);
        let after = [summed, last.unwrap_or(summed)];
        let after = after.get(..1 + usize::from(last.is_some())).unwrap_or(&after);
        self.chain(graph, (run, call.task()), &varies, after)
    }

    /// Submits a chain of a kernel over the units of the run, block by block.
    #[inline(never)]
    fn chain<G: GraphBuilder>(
        &self,
        graph: &mut G,
        (run, task): (&BlockRange, TaskSpec<'_>),
        varies: &[Variation<'_>],
        after: &[TaskId],
    ) -> Result<TaskId, Fault> {
        let times = u32::try_from(run.len * self.heads).unwrap_or(0);
        let links = [Link::new(task).times(times).varying(varies)];
        graph.submit_chain(&Chain::new(&links), after)
    }

    #[inline(never)]
    fn scores<'r>(&self, run: &'r BlockRange) -> OfRun<'r, 9, 5> {
        let [scores, ..] = self.cache.unit().map(step);
        let (queries, head) = (step(self.cache.query()), step(self.cache.head_dim.get()));
        let varies = [
            Variation::by(2, scores),
            self.by_head(0, queries),
            self.by_block(1, run.of_blocks(&run.keys)),
            self.by_head(1, head),
            self.by_block(4, run.of_blocks(&run.tokens)),
        ];
        OfRun { call: self.first(run).qk(), varies }
    }

    #[inline(never)]
    fn weights<'r>(&self, run: &'r BlockRange) -> OfRun<'r, 9, 5> {
        let [scores, stats, _] = self.cache.unit().map(step);
        let varies = [
            Variation::by(0, scores),
            Variation::by(1, scores),
            Variation::by(2, stats),
            Variation::by(3, stats),
            self.by_block(5, run.of_blocks(&run.tokens)),
        ];
        OfRun { call: self.first(run).softmax(), varies }
    }

    #[inline(never)]
    fn sums<'r>(&self, run: &'r BlockRange) -> OfRun<'r, 9, 5> {
        let [scores, _, new] = self.cache.unit().map(step);
        let head = step(self.cache.head_dim.get());
        let varies = [
            Variation::by(0, scores),
            Variation::by(2, new),
            self.by_block(1, run.of_blocks(&run.values)),
            self.by_head(1, head),
            self.by_block(4, run.of_blocks(&run.tokens)),
        ];
        OfRun { call: self.first(run).pv(), varies }
    }

    #[inline(never)]
    fn updates<'r>(&self, run: &'r BlockRange) -> OfRun<'r, 12, 8> {
        let [_, stats, new] = self.cache.unit().map(step);
        let outs = step(self.cache.query());
        let varies = [
            Variation::by(0, stats),
            Variation::by(1, stats),
            Variation::by(2, new),
            self.by_head(3, stats),
            self.by_head(4, stats),
            self.by_head(5, outs),
            self.by_head(6, outs),
            self.by_block(11, run.of_blocks(&run.flags)),
        ];
        OfRun { call: self.first(run).update(), varies }
    }

    /// An argument that is another one for each block, of all heads.
    #[inline(never)]
    fn by_block<'c>(&self, arg: usize, words: &'c [u64]) -> Variation<'c> {
        Variation::of(arg, words).every(self.turns())
    }

    /// An argument that grows from head to head, of each block.
    #[inline(never)]
    fn by_head(&self, arg: usize, step: i64) -> Variation<'static> {
        Variation::by(arg, step).within(self.turns())
    }

    /// Turns of a block: the heads, of which there are at most [`HEADS`].
    fn turns(&self) -> u32 {
        u32::try_from(self.heads).unwrap_or(0)
    }

    /// The first unit of a run: the first head in its first block.
    #[inline(never)]
    fn first(&self, run: &BlockRange) -> Unit<'_> {
        let (cache, q, out) = (self.cache, self.q, self.out);
        let scratch = self.scratch.from(run.first * self.heads as u64, cache);
        let [keys, values, tokens, flags] =
            [run.keys, run.values, run.tokens, run.flags].map(|[first, ..]| first);
        let (k, v) = (GmAddr(keys), GmAddr(values));
        Unit { cache, q, out, scratch, k, v, tokens, flags }
    }
}

/// One head in one block: where its tensors are.
struct Unit<'c> {
    cache: &'c Cache,
    q: GmAddr,
    out: GmAddr,
    scratch: Scratch,
    /// Its keys, and its values.
    k: GmAddr,
    v: GmAddr,
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

    fn qk(&self) -> Call<u64, 9> {
        let [rows, dim, size, ld] = self.sizes();
        let (k, tokens) = (self.k, self.tokens);
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
        let (v, tokens) = (self.v, self.tokens);
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

/// Some blocks of one [`RequestHeads`], side by side. Of each block there is a word for each argument that no step says.
#[derive(Default)]
struct BlockRange {
    /// The number of the first one.
    first: u64,
    len: usize,
    /// Where the keys begin in the cache, and where the values do.
    keys: [u64; RUN],
    values: [u64; RUN],
    tokens: [u64; RUN],
    /// Of the update.
    flags: [u64; RUN],
}

impl BlockRange {
    /// Takes one more block, which begins with this element of the cache; there is room.
    fn push(&mut self, cache: &Cache, element: u64, (tokens, flags): (u64, UpdateFlags)) {
        let columns = [&mut self.keys, &mut self.values, &mut self.tokens, &mut self.flags];
        let [keys, values] = [cache.k, cache.v].map(|at| at.offset(element * F32).0);
        for (column, word) in columns.into_iter().zip([keys, values, tokens, flags.bits()]) {
            if let Some(entry) = column.get_mut(self.len) {
                *entry = word;
            }
        }
        self.len += 1;
    }

    /// Those of the blocks that it has.
    fn of_blocks<'c>(&self, words: &'c [u64; RUN]) -> &'c [u64] {
        words.get(..self.len).unwrap_or(words)
    }
}

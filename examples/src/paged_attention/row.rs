//! One request and head of the cache as chains: a kernel over the blocks of a context is one dispatch.
//!
//! ```text
//! blocks      0  1  2  ..  RUN-1 | RUN ..
//! qk          one core           | another core
//! softmax     one core           | ..
//! pv          one core           |
//! update      one core  -------> | behind those before
//! ```

use pto_abi::{GmAddr, TaskId};
use pto_aicore_kernels::{UpdateFlags, library};
use pto_graph::{BuildError, Chain, GraphBuilder, Link, TaskSpec, Variation};

use super::graph::{BAD_BLOCK, F32, I32};
use crate::args::{Size, tiles};

/// Blocks of a run: as many kernels as one core runs in one dispatch. With more, the last run of a row keeps few cores busy.
pub(crate) const RUN: usize = 16;

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

/// Memory for the units of one row, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Scratch {
    /// Scores, then probabilities, `f32 [units, rows, block_size]`.
    pub(crate) scores: GmAddr,
    /// Maxima, then sums, `f32 [units, 2, rows]`.
    pub(crate) stats: GmAddr,
    /// `f32 [units, rows, head_dim]`.
    pub(crate) new: GmAddr,
    /// Running maxima, then sums, `f32 [2, rows]`.
    pub(crate) running: GmAddr,
}

impl Scratch {
    /// The memory of the units from number `units` on.
    fn behind(self, units: u64, cache: &Cache) -> Self {
        let [scores, stats, new] = cache.unit();
        let skip = |at: GmAddr, unit: u64| at.offset(units * unit * F32);
        let Self { scores: s, stats: t, new: n, running } = self;
        Self { scores: skip(s, scores), stats: skip(t, stats), new: skip(n, new), running }
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

/// One request and head of the cache.
pub(crate) struct Row<'a> {
    pub(crate) cache: &'a Cache,
    /// `f32 [rows, head_dim]`.
    pub(crate) q: GmAddr,
    /// As `q`.
    pub(crate) out: GmAddr,
    pub(crate) kv_head: u64,
    /// Tokens of the context.
    pub(crate) tokens: u64,
    /// The request's row of the block table.
    pub(crate) table: GmAddr,
    pub(crate) scratch: Scratch,
}

impl Row<'_> {
    /// Submits the chains of all blocks, which wait for `after`; returns how many blocks there are, and the last update.
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
        let cache = self.cache;
        let (rows, dim, size) = (cache.rows.get(), cache.head_dim.get(), cache.block_size.get());
        let ld = cache.kv_heads.get() * dim;
        let (q, out) = (self.q, self.out);
        let Scratch { scores, stats, new, running } = self.scratch.behind(run.first, cache);
        let (max, sum) = (stats, stats.offset(rows * F32));
        let (run_max, run_sum) = (running, running.offset(rows * F32));
        let [next_scores, next_stats, next_new] = cache.unit().map(step);
        let [k, v] =
            [cache.k, cache.v].map(|at| run.cached.map(|element| at.offset(element * F32).0));
        let [k, v, tokens, flags] =
            [&k, &v, &run.tokens, &run.flags].map(|column| column.get(..run.len).unwrap_or(column));
        // What varies takes the place of these.
        let (n, block) = (run.tokens[0], cache.k);

        let qk = library::attention_qk(q, block, scores, rows, n, dim, dim, ld, size);
        let varies = [Variation::of(1, k), Variation::by(2, next_scores), Variation::of(4, tokens)];
        let qk = run.submit(graph, qk.task(), &varies, after)?;
        // The probabilities replace the scores.
        let softmax = library::attention_softmax_partial(
            scores,
            scores,
            max,
            sum,
            rows,
            n,
            size,
            size,
            cache.scale,
        );
        let varies = [
            Variation::by(0, next_scores),
            Variation::by(1, next_scores),
            Variation::by(2, next_stats),
            Variation::by(3, next_stats),
            Variation::of(5, tokens),
        ];
        let softmax = run.submit(graph, softmax.task(), &varies, &[qk])?;
        let pv = library::attention_pv(scores, block, new, rows, n, dim, size, ld, dim);
        let varies = [
            Variation::by(0, next_scores),
            Variation::of(1, v),
            Variation::by(2, next_new),
            Variation::of(4, tokens),
        ];
        let pv = run.submit(graph, pv.task(), &varies, &[softmax])?;
        // The output is its own accumulator; the last update divides it in place.
        let update = library::attention_update(
            max,
            sum,
            new,
            run_max,
            run_sum,
            out,
            out,
            rows,
            dim,
            dim,
            dim,
            run.flags[0],
        );
        let varies = [
            Variation::by(0, next_stats),
            Variation::by(1, next_stats),
            Variation::by(2, next_new),
            Variation::of(11, flags),
        ];
        match last {
            Some(last) => run.submit(graph, update.task(), &varies, &[pv, last]),
            None => run.submit(graph, update.task(), &varies, &[pv]),
        }
    }
}

/// Bytes of so many elements, as a step.
const fn step(elements: u64) -> i64 {
    // The arguments' check has bounded every tensor.
    (elements * F32).cast_signed()
}

/// Some blocks of one [`Row`], side by side.
#[derive(Default)]
struct Run {
    /// The number of the first one.
    first: u64,
    len: usize,
    /// Of each block: where it begins in the cache, in elements; its tokens; the flags of its update.
    cached: [u64; RUN],
    tokens: [u64; RUN],
    flags: [u64; RUN],
}

impl Run {
    /// Takes one more block; there is room.
    fn push(&mut self, cached: u64, tokens: u64, flags: UpdateFlags) {
        let columns = [&mut self.cached, &mut self.tokens, &mut self.flags];
        for (column, word) in columns.into_iter().zip([cached, tokens, flags.bits()]) {
            if let Some(place) = column.get_mut(self.len) {
                *place = word;
            }
        }
        self.len += 1;
    }

    /// Submits a kernel for every block.
    fn submit<G: GraphBuilder>(
        &self,
        graph: &mut G,
        task: TaskSpec<'_>,
        varies: &[Variation<'_>],
        after: &[TaskId],
    ) -> Result<TaskId, BuildError> {
        let times = u32::try_from(self.len).unwrap_or(0);
        let links = [Link::new(task).times(times).varying(varies)];
        Ok(graph.submit_chain(&Chain::new(&links), after)?)
    }
}

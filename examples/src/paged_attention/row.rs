//! Some heads of the cache of one request as chains: a kernel over the blocks of a context, for up to [`HEADS`] heads, is one
//! dispatch.
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
use pto_graph::call::Call;
use pto_graph::{BuildError, Chain, GraphBuilder, Link, TaskSpec, Variation};

use crate::args::{Size, tiles};
/// Bytes of an element.
pub(crate) const F32: u64 = 4;

/// Bytes of an entry of a table.
pub(crate) const I32: u64 = 4;
/// The builder's own error: a block number is not below `num_blocks`.
pub const BAD_BLOCK: i32 = 2;

/// Heads of one row: what is built and dispatched once for two heads costs half.
pub(crate) const HEADS: usize = 2;
/// Blocks of a run: as many kernels of a head as one core runs in one dispatch. With more, the last run of a row keeps few cores busy.
pub(crate) const RUN: usize = 16;

/// Chains of a kernel that are wanted: some more than a device has cube cores. With fewer, cores would wait while others run a
/// chain; with more, the builder and the schedulers would be what takes longest.
const CHAINS: u64 = 32;

/// How long runs are, for so many units (blocks of all contexts, once for each head).
pub(crate) fn run_length(units: u64) -> usize {
    let fair = units / (HEADS as u64 * CHAINS);
    usize::try_from(fair).unwrap_or(RUN).clamp(1, RUN)
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

/// Memory for the units of one row: the blocks of the first head, then those of the next.
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
    /// The memory of a head, from its block number `first` on, where each head has so many `blocks`.
    fn of(self, (head, first): (u64, u64), blocks: u64, cache: &Cache) -> Self {
        let [scores, stats, new] = cache.unit();
        let units = head * blocks + first;
        let skip = |at: GmAddr, unit: u64| at.offset(units * unit * F32);
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
        let blocks = self.tokens.div_ceil(self.cache.block_size.get());
        let heads: [_; HEADS] = core::array::from_fn(|head| Head::of(self, run, blocks, head));
        let [next_scores, next_stats, next_new] = self.cache.unit().map(step);
        let [tokens, flags] = [&run.tokens, &run.flags].map(|column| run.column(column));
        let submit = |graph: &mut G,
                      tasks: [TaskSpec<'_>; HEADS],
                      varies: [&[Variation<'_>]; HEADS],
                      after: &[TaskId]| {
            let times = u32::try_from(run.len).unwrap_or(0);
            let mut links = tasks.map(|task| Link::new(task).times(times));
            links.iter_mut().zip(varies).for_each(|(link, varies)| *link = link.varying(varies));
            let links = links.get(..self.heads).unwrap_or(&links);
            graph.submit_chain(&Chain::new(links), after)
        };

        let qk = heads.each_ref().map(|head| head.qk(self.cache));
        let varies = heads.each_ref().map(|head| {
            let k = Variation::of(1, run.column(&head.k));
            [k, Variation::by(2, next_scores), Variation::of(4, tokens)]
        });
        let qk = submit(graph, tasks(&qk), lists(&varies), after)?;
        let softmax = heads.each_ref().map(|head| head.softmax(self.cache));
        let varies = [
            Variation::by(0, next_scores),
            Variation::by(1, next_scores),
            Variation::by(2, next_stats),
            Variation::by(3, next_stats),
            Variation::of(5, tokens),
        ];
        let softmax = submit(graph, tasks(&softmax), [&varies; HEADS], &[qk])?;
        let pv = heads.each_ref().map(|head| head.pv(self.cache));
        let varies = heads.each_ref().map(|head| {
            let v = Variation::of(1, run.column(&head.v));
            [Variation::by(0, next_scores), v, Variation::by(2, next_new), Variation::of(4, tokens)]
        });
        let pv = submit(graph, tasks(&pv), lists(&varies), &[softmax])?;
        let update = heads.each_ref().map(|head| head.update(self.cache));
        let varies = [
            Variation::by(0, next_stats),
            Variation::by(1, next_stats),
            Variation::by(2, next_new),
            Variation::of(11, flags),
        ];
        let after = [pv, last.unwrap_or(pv)];
        let after = if last.is_some() { &after[..] } else { &after[..1] };
        Ok(submit(graph, tasks(&update), [&varies; HEADS], after)?)
    }
}

/// The tasks of these calls.
fn tasks<const N: usize>(calls: &[Call<u64, N>; HEADS]) -> [TaskSpec<'_>; HEADS] {
    calls.each_ref().map(Call::<u64, N>::task)
}

/// These lists as slices.
fn lists<'v, const N: usize>(
    lists: &'v [[Variation<'v>; N]; HEADS],
) -> [&'v [Variation<'v>]; HEADS] {
    lists.each_ref().map(|list| &list[..])
}

/// One head in a run: where its tensors are. What varies from block to block is that of the first one.
struct Head {
    q: GmAddr,
    out: GmAddr,
    scratch: Scratch,
    /// Addresses of the keys and of the values, by block.
    k: [u64; RUN],
    v: [u64; RUN],
}

impl Head {
    fn of(row: &Row<'_>, run: &Run, blocks: u64, head: usize) -> Self {
        let (cache, head) = (row.cache, head as u64);
        let (rows, dim) = (cache.rows.get(), cache.head_dim.get());
        let own = |at: GmAddr| at.offset(head * rows * dim * F32);
        let cached =
            |at: GmAddr| run.cached.map(|element| at.offset((element + head * dim) * F32).0);
        Self {
            q: own(row.q),
            out: own(row.out),
            scratch: row.scratch.of((head, run.first), blocks, cache),
            k: cached(cache.k),
            v: cached(cache.v),
        }
    }

    fn qk(&self, cache: &Cache) -> Call<u64, 9> {
        let (rows, dim, size) = (cache.rows.get(), cache.head_dim.get(), cache.block_size.get());
        let (k, ld) = (GmAddr(self.k[0]), cache.kv_heads.get() * dim);
        library::attention_qk(self.q, k, self.scratch.scores, rows, size, dim, dim, ld, size)
    }

    /// The probabilities replace the scores.
    fn softmax(&self, cache: &Cache) -> Call<u64, 9> {
        let (rows, size) = (cache.rows.get(), cache.block_size.get());
        let Scratch { scores, stats: max, .. } = self.scratch;
        let sum = max.offset(rows * F32);
        let scale = cache.scale;
        library::attention_softmax_partial(scores, scores, max, sum, rows, size, size, size, scale)
    }

    fn pv(&self, cache: &Cache) -> Call<u64, 9> {
        let (rows, dim, size) = (cache.rows.get(), cache.head_dim.get(), cache.block_size.get());
        let (v, ld) = (GmAddr(self.v[0]), cache.kv_heads.get() * dim);
        let Scratch { scores, new, .. } = self.scratch;
        library::attention_pv(scores, v, new, rows, size, dim, size, ld, dim)
    }

    /// The output is its own accumulator; the last update divides it in place.
    fn update(&self, cache: &Cache) -> Call<u64, 12> {
        let (rows, dim, out) = (cache.rows.get(), cache.head_dim.get(), self.out);
        let Scratch { stats: max, new, running, .. } = self.scratch;
        let [sum, run_sum] = [max, running].map(|at| at.offset(rows * F32));
        library::attention_update(max, sum, new, running, run_sum, out, out, rows, dim, dim, dim, 0)
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

    /// What a column says of the blocks that there are.
    fn column<'c>(&self, column: &'c [u64; RUN]) -> &'c [u64] {
        column.get(..self.len).unwrap_or(column)
    }
}

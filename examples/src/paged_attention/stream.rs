//! `paged_attention` for the streaming runtime: the same tasks as in [`super::graph`], with tensors instead of edges.
//!
//! ```text
//! scope of one request and head of the cache: running maxima and sums
//!   scope of one block: scores, maxima and sums of the block, its output
//!     qk -> softmax_partial -> pv -> update
//! ```
//! The scratch memory lives on the heap rings, so that it does not grow with the number of blocks.

use pto_abi::stream::{Arg, DependencyMode, ElementType, StreamBuilder, TensorView};
use pto_abi::{BuildError, Fault, GmAddr};
use pto_aicore_kernels::{UpdateFlags, func};

use crate::args::{Word, tiles};
use crate::paged_attention::graph::{Args, BAD_BLOCK, BAD_CONTEXT_LEN, I32};
use crate::streaming::{cube, extent, floats, vector};

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, [`BAD_CONTEXT_LEN`], [`BAD_BLOCK`], and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    args.check()?;
    for request in 0..args.batch.get() {
        let tokens = stream.read_u32(args.context_lens.offset(request * I32))?.into();
        if tokens == 0 || tokens > args.max_blocks.get() * args.block_size.get() {
            return Err(BuildError::Failed(BAD_CONTEXT_LEN));
        }
        for kv_head in 0..args.kv_heads.get() {
            stream.scope(DependencyMode::DERIVED, |scope| {
                let running = scope.tensor(ElementType::F32, &[2, extent(args.rows.get())?])?;
                let row = Row { args: &args, request, kv_head, tokens };
                row.blocks(&mut **scope, &running)
            })?;
        }
    }
    Ok(())
}

/// One request and head of the cache: its updates are in order, because all of them change the running state.
struct Row<'a> {
    args: &'a Args,
    request: u64,
    kv_head: u64,
    tokens: u64,
}

impl Row<'_> {
    fn blocks<G: StreamBuilder>(
        &self,
        stream: &mut G,
        running: &TensorView<'_>,
    ) -> Result<(), BuildError> {
        for (index, (start, tokens)) in
            (0_u64..).zip(tiles(self.tokens, self.args.block_size.non_zero()))
        {
            let entry = self.request * self.args.max_blocks.get() + index;
            let block = stream.read_u32(self.args.block_table.offset(entry * I32))?;
            if u64::from(block) >= self.args.num_blocks {
                return Err(BuildError::Failed(BAD_BLOCK));
            }
            let mut flags = UpdateFlags::empty();
            flags.set(UpdateFlags::FIRST, start == 0);
            flags.set(UpdateFlags::LAST, start + tokens == self.tokens);
            self.block(stream, running, block, tokens, flags)?;
        }
        Ok(())
    }

    fn block<G: StreamBuilder>(
        &self,
        stream: &mut G,
        running: &TensorView<'_>,
        block: u32,
        n: u64,
        flags: UpdateFlags,
    ) -> Result<(), BuildError> {
        let args = self.args;
        let [rows, dim, size] = [args.rows, args.head_dim, args.block_size].map(|size| size.get());
        let ld = args.kv_heads.get() * dim;
        let (q, out) = (self.query(args.q)?, self.query(args.out)?);
        let (k, v) = (self.cached(args.k, block, n)?, self.cached(args.v, block, n)?);
        stream.scope(DependencyMode::DERIVED, |scope| {
            let scores = scope.tensor(ElementType::F32, &[extent(rows)?, extent(size)?])?;
            let stats = scope.tensor(ElementType::F32, &[2, extent(rows)?])?;
            let new = scope.tensor(ElementType::F32, &[extent(rows)?, extent(dim)?])?;
            let scores = scores.slice(1, 0, extent(n)?);
            let (max, sum) = (stats.slice(0, 0, 1), stats.slice(0, 1, 1));
            let (run_max, run_sum) = (running.slice(0, 0, 1), running.slice(0, 1, 1));

            let args = &[Arg::In(&q), Arg::In(&k), Arg::Out(&scores)];
            cube(&mut **scope, func::ATTENTION_QK, args, &[rows, n, dim, dim, ld, size])?;
            // The probabilities replace the scores.
            let args = &[Arg::InOut(&scores), Arg::NoDep(&scores), Arg::Out(&max), Arg::Out(&sum)];
            let words = &[rows, n, size, size, self.args.scale.word()];
            vector(&mut **scope, func::ATTENTION_SOFTMAX_PARTIAL, args, words)?;
            let args = &[Arg::In(&scores), Arg::In(&v), Arg::Out(&new)];
            cube(&mut **scope, func::ATTENTION_PV, args, &[rows, n, dim, size, ld, dim])?;
            // The output is its own accumulator; the last update divides it in place.
            let args = &[
                Arg::In(&max),
                Arg::In(&sum),
                Arg::In(&new),
                Arg::InOut(&run_max),
                Arg::InOut(&run_sum),
                Arg::InOut(&out),
                Arg::NoDep(&out),
            ];
            let words = &[rows, dim, dim, dim, flags.bits()];
            vector(&mut **scope, func::ATTENTION_UPDATE, args, words)
        })
    }

    /// The part of the queries, or of the output, that belongs to the row.
    fn query(&self, tensor: GmAddr) -> Result<TensorView<'static>, Fault> {
        let args = self.args;
        let pairs = args.batch.get() * args.kv_heads.get();
        let shape = [pairs, args.rows.get(), args.head_dim.get()];
        let pair = extent(self.request * args.kv_heads.get() + self.kv_head)?;
        Ok(floats(tensor, &shape)?.slice(0, pair, 1))
    }

    /// The first `n` keys, or values, of a block of the cache.
    fn cached(&self, cache: GmAddr, block: u32, n: u64) -> Result<TensorView<'static>, Fault> {
        let args = self.args;
        let shape =
            [args.num_blocks, args.block_size.get(), args.kv_heads.get(), args.head_dim.get()];
        let cache = floats(cache, &shape)?;
        Ok(cache.slice(0, block, 1).slice(1, 0, extent(n)?).slice(2, extent(self.kv_head)?, 1))
    }
}

//! `paged_attention` for the streaming runtime: the same tasks as in [`super::graph`], with tensors instead of edges.
//!
//! ```text
//! scope of one request and head of the cache: running maxima and sums
//!   scope of one block: scores, maxima and sums of the block, its output
//!     qk -> softmax_partial -> pv -> update
//! ```
//! The scratch memory lives on the heap rings, so that it does not grow with the number of blocks.

use core::num::NonZeroU64;

use pto_abi::{Fault, GmAddr};
use pto_aicore_kernels::{UpdateFlags, library};
use pto_graph::call::InPlace;
use pto_graph::{BuildError, DependencyMode, ElementType, StreamBuilder, TensorView};

use crate::args::tiles;
use crate::paged_attention::graph::{Args, BAD_BLOCK, BAD_CONTEXT_LEN, I32};
use crate::streaming::{extent, floats, part, submit};

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
            RequestHead {
                q: args.query(args.q, request, kv_head)?,
                out: args.query(args.out, request, kv_head)?,
                k: args.cache(args.k)?,
                v: args.cache(args.v)?,
                kv_head,
                tokens,
                table: args.block_table.offset(request * args.max_blocks.get() * I32),
                scale: args.scale,
            }
            .submit(stream)?;
        }
    }
    Ok(())
}

impl Args {
    /// The part of the queries, or of the output, that belongs to a request and a head of the cache.
    fn query(
        &self,
        tensor: GmAddr,
        request: u64,
        kv_head: u64,
    ) -> Result<TensorView<'static>, Fault> {
        let shape = [self.batch.get() * self.kv_heads.get(), self.rows.get(), self.head_dim.get()];
        part(floats(tensor, &shape)?, 0, (request * self.kv_heads.get() + kv_head, 1))
    }

    fn cache(&self, cache: GmAddr) -> Result<TensorView<'static>, Fault> {
        let [size, heads, dim] = [self.block_size, self.kv_heads, self.head_dim].map(|x| x.get());
        floats(cache, &[self.num_blocks, size, heads, dim])
    }
}

/// One request and head of the cache: its updates are in order, because all of them change the running state.
pub(crate) struct RequestHead<'t> {
    /// `[1, rows, head_dim]`: the queries, side by side.
    pub(crate) q: TensorView<'t>,
    /// As `q`.
    pub(crate) out: TensorView<'t>,
    /// `[num_blocks, block_size, kv_heads, head_dim]`.
    pub(crate) k: TensorView<'t>,
    /// As `k`.
    pub(crate) v: TensorView<'t>,
    /// Which head of the cache.
    pub(crate) kv_head: u64,
    /// Length of the context.
    pub(crate) tokens: u64,
    /// The request's row of the block table.
    pub(crate) table: GmAddr,
    /// What scores are multiplied by.
    pub(crate) scale: f32,
}

impl RequestHead<'_> {
    /// Submits the tasks of all blocks.
    pub(crate) fn submit<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let &[blocks, size, ..] = self.k.shape() else {
            return Err(Fault::STREAM_VIEW_RANK.into());
        };
        let size = NonZeroU64::new(size.into()).ok_or(Fault::STREAM_VIEW_RANGE)?;
        stream.scope(DependencyMode::DERIVED, |scope| {
            let running = scope.tensor(ElementType::F32, &[2, self.sizes().0])?;
            for (index, (start, tokens)) in (0_u64..).zip(tiles(self.tokens, size)) {
                let block = scope.read_u32(self.table.offset(index * I32))?;
                if block >= blocks {
                    return Err(BuildError::Failed(BAD_BLOCK));
                }
                let mut flags = UpdateFlags::empty();
                flags.set(UpdateFlags::FIRST, start == 0);
                flags.set(UpdateFlags::LAST, start + tokens == self.tokens);
                self.block(&mut **scope, &running, block, tokens, flags)?;
            }
            Ok(())
        })
    }

    /// Queries, and elements of each.
    fn sizes(&self) -> (u32, u32) {
        match self.q.shape() {
            &[_, rows, dim] => (rows, dim),
            _ => (0, 0),
        }
    }

    fn block<G: StreamBuilder>(
        &self,
        stream: &mut G,
        running: &TensorView<'_>,
        block: u32,
        n: u64,
        flags: UpdateFlags,
    ) -> Result<(), BuildError> {
        let (q, out) = (self.q, self.out);
        let (k, v) = (self.cached(self.k, block, n)?, self.cached(self.v, block, n)?);
        let &[_, size, heads, _] = self.k.shape() else {
            return Err(Fault::STREAM_VIEW_RANK.into());
        };
        let (rows, dim) = self.sizes();
        stream.scope(DependencyMode::DERIVED, |scope| {
            let scores = scope.tensor(ElementType::F32, &[rows, size])?;
            let stats = scope.tensor(ElementType::F32, &[2, rows])?;
            let new = scope.tensor(ElementType::F32, &[rows, dim])?;
            let scores = scores.slice(1, 0, extent(n)?);
            let (max, sum) = (stats.slice(0, 0, 1), stats.slice(0, 1, 1));
            let (run_max, run_sum) = (running.slice(0, 0, 1), running.slice(0, 1, 1));
            let [rows, dim, size, heads] = [rows, dim, size, heads].map(u64::from);
            let ld = heads * dim;

            let stream = &mut **scope;
            let qk = library::attention_qk(&q, &k, &scores, rows, n, dim, dim, ld, size);
            submit(stream, &qk.task())?;
            // The probabilities replace the scores.
            let s = InPlace(&scores);
            let softmax = library::attention_softmax_partial(
                s, s, &max, &sum, rows, n, size, size, self.scale,
            );
            submit(stream, &softmax.task())?;
            let pv = library::attention_pv(&scores, &v, &new, rows, n, dim, size, ld, dim);
            submit(stream, &pv.task())?;
            // The output is its own accumulator; the last update divides it in place.
            let (out, flags) = (InPlace(&out), flags.bits());
            let update = library::attention_update(
                &max, &sum, &new, &run_max, &run_sum, out, out, rows, dim, dim, dim, flags,
            );
            submit(stream, &update.task())
        })
    }

    /// The first `n` keys, or values, of a block of the cache.
    fn cached<'t>(
        &self,
        cache: TensorView<'t>,
        block: u32,
        n: u64,
    ) -> Result<TensorView<'t>, Fault> {
        part(part(cache.slice(0, block, 1), 1, (0, n))?, 2, (self.kv_head, 1))
    }
}

//! The program of `tp_decoder`. A rank runs the layer of `decoder_layer` on its heads, and on its columns of the MLP; what is different:
//!
//! ```text
//! matmul     (AIC, tiles)  partial = attended @ wo, of this rank's heads; rank 0 adds x
//! all_reduce (tiles)       partial = the sum over the ranks, in their order
//! copy       (AIV, tiles)  middle  = partial
//! ```
//! The same follows the MLP, from `middle` to `out`. A tile of `partial` is dense, and a tensor of its own: its all-reduce starts when its
//! product is complete, and overlaps with the products of the tiles after it.

use core::num::NonZeroU64;

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::group::{Communicator, Options, Order, Reduction};
use pto_graph::{BuildError, DependencyMode, ElementType, Scope, StreamBuilder, TensorView};

use crate::args::{Size, tiles};
use crate::decoder_layer::stages::DecoderStages;
use crate::streaming::{extent, floats, part, submit, tile};

pub use crate::decoder_layer::stream::Args;

/// Submits the tasks of one rank.
///
/// # Errors
/// Those of `decoder_layer`, and of the collectives.
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let args = Args::from_words(stream.orch_args())?;
    stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
        let layer = DecoderStages::new(scope, &args)?;
        let [attended, down] = [Sums::new(scope, &args)?, Sums::new(scope, &args)?];
        let stream = &mut **scope;
        layer.attention(stream)?;
        let (dim, heads) = (args.head_dim.get(), args.heads());
        let heads_of = args.heads_of(args.tile_k).saturating_mul(args.head_dim.non_zero());
        let [batch, hidden] = [args.batch, args.hidden].map(Size::get);
        let flat = ProjectionInput {
            view: layer.tensors.attended,
            is_heads: true,
            weights: args.wo,
            inner: heads * dim,
            piece: heads_of,
        };
        attended.add_up(
            stream,
            &mut comm,
            &flat,
            (layer.tensors.x, layer.tensors.middle),
            (batch, hidden),
        )?;
        layer.norm(stream, layer.tensors.middle, 1)?;
        layer.gated(stream)?;
        let gate = ProjectionInput {
            view: layer.tensors.gate,
            is_heads: false,
            weights: args.wd,
            inner: args.intermediate.get(),
            piece: args.tile_k.non_zero(),
        };
        down.add_up(
            stream,
            &mut comm,
            &gate,
            (layer.tensors.middle, layer.tensors.out),
            (batch, hidden),
        )
    })
}

/// What is projected back to the tokens: `[batch, inner] @ [inner, hidden]`.
struct ProjectionInput<'s> {
    view: TensorView<'s>,
    /// Its elements are in heads: `[batch, heads, head_dim]`.
    is_heads: bool,
    weights: GmAddr,
    inner: u64,
    /// Elements of a sum that a task adds.
    piece: NonZeroU64,
}

impl<'s> ProjectionInput<'s> {
    fn part(&self, (start, length): (u64, u64)) -> Result<TensorView<'s>, BuildError> {
        if !self.is_heads {
            return Ok(part(self.view, 1, (start, length))?);
        }
        let dim = self.view.shape().get(2).copied().map(u64::from);
        let dim = dim.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN);
        Ok(part(self.view, 1, (start / dim, length / dim))?)
    }
}

/// The sums of one projection: a dense tile after the other.
struct Sums<'s> {
    tiles: TensorView<'s>,
    tile_n: Size,
}

impl<'s> Sums<'s> {
    fn new<G: StreamBuilder>(
        scope: &mut Scope<'s, '_, G>,
        args: &crate::decoder_layer::stream::Args,
    ) -> Result<Self, BuildError> {
        let count = args.hidden.get().div_ceil(args.tile_n.get());
        let each = args.batch.get() * args.tile_n.get();
        let tiles = scope.tensor(ElementType::F32, &[extent(count)?, extent(each)?])?;
        Ok(Self { tiles, tile_n: args.tile_n })
    }

    /// `to = from + operand @ weights`, the sum over all ranks.
    fn add_up<G: StreamBuilder>(
        &self,
        stream: &mut G,
        comm: &mut Communicator,
        operand: &ProjectionInput<'_>,
        (from, to): (TensorView<'_>, TensorView<'_>),
        (batch, hidden): (u64, u64),
    ) -> Result<(), BuildError> {
        let options = Options { order: Order::FIXED, ..Options::default() };
        let weights = floats(operand.weights, &[operand.inner, hidden])?;
        for (number, cols) in (0..).zip(tiles(hidden, self.tile_n.non_zero())) {
            let sums = tile(self.tiles, (number, 1), (0, batch * cols.1))?;
            let residual = part(from, 1, cols)?;
            for (number, k) in tiles(operand.inner, operand.piece).enumerate() {
                let (a, b) = (operand.part(k)?, tile(weights, k, cols)?);
                let (inner, cols) = (operand.inner, cols.1);
                if number > 0 {
                    let next =
                        library::matmul_acc(&a, &b, &sums, batch, cols, k.1, inner, hidden, cols);
                    submit(stream, &next.task())?;
                } else if comm.rank() == 0 {
                    let first = library::matmul_add(
                        &a, &b, &residual, &sums, batch, cols, k.1, inner, hidden, hidden, cols,
                    );
                    submit(stream, &first.task())?;
                } else {
                    let first =
                        library::matmul(&a, &b, &sums, batch, cols, k.1, inner, hidden, cols);
                    submit(stream, &first.task())?;
                }
            }
            comm.all_reduce(stream, &sums, Reduction::SUM, &options)?;
            let to = part(to, 1, cols)?;
            submit(stream, &library::copy(&sums, &to, batch, cols.1, cols.1, hidden).task())?;
        }
        Ok(())
    }
}

/// Tasks of one rank in addition to those of `decoder_layer` with its words: copies, and for each tile five tasks for each other rank.
#[must_use]
pub fn more_tasks(args: &Args, ranks: u32) -> u64 {
    let tiles = 2 * args.hidden.get().div_ceil(args.tile_n.get());
    tiles * (1 + 5 * u64::from(ranks.saturating_sub(1)))
}

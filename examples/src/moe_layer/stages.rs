//! The stages of a mixture of experts that come before its experts, with derived edges, for programs that add transfers after them
//! (`ep_moe`). The kernels are those of `stream.rs`, one task each.

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::{BuildError, ElementType, Scope, StreamBuilder, TensorView};

use super::stream::{Args, ROUTED};
use crate::args::{Size, tiles};
use crate::streaming::{dense, extent, floats, part, submit};

/// The tensors of the layer.
pub(crate) struct MoeStages<'a, 's> {
    pub(crate) args: &'a Args,
    /// `[tokens, hidden]`.
    pub(crate) x: TensorView<'s>,
    /// `[tokens, hidden]`.
    pub(crate) out: TensorView<'s>,
    /// `[tokens, top_k]`.
    pub(crate) choices: TensorView<'s>,
    /// `[tokens, top_k]`.
    pub(crate) weights: TensorView<'s>,
    /// `[tokens, experts]`.
    logits: TensorView<'s>,
}

impl<'a, 's> MoeStages<'a, 's> {
    pub(crate) fn new<G: StreamBuilder>(
        scope: &mut Scope<'s, '_, G>,
        args: &'a Args,
    ) -> Result<Self, BuildError> {
        let [tokens, hidden, top_k] = [args.tokens, args.hidden, args.top_k].map(Size::get);
        let logits = [extent(tokens)?, extent(args.experts.get())?];
        Ok(Self {
            args,
            x: floats(args.x, &[tokens, hidden])?,
            out: floats(args.out, &[tokens, hidden])?,
            choices: dense(args.choices, ElementType::U32, &[tokens, top_k])?,
            weights: floats(args.weights, &[tokens, top_k])?,
            logits: scope.tensor(ElementType::F32, &logits)?,
        })
    }

    pub(crate) fn route<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let [tokens, hidden, experts, top_k] =
            [self.args.tokens, self.args.hidden, self.args.experts, self.args.top_k].map(Size::get);
        let router = floats(self.args.router, &[hidden, experts])?;
        let (x, logits) = (&self.x, &self.logits);
        let product =
            library::matmul(x, &router, logits, tokens, experts, hidden, hidden, experts, experts);
        submit(stream, &product.task())?;
        for tokens in tiles(tokens, ROUTED) {
            let logits = part(self.logits, 0, tokens)?;
            let (choices, weights) =
                (part(self.choices, 0, tokens)?, part(self.weights, 0, tokens)?);
            let route =
                library::moe_route(&logits, &choices, &weights, tokens.1, experts, top_k, experts);
            submit(stream, &route.task())?;
        }
        Ok(())
    }

    /// What the experts add to: the tokens themselves.
    pub(crate) fn begin<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let (tokens, hidden) = (self.args.tokens.get(), self.args.hidden.get());
        for cols in tiles(hidden, self.args.tile_n.non_zero()) {
            let (x, out) = (part(self.x, 1, cols)?, part(self.out, 1, cols)?);
            let copy = library::copy(&x, &out, tokens, cols.1, hidden, hidden);
            submit(stream, &copy.task())?;
        }
        Ok(())
    }
}

/// The matrix of one expert among those of all.
pub(crate) fn matrix_of(
    all: GmAddr,
    experts: Size,
    number: u64,
    rows: u64,
    cols: u64,
) -> Result<TensorView<'static>, BuildError> {
    let all = floats(all, &[experts.get() * rows, cols])?;
    Ok(part(all, 0, (number * rows, rows))?)
}

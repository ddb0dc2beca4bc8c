//! The program of `moe_layer`.
//!
//! ```text
//! matmul       (AIC)         logits = x @ router
//! moe_route    (AIV, tokens) the experts of each token, and their weights
//! copy         (AIV, tiles)  out = x
//! for each expert:
//!   moe_list     (AIV)         its entries, and how many
//!   moe_gather   (AIV)         rows = their tokens
//!   moe_matmul   (AIC, tiles)  gate = rows @ wg, up = rows @ wu
//!   moe_silu_mul (AIV, tiles)  gate = silu(gate) * up
//!   moe_matmul   (AIC, tiles)  rows = gate @ wd
//!   moe_scatter  (AIV, tiles)  out += weight * rows
//! ```
//! The program does not wait for the router: it submits the tasks of all experts. Those behind `moe_list` have a predicate, that the
//! expert has an entry: without one they complete without running. How many rows a task has stands in memory. The scatters of a
//! tile of `out` are in order, so that its sums are the same in every run.

use pto_abi::GmAddr;
use pto_aicore_kernels::library;
use pto_graph::call::InPlace;
use pto_graph::{
    BuildError, Comparison, DependencyMode, ElementType, Predicate, Scope, StreamBuilder,
    TensorTask, TensorView,
};

use crate::args::{Size, tiles};
use crate::streaming::{LINE, dense, extent, floats, part, submit, tile};

/// Tokens that one task routes.
const ROUTED: core::num::NonZeroU64 = core::num::NonZeroU64::MIN.saturating_add(15);

crate::orch_args! {
    /// The words of `moe_layer`.
    pub struct Args {
        /// `f32 [tokens, hidden]`.
        x: GmAddr,
        /// As `x`.
        out: GmAddr,
        /// `f32 [hidden, experts]`.
        router: GmAddr,
        /// `f32 [experts, hidden, intermediate]`.
        wg: GmAddr,
        /// As `wg`.
        wu: GmAddr,
        /// `f32 [experts, intermediate, hidden]`.
        wd: GmAddr,
        /// `u32 [tokens, top_k]`: the experts of each token.
        choices: GmAddr,
        /// `f32 [tokens, top_k]`: their weights.
        weights: GmAddr,
        /// `u32 [experts, LINE]`: how many tokens each expert got, in the first element of a line.
        counts: GmAddr,
        /// `u32 [experts, LINE]`: how often each expert ran, in the first element of a line.
        ran: GmAddr,
        /// Tokens.
        tokens: Size,
        /// Elements of a token.
        hidden: Size,
        /// Elements between the projections of an expert.
        intermediate: Size,
        /// Experts.
        experts: Size,
        /// Experts of a token: at most as many as there are.
        top_k: Size,
        /// Columns of a tile of a product.
        tile_n: Size,
    }
}

impl Args {
    /// Tasks that the program submits.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        let cut = |extent: Size| extent.get().div_ceil(self.tile_n.get());
        let (hidden, inner) = (cut(self.hidden), cut(self.intermediate));
        let routes = self.tokens.get().div_ceil(ROUTED.get());
        1 + routes + hidden + self.experts.get() * (2 + 3 * inner + 2 * hidden)
    }
}

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
        let layer = Layer::new(scope, &args)?;
        let stream = &mut **scope;
        layer.route(stream)?;
        layer.begin(stream)?;
        for expert in 0..args.experts.get() {
            layer.expert(stream, expert)?;
        }
        Ok(())
    })
}

/// The tensors of the layer.
pub(crate) struct Layer<'a, 's> {
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

/// The tensors of one expert.
struct Expert<'s> {
    number: u64,
    /// `[1, 1]`: how many entries it has.
    count: TensorView<'s>,
    /// Whether it has any.
    has_entries: Predicate<'s>,
    /// `[1, 1]`: how often it ran.
    ran: TensorView<'s>,
    /// `[tokens]`: its entries.
    list: TensorView<'s>,
    /// `[tokens, hidden]`: its tokens, then its results.
    rows: TensorView<'s>,
    /// `[tokens, hidden]`.
    results: TensorView<'s>,
    /// `[tokens, intermediate]`.
    gate: TensorView<'s>,
    /// `[tokens, intermediate]`.
    up: TensorView<'s>,
}

impl<'a, 's> Layer<'a, 's> {
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

    fn expert<G: StreamBuilder>(&self, stream: &mut G, number: u64) -> Result<(), BuildError> {
        stream.scope(DependencyMode::DERIVED, |scope| {
            let expert = Expert::new(scope, self.args, number)?;
            let stream = &mut **scope;
            self.gather(stream, &expert)?;
            self.gated(stream, &expert)?;
            self.down(stream, &expert)
        })
    }

    /// The entries of the expert, and their tokens.
    fn gather<G: StreamBuilder>(
        &self,
        stream: &mut G,
        expert: &Expert<'_>,
    ) -> Result<(), BuildError> {
        let [tokens, hidden, top_k] =
            [self.args.tokens, self.args.hidden, self.args.top_k].map(Size::get);
        let Expert { list, count, ran, rows, .. } = expert;
        let (x, choices) = (&self.x, &self.choices);
        let entries = library::moe_list(choices, list, count, tokens * top_k, expert.number);
        submit(stream, &entries.task())?;
        let gather =
            library::moe_gather(x, list, count, ran, rows, tokens, hidden, top_k, hidden, hidden);
        expert.submit(stream, gather.task())
    }

    /// `gate = silu(rows @ wg) * (rows @ wu)`.
    fn gated<G: StreamBuilder>(
        &self,
        stream: &mut G,
        expert: &Expert<'_>,
    ) -> Result<(), BuildError> {
        let args = self.args;
        let (hidden, inner) = (args.hidden.get(), args.intermediate.get());
        let Expert { number, count, rows, gate, up, .. } = expert;
        for cols in tiles(inner, args.tile_n.non_zero()) {
            let (gate, up) = (part(*gate, 1, cols)?, part(*up, 1, cols)?);
            for (weights, to) in [(args.wg, gate), (args.wu, up)] {
                let weights = matrix_of(weights, args.experts, *number, (hidden, inner))?;
                let weights = part(weights, 1, cols)?;
                let product = library::moe_matmul(
                    rows, &weights, &to, count, cols.1, hidden, hidden, inner, inner,
                );
                expert.submit(stream, product.task())?;
            }
            let gate = InPlace(&gate);
            let gated = library::moe_silu_mul(gate, &up, gate, count, cols.1, inner, inner, inner);
            expert.submit(stream, gated.task())?;
        }
        Ok(())
    }

    /// `out += weight * (gate @ wd)`.
    fn down<G: StreamBuilder>(
        &self,
        stream: &mut G,
        expert: &Expert<'_>,
    ) -> Result<(), BuildError> {
        let args = self.args;
        let [tokens, hidden, inner, top_k] =
            [args.tokens, args.hidden, args.intermediate, args.top_k].map(Size::get);
        let Expert { number, count, list, results, gate, .. } = expert;
        for cols in tiles(hidden, args.tile_n.non_zero()) {
            let (results, out) = (part(*results, 1, cols)?, part(self.out, 1, cols)?);
            let weights = matrix_of(args.wd, args.experts, *number, (inner, hidden))?;
            let weights = part(weights, 1, cols)?;
            let product = library::moe_matmul(
                gate, &weights, &results, count, cols.1, inner, inner, hidden, hidden,
            );
            expert.submit(stream, product.task())?;
            let weights = &self.weights;
            let scatter = library::moe_scatter(
                &results, list, count, weights, &out, tokens, cols.1, top_k, hidden, hidden,
            );
            expert.submit(stream, scatter.task())?;
        }
        Ok(())
    }
}

impl<'s> Expert<'s> {
    fn new<G: StreamBuilder>(
        scope: &mut Scope<'s, '_, G>,
        args: &Args,
        number: u64,
    ) -> Result<Self, BuildError> {
        let (tokens, hidden, inner) =
            (args.tokens.get(), args.hidden.get(), args.intermediate.get());
        let mark = |at: GmAddr| {
            let all = dense(at, ElementType::U32, &[args.experts.get(), LINE])?;
            tile(all, (number, 1), (0, 1))
        };
        let list = scope.tensor(ElementType::U32, &[extent(tokens)?])?;
        let mut tensor = |cols: u64| -> Result<_, BuildError> {
            Ok(scope.tensor(ElementType::F32, &[extent(tokens)?, extent(cols)?])?)
        };
        let count = mark(args.counts)?;
        Ok(Self {
            number,
            count,
            has_entries: Predicate::new(&count, &[0, 0], Comparison::NOT_EQUAL, 0),
            ran: mark(args.ran)?,
            list,
            rows: tensor(hidden)?,
            results: tensor(hidden)?,
            gate: tensor(inner)?,
            up: tensor(inner)?,
        })
    }
}

impl Expert<'_> {
    /// Submits a task that runs if the expert has an entry.
    fn submit<G: StreamBuilder>(
        &self,
        stream: &mut G,
        task: TensorTask<'_>,
    ) -> Result<(), BuildError> {
        submit(stream, &task.when(&self.has_entries))
    }
}

/// The matrix of one expert among those of all.
pub(crate) fn matrix_of(
    all: GmAddr,
    experts: Size,
    number: u64,
    (rows, cols): (u64, u64),
) -> Result<TensorView<'static>, BuildError> {
    let all = floats(all, &[experts.get() * rows, cols])?;
    Ok(part(all, 0, (number * rows, rows))?)
}

//! The program of `ep_moe`. A rank routes its tokens as `moe_layer` does. Then, for each of its experts and the ones with the same local index at the
//! other ranks:
//!
//! ```text
//! moe_list, moe_gather   the rank's tokens for each of these experts, and how many
//! copy                   the counts, side by side
//! all_to_all_counted     tokens to their experts; of each part only as many rows as the count says
//! moe_matmul, ..         what the rank's own expert makes of the tokens of each rank
//! all_to_all_counted     back to where the tokens are from
//! moe_scatter            out += weight * rows, the experts in their order
//! ```
//! A token's results are added in the order of the experts on any number of ranks, so that the output is the same, bit for bit.

use pto_aicore_kernels::library;
use pto_graph::call::InPlace;
use pto_graph::group::{Communicator, Options};
use pto_graph::{
    BuildError, Comparison, DependencyMode, ElementType, Predicate, Scope, StreamBuilder,
    TensorView,
};

use crate::args::{Size, tiles};
use crate::moe_layer::stages::{MoeStages, matrix_of};
use crate::streaming::{LINE, dense, extent, part, submit, tile};

pub use crate::moe_layer::stream::Args;

/// Submits the tasks of one rank.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let args = Args::from_words(stream.orch_args())?;
    let (ranks, experts) = (u64::from(comm.size()), args.experts.get());
    let own = experts.checked_div(ranks).and_then(Size::new);
    let own = own.filter(|own| own.get() * ranks == experts);
    let own = own.ok_or(pto_abi::Fault::BUILD_ORCH_ARGS)?;
    stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
        let layer = MoeStages::new(scope, &args)?;
        layer.route(&mut **scope)?;
        layer.begin(&mut **scope)?;
        let travel = Travel::new(scope, &layer, (ranks, own))?;
        let stream = &mut **scope;
        for local in 0..own.get() {
            stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
                travel.there_and_back(scope, &mut comm, local)
            })?;
        }
        travel.scatter(stream)
    })
}

/// What travels. Of `[own, ranks, tokens, ..]` the second extent is the rank of the expert whose local index is the first extent.
struct Travel<'a, 's> {
    layer: &'a MoeStages<'a, 's>,
    ranks: u64,
    /// Experts of each rank.
    own: Size,
    /// `[own * ranks, tokens]`: the entries of each expert.
    lists: TensorView<'s>,
    /// `[own * ranks * tokens, hidden]`: what the experts made of this rank's tokens.
    back: TensorView<'s>,
    /// `[experts, LINE]`: how many entries each expert has of this rank.
    counts: TensorView<'s>,
    /// `[experts, LINE]`: whether it was asked.
    ran: TensorView<'s>,
}

/// The tokens of all ranks for one of this rank's experts, `[ranks * tokens, ..]` each, and how many there are of each rank.
struct RemoteTokens<'s> {
    counts: TensorView<'s>,
    rows: TensorView<'s>,
    results: TensorView<'s>,
}

impl<'a, 's> Travel<'a, 's> {
    fn new<G: StreamBuilder>(
        scope: &mut Scope<'s, '_, G>,
        layer: &'a MoeStages<'a, 's>,
        (ranks, own): (u64, Size),
    ) -> Result<Self, BuildError> {
        let args = layer.args;
        let [tokens, hidden, experts] = [args.tokens, args.hidden, args.experts].map(Size::get);
        let mut tensor = |element, rows: u64, cols: u64| -> Result<_, BuildError> {
            Ok(scope.tensor(element, &[extent(rows)?, extent(cols)?])?)
        };
        let lists = tensor(ElementType::U32, experts, tokens)?;
        let back = tensor(ElementType::F32, experts * tokens, hidden)?;
        let marks = |at| dense(at, ElementType::U32, &[experts, LINE]);
        let (counts, ran) = (marks(args.counts)?, marks(args.ran)?);
        Ok(Self { layer, ranks, own, lists, back, counts, ran })
    }

    /// The number of the expert with this local index at a rank.
    const fn expert(&self, local: u64, rank: u64) -> u64 {
        rank * self.own.get() + local
    }

    /// Rows of the part of a rank.
    const fn rows_of(&self, rank: u64) -> (u64, u64) {
        (rank * self.layer.args.tokens.get(), self.layer.args.tokens.get())
    }

    /// What came back from the expert with this local index at every rank.
    fn back_of(&self, local: u64) -> Result<TensorView<'s>, BuildError> {
        let rows = self.ranks * self.layer.args.tokens.get();
        Ok(part(self.back, 0, (local * rows, rows))?)
    }

    fn list(&self, local: u64, rank: u64) -> Result<TensorView<'s>, BuildError> {
        Ok(part(self.lists, 0, (local * self.ranks + rank, 1))?)
    }

    fn count(&self, expert: u64) -> Result<TensorView<'s>, BuildError> {
        Ok(tile(self.counts, (expert, 1), (0, 1))?)
    }

    fn there_and_back<'t, G: StreamBuilder>(
        &self,
        scope: &mut Scope<'t, '_, G>,
        comm: &mut Communicator,
        local: u64,
    ) -> Result<(), BuildError> {
        let args = self.layer.args;
        let rows = self.ranks * args.tokens.get();
        let mut tensor = |element, rows: u64, cols: u64| -> Result<_, BuildError> {
            Ok(scope.tensor(element, &[extent(rows)?, extent(cols)?])?)
        };
        let sent = tensor(ElementType::F32, rows, args.hidden.get())?;
        let sent_counts = tensor(ElementType::U32, 1, self.ranks)?;
        let counts_back = tensor(ElementType::U32, 1, self.ranks)?;
        // Alone, a rank is its own guest: nothing travels.
        let is_alone = self.ranks == 1;
        let mut guest = |element, own: TensorView<'t>, rows: u64, cols: u64| match is_alone {
            true => Ok(own),
            false => tensor(element, rows, cols),
        };
        let remote = RemoteTokens {
            counts: guest(ElementType::U32, sent_counts, 1, self.ranks)?,
            rows: guest(ElementType::F32, sent, rows, args.hidden.get())?,
            results: tensor(ElementType::F32, rows, args.hidden.get())?,
        };
        let (gate, up) = (
            tensor(ElementType::F32, rows, args.intermediate.get())?,
            tensor(ElementType::F32, rows, args.intermediate.get())?,
        );
        let stream = &mut **scope;
        self.gather(stream, local, (sent, sent_counts))?;
        let (unit, options) = (args.hidden.get(), Options::default());
        if !is_alone {
            comm.all_to_all_counted(
                stream,
                (&sent, &sent_counts),
                (&remote.rows, &remote.counts),
                (unit, &options),
            )?;
        }
        for rank in 0..self.ranks {
            self.compute(stream, local, rank, &remote, gate, up)?;
        }
        let back = self.back_of(local)?;
        if !is_alone {
            comm.all_to_all_counted(
                stream,
                (&remote.results, &remote.counts),
                (&back, &counts_back),
                (unit, &options),
            )?;
            return Ok(());
        }
        let (rows, cols) = (rows, args.hidden.get());
        submit(stream, &library::copy(&remote.results, &back, rows, cols, cols, cols).task())
    }

    /// The rank's tokens for the experts with this local index, and how many for each.
    fn gather<G: StreamBuilder>(
        &self,
        stream: &mut G,
        local: u64,
        (sent, counts): (TensorView<'_>, TensorView<'_>),
    ) -> Result<(), BuildError> {
        let args = self.layer.args;
        let [tokens, hidden, top_k] = [args.tokens, args.hidden, args.top_k].map(Size::get);
        let (x, choices) = (&self.layer.x, &self.layer.choices);
        for rank in 0..self.ranks {
            let expert = self.expert(local, rank);
            let (list, count) = (self.list(local, rank)?, self.count(expert)?);
            let ran = tile(self.ran, (expert, 1), (0, 1))?;
            let rows = part(sent, 0, self.rows_of(rank))?;
            let entries = library::moe_list(choices, &list, &count, tokens * top_k, expert);
            submit(stream, &entries.task())?;
            let gather = library::moe_gather(
                x, &list, &count, &ran, &rows, tokens, hidden, top_k, hidden, hidden,
            );
            let has_entries = Predicate::new(&count, &[0, 0], Comparison::NOT_EQUAL, 0);
            submit(stream, &gather.task().when(&has_entries))?;
        }
        // The counts are in lines of their own, and travel side by side.
        let lines = (self.expert(local, 0), (self.ranks - 1) * self.own.get() + 1);
        let from = tile(self.counts, lines, (0, 1))?;
        let apart = self.own.get() * LINE;
        submit(stream, &library::copy(&from, &counts, self.ranks, 1, apart, 1).task())
    }

    /// What this rank's expert makes of the tokens of one rank.
    fn compute<G: StreamBuilder>(
        &self,
        stream: &mut G,
        local: u64,
        rank: u64,
        remote: &RemoteTokens<'_>,
        gate: TensorView<'_>,
        up: TensorView<'_>,
    ) -> Result<(), BuildError> {
        let args = self.layer.args;
        let (hidden, inner) = (args.hidden.get(), args.intermediate.get());
        let mine = self.rows_of(rank);
        let (rows, results) = (part(remote.rows, 0, mine)?, part(remote.results, 0, mine)?);
        let (gate, up) = (part(gate, 0, mine)?, part(up, 0, mine)?);
        let count = part(remote.counts, 1, (rank, 1))?;
        let has_guests = Predicate::new(&count, &[0, 0], Comparison::NOT_EQUAL, 0);
        for cols in tiles(inner, args.tile_n.non_zero()) {
            let (gate, up) = (part(gate, 1, cols)?, part(up, 1, cols)?);
            for (weights, to) in [(args.wg, gate), (args.wu, up)] {
                let weights = matrix_of(weights, self.own, local, hidden, inner)?;
                let weights = part(weights, 1, cols)?;
                let product = library::moe_matmul(
                    &rows, &weights, &to, &count, cols.1, hidden, hidden, inner, inner,
                );
                submit(stream, &product.task().when(&has_guests))?;
            }
            let gate = InPlace(&gate);
            let gated = library::moe_silu_mul(gate, &up, gate, &count, cols.1, inner, inner, inner);
            submit(stream, &gated.task().when(&has_guests))?;
        }
        for cols in tiles(hidden, args.tile_n.non_zero()) {
            let weights = matrix_of(args.wd, self.own, local, inner, hidden)?;
            let (weights, results) = (part(weights, 1, cols)?, part(results, 1, cols)?);
            let product = library::moe_matmul(
                &gate, &weights, &results, &count, cols.1, inner, inner, hidden, hidden,
            );
            submit(stream, &product.task().when(&has_guests))?;
        }
        Ok(())
    }

    /// Adds what came back to the rank's tokens, expert by expert.
    fn scatter<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let args = self.layer.args;
        let [tokens, hidden, top_k] = [args.tokens, args.hidden, args.top_k].map(Size::get);
        for (rank, local) in
            (0..self.ranks).flat_map(|rank| (0..self.own.get()).map(move |local| (rank, local)))
        {
            let (list, count) = (self.list(local, rank)?, self.count(self.expert(local, rank))?);
            let has_entries = Predicate::new(&count, &[0, 0], Comparison::NOT_EQUAL, 0);
            let rows = part(self.back_of(local)?, 0, self.rows_of(rank))?;
            for cols in tiles(hidden, args.tile_n.non_zero()) {
                let (rows, out) = (part(rows, 1, cols)?, part(self.layer.out, 1, cols)?);
                let scatter = library::moe_scatter(
                    &rows,
                    &list,
                    &count,
                    &self.layer.weights,
                    &out,
                    tokens,
                    cols.1,
                    top_k,
                    hidden,
                    hidden,
                );
                submit(stream, &scatter.task().when(&has_entries))?;
            }
        }
        Ok(())
    }
}

/// Tasks of one rank.
#[must_use]
pub fn tasks(args: &Args, ranks: u64) -> u64 {
    let own = args.experts.get().checked_div(ranks).unwrap_or(0);
    let cut = |extent: Size| extent.get().div_ceil(args.tile_n.get());
    let (hidden, inner) = (cut(args.hidden), cut(args.intermediate));
    // Both ways: the counts and the rows, to and from every rank; alone, a copy instead.
    let travel = if ranks == 1 { 1 } else { 8 * ranks };
    let each = ranks * (2 + 3 * inner + hidden) + 1 + travel;
    1 + args.tokens.get().div_ceil(16) + hidden + own * each + args.experts.get() * hidden
}

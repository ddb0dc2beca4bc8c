//! The collective calls of a communicator.

use pto_abi::fault::Fault;

use super::call::Call;
use super::{doubling, exchange, gather, relay, scatter, tree};
use crate::collective::{Collective, CollectiveCall};
use crate::element::ElementType;
use crate::group::calls::bytes_of;
use crate::group::choice::{Algorithm, Choice, Options, relayed_tile_bytes};
use crate::group::communicator::{Communicator, Level};
use crate::group::tiles::{flat, parts};
use crate::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

/// Every rank makes the same calls in the same order, with tensors of the same size and element type. A rank that does
/// otherwise ends the run of all with the fault `TRANSFER_FAILED`, whose report says which ranks differ in what. Views are dense.
impl Communicator {
    /// Every rank gets the tensor of rank `root`.
    ///
    /// # Errors
    /// `TRANSFER_RANK`, `TRANSFER_TENSOR`, and those of a submission; those of the other calls are the same.
    pub fn broadcast<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        tensor: &TensorView<'_>,
        root: u32,
        options: &Options,
    ) -> Result<(), Fault> {
        self.world_rank(root)?;
        let view = flat(tensor)?;
        let algorithm = self.algorithm(Collective::BROADCAST, &view, options);
        let options = self.relayed(algorithm, &view, options);
        let call = self.call((Collective::BROADCAST, None, algorithm), (&view, root), &options)?;
        let described = call.comm.call_of(Collective::BROADCAST, &view, root);
        watched(stream, &described, |stream| match algorithm {
            Algorithm::TREE => tree::broadcast(&call, stream, &view, root),
            Algorithm::DIRECT => relay::broadcast(&call, stream, &view, root),
            _ => {
                gather::spread_from(&call, stream, &view, root)?;
                gather::gather(&call, stream, &view, algorithm)
            }
        })
    }

    /// Rank `root` gets the reduction of the tensors of all; those of the others are not defined afterwards.
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn reduce<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        tensor: &TensorView<'_>,
        (root, reduction): (u32, Reduction),
        options: &Options,
    ) -> Result<(), Fault> {
        self.world_rank(root)?;
        let view = flat(tensor)?;
        let algorithm = self.algorithm(Collective::REDUCE, &view, options);
        let options = self.relayed(algorithm, &view, options);
        let call =
            self.call((Collective::REDUCE, Some(reduction), algorithm), (&view, root), &options)?;
        let described = call.comm.call_of(Collective::REDUCE, &view, root);
        watched(stream, &described, |stream| match algorithm {
            Algorithm::TREE => tree::reduce(&call, stream, &view, (root, reduction)),
            Algorithm::DIRECT => relay::reduce(&call, stream, &view, (root, reduction)),
            _ => {
                scatter::scatter(&call, stream, &view, (algorithm, reduction))?;
                gather::gather_at(&call, stream, &view, root)
            }
        })
    }

    /// Every rank gets the reduction of the tensors of all, in place.
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn all_reduce<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        tensor: &TensorView<'_>,
        reduction: Reduction,
        options: &Options,
    ) -> Result<(), Fault> {
        let view = flat(tensor)?;
        let algorithm = self.algorithm(Collective::ALL_REDUCE, &view, options);
        if algorithm == Algorithm::TWO_LEVEL {
            return self.two_level(stream, &view, reduction, options);
        }
        let call =
            self.call((Collective::ALL_REDUCE, Some(reduction), algorithm), (&view, 0), options)?;
        let described = call.comm.call_of(Collective::ALL_REDUCE, &view, 0);
        watched(stream, &described, |stream| {
            if algorithm == Algorithm::TREE {
                tree::reduce(&call, stream, &view, (0, reduction))?;
                return tree::broadcast(&call, stream, &view, 0);
            }
            if algorithm == Algorithm::DOUBLING {
                return doubling::all_reduce(&call, stream, &view, reduction);
            }
            scatter::scatter(&call, stream, &view, (algorithm, reduction))?;
            gather::gather(&call, stream, &view, algorithm)
        })
    }

    /// Each rank's part of the tensor gets the reduction of that part of all ranks' tensors; the other parts are not defined
    /// afterwards. Returns the own part; `None`: it has no elements.
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn reduce_scatter<'t, G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        tensor: &TensorView<'t>,
        reduction: Reduction,
        options: &Options,
    ) -> Result<Option<TensorView<'t>>, Fault> {
        let view = flat(tensor)?;
        let algorithm = self.algorithm(Collective::REDUCE_SCATTER, &view, options);
        let call = self.call(
            (Collective::REDUCE_SCATTER, Some(reduction), algorithm),
            (&view, 0),
            options,
        )?;
        let described = call.comm.call_of(Collective::REDUCE_SCATTER, &view, 0);
        watched(stream, &described, |stream| {
            scatter::scatter(&call, stream, &view, (algorithm, reduction))
        })?;
        self.part(tensor, self.rank())
    }

    /// Each rank has its own part of the tensor; afterwards everybody has all parts.
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn all_gather<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        tensor: &TensorView<'_>,
        options: &Options,
    ) -> Result<(), Fault> {
        let view = flat(tensor)?;
        let algorithm = self.algorithm(Collective::ALL_GATHER, &view, options);
        let call = self.call((Collective::ALL_GATHER, None, algorithm), (&view, 0), options)?;
        let described = call.comm.call_of(Collective::ALL_GATHER, &view, 0);
        watched(stream, &described, |stream| gather::gather(&call, stream, &view, algorithm))
    }

    /// Part `i` of `from` becomes the part of `to` at rank `i` that has this rank's number. Both have as many elements.
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn all_to_all<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        (from, to): (&TensorView<'_>, &TensorView<'_>),
        options: &Options,
    ) -> Result<(), Fault> {
        let (from, to) = self.exchanged(from, to)?;
        let call =
            self.call((Collective::ALL_TO_ALL, None, Algorithm::AUTO), (&from, 0), options)?;
        let described = call.comm.call_of(Collective::ALL_TO_ALL, &to, 0);
        watched(stream, &described, |stream| exchange::all_to_all(&call, stream, (&from, &to)))
    }

    /// As [`all_to_all`](Self::all_to_all), but of part `i` only the first `from_counts[i]` rows of `unit` elements are sent. A kernel
    /// may have written the counts, one `u32` for each rank: the host does not know them. Afterwards `to_counts[i]` says how
    /// many rows came from rank `i`. A count that is larger than the part ends the run with `TRANSFER_FAILED`.
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn all_to_all_counted<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        (from, from_counts): (&TensorView<'_>, &TensorView<'_>),
        (to, to_counts): (&TensorView<'_>, &TensorView<'_>),
        (unit, options): (u64, &Options),
    ) -> Result<(), Fault> {
        let is_count = |view: &TensorView<'_>| {
            view.element() == ElementType::U32 && view.elements() == u64::from(self.size())
        };
        if !is_count(from_counts) || !is_count(to_counts) || unit == 0 {
            return Err(Fault::TRANSFER_TENSOR);
        }
        self.all_to_all(stream, (from_counts, to_counts), options)?;
        let (from, to) = self.exchanged(from, to)?;
        let (from_counts, to_counts) = (flat(from_counts)?, flat(to_counts)?);
        let call =
            self.call((Collective::ALL_TO_ALL, None, Algorithm::AUTO), (&from, 0), options)?;
        exchange::counted(&call, stream, (&from, &from_counts), (&to, &to_counts), unit)
    }

    /// Tasks that use `guarded` after this call start when all ranks' tasks that used theirs before it are complete.
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn barrier<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        guarded: &TensorView<'_>,
    ) -> Result<(), Fault> {
        // The ranks may guard tensors of different sizes.
        let none = TensorView::default();
        let call = self.call(
            (Collective::BARRIER, None, Algorithm::AUTO),
            (&none, 0),
            &Options::default(),
        )?;
        exchange::barrier(&call, stream, guarded)
    }

    /// The part of a dense tensor that belongs to a rank, in one dimension; `None`: it has no elements.
    ///
    /// # Errors
    /// `TRANSFER_RANK`, `TRANSFER_TENSOR`.
    pub fn part<'t>(
        &self,
        tensor: &TensorView<'t>,
        rank: u32,
    ) -> Result<Option<TensorView<'t>>, Fault> {
        self.world_rank(rank)?;
        Ok(parts(&flat(tensor)?, (rank, rank + 1), self.size()))
    }

    /// The algorithm that a call on this tensor takes.
    #[must_use]
    pub fn algorithm(
        &self,
        collective: Collective,
        tensor: &TensorView<'_>,
        options: &Options,
    ) -> Algorithm {
        let bytes = tensor.elements() * tensor.element().bytes();
        let (size, network) = (self.size(), self.group.network);
        let ranks_per_node = self.ranks_per_node();
        Choice { collective, size, ranks_per_node, bytes, network }.algorithm(options)
    }

    /// Within each node, between the ranks with the same position in their nodes, and within each node again.
    fn two_level<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        view: &TensorView<'_>,
        reduction: Reduction,
        options: &Options,
    ) -> Result<(), Fault> {
        self.begin_call()?;
        let (per_node, rank) = (self.ranks_per_node(), self.rank());
        let node = rank.checked_div(per_node).unwrap_or(0);
        let position = rank - node * per_node;
        let nodes = self.size().checked_div(per_node).unwrap_or(1);
        // This rank is in both.
        let mut within = self.level(Level::Within, (node * per_node, 1, per_node))?;
        let mut between = self.level(Level::Between, (position, per_node, nodes))?;
        let flat = Options { algorithm: Algorithm::DIRECT, ..*options };
        let described = self.call_of(Collective::ALL_REDUCE, view, 0);
        watched(stream, &described, |stream| {
            if let Some(part) = within.reduce_scatter(stream, view, reduction, &flat)? {
                between.all_reduce(stream, &part, reduction, &flat)?;
            }
            within.all_gather(stream, view, &flat)
        })
    }

    /// The options of a call with a root, where relays pass its tiles on.
    fn relayed(&self, algorithm: Algorithm, view: &TensorView<'_>, options: &Options) -> Options {
        let asked = options.tile_bytes;
        let tile_bytes = match algorithm {
            Algorithm::DIRECT => relayed_tile_bytes(bytes_of(view), self.size(), asked),
            _ => asked,
        };
        Options { tile_bytes, ..*options }
    }

    fn call(
        &mut self,
        what: (Collective, Option<Reduction>, Algorithm),
        on: (&TensorView<'_>, u32),
        options: &Options,
    ) -> Result<Call<'_>, Fault> {
        self.begin_call()?;
        Call::new(self, what, on, options.tile_bytes)
    }

    fn exchanged<'t>(
        &self,
        from: &TensorView<'t>,
        to: &TensorView<'t>,
    ) -> Result<(TensorView<'t>, TensorView<'t>), Fault> {
        let (from, to) = (flat(from)?, flat(to)?);
        let is_even = from.elements().is_multiple_of(self.size().into());
        let is_same = from.elements() == to.elements() && from.element() == to.element();
        if is_even && is_same { Ok((from, to)) } else { Err(Fault::TRANSFER_TENSOR) }
    }
}

/// Submits what belongs to a call, between its announcement and its end.
fn watched<G: StreamBuilder>(
    stream: &mut G,
    call: &CollectiveCall,
    submit: impl FnOnce(&mut G) -> Result<(), Fault>,
) -> Result<(), Fault> {
    stream.begin_collective(call)?;
    submit(stream)?;
    stream.end_collective()?;
    Ok(())
}

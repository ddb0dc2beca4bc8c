//! One collective call under way: what its transfers have in common.

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use crate::group::calls::{bytes_of, submit};
use crate::group::choice::Collective;
use crate::group::communicator::Communicator;
use crate::group::kernel;
use crate::group::reduction::Reduction;
use crate::group::tiles::tiles;
use crate::group::transfer::{Transfer, TransferKind};
use crate::scope::DependencyMode;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;
use crate::tensor_task::Arg;

/// A call: its communicator, what both sides of its transfers agree in, and the grain.
pub(super) struct Call<'c> {
    pub(super) comm: &'c Communicator,
    stamp: u64,
    tile_bytes: u64,
}

impl<'c> Call<'c> {
    /// The next call of a communicator, on a tensor of so many elements.
    pub(super) fn new(
        comm: &'c Communicator,
        (collective, reduction): (Collective, Option<Reduction>),
        view: &TensorView<'_>,
        tile_bytes: u64,
    ) -> Self {
        let how = reduction.map_or(0xF, |reduction| u64::from(reduction.get()));
        let what = u64::from(collective.get()) | how << 4 | u64::from(view.element().get()) << 8;
        let stamp = what
            | 1 << 15
            | (view.elements() & 0xFFFF_FFFF) << 16
            | u64::from(comm.calls & 0xFFFF) << 48;
        Self { comm, stamp, tile_bytes }
    }

    pub(super) fn rank(&self) -> u32 {
        self.comm.rank()
    }

    pub(super) fn size(&self) -> u32 {
        self.comm.size()
    }

    /// The rank so many places further on, the ranks being in a circle. (A size of zero, which there is not, would give this one.)
    pub(super) fn after(&self, distance: u32) -> u32 {
        (self.rank() + distance).checked_rem(self.size()).unwrap_or(0)
    }

    /// The rank so many places before; `distance` is at most the size.
    pub(super) fn before(&self, distance: u32) -> u32 {
        self.after(self.size() - distance)
    }

    fn transfer(&self, kind: TransferKind, peer: u32, at: (u32, u32)) -> Result<Transfer, Fault> {
        let mut transfer = Transfer::new(kind, self.comm.world_rank(peer)?);
        (transfer.tag, transfer.stamp) = (self.comm.call_tag(at), self.stamp);
        Ok(transfer)
    }

    /// The tiles of a view, if there is one, with their numbers.
    pub(super) fn tiles<'t>(
        &self,
        view: Option<TensorView<'t>>,
    ) -> impl Iterator<Item = (u32, TensorView<'t>)> + use<'t> {
        let tile_bytes = self.tile_bytes;
        (0..).zip(view.into_iter().flat_map(move |view| tiles(view, tile_bytes)))
    }

    /// Sends a view to a rank, tile by tile. A receive with the same step takes them.
    pub(super) fn send<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        (to, step): (u32, u32),
    ) -> Result<(), Fault> {
        for (at, tile) in self.tiles(view) {
            let mut transfer = self.transfer(TransferKind::SEND, to, (step, at))?;
            transfer.bytes = bytes_of(&tile);
            submit(stream, &transfer, Arg::In(&tile), None)?;
        }
        Ok(())
    }

    /// Receives a view from a rank, tile by tile.
    pub(super) fn receive<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        (from, step): (u32, u32),
    ) -> Result<(), Fault> {
        for (at, tile) in self.tiles(view) {
            self.receive_tile(stream, &tile, (from, step, at))?;
        }
        Ok(())
    }

    fn receive_tile<G: StreamBuilder>(
        &self,
        stream: &mut G,
        tile: &TensorView<'_>,
        (from, step, at): (u32, u32, u32),
    ) -> Result<TaskId, Fault> {
        let mut transfer = self.transfer(TransferKind::RECEIVE, from, (step, at))?;
        transfer.bytes = bytes_of(tile);
        submit(stream, &transfer, Arg::Out(tile), None)
    }

    /// Receives what a rank sends, and reduces it into a view.
    pub(super) fn receive_into<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        (from, step): (u32, u32),
        reduction: Reduction,
    ) -> Result<(), Fault> {
        for (at, tile) in self.tiles(view) {
            let scope = stream.open_scope(DependencyMode::DERIVED)?;
            let arrived = stream.alloc(tile.element(), tile.shape())?;
            self.receive_tile(stream, &arrived, (from, step, at))?;
            kernel::reduce(stream, (&tile, &arrived, &tile), reduction)?;
            stream.close_scope(scope)?;
        }
        Ok(())
    }

    /// Receives the same view from all other ranks, and reduces them with this rank's in the order of the ranks.
    pub(super) fn receive_all<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        step: u32,
        reduction: Reduction,
    ) -> Result<(), Fault> {
        for (at, tile) in self.tiles(view) {
            self.reduce_tile(stream, &tile, (step, at), reduction)?;
        }
        Ok(())
    }

    fn reduce_tile<G: StreamBuilder>(
        &self,
        stream: &mut G,
        tile: &TensorView<'_>,
        (step, at): (u32, u32),
        reduction: Reduction,
    ) -> Result<(), Fault> {
        let (rank, last) = (self.rank(), self.size() - 1);
        let scope = stream.open_scope(DependencyMode::DERIVED)?;
        // What the ranks up to the one before have come to; it goes to the tile itself with the last one.
        let mut sum = *tile;
        for from in 0..self.size() {
            let next = if from == rank {
                *tile
            } else {
                let arrived = stream.alloc(tile.element(), tile.shape())?;
                self.receive_tile(stream, &arrived, (from, step, at))?;
                arrived
            };
            if from == 0 {
                sum = next;
                continue;
            }
            let is_own = sum.address() == tile.address();
            let target = if from == last || is_own { *tile } else { sum };
            kernel::reduce(stream, (&sum, &next, &target), reduction)?;
            sum = target;
        }
        stream.close_scope(scope)
    }

    /// A transfer without bytes, after the tasks that use `guarded` and before those that use it later.
    pub(super) fn token<G: StreamBuilder>(
        &self,
        stream: &mut G,
        kind: TransferKind,
        (peer, step): (u32, u32),
        guarded: &TensorView<'_>,
    ) -> Result<TaskId, Fault> {
        let transfer = self.transfer(kind, peer, (step, 0))?;
        submit(stream, &transfer, Arg::InOut(guarded), None)
    }

    /// A transfer of as many elements as the `u32` of `count` says when it starts.
    pub(super) fn counted<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (kind, peer): (TransferKind, u32),
        local: &TensorView<'_>,
        (count, unit_bytes): (&TensorView<'_>, u64),
    ) -> Result<TaskId, Fault> {
        let mut transfer = self.transfer(kind, peer, (0, 0))?;
        transfer.bytes = bytes_of(local);
        transfer.count = Some((count.address(), unit_bytes));
        let arg = if kind == TransferKind::SEND { Arg::In(local) } else { Arg::Out(local) };
        submit(stream, &transfer, arg, Some(count))
    }
}

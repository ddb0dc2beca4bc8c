//! One collective call under way: what its transfers have in common.

use core::ops::Range;

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use crate::collective::Collective;
use crate::group::calls::{bytes_of, submit, submit_after};
use crate::group::choice::Algorithm;
use crate::group::communicator::Communicator;
use crate::group::kernel::{self, MOST_PARTS, Parts, part_stride};
use crate::group::tag::stamp::Called;
use crate::group::tiles::{parts, range, tile, tiles_of};
use crate::group::transfer::{Transfer, TransferKind};
use crate::reduction::Reduction;
use crate::scope::DependencyMode;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;
use crate::tensor_task::Arg;

/// A call: its communicator, what both sides of its transfers agree in, and the grain.
pub(super) struct Call<'c> {
    pub(super) comm: &'c Communicator,
    stamp: u128,
    tile_bytes: u64,
}

impl<'c> Call<'c> {
    /// The next call of a communicator, on a tensor of this many elements. [`Algorithm::AUTO`] selects the only algorithm of a collective
    /// that has one.
    pub(super) fn new(
        comm: &'c Communicator,
        (collective, reduction, algorithm): (Collective, Option<Reduction>, Algorithm),
        (view, root): (&TensorView<'_>, u32),
        tile_bytes: u64,
    ) -> Result<Self, Fault> {
        // A communicator has fewer ranks than 16 bits count, and a flat view fewer elements than 32 do.
        let rank = |number: u32| u16::try_from(number).map_err(|_| Fault::TRANSFER_TAGS);
        let (first, stride, size) = comm.ranks_of_group();
        let called = Called {
            collective,
            reduction,
            algorithm,
            element: view.element(),
            elements: u32::try_from(view.elements()).map_err(|_| Fault::TRANSFER_TENSOR)?,
            root: rank(root)?,
            ranks: [rank(first)?, rank(stride)?, rank(size)?],
            repeats: comm.group.repeats,
        };
        Ok(Self { comm, stamp: called.stamp(), tile_bytes })
    }

    pub(super) fn rank(&self) -> u32 {
        self.comm.rank()
    }

    pub(super) fn size(&self) -> u32 {
        self.comm.size()
    }

    /// The rank this many steps further on in the ring of ranks. (For a size of zero, which cannot occur, it is this rank.)
    pub(super) fn after(&self, distance: u32) -> u32 {
        (self.rank() + distance).checked_rem(self.size()).unwrap_or(0)
    }

    /// The rank this many steps back; `distance` is at most the size.
    pub(super) fn before(&self, distance: u32) -> u32 {
        self.after(self.size() - distance)
    }

    fn transfer(&self, kind: TransferKind, peer: u32, at: (u32, u32)) -> Result<Transfer, Fault> {
        let mut transfer = Transfer::new(kind, self.comm.world_rank(peer)?);
        (transfer.tag, transfer.stamp) = (self.comm.call_tag(at)?, self.stamp);
        Ok(transfer)
    }

    /// The tiles of a view, if there is one, with their numbers.
    pub(super) fn tiles<'t>(
        &self,
        view: Option<TensorView<'t>>,
    ) -> impl Iterator<Item = (u32, TensorView<'t>)> + use<'t> {
        let tile_bytes = self.tile_bytes;
        let count = view.map_or(0, |view| tiles_of(&view, tile_bytes));
        let of = move |at| Some((at, tile(&view?, tile_bytes, at)?));
        (0..count).filter_map(of)
    }

    /// The numbers of the tiles of the parts that a view has for the ranks. Parts can differ by an element, and so by a tile.
    pub(super) fn tiles_of_parts(&self, view: &TensorView<'_>) -> Range<u32> {
        let tiles = |of| {
            let part = parts(view, (of, of + 1), self.size());
            part.map_or(0, |part| tiles_of(&part, self.tile_bytes))
        };
        // The last part is one of the largest: a bound is rounded down, and that of the end is exact.
        0..tiles(self.size() - 1)
    }

    /// One tile of a view, if there is one and it has so many.
    pub(super) fn tile<'t>(&self, view: Option<TensorView<'t>>, at: u32) -> Option<TensorView<'t>> {
        tile(&view?, self.tile_bytes, at)
    }

    /// Sends a view to a rank, tile by tile. A receive with the same step takes them.
    pub(super) fn send<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        (to, step): (u32, u32),
    ) -> Result<(), Fault> {
        let send = |(at, tile)| self.send_one(stream, &tile, (to, step, at), &[]);
        self.tiles(view).try_for_each(send)
    }

    /// Sends one tile of a view, if it has so many.
    pub(super) fn send_tile<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        (to, step, at): (u32, u32, u32),
    ) -> Result<(), Fault> {
        let found = self.tile(view, at);
        found.map_or(Ok(()), |tile| self.send_one(stream, &tile, (to, step, at), &[]))
    }

    /// Sends a tile when its producers and the tasks in `after` are complete.
    pub(super) fn send_one<G: StreamBuilder>(
        &self,
        stream: &mut G,
        tile: &TensorView<'_>,
        (to, step, at): (u32, u32, u32),
        after: &[TaskId],
    ) -> Result<(), Fault> {
        let mut transfer = self.transfer(TransferKind::SEND, to, (step, at))?;
        transfer.bytes = bytes_of(tile);
        submit_after(stream, &transfer, Arg::In(tile), after).map(drop)
    }

    /// Receives a view from a rank, tile by tile.
    pub(super) fn receive<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        (from, step): (u32, u32),
    ) -> Result<(), Fault> {
        self.tiles(view)
            .try_for_each(|(at, tile)| self.receive_one(stream, &tile, (from, step, at)))
    }

    /// Receives one tile of a view, if it has so many.
    pub(super) fn receive_tile<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: Option<TensorView<'_>>,
        (from, step, at): (u32, u32, u32),
    ) -> Result<(), Fault> {
        let found = self.tile(view, at);
        found.map_or(Ok(()), |tile| self.receive_one(stream, &tile, (from, step, at)))
    }

    /// Sends a view to a rank and receives one from another, a tile of each in turn.
    pub(super) fn exchange<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (sent, to): (Option<TensorView<'_>>, u32),
        (received, from): (Option<TensorView<'_>>, u32),
        step: u32,
    ) -> Result<(), Fault> {
        for at in 0..self.most_tiles(sent, received) {
            self.send_tile(stream, sent, (to, step, at))?;
            self.receive_tile(stream, received, (from, step, at))?;
        }
        Ok(())
    }

    /// As [`exchange`](Self::exchange), but what is received is reduced into the view.
    pub(super) fn exchange_into<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (sent, to): (Option<TensorView<'_>>, u32),
        (received, from): (Option<TensorView<'_>>, u32),
        (step, reduction): (u32, Reduction),
    ) -> Result<(), Fault> {
        for at in 0..self.most_tiles(sent, received) {
            self.send_tile(stream, sent, (to, step, at))?;
            if let Some(tile) = self.tile(received, at) {
                self.reduce_one(stream, &tile, (from, step, at), (reduction, 0))?;
            }
        }
        Ok(())
    }

    fn most_tiles(&self, a: Option<TensorView<'_>>, b: Option<TensorView<'_>>) -> u32 {
        [a, b].into_iter().flatten().map(|view| tiles_of(&view, self.tile_bytes)).max().unwrap_or(0)
    }

    fn receive_one<G: StreamBuilder>(
        &self,
        stream: &mut G,
        tile: &TensorView<'_>,
        (from, step, at): (u32, u32, u32),
    ) -> Result<(), Fault> {
        let mut transfer = self.transfer(TransferKind::RECEIVE, from, (step, at))?;
        transfer.bytes = bytes_of(tile);
        submit(stream, &transfer, Arg::Out(tile), None).map(drop)
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
            self.reduce_one(stream, &tile, (from, step, at), (reduction, 0))?;
        }
        Ok(())
    }

    /// Receives a tile of a rank and reduces it into this rank's tile, which is the first operand (0) or the second one (1).
    pub(super) fn reduce_one<G: StreamBuilder>(
        &self,
        stream: &mut G,
        tile: &TensorView<'_>,
        (from, step, at): (u32, u32, u32),
        (reduction, position): (Reduction, u32),
    ) -> Result<(), Fault> {
        let scope = stream.open_scope(DependencyMode::DERIVED)?;
        let arrived = stream.alloc(tile.element(), tile.shape())?;
        self.receive_one(stream, &arrived, (from, step, at))?;
        let parts = Parts { view: &arrived, count: 1, position };
        kernel::reduce(stream, (tile, parts, tile), reduction)?;
        stream.close_scope(scope)
    }

    /// Receives a tile from all other ranks, and reduces them with this rank's in the order of the ranks. One kernel takes up to
    /// [`MOST_PARTS`] of them. Returns the last kernel, after which the tile is complete; `None`: there is no other rank.
    pub(super) fn receive_all<G: StreamBuilder>(
        &self,
        stream: &mut G,
        tile: &TensorView<'_>,
        at: (u32, u32),
        reduction: Reduction,
    ) -> Result<Option<TaskId>, Fault> {
        let (rank, size) = (self.rank(), self.size());
        if size < 2 {
            return Ok(None);
        }
        let scope = stream.open_scope(DependencyMode::DERIVED)?;
        let (mut next, mut last) = (0, None);
        if rank >= MOST_PARTS {
            // The tile has to wait until those of all ranks before this one have come to a sum of their own.
            let sum = stream.alloc(tile.element(), tile.shape())?;
            while next < rank {
                let end = rank.min(next + MOST_PARTS);
                self.fold(stream, &sum, (next, end), at, reduction)?;
                next = end;
            }
            let parts = Parts { view: &sum, count: 1, position: 1 };
            last = Some(kernel::reduce(stream, (tile, parts, tile), reduction)?);
            next += 1;
        }
        while next < size {
            let end = size.min(next + MOST_PARTS);
            last = Some(self.fold(stream, tile, (next, end), at, reduction)?);
            next = end;
        }
        stream.close_scope(scope)?;
        Ok(last)
    }

    /// Receives a tile from the ranks `first .. end` but this one, and reduces them into `sum`. Where this rank is one of them, `sum` is
    /// its tile; else `sum` is what the ranks before them have come to, if there are such.
    fn fold<G: StreamBuilder>(
        &self,
        stream: &mut G,
        sum: &TensorView<'_>,
        (first, end): (u32, u32),
        (step, at): (u32, u32),
        reduction: Reduction,
    ) -> Result<TaskId, Fault> {
        let rank = self.rank();
        let is_other = |from: &u32| *from != rank;
        let scope = stream.open_scope(DependencyMode::DERIVED)?;
        let elements = sum.elements();
        let stride = part_stride(elements);
        let count = (first..end).filter(is_other).count() as u64;
        let room = u32::try_from(stride * count).map_err(|_| Fault::TRANSFER_TENSOR)?;
        let arrived = stream.alloc(sum.element(), &[room])?;
        for (position, from) in (0..).zip((first..end).filter(is_other)) {
            let part = range(&arrived, position * stride, position * stride + elements);
            let part = part.ok_or(Fault::TRANSFER_TENSOR)?;
            self.receive_one(stream, &part, (from, step, at))?;
        }
        let is_first = first == 0 && rank >= end;
        let (a, rest) = if is_first {
            let head = range(&arrived, 0, elements);
            (head, range(&arrived, stride, stride * count))
        } else {
            (Some(*sum), Some(arrived))
        };
        let (Some(a), Some(rest)) = (a, rest) else { return Err(Fault::TRANSFER_TENSOR) };
        let position = if (first..end).contains(&rank) { rank - first } else { 0 };
        let count = u32::try_from(count).unwrap_or(u32::MAX) - u32::from(is_first);
        let parts = Parts { view: &rest, count, position };
        let task = kernel::reduce(stream, (&a, parts, sum), reduction)?;
        stream.close_scope(scope)?;
        Ok(task)
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

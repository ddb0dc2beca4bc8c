//! What goes between processes of a pipeline that are on different ranks of a group.
//!
//! ```text
//! every rank: goes through all processes, and submits the tasks of its own
//!   a token is taken on another rank --> the tiles that its task wrote: a send here, a receive there
//!   a task waits for one of another rank --> news of it: a send without bytes here, a receive there
//! ```
//! All ranks go through the same nodes in the same order, because what decides it, sizes, values of tokens and cycles, is the same everywhere. So
//! both sides of a crossing have the same number without any communication. A rank submits its sides in that order too, between its tasks.
//! So the first task or crossing that is not complete waits only for earlier ones, and full rings cannot cause a deadlock.
//!
//! Invariant: the tasks that a process waits for are tasks of its own rank; a task of another rank is represented by the receive of the
//! news of its completion.

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use super::bindings::Bindings;
use super::channels::Mark;
use super::layout::{NO_DIMENSION, limits};
use super::operand::Given;
use super::task::unpack_sides;
use super::tile::Tile;
use crate::exchange::{Crossing, ExchangeKind};
use crate::stream::StreamBuilder;
use crate::tensor::{RawView, TensorView};

/// A tile that a token brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// Its first element, counted from the first one of the tensor's memory.
    first: u64,
    tensor: u8,
    dims: [u8; 2],
    extents: [u32; 2],
}

/// What a token brings along.
pub(super) type Load = heapless::Vec<Carried, { limits::CARRIED }>;

impl Carried {
    /// `None`: the tile leaves its dimensions.
    fn of(tile: &Tile) -> Option<Self> {
        let sides = unpack_sides(tile.sides);
        let (region, mut extents) = (&tile.region, [1; 2]);
        let mut dims = [NO_DIMENSION; 2].map(|none| none.to_le_bytes()[0]);
        for ((dim, extent), known) in sides.dims.iter().zip(&mut extents).zip(&mut dims) {
            if let Some(dim) = dim {
                (*extent, *known) = (*region.shape().get(usize::from(*dim))?, *dim);
            }
        }
        let [rows, cols] = extents.map(u64::from);
        let is_whole = region.offset() == tile.first && region.elements() == rows * cols;
        is_whole.then_some(Self { first: tile.first, tensor: sides.tensor, dims, extents })
    }

    /// So many rows of the tile from this one on, as this rank has them; `None`: that is no part of the tensor.
    fn rows(&self, bindings: &Bindings, (first, count): (u32, u32)) -> Option<TensorView<'static>> {
        let whole = bindings.tensor(self.tensor.into())?;
        let strides = self.dims.map(|dim| whole.strides().get(usize::from(dim)).copied());
        let [row, col] = strides.map(|stride| stride.unwrap_or(0));
        let view = TensorView::alleged(&RawView {
            base: whole.base(),
            bytes: whole.tensor_bytes(),
            element: whole.element().get(),
            offset: self.first.checked_add(row.checked_mul(first.into())?)?,
            shape: &[count, self.extents[1]],
            strides: &[row, col],
        });
        view.defect().is_none().then_some(view)
    }

    /// How many rows are side by side: all of them, or one.
    fn rows_at_once(&self, bindings: &Bindings) -> u32 {
        let [rows, _] = self.extents;
        let is_dense = self.rows(bindings, (0, rows)).is_some_and(|tile| tile.is_dense());
        if is_dense { rows } else { 1 }
    }
}

/// Appends the tiles that a task writes. `false`: there are too many, or one leaves its dimensions.
pub(super) fn load<'g>(load: &mut Load, given: impl Iterator<Item = &'g Given>) -> bool {
    given.filter(|given| given.is_written()).all(|given| match given {
        Given::Tile(_, tile) if tile.is_touched => {
            Carried::of(tile).is_some_and(|carried| load.push(carried).is_ok())
        }
        _ => true,
    })
}

/// What is the same at all ranks that have the same plan and the same numbers. Ranks whose plans differ have the same number in one of 2^32 cases. The check before the run passes
/// then, and the run ends with the fault of the transfer that no rank answers.
pub(super) fn print_of(words: &[u32], numbers: impl Iterator<Item = u64>) -> u32 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01B3).rotate_left(29);
    let plan = words.iter().fold(0xCBF2_9CE4_8422_2325, |hash, word| step(hash, (*word).into()));
    let [low, high] = {
        let hash = numbers.fold(plan, step);
        [hash & 0xFFFF_FFFF, hash >> 32]
    };
    u32::try_from(low ^ high).unwrap_or(0)
}

/// The ranks of a pipeline, and what its tokens bring along.
pub(super) struct Ranks {
    /// This rank.
    here: u16,
    size: u16,
    /// Crossings so far.
    crossings: u32,
    /// Of each process that waits with a token, what that brings along; and the same of each slot for tokens. Nothing where there is one
    /// rank.
    sending: heapless::Vec<Load, { limits::PROCESSES }>,
    slots: heapless::Vec<Load, { limits::TOKENS }>,
}

impl Ranks {
    /// One rank, which has all processes.
    pub(super) fn one() -> Self {
        Self {
            here: 0,
            size: 1,
            crossings: 0,
            sending: heapless::Vec::new(),
            slots: heapless::Vec::new(),
        }
    }

    /// Those of the group that the run belongs to.
    pub(super) fn begin<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        print: u32,
    ) -> Result<(), Fault> {
        let (here, size) = stream.begin_crossings(print)?;
        let fits = u16::try_from(here).ok().zip(u16::try_from(size).ok());
        (self.here, self.size) = fits.ok_or(Fault::TRANSFER_RANK)?;
        if self.are_several() {
            // There is room for as many as there may be.
            let _ = self.sending.resize_default(limits::PROCESSES);
            let _ = self.slots.resize_default(limits::TOKENS);
        }
        Ok(())
    }

    pub(super) const fn are_several(&self) -> bool {
        self.size > 1
    }

    /// The rank that has the processes of this one: a group that has fewer takes turns.
    pub(super) fn of(&self, declared: u16) -> u16 {
        declared.checked_rem(self.size).unwrap_or(0)
    }

    pub(super) const fn is_here(&self, rank: u16) -> bool {
        self.here == rank
    }

    /// What the token brings along with which a process waits, to be filled.
    pub(super) fn sending(&mut self, process: usize) -> Option<&mut Load> {
        let load = self.sending.get_mut(process)?;
        load.clear();
        Some(load)
    }

    /// The token of a process has got a slot.
    pub(super) fn placed(&mut self, process: usize, slot: usize) {
        if let Some((load, slot)) = self.sending.get(process).zip(self.slots.get_mut(slot)) {
            slot.clone_from(load);
        }
    }

    /// Sends the news that a task is complete to a rank. Returns the task that represents it there.
    pub(super) fn news<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        mark: Mark,
        to: u16,
    ) -> Result<Mark, Fault> {
        if mark.rank == to {
            return Ok(mark);
        }
        let id = self.cross(stream, None, (mark.rank, to), &[mark.id])?;
        Ok(Mark { rank: to, id, ..mark })
    }

    /// Sends what a token brings along from the rank of its task to another rank. Returns the task that represents it there. `place` is the
    /// slot in which the token was.
    pub(super) fn bring<G: StreamBuilder>(
        &mut self,
        (stream, bindings): (&mut G, &Bindings),
        (mark, slot): (Mark, usize),
        to: u16,
    ) -> Result<Mark, Fault> {
        let load = match self.slots.get(slot) {
            Some(load) if mark.rank != to => load.clone(),
            _ => return Ok(mark),
        };
        let mut brought = None;
        for carried in &load {
            let count = carried.rows_at_once(bindings);
            // No iterator of steps: in an image a step of zero would be a panic.
            let mut first = 0;
            while first < carried.extents[0] {
                let part = carried.rows(bindings, (first, count)).ok_or(Fault::TRANSFER_TENSOR)?;
                // The send waits for the task, because it reads the task's tile. So a rank that has one of the tiles knows that the task is
                // complete.
                brought = Some(self.cross(stream, Some(part), (mark.rank, to), &[])?);
                first += count.max(1);
            }
        }
        match brought {
            Some(id) => Ok(Mark { rank: to, id, ..mark }),
            None => self.news(stream, mark, to),
        }
    }

    /// This rank's side of a crossing, if it has one. What it returns counts on the rank `to` alone.
    fn cross<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        tile: Option<TensorView<'_>>,
        (from, to): (u16, u16),
        after: &[TaskId],
    ) -> Result<TaskId, Fault> {
        let number = self.crossings;
        // The tag of a crossing has 32 bits for it.
        self.crossings = number.checked_add(1).ok_or(Fault::TRANSFER_TAGS)?;
        let (kind, peer, after) = match self.here {
            here if here == from => (ExchangeKind::SEND, to, after),
            here if here == to => (ExchangeKind::RECEIVE, from, &[][..]),
            _ => return Ok(TaskId::NONE),
        };
        stream.cross(&Crossing { kind, tile, peer: peer.into(), number, after })
    }
}

//! An exchange of a whole tensor with the other ranks of a group, as plans ask for it: a transfer, or a collective.
//! [`Communicator::exchange`](crate::group::Communicator::exchange) submits it. A [`Crossing`] is what a pipeline moves where its processes are on
//! several ranks.

use pto_abi::closed_set;
use pto_abi::ids::TaskId;

use crate::reduction::Reduction;
use crate::tensor::TensorView;

closed_set! {
    /// What becomes of the tensor. Each is the call of a [`Communicator`](crate::group::Communicator) that has its name.
    pub struct ExchangeKind(u8) {
        /// It is given to another rank, which receives it.
        SEND = 0, "send";
        /// It becomes what another rank sends.
        RECEIVE = 1, "receive";
        /// It becomes what one rank has.
        BROADCAST = 2, "broadcast";
        /// One rank gets the reduction of all.
        REDUCE = 3, "reduce";
        /// Every rank gets the reduction of all.
        ALL_REDUCE = 4, "all_reduce";
        /// Every rank gets its part of the reduction of all.
        REDUCE_SCATTER = 5, "reduce_scatter";
        /// Every rank gets the parts that the others have.
        ALL_GATHER = 6, "all_gather";
    }
}

impl ExchangeKind {
    /// Whether it names one other rank.
    #[must_use]
    pub const fn has_peer(self) -> bool {
        matches!(self, Self::SEND | Self::RECEIVE | Self::BROADCAST | Self::REDUCE)
    }

    /// Whether it names a tag.
    #[must_use]
    pub const fn has_tag(self) -> bool {
        matches!(self, Self::SEND | Self::RECEIVE)
    }

    /// Whether it reduces.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(self, Self::REDUCE | Self::ALL_REDUCE | Self::REDUCE_SCATTER)
    }
}

/// An exchange of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'v> {
    /// What becomes of it.
    pub kind: ExchangeKind,
    /// The tensor.
    pub tensor: TensorView<'v>,
    /// How elements are put together, where it [reduces](ExchangeKind::reduces).
    pub reduction: Reduction,
    /// The other rank, where it [has one](ExchangeKind::has_peer).
    pub peer: u32,
    /// The tag by which a send and a receive are matched.
    pub tag: u32,
}

/// One side of what goes from a process of a pipeline to one on another rank: a tile, or the news alone that tasks have completed.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<'v> {
    /// [`SEND`](ExchangeKind::SEND) or [`RECEIVE`](ExchangeKind::RECEIVE).
    pub kind: ExchangeKind,
    /// The tile.
    pub tile: Option<TensorView<'v>>,
    /// The other rank.
    pub peer: u32,
    /// Which of the pipeline's crossings it is. Both sides count alike.
    pub number: u32,
    /// Tasks that the transfer waits for, in addition to the producers of its tile.
    pub after: &'v [TaskId],
}

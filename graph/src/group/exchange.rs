//! An exchange of a whole tensor with other ranks, as plans ask for it: a transfer, or a collective.

use pto_abi::closed_set;
use pto_abi::fault::Fault;

use super::choice::Options;
use super::communicator::Communicator;
use super::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;

closed_set! {
    /// What becomes of the tensor. Each is the call of a [`Communicator`] that has its name.
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
    /// By which a send and a receive meet.
    pub tag: u32,
}

impl Exchange<'_> {
    /// Submits its transfers.
    ///
    /// # Errors
    /// Those of the communicator's call.
    pub fn submit<G: StreamBuilder>(
        &self,
        stream: &mut G,
        comm: &mut Communicator,
    ) -> Result<(), Fault> {
        let Self { kind, tensor, reduction, peer, tag } = self;
        let options = Options::default();
        match *kind {
            ExchangeKind::SEND => comm.send(stream, tensor, *peer, *tag).map(drop),
            ExchangeKind::RECEIVE => comm.receive(stream, tensor, *peer, *tag).map(drop),
            ExchangeKind::BROADCAST => comm.broadcast(stream, tensor, *peer, &options),
            ExchangeKind::REDUCE => comm.reduce(stream, tensor, (*peer, *reduction), &options),
            ExchangeKind::ALL_REDUCE => comm.all_reduce(stream, tensor, *reduction, &options),
            ExchangeKind::REDUCE_SCATTER => {
                comm.reduce_scatter(stream, tensor, *reduction, &options).map(drop)
            }
            _ => comm.all_gather(stream, tensor, &options),
        }
    }
}

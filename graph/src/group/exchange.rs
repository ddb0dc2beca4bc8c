//! Exchanges and crossings, as plans ask for them.

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use super::calls::{bytes_of, submit_after};
use super::choice::Options;
use super::communicator::Communicator;
use super::tag::stamp;
use super::transfer::{Transfer, TransferKind};
use crate::exchange::{Crossing, Exchange, ExchangeKind};
use crate::stream::StreamBuilder;
use crate::tensor_task::Arg;

impl Communicator {
    /// Submits the transfers of an exchange.
    ///
    /// # Errors
    /// Those of the call that has the name of its kind.
    pub fn exchange<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        exchange: &Exchange<'_>,
    ) -> Result<(), Fault> {
        let Exchange { kind, tensor, reduction, peer, tag } = exchange;
        let options = Options::default();
        match *kind {
            ExchangeKind::SEND => self.send(stream, tensor, *peer, *tag).map(drop),
            ExchangeKind::RECEIVE => self.receive(stream, tensor, *peer, *tag).map(drop),
            ExchangeKind::BROADCAST => self.broadcast(stream, tensor, *peer, &options),
            ExchangeKind::REDUCE => self.reduce(stream, tensor, (*peer, *reduction), &options),
            ExchangeKind::ALL_REDUCE => self.all_reduce(stream, tensor, *reduction, &options),
            ExchangeKind::REDUCE_SCATTER => {
                self.reduce_scatter(stream, tensor, *reduction, &options).map(drop)
            }
            _ => self.all_gather(stream, tensor, &options),
        }
    }

    /// A pipeline begins whose processes are on several ranks: it is a call, so that its crossings meet those of the same pipeline at the others.
    /// This rank, and how many there are. Each rank shows its `print` to the next one, which has the same. That is a call of its own: crossings differ
    /// from each other in their stamps.
    ///
    /// # Errors
    /// Those of a submission.
    pub fn begin_crossings<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        print: u32,
    ) -> Result<(u32, u32), Fault> {
        self.begin_call()?;
        let (rank, size) = (self.rank(), self.size());
        let around = |by: u32| rank.wrapping_add(by).checked_rem(size).unwrap_or(0);
        let sides = [(TransferKind::SEND, around(1)), (TransferKind::RECEIVE, around(size - 1))];
        for (kind, peer) in sides.into_iter().filter(|_| size > 1) {
            let mut transfer = Transfer::new(kind, self.world_rank(peer)?);
            transfer.tag = self.call_tag((0, 0))?;
            transfer.stamp = stamp::PIPELINE | u128::from(print) << 32;
            submit_after(stream, &transfer, Arg::Scalar(0), &[])?;
        }
        self.begin_call()?;
        Ok((rank, size))
    }

    /// Submits a side of a crossing.
    ///
    /// # Errors
    /// `TRANSFER_RANK`, `TRANSFER_TENSOR`, and those of a submission.
    pub fn cross<G: StreamBuilder>(
        &self,
        stream: &mut G,
        crossing: &Crossing<'_>,
    ) -> Result<TaskId, Fault> {
        let Crossing { kind, tile, peer, number, after } = crossing;
        let is_sent = *kind == ExchangeKind::SEND;
        let kind = if is_sent { TransferKind::SEND } else { TransferKind::RECEIVE };
        let mut transfer = Transfer::new(kind, self.world_rank(*peer)?);
        transfer.tag = self.call_tag((number >> 16, number & 0xFFFF))?;
        let Some(tile) = tile else {
            return submit_after(stream, &transfer, Arg::Scalar(0), after);
        };
        (transfer.bytes, transfer.stamp) = (bytes_of(tile), tile.element().get().into());
        let local = if is_sent { Arg::In(tile) } else { Arg::Out(tile) };
        submit_after(stream, &transfer, local, after)
    }
}

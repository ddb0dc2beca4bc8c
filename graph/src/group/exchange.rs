//! Exchanges, as plans ask for them: each is a call of the communicator.

use pto_abi::fault::Fault;

use super::choice::Options;
use super::communicator::Communicator;
use crate::exchange::{Exchange, ExchangeKind};
use crate::stream::StreamBuilder;

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
}

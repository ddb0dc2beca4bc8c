//! Which ranks do not agree in a collective call, where their sends and receives do not meet: with other sizes or algorithms, or in another order of
//! calls, each of them waits for what no other does.
//!
//! A rank whose run has failed asks the others what they wait for. Together with the messages that it has not received, and what it
//! waits for itself, that says what each rank has called.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::group::{Side, TransferError};
use crate::message::Kind;
use crate::wire::Wire;

use super::Exchange;

/// Whether a tag is one of a collective call. All transfers of the call have the upper half in common.
const fn is_of_call(tag: u64) -> bool {
    tag >> 63 == 1
}

impl<W: Wire> Exchange<W> {
    /// Asks all other ranks what they wait for.
    pub(crate) fn ask(&mut self) {
        let header = self.header(Kind::Ask, 0);
        self.tell_all(&header, &[]);
    }

    /// The first rank that has not answered, but for those that have ended the run.
    pub(crate) fn unanswered(&self) -> Option<u32> {
        let mut awaited = self.ranks.others().filter(|rank| !self.ended.contains(rank));
        awaited.find(|rank| !self.answers.iter().any(|(_, side)| side.rank == *rank))
    }

    /// A rank does not answer: it hangs, and the run fails with it and not with those who wait for it.
    pub(crate) fn miss_answer(&mut self, rank: u32, waited: Duration) {
        let host = self.ranks.host(rank).to_owned();
        let cause = format!("it has not answered within {waited:?}");
        self.fail(TransferError::PeerFailed { rank, host, cause });
    }

    /// The transfer of a collective call that is under way for the longest time on this rank: its tag, and this rank's side.
    pub(super) fn waits_in_call(&self) -> Option<(u64, Side)> {
        let of_call = self.open.iter().filter(|(_, transfer)| is_of_call(transfer.tag));
        let (_, transfer) = of_call.min_by_key(|(number, _)| **number)?;
        let (bytes, stamp) = (transfer.bytes, transfer.stamp);
        Some((transfer.tag, Side { rank: self.ranks.own(), bytes, stamp }))
    }

    /// Two ranks that are in the same collective call, by its number, and do not agree in what it is.
    pub(crate) fn disagreement(&self) -> Option<TransferError> {
        let unreceived = self.matching.unreceived().map(|(rank, tag, announced)| {
            (tag, Side { rank, bytes: announced.bytes, stamp: announced.stamp })
        });
        let mut sides: Vec<(u64, Side)> =
            self.waits_in_call().into_iter().chain(unreceived).collect();
        sides.extend(&self.answers);
        sides.retain(|(tag, _)| is_of_call(*tag));
        // The earliest call first: what comes later may follow from it.
        sides.sort_unstable_by_key(|(tag, side)| (*tag >> 32, side.rank, *tag, side.stamp));
        let mut calls: BTreeMap<u64, Side> = BTreeMap::new();
        sides.into_iter().find_map(|(tag, second)| {
            let first = *calls.entry(tag >> 32).or_insert(second);
            let differs = first.stamp != second.stamp && first.rank != second.rank;
            differs.then_some(TransferError::Mismatch { first, second, tag })
        })
    }
}

//! Which ranks do not agree in a collective call, where their sends and receives do not meet: with other sizes or algorithms, or in another order of
//! calls, each of them waits for what no other does.
//!
//! A rank whose run has failed asks the others what they wait for. Together with the messages that it has not received, and what it
//! waits for itself, that says what each rank has called.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::ranks::group::{TransferError, TransferSide, call, is_of_call};
use crate::ranks::message::Kind;
use crate::ranks::wire::Wire;

use super::RankExchange;

/// A rank that has waited in a call for so long asks the one that it waits for.
const QUIET: Duration = Duration::from_millis(100);

impl<W: Wire> RankExchange<W> {
    /// A rank is in a call, as this one does or hears: if it is not the same call there as at the rank that came first, the run fails.
    pub(super) fn note_call(&mut self, tag: u128, side: TransferSide) {
        if let Err(error) = self.calls.note(self.run, tag, side) {
            self.fail(error);
        }
    }

    /// While nothing comes or goes: asks the rank that this one waits for in a call what it waits for itself. Where both only receive, no other rank says
    /// that they are in different calls.
    pub(super) fn ask_when_quiet(&mut self, now: Instant) {
        let (since, is_asked) = self.quiet;
        if is_asked || !self.is_running || now.saturating_duration_since(since) < QUIET {
            return;
        }
        self.quiet.1 = true;
        let of_call = self.open.iter().filter(|(_, transfer)| is_of_call(transfer.tag));
        let Some((_, transfer)) = of_call.min_by_key(|(number, _)| **number) else { return };
        let (peer, header) = (transfer.peer, self.header(Kind::Ask, 0));
        let asked = self.frames.send(&mut self.wire, peer, header.frame(&[]));
        self.noted(asked);
    }

    /// Asks all other ranks what they wait for.
    pub(crate) fn ask(&mut self) {
        self.answers.clear();
        let header = self.header(Kind::Ask, 0);
        self.send_all(&header, &[]);
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

    /// The transfer of a collective call that is in flight for the longest time on this rank: its tag, and this rank's side.
    pub(super) fn waits_in_call(&self) -> Option<(u128, TransferSide)> {
        let of_call = self.open.iter().filter(|(_, transfer)| is_of_call(transfer.tag));
        let (_, transfer) = of_call.min_by_key(|(number, _)| **number)?;
        let (bytes, stamp) = (transfer.bytes, transfer.stamp);
        Some((transfer.tag, TransferSide { rank: self.ranks.own(), bytes, stamp }))
    }

    /// Two ranks that are in the same collective call, by its number, and do not agree in what it is.
    pub(crate) fn disagreement(&self) -> Option<TransferError> {
        let unreceived = self.matching.unreceived().map(|(rank, tag, announced)| {
            (tag, TransferSide { rank, bytes: announced.bytes, stamp: announced.stamp })
        });
        let mut sides: Vec<(u128, TransferSide)> =
            self.waits_in_call().into_iter().chain(unreceived).collect();
        sides.extend(&self.answers);
        sides.retain(|(tag, _)| is_of_call(*tag));
        // The earliest call first: what comes later may follow from it.
        sides.sort_unstable_by_key(|(tag, side)| (call(*tag), side.rank, *tag, side.stamp));
        let mut calls: BTreeMap<u128, Vec<TransferSide>> = BTreeMap::new();
        sides.into_iter().find_map(|(tag, second)| {
            let earlier = calls.entry(call(tag)).or_default();
            let first = earlier.iter().find(|first| first.disagrees_with(&second)).copied();
            earlier.push(second);
            first.map(|first| TransferError::Mismatch { first, second, tag })
        })
    }
}

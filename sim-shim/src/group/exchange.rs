//! Who meets whom: sends and receives by their tags, puts and gets in windows, signals and those who wait for them.
//!
//! ```text
//! start(send)    --no receive yet--> kept;   else Move: the bytes are copied, and both complete
//! start(receive) --no send yet-----> kept;   else the same
//! start(put | get)                   Move: the starter completes, and a signal follows the bytes of a put
//! start(signal)                      Move without bytes, with the signal
//! start(wait)    --slot too low----> kept;   else it is over
//! signalled(slot)                    the waits that are over by it
//! ```
//! Invariants:
//! - Sends and receives between two ranks with one tag meet in the order in which they were started.
//! - The second rank of a collective call must call what the first rank has called, or its transfer fails.
//! - A send without bytes is over at once: it is a token.
//! - Nothing of one run meets anything of another: what a rank starts carries the number of its run.

use std::collections::{BTreeMap, HashMap, VecDeque};

use pto_graph::group::transfer::{NO_SLOT, SIGNAL_SLOTS};
use pto_graph::group::{Transfer, TransferKind, tag};

use super::calls::CallLog;
use super::error::{TransferError, TransferSide, transfer_words};
use super::span::ByteRange;

/// A transfer: the rank that started it, and its number there.
pub type TransferId = (u32, u64);

/// Bytes to be moved, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// From this rank.
    pub from: u32,
    /// To that one.
    pub to: u32,
    /// The bytes there are.
    pub source: ByteRange,
    /// Where they go; as many.
    pub target: ByteRange,
    /// The tag of the send and the receive; 0 of others.
    pub tag: u128,
    /// The transfers to complete when the bytes have arrived.
    pub over: [Option<TransferId>; 2],
    /// A slot of rank `to`, and what is added to it when they are there.
    pub signal: Option<(u32, u64)>,
}

/// A send or receive that waits for its other side.
#[derive(Clone, Copy, Debug)]
struct PendingSide {
    number: u64,
    span: ByteRange,
    side: TransferSide,
}

/// Where a send and a receive meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Meeting {
    from: u32,
    to: u32,
    tag: u128,
    run: u64,
}

/// What is known of a rank.
#[derive(Debug, Default)]
struct RankState {
    windows: Vec<ByteRange>,
    run: u64,
    has_ended: bool,
    slots: HashMap<(u64, u32), u64>,
    /// Number, slot, and the value that is waited for.
    waits: Vec<(u64, u32, u64)>,
}

/// All transfers under way between the ranks of a group.
#[derive(Debug, Default)]
pub struct TransferMatcher {
    ranks: Vec<RankState>,
    // Ordered, so that of several transfers without a partner every run reports the same one.
    sends: BTreeMap<Meeting, VecDeque<PendingSide>>,
    receives: BTreeMap<Meeting, VecDeque<PendingSide>>,
    calls: CallLog,
}

impl TransferMatcher {
    /// A matcher for this many ranks.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self { ranks: (0..size).map(|_| RankState::default()).collect(), ..Self::default() }
    }

    /// One more window of a rank.
    pub fn map(&mut self, rank: u32, window: ByteRange) {
        if let Some(state) = self.ranks.get_mut(rank as usize) {
            state.windows.push(window);
        }
    }

    /// A run begins at a rank. All ranks number their runs alike.
    pub fn begin(&mut self, rank: u32, run: u64) {
        if let Some(state) = self.ranks.get_mut(rank as usize) {
            state.slots.retain(|(of, _), _| *of >= run);
            (state.run, state.has_ended) = (run, false);
            state.waits.clear();
        }
        self.forget(rank, run);
    }

    /// The run of a rank is over: what it has not finished is forgotten; its tokens and signals stay.
    pub fn end(&mut self, rank: u32) {
        let Some(state) = self.ranks.get_mut(rank as usize) else { return };
        state.has_ended = true;
        state.waits.clear();
        for (meeting, sends) in &mut self.sends {
            if meeting.from == rank {
                sends.retain(|send| send.span.bytes == 0);
            }
        }
        self.receives.retain(|meeting, _| meeting.to != rank);
    }

    /// A rank starts a transfer; what is to be moved by that goes to `moves`, and those that need no move to `over`.
    ///
    /// # Errors
    /// It cannot be, or the other side does not agree.
    pub fn start(
        &mut self,
        (rank, number): TransferId,
        transfer: &Transfer,
        (moves, over): (&mut Vec<Move>, &mut Vec<TransferId>),
    ) -> Result<(), TransferError> {
        let local = ByteRange { address: transfer.local.0, bytes: transfer.bytes };
        if transfer.peer as usize >= self.ranks.len() {
            let why =
                format!("there is no rank {}; ranks are below {}", transfer.peer, self.ranks.len());
            return Err(TransferError::Refused { rank, why });
        }
        let plain = |from, to, source, target, signal| Move {
            from,
            to,
            source,
            target,
            tag: 0,
            over: [Some((rank, number)), None],
            signal,
        };
        match transfer.kind {
            TransferKind::SEND => {
                self.note_call(rank, transfer)?;
                self.send((rank, number), transfer, local, (moves, over))
            }
            TransferKind::RECEIVE => {
                self.note_call(rank, transfer)?;
                self.receive((rank, number), transfer, local, moves)
            }
            TransferKind::PUT => {
                let remote = self.remote_range(rank, transfer)?;
                let signal = (transfer.slot != NO_SLOT).then_some((transfer.slot, transfer.value));
                moves.push(plain(rank, transfer.peer, local, remote, signal));
                Ok(())
            }
            TransferKind::GET => {
                let remote = self.remote_range(rank, transfer)?;
                moves.push(plain(transfer.peer, rank, remote, local, None));
                Ok(())
            }
            TransferKind::SIGNAL => {
                check_slot(rank, transfer.slot)?;
                let none = ByteRange::default();
                let signal = Some((transfer.slot, transfer.value));
                moves.push(plain(rank, transfer.peer, none, none, signal));
                Ok(())
            }
            _ => {
                check_slot(rank, transfer.slot)?;
                let state = &mut self.ranks[rank as usize];
                let has = state.slots.get(&(state.run, transfer.slot)).copied().unwrap_or(0);
                if has >= transfer.value {
                    over.push((rank, number));
                } else {
                    state.waits.push((number, transfer.slot, transfer.value));
                }
                Ok(())
            }
        }
    }

    /// A signal has come to a rank; `run`: of the rank that it is from. The waits that are over by it go to `over`.
    pub fn signalled(
        &mut self,
        from: u32,
        to: u32,
        (slot, value): (u32, u64),
        over: &mut Vec<TransferId>,
    ) {
        let Some(run) = self.ranks.get(from as usize).map(|state| state.run) else { return };
        let Some(state) = self.ranks.get_mut(to as usize) else { return };
        let has = state.slots.entry((run, slot)).or_default();
        *has = has.wrapping_add(value);
        let (has, own_run) = (*has, state.run);
        state.waits.retain(|(number, at, least)| {
            let is_over = own_run == run && *at == slot && has >= *least;
            if is_over {
                over.push((to, *number));
            }
            !is_over
        });
    }

    /// A send or receive of `rank` that cannot meet anything any more, because the other rank has ended its run.
    #[must_use]
    pub fn orphan(&self, rank: u32) -> Option<(u64, TransferError)> {
        let has_ended = |of: u32| self.ranks.get(of as usize).is_some_and(|state| state.has_ended);
        let ended = |waiting: &PendingSide, (tag, ended): (u128, u32), verb: &str| {
            let what = transfer_words(tag, waiting.side.stamp);
            let what = format!("rank {ended} to {verb} {what}");
            (waiting.number, TransferError::Ended { waits: rank, ended, what })
        };
        let run = self.ranks.get(rank as usize)?.run;
        let is_now = |meeting: &Meeting| meeting.run == run;
        let mut receives = self.receives.iter().filter(|(meeting, _)| {
            meeting.to == rank && is_now(meeting) && has_ended(meeting.from)
        });
        if let Some((meeting, waiting)) = receives.find(|(_, waiting)| !waiting.is_empty()) {
            let whom = (meeting.tag, meeting.from);
            return waiting.front().map(|first| ended(first, whom, "send"));
        }
        let mut sends = self.sends.iter().filter(|(meeting, _)| {
            meeting.from == rank && is_now(meeting) && has_ended(meeting.to)
        });
        let with_bytes =
            |waiting: &VecDeque<PendingSide>| waiting.iter().any(|send| send.span.bytes > 0);
        let (meeting, waiting) = sends.find(|(_, waiting)| with_bytes(waiting))?;
        waiting.front().map(|first| ended(first, (meeting.tag, meeting.to), "receive"))
    }

    /// Two ranks that wait in the same collective call of a rank's run and do not agree in what it is: with other sizes they may have taken other
    /// algorithms, whose sends and receives do not meet.
    #[must_use]
    pub fn disagreement(&self, rank: u32) -> Option<TransferError> {
        let run = self.ranks.get(rank as usize)?.run;
        let mut calls: BTreeMap<u128, Vec<TransferSide>> = BTreeMap::new();
        let waiting = self.sends.iter().chain(&self.receives);
        for (meeting, waiting) in waiting.filter(|(meeting, _)| meeting.run == run) {
            let Some(PendingSide { side, .. }) =
                waiting.front().filter(|_| tag::is_of_call(meeting.tag))
            else {
                continue;
            };
            let (tag, second) = (meeting.tag, *side);
            let sides = calls.entry(tag::call(tag)).or_default();
            if let Some(first) = sides.iter().find(|first| first.disagrees_with(side)) {
                return Some(TransferError::Mismatch { first: *first, second, tag });
            }
            sides.push(second);
        }
        None
    }

    /// A rank is in a call: it is compared with what other ranks have called there, before any of their transfers meet.
    fn note_call(&mut self, rank: u32, transfer: &Transfer) -> Result<(), TransferError> {
        let run = self.ranks.get(rank as usize).map_or(0, |state| state.run);
        let side = TransferSide { rank, bytes: transfer.bytes, stamp: transfer.stamp };
        self.calls.note(run, transfer.tag, side)
    }

    /// What is under way at a rank, for people.
    #[must_use]
    pub fn under_way(&self, rank: u32) -> usize {
        let of = |map: &BTreeMap<Meeting, VecDeque<PendingSide>>, is: fn(&Meeting, u32) -> bool| {
            let own = map.iter().filter(|(meeting, _)| is(meeting, rank));
            own.map(|(_, waiting)| waiting.len()).sum::<usize>()
        };
        let waits = self.ranks.get(rank as usize).map_or(0, |state| state.waits.len());
        waits + of(&self.sends, |m, r| m.from == r) + of(&self.receives, |m, r| m.to == r)
    }

    fn send(
        &mut self,
        (rank, number): TransferId,
        transfer: &Transfer,
        span: ByteRange,
        (moves, over): (&mut Vec<Move>, &mut Vec<TransferId>),
    ) -> Result<(), TransferError> {
        let meeting = self.meeting(rank, transfer.peer, transfer.tag, rank);
        let side = TransferSide { rank, bytes: span.bytes, stamp: transfer.stamp };
        let own = PendingSide { number, span, side };
        let Some(other) = take(&mut self.receives, meeting) else {
            if span.bytes == 0 {
                over.push((rank, number));
            }
            self.sends.entry(meeting).or_default().push_back(own);
            return Ok(());
        };
        match meet(meeting, &own, &other, other.side, side) {
            Ok(found) => moves.push(found),
            Err(error) => {
                put_back(&mut self.receives, meeting, other);
                return Err(error);
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        (rank, number): TransferId,
        transfer: &Transfer,
        span: ByteRange,
        moves: &mut Vec<Move>,
    ) -> Result<(), TransferError> {
        let meeting = self.meeting(transfer.peer, rank, transfer.tag, rank);
        let side = TransferSide { rank, bytes: span.bytes, stamp: transfer.stamp };
        let own = PendingSide { number, span, side };
        let Some(other) = take(&mut self.sends, meeting) else {
            self.receives.entry(meeting).or_default().push_back(own);
            return Ok(());
        };
        let mut found = match meet(meeting, &other, &own, other.side, side) {
            Ok(found) => found,
            Err(error) => {
                put_back(&mut self.sends, meeting, other);
                return Err(error);
            }
        };
        if other.span.bytes == 0 {
            // A token was over when it was sent.
            found.over[0] = None;
        }
        moves.push(found);
        Ok(())
    }

    fn meeting(&self, from: u32, to: u32, tag: u128, own: u32) -> Meeting {
        let run = self.ranks.get(own as usize).map_or(0, |state| state.run);
        Meeting { from, to, tag, run }
    }

    /// The bytes at the other rank that a put or get names.
    fn remote_range(&self, rank: u32, transfer: &Transfer) -> Result<ByteRange, TransferError> {
        let peer = self.ranks.get(transfer.peer as usize);
        let window = peer.and_then(|peer| peer.windows.get(transfer.window as usize));
        let refused = |why: String| TransferError::Refused { rank, why };
        let window = window.ok_or_else(|| {
            refused(format!("rank {} has no window {}", transfer.peer, transfer.window))
        })?;
        window.part(transfer.offset, transfer.bytes).ok_or_else(|| {
            refused(format!(
                "{} bytes from offset {} on are not in window {}, which has {} bytes",
                transfer.bytes, transfer.offset, transfer.window, window.bytes
            ))
        })
    }

    fn forget(&mut self, rank: u32, before: u64) {
        let is_old = |meeting: &Meeting| {
            meeting.run < before && (meeting.from == rank || meeting.to == rank)
        };
        self.sends.retain(|meeting, _| !is_old(meeting));
        self.receives.retain(|meeting, _| !is_old(meeting));
    }
}

fn check_slot(rank: u32, slot: u32) -> Result<(), TransferError> {
    if slot < SIGNAL_SLOTS {
        return Ok(());
    }
    let why = format!("there is no signal slot {slot}; slots are below {SIGNAL_SLOTS}");
    Err(TransferError::Refused { rank, why })
}

/// What did not meet is under way as before: its rank gets an error when the other one ends.
fn put_back(
    map: &mut BTreeMap<Meeting, VecDeque<PendingSide>>,
    meeting: Meeting,
    waiting: PendingSide,
) {
    map.entry(meeting).or_default().push_front(waiting);
}

fn take(
    map: &mut BTreeMap<Meeting, VecDeque<PendingSide>>,
    meeting: Meeting,
) -> Option<PendingSide> {
    let waiting = map.get_mut(&meeting)?;
    let first = waiting.pop_front();
    if waiting.is_empty() {
        map.remove(&meeting);
    }
    first
}

/// A send and a receive meet; `sides` in the order in which they came.
fn meet(
    meeting: Meeting,
    send: &PendingSide,
    receive: &PendingSide,
    first: TransferSide,
    second: TransferSide,
) -> Result<Move, TransferError> {
    if send.side.bytes != receive.side.bytes || send.side.stamp != receive.side.stamp {
        return Err(TransferError::Mismatch { first, second, tag: meeting.tag });
    }
    Ok(Move {
        from: meeting.from,
        to: meeting.to,
        source: send.span,
        target: receive.span,
        tag: meeting.tag,
        over: [Some((meeting.from, send.number)), Some((meeting.to, receive.number))],
        signal: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Move, TransferId, TransferMatcher};
    use crate::group::{ByteRange, Transfer, TransferError, TransferKind};
    use pto_abi::GmAddr;

    struct ExchangeHarness {
        exchange: TransferMatcher,
        moves: Vec<Move>,
        over: Vec<TransferId>,
    }

    impl ExchangeHarness {
        fn new() -> Self {
            let mut exchange = TransferMatcher::new(2);
            for rank in 0..2 {
                exchange.map(rank, ByteRange { address: 1000 * u64::from(rank + 1), bytes: 100 });
                exchange.begin(rank, 1);
            }
            Self { exchange, moves: Vec::new(), over: Vec::new() }
        }

        fn start(&mut self, of: TransferId, transfer: &Transfer) -> Result<(), TransferError> {
            self.exchange.start(of, transfer, (&mut self.moves, &mut self.over))
        }
    }

    fn transfer(kind: TransferKind, peer: u32, bytes: u64) -> Transfer {
        Transfer { local: GmAddr(10), bytes, tag: 4, slot: 3, ..Transfer::new(kind, peer) }
    }

    #[test]
    fn sends_and_receives_meet_in_order_whoever_comes_first() {
        let mut harness = ExchangeHarness::new();
        let (send, receive) =
            (transfer(TransferKind::SEND, 1, 8), transfer(TransferKind::RECEIVE, 0, 8));
        harness.start((0, 1), &send).unwrap();
        harness.start((0, 2), &send).unwrap();
        assert!(harness.moves.is_empty() && harness.exchange.under_way(0) == 2);
        for number in 5..8 {
            harness.start((1, number), &receive).unwrap();
        }
        harness.start((0, 3), &send).unwrap();
        let met: Vec<_> =
            harness.moves.iter().map(|found| found.over.map(|o| o.unwrap().1)).collect();
        assert_eq!(met, [[1, 5], [2, 6], [3, 7]]);
    }

    #[test]
    fn sides_that_differ_are_both_named() {
        let mut harness = ExchangeHarness::new();
        harness.start((0, 1), &transfer(TransferKind::SEND, 1, 8)).unwrap();
        let other = transfer(TransferKind::RECEIVE, 0, 12);
        let Err(TransferError::Mismatch { first, second, .. }) = harness.start((1, 1), &other)
        else {
            panic!("it was accepted");
        };
        assert_eq!((first.rank, first.bytes, second.rank, second.bytes), (0, 8, 1, 12));
        assert_eq!(
            harness.exchange.under_way(0),
            1,
            "the first one still waits for its completion"
        );
    }

    /// No rank sends: each of two ranks takes the other one for the root.
    #[test]
    fn ranks_in_different_calls_are_told_before_anything_meets() {
        let mut harness = ExchangeHarness::new();
        let (tag, stamp) = (1 << 63 | 1 << 32, 1 << 15 | 1 << 80 | 2 << 96);
        let receive = |peer, root: u128| Transfer {
            tag,
            stamp: stamp | root << 48,
            ..transfer(TransferKind::RECEIVE, peer, 8)
        };
        harness.start((0, 1), &receive(1, 1)).unwrap();
        let Err(TransferError::Mismatch { first, second, .. }) =
            harness.start((1, 1), &receive(0, 0))
        else {
            panic!("it was accepted");
        };
        assert_eq!((first.rank, second.rank), (0, 1));
        assert_eq!(harness.exchange.under_way(1), 0);
    }

    #[test]
    fn a_put_lies_in_the_window_and_signals() {
        let mut harness = ExchangeHarness::new();
        let put = Transfer { offset: 92, value: 2, ..transfer(TransferKind::PUT, 1, 8) };
        harness.start((0, 1), &put).unwrap();
        let Move { target, signal, to, .. } = harness.moves[0];
        assert_eq!((target.address, signal, to), (2092, Some((3, 2)), 1));
        let outside = Transfer { offset: 93, ..put };
        assert!(harness.start((0, 2), &outside).unwrap_err().to_string().contains("window 0"));
        let wait = Transfer { value: 4, ..transfer(TransferKind::WAIT, 1, 0) };
        harness.start((1, 9), &wait).unwrap();
        let mut over = Vec::new();
        harness.exchange.signalled(0, 1, (3, 2), &mut over);
        assert!(over.is_empty());
        harness.exchange.signalled(0, 1, (3, 2), &mut over);
        assert_eq!(over, [(1, 9)]);
    }

    #[test]
    fn a_rank_that_has_ended_leaves_tokens_and_no_hope() {
        let mut harness = ExchangeHarness::new();
        harness.start((0, 1), &transfer(TransferKind::SEND, 1, 0)).unwrap();
        assert_eq!(harness.over, [(0, 1)], "a token is over at once");
        harness.exchange.end(0);
        harness.start((1, 5), &transfer(TransferKind::RECEIVE, 0, 0)).unwrap();
        assert_eq!(harness.moves[0].over, [None, Some((1, 5))]);
        assert!(harness.exchange.orphan(1).is_none());
        harness.start((1, 6), &transfer(TransferKind::RECEIVE, 0, 0)).unwrap();
        let (number, error) = harness.exchange.orphan(1).unwrap();
        assert!(number == 6 && error.to_string().contains("rank 0 has ended"), "{error}");
    }

    #[test]
    fn a_run_meets_nothing_of_the_one_before() {
        let mut harness = ExchangeHarness::new();
        harness.start((0, 1), &transfer(TransferKind::SEND, 1, 8)).unwrap();
        harness.exchange.begin(1, 2);
        harness.start((1, 1), &transfer(TransferKind::RECEIVE, 0, 8)).unwrap();
        assert!(harness.moves.is_empty());
        harness.exchange.begin(0, 2);
        harness.start((0, 2), &transfer(TransferKind::SEND, 1, 8)).unwrap();
        assert_eq!(harness.moves.len(), 1);
    }
}

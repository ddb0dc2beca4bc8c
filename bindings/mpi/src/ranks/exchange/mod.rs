//! The state of one rank between two calls of its progress thread, and the steps that change it. Nothing here waits.
//!
//! ```text
//! start ----> Send: frame [+ payload] ---------------------> matching ----> payload into the receiver's tensor
//!             Put:  frame [+ payload] ---> window, slot, Done ---> over
//!             Get:  frame ---------------> window ---> payload -> over
//!             Signal: frame -------------> slot, the task that waits for it
//! step  ----> frames that came in (serve.rs) · payloads that are through · processes, silence (ranks.rs)
//! fail  ----> every step of the run gets the error; nothing starts any more
//! ```
//! Invariants: a transfer in `open` is not over yet; the exchange fails once, and stays so.

mod disagreement;
mod in_flight;
mod matching;
mod ranks;
mod serve;
mod slots;
mod windows;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::ranks::group::{
    ByteRange, CallLog, Completion, NO_SLOT, SIGNAL_SLOTS, Transfer, TransferError, TransferKind,
    TransferSide, transfer_words,
};
use crate::ranks::message::{Header, INLINE_BYTES, Kind};
use crate::ranks::processes::ProcessId;
use crate::ranks::wire::{Arrival, RequestId, Wire, WireError, copied, fill, length};

use in_flight::{Direction, Frames, Payloads};
use matching::{Announced, Matching, Posted};
use ranks::{Missed, Ranks};
use slots::Slots;
use windows::{WindowError, Windows};

/// The numbers of one rank in its world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) max_tag: i32,
    /// A rank that says nothing for so long, while a run is on, is taken for dead.
    pub(crate) silence: Duration,
}

/// What is to be done when a payload is through.
enum Then {
    /// A transfer of this rank is over.
    Over(u64),
    /// A put of another rank has arrived.
    Put { from: (u32, u64), run: u64, signal: (u32, u64) },
    /// Nothing: another rank's step ends the transfer.
    Nothing,
}

/// Buffers for one test of the wire, kept between steps: the requests, and the answers.
#[derive(Default)]
struct WirePoll {
    requests: Vec<RequestId>,
    answers: Vec<Option<Arrival>>,
}

/// One rank's side of everything that is in flight.
pub(crate) struct RankExchange<W> {
    wire: W,
    ranks: Ranks,
    tags: Tags,
    frames: Frames,
    payloads: Payloads<Then>,
    wire_poll: WirePoll,
    matching: Matching,
    windows: Windows,
    slots: Slots,
    meetings: HashMap<(u64, u32), u64>,
    left: u32,
    open: HashMap<u64, Transfer>,
    over: Vec<Completion>,
    failed: Option<TransferError>,
    /// The run that this rank is in, or was in last; whether it is in it.
    run: u64,
    is_running: bool,
    /// Which ranks have ended this run.
    ended: Vec<u32>,
    /// What others have answered that they wait for in this run: the tag, and their side.
    answers: Vec<(u128, TransferSide)>,
    /// What ranks have called in this run, as far as this one has heard.
    calls: CallLog,
    /// Since when nothing has come or gone, and whether a rank was asked since then what it waits for.
    quiet: (Instant, bool),
}

/// Tags of payloads. Those of even halves are chosen by who sends, those of odd ones by who gets.
struct Tags {
    next: u64,
    count: u64,
}

impl Tags {
    fn next(&mut self, is_get: bool) -> u64 {
        self.next = (self.next + 1) % self.count;
        2 + 2 * self.next + u64::from(is_get)
    }
}

fn tag(number: u64) -> i32 {
    // `Tags` counts below the largest tag, which is an i32.
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The bytes of a transfer on this device.
const fn local(transfer: &Transfer) -> ByteRange {
    ByteRange { address: transfer.local.0, bytes: transfer.bytes }
}

impl<W: Wire> RankExchange<W> {
    /// A rank that has not said where it is yet.
    pub(crate) fn new(wire: W, numbers: Numbers) -> Self {
        let count = u64::try_from(numbers.max_tag / 2 - 2).unwrap_or(1).max(1);
        Self {
            wire,
            ranks: Ranks::new(numbers.rank, numbers.ranks, numbers.silence),
            tags: Tags { next: 0, count },
            frames: Frames::default(),
            payloads: Payloads::default(),
            wire_poll: WirePoll::default(),
            matching: Matching::default(),
            windows: Windows::default(),
            slots: Slots::default(),
            meetings: HashMap::new(),
            left: 0,
            open: HashMap::new(),
            over: Vec::new(),
            failed: None,
            run: 0,
            is_running: false,
            ended: Vec::new(),
            answers: Vec::new(),
            calls: CallLog::default(),
            quiet: (Instant::now(), false),
        }
    }

    /// Says to all ranks where this one is.
    pub(crate) fn introduce(&mut self, host: &str, identity: ProcessId) {
        let own = self.ranks.own();
        self.ranks.introduce(own, host, identity);
        let process = u64::from(identity.process);
        let stamp = identity.space.into();
        let header = Header { value: process, stamp, ..Header::new(Kind::Hello) };
        let opened = self.frames.open(&mut self.wire);
        self.noted(opened);
        self.send_all(&header, host.as_bytes());
    }

    /// The ranks that have not said where they are.
    pub(crate) fn strangers(&self) -> Vec<u32> {
        self.ranks.strangers()
    }

    pub(crate) fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    pub(crate) fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    pub(crate) fn failed(&self) -> Option<&TransferError> {
        self.failed.as_ref()
    }

    /// Other ranks may put to and get from this memory.
    pub(crate) fn map(&mut self, window: u32, memory: ByteRange) {
        self.windows.map(window, memory);
    }

    /// Starts a transfer.
    pub(crate) fn start(&mut self, number: u64, transfer: &Transfer) -> Result<(), TransferError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        if transfer.peer >= self.ranks.count() {
            let why = format!("there is no rank {}", transfer.peer);
            return Err(TransferError::Refused { rank: self.ranks.own(), why });
        }
        self.quiet = (Instant::now(), false);
        if transfer.meets() {
            let (rank, bytes) = (self.ranks.own(), transfer.bytes);
            let side = TransferSide { rank, bytes, stamp: transfer.stamp };
            self.calls.note(self.run, transfer.tag, side)?;
        }
        self.open.insert(number, *transfer);
        let begun = match transfer.kind {
            TransferKind::SEND => self.send(number, transfer),
            TransferKind::RECEIVE => self.receive(number, transfer),
            TransferKind::PUT => self.put(number, transfer),
            TransferKind::GET => self.get(number, transfer),
            TransferKind::SIGNAL => self.signal(number, transfer),
            _ => self.wait(number, transfer),
        };
        self.noted(begun);
        Ok(())
    }

    /// A header of the run.
    const fn header(&self, kind: Kind, number: u64) -> Header {
        Header { run: self.run, number, ..Header::new(kind) }
    }

    fn send(&mut self, number: u64, transfer: &Transfer) -> Result<(), WireError> {
        let Transfer { tag, stamp, .. } = *transfer;
        let header = Header { tag, stamp, ..self.header(Kind::Send, number) };
        if self.send_with(transfer, header, Then::Over(number))? {
            self.close(number, Ok(()));
        }
        Ok(())
    }

    fn receive(&mut self, number: u64, transfer: &Transfer) -> Result<(), WireError> {
        let Transfer { peer, tag, stamp, .. } = *transfer;
        let posted = Posted { number, to: local(transfer), stamp };
        if let Some(announced) = self.matching.post(peer, tag, posted) {
            return self.fetch((peer, tag), posted, announced);
        }
        if self.ended.contains(&peer) {
            self.miss_message(peer);
        }
        Ok(())
    }

    fn put(&mut self, number: u64, transfer: &Transfer) -> Result<(), WireError> {
        let Transfer { window, offset, slot, value, .. } = *transfer;
        let window_slot = (window, slot);
        let header = Header { window_slot, offset, value, ..self.header(Kind::Put, number) };
        self.send_with(transfer, header, Then::Nothing).map(drop)
    }

    fn get(&mut self, number: u64, transfer: &Transfer) -> Result<(), WireError> {
        let Transfer { peer, bytes, window, offset, .. } = *transfer;
        if bytes == 0 {
            self.close(number, Ok(()));
            return Ok(());
        }
        let (payload, window_slot) = (self.tags.next(true), (window, NO_SLOT));
        let header =
            Header { window_slot, offset, payload, bytes, ..self.header(Kind::Get, number) };
        self.frames.send(&mut self.wire, peer, header.frame(&[]))?;
        let direction = (Direction::From(peer), tag(payload));
        self.payloads.begin(&mut self.wire, direction, local(transfer), Then::Over(number))
    }

    fn signal(&mut self, number: u64, transfer: &Transfer) -> Result<(), WireError> {
        let Transfer { peer, slot, value, .. } = *transfer;
        if slot >= SIGNAL_SLOTS {
            self.refused(number, WindowError::NoSlot);
            return Ok(());
        }
        let header = Header { window_slot: (0, slot), value, ..self.header(Kind::Signal, number) };
        self.frames.send(&mut self.wire, peer, header.frame(&[]))?;
        self.close(number, Ok(()));
        Ok(())
    }

    fn wait(&mut self, number: u64, transfer: &Transfer) -> Result<(), WireError> {
        match self.slots.wait(number, transfer.slot, transfer.value) {
            Some(true) => self.close(number, Ok(())),
            Some(false) => {}
            None => self.refused(number, WindowError::NoSlot),
        }
        Ok(())
    }

    /// Sends a frame with the contents of a transfer in it, or in a payload that follows, with what is to be done then. Whether they are in it.
    fn send_with(
        &mut self,
        transfer: &Transfer,
        header: Header,
        then: Then,
    ) -> Result<bool, WireError> {
        let (local, peer) = (local(transfer), transfer.peer);
        let header = Header { bytes: local.bytes, ..header };
        if length(local) <= INLINE_BYTES {
            let frame = header.frame(&copied(local));
            return self.frames.send(&mut self.wire, peer, frame).map(|()| true);
        }
        let payload = self.tags.next(false);
        let frame = Header { payload, ..header }.frame(&[]);
        self.frames.send(&mut self.wire, peer, frame)?;
        self.payloads.begin(&mut self.wire, (Direction::To(peer), tag(payload)), local, then)?;
        Ok(false)
    }

    /// Brings an announced message to the receive that it belongs to.
    fn fetch(
        &mut self,
        (from, own_tag): (u32, u128),
        posted: Posted,
        announced: Announced,
    ) -> Result<(), WireError> {
        let Posted { number, to, stamp } = posted;
        let Announced { bytes, stamp: sent, payload, contents } = announced;
        if (bytes, sent) != (to.bytes, stamp) {
            let first = TransferSide { rank: from, bytes, stamp: sent };
            let second = TransferSide { rank: self.ranks.own(), bytes: to.bytes, stamp };
            self.close(number, Err(TransferError::Mismatch { first, second, tag: own_tag }));
            return Ok(());
        }
        if payload == 0 {
            fill(to, &contents);
            self.close(number, Ok(()));
            return Ok(());
        }
        let direction = (Direction::From(from), tag(payload));
        self.payloads.begin(&mut self.wire, direction, to, Then::Over(number))
    }

    /// A rank has ended its run, and a receive of this one waits for it.
    fn miss_message(&mut self, from: u32) {
        let Some((tag, posted)) = self.matching.waits_for(from) else { return };
        let what = format!("rank {from} to send {}", transfer_words(tag, posted.stamp));
        let error = TransferError::Ended { waits: self.ranks.own(), ended: from, what };
        self.close(posted.number, Err(error));
    }

    /// Makes progress on everything, and returns the transfers that are over.
    pub(crate) fn step(&mut self, over: &mut Vec<Completion>) {
        if self.failed.is_none() {
            let stepped = self.try_step();
            self.noted(stepped);
        }
        if self.over.is_empty() {
            self.ask_when_quiet(Instant::now());
        } else {
            self.quiet = (Instant::now(), false);
        }
        over.append(&mut self.over);
        if let Some(failed) = self.failed.as_ref().filter(|_| self.is_running) {
            over.push(Completion { number: None, result: Err(failed.clone()) });
        }
    }

    fn try_step(&mut self) -> Result<(), WireError> {
        let through = self.look()?;
        while let Some((from, frame)) = self.frames.next(&mut self.wire)? {
            self.ranks.hear(from);
            self.serve(from, &frame)?;
            if self.failed.is_some() {
                return Ok(());
            }
        }
        for then in through {
            self.finish_payload(then)?;
        }
        self.look_after_ranks(Instant::now())
    }

    /// Asks the wire once for all requests in flight. The payloads that are through; frames stay in their receives.
    fn look(&mut self) -> Result<Vec<Then>, WireError> {
        let Self { frames, payloads, wire, wire_poll: WirePoll { requests, answers }, .. } = self;
        requests.clear();
        frames.watched(requests);
        let of_frames = requests.len();
        payloads.watched(requests);
        wire.test(requests, answers)?;
        let (of_frames, of_payloads) = answers.split_at(of_frames.min(answers.len()));
        frames.note(of_frames);
        Ok(payloads.note(of_payloads))
    }

    fn finish_payload(&mut self, then: Then) -> Result<(), WireError> {
        match then {
            Then::Over(number) => self.close(number, Ok(())),
            Then::Put { from, run, signal } => return self.acknowledge(from, run, signal),
            Then::Nothing => {}
        }
        Ok(())
    }

    /// A rank whose process has ended fails the exchange, unless it has taken its leave; so does one that is silent while a run is on.
    fn look_after_ranks(&mut self, now: Instant) -> Result<(), WireError> {
        if let Some(next) = self.ranks.next_beat(now) {
            self.frames.send(&mut self.wire, next, Header::new(Kind::Beat).frame(&[]))?;
        }
        let missed = self.ranks.ended(now).filter(|_| self.left == 0);
        let missed = missed.or_else(|| self.ranks.silent(now).filter(|_| self.is_running));
        if let Some(missed) = missed {
            self.miss(missed);
        }
        Ok(())
    }

    fn miss(&mut self, missed: Missed) {
        let host = |rank| self.ranks.host(rank).to_owned();
        let error = match missed {
            Missed::Ended { rank, process } => {
                let cause = format!("its process {process} has ended");
                TransferError::PeerFailed { rank, host: host(rank), cause }
            }
            Missed::Silent { rank, waited } => {
                TransferError::Absent { rank, host: host(rank), waited }
            }
        };
        self.fail(error);
    }

    /// A transfer is over.
    fn close(&mut self, number: u64, result: Result<(), TransferError>) {
        if self.open.remove(&number).is_some() {
            self.over.push(Completion { number: Some(number), result });
        }
    }

    /// The peer of a transfer, or this rank itself, has refused it.
    fn refused(&mut self, number: u64, refusal: WindowError) {
        let Some(transfer) = self.open.get(&number) else { return };
        let Transfer { window, offset, peer, bytes, slot, .. } = *transfer;
        let why = match refusal {
            WindowError::NoWindow => format!("rank {peer} has no window {window}"),
            WindowError::OutOfWindow => {
                format!(
                    "{bytes} bytes from offset {offset} on are not in window {window} of rank {peer}"
                )
            }
            WindowError::NoSlot => {
                format!("there is no signal slot {slot}; slots are below {SIGNAL_SLOTS}")
            }
        };
        self.close(number, Err(TransferError::Refused { rank: self.ranks.own(), why }));
    }

    /// Nothing goes on from here. The error says what this rank waits for.
    pub(crate) fn fail(&mut self, error: TransferError) {
        if self.failed.is_some() {
            return;
        }
        self.failed = Some(match (error, self.waiting()) {
            (TransferError::PeerFailed { rank, host, cause }, Some(waiting)) => {
                TransferError::PeerFailed { rank, host, cause: format!("{cause}; {waiting}") }
            }
            (error, _) => error,
        });
    }

    /// The transfer that is in flight for the longest time, in words.
    fn waiting(&self) -> Option<String> {
        let (_, transfer) = self.open.iter().min_by_key(|(number, _)| **number)?;
        let Transfer { kind, peer, bytes, tag, stamp, .. } = *transfer;
        let (own, kind) = (self.ranks.own(), kind.name());
        let what = transfer_words(tag, stamp);
        Some(format!("rank {own} has a {kind} of {bytes} bytes with rank {peer} under way, {what}"))
    }

    /// This rank itself cannot go on.
    pub(crate) fn fail_here(&mut self, cause: &str) {
        let rank = self.ranks.own();
        let (host, cause) = (self.ranks.host(rank).to_owned(), cause.to_owned());
        self.fail(TransferError::PeerFailed { rank, host, cause });
    }

    fn noted(&mut self, result: Result<(), WireError>) {
        if let Err(WireError(why)) = result {
            self.fail_here(&format!("MPI says: {why}"));
        }
    }

    fn send_all(&mut self, header: &Header, contents: &[u8]) {
        let contents = &contents[..contents.len().min(INLINE_BYTES)];
        let header = Header { bytes: contents.len() as u64, ..*header };
        for rank in self.ranks.others() {
            let sent = self.frames.send(&mut self.wire, rank, header.frame(contents));
            self.noted(sent);
        }
    }

    /// A run begins. What is left of the one before is cleared away: what of it comes later is of another run by its number.
    pub(crate) fn begin(&mut self, run: u64) {
        let unread = self.matching.clear();
        if unread > 0 {
            log::warn!(
                "{unread} messages of the last run were sent to this rank and never received"
            );
        }
        self.slots.clear();
        self.ended.clear();
        self.answers.clear();
        self.open.clear();
        self.over.clear();
        self.run = run;
    }

    /// All ranks are in the run: from now on silence is a sign.
    pub(crate) fn listen(&mut self) {
        self.is_running = true;
        self.ranks.begin_run();
    }

    /// Tells the other ranks that the run of this rank is over; with a cause, that it has failed.
    pub(crate) fn end(&mut self, cause: Option<&str>) {
        self.is_running = false;
        self.open.clear();
        self.over.clear();
        let Some(cause) = cause else {
            let ended = self.header(Kind::Ended, 0);
            self.send_all(&ended, &[]);
            return;
        };
        self.payloads.give_up(&mut self.wire);
        let root = match &self.failed {
            Some(TransferError::PeerFailed { rank, .. } | TransferError::Absent { rank, .. }) => {
                *rank
            }
            _ => self.ranks.own(),
        };
        let header = Header { value: u64::from(root), ..Header::new(Kind::Failed) };
        self.send_all(&header, cause.as_bytes());
        self.fail_here(cause);
    }

    /// Gives the word of a meeting to all ranks.
    pub(crate) fn come(&mut self, round: u64, word: u64) {
        self.meetings.insert((round, self.ranks.own()), word);
        let header = Header { number: round, value: word, ..Header::new(Kind::Meet) };
        self.send_all(&header, &[]);
    }

    /// The words of a meeting, by rank; `None` for those that have not come.
    pub(crate) fn words(&self, round: u64) -> Vec<Option<u64>> {
        (0..self.ranks.count()).map(|rank| self.meetings.get(&(round, rank)).copied()).collect()
    }

    /// A meeting is over.
    pub(crate) fn forget_meeting(&mut self, round: u64) {
        self.meetings.retain(|(other, _), _| *other != round);
    }

    /// Takes this rank's leave: the others no longer miss its process.
    pub(crate) fn leave(&mut self) {
        self.send_all(&Header::new(Kind::Leave), &[]);
        self.left += 1;
    }

    /// Whether every rank has taken its leave.
    pub(crate) fn has_everybody_left(&self) -> bool {
        self.left >= self.ranks.count()
    }

    /// Whether every frame of this rank is in flight, after a step of the frames.
    pub(crate) fn flush(&mut self) -> bool {
        let Self { frames, wire, wire_poll: WirePoll { requests, answers }, .. } = self;
        requests.clear();
        frames.watched(requests);
        let looked = wire.test(requests, answers);
        frames.note(answers);
        looked.is_err() || frames.are_sent()
    }

    /// Nothing comes in any more.
    pub(crate) fn close_frames(&mut self) {
        self.frames.close(&mut self.wire);
    }
}

//! What the machines of a group share: whose turn it is, and what is on its way between them.
//!
//! Invariants:
//! - One machine runs at a time: the one in `running`. All others wait for their turn, as coroutines of one thread (`carrier.rs`).
//! - `next_ns[rank]` is not later than the rank's next event, and than the first effect on its way to it.
//! - An effect on another rank comes at least their [`lookahead`](NetworkProfile::lookahead_ns) after the moment at which it was caused. That of
//!   two ranks is at most the sum of those of any way over others, so that it bounds what a third rank does in answer, too.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::carrier::{Carrier, Machine, Turns};
use super::contributions::{ContributionReport, Contributions, Reduced, Submitted};
use super::coroutine::{self, Stack};
use super::deliveries::Deliveries;
use super::links::Links;
use super::profile::NetworkProfile;
use crate::group::{ByteRange, Move, Transfer, TransferError, TransferId, TransferMatcher};
use crate::virtual_time::chooser::Chooser;
use crate::virtual_time::options::Compute;

/// What goes wrong in the network; nothing, by default. A transfer is lost or left out once, and a rank dies once: runs after that one have no trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetFaults {
    /// A link that is slow: from this rank, to that one, so many times.
    pub slow: Option<(u32, u32, u64)>,
    /// The transfer with this number, in the order of their starts, is lost, and both sides get an error.
    pub lost: Option<u64>,
    /// The bytes of the transfer with this number do not come, without an error: the transfer completes like any other one.
    pub left_out: Option<u64>,
    /// A rank that dies, and when, in nanoseconds.
    pub dies: Option<(u32, u64)>,
}

/// How far a search over the orders of arrivals is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetSearch {
    /// The choices of the last run.
    pub choices: Vec<u32>,
    /// How many orders there are; 0 before the search is over.
    pub orders: u128,
    /// States in which there was a choice.
    pub states: usize,
}

/// What happens to a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Bytes come, or leave it, or a signal comes.
    Arrived(Box<Move>),
    /// A transfer of this rank is over.
    Over(u64),
    /// Its transfers cannot go on. In a box: many effects are on their way, and change places in their queue.
    Failed(Box<TransferError>),
}

/// An effect on its way: when it comes, and the order in which effects were caused.
struct OnItsWay {
    at_ns: u64,
    serial: u64,
    effect: Effect,
}

impl PartialEq for OnItsWay {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}
impl Eq for OnItsWay {}
impl PartialOrd for OnItsWay {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OnItsWay {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.serial).cmp(&(other.at_ns, other.serial))
    }
}

struct NetState {
    exchange: TransferMatcher,
    links: Links,
    faults: NetFaults,
    /// Whether transfers move bytes.
    carries: bool,
    /// In a search: what arrives next, in place of the links.
    deliveries: Option<Deliveries>,
    /// Whose values elements have, if that is followed.
    contributions: Option<Contributions>,
    next_ns: Vec<u64>,
    running: usize,
    effects: Vec<BinaryHeap<Reverse<OnItsWay>>>,
    serial: u64,
    /// The shortest time in which a transfer of one rank has an effect on another: by rank, for all ranks one after the other.
    lookahead_ns: Vec<u64>,
    /// When the rank that runs could have the first answer to the transfer that it starts.
    answer_ns: u64,
    moves: u64,
    failures: Vec<Option<TransferError>>,
    counts: Vec<(u64, u64, u64)>,
}

/// See the file.
pub struct VirtualNet {
    shared: Mutex<NetState>,
    size: u32,
    carrier: Carrier,
    profile: NetworkProfile,
}

/// No event.
const NEVER: u64 = u64::MAX;

/// What a machine may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::virtual_time) struct Leave {
    /// The time up to which the machine may run on.
    pub(in crate::virtual_time) horizon_ns: u64,
    /// When the first effect comes to it.
    pub(in crate::virtual_time) effect_ns: u64,
    /// It dies now.
    pub(in crate::virtual_time) dies: bool,
}

impl VirtualNet {
    /// A network between so many ranks. Without computation transfers take their time, and move nothing.
    #[must_use]
    pub fn new(
        size: u32,
        profile: NetworkProfile,
        faults: NetFaults,
        compute: Compute,
    ) -> Arc<Self> {
        let count = size as usize;
        let between = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
        let shared = NetState {
            exchange: TransferMatcher::new(size),
            links: Links::new(profile, size, faults.slow),
            faults,
            carries: compute == Compute::Run,
            deliveries: None,
            contributions: (compute == Compute::Contributions).then(|| Contributions::new(count)),
            next_ns: vec![NEVER; count],
            running: count,
            effects: (0..count).map(|_| BinaryHeap::new()).collect(),
            serial: 0,
            lookahead_ns: between.map(|(a, b)| profile.lookahead_ns(a, b)).collect(),
            answer_ns: NEVER,
            moves: 0,
            failures: vec![None; count],
            counts: vec![(0, 0, 0); count],
        };
        Arc::new(Self { shared: Mutex::new(shared), size, carrier: Carrier::default(), profile })
    }

    fn shared(&self) -> MutexGuard<'_, NetState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The network's profile.
    #[must_use]
    pub const fn profile(&self) -> &NetworkProfile {
        &self.profile
    }

    /// One more window of a rank.
    pub fn map(&self, rank: u32, window: ByteRange) {
        self.shared().exchange.map(rank, window);
    }

    /// A run of all ranks begins, before any machine runs.
    pub fn begin(&self, run: u64) {
        let mut shared = self.shared();
        let size = self.size;
        shared.links = Links::new(self.profile, size, shared.faults.slow);
        (shared.running, shared.serial, shared.moves) = (0, 0, 0);
        if let Some(contributions) = &mut shared.contributions {
            *contributions = Contributions::new(size as usize);
        }
        if let Some(deliveries) = &mut shared.deliveries {
            deliveries.begin();
        }
        for rank in 0..size {
            shared.exchange.begin(rank, run);
            let at = rank as usize;
            shared.next_ns[at] = 0;
            shared.effects[at].clear();
            shared.failures[at] = None;
            shared.counts[at] = (0, 0, 0);
        }
    }

    /// Why transfers of a rank failed in the last run, if they did; and its transfers, bytes given and bytes got.
    #[must_use]
    pub fn outcome(&self, rank: u32) -> ((u64, u64, u64), Option<TransferError>) {
        let shared = self.shared();
        (shared.counts[rank as usize], shared.failures[rank as usize].clone())
    }

    /// What the last run's collectives have left where, if that was followed ([`Compute::Contributions`]).
    #[must_use]
    pub fn contributions(&self) -> Option<ContributionReport> {
        self.shared().contributions.as_ref().map(Contributions::report)
    }

    /// From here to [`end_search`](Self::end_search) each run is one order in which transfers arrive: the first one of a search over all, or with
    /// `choices` the order that an earlier search has named.
    pub fn begin_search(&self, choices: Option<Vec<u32>>) {
        let chooser = choices.map_or_else(Chooser::search_states, Chooser::replay);
        self.shared().deliveries = Some(Deliveries::new(chooser.listing(), self.size as usize));
    }

    /// How far the search is; `None`: there is none.
    #[must_use]
    pub fn searched(&self) -> Option<NetSearch> {
        let shared = self.shared();
        let chooser = shared.deliveries.as_ref()?.chooser();
        let (orders, states) =
            chooser.searched().map_or((0, 0), |search| (search.orders(), search.states()));
        Some(NetSearch { choices: chooser.listed().to_vec(), orders, states })
    }

    /// Goes on to the next order; `false`: all have been taken.
    pub fn advance_search(&self) -> bool {
        self.shared().deliveries.as_mut().is_some_and(Deliveries::advance)
    }

    /// Transfers take the time of the links again.
    pub fn end_search(&self) {
        self.shared().deliveries = None;
    }

    /// Whether it is followed whose values elements have.
    pub(super) fn follows(&self) -> bool {
        self.shared().contributions.is_some()
    }

    /// A rank begins to submit a collective call.
    pub(super) fn submitted(&self, rank: u32, submitted: &Submitted) {
        if let Some(contributions) = &mut self.shared().contributions {
            contributions.begin(rank, submitted);
        }
    }

    /// A kernel `reduce` has run on a rank.
    pub(super) fn reduced(&self, rank: u32, kernel: &Reduced) {
        if let Some(contributions) = &mut self.shared().contributions {
            contributions.reduced(rank, kernel);
        }
    }

    /// A machine whose next event is at `next_ns` gives others their turn, and waits for its own.
    pub(super) fn turn(&self, rank: u32, next_ns: u64) -> Leave {
        let me = rank as usize;
        let mut shared = self.shared();
        shared.next_ns[me] = next_ns.min(shared.first_effect_ns(me));
        shared.hand_over(me);
        while shared.running != me {
            drop(shared);
            coroutine::suspend();
            shared = self.shared();
        }
        let horizon_ns = shared.horizon_ns(me);
        let now_ns = shared.next_ns[me];
        let dies = shared.faults.dies.is_some_and(|(of, at_ns)| of == rank && now_ns >= at_ns);
        if dies {
            shared.faults.dies = None;
        }
        Leave { horizon_ns, effect_ns: shared.first_effect_ns(me), dies }
    }

    /// A rank will not run, or its machine has ended without saying so: the others do not wait for it. Does nothing, if it has.
    /// It is reported in the rank's turn: how far the others have come by then does not depend on the threads of this machine.
    pub fn give_up(self: &Arc<Self>, rank: u32, cause: &str) {
        let me = rank as usize;
        let is_inside = coroutine::is_inside();
        if !is_inside {
            self.carrier.wait(|| {
                let shared = self.shared();
                shared.running == me || shared.next_ns[me] == NEVER
            });
        }
        let now_ns = self.shared().next_ns[me];
        self.leave(rank, now_ns, Some(cause.to_owned()));
        if !is_inside {
            Carrier::abandon(self, me);
            self.carrier.tell_change();
        }
    }

    /// Runs the machine of a rank in its turns, and waits until it is over; what it ran on, if it is. While it waits for its turn, `beat` says
    /// that it is there.
    ///
    /// # Errors
    /// The process gets no further thread.
    pub(in crate::virtual_time) fn run(
        self: &Arc<Self>,
        rank: u32,
        machine: Machine,
        beat: impl Fn(),
    ) -> io::Result<Option<Stack>> {
        Carrier::run(self, rank as usize, machine, beat)
    }

    /// The run of a machine is over, at `now_ns`.
    pub(super) fn leave(&self, rank: u32, now_ns: u64, cause: Option<String>) {
        let mut shared = self.shared();
        if shared.next_ns[rank as usize] == NEVER {
            return;
        }
        if cause.is_some() && shared.failures[rank as usize].is_none() {
            shared.failures[rank as usize] = shared.exchange.disagreement(rank);
        }
        shared.exchange.end(rank);
        for other in (0..self.size).filter(|other| *other != rank) {
            if shared.next_ns[other as usize] == NEVER {
                continue;
            }
            let error = match &cause {
                Some(cause) => {
                    let host = "the machine in virtual time".to_owned();
                    Some(TransferError::PeerFailed { rank, host, cause: cause.clone() })
                }
                None => shared.exchange.orphan(other).map(|(_, error)| error),
            };
            if let Some(error) = error {
                // No effect is reported in the past.
                let at_ns = now_ns + shared.lookahead_ns(rank, other);
                let at_ns = at_ns.max(shared.next_ns[other as usize]);
                shared.push(other, at_ns, Effect::Failed(Box::new(error)));
            }
        }
        shared.next_ns[rank as usize] = NEVER;
        shared.effects[rank as usize].clear();
        shared.hand_over(rank as usize);
    }

    /// A rank starts a transfer at `now_ns`. When the first effect comes to it, and how far it may go on at most: another rank on which
    /// the transfer has an effect can answer, and had perhaps nothing to do until then.
    pub(super) fn start(
        &self,
        (rank, number): TransferId,
        transfer: &Transfer,
        now_ns: u64,
    ) -> Result<(u64, u64), TransferError> {
        let mut shared = self.shared();
        shared.answer_ns = NEVER;
        let (mut moves, mut over) = (Vec::new(), Vec::new());
        shared.count(rank, transfer);
        let started = shared.exchange.start((rank, number), transfer, (&mut moves, &mut over));
        if let Err(error) = started {
            shared.failures[rank as usize].get_or_insert_with(|| error.clone());
            return Err(error);
        }
        let start_ns = self.profile.start_ns;
        for (of, number) in over {
            shared.push(of, now_ns + start_ns, Effect::Over(number));
        }
        for found in moves {
            shared.send(found, now_ns);
        }
        // Nothing comes any more from a rank whose run is over.
        if shared.next_ns.get(transfer.peer as usize) == Some(&NEVER)
            && let Some((_, error)) = shared.exchange.orphan(rank)
        {
            let at_ns = now_ns + shared.lookahead_ns(rank, transfer.peer);
            shared.push(rank, at_ns, Effect::Failed(Box::new(error)));
        }
        Ok((shared.first_effect_ns(rank as usize), shared.answer_ns))
    }

    /// Takes what has come to a rank until `now_ns`: the numbers of its transfers that are over, or why they fail; and when the
    /// next effect comes.
    pub(super) fn take(&self, rank: u32, now_ns: u64) -> (Vec<u64>, Option<TransferError>, u64) {
        let mut shared = self.shared();
        let (mut numbers, mut failure) = (Vec::new(), None);
        while shared.first_effect_ns(rank as usize) <= now_ns {
            let Some(Reverse(found)) = shared.effects[rank as usize].pop() else { break };
            match found.effect {
                Effect::Over(number) => numbers.push(number),
                Effect::Failed(error) => failure = Some(*error),
                Effect::Arrived(found) => shared.arrive(rank, &found, now_ns, &mut numbers),
            }
        }
        if let Some(error) = &failure {
            shared.failures[rank as usize].get_or_insert_with(|| error.clone());
        }
        (numbers, failure, shared.first_effect_ns(rank as usize))
    }
}

impl Turns for VirtualNet {
    fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    fn running(&self) -> Option<usize> {
        let shared = self.shared();
        let is_left = shared.next_ns.get(shared.running).is_some_and(|next| *next != NEVER);
        is_left.then_some(shared.running)
    }
}

impl NetState {
    /// The machine with the earliest event runs next, of several the one with the lowest rank, if this one has run.
    fn hand_over(&mut self, me: usize) {
        if self.running != me {
            return;
        }
        self.deliver();
        let ranks = self.next_ns.iter().enumerate().filter(|(_, next)| **next != NEVER);
        if let Some((first, _)) = ranks.min_by_key(|(rank, next)| (**next, *rank)) {
            self.running = first;
        }
    }

    /// In a search: lets a transfer arrive, if no machine has anything to do before.
    fn deliver(&mut self) {
        let Some(deliveries) = &mut self.deliveries else { return };
        let next_ns = self.next_ns.iter().copied().min().unwrap_or(NEVER);
        if next_ns == NEVER {
            return;
        }
        if let Some((found, number, at_ns)) = deliveries.arrival(next_ns) {
            self.carry(&found, number);
            self.arrive_at(found, at_ns);
        }
    }

    /// From `a` to `b`; none for ranks that do not exist.
    fn lookahead_ns(&self, a: u32, b: u32) -> u64 {
        let at = a as usize * self.next_ns.len() + b as usize;
        self.lookahead_ns.get(at).copied().unwrap_or(0)
    }

    /// Before this moment nothing comes to a rank that is not on its way yet.
    fn horizon_ns(&self, me: usize) -> u64 {
        if let Some(deliveries) = &self.deliveries {
            return deliveries.epoch_ns();
        }
        let ranks = self.next_ns.len();
        let ways = self.lookahead_ns.get(me * ranks..).unwrap_or_default();
        let others = self.next_ns.iter().zip(ways).enumerate().filter(|(other, _)| *other != me);
        others.map(|(_, (next, way))| next.saturating_add(*way)).min().unwrap_or(NEVER)
    }

    fn first_effect_ns(&self, rank: usize) -> u64 {
        self.effects[rank].peek().map_or(NEVER, |Reverse(first)| first.at_ns)
    }

    fn push(&mut self, rank: u32, at_ns: u64, effect: Effect) {
        let serial = self.serial;
        self.serial += 1;
        let at = rank as usize;
        if at != self.running {
            let running = u32::try_from(self.running).unwrap_or(u32::MAX);
            let answer_ns = at_ns.saturating_add(self.lookahead_ns(rank, running));
            self.answer_ns = self.answer_ns.min(answer_ns);
        }
        self.effects[at].push(Reverse(OnItsWay { at_ns, serial, effect }));
        if self.next_ns[at] != NEVER {
            self.next_ns[at] = self.next_ns[at].min(at_ns);
        }
    }

    /// Bytes go on their way, unless the network loses them.
    fn send(&mut self, found: Move, now_ns: u64) {
        let number = self.moves;
        self.moves += 1;
        let (from, to) = (found.from, found.to);
        if self.faults.lost == Some(number) {
            // In a search every run has the fault.
            self.faults.lost = self.faults.lost.filter(|_| self.deliveries.is_some());
            let what = format!("transfer {number}, of {} bytes,", found.source.bytes);
            for rank in [from, to] {
                let lost = TransferError::Lost { from, to, what: what.clone() };
                let at_ns = now_ns + self.lookahead_ns(from, to);
                self.push(rank, at_ns, Effect::Failed(Box::new(lost)));
            }
            return;
        }
        if let Some(deliveries) = &mut self.deliveries {
            // The bytes move when it arrives: no machine is further on then, and others may have written to the same bytes before.
            deliveries.send(found, number);
            return;
        }
        let at_ns = self.links.arrival_ns(from, to, found.source.bytes, now_ns);
        // When they leave, and not when they arrive: the sender, which may write to the bytes then, can be ahead of the receiver by that
        // time. Both sides have given the spans away until the transfer is over.
        self.carry(&found, number);
        self.arrive_at(found, at_ns);
    }

    /// Moves the bytes of a transfer, and notes whose values they have.
    fn carry(&mut self, found: &Move, number: u64) {
        let arrives = self.faults.left_out != Some(number);
        if !arrives {
            self.faults.left_out = self.faults.left_out.filter(|_| self.deliveries.is_some());
        }
        if let Some(contributions) = &mut self.contributions {
            contributions.moved(found, arrives);
        }
        if self.carries && arrives {
            // SAFETY: the spans lie in the GM of devices of the group, which is mapped as long as the group lives. One machine runs
            // at a time, and by the edges no other task uses the bytes of a transfer that is under way.
            unsafe { found.source.copy_to(found.target) };
        }
    }

    /// A transfer is there, and over, at a moment.
    fn arrive_at(&mut self, found: Move, at_ns: u64) {
        let to = found.to;
        self.push(to, at_ns, Effect::Arrived(Box::new(found)));
        for (rank, number) in found.over.into_iter().flatten() {
            if rank != to {
                self.push(rank, at_ns, Effect::Over(number));
            }
        }
    }

    /// Bytes have come to `rank`, or a signal has.
    fn arrive(&mut self, rank: u32, found: &Move, now_ns: u64, numbers: &mut Vec<u64>) {
        let mut over: Vec<TransferId> = found.over.into_iter().flatten().collect();
        over.retain(|(of, _)| *of == rank);
        if let Some(signal) = found.signal {
            self.exchange.signalled(found.from, found.to, signal, &mut over);
        }
        for (of, number) in over {
            if of == rank {
                numbers.push(number);
            } else {
                self.push(of, now_ns, Effect::Over(number));
            }
        }
    }

    fn count(&mut self, rank: u32, transfer: &Transfer) {
        use crate::group::TransferKind as Kind;
        let (transfers, given, got) = &mut self.counts[rank as usize];
        *transfers += 1;
        match transfer.kind {
            Kind::SEND | Kind::PUT => *given += transfer.bytes,
            Kind::RECEIVE | Kind::GET => *got += transfer.bytes,
            _ => {}
        }
    }
}

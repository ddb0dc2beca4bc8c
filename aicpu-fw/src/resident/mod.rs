//! The resident firmware: stays up, begins what the streams of a session hold, and returns when it is idle or asked to.
//!
//! ```text
//!        doorbells                command rings
//!            v                         v
//! serve: listen -> ActiveLanes -> StreamPoll::collect -> StreamPoll::turn -> Launches::begin -> ready queues -> schedulers
//!            ^                                           |
//!            |------------ machine.relax() <--------------|
//!            '------------ machine.park()  <-- idle ------'        asked to leave, out of time, no doorbell: drain, then return
//! ```
//! It is the builder of its run: instance 0 feeds, the others schedule. Everything that it knows of a stream is in GM (the
//! board of the session), so that it can return at any time with nothing on its way, and come up again.
//!
//! Why it is so: `docs/decisions/resident-firmware.md`.

mod active;
mod launches;
mod poll;
mod replay;

use pto_abi::session::board::{ASLEEP, RESIDENT_SYMBOL, fall_asleep, take_bell, wake_up};
use pto_abi::session::{RingConsumer, SessionBoard, SessionOrders};
use pto_abi::sync::{AtomicU64, Ordering, Sharing};
use pto_abi::{Fault, GmAddr};

use self::active::ActiveLanes;
use self::launches::Launches;
use self::poll::{StreamPoll, Surroundings};
use crate::blame::Blame;
use crate::builder::BuilderInputs;
use crate::config::Config;
use crate::fanout::FanoutPolicy;
use crate::launch::{ArenaMemory, Launch};
use crate::machine::Machine;

/// Turns in which something moved between two that the host gives the schedulers, where one thread steps everything.
const TURNS_A_RELAX: u32 = 16;
/// Turns in which nothing moved between two looks at the doorbells, while streams wait for something. A submitter writes the line of a
/// doorbell, and a look takes that line from the submitter's processor.
const TURNS_A_LISTEN: u32 = 8;
/// Commands of one stream that are served before the next stream is.
const IN_A_ROW: u32 = 64;

/// Whether this is the program's symbol.
pub(crate) const fn is_program(program: u64) -> bool {
    program == RESIDENT_SYMBOL
}

/// Serves the session whose board the one orchestration word names, until there is a reason to return. How many tasks there were.
// A call of its own, so that other builders do not need its stack for the streams.
#[inline(never)]
pub(crate) fn serve<S: Sharing, F: FanoutPolicy, M: Machine>(
    launch: &Launch<'_>,
    inputs: BuilderInputs<'_>,
    machine: &mut M,
) -> Result<u64, Blame> {
    let gm = launch.arena.gm();
    let address = GmAddr(inputs.args.program.first().copied().unwrap_or(0));
    machine.refresh(address, size_of::<SessionOrders>() as u64);
    let board = SessionBoard::at(&gm, address);
    let board = board.ok_or(Blame::of(Fault::BUILD_GM_RANGE).detail(address.0, 0))?;
    machine.refresh(address, SessionBoard::bytes(board.notes.len() as u64));
    let state = inputs.state;
    let around = Surroundings { gm, board, run: inputs.generation };
    let launches =
        Launches::<(S, F, _, _)>::new(inputs, ArenaMemory::of(launch.arena), &board, machine);
    let lanes = ActiveLanes::default();
    let mut resident = Resident { around, launches, lanes, idle_ns: None, turns: 0, idle_turns: 0 };
    resident.begin();
    let served = resident.serve(|| state.fault.first());
    resident.show(address);
    served.map(|()| resident.launches.finish())
}

/// One coming up.
struct Resident<'a, C: Config> {
    around: Surroundings<'a>,
    launches: Launches<'a, C>,
    lanes: ActiveLanes,
    /// Since when there has been nothing to do.
    idle_ns: Option<u64>,
    /// Turns since the host had one.
    turns: u32,
    /// Turns since something has moved.
    idle_turns: u32,
}

impl<C: Config> Resident<'_, C> {
    fn begin(&mut self) {
        let orders = self.around.board.orders;
        self.lanes.seed(orders.seed.load(Ordering::Relaxed));
        let runs = &self.around.board.news.runs;
        runs.store(runs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Takes turns until there is a reason to return, or a fault.
    fn serve(&mut self, fault: impl Fn() -> Option<Fault>) -> Result<(), Blame> {
        while !self.step()? {
            if let Some(fault) = fault() {
                return Err(Blame::of(fault));
            }
        }
        Ok(())
    }

    /// The host sees what this run has written into the board and the rings.
    fn show(&mut self, address: GmAddr) {
        let Surroundings { board, run, .. } = &self.around;
        let machine = self.launches.machine();
        for (line, lane) in board.streams.iter().zip(board.lanes) {
            if lane.run.load(Ordering::Relaxed) == *run {
                let consumer = GmAddr(line.consumer.load(Ordering::Relaxed));
                machine.refresh(consumer, size_of::<RingConsumer>() as u64);
            }
        }
        machine.refresh(address, SessionBoard::bytes(board.notes.len() as u64));
    }

    /// One turn: every stream that has something; whether it is time to return.
    fn step(&mut self) -> Result<bool, Blame> {
        if self.lanes.is_empty() || self.idle_turns.is_multiple_of(TURNS_A_LISTEN) {
            self.listen();
        }
        let is_last = self.is_out_of_time();
        if self.pass()? {
            (self.idle_ns, self.idle_turns) = (None, 0);
            if is_last {
                self.launches.begin_no_more();
            }
            self.turns += 1;
            if self.turns >= TURNS_A_RELAX {
                self.relax();
            }
            return Ok(false);
        }
        self.idle_turns = self.idle_turns.wrapping_add(1);
        if is_last || self.launches.has_ended() {
            self.launches.begin_no_more();
            if !self.launches.has_any() {
                return Ok(true);
            }
        } else if !self.launches.has_any() {
            if self.may_sleep() {
                return Ok(!self.park());
            }
            self.spin();
            return Ok(false);
        }
        self.relax();
        Ok(false)
    }

    fn spin(&mut self) {
        self.turns = 0;
        self.launches.machine().spin();
    }

    fn relax(&mut self) {
        self.turns = 0;
        self.launches.machine().relax();
    }

    /// Looks which doorbells were written.
    fn listen(&mut self) {
        for (index, bell) in self.around.board.bells.iter().enumerate() {
            let mut bits = take_bell(bell);
            while bits != 0 {
                let stream = index * pto_abi::session::board::STREAMS_A_BELL
                    + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if let Some(line) = self.around.board.streams.get(stream) {
                    self.lanes.add(stream, line.priority.load(Ordering::Relaxed));
                }
            }
        }
    }

    /// Serves the streams in the order of this turn; whether anything moved.
    fn pass(&mut self) -> Result<bool, Blame> {
        let (mut worked, mut order) = (false, self.lanes.order());
        while let Some(stream) = order.next(&self.lanes) {
            let Some(mut poll) = StreamPoll::begin(&self.around, self.launches.machine(), stream)
            else {
                self.lanes.remove(stream);
                continue;
            };
            poll.knows_head = self.lanes.is_waiting(stream);
            let limit = if self.lanes.is_seeded() { 1 } else { IN_A_ROW };
            let moved = poll.serve(&mut self.launches, limit)?;
            self.lanes.set_waiting(stream, poll.knows_head);
            if poll.is_done() {
                self.lanes.remove(stream);
            }
            worked |= moved;
            if moved && self.lanes.is_seeded() {
                break;
            }
        }
        Ok(worked)
    }

    /// Whether nothing more may begin: the host asks for it, or the time of this run is over. Never before the first turn.
    fn is_out_of_time(&self) -> bool {
        let orders = self.around.board.orders;
        let limit_ns = orders.limit_ns.load(Ordering::Relaxed);
        let is_asked = orders.leave.load(Ordering::Relaxed) != 0;
        is_asked || limit_ns > 0 && self.launches.age_ns() > limit_ns
    }

    /// Whether there has been nothing to do for long enough, and no doorbell was written since.
    fn may_sleep(&mut self) -> bool {
        let linger_ns = self.around.board.orders.linger_ns.load(Ordering::Relaxed);
        if linger_ns > 0 {
            let now_ns = self.launches.age_ns();
            let since_ns = *self.idle_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(since_ns) < linger_ns {
                return false;
            }
        }
        self.fall_asleep()
    }

    /// The doorbells are not looked at any more: sleeps until one is written, where the machine lets a builder sleep; whether one was. Not
    /// while a stream waits for something that has no doorbell, nor where the time of a run is limited or a seed decides.
    fn park(&mut self) -> bool {
        let orders = self.around.board.orders;
        let is_limited = orders.limit_ns.load(Ordering::Relaxed) > 0;
        let has_idle_time = orders.linger_ns.load(Ordering::Relaxed) > 0;
        if is_limited || !has_idle_time || !self.lanes.is_empty() || !self.launches.machine().park()
        {
            return false;
        }
        self.around.board.bells.iter().for_each(wake_up);
        self.idle_ns = None;
        true
    }

    fn fall_asleep(&self) -> bool {
        let bells: &[AtomicU64] = self.around.board.bells;
        let written = bells.iter().fold(0, |bits, bell| bits | fall_asleep(bell));
        if written & !ASLEEP == 0 {
            return true;
        }
        bells.iter().for_each(wake_up);
        false
    }
}

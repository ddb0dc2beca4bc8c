//! A machine's side of a group: its transfers under way, and how far it may go on.

use std::collections::HashMap;
use std::sync::Arc;

use pto_abi::{Fault, TaskId};

use super::super::agenda::{Agent, Rival};
use super::super::world::World;
use super::net::VirtualNet;
use crate::group::{Posted, RunPort, Span, Transfer, TransferError};
use crate::supervisor;

/// Which rank a machine is, of which group.
#[derive(Clone)]
pub struct SeatOf {
    /// The group's network.
    pub net: Arc<VirtualNet>,
    /// The rank.
    pub rank: u32,
}

/// See the file.
pub(in crate::virtual_time) struct GroupSeat {
    of: SeatOf,
    port: RunPort,
    horizon_ns: u64,
    under_way: HashMap<u64, TaskId>,
    next: u64,
    failure: Option<TransferError>,
}

impl GroupSeat {
    pub(in crate::virtual_time) fn new(of: SeatOf, port: RunPort) -> Self {
        let under_way = HashMap::new();
        Self { of, port, horizon_ns: 0, under_way, next: 0, failure: None }
    }

    /// Starts a transfer; when the next effect comes.
    fn start(&mut self, posted: &Posted, now_ns: u64) -> Result<u64, TransferError> {
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, posted.task);
        let rank = self.of.rank;
        let transfer = resolve(posted, rank)?;
        self.of.net.start((rank, number), &transfer, now_ns)
    }

    /// Transfers cannot go on.
    fn fail(&mut self, error: TransferError, task: Option<TaskId>, now_ns: u64) {
        let task = task.or_else(|| self.under_way.iter().min().map(|(_, task)| *task));
        self.port.fail_at(Fault::TRANSFER_FAILED, task, now_ns);
        self.failure.get_or_insert(error);
    }
}

/// The transfer that the words of a task say, with its count read.
fn resolve(posted: &Posted, rank: u32) -> Result<Transfer, TransferError> {
    let refused = |why: String| TransferError::Refused { rank, why };
    let words = Transfer::of_words(&posted.words);
    let mut transfer =
        words.ok_or_else(|| refused("the words of the task are none of a transfer".to_owned()))?;
    if let Some((at, unit)) = transfer.count {
        // SAFETY: the builder has checked that the view is in GM; who writes the count has completed.
        let count = unsafe { Span { address: at.0, bytes: 4 }.read_u32() }.unwrap_or(0);
        let bytes = u64::from(count).checked_mul(unit).filter(|bytes| *bytes <= transfer.bytes);
        let has = transfer.bytes;
        transfer.bytes = bytes.ok_or_else(|| {
            refused(format!("its count of {count}, of {unit} bytes each, is more than {has} bytes"))
        })?;
    }
    Ok(transfer)
}

impl World {
    /// How far this machine may go on by itself.
    #[inline]
    pub(in crate::virtual_time) fn within_horizon(
        &self,
        limit_ns: u64,
        rival: Rival,
    ) -> (u64, Rival) {
        match &self.seat {
            Some(seat) if limit_ns >= seat.horizon_ns => {
                (seat.horizon_ns.saturating_sub(1), Rival::Nobody)
            }
            _ => (limit_ns, rival),
        }
    }

    /// Lets the other machines go on, if this one has come to its horizon. Whether it had.
    pub(in crate::virtual_time) fn wait_for_others(&mut self, limit_ns: u64) -> bool {
        let Some(seat) = &mut self.seat else { return false };
        if limit_ns < seat.horizon_ns {
            return false;
        }
        let next_ns = self.agenda.next_ns().unwrap_or(u64::MAX - 1).min(limit_ns);
        let beats = &self.beats;
        let leave = seat.of.net.turn(seat.of.rank, next_ns, || {
            beats.iter().for_each(|beat| {
                beat.turn();
                beat.no_core();
            });
        });
        seat.horizon_ns = leave.horizon_ns;
        if leave.effect_ns != u64::MAX {
            self.agenda.schedule(Agent::Engine, leave.effect_ns);
        }
        if leave.dies {
            supervisor::raise_cancelled(&self.launch, next_ns);
            self.wake_others(usize::MAX, next_ns);
        }
        true
    }

    /// Starts the transfers that have become ready.
    pub(in crate::virtual_time) fn start_transfers(&mut self, now_ns: u64) {
        let Some(seat) = &mut self.seat else { return };
        while let Some(posted) = seat.port.take() {
            match seat.start(&posted, now_ns) {
                Ok(u64::MAX) => {}
                Ok(effect_ns) => self.agenda.schedule(Agent::Engine, effect_ns),
                Err(error) => seat.fail(error, Some(posted.task), now_ns),
            }
        }
    }

    /// Something has come to this device.
    pub(in crate::virtual_time) fn step_transfers(&mut self, now_ns: u64) {
        let Some(seat) = &mut self.seat else { return };
        let (numbers, failure, effect_ns) = seat.of.net.take(seat.of.rank, now_ns);
        for number in numbers {
            if let Some(task) = seat.under_way.remove(&number) {
                seat.port.finish(task);
            }
        }
        if let Some(error) = failure
            && !seat.under_way.is_empty()
        {
            seat.fail(error, None, now_ns);
        }
        if effect_ns != u64::MAX {
            self.agenda.schedule(Agent::Engine, effect_ns);
        }
        self.wake_others(usize::MAX, now_ns);
    }

    /// The run is over, at `now_ns`: the others are told how.
    pub(in crate::virtual_time) fn leave_group(&mut self, now_ns: u64) {
        let Some(seat) = self.seat.take() else { return };
        let told = seat.failure.as_ref().map(ToString::to_string);
        let fault = self.launch.state.fault.first();
        let cause = fault.map(|fault| told.unwrap_or_else(|| fault.name().to_owned()));
        seat.of.net.leave(seat.of.rank, now_ns, cause);
    }
}

//! The transfer engine of a machine whose device is in a group, and how far the machine may go on by itself.

use super::agenda::{Agent, Rival};
use super::world::World;
use crate::supervisor;

impl World {
    /// How far this machine may go on by itself.
    #[inline]
    pub(super) fn within_horizon(&self, limit_ns: u64, rival: Rival) -> (u64, Rival) {
        match &self.seat {
            Some(seat) if limit_ns >= seat.horizon_ns() => {
                (seat.horizon_ns().saturating_sub(1), Rival::Nobody)
            }
            _ => (limit_ns, rival),
        }
    }

    /// Before this moment nothing comes from another machine that is not on the agenda; of a device that is in no group, always.
    pub(super) fn horizon_ns(&self) -> u64 {
        self.seat.as_ref().map_or(u64::MAX, super::group::GroupSeat::horizon_ns)
    }

    /// Lets the other machines go on, if this one has come to its horizon. Whether it had.
    pub(super) fn wait_for_others(&mut self, limit_ns: u64) -> bool {
        let Some(seat) = self.seat.as_mut().filter(|seat| limit_ns >= seat.horizon_ns()) else {
            return false;
        };
        let next_ns = match self.agenda.next_ns() {
            // Nobody is left who could do anything: the run is over, and the others are to know.
            None if limit_ns == u64::MAX - 1 => return false,
            due_ns => due_ns.map_or(limit_ns, |due_ns| due_ns.min(limit_ns)),
        };
        let leave = seat.turn(next_ns);
        self.engine_is_due(leave.effect_ns);
        if leave.dies {
            supervisor::raise_cancelled(&self.launch, next_ns);
            self.wake_others(usize::MAX, next_ns);
        }
        true
    }

    /// The builder waits, and looks again when something has happened: where nothing is due here before the horizon, the other machines
    /// go on first. Were the horizon itself a reason to look, machines that all wait would go on in steps of the shortest transfer.
    pub(super) fn wait_for_an_event(&mut self) {
        while let Some(due_ns) = self.agenda.next_ns().filter(|due_ns| *due_ns >= self.horizon_ns())
        {
            if !self.wait_for_others(due_ns) {
                return;
            }
        }
    }

    /// Starts the transfers that have become ready.
    #[inline]
    pub(super) fn start_transfers(&mut self, now_ns: u64) {
        if let Some(seat) = &mut self.seat {
            let effect_ns = seat.start_all(now_ns);
            self.engine_is_due(effect_ns);
            if self.launch.state.fault.is_raised() && !self.fault_noticed {
                self.fault_noticed = true;
                self.wake_others(usize::MAX, now_ns);
            }
        }
    }

    /// Something has come to this device.
    pub(super) fn step_transfers(&mut self, now_ns: u64) {
        let Some(seat) = &mut self.seat else { return };
        let (finished, effect_ns) = seat.finish_all(now_ns);
        self.engine_is_due(effect_ns);
        if self.launch.state.fault.is_raised() {
            self.wake_others(usize::MAX, now_ns);
        } else {
            self.wake_for_transfers(finished, now_ns);
        }
    }

    /// The run is over, at `now_ns`: the others are told how.
    pub(super) fn leave_group(&mut self, now_ns: u64) {
        if let Some(seat) = self.seat.take() {
            seat.leave(now_ns, self.launch.state.fault.first());
        }
    }

    fn engine_is_due(&mut self, effect_ns: u64) {
        if effect_ns != u64::MAX {
            self.agenda.schedule(Agent::Engine, effect_ns);
        }
    }
}

//! The transfer engine of a machine whose device is in a group, and how far the machine may go on by itself.

use super::agenda::{Agent, Rival};
use super::device::VirtualDevice;
use crate::supervisor;

impl VirtualDevice {
    /// How far this machine may go on by itself.
    #[inline]
    pub(super) fn within_horizon(&self, limit_ns: u64, rival: Rival) -> (u64, Rival) {
        match &self.member {
            Some(member) if limit_ns >= member.horizon_ns() => {
                (member.horizon_ns().saturating_sub(1), Rival::None)
            }
            _ => (limit_ns, rival),
        }
    }

    /// Before this moment nothing comes from another machine that is not on the agenda; of a device that is in no group, always.
    pub(super) fn horizon_ns(&self) -> u64 {
        self.member.as_ref().map_or(u64::MAX, super::group::GroupMember::horizon_ns)
    }

    /// Lets the other machines go on, if this one has come to its horizon. Whether it had.
    pub(super) fn wait_for_others(&mut self, limit_ns: u64) -> bool {
        let Some(member) = self.member.as_mut().filter(|member| limit_ns >= member.horizon_ns())
        else {
            return false;
        };
        let next_ns = match self.agenda.next_ns() {
            // No agent is left that could do anything: the run is over, and the other ranks must know.
            None if limit_ns == u64::MAX - 1 => return false,
            due_ns => due_ns.map_or(limit_ns, |due_ns| due_ns.min(limit_ns)),
        };
        let leave = member.turn(next_ns);
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
        if let Some(member) = &mut self.member {
            let effect_ns = member.start_all(now_ns);
            self.engine_is_due(effect_ns);
            if self.launch.state.fault.is_raised() && !self.fault_noticed {
                self.fault_noticed = true;
                self.wake_others(usize::MAX, now_ns);
            }
        }
    }

    /// Something has come to this device.
    pub(super) fn step_transfers(&mut self, now_ns: u64) {
        let Some(member) = &mut self.member else { return };
        let (finished, effect_ns) = member.finish_all(now_ns);
        self.engine_is_due(effect_ns);
        if self.launch.state.fault.is_raised() {
            self.wake_others(usize::MAX, now_ns);
        } else {
            self.wake_for_transfers(finished, now_ns);
        }
    }

    /// The run is over, at `now_ns`: the other ranks learn how.
    pub(super) fn leave_group(&mut self, now_ns: u64) {
        if let Some(member) = self.member.take() {
            member.leave(now_ns, self.launch.state.fault.first());
        }
    }

    fn engine_is_due(&mut self, effect_ns: u64) {
        if effect_ns != u64::MAX {
            self.agenda.schedule(Agent::Engine, effect_ns);
        }
    }
}

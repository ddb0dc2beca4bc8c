//! The port of a core's worker loop in virtual time: what the core does, with the machine's costs and troubles.

use pto_abi::handshake::{Command, Dispatch, FINISHED};
use pto_aicore_kernels::worker::WorkerPort;

use super::core::{Core, Report};
use super::core_machine::CoreMachine;
use super::inject::Trouble;
use super::options::Compute;
use crate::core_port::CorePort;

/// The port of a core's worker loop, with what it needs of the machine.
pub(super) struct VirtualPort<'w> {
    pub(super) core: &'w mut Core,
    pub(super) machine: CoreMachine<'w>,
}

impl VirtualPort<'_> {
    /// The trouble that this task of this core is to have.
    #[inline]
    fn trouble(&self, task: u64) -> Option<Trouble> {
        let injection = self.machine.options.injection.as_ref()?;
        injection.hits(self.core.worker, task).then_some(injection.trouble)
    }

    /// Makes the worker's line, as it stands, visible to the scheduler after `delay_ns`.
    fn report(&mut self, delay_ns: u64) {
        let earliest = self.core.reports.back().map_or(0, |report| report.visible_ns);
        let visible_ns = (self.core.now_ns + delay_ns).max(earliest);
        self.core.reports.push_back(Report::of(&self.core.lines.worker, visible_ns));
    }

    fn start_delay(&mut self) -> u64 {
        self.machine.start_ns
    }
}

impl WorkerPort for VirtualPort<'_> {
    #[inline]
    fn command(&mut self) -> Command {
        self.core.look();
        if self.core.is_hung { Command::Wait } else { self.core.lines.command() }
    }

    fn introduce(&mut self, epoch: u32) {
        if matches!(self.machine.options.injection, Some(injection)
            if injection.trouble == Trouble::NoAnswer && injection.worker == self.core.worker)
        {
            self.machine.injected(self.core.now_ns, self.core.worker);
            self.core.is_hung = true;
            return;
        }
        self.core.lines.introduce(epoch, self.core.worker, self.core.kind);
        self.machine.answered(self.core.now_ns, self.core.worker, epoch);
        let delay = self.machine.visible_delay();
        self.report(delay);
    }

    #[inline]
    fn run(&mut self, dispatch: &Dispatch) {
        let number = self.core.tasks_started;
        self.core.tasks_started += 1;
        self.core.unstarted = self.core.unstarted.saturating_sub(1);
        let trouble = self.trouble(number);
        if let Some(trouble) = trouble {
            self.machine.injected(self.core.now_ns, self.core.worker);
            if let Trouble::Slow(factor) = trouble {
                self.core.slowdown = u64::from(factor);
            }
        }
        self.core.now_ns += self.start_delay();
        let started_ns = self.core.now_ns;
        let (worker, kind) = (self.core.worker, self.core.kind);
        self.machine.started(started_ns, (worker, kind), dispatch.task);
        if trouble == Some(Trouble::Hang) {
            self.core.is_hung = true;
            return;
        }
        let cost_ns = self
            .machine
            .kernel_cost(dispatch.task, (worker, kind))
            .saturating_mul(self.core.slowdown);
        if self.machine.options.compute == Compute::Run {
            CorePort::call(dispatch);
        }
        self.core.now_ns += cost_ns;
        self.core.kernel_end_ns = self.core.now_ns;
        self.core.lines.account(cost_ns);
        self.machine.finished(self.core, dispatch.task, started_ns, cost_ns, trouble);
    }

    #[inline]
    fn finish(&mut self, id: u32) {
        if self.core.is_hung {
            return;
        }
        let trouble = self.trouble(self.core.tasks_started.saturating_sub(1));
        if let Some(old) = self.core.ghost.take() {
            // The second report of the task before overwrites the one of this task.
            self.core.lines.finish(id);
            let delay = self.machine.report_delay();
            self.core.now_ns += delay;
            self.report(0);
            self.core.lines.finish(old);
            self.report(0);
            self.core.lines.finish(id);
            return;
        }
        match trouble {
            Some(Trouble::WrongId) => self.core.lines.finish(id ^ 0x5555),
            Some(Trouble::OldId) => self.core.lines.finish(id.wrapping_sub(1) & !FINISHED),
            _ => self.core.lines.finish(id),
        }
        if trouble == Some(Trouble::FinishTwice) {
            self.core.ghost = Some(id);
        }
        self.core.now_ns += self.machine.report_delay();
        let mut delay = self.machine.visible_delay();
        if let Some(Trouble::StatusDelayed(more)) = trouble {
            delay += more;
        }
        self.report(delay);
        // What the core itself knows to be done, whatever it has reported.
        self.core.lines.finish(id);
    }

    fn leave(&mut self) {
        self.core.lines.leave();
        self.machine.left(self.core.now_ns, self.core.worker);
        let delay = self.machine.visible_delay();
        self.report(delay);
    }
}

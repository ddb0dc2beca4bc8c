//! The port of a core's worker loop in virtual time: what the core does, with the machine's costs and troubles.
//!
//! The time of a core whose kernel goes on after its call has returned runs as fast as that of this machine: so a watchdog sees a kernel that never returns, and
//! such a run is not the same twice.

use std::time::{Duration, Instant};

use pto_abi::chain::ChainKernel;
use pto_abi::handshake::{Command, Dispatch, FINISHED};
use pto_aicore_kernels::worker::WorkerPort;

use super::core::{ChainRun, Core, GoingOn, Report};
use super::core_machine::CoreMachine;
use super::inject::Trouble;
use super::options::Compute;
use crate::async_kernels;
use crate::core_port::CorePort;
use crate::crash;

/// How long the machine waits for a kernel that goes on, before others take a turn.
const LOOK: Duration = Duration::from_micros(200);
/// What such a look takes at least in virtual time.
const LOOK_NS: u64 = 1_000;

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

    /// Makes the worker's line, as it is, visible to the scheduler after `delay_ns`.
    fn report(&mut self, delay_ns: u64) {
        let earliest = self.core.reports.back().map_or(0, |report| report.visible_ns);
        let visible_ns = (self.core.now_ns + delay_ns).max(earliest);
        self.core.reports.push_back(Report::of(&self.core.lines.worker, visible_ns));
    }

    fn start_delay(&mut self) -> u64 {
        self.machine.start_ns
    }

    /// One more kernel; the trouble that it is to have.
    #[inline]
    fn begin(&mut self) -> Option<Trouble> {
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
        trouble
    }

    /// As [`begin`](Self::begin): the kernels of a chain are one dispatch.
    fn begin_link(&mut self, kernel: &ChainKernel) -> Option<Trouble> {
        let unstarted = self.core.unstarted;
        let trouble = self.begin();
        if kernel.number > 0 {
            self.core.unstarted = unstarted;
        }
        self.core.lines.note_chain(kernel.number + 1, kernel.func_id);
        trouble
    }

    /// Calls a kernel, and takes the time that it costs; how much that is.
    #[inline]
    fn execute(&mut self, dispatch: &Dispatch, cost_ns: u64) -> u64 {
        let cost_ns = cost_ns.saturating_mul(self.core.slowdown);
        if self.machine.options.compute == Compute::Run {
            let core = (self.core.worker, self.core.kind);
            crash::watched(dispatch, core, || CorePort::call(dispatch));
        }
        self.core.now_ns += cost_ns;
        self.core.kernel_end_ns = self.core.now_ns;
        self.core.lines.account(cost_ns);
        cost_ns
    }
}

impl VirtualPort<'_> {
    /// Looks at a kernel that goes on after its call has returned; whether it still does. If it has returned, its task is finished now.
    pub(super) fn goes_on(&mut self) -> bool {
        let Some(going_on) = &self.core.going_on else { return false };
        let since = Instant::now();
        if !going_on.kernel.has_returned(LOOK) {
            let waited_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.core.now_ns += waited_ns.max(LOOK_NS);
            return true;
        }
        if let Some(GoingOn { task, id, started_ns, trouble, .. }) = self.core.going_on.take() {
            let cost_ns = self.core.now_ns - started_ns;
            // The time of its call is accounted for.
            self.core.lines.account(self.core.now_ns - self.core.kernel_end_ns);
            self.core.kernel_end_ns = self.core.now_ns;
            self.machine.finished(self.core, task, started_ns, cost_ns, trouble);
            self.finish(id);
        }
        false
    }
}

impl WorkerPort for VirtualPort<'_> {
    #[inline]
    fn command(&mut self) -> Command {
        self.core.look();
        if self.core.is_occupied() { Command::Wait } else { self.core.lines.command() }
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
        let trouble = self.begin();
        self.core.now_ns += self.start_delay();
        let started_ns = self.core.now_ns;
        let (worker, kind) = (self.core.worker, self.core.kind);
        self.machine.started(started_ns, (worker, kind), dispatch.task);
        if trouble == Some(Trouble::Hang) {
            self.core.is_hung = true;
            return;
        }
        let cost_ns = self.machine.kernel_cost(dispatch.task, (worker, kind));
        let cost_ns = self.execute(dispatch, cost_ns);
        if let Some(kernel) = async_kernels::take() {
            let (task, id) = (dispatch.task, dispatch.id);
            self.core.going_on = Some(GoingOn { kernel, task, id, started_ns, trouble });
            return;
        }
        self.machine.finished(self.core, dispatch.task, started_ns, cost_ns, trouble);
    }

    /// The first kernel of a chain is started as that of a task; those after it cost what a warm call does.
    fn run_link(&mut self, dispatch: &Dispatch, kernel: &ChainKernel, args: &[u64]) -> bool {
        let trouble = self.begin_link(kernel);
        let is_first = kernel.number == 0;
        let delay_ns = if is_first { self.start_delay() } else { self.machine.link_delay() };
        self.core.now_ns += delay_ns;
        let (worker, task, started_ns) = (self.core.worker, dispatch.task, self.core.now_ns);
        if is_first {
            self.core.chain = Some(ChainRun { task, kernels: 0, busy_ns: 0 });
            self.machine.chain_started(started_ns, worker, task);
        }
        self.machine.link_started(started_ns, worker, task, kernel);
        if trouble == Some(Trouble::Hang) {
            // The line is written back before the kernel is called.
            self.core.arena_lines.note_chain(kernel.number + 1, kernel.func_id);
            self.core.is_hung = true;
            return false;
        }
        let cost_ns = self.machine.link_cost(kernel, task, args);
        let cost_ns = self.execute(dispatch, cost_ns);
        if let Some(kernel) = async_kernels::take() {
            // The next kernel of the chain needs what this one writes: no other agent has a turn until then.
            while !kernel.has_returned(LOOK) {}
        }
        self.machine.link_finished(
            self.core,
            (task, kernel),
            (started_ns, cost_ns),
            (args, trouble),
        );
        if let Some(run) = &mut self.core.chain {
            run.kernels += 1;
            run.busy_ns += cost_ns;
        }
        true
    }

    #[inline]
    fn finish(&mut self, id: u32) {
        if self.core.is_occupied() {
            return;
        }
        if let Some(run) = self.core.chain.take() {
            self.machine.chain_finished(self.core, &run);
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

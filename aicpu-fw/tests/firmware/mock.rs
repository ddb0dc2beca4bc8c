//! A platform with scripted cores: the test decides when each one finishes, and what time it is. With two slots a
//! core may have a second dispatch, looks at cores are worth avoiding, and dispatches are staged ahead.

use std::cell::Cell;

use pto_abi::kinds::CoreKind;
use pto_abi::sync::Concurrent;
use pto_abi::trace::TracePoint;
use pto_abi::{BuildMode, Fault};
use pto_aicpu_fw::platform::{CoreStatus, Platform, Staged};
use pto_aicpu_fw::{Budgets, FanoutPolicy, Machine, Scheduler};

use crate::words::{GENERATION, StateMemory};

/// What a scripted core answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    Free,
    Staged(u32),
    Running(u32),
    Finished(u32),
    Foreign(u32),
}

/// See the module.
pub(crate) struct Mock<const SLOTS: usize = 1> {
    pub(crate) cores: Vec<Core>,
    /// The second dispatch of each core.
    pub(crate) pending: Vec<Core>,
    pub(crate) now_ns: u64,
    /// How often the scheduler has looked at the clock.
    pub(crate) looks: Cell<u64>,
    /// By how much the clock goes on with each look.
    pub(crate) look_ns: u64,
    /// What was staged ahead for each core, or for its second dispatch.
    pub(crate) ahead: Vec<Option<Staged>>,
    /// Dispatches that were staged ahead and then started.
    pub(crate) started_ahead: usize,
    /// Every dispatch: core and what was staged.
    pub(crate) dispatches: Vec<(usize, Staged)>,
    pub(crate) polls: usize,
    pub(crate) commits: usize,
    pub(crate) wakes: usize,
    /// What was recorded.
    pub(crate) events: Vec<TracePoint>,
}

impl<const SLOTS: usize> Mock<SLOTS> {
    pub(crate) fn new(cores: usize) -> Self {
        let cores = vec![Core::Free; cores];
        Self {
            pending: cores.clone(),
            ahead: vec![None; cores.len()],
            cores,
            now_ns: 1_000_000,
            looks: Cell::new(0),
            look_ns: 0,
            dispatches: Vec::new(),
            started_ahead: 0,
            polls: 0,
            commits: 0,
            wakes: 0,
            events: Vec::new(),
        }
    }

    /// The core finishes what it runs.
    pub(crate) fn finish(&mut self, core: usize) -> u32 {
        let Core::Running(task) = self.cores[core] else { panic!("{:?}", self.cores[core]) };
        self.cores[core] = Core::Finished(task);
        task
    }

    /// The core finishes its second dispatch too, before anybody looks at it.
    pub(crate) fn finish_both(&mut self, core: usize) {
        self.finish(core);
        let Core::Running(task) = self.pending[core] else { panic!("{:?}", self.pending[core]) };
        self.pending[core] = Core::Finished(task);
    }

    /// The second dispatch of a core.
    pub(crate) fn pending(&self, core: usize) -> Option<u32> {
        if let Core::Running(task) = self.pending[core] { Some(task) } else { None }
    }

    /// Every running core finishes; whether there was one.
    pub(crate) fn finish_all(&mut self) -> bool {
        let running: Vec<usize> =
            (0..self.cores.len()).filter(|core| self.running(*core).is_some()).collect();
        running.iter().for_each(|core| {
            self.finish(*core);
        });
        !running.is_empty()
    }

    pub(crate) fn running(&self, core: usize) -> Option<u32> {
        if let Core::Running(task) = self.cores[core] { Some(task) } else { None }
    }

    fn has_room(&self, core: usize) -> bool {
        !matches!(self.cores[core], Core::Staged(_)) && self.pending[core] == Core::Free
    }

    /// The tasks that were dispatched, in order.
    pub(crate) fn tasks(&self) -> Vec<u32> {
        self.dispatches.iter().map(|(_, staged)| staged.task).collect()
    }
}

impl<const SLOTS: usize> Platform for Mock<SLOTS> {
    type Sharing = Concurrent;
    type Machine = Self;

    fn machine(&mut self) -> &mut Self {
        self
    }

    fn attach(&mut self, _: u32) {}
    fn greet(&mut self, _: usize, _: u32) {}
    fn answer(&mut self, _: usize, _: u32) -> Option<(u32, u32)> {
        None
    }

    fn poll(&mut self, core: usize) -> CoreStatus {
        self.polls += 1;
        match self.cores[core] {
            Core::Free | Core::Staged(_) => CoreStatus::Idle,
            Core::Running(_) => CoreStatus::Busy,
            Core::Finished(_) => {
                self.cores[core] = std::mem::replace(&mut self.pending[core], Core::Free);
                let has_more = matches!(self.cores[core], Core::Finished(_));
                if has_more { CoreStatus::FinishedMore } else { CoreStatus::Finished }
            }
            Core::Foreign(status) => CoreStatus::Foreign(status),
        }
    }

    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault> {
        let second = matches!(self.cores[core], Core::Running(_) | Core::Finished(_)) && SLOTS > 1;
        let slot = if second { &mut self.pending[core] } else { &mut self.cores[core] };
        if *slot != Core::Free {
            return Err(Fault::SCHEDULE_CORE_NOT_FREE);
        }
        *slot = Core::Staged(dispatch.task);
        // A dispatch that is staged and one that is staged ahead use the same entry of the line.
        self.ahead[core] = None;
        self.dispatches.push((core, dispatch));
        Ok(())
    }

    fn commit(&mut self) {
        self.commits += 1;
        for core in self.cores.iter_mut().chain(&mut self.pending) {
            if let Core::Staged(task) = *core {
                *core = Core::Running(task);
            }
        }
    }

    fn stop(&mut self, _: usize) {}
    fn stopped(&mut self, _: usize) -> bool {
        true
    }

    fn stage_ahead(&mut self, core: usize, dispatch: Staged) {
        assert!(self.has_room(core), "staged ahead for core {core}, which has two");
        self.ahead[core] = Some(dispatch);
    }

    fn ring_ahead(&mut self, core: usize, task: u32) -> Result<(), Fault> {
        if self.cores[core] != Core::Free || !self.has_room(core) {
            return Err(Fault::SCHEDULE_CORE_NOT_FREE);
        }
        let staged = self.ahead[core].take();
        let staged = staged.filter(|staged| staged.task == task);
        let staged =
            staged.unwrap_or_else(|| panic!("core {core} is started on what it was not given"));
        self.cores[core] = Core::Running(task);
        self.dispatches.push((core, staged));
        self.started_ahead += 1;
        Ok(())
    }
}

impl<const SLOTS: usize> Machine for Mock<SLOTS> {
    const SLOTS: usize = SLOTS;
    const POLLS_COST: bool = SLOTS > 1;
    const STAGES_AHEAD: bool = SLOTS > 1;

    fn now_ns(&self) -> u64 {
        self.looks.set(self.looks.get() + 1);
        self.now_ns + self.looks.get() * self.look_ns
    }

    fn wake_siblings(&mut self) {
        self.wakes += 1;
    }

    fn traces(&self) -> bool {
        true
    }

    fn trace(&mut self, point: TracePoint) {
        self.events.push(point);
    }
}

pub(crate) const BUDGETS: Budgets =
    Budgets { task_ns: 10_000, stall_ns: 1_000, run_ns: 0, of_launches: false };

/// The number that worker `core` of instance `instance` has on the device.
pub(crate) fn worker_of(instance: usize, core: usize) -> u32 {
    u32::try_from(40 * instance + core).unwrap()
}

/// The scheduler on `instance`, with a mock core for each entry of `kinds`.
pub(crate) fn scheduler<'a, F: FanoutPolicy>(
    words: &'a StateMemory,
    instance: usize,
    kinds: &[CoreKind],
) -> (Scheduler<'a, Mock, F>, Mock) {
    with_options(words, instance, kinds, BuildMode::CONCURRENT, BUDGETS)
}

/// As [`scheduler`].
pub(crate) fn with_options<'a, F: FanoutPolicy, const SLOTS: usize>(
    words: &'a StateMemory,
    instance: usize,
    kinds: &[CoreKind],
    mode: BuildMode,
    budgets: Budgets,
) -> (Scheduler<'a, Mock<SLOTS>, F>, Mock<SLOTS>) {
    let line = &words.instances[instance];
    let mut scheduler = Scheduler::new(words.state(), line, mode, GENERATION, budgets);
    for (core, kind) in kinds.iter().enumerate() {
        scheduler.add_core(worker_of(instance, core), *kind).unwrap();
    }
    (scheduler, Mock::new(kinds.len()))
}

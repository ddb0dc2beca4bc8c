//! The scheduler of one AICPU instance.
//!
//! ```text
//! step: collect --> release --> dispatch --> share --> commit        (Worked)
//!         |            |            |           `- what no own core can take goes to the shared queue
//!         |            |            `- own newly ready tasks first, then the shared queue
//!         |            `- fanout closed; fanin of each consumer - 1; at zero it is ready
//!         `- poll the busy cores
//!       nothing of it --> flush counts, look for the end, watchdog       (Idle, Done)
//! ```
//! Invariants:
//! - A step is bounded: it polls each core once, releases at most [`RELEASES_A_STEP`] consumers (a larger
//!   fanout goes on in the next step), and fills each core at most once.
//! - No hoarding: at the end of a step the scheduler holds no ready task. What its own cores did not take is
//!   in the shared queue, where siblings find it.
//! - `outstanding` falls only after the consumers of the completed tasks have been released.

use core::marker::PhantomData;

use heapless::Vec;
use pto_abi::kinds::{CoreKind, TaskState};
use pto_abi::limits::MAX_WORKERS;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::Task;
use pto_abi::trace::{TraceKind, TraceRecord};
use pto_abi::{BuildMode, Fault, GmAddr, TaskId};

use crate::blame::{Blame, BlameSlot};
use crate::cores::Cores;
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::platform::{CoreStatus, Platform, Staged};
use crate::state::{SharedState, kind_of};
use crate::watchdog::{Budgets, Watchdog};

/// Consumers that one step releases at most. 1,024 decrements take about 10 us: the length of the pause that
/// a large fanout may cause to the other cores of the instance.
pub const RELEASES_A_STEP: u32 = 1024;
/// Ready tasks that a step holds before it shares some.
const LOCAL_READY: usize = MAX_WORKERS;
/// Ids taken from a shared queue at once: a line of the queue's slots holds 8.
const SHARED_BATCH: usize = 16;
/// Completions after which the counts are flushed even if the instance is never idle.
const FLUSH_EVERY: u64 = 4096;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something moved.
    Worked,
    /// Nothing to do just now.
    Idle,
    /// The run is over.
    Done,
}

/// A release that is not finished.
struct Release {
    slot: u32,
    walk: ConsumerWalk,
}

/// The scheduler of one AICPU instance. See the module.
pub struct Scheduler<'a, P: Platform, F> {
    state: SharedState<'a>,
    line: &'a InstanceLine,
    cores: Cores,
    local: [Vec<u32, LOCAL_READY>; CoreKind::COUNT],
    release: Option<Release>,
    shared: bool,
    completed: u64,
    unflushed: u64,
    waits_for_build: bool,
    generation: u32,
    traced_ns: u64,
    watchdog: Watchdog,
    blame: BlameSlot,
    policy: PhantomData<(fn() -> P, F)>,
}

impl<'a, P: Platform, F: FanoutPolicy> Scheduler<'a, P, F> {
    /// A scheduler without cores. In sequential mode it waits for the builder.
    #[must_use]
    pub fn new(
        state: SharedState<'a>,
        line: &'a InstanceLine,
        mode: BuildMode,
        generation: u32,
        budgets: Budgets,
    ) -> Self {
        Self {
            state,
            line,
            cores: Cores::new(),
            local: [Vec::new(), Vec::new()],
            release: None,
            shared: false,
            completed: 0,
            unflushed: 0,
            waits_for_build: mode == BuildMode::SEQUENTIAL,
            generation,
            traced_ns: 0,
            watchdog: Watchdog::new(budgets),
            blame: BlameSlot::default(),
            policy: PhantomData,
        }
    }

    /// Takes a core of `kind` into service; cores are numbered as the platform numbers them.
    ///
    /// # Errors
    /// `RUNTIME_WORKER_COUNT` when there are more than the limit.
    pub fn add_core(&mut self, worker: u32, kind: CoreKind) -> Result<(), Fault> {
        self.cores.add(worker, kind)
    }

    /// How many cores it manages.
    #[must_use]
    pub fn core_count(&self) -> usize {
        self.cores.len()
    }

    /// The number on the device of a core, or `NOBODY`.
    #[must_use]
    pub fn worker(&self, core: usize) -> u32 {
        self.cores.worker(core)
    }

    /// How many of its cores have a dispatch.
    #[must_use]
    #[inline]
    pub fn busy_count(&self) -> usize {
        self.cores.busy().len()
    }

    /// The circumstances of a fault that a step returned.
    #[must_use]
    pub fn blame(&self, fault: Fault) -> Blame {
        self.blame.of(fault)
    }

    /// One bounded turn.
    ///
    /// # Errors
    /// The fault that ends the run; [`blame`](Self::blame) tells its circumstances.
    pub fn step(&mut self, platform: &mut P) -> Result<Step, Fault> {
        if let Some(fault) = self.raised() {
            return Err(fault);
        }
        if self.waits_for_build {
            if !self.state.build_is_done() {
                return self.idle(platform);
            }
            self.waits_for_build = false;
        }
        let collected = self.collect(platform)?;
        let first_staged = self.busy_count();
        let dispatched = self.dispatch(platform)?;
        self.share_rest();
        let shared = core::mem::take(&mut self.shared);
        if dispatched {
            self.trace_dispatches(platform, first_staged);
            platform.commit();
        }
        if shared {
            platform.wake_siblings();
        }
        if !(collected | dispatched | shared) {
            return self.idle(platform);
        }
        self.say();
        if self.unflushed >= FLUSH_EVERY {
            self.flush();
        }
        if self.watchdog.is_due_at_work() {
            self.watch_time(platform.now_ns())?;
        }
        Ok(Step::Worked)
    }

    /// Polls the busy cores and completes what has finished, until the step's releases are used up.
    #[inline]
    fn collect(&mut self, platform: &mut P) -> Result<bool, Fault> {
        let mut budget = RELEASES_A_STEP;
        let mut worked = false;
        if self.release.is_some() {
            worked = true;
            if let Some(Release { slot, walk }) = self.release.take() {
                self.look_at_clock(platform);
                self.go_on(platform, slot, walk, &mut budget);
            }
        }
        let mut index = 0;
        while self.release.is_none() {
            let Some(core) = self.cores.busy().get(index).copied().map(usize::from) else { break };
            match platform.poll(core) {
                CoreStatus::Busy => index += 1,
                CoreStatus::Finished => {
                    self.cores.release(index);
                    self.complete(platform, core, &mut budget);
                    worked = true;
                }
                status => return Err(self.wrong_status(core, status)),
            }
        }
        Ok(worked)
    }

    #[cold]
    fn wrong_status(&mut self, core: usize, status: CoreStatus) -> Fault {
        let found = if let CoreStatus::Foreign(found) = status { found } else { 0 };
        let blame = self.blame_core(Fault::CORE_WRONG_STATUS, core);
        self.blame.leave(blame.detail(found.into(), 0))
    }

    /// Closes the fanout of the task that a core has finished, and releases its consumers.
    #[inline]
    fn complete(&mut self, platform: &mut P, core: usize, budget: &mut u32) {
        let slot = self.cores.running(core);
        let Some(task) = self.state.task(slot) else { return };
        self.look_at_clock(platform);
        if P::TRACES {
            let (kind, extra) = (TraceKind::COMPLETED, self.cores.worker(core));
            let time_ns = self.traced_ns;
            platform.trace(TraceRecord { time_ns, kind, task: slot, extra });
        }
        let walk = ConsumerWalk::new(F::close::<P::Sharing>(task));
        self.go_on(platform, slot, walk, budget);
    }

    /// Where events are recorded: one look serves all events of a completion.
    #[inline]
    fn look_at_clock(&mut self, platform: &P) {
        if P::TRACES {
            self.traced_ns = platform.now_ns();
        }
    }

    #[inline]
    fn go_on(&mut self, platform: &mut P, slot: u32, mut walk: ConsumerWalk, budget: &mut u32) {
        let Some(task) = self.state.task(slot) else { return };
        while let Some(consumer) = walk.next(task, self.state.chunks) {
            self.release(platform, consumer);
            *budget = budget.saturating_sub(1);
            if *budget == 0 {
                self.release = Some(Release { slot, walk });
                return;
            }
        }
        // Release: pairs with the Acquire loads in `stream::Stream`, whose builder then reuses the slot and its edges:
        // nothing of the task is touched after this store.
        task.state.store(TaskState::COMPLETED.get(), Ordering::Release);
        self.completed += 1;
        self.unflushed += 1;
    }

    /// One producer of `consumer` has completed.
    #[inline]
    fn release(&mut self, platform: &mut P, consumer: u32) {
        let Some(task) = self.state.task(consumer) else { return };
        // AcqRel: Release passes on what this producer wrote; Acquire, in the last decrement, pairs with the
        // Release half of the others and with the publish in `release_published`.
        if P::Sharing::fetch_sub_u32(&task.fanin, 1, Ordering::AcqRel) == 1 {
            if P::TRACES {
                let (time_ns, kind) = (self.traced_ns, TraceKind::READY);
                platform.trace(TraceRecord { time_ns, kind, task: consumer, extra: 0 });
            }
            self.make_ready(consumer, task);
        }
    }

    #[inline]
    fn make_ready(&mut self, slot: u32, task: &Task) {
        let kind = kind_of(task);
        let local = &mut self.local[kind.index()];
        if let Err(slot) = local.push(slot) {
            self.state.queue(kind).push::<P::Sharing>(local);
            local.clear();
            self.shared = true;
            // There is room now.
            local.push(slot).unwrap_or_default();
        }
    }

    /// Fills the free cores: from the own newly ready tasks, then from the shared queues.
    #[inline]
    fn dispatch(&mut self, platform: &mut P) -> Result<bool, Fault> {
        let mut staged = false;
        for &kind in CoreKind::ALL {
            while self.cores.free_count(kind) > 0 {
                let Some(slot) = self.local[kind.index()].pop() else { break };
                self.stage(platform, kind, slot)?;
                staged = true;
            }
            if self.cores.free_count(kind) > 0 && self.state.queue(kind).has_ready() {
                staged |= self.dispatch_shared(platform, kind)?;
            }
        }
        Ok(staged)
    }

    /// Takes no more from the shared queue than the free cores run.
    fn dispatch_shared(&mut self, platform: &mut P, kind: CoreKind) -> Result<bool, Fault> {
        let mut staged = false;
        loop {
            let mut slots = [0; SHARED_BATCH];
            let room = self.cores.free_count(kind).min(SHARED_BATCH);
            let slots = slots.get_mut(..room).unwrap_or_default();
            let taken = self.state.queue(kind).pop::<P::Sharing>(slots);
            for &slot in slots.iter().take(taken) {
                self.stage(platform, kind, slot)?;
                staged = true;
            }
            if taken < SHARED_BATCH {
                return Ok(staged);
            }
        }
    }

    #[inline]
    fn stage(&mut self, platform: &mut P, kind: CoreKind, slot: u32) -> Result<(), Fault> {
        let Some(task) = self.state.task(slot) else { return Err(self.wrong_task(slot, 0)) };
        let state = task.state.load(Ordering::Relaxed);
        if state != TaskState::PUBLISHED.get() {
            return Err(self.wrong_task(slot, state));
        }
        task.state.store(TaskState::DISPATCHED.get(), Ordering::Relaxed);
        let payload = u64::from(task.payload.load(Ordering::Relaxed));
        let staged = Staged {
            task: slot,
            kernel: GmAddr(task.kernel.load(Ordering::Relaxed)),
            args: self.state.payloads_address.offset(8 * payload),
        };
        let Some(core) = self.cores.take(kind, slot) else {
            return Err(Fault::SCHEDULE_CORE_NOT_FREE);
        };
        platform.stage(core, staged).map_err(|fault| self.refused(fault, core))
    }

    /// The cores that this step has staged stand behind those that were busy before.
    #[inline]
    fn trace_dispatches(&self, platform: &mut P, first_staged: usize) {
        if !P::TRACES {
            return;
        }
        let (time_ns, kind) = (platform.now_ns(), TraceKind::DISPATCHED);
        for core in self.cores.busy().iter().skip(first_staged).copied().map(usize::from) {
            let (task, extra) = (self.cores.running(core), self.cores.worker(core));
            platform.trace(TraceRecord { time_ns, kind, task, extra });
        }
    }

    #[cold]
    fn refused(&mut self, fault: Fault, core: usize) -> Fault {
        let blame = self.blame_core(fault, core);
        self.blame.leave(blame)
    }

    #[cold]
    fn wrong_task(&mut self, slot: u32, state: u8) -> Fault {
        let task = TaskId { slot, generation: self.generation };
        let expected = TaskState::PUBLISHED.get().into();
        let blame = Blame::of(Fault::SCHEDULE_TASK_STATE).task(task);
        self.blame.leave(blame.detail(state.into(), expected))
    }

    /// Gives away what no own core took.
    #[inline]
    fn share_rest(&mut self) {
        for &kind in CoreKind::ALL {
            let local = &mut self.local[kind.index()];
            if !local.is_empty() {
                self.state.queue(kind).push::<P::Sharing>(local);
                local.clear();
                self.shared = true;
            }
        }
    }

    /// Says in the own line what siblings need in order not to take a long kernel for a stall.
    #[inline]
    fn say(&self) {
        self.line.completed.store(self.completed, Ordering::Relaxed);
        let busy = u32::try_from(self.busy_count()).unwrap_or(u32::MAX);
        self.line.busy_cores.store(busy, Ordering::Relaxed);
    }

    /// Tells the others how many tasks this instance has completed.
    fn flush(&mut self) {
        self.say();
        if self.unflushed > 0 {
            // Release: pairs with the Acquire load in `SharedState::outstanding`.
            P::Sharing::fetch_sub(
                &self.state.progress.outstanding,
                self.unflushed,
                Ordering::Release,
            );
            self.unflushed = 0;
        }
    }

    /// The fault of a sibling: nothing new is dispatched after it.
    #[inline]
    fn raised(&self) -> Option<Fault> {
        if self.state.fault.is_raised() { self.state.fault.first() } else { None }
    }

    #[inline(never)]
    fn idle(&mut self, platform: &mut P) -> Result<Step, Fault> {
        self.flush();
        if self.state.build_is_done() && self.state.outstanding() == 0 {
            platform.wake_siblings();
            return self.verify_end();
        }
        self.watch(platform)?;
        Ok(Step::Idle)
    }

    /// `build_done && outstanding == 0` implies the rest; it is checked once, on the way out.
    fn verify_end(&mut self) -> Result<Step, Fault> {
        let queued: u64 = self.state.ready.iter().map(|queue| queue.len()).sum();
        if queued > 0 || self.busy_count() > 0 {
            let blame = Blame::of(Fault::SCHEDULE_LEFT_WORK);
            return Err(self.blame.leave(blame.detail(queued, self.busy_count() as u64)));
        }
        Ok(Step::Done)
    }

    fn watch(&mut self, platform: &mut P) -> Result<(), Fault> {
        if !self.watchdog.is_due() {
            return Ok(());
        }
        let now = platform.now_ns();
        self.watch_time(now)?;
        match self.watchdog.stalled(now, &self.state) {
            Some(blame) => Err(self.blame.leave(blame)),
            None => Ok(()),
        }
    }

    /// The two budgets that a run can exceed while it gets on.
    fn watch_time(&mut self, now: u64) -> Result<(), Fault> {
        if let Some((core, since)) = self.watchdog.overdue(now, &self.cores) {
            let blame = self.blame_core(Fault::STALL_CORE, core).since(since);
            return Err(self.blame.leave(blame));
        }
        match self.watchdog.over_budget(now) {
            Some(blame) => Err(self.blame.leave(blame)),
            None => Ok(()),
        }
    }

    /// Blames a core and the task that it was given.
    fn blame_core(&self, fault: Fault, core: usize) -> Blame {
        let blame = Blame::of(fault).worker(self.cores.worker(core));
        if !self.cores.is_busy(core) {
            return blame;
        }
        let slot = self.cores.running(core);
        let func = self.state.task(slot).map_or(0, |task| task.func_id.load(Ordering::Relaxed));
        blame.task(TaskId { slot, generation: self.generation }).func(func.into())
    }
}

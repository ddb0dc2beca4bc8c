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
//! Where looks at cores cost something, or cores may have two dispatches, collect and dispatch say more of it; where
//! dispatches are staged ahead of their tasks, ahead does. Where a core runs a task as soon as it is rung, at_once takes
//! the place of collect and dispatch.
//! Invariants:
//! - A step is bounded: it polls each core once (twice, if it had two dispatches), releases at most [`RELEASES_A_STEP`] consumers
//!   beside the few in each task's own line (a larger fanout goes on in the next step), and fills each core at most once.
//! - No hoarding: at the end of a step the scheduler holds no ready task. What its own cores did not take is
//!   in the shared queue, where siblings find it.
//! - `outstanding` falls only after the consumers of the completed tasks have been released.

mod ahead;
mod at_once;
mod collect;
mod dispatch;
mod hashed;
mod parts;
mod shapes;

use core::marker::PhantomData;

use heapless::Vec;
use pto_abi::kinds::CoreKind;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{Ordering, Sharing};
use pto_abi::{BuildMode, Fault, TaskId};

use self::ahead::Ahead;
use self::collect::Moved;
use self::shapes::Shapes;
use crate::blame::{Blame, BlameSlot};
use crate::cores::Cores;
use crate::cores::apart::PART;
use crate::fanout::{ConsumerWalk, FanoutPolicy};
use crate::mutant::{self, Mutant};
use crate::pace::Pace;
use crate::platform::Platform;
use crate::state::SharedState;
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

/// In `Scheduler::first_look`: the build, which is not done.
const BUILD: u8 = 1 << 0;
/// In `Scheduler::first_look`: the board of shaped tasks.
#[cfg(not(any(loom, shuttle)))]
const BOARD: u8 = 1 << 1;

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
#[derive(Hash)]
struct Release {
    slot: u32,
    walk: ConsumerWalk,
}

/// The scheduler of one AICPU instance. See the module. What a task on its way touches stands at the start: near
/// places need no instructions of their own to be found.
#[repr(C)]
pub struct Scheduler<'a, P: Platform, F> {
    state: SharedState<'a>,
    line: &'a InstanceLine,
    completed: u64,
    unflushed: u64,
    release: Option<Release>,
    shared: bool,
    // What a step has to look at first: bits, usually none.
    first_look: u8,
    // A core that has finished may go straight to a consumer: nothing waits for cores that comes first.
    hands_over: bool,
    cores: Cores,
    local: [Vec<u32, LOCAL_READY>; CoreKind::COUNT],
    mode: BuildMode,
    generation: u32,
    traced_ns: u64,
    // The clock as this step found it, where a look at a core costs something.
    now_ns: u64,
    look_from: usize,
    early_from: usize,
    // Cores that were given something in this step, where a core may have two dispatches.
    staged: u128,
    pace: Pace,
    watchdog: Watchdog,
    blame: BlameSlot,
    ahead: Ahead,
    shapes: Shapes,
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
            first_look: if mode == BuildMode::SEQUENTIAL { BUILD } else { 0 },
            hands_over: true,
            mode,
            generation,
            traced_ns: 0,
            now_ns: 0,
            look_from: 0,
            early_from: 0,
            staged: 0,
            pace: Pace::new(),
            watchdog: Watchdog::new(budgets),
            blame: BlameSlot::default(),
            ahead: Ahead::new(),
            shapes: Shapes::new(),
            policy: PhantomData,
        }
    }

    /// Takes a core of `kind` into service; cores are numbered as the platform numbers them.
    ///
    /// # Errors
    /// `RUNTIME_WORKER_COUNT` when there are more than the limit.
    pub fn add_core(&mut self, worker: u32, kind: CoreKind) -> Result<(), Fault> {
        self.cores.add(worker, kind)?;
        if P::SLOTS > 1 {
            self.say_free();
        }
        Ok(())
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
        let first_look = self.first_look;
        if first_look != 0 && !self.looks_first() {
            return self.idle(platform);
        }
        if P::POLLS_COST {
            self.now_ns = platform.now_ns();
        }
        let mut moved = Moved::default();
        self.collect(platform, &mut moved)?;
        self.dispatch_all(platform, &mut moved, first_look)?;
        if P::POLLS_COST && !(moved.collected | moved.dispatched) {
            if P::STAGES_AHEAD {
                platform.settle();
            }
            self.collect_early(platform, &mut moved)?;
            self.dispatch_all(platform, &mut moved, first_look)?;
        }
        let Moved { collected, dispatched, ran } = moved;
        let shared = core::mem::take(&mut self.shared);
        if P::STAGES_AHEAD && !self.ahead.was_urgent() {
            // One barrier is enough for both.
            self.look_ahead(platform);
        }
        if dispatched && !mutant::is(Mutant::ForgetsToCommit) {
            platform.commit();
            self.staged = 0;
        }
        if P::STAGES_AHEAD {
            self.look_ahead(platform);
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
        if self.watchdog.is_due_at_work(ran) {
            self.watch_time(platform.now_ns())?;
        }
        Ok(Step::Worked)
    }

    /// Whether the step is to be made: not before the build is done, where the scheduler waits for that.
    #[inline(never)]
    fn looks_first(&mut self) -> bool {
        if self.first_look & BUILD != 0 {
            if !self.state.build_is_done() {
                return false;
            }
            self.first_look &= !BUILD;
        }
        if P::SHAPES {
            self.look_at_board();
        }
        true
    }

    /// Says in the own line what siblings need in order not to take a long kernel for a stall.
    #[inline]
    fn say(&self) {
        self.line.completed.store(self.completed, Ordering::Relaxed);
        let busy = u32::try_from(self.busy_count()).unwrap_or(u32::MAX);
        self.line.busy_cores.store(busy, Ordering::Relaxed);
        if P::SLOTS > 1 {
            self.say_free();
        }
    }

    /// Says in the own line which cores wait for work: siblings do not pend a task that one of them could run.
    fn say_free(&self) {
        for &kind in CoreKind::ALL {
            let free = u32::try_from(self.cores.free_count(kind)).unwrap_or(u32::MAX);
            self.line.free_cores[kind.index()].store(free, Ordering::Relaxed);
        }
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
        // In this order: what is outstanding only falls once the build is done.
        let is_over = self.state.build_is_done()
            && (self.state.outstanding() == 0 || mutant::is(Mutant::EndsWithTheBuild));
        if is_over {
            platform.wake_siblings();
            return self.verify_end();
        }
        self.watch(platform)?;
        Ok(Step::Idle)
    }

    /// `build_done && outstanding == 0` implies the rest; it is checked once, on the way out.
    fn verify_end(&mut self) -> Result<Step, Fault> {
        let queued: u64 = self.state.ready.iter().map(|queue| queue.len()).sum();
        let queued = queued + u64::from(self.state.shaped_waiting());
        if queued > 0 || self.busy_count() > 0 || !self.shapes.is_idle() {
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
        match self.watchdog.stalled(now, &self.state, self.mode) {
            Some(blame) => Err(self.blame.leave(blame)),
            None => Ok(()),
        }
    }

    /// The two budgets that a run can exceed while it gets on.
    fn watch_time(&mut self, now: u64) -> Result<(), Fault> {
        if let Some((core, since)) = self.watchdog.overdue(now, &self.cores, &self.state) {
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
        let running = self.cores.running(core);
        let slot = running & !PART;
        let func = self.state.task(slot).map_or(0, |task| task.func_id.load(Ordering::Relaxed));
        let blame = blame.task(TaskId { slot, generation: self.generation }).func(func.into());
        if !P::SHAPES || running == slot { blame } else { self.blame_part(blame, core, slot) }
    }
}

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
//! Each part owns its state and is called from here when it has its turn. One function decides and changes
//! nothing (`choose` and the like), and another one does what was decided.
//!
//! | part | owns | decides |
//! |---|---|---|
//! | `collect` | where the passes over the cores go on | which core is looked at |
//! | `completion`, `tally` | a large fanout under way, the counts | |
//! | `plain` | ready tasks of one kernel | free core, second dispatch, or shared queue |
//! | `order`, `blocks`, `clusters`, `gathering` | clusters, cores that are held or pledged | which task is next, where its blocks go |
//! | `ahead` | what is staged ahead | for which core |
//! | `at_once` | the tasks of a step that run as soon as their doorbell is written | which is next |
//! | `dispatcher` | the cores, what they run and for how long | |
//!
//! Invariants:
//! - A step is bounded. It makes at most two passes: one over its busy cores, and a second one over the tasks that run as soon as their doorbell is written, or over its
//!   cores again where the first pass has found nothing. A pass polls each core once (twice, if it had two dispatches) and releases at most [`RELEASES_A_PASS`]
//!   consumers, in addition to the few in each task's own line and one of each task that completes without a core; a larger fanout goes on in the next step. A step
//!   fills each core at most once.
//! - No hoarding: at the end of a step the scheduler holds no ready task. What its own cores did not take is
//!   in the shared queue, where siblings find it.
//! - `outstanding` falls only after the consumers of the completed tasks have been released.
//!
//! Why it is so: `docs/decisions/scheduler-parts.md`.

mod ahead;
mod at_once;
mod blocks;
mod clusters;
mod collect;
mod completion;
mod dispatcher;
mod gathering;
mod order;
mod parts;
mod plain;
mod tally;

use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use pto_abi::kinds::CoreKind;
use pto_abi::runtime::InstanceLine;
use pto_abi::{BuildMode, Fault};
use pto_graph::Priority;

use self::blocks::BlockTasks;
use self::collect::{PollCursor, PollOutcome};
use self::completion::Flow;
pub use self::completion::RELEASES_A_PASS;
use self::plain::Among;
use crate::blame::Blame;
use crate::block_shapes::{BlockShapeMemory, List};
use crate::fanout::FanoutPolicy;
use crate::machine::Machine;
use crate::mutant::{self, Mutant};
use crate::platform::Platform;
use crate::state::{SharedState, kind_of};
use crate::watchdog::{Budgets, Watchdog};

/// In `Scheduler::first_look`: the build, which is not done.
const BUILD: u8 = 1 << 0;
/// In `Scheduler::first_look`: the board of tasks with a block shape.
#[cfg(not(any(loom, shuttle)))]
const BOARD: u8 = 1 << 1;

/// Tasks whose predicate one step reads at most, and transfers that it completes. All of them share the releases of the pass.
const ARRIVALS_A_STEP: usize = 16;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The step made progress.
    Worked,
    /// The step had nothing to do.
    Idle,
    /// The run is over.
    Done,
}

/// The scheduler of one AICPU instance. See the module. The fields that each task touches come first: small
/// offsets need no instructions of their own.
#[repr(C)]
pub struct Scheduler<'a, P: Platform, F> {
    // What a step has to look at first: bits, usually none.
    first_look: u8,
    mode: BuildMode,
    flow: Flow<'a, F>,
    cursor: PollCursor,
    blocks: BlockTasks,
    watchdog: Watchdog,
    platform: PhantomData<fn() -> P>,
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
            first_look: if mode == BuildMode::SEQUENTIAL { BUILD } else { 0 },
            mode,
            flow: Flow::new(state, line, generation),
            cursor: PollCursor::new(),
            blocks: BlockTasks::new(),
            watchdog: Watchdog::new(budgets),
            platform: PhantomData,
        }
    }

    /// Takes a core of `kind` into service; cores are numbered as the platform numbers them.
    ///
    /// # Errors
    /// `RUNTIME_WORKER_COUNT` when there are more than the limit.
    pub fn add_core(&mut self, worker: u32, kind: CoreKind) -> Result<(), Fault> {
        self.flow.dispatcher.cores_mut().add(worker, kind)?;
        if P::Machine::SLOTS > 1 {
            self.flow.tally().say_free(self.flow.dispatcher.cores());
        }
        Ok(())
    }

    /// Sets the cluster of each worker.
    #[cfg(not(any(loom, shuttle)))]
    pub fn form_clusters(&mut self, cluster_of: impl Fn(u32) -> Option<u32>) {
        if P::Machine::BLOCK_SHAPES && self.flow.dispatcher.state().shapes.is_some() {
            self.first_look |= BOARD;
            self.blocks.form_clusters(&self.flow.dispatcher, cluster_of);
        }
    }

    /// How many cores it has.
    #[must_use]
    pub fn core_count(&self) -> usize {
        self.flow.dispatcher.cores().len()
    }

    /// The number on the device of a core, or `NOBODY`.
    #[must_use]
    pub fn worker(&self, core: usize) -> u32 {
        self.flow.dispatcher.cores().worker(core)
    }

    /// How many of its cores have a dispatch.
    #[must_use]
    #[inline]
    pub fn busy_count(&self) -> usize {
        self.flow.dispatcher.cores().busy().len()
    }

    /// The circumstances of a fault that a step returned.
    #[must_use]
    pub fn blame(&self, fault: Fault) -> Blame {
        self.flow.dispatcher.blame(fault)
    }

    /// One bounded turn.
    ///
    /// # Errors
    /// The fault that ends the run; [`blame`](Self::blame) has its circumstances.
    pub fn step(&mut self, platform: &mut P) -> Result<Step, Fault> {
        if let Some(fault) = self.raised() {
            return Err(fault);
        }
        let first_look = self.first_look;
        if first_look != 0 && !self.looks_first() {
            return self.idle(platform);
        }
        if P::Machine::POLLS_COST {
            self.flow.dispatcher.pace_mut().begin(platform.machine().now_ns());
        }
        let mut moved = PollOutcome::default();
        let Self { cursor, flow, .. } = self;
        cursor.collect(flow, platform, &mut moved)?;
        self.dispatch_all(platform, &mut moved, first_look)?;
        if P::Machine::POLLS_COST && !(moved.collected | moved.dispatched) {
            if P::Machine::STAGES_AHEAD {
                platform.settle();
            }
            let Self { cursor, flow, .. } = self;
            cursor.collect_early(flow, platform, &mut moved)?;
            self.dispatch_all(platform, &mut moved, first_look)?;
        }
        let PollOutcome { collected, dispatched, ran } = moved;
        let shared = self.flow.plain.take_shared();
        if P::Machine::STAGES_AHEAD && !self.flow.dispatcher.take_urgent() {
            // One barrier is enough for both.
            self.flow.dispatcher.look_ahead::<P, F>(platform);
        }
        if dispatched && !mutant::is(Mutant::ForgetsToCommit) {
            self.flow.dispatcher.commit(platform);
        }
        if P::Machine::STAGES_AHEAD {
            self.flow.dispatcher.look_ahead::<P, F>(platform);
        }
        if shared {
            platform.machine().wake_siblings();
        }
        if !(collected | dispatched | shared) {
            return self.idle(platform);
        }
        self.flow.tally().say::<P>(self.flow.dispatcher.cores());
        if self.flow.tally().is_large() {
            self.flush();
        }
        if self.watchdog.count_worked(ran) {
            self.watch_time(platform.machine().now_ns())?;
        }
        Ok(Step::Worked)
    }

    /// Whether the step is to be made: not before the build is done, where the scheduler waits for that.
    #[inline(never)]
    fn looks_first(&mut self) -> bool {
        if self.first_look & BUILD != 0 {
            if !self.flow.dispatcher.state().build_is_done() {
                return false;
            }
            self.first_look &= !BUILD;
        }
        if P::Machine::BLOCK_SHAPES
            && let Some(shapes) = &self.flow.dispatcher.state().shapes
        {
            self.flow.plain.look_at_board(shapes);
        }
        true
    }

    /// The second half of a step: ready tasks go to cores.
    #[inline(always)]
    fn dispatch_all(
        &mut self,
        platform: &mut P,
        moved: &mut PollOutcome,
        first_look: u8,
    ) -> Result<(), Fault> {
        if P::Machine::BLOCK_SHAPES
            && first_look != 0
            && let Some(shapes) = &self.flow.dispatcher.state().shapes
            && self.blocks.has_work(shapes)
        {
            return self.dispatch_with_blocks(platform, moved);
        }
        self.dispatch_plain(platform, moved, Among::Schedulers)
    }

    /// Dispatches ready plain tasks to cores.
    #[inline(always)]
    fn dispatch_plain(
        &mut self,
        platform: &mut P,
        moved: &mut PollOutcome,
        among: Among,
    ) -> Result<(), Fault> {
        if P::Machine::RUNS_AT_ONCE && platform.machine().runs_now() {
            return at_once::run_ready(&mut self.flow, platform, moved);
        }
        let Flow { dispatcher, plain, .. } = &mut self.flow;
        // Written out, so that each kind's tables are at constant offsets.
        plain.dispatch(dispatcher, platform, CoreKind::AIC, among, &mut moved.dispatched)?;
        plain.dispatch(dispatcher, platform, CoreKind::AIV, among, &mut moved.dispatched)
    }

    /// Dispatches plain tasks and tasks with blocks while tasks wait on the board: by priority, then by age.
    #[inline(never)]
    fn dispatch_with_blocks(
        &mut self,
        platform: &mut P,
        moved: &mut PollOutcome,
    ) -> Result<(), Fault> {
        // A copy: what follows changes the scheduler.
        let Some(shapes) = self.flow.dispatcher.state().shapes else { return Ok(()) };
        let shapes = &shapes;
        self.take_arrivals(platform, shapes, moved)?;
        self.take_transfers(platform, shapes, moved);
        let Flow { dispatcher, plain, .. } = &mut self.flow;
        moved.dispatched |= self.blocks.begin(dispatcher, plain, platform, shapes)?;
        for number in 0..Priority::ALL.len() {
            let is_wrong = mutant::is(Mutant::IgnoresPriority);
            let last = Priority::ALL.len() - 1;
            let priority = Priority::ALL[if is_wrong { number } else { last - number }];
            if priority == Priority::LOW {
                self.flow.plain.look_at_board(shapes);
                self.dispatch_plain(platform, moved, Among::Own)?;
            }
            if shapes.lists() & List::level(priority) != 0 {
                let Flow { dispatcher, plain, .. } = &mut self.flow;
                moved.dispatched |=
                    self.blocks.dispatch_level(dispatcher, plain, platform, shapes, priority)?;
            }
        }
        self.blocks.end(&mut self.flow.dispatcher);
        Ok(())
    }

    /// Reads the predicates of tasks that have become ready: such a task waits for cores from now on, or is complete.
    fn take_arrivals(
        &mut self,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
        moved: &mut PollOutcome,
    ) -> Result<(), Fault> {
        for _ in 0..ARRIVALS_A_STEP {
            // What an earlier one releases comes first.
            if self.flow.is_releasing() || shapes.lists() & List::ARRIVALS.bit() == 0 {
                return Ok(());
            }
            let Some(slot) = shapes.take(List::ARRIVALS) else { return Ok(()) };
            let Some(line) = shapes.line(slot) else { continue };
            moved.collected = true;
            let task = self.flow.dispatcher.expect_published(slot)?;
            let (address, element) = shapes.element(line);
            platform.machine().refresh(address, element.bytes());
            if !shapes.predicate_holds(line) && !mutant::is(Mutant::IgnoresPredicates) {
                self.flow.skip(platform, slot, task);
                continue;
            }
            let Flow { dispatcher, plain, .. } = &mut self.flow;
            let state = dispatcher.state();
            if let Some(list) = List::of(line) {
                plain.before_post::<P>(state);
                state.post(list, slot);
            } else {
                plain.make_ready::<P>(state, slot, kind_of(task));
            }
        }
        Ok(())
    }

    /// Completes the transfers that the engine has finished.
    fn take_transfers(
        &mut self,
        platform: &mut P,
        shapes: &BlockShapeMemory<'_>,
        moved: &mut PollOutcome,
    ) {
        for _ in 0..ARRIVALS_A_STEP {
            if self.flow.is_releasing() || shapes.lists() & List::ARRIVED.bit() == 0 {
                return;
            }
            let Some(slot) = shapes.take(List::ARRIVED) else { return };
            let Some(task) = self.flow.dispatcher.state().task(slot) else { continue };
            moved.collected = true;
            self.flow.transferred(platform, slot, task);
        }
    }

    /// Publishes how many tasks this instance has completed.
    fn flush(&mut self) {
        self.flow.flush::<P>();
    }

    /// The fault of a sibling: nothing new is dispatched after it.
    #[inline]
    fn raised(&self) -> Option<Fault> {
        let fault = self.flow.dispatcher.state().fault;
        if fault.is_raised() { fault.first() } else { None }
    }

    #[inline(never)]
    fn idle(&mut self, platform: &mut P) -> Result<Step, Fault> {
        self.flush();
        let state = self.flow.dispatcher.state();
        // In this order: what is outstanding only falls once the build is done.
        let is_over = state.build_is_done()
            && (state.outstanding() == 0 || mutant::is(Mutant::EndsWithTheBuild));
        if is_over {
            platform.machine().wake_siblings();
            return self.verify_end();
        }
        self.watch(platform)?;
        Ok(Step::Idle)
    }

    /// `build_done && outstanding == 0` implies the rest; it is checked once, on the way out.
    fn verify_end(&mut self) -> Result<Step, Fault> {
        let state = self.flow.dispatcher.state();
        let queued: u64 = state.ready.iter().map(|queue| queue.len()).sum();
        let queued = queued + u64::from(state.shaped_waiting());
        if queued > 0 || self.busy_count() > 0 || !self.blocks.is_idle() {
            let blame = Blame::of(Fault::SCHEDULE_LEFT_WORK);
            return Err(self.flow.dispatcher.leave(blame.detail(queued, self.busy_count() as u64)));
        }
        Ok(Step::Done)
    }

    fn watch(&mut self, platform: &mut P) -> Result<(), Fault> {
        if !self.watchdog.count_idle() {
            return Ok(());
        }
        let now = platform.machine().now_ns();
        self.watch_time(now)?;
        match self.watchdog.stalled(now, self.flow.dispatcher.state(), self.mode) {
            Some(blame) => Err(self.flow.dispatcher.leave(blame)),
            None => Ok(()),
        }
    }

    /// The two budgets that a run can exceed while it gets on.
    fn watch_time(&mut self, now: u64) -> Result<(), Fault> {
        let (cores, state) = (self.flow.dispatcher.cores(), self.flow.dispatcher.state());
        if let Some((core, since)) = self.watchdog.overdue(now, cores, state) {
            let blame = self.flow.dispatcher.blame_core::<P>(Fault::STALL_CORE, core).since(since);
            return Err(self.flow.dispatcher.leave(blame));
        }
        match self.watchdog.over_budget(now) {
            Some(blame) => Err(self.flow.dispatcher.leave(blame)),
            None => Ok(()),
        }
    }
}

/// The state by which schedulers on the same memory differ: for machines that search all orders of steps and go on from each
/// state once.
impl<P: Platform, F> Scheduler<'_, P, F> {
    /// Hashes everything that later steps depend on. The memory of the run is not part of it, nor is what is only reported: the
    /// circumstances of a fault.
    pub fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { first_look, mode, flow, cursor, blocks, watchdog, platform: _ } = self;
        (first_look, mode, cursor).hash(into);
        flow.hash_state(into);
        blocks.hash_state(into);
        watchdog.hash_state(into);
    }
}

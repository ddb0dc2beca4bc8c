//! The schedulers of a run in a pool: all of its AICPU instances, stepped by the thread that holds them.
//!
//! One OS thread holds them at a time, so that nothing of what schedulers share is atomic ([`Exclusive`], by type), and
//! no line of theirs travels between processors: a task that is scheduled by two threads costs more than one that is
//! scheduled by one (docs/decisions/pool.md). The others run cores.

use std::sync::Arc;

use pto_abi::handshake::{Dispatch, Handshake};
use pto_abi::kinds::RunFlags;
use pto_abi::log_ring::LogRing;
use pto_abi::sync::Exclusive;
use pto_abi::trace::{TraceOwner, TracePoint};
use pto_abi::{BuildMode, FanoutStrategy};
use pto_aicpu_fw::{
    FanoutPolicy, Instance, Launch, LinesPlatform, LockFree, Locked, Machine, NoTrace, Platform,
    Progressed, Terms, TraceWriter, Tracer,
};
use pto_graph::BuilderSet;

use super::cores::RunCores;
use super::doorbell_bits::DoorbellBits;
use super::pool_run::PoolRun;
use super::worker::PoolWorker;
use crate::clock;
use crate::logging;

/// Turns from one step to the next of an instance without busy cores, while no work is shared. 8: of 1, 4, 8
/// and 16 the smallest at which a chain of empty tasks no longer pays for its idle siblings (bench `graphs`).
const IDLE_TURNS_PER_STEP: u32 = 8;
/// Publishes between two turns of the schedulers while a builder program runs. 128: the tasks of that many publishes stay
/// in the first-level cache.
const PUBLISHES_PER_TURN: u32 = 128;
/// For schedulers that wait until the builder program is done: no number of publishes gives them a turn.
const NEVER: u32 = u32::MAX;
/// Steps that an instance makes one after the other while each one rings one core: a chain does not pay for the
/// siblings' turns.
const STEPS_PER_TURN: u32 = 16;

/// The machine of an instance. `AT_ONCE`: whether a core may be stepped from within the ring. Not where events or times of kernels are wanted: then a
/// device is to be seen whose cores run side by side, not one that is always free again at once.
struct PoolMachine<T, const AT_ONCE: bool> {
    doorbells: Arc<DoorbellBits>,
    cores: Arc<RunCores>,
    tracer: T,
}

impl<T: Tracer<'static>, const AT_ONCE: bool> Machine for PoolMachine<T, AT_ONCE> {
    const RUNS_AT_ONCE: bool = AT_ONCE;
    // A store is as visible in the middle of a step as at its end.
    const RINGS_AT_ONCE: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        // All that it reads except the clock was written by this thread, where there is no other.
        if self.cores.has_idle_threads() { clock::now_ns() } else { clock::now_ns_alone() }
    }

    #[inline]
    fn wake_siblings(&mut self) {
        self.doorbells.share_work();
    }

    #[inline]
    fn ring(&mut self, worker: u32) {
        self.doorbells.ring(worker);
    }

    #[inline(always)]
    fn run_dispatch(&mut self, worker: u32, lines: &Handshake, dispatch: &Dispatch) -> bool {
        self.cores.run_dispatched(worker, lines, dispatch)
    }

    #[inline]
    fn runs_now(&self) -> bool {
        self.cores.run_at_once()
    }

    #[inline]
    fn begin_step(&mut self) -> Terms {
        self.cores.begin_step()
    }

    #[inline]
    fn end_step(&mut self, tasks: u32) {
        self.cores.end_step(tasks);
    }

    #[inline]
    fn asked_for(&self) -> usize {
        self.cores.requested_tasks()
    }

    fn lend(&mut self) {
        let left = self.cores.hand_off(self.doorbells.take());
        self.doorbells.put(left);
    }

    #[inline(always)]
    fn traces(&self) -> bool {
        self.tracer.is_on()
    }

    #[inline]
    fn trace(&mut self, point: TracePoint) {
        self.tracer.write(point, clock::pause);
    }
}

/// The instances of a run, by whatever types they have.
pub(super) trait RunSchedulers<B>: Send {
    /// Steps every instance that may have something to do, and runs the cores that were rung, unless kernels are long.
    /// Whether anything moved.
    fn turn(&mut self, worker: &mut PoolWorker<'_, B>) -> bool;
}

/// The schedulers of one run.
pub(super) fn of_launch<B: BuilderSet>(
    launch: &Launch<'static>,
    cores: &Arc<RunCores>,
) -> Box<dyn RunSchedulers<B>> {
    match launch.fanout {
        FanoutStrategy::LOCKED => watched_or_not::<Locked, B>(launch, cores),
        _ => watched_or_not::<LockFree, B>(launch, cores),
    }
}

fn watched_or_not<F: FanoutPolicy + Send, B: BuilderSet>(
    launch: &Launch<'static>,
    cores: &Arc<RunCores>,
) -> Box<dyn RunSchedulers<B>> {
    // Where times of kernels are wanted, one test at each event is no cost: the clock is read twice for each kernel.
    if launch.is_traced() || launch.flags.contains(RunFlags::KERNEL_TIMES) {
        Box::new(Scheduling::<F, Option<TraceWriter<'static>>, false>::new(launch, cores))
    } else {
        Box::new(Scheduling::<F, NoTrace, true>::new(launch, cores))
    }
}

type PoolInstance<F, T, const AT_ONCE: bool> =
    Instance<'static, LinesPlatform<'static, Exclusive, PoolMachine<T, AT_ONCE>>, F>;

/// An instance, and how its last step went.
struct SchedulerSlot<F: FanoutPolicy, T: Tracer<'static>, const AT_ONCE: bool> {
    instance: PoolInstance<F, T, AT_ONCE>,
    log_ring: Option<LogRing<'static>>,
    idle_turns: u32,
    has_returned: bool,
}

struct Scheduling<F: FanoutPolicy, T: Tracer<'static>, const AT_ONCE: bool> {
    slots: Vec<SchedulerSlot<F, T, AT_ONCE>>,
    doorbells: Arc<DoorbellBits>,
    /// Whether instance 0 calls its host, from a builder program.
    builds_meanwhile: bool,
}

impl<F: FanoutPolicy, T: Tracer<'static>, const AT_ONCE: bool> Scheduling<F, T, AT_ONCE> {
    fn new(launch: &Launch<'static>, cores: &Arc<RunCores>) -> Self {
        let doorbells = Arc::clone(&cores.doorbells);
        let slots = (0..launch.aicpu_instances).map(|number| slot(launch, number, cores)).collect();
        Self { slots, doorbells, builds_meanwhile: launch.build_mode == BuildMode::CONCURRENT }
    }
}

fn slot<F: FanoutPolicy, T: Tracer<'static>, const AT_ONCE: bool>(
    launch: &Launch<'static>,
    number: u32,
    cores: &Arc<RunCores>,
) -> SchedulerSlot<F, T, AT_ONCE> {
    let tracer = T::over(launch.trace_writer(TraceOwner::Instance(number)));
    let machine =
        PoolMachine { doorbells: Arc::clone(&cores.doorbells), cores: Arc::clone(cores), tracer };
    let platform = LinesPlatform::new(launch.arena.workers(), machine);
    SchedulerSlot {
        instance: Instance::new(launch.clone(), number, platform),
        log_ring: launch.arena.log_ring(launch.log_region(), number as usize),
        idle_turns: 0,
        has_returned: false,
    }
}

impl<F, T, B, const AT_ONCE: bool> RunSchedulers<B> for Scheduling<F, T, AT_ONCE>
where
    F: FanoutPolicy + Send,
    T: Tracer<'static> + Send,
    B: BuilderSet,
{
    fn turn(&mut self, worker: &mut PoolWorker<'_, B>) -> bool {
        let Self { slots, doorbells, builds_meanwhile } = self;
        let work_shared = doorbells.take_work_shared();
        let Some((first, rest)) = slots.split_first_mut() else { return false };
        let run = worker.run;
        let turn_every = if *builds_meanwhile { PUBLISHES_PER_TURN } else { NEVER };
        let mut worked = first.step(run, work_shared, |instance| {
            instance.step_on(&*run.builders, |platform, program| {
                program.build(&mut StepOthers {
                    own: platform.machine(),
                    slots: rest,
                    doorbells,
                    worker,
                    to_turn: turn_every,
                    turn_every,
                    took_time: true,
                })
            })
        });
        worked |= worker.run_dispatched(doorbells);
        for slot in rest {
            worked |= slot.steps(worker, doorbells, work_shared);
        }
        worked
    }
}

impl<F: FanoutPolicy, T: Tracer<'static>, const AT_ONCE: bool> SchedulerSlot<F, T, AT_ONCE> {
    /// Steps the instance, and runs the cores that it rings; again, while that is one core.
    #[inline]
    fn steps<B: BuilderSet>(
        &mut self,
        worker: &mut PoolWorker<'_, B>,
        doorbells: &DoorbellBits,
        work_shared: bool,
    ) -> bool {
        let mut worked = false;
        for _ in 0..STEPS_PER_TURN {
            if !self.step(worker.run, work_shared, Instance::step_without_program) {
                break;
            }
            worked = true;
            let is_narrow = doorbells.is_one_core();
            if !(worker.run_dispatched(doorbells) && is_narrow) {
                break;
            }
        }
        worked
    }

    /// Steps the instance with `step`, unless it has nothing to do; whether anything moved.
    #[inline]
    fn step<B: BuilderSet>(
        &mut self,
        run: &PoolRun<B>,
        work_shared: bool,
        step: impl FnOnce(&mut PoolInstance<F, T, AT_ONCE>) -> Progressed,
    ) -> bool {
        if self.has_returned {
            return false;
        }
        let may_wait = !self.idle_turns.is_multiple_of(IDLE_TURNS_PER_STEP) && !work_shared;
        if may_wait && self.instance.busy_count() == 0 {
            self.idle_turns += 1;
            return false;
        }
        logging::set_ring(self.log_ring);
        match step(&mut self.instance) {
            Progressed::Worked => {
                self.idle_turns = 0;
                true
            }
            Progressed::Idle => {
                self.idle_turns = self.idle_turns.wrapping_add(1);
                false
            }
            Progressed::Returned(_) => {
                self.has_returned = true;
                run.one_returned();
                true
            }
        }
    }
}

/// The machine under a builder program: now and then the schedulers get a turn, where tasks may run while it builds.
struct StepOthers<'s, 'r, F: FanoutPolicy, T: Tracer<'static>, B, const AT_ONCE: bool> {
    own: &'s mut PoolMachine<T, AT_ONCE>,
    slots: &'s mut [SchedulerSlot<F, T, AT_ONCE>],
    doorbells: &'s DoorbellBits,
    worker: &'s mut PoolWorker<'r, B>,
    /// Publishes until the next turn of the schedulers.
    to_turn: u32,
    /// Publishes between two turns of the schedulers; [`NEVER`] where they wait until the program is done.
    turn_every: u32,
    /// They have had one.
    took_time: bool,
}

impl<F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet, const AT_ONCE: bool> Machine
    for StepOthers<'_, '_, F, T, B, AT_ONCE>
{
    #[inline]
    fn now_ns(&self) -> u64 {
        self.own.now_ns()
    }

    #[inline(always)]
    fn traces(&self) -> bool {
        self.own.traces()
    }

    #[inline]
    fn trace(&mut self, point: TracePoint) {
        self.own.trace(point);
    }

    #[inline]
    fn published(&mut self) {
        self.to_turn -= 1;
        if self.to_turn == 0 {
            self.take_turn();
        }
    }

    fn step_others(&mut self) {
        self.step_schedulers();
    }

    fn relax(&mut self) {
        if let Some(worked) = self.work_meanwhile() {
            self.worker.rest(worked);
        }
    }

    fn spin(&mut self) {
        if let Some(worked) = self.work_meanwhile() {
            self.worker.spin(worked);
        }
    }

    fn park(&mut self) -> bool {
        self.took_time = true;
        self.worker.run.park()
    }

    #[inline]
    fn took_time(&mut self) -> bool {
        core::mem::replace(&mut self.took_time, false)
    }
}

impl<F: FanoutPolicy, T: Tracer<'static>, B: BuilderSet, const AT_ONCE: bool>
    StepOthers<'_, '_, F, T, B, AT_ONCE>
{
    /// Steps the schedulers, and runs what was kept; whether anything moved. `None`: the schedulers wait until the builder program is done.
    fn work_meanwhile(&mut self) -> Option<bool> {
        (self.turn_every != NEVER).then(|| self.step_schedulers() | self.worker.run_deferred())
    }

    /// So many tasks were published that the schedulers get a turn.
    fn take_turn(&mut self) {
        self.to_turn = self.turn_every;
        if self.turn_every != NEVER {
            self.step_schedulers();
            // Long kernels are for the others, while there are others that ask, until the program is done or waits.
            self.worker.give_kept();
        }
    }

    #[inline(never)]
    fn step_schedulers(&mut self) -> bool {
        self.took_time = true;
        self.worker.begin_turn();
        let (mut worked, mut work_shared) = (false, true);
        for slot in &mut *self.slots {
            worked |= slot.step(self.worker.run, work_shared, Instance::step_without_program);
            // The first one may have run everything.
            work_shared = self.worker.run.has_ready();
        }
        worked | self.worker.run_dispatched(self.doorbells)
    }
}

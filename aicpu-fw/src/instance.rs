//! One AICPU instance, from launch to return, step by step.
//!
//! ```text
//!  Start -> Greet -> AwaitCores -> Build -> Schedule -> StopCores -> Returned
//!    |        |          |           |         |           ^
//!    `--------+----------+-----------+---------+- fault ---'
//! ```
//! `Build` is for instance 0 only (a builder program, or the loader of an image); the builder of
//! `aicpu_build_graph` manages no cores and skips `Schedule`. A fault on any instance brings every
//! instance to `StopCores`; the first one to raise it writes the epitaph.

use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use pto_abi::arena::Arena;
use pto_abi::kinds::RunFlags;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering, Sharing};
use pto_abi::{BuildMode, CoreKind, Fault, RuntimeVariant};
use pto_graph::{BuildError, BuilderSet};

use crate::blame::Blame;
use crate::builder::{Builder, BuilderInputs};
use crate::fanout::FanoutPolicy;
use crate::launch::{ArenaMemory, Launch};
use crate::loader;
use crate::machine::Machine;
use crate::platform::Platform;
use crate::resident;
use crate::scheduler::{Scheduler, Step};
use crate::stall;
use crate::stream::{Schedulers, Stream};

/// What a step of an instance did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progressed {
    /// The step made progress.
    Worked,
    /// The step had nothing to do.
    Idle,
    /// The instance has returned: the run is over here, with this fault if any.
    Returned(Option<Fault>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Start,
    AwaitCores { next: usize, since_ns: u64 },
    Build,
    Schedule,
    StopCores { next: usize, since_ns: u64 },
    Returned,
}

/// The line of an instance for which the arena has no line; it is never read. A checked launch has no such instance.
static NOWHERE: InstanceLine = InstanceLine {
    phase: AtomicU32::new(0),
    busy_cores: AtomicU32::new(0),
    added: AtomicU64::new(0),
    published: AtomicU64::new(0),
    completed: AtomicU64::new(0),
    edges: AtomicU64::new(0),
    edges_satisfied: AtomicU64::new(0),
    free_cores: [const { AtomicU32::new(0) }; CoreKind::COUNT],
    chained: AtomicU64::new(0),
};

/// One AICPU instance.
#[repr(C)]
pub struct Instance<'a, P: Platform, F> {
    phase: Phase,
    platform: P,
    scheduler: Scheduler<'a, P, F>,
    index: u32,
    line: &'a InstanceLine,
    launch: Launch<'a>,
}

impl<'a, P: Platform, F: FanoutPolicy> Instance<'a, P, F> {
    /// Instance number `index` of a checked launch.
    pub fn new(launch: Launch<'a>, index: u32, platform: P) -> Self {
        let launch = if P::Machine::BLOCK_SHAPES { launch.with_block_shapes() } else { launch };
        let state = launch.state;
        let line = state.instances.get(index as usize).unwrap_or(&NOWHERE);
        let scheduler =
            Scheduler::new(state, line, launch.build_mode, launch.run_epoch, launch.budgets);
        Self { launch, index, line, platform, scheduler, phase: Phase::Start }
    }

    /// The machine that it runs on.
    pub const fn platform(&mut self) -> &mut P {
        &mut self.platform
    }

    /// Whether this is the instance that builds or loads the graph.
    #[must_use]
    pub const fn builds(&self) -> bool {
        self.index == 0
    }

    /// How many of its cores have a dispatch.
    #[must_use]
    #[inline]
    pub fn busy_count(&self) -> usize {
        self.scheduler.busy_count()
    }

    /// Hashes the state on which later steps depend. The hash leaves out the memory of the run and the stack of a running builder program.
    /// `of_platform` hashes the platform.
    pub fn hash_state<H: Hasher>(&self, into: &mut H, of_platform: impl FnOnce(&P, &mut H)) {
        let Self { phase, platform, scheduler, index: _, line: _, launch: _ } = self;
        phase.hash(into);
        scheduler.hash_state(into);
        of_platform(platform, into);
    }

    /// Performs one step of bounded length. Only the length of a builder program is unbounded; the program runs on the machine of the
    /// instance.
    pub fn step<B: BuilderSet>(&mut self, builders: &B) -> Progressed {
        self.step_on(builders, |platform, program| program.build(platform.machine()))
    }

    /// As [`step`](Self::step); where a builder program is to run, `build` does that, on a machine that it makes from the platform.
    pub fn step_on<B: BuilderSet>(
        &mut self,
        builders: &B,
        build: impl FnOnce(&mut P, Program<'_, 'a, P::Sharing, F, B>) -> BuildResult,
    ) -> Progressed {
        match self.phase {
            Phase::Schedule => self.schedule(),
            Phase::Build => self.build(builders, build),
            _ => self.step_around(),
        }
    }

    /// One bounded turn of an instance that does not build: each one but the first. The builder programs are not compiled
    /// for it.
    pub fn step_without_program(&mut self) -> Progressed {
        if self.phase == Phase::Schedule { self.schedule() } else { self.step_around() }
    }

    /// The hot path.
    #[inline]
    fn schedule(&mut self) -> Progressed {
        match self.scheduler.step(&mut self.platform) {
            Ok(Step::Worked) => Progressed::Worked,
            Ok(Step::Idle) => Progressed::Idle,
            Ok(Step::Done) => self.wind_down(),
            Err(fault) => self.fail(self.scheduler.blame(fault)),
        }
    }

    /// What is before and after the schedule: out of the way of the hot path, whose stack it would fill.
    #[inline(never)]
    fn step_around(&mut self) -> Progressed {
        match self.phase {
            Phase::Start => self.start(),
            Phase::AwaitCores { next, since_ns } => self.await_cores(next, since_ns),
            Phase::StopCores { next, since_ns } => self.stop_cores(next, since_ns),
            // The builder is stepped with the programs.
            Phase::Build => Progressed::Idle,
            Phase::Schedule | Phase::Returned => {
                Progressed::Returned(self.launch.state.fault.first())
            }
        }
    }

    fn start(&mut self) -> Progressed {
        self.line.phase.store(1, Ordering::Relaxed);
        let mut refused = None;
        for worker in self.launch.share(self.index) {
            let kind = self.launch.workers.kind(worker).unwrap_or(CoreKind::AIV);
            refused = refused.or(self.scheduler.add_core(worker, kind).err());
            self.platform.attach(worker);
        }
        let workers = &self.launch.workers;
        self.scheduler.form_clusters(|worker| workers.cluster(worker));
        if let Some(fault) = refused {
            return self.fail(Blame::of(fault));
        }
        for core in 0..self.scheduler.core_count() {
            self.platform.greet(core, self.launch.bring_up_epoch);
        }
        self.phase = Phase::AwaitCores { next: 0, since_ns: self.platform.machine().now_ns() };
        Progressed::Worked
    }

    /// Looks at the answers in order; a core that is late only delays those after it.
    fn await_cores(&mut self, mut next: usize, since_ns: u64) -> Progressed {
        let first = next;
        while let Some((id, kind)) = self.answer(next) {
            if let Err(blame) = self.check_answer(next, id, kind) {
                return self.fail(blame);
            }
            next += 1;
        }
        if next == self.scheduler.core_count() {
            log::debug!("instance {}: {next} cores in service", self.index);
            self.phase = if self.builds() { Phase::Build } else { Phase::Schedule };
            return Progressed::Worked;
        }
        self.phase = Phase::AwaitCores { next, since_ns };
        if let Some(fault) = self.launch.state.fault.first() {
            return self.fail(Blame::of(fault));
        }
        let waited = self.platform.machine().now_ns().saturating_sub(since_ns);
        if waited > self.launch.bring_up_budget_ns {
            let worker = self.scheduler.worker(next);
            return self.fail(Blame::of(Fault::CORE_NO_ANSWER).worker(worker).since(waited));
        }
        if next > first { Progressed::Worked } else { Progressed::Idle }
    }

    fn answer(&mut self, core: usize) -> Option<(u32, u32)> {
        if core >= self.scheduler.core_count() {
            return None;
        }
        self.platform.answer(core, self.launch.bring_up_epoch)
    }

    fn check_answer(&self, core: usize, id: u32, kind: u32) -> Result<(), Blame> {
        let worker = self.scheduler.worker(core);
        let expected = self.launch.workers.kind(worker).map_or(0, |kind| u32::from(kind.get()));
        if id != worker {
            let blame = Blame::of(Fault::CORE_WRONG_ID).worker(worker);
            return Err(blame.detail(id.into(), worker.into()));
        }
        if kind != expected {
            let blame = Blame::of(Fault::CORE_WRONG_KIND).worker(worker);
            return Err(blame.detail(kind.into(), expected.into()));
        }
        Ok(())
    }

    #[inline(never)]
    fn build<B: BuilderSet>(
        &mut self,
        builders: &B,
        build: impl FnOnce(&mut P, Program<'_, 'a, P::Sharing, F, B>) -> BuildResult,
    ) -> Progressed {
        let (launch, line) = (&self.launch, self.line);
        let program = Program { launch, line, builders, policy: PhantomData };
        let BuildResult(built) = build(&mut self.platform, program);
        self.built(built)
    }

    /// What follows when the builder has returned: the tasks that it added, or why it failed.
    fn built(&mut self, built: Result<u64, Blame>) -> Progressed {
        match built {
            Ok(added) => {
                log::debug!("instance {}: graph of {added} tasks is built", self.index);
                self.after_build()
            }
            Err(blame) => self.fail(blame),
        }
    }

    fn after_build(&mut self) -> Progressed {
        if self.scheduler.core_count() > 0 {
            self.phase = Phase::Schedule;
            return Progressed::Worked;
        }
        self.wind_down()
    }

    /// The run is over here without a fault of this instance: stop the cores, unless they stay in service.
    #[inline(never)]
    fn wind_down(&mut self) -> Progressed {
        if self.launch.flags.contains(RunFlags::KEEP_CORES) {
            return self.returned();
        }
        self.begin_stop()
    }

    fn begin_stop(&mut self) -> Progressed {
        for core in 0..self.scheduler.core_count() {
            self.platform.stop(core);
        }
        self.phase = Phase::StopCores { next: 0, since_ns: self.platform.machine().now_ns() };
        Progressed::Worked
    }

    /// Waits for the cores to leave their loops: a core finishes its task first, for which it has the task
    /// budget, but no longer than the bring-up budget once a fault has ended the run.
    fn stop_cores(&mut self, mut next: usize, since_ns: u64) -> Progressed {
        let first = next;
        while next < self.scheduler.core_count() && self.platform.stopped(next) {
            next += 1;
        }
        if next == self.scheduler.core_count() {
            return self.returned();
        }
        self.phase = Phase::StopCores { next, since_ns };
        let waited = self.platform.machine().now_ns().saturating_sub(since_ns);
        if waited > self.launch.bring_up_budget_ns {
            let worker = self.scheduler.worker(next);
            self.raise(&Blame::of(Fault::CORE_NOT_STOPPED).worker(worker).since(waited));
            return self.returned();
        }
        if next > first { Progressed::Worked } else { Progressed::Idle }
    }

    fn returned(&mut self) -> Progressed {
        self.phase = Phase::Returned;
        // Relaxed: the phase is for reports. The platform reports to its host that the instance has returned.
        self.line.phase.store(2, Ordering::Relaxed);
        Progressed::Returned(self.launch.state.fault.first())
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, blame: Blame) -> Progressed {
        self.raise(&blame);
        self.begin_stop()
    }

    fn raise(&mut self, blame: &Blame) {
        let now_ns = self.platform.machine().now_ns();
        raise(&self.launch.arena, &self.launch.state, blame, self.index, now_ns);
    }
}

/// How many tasks a builder program has added, or why it failed.
#[must_use]
pub struct BuildResult(Result<u64, Blame>);

/// The program of a run, which builds its graph or loads it.
pub struct Program<'i, 'a, S, F, B> {
    launch: &'i Launch<'a>,
    line: &'a InstanceLine,
    builders: &'i B,
    policy: PhantomData<(S, F)>,
}

impl<S: Sharing, F: FanoutPolicy, B: BuilderSet> Program<'_, '_, S, F, B> {
    /// Runs it on this machine.
    pub fn build<M: Machine>(self, machine: &mut M) -> BuildResult {
        let Self { launch, line, builders, policy: _ } = self;
        if launch.variant == RuntimeVariant::HOST_BUILD_GRAPH {
            return BuildResult(loader::load::<S, _>(launch, line, machine));
        }
        // The tasks of a graph that was loaded make room for others.
        launch.state.progress.loaded_run.store(0, Ordering::Relaxed);
        let inputs = BuilderInputs {
            state: launch.state,
            line,
            args: launch.args(),
            generation: launch.run_epoch,
            has_kind: launch.has_kind(),
        };
        let is_graph = launch.variant == RuntimeVariant::AICPU_BUILD_GRAPH;
        BuildResult(if is_graph && M::SESSIONS && resident::is_program(launch.builder) {
            resident::serve::<S, F, _>(launch, inputs, machine)
        } else if is_graph {
            run_builder::<S, F, _, _>(launch, builders, inputs, machine)
        } else if B::STREAMS {
            stream::<S, F, _, _>(launch, builders, inputs, machine)
        } else {
            let blame = Blame::of(Fault::RUNTIME_VARIANT);
            Err(blame.detail(launch.variant.get().into(), 0))
        })
    }
}

/// Runs the program of a run without streams; how many tasks it added.
fn run_builder<S: Sharing, F: FanoutPolicy, M: Machine, B: BuilderSet>(
    launch: &Launch<'_>,
    builders: &B,
    inputs: BuilderInputs<'_>,
    machine: &mut M,
) -> Result<u64, Blame> {
    let memory = ArenaMemory::of(launch.arena);
    let mut builder = Builder::<(S, F, _, _)>::new(inputs, memory, machine);
    let built = builders.build(launch.builder, &mut builder);
    returned(launch.builder, built, |fault| builder.blame(fault))?;
    builder.finish().map_err(|fault| builder.blame(fault))?;
    Ok(builder.added().into())
}

/// What a builder program's return means; `blame` knows the circumstances of a fault that a call of its graph returned.
fn returned(
    symbol: u64,
    built: Option<Result<(), BuildError>>,
    blame: impl FnOnce(Fault) -> Blame,
) -> Result<(), Blame> {
    match built {
        None => Err(Blame::of(Fault::BUILD_NO_BUILDER).detail(symbol, 0)),
        Some(Ok(())) => Ok(()),
        Some(Err(BuildError::Fault(fault))) => Err(blame(fault)),
        Some(Err(BuildError::Failed(code))) => {
            Err(Blame::of(Fault::BUILD_FAILED).detail(i64::from(code).cast_unsigned(), 0))
        }
    }
}

/// Runs the program of a streaming run; how many tasks it added.
fn stream<S: Sharing, F: FanoutPolicy, M: Machine, B: BuilderSet>(
    launch: &Launch<'_>,
    builders: &B,
    inputs: BuilderInputs<'_>,
    machine: &mut M,
) -> Result<u64, Blame> {
    let waits = launch.build_mode == BuildMode::SEQUENTIAL;
    let schedulers = if waits { Schedulers::Wait } else { Schedulers::Run };
    let memory = ArenaMemory::of(launch.arena);
    let rings = launch.stream()?;
    let mut stream = Stream::<(S, F, _, _)>::new(inputs, &rings, schedulers, memory, machine);
    let built = builders.build_stream(launch.builder, &mut stream);
    returned(launch.builder, built, |fault| stream.blame(fault))?;
    stream.finish().map_err(|fault| stream.blame(fault))?;
    Ok(stream.added())
}

/// Makes `blame` the run's fault if it is the first, and writes its epitaph.
fn raise(
    arena: &Arena<'_>,
    state: &crate::state::SharedState<'_>,
    blame: &Blame,
    instance: u32,
    now_ns: u64,
) {
    if state.fault.raise(blame.fault) {
        arena.set_epitaph(&stall::epitaph(state, blame, instance, now_ns));
        state.fault.seal_epitaph();
        log::error!("instance {instance}: {}", blame.fault);
    }
}

/// Raises the fault of a launch that was refused, so that the host and the other instances see it.
pub fn refuse(arena: &Arena<'_>, blame: &Blame, instance: u32, now_ns: u64) {
    if arena.fault().raise(blame.fault) {
        let mut epitaph = pto_abi::runtime::Epitaph::of(blame.fault);
        (epitaph.instance, epitaph.time_ns) = (instance, now_ns);
        (epitaph.core, epitaph.detail) = (blame.worker, blame.detail);
        arena.set_epitaph(&epitaph);
        arena.fault().seal_epitaph();
    }
}

/// Steps an instance until it returns: the one unbounded loop.
///
/// # Errors
/// The fault that ended the run.
pub fn run<P: Platform, F: FanoutPolicy, B: BuilderSet>(
    mut instance: Instance<'_, P, F>,
    builders: &B,
) -> Result<(), Fault> {
    loop {
        match instance.step(builders) {
            Progressed::Worked => {}
            Progressed::Idle => instance.platform.machine().relax(),
            Progressed::Returned(None) => return Ok(()),
            Progressed::Returned(Some(fault)) => return Err(fault),
        }
    }
}

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

use pto_abi::arena::Arena;
use pto_abi::kinds::RunFlags;
use pto_abi::runtime::InstanceLine;
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering, Sharing};
use pto_abi::trace::TracePoint;
use pto_abi::{BuildMode, CoreKind, Fault, GmAddr, RuntimeVariant};
use pto_graph::{BuildError, BuilderSet, EdgeOutcome};

use crate::blame::Blame;
use crate::builder::{Builder, BuilderHost, BuilderInputs, RangeNote};
use crate::fanout::FanoutPolicy;
use crate::launch::{ArenaMemory, Launch};
use crate::loader;
use crate::platform::Platform;
use crate::resident;
use crate::scheduler::{Scheduler, Step};
use crate::stall;
use crate::stream::{Schedulers, Stream};

/// What a step of an instance did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progressed {
    /// Something moved.
    Worked,
    /// Nothing to do just now.
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

/// The line of an instance that the arena has none for; nobody reads it. A checked launch has no such one.
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
        let launch = if P::BLOCK_SHAPES { launch.with_block_shapes() } else { launch };
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

    /// Hashes everything that later steps depend on but the memory of the run and what a builder program that is under way
    /// has on its stack; `of_platform` hashes the platform.
    pub fn hash_state<H: Hasher>(&self, into: &mut H, of_platform: impl FnOnce(&P, &mut H)) {
        let Self { phase, platform, scheduler, index: _, line: _, launch: _ } = self;
        phase.hash(into);
        scheduler.hash_state(into);
        of_platform(platform, into);
    }

    /// One bounded turn; only a builder program takes as long as it takes.
    pub fn step<B: BuilderSet, H: BuilderHost>(&mut self, builders: &B, host: H) -> Progressed {
        match self.phase {
            Phase::Schedule => self.schedule(),
            Phase::Build => self.build(builders, host),
            _ => self.step_around(),
        }
    }

    /// One bounded turn of an instance that does not build: each one but the first. The builder programs are not compiled
    /// for it.
    pub fn step_beside(&mut self) -> Progressed {
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
            // Who builds is stepped with the programs.
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
        self.phase = Phase::AwaitCores { next: 0, since_ns: self.platform.now_ns() };
        Progressed::Worked
    }

    /// Looks at the answers in order; a core that is late only delays those behind it.
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
        let waited = self.platform.now_ns().saturating_sub(since_ns);
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
    fn build<B: BuilderSet, H: BuilderHost>(&mut self, builders: &B, host: H) -> Progressed {
        let launch = &self.launch;
        let host = OnInstance { platform: &mut self.platform, host };
        let built = if launch.variant == RuntimeVariant::HOST_BUILD_GRAPH {
            loader::load::<P::Sharing, _>(launch, self.line, host)
        } else {
            // The tasks of a graph that was loaded make room for others.
            launch.state.progress.loaded_run.store(0, Ordering::Relaxed);
            let inputs = BuilderInputs {
                state: launch.state,
                line: self.line,
                orch_args: launch.orch_args(),
                generation: launch.run_epoch,
                has_kind: launch.has_kind(),
            };
            let is_graph = launch.variant == RuntimeVariant::AICPU_BUILD_GRAPH;
            if is_graph && P::SESSIONS && resident::is_program(launch.builder) {
                resident::serve::<P::Sharing, F, _>(launch, inputs, host)
            } else if is_graph {
                run_builder::<P::Sharing, F, _, _>(launch, builders, inputs, host)
            } else if B::STREAMS {
                stream::<P::Sharing, F, _, _>(launch, builders, inputs, host)
            } else {
                let blame = Blame::of(Fault::RUNTIME_VARIANT);
                Err(blame.detail(launch.variant.get().into(), 0))
            }
        };
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
        self.phase = Phase::StopCores { next: 0, since_ns: self.platform.now_ns() };
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
        let waited = self.platform.now_ns().saturating_sub(since_ns);
        if waited > self.launch.bring_up_budget_ns {
            let worker = self.scheduler.worker(next);
            self.raise(&Blame::of(Fault::CORE_NOT_STOPPED).worker(worker).since(waited));
            return self.returned();
        }
        if next > first { Progressed::Worked } else { Progressed::Idle }
    }

    fn returned(&mut self) -> Progressed {
        self.phase = Phase::Returned;
        // Relaxed: the phase is for reports. The platform tells its host that the instance has returned.
        self.line.phase.store(2, Ordering::Relaxed);
        Progressed::Returned(self.launch.state.fault.first())
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, blame: Blame) -> Progressed {
        self.raise(&blame);
        self.begin_stop()
    }

    fn raise(&self, blame: &Blame) {
        raise(&self.launch.arena, &self.launch.state, blame, self.index, self.platform.now_ns());
    }
}

/// The builder's way to the machine: the host of its program, and the events of its instance.
struct OnInstance<'p, P, H> {
    platform: &'p mut P,
    host: H,
}

impl<P: Platform, H: BuilderHost> BuilderHost for OnInstance<'_, P, H> {
    const NOTES_EDGES: bool = H::NOTES_EDGES;
    const TRANSFERS: bool = P::TRANSFERS;

    #[inline(always)]
    fn traces(&self) -> bool {
        self.platform.traces()
    }

    #[inline]
    fn published(&mut self) {
        self.host.published();
    }

    #[inline]
    fn loaded(&mut self, slot: u32) {
        self.host.loaded(slot);
    }

    #[inline]
    fn added(&mut self, slot: u32) {
        self.host.added(slot);
    }

    #[inline]
    fn derived(&mut self, producer: u32, consumer: u32, outcome: EdgeOutcome) {
        self.host.derived(producer, consumer, outcome);
    }

    #[inline]
    fn replayed(&mut self, slot: u32) {
        self.host.replayed(slot);
    }

    #[inline]
    fn in_range(&mut self, what: RangeNote) {
        self.host.in_range(what);
    }

    #[inline]
    fn hasher(&mut self) -> Option<&mut dyn Hasher> {
        self.host.hasher()
    }

    fn turn(&mut self) {
        self.host.turn();
    }

    fn relax(&mut self) {
        self.host.relax();
        self.platform.relax();
    }

    fn linger(&mut self) {
        self.host.linger();
        self.platform.relax();
    }

    fn doze(&mut self) -> bool {
        self.host.doze()
    }

    #[inline]
    fn refresh(&mut self, address: GmAddr, bytes: u64) {
        self.host.refresh(address, bytes);
        self.platform.refresh(address, bytes);
    }

    #[inline]
    fn took_time(&mut self) -> bool {
        self.host.took_time()
    }

    /// The host's clock, where that goes on while the program is under way and the platform's stands still.
    #[inline]
    fn now_ns(&self) -> u64 {
        self.platform.now_ns().max(self.host.now_ns())
    }

    #[inline]
    fn trace(&mut self, point: TracePoint) {
        self.platform.trace(point);
    }
}

/// Runs the program of a run without streams; how many tasks it added.
fn run_builder<S: Sharing, F: FanoutPolicy, H: BuilderHost, B: BuilderSet>(
    launch: &Launch<'_>,
    builders: &B,
    inputs: BuilderInputs<'_>,
    host: H,
) -> Result<u64, Blame> {
    let memory = ArenaMemory::of(launch.arena);
    let mut builder = Builder::<(S, F, _, _)>::new(inputs, memory, host);
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
fn stream<S: Sharing, F: FanoutPolicy, H: BuilderHost, B: BuilderSet>(
    launch: &Launch<'_>,
    builders: &B,
    inputs: BuilderInputs<'_>,
    host: H,
) -> Result<u64, Blame> {
    let waits = launch.build_mode == BuildMode::SEQUENTIAL;
    let schedulers = if waits { Schedulers::Wait } else { Schedulers::Run };
    let memory = ArenaMemory::of(launch.arena);
    let rings = launch.stream()?;
    let mut stream = Stream::<(S, F, _, _)>::new(inputs, &rings, schedulers, memory, host);
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
pub fn run<P: Platform, F: FanoutPolicy, B: BuilderSet, H: BuilderHost>(
    mut instance: Instance<'_, P, F>,
    builders: &B,
    mut host: H,
) -> Result<(), Fault> {
    loop {
        match instance.step(builders, HostRef(&mut host)) {
            Progressed::Worked => {}
            Progressed::Idle => instance.platform.relax(),
            Progressed::Returned(None) => return Ok(()),
            Progressed::Returned(Some(fault)) => return Err(fault),
        }
    }
}

/// Lends a host to one step.
struct HostRef<'h, H>(&'h mut H);

impl<H: BuilderHost> BuilderHost for HostRef<'_, H> {
    const NOTES_EDGES: bool = H::NOTES_EDGES;
    const TRANSFERS: bool = H::TRANSFERS;

    #[inline]
    fn published(&mut self) {
        self.0.published();
    }

    #[inline]
    fn loaded(&mut self, slot: u32) {
        self.0.loaded(slot);
    }

    #[inline]
    fn added(&mut self, slot: u32) {
        self.0.added(slot);
    }

    #[inline]
    fn derived(&mut self, producer: u32, consumer: u32, outcome: EdgeOutcome) {
        self.0.derived(producer, consumer, outcome);
    }

    #[inline]
    fn replayed(&mut self, slot: u32) {
        self.0.replayed(slot);
    }

    #[inline]
    fn in_range(&mut self, what: RangeNote) {
        self.0.in_range(what);
    }

    fn turn(&mut self) {
        self.0.turn();
    }

    fn relax(&mut self) {
        self.0.relax();
    }

    fn linger(&mut self) {
        self.0.linger();
    }

    fn doze(&mut self) -> bool {
        self.0.doze()
    }

    #[inline]
    fn refresh(&mut self, address: GmAddr, bytes: u64) {
        self.0.refresh(address, bytes);
    }
}

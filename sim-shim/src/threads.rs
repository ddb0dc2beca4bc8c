//! Hosting mode `threads`: one OS thread per AICPU instance and per core, parked while there is nothing to do.
//!
//! ```text
//! scheduler rings a core            -> the core's doorbell
//! core reports a task               -> the doorbell of the scheduler that rang it
//! builder publishes, scheduler shares -> the doorbells of sleeping schedulers
//! ```
//! After a run the cores stay in service: a further run of the same arena wakes only those that get work.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pto_abi::FanoutStrategy;
use pto_abi::kinds::RunFlags;
use pto_abi::limits::{MAX_AICPU_INSTANCES, MAX_WORKERS};
use pto_abi::runtime::Region;
use pto_abi::sync::{AtomicU32, Concurrent, Ordering};
use pto_abi::trace::{TraceHeader, TraceOwner, TracePoint};
use pto_abi::wait::{Backoff, SpinPolicy};
use pto_aicore_kernels::worker::{self, WorkerStep};
use pto_aicpu_fw::{
    FanoutPolicy, Instance, Launch, LinesPlatform, LockFree, Locked, Machine, TraceWriter, Tracer,
    run,
};
use pto_graph::BuilderSet;

use crate::clock;
use crate::core_port::CorePort;
use crate::doorbell::Doorbell;
use crate::host::{Host, Memory};
use crate::logging;
use crate::supervisor::{self, Finish, GRACE};
use crate::wait;

/// How long a scheduler sleeps at most: the cadence of its watchdog, and the bound on a wake-up that a hint
/// (`Bells::sleeping`) missed.
const SCHEDULER_SLEEP: Duration = Duration::from_millis(1);
/// The same for an instance that builds: it is not woken when a task is over. As often as a pool's idle threads look.
const BUILDER_SLEEP: Duration = Duration::from_micros(50);
/// How long a core sleeps at most before it looks at its line again.
const CORE_SLEEP: Duration = Duration::from_secs(3600);

/// Every doorbell of the machine, and who is to be woken.
struct Bells {
    schedulers: [Doorbell; MAX_AICPU_INSTANCES],
    cores: Vec<Doorbell>,
    /// The instance that rang a core last.
    owners: Vec<AtomicU32>,
    /// Bit per sleeping scheduler; a hint.
    sleeping: AtomicU32,
    policy: SpinPolicy,
}

/// One thread of the machine, and what it is sent.
struct MachineThread<J> {
    jobs: Sender<J>,
    handle: JoinHandle<()>,
}

/// The cores' binding to one arena.
struct Assignment {
    /// 1: let go of the lines.
    order: AtomicU32,
    /// Counts the cores that have.
    gone: Arc<Finish>,
    /// Which arena and which bring-up.
    arena: u64,
    epoch: u32,
    cores: usize,
    /// Where the trace rings are, if there are any: the cores write them.
    trace: (Region, Option<TraceHeader>),
    flags: RunFlags,
}

struct CoreJob {
    port: CorePort<'static>,
    assignment: Arc<Assignment>,
}

struct InstanceJob<B> {
    launch: Launch<'static>,
    builders: Arc<B>,
    finish: Arc<Finish>,
}

/// The machine.
pub(crate) struct Threads<B> {
    memory: Memory,
    builders: Arc<B>,
    bells: Arc<Bells>,
    instances: Vec<MachineThread<InstanceJob<B>>>,
    cores: Vec<MachineThread<CoreJob>>,
    assignment: Option<Arc<Assignment>>,
    is_lost: bool,
    thread_error: Option<io::Error>,
}

impl<B: BuilderSet> Threads<B> {
    pub(crate) fn new(memory: Memory, builders: Arc<B>) -> Self {
        let bells = Bells {
            schedulers: Default::default(),
            cores: (0..MAX_WORKERS).map(|_| Doorbell::default()).collect(),
            owners: (0..MAX_WORKERS).map(|_| AtomicU32::new(0)).collect(),
            sleeping: AtomicU32::new(0),
            // A device of any use has more cores than this machine.
            policy: wait::policy_for(MAX_AICPU_INSTANCES + MAX_WORKERS),
        };
        Self {
            memory,
            builders,
            bells: Arc::new(bells),
            instances: Vec::new(),
            cores: Vec::new(),
            assignment: None,
            is_lost: false,
            thread_error: None,
        }
    }

    /// Starts the threads that the launch needs.
    fn start_threads(&mut self, launch: &Launch<'static>) -> io::Result<()> {
        while self.instances.len() < launch.aicpu_instances as usize {
            let (me, bells) = (self.instances.len(), Arc::clone(&self.bells));
            let machine_thread = start("aicpu", me, &self.memory, move |jobs| {
                serve_instance(me, &jobs, &bells);
            })?;
            self.instances.push(machine_thread);
        }
        while self.cores.len() < launch.workers.len() {
            let (me, bells) = (self.cores.len(), Arc::clone(&self.bells));
            let machine_thread = start("core", me, &self.memory, move |jobs| {
                serve_core(me, &jobs, &bells);
            })?;
            self.cores.push(machine_thread);
        }
        Ok(())
    }

    /// Binds the cores to the launch's arena, unless they are.
    fn assign(&mut self, launch: &Launch<'static>) -> bool {
        let arena = launch.arena.window().address().0;
        let (epoch, cores) = (launch.bring_up_epoch, launch.workers.len());
        let region = launch.trace_region();
        let trace = (region, launch.arena.trace_header(region));
        let flags = launch.flags;
        let is_same = |a: &Arc<Assignment>| {
            a.arena == arena
                && a.epoch == epoch
                && a.cores == cores
                && a.trace == trace
                && a.flags == flags
        };
        if self.assignment.as_ref().is_some_and(is_same) {
            return true;
        }
        if !self.release() {
            return false;
        }
        let (order, gone) = (AtomicU32::new(0), Finish::of(cores));
        let assignment = Arc::new(Assignment { order, gone, arena, epoch, cores, trace, flags });
        for (machine_thread, port) in self.cores.iter().zip(CorePort::of_launch(launch)) {
            let job = CoreJob { port, assignment: Arc::clone(&assignment) };
            // A thread ends only when its sender is dropped.
            machine_thread.jobs.send(job).unwrap_or_default();
        }
        self.assignment = Some(assignment);
        true
    }
}

impl<B: BuilderSet> Host for Threads<B> {
    fn run(&mut self, launch: &Launch<'static>) -> bool {
        self.thread_error = self.start_threads(launch).err();
        if self.thread_error.is_some() || !self.assign(launch) {
            supervisor::raise_panic(launch);
            return !self.is_lost;
        }
        let finish = Finish::of(launch.aicpu_instances as usize);
        for machine_thread in &self.instances[..launch.aicpu_instances as usize] {
            let job = InstanceJob {
                launch: launch.clone(),
                builders: Arc::clone(&self.builders),
                finish: Arc::clone(&finish),
            };
            machine_thread.jobs.send(job).unwrap_or_default();
        }
        let threads = launch.workers.len() + launch.aicpu_instances as usize;
        self.is_lost |=
            !supervisor::supervise(launch, threads, (&finish, &[]), supervisor::Clock::Real);
        if launch.state.fault.is_raised() && !self.is_lost {
            // The firmware has stopped the cores; they have the lines until they leave their loops.
            self.is_lost = !self.release();
        }
        !self.is_lost
    }

    fn take_thread_error(&mut self) -> Option<io::Error> {
        self.thread_error.take()
    }

    fn release(&mut self) -> bool {
        let Some(assignment) = self.assignment.take() else { return !self.is_lost };
        // Release: pairs with the Acquire load in `serve_lines`.
        assignment.order.store(1, Ordering::Release);
        self.bells.cores.iter().take(assignment.cores).for_each(Doorbell::ring);
        self.is_lost |= !assignment.gone.wait(GRACE);
        !self.is_lost
    }

    fn builders(&self) -> Vec<String> {
        crate::host::names_of(&*self.builders)
    }
}

impl<B> Drop for Threads<B> {
    fn drop(&mut self) {
        if let Some(assignment) = self.assignment.take() {
            // Release: as in `release`.
            assignment.order.store(1, Ordering::Release);
            self.bells.cores.iter().for_each(Doorbell::ring);
        }
        let is_lost = self.is_lost;
        self.instances.drain(..).for_each(|machine_thread| machine_thread.end(is_lost));
        self.cores.drain(..).for_each(|machine_thread| machine_thread.end(is_lost));
    }
}

impl<J> MachineThread<J> {
    /// Lets the thread end; one that may be stuck is not waited for, it keeps the memory alive by itself.
    fn end(self, is_lost: bool) {
        drop(self.jobs);
        if !is_lost {
            self.handle.join().unwrap_or_default();
        }
    }
}

/// Starts a thread that serves jobs and keeps GM mapped.
fn start<J: Send + 'static>(
    role: &str,
    number: usize,
    memory: &Memory,
    serve: impl FnOnce(Receiver<J>) + Send + 'static,
) -> io::Result<MachineThread<J>> {
    let (jobs, receiver) = channel();
    let memory = Arc::clone(memory);
    let body = move || {
        serve(receiver);
        drop(memory);
    };
    let named = thread::Builder::new().name(format!("pto-{role}-{number}"));
    let handle = named.stack_size(1 << 20).spawn(body)?;
    Ok(MachineThread { jobs, handle })
}

/// The thread of one core.
fn serve_core(me: usize, jobs: &Receiver<CoreJob>, bells: &Bells) {
    while let Ok(job) = jobs.recv() {
        serve_lines(me, &job.port, &job.assignment, bells);
        job.assignment.gone.returned();
    }
}

/// The worker loop on one pair of lines, until the core leaves or has to let go.
fn serve_lines(me: usize, mut port: &CorePort<'static>, assignment: &Assignment, bells: &Bells) {
    let mut backoff = Backoff::new(bells.policy);
    loop {
        // Acquire: pairs with the Release store in `Threads::release`.
        if assignment.order.load(Ordering::Acquire) != 0 {
            // A core that was asked to quit still says that it has.
            while worker::step(&mut port) == WorkerStep::Worked {}
            return;
        }
        match worker::step(&mut port) {
            WorkerStep::Worked => {
                backoff.reset();
                bells.wake_owner(me);
            }
            WorkerStep::Left => {
                bells.wake_owner(me);
                return;
            }
            WorkerStep::Idle if backoff.wait(thread::yield_now) => {
                bells.cores[me].sleep(CORE_SLEEP);
            }
            WorkerStep::Idle => {}
        }
    }
}

/// The thread of one AICPU instance.
fn serve_instance<B: BuilderSet>(me: usize, jobs: &Receiver<InstanceJob<B>>, bells: &Arc<Bells>) {
    while let Ok(job) = jobs.recv() {
        let part = std::panic::AssertUnwindSafe(|| match job.launch.fanout {
            FanoutStrategy::LOCKED => take_part::<Locked, B>(&job, me, bells),
            _ => take_part::<LockFree, B>(&job, me, bells),
        });
        if std::panic::catch_unwind(part).is_err() {
            supervisor::raise_panic(&job.launch);
        }
        logging::set_ring(None);
        job.finish.returned();
    }
}

/// Traced or not with one type: one test at each event costs little compared with the lines that travel between threads.
fn take_part<F: FanoutPolicy, B: BuilderSet>(job: &InstanceJob<B>, me: usize, bells: &Arc<Bells>) {
    let launch = &job.launch;
    logging::set_ring(launch.arena.log_ring(launch.log_region(), me));
    let is_builder = me == 0 && launch.first_scheduler() > 0;
    let sleep = if is_builder { BUILDER_SLEEP } else { SCHEDULER_SLEEP };
    let backoff = Backoff::new(bells.policy);
    let number = u32::try_from(me).unwrap_or(u32::MAX);
    let tracer = launch.trace_writer(TraceOwner::Instance(number));
    let machine = InstanceThread { bells: Arc::clone(bells), me, backoff, sleep, tracer };
    let platform = LinesPlatform::<Concurrent, _>::new(launch.arena.workers(), machine);
    let instance: Instance<'_, _, F> = Instance::new(launch.clone(), number, platform);
    // The fault is in the arena, where the caller of the run finds it.
    let _: Result<(), pto_abi::Fault> = run(instance, &*job.builders);
}

impl Bells {
    fn wake_owner(&self, core: usize) {
        let owner = self.owners[core].load(Ordering::Relaxed) as usize;
        self.schedulers[owner % MAX_AICPU_INSTANCES].ring();
    }

    fn wake_sleeping(&self) {
        let mut sleeping = self.sleeping.load(Ordering::Relaxed);
        while sleeping != 0 {
            self.schedulers[sleeping.trailing_zeros() as usize % MAX_AICPU_INSTANCES].ring();
            sleeping &= sleeping - 1;
        }
    }
}

/// The machine of one instance.
struct InstanceThread {
    bells: Arc<Bells>,
    me: usize,
    backoff: Backoff,
    sleep: Duration,
    tracer: Option<TraceWriter<'static>>,
}

impl Machine for InstanceThread {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn relax(&mut self) {
        if !self.backoff.wait(thread::yield_now) {
            return;
        }
        let bit = 1 << self.me;
        self.bells.sleeping.fetch_or(bit, Ordering::Relaxed);
        self.bells.schedulers[self.me].sleep(self.sleep);
        self.bells.sleeping.fetch_and(!bit, Ordering::Relaxed);
    }

    fn wake_siblings(&mut self) {
        self.bells.wake_sleeping();
    }

    fn ring(&mut self, worker: u32) {
        let worker = worker as usize % MAX_WORKERS;
        let me = u32::try_from(self.me).unwrap_or(0);
        self.bells.owners[worker].store(me, Ordering::Relaxed);
        self.bells.cores[worker].ring();
        self.backoff.reset();
    }

    #[inline(always)]
    fn traces(&self) -> bool {
        self.tracer.is_on()
    }

    #[inline]
    fn trace(&mut self, point: TracePoint) {
        self.tracer.write(point, clock::pause);
    }

    /// A builder wakes schedulers that sleep.
    #[inline]
    fn published(&mut self) {
        self.bells.wake_sleeping();
    }
}

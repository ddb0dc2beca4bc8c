//! The machine that [`crate::SimulatedMachine`] uses in virtual time, and runs without one.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use pto_abi::arena::Arena;
use pto_abi::{CoreKind, FanoutStrategy, Fault};
use pto_aicpu_fw::{FanoutPolicy, Launch, LockFree, Locked, instance};
use pto_graph::BuilderSet;

use super::chooser::Chooser;
use super::cost::FastRegions;
use super::device::VirtualDevice;
use super::engine;
use super::environment::Environment;
use super::group::{Locals, Machine, NetEndpoint, Stack};
use super::ledger::Invariant;
use super::options::VirtualOptions;
use super::report::{InstanceReport, KindReport, VirtualReport};
use super::traced_calls::SavedCalls;
use crate::host::{Host, Memory};
use crate::logging::{self, Destination};
use crate::supervisor::{self, Beat, Finish};

/// Runs a launch, on the calling thread, with choices from `chooser`; gives the chooser back, so that a search
/// can go on. A builder or kernel that never returns is not noticed here; [`crate::SimulatedMachine`] notices it.
pub fn run_once<B: BuilderSet>(
    arena: Arena<'static>,
    builders: &Arc<B>,
    options: VirtualOptions,
    chooser: Chooser,
) -> (Option<Fault>, VirtualReport, Chooser) {
    match Launch::accept(arena) {
        Ok(launch) => {
            let beats = Arc::default();
            let (report, chooser) =
                run(&launch, builders, options, (chooser, Environment::default()), &beats);
            (arena.fault().first(), report, chooser)
        }
        Err(blame) => {
            instance::refuse(&arena, &blame, 0, 0);
            (arena.fault().first(), VirtualReport::default(), chooser)
        }
    }
}

fn run<B: BuilderSet>(
    launch: &Launch<'static>,
    builders: &Arc<B>,
    options: VirtualOptions,
    chooser: (Chooser, Environment),
    beats: &Arc<Vec<Beat>>,
) -> (VirtualReport, Chooser) {
    match launch.fanout {
        FanoutStrategy::LOCKED => run_with::<Locked, B>(launch, builders, options, chooser, beats),
        _ => run_with::<LockFree, B>(launch, builders, options, chooser, beats),
    }
}

/// With a fanout policy of one's own, right or wrong.
pub(super) fn run_with<F: FanoutPolicy, B: BuilderSet>(
    launch: &Launch<'static>,
    builders: &Arc<B>,
    options: VirtualOptions,
    (chooser, environment): (Chooser, Environment),
    beats: &Arc<Vec<Beat>>,
) -> (VirtualReport, Chooser) {
    let (device, instances) =
        engine::run::<F, B>(launch, builders, options, chooser, beats, environment);
    report(device, instances)
}

fn report(mut device: VirtualDevice, instances: Vec<InstanceReport>) -> (VirtualReport, Chooser) {
    let makespan_ns = instances.iter().map(|instance| instance.returned_ns).max().unwrap_or(0);
    if device.launch.state.fault.first().is_none() {
        device.ledger.check_end(makespan_ns);
        device.check_cores_at_end();
        device.check_parts_at_end();
    }
    let times = device.account.finish();
    let kind = |kind: CoreKind| KindReport {
        cores: u32::try_from(device.launch.workers.count(kind)).unwrap_or(u32::MAX),
        parts: device.tasks_run[kind.index()],
        busy_ns: device.busy_ns[kind.index()],
        time: times[kind.index()],
    };
    let kinds = [kind(CoreKind::AIC), kind(CoreKind::AIV)];
    let (events, events_dropped) = device.trace.take();
    let (violations, violation_count) = device.ledger.take_violations();
    let first_ns = device.ledger.first_ready_ns.unwrap_or(0);
    let report = VirtualReport {
        makespan_ns,
        graph_ns: device.ledger.last_completed_ns.saturating_sub(first_ns),
        tasks: device.ledger.completed,
        kernels: device.ledger.completed + device.ledger.chained,
        trace_hash: device.trace.hash(),
        choices: device.chooser.count(),
        turns: device.agenda.turns(),
        injections: device.trace.injections(),
        critical_path_ns: device.ledger.longest_path_ns,
        waits: device.ledger.waits,
        kinds,
        instances,
        events,
        events_dropped,
        violations,
        violation_count,
    };
    (report, device.chooser)
}

impl VirtualDevice {
    fn check_cores_at_end(&mut self) {
        let occupied =
            self.cores.iter().position(|core| core.is_occupied() || !core.orders.is_empty());
        if let Some(worker) = occupied {
            self.violate(
                Invariant::Termination,
                u32::MAX,
                worker,
                "a core is occupied after the run",
            );
        }
    }
}

/// One run, as the thread of the machine gets it.
struct LaunchJob {
    launch: Launch<'static>,
    finish: Arc<Finish>,
    beats: Arc<Vec<Beat>>,
    reports: Sender<VirtualReport>,
    environment: Environment,
}

/// The machine: one OS thread, so that a kernel or builder that never returns does not take the caller along.
pub(crate) struct Virtual<B> {
    options: VirtualOptions,
    memory: Memory,
    builders: Arc<B>,
    thread: Option<(Sender<LaunchJob>, JoinHandle<()>)>,
    last: Option<VirtualReport>,
    is_lost: bool,
    thread_error: Option<io::Error>,
    environment: Environment,
}

impl<B: BuilderSet> Virtual<B> {
    pub(crate) fn new(options: VirtualOptions, memory: Memory, builders: Arc<B>) -> Self {
        let environment = Environment::default();
        let (thread, last, is_lost, thread_error) = (None, None, false, None);
        Self { options, memory, builders, thread, last, is_lost, thread_error, environment }
    }

    fn start(&mut self) -> Option<&Sender<LaunchJob>> {
        if self.thread.is_none() {
            let (jobs, receiver) = channel();
            let (options, builders) = (self.options, Arc::clone(&self.builders));
            let memory = Arc::clone(&self.memory);
            let body = move || {
                serve(&receiver, options, &builders);
                drop(memory);
            };
            let named = std::thread::Builder::new().name("pto-virtual".to_owned());
            match named.spawn(body) {
                Ok(thread) => self.thread = Some((jobs, thread)),
                Err(error) => self.thread_error = Some(error),
            }
        }
        self.thread.as_ref().map(|(jobs, _)| jobs)
    }
}

/// The thread-local state of a machine.
#[derive(Default)]
struct OfMachine {
    noted: SavedCalls,
    logs: Destination,
}

impl Locals for OfMachine {
    fn exchange(&mut self) {
        self.noted.exchange();
        self.logs.exchange();
    }
}

fn serve<B: BuilderSet>(
    jobs: &Receiver<LaunchJob>,
    mut options: VirtualOptions,
    builders: &Arc<B>,
) {
    let mut stack = None;
    while let Ok(job) = jobs.recv() {
        let finish = Arc::clone(&job.finish);
        let injections = match job.environment.endpoint.clone() {
            None => serve_one(&job, options, builders),
            Some(endpoint) => serve_rank(job, options, builders, (&endpoint, &mut stack)),
        };
        // A trouble happens once in the life of a machine.
        options.injection = options.injection.filter(|_| injections == 0);
        finish.returned();
    }
}

/// One run, on this thread; how many troubles it had.
fn serve_one<B: BuilderSet>(job: &LaunchJob, options: VirtualOptions, builders: &Arc<B>) -> u32 {
    let chooser = (Chooser::seeded(options.seed), job.environment.clone());
    let part = AssertUnwindSafe(|| run(&job.launch, builders, options, chooser, &job.beats).0);
    let report = std::panic::catch_unwind(part);
    logging::set_ring_afresh(None);
    logging::set_virtual_time(None);
    let Ok(report) = report else {
        supervisor::raise_panic(&job.launch);
        if let Some(NetEndpoint { net, rank }) = &job.environment.endpoint {
            net.give_up(*rank, "host code of it has panicked");
        }
        return 0;
    };
    let injections = report.injections;
    // The caller may have given up.
    job.reports.send(report).unwrap_or_default();
    injections
}

/// One run of a rank, in its turns; how many troubles it had.
fn serve_rank<B: BuilderSet>(
    job: LaunchJob,
    options: VirtualOptions,
    builders: &Arc<B>,
    (NetEndpoint { net, rank }, kept): (&NetEndpoint, &mut Option<Stack>),
) -> u32 {
    let launch = job.launch.clone();
    let refused = |what: &str| {
        supervisor::raise_panic(&launch);
        net.give_up(*rank, what);
        0
    };
    let Some(stack) = kept.take().or_else(|| Stack::new().ok()) else {
        return refused("its process gets no memory for a stack");
    };
    let (sender, injections) = channel();
    let (builders, beats) = (Arc::clone(builders), Arc::clone(&job.beats));
    let body = move || sender.send(serve_one(&job, options, &builders)).unwrap_or_default();
    let machine = Machine { body: Box::new(body), locals: Box::<OfMachine>::default(), stack };
    let beat = || {
        for beat in beats.iter() {
            beat.turn();
            beat.no_core();
        }
    };
    match net.run(*rank, machine, beat) {
        Ok(stack) => *kept = stack,
        Err(_) => return refused("its process gets no further thread"),
    }
    injections.try_recv().unwrap_or(0)
}

impl<B: BuilderSet> Host for Virtual<B> {
    fn run(&mut self, launch: &Launch<'static>) -> bool {
        self.last = None;
        let finish = Finish::of(1);
        let beats = Arc::new(vec![Beat::default()]);
        let (reports, received) = channel();
        let environment = self.environment.clone();
        let Some(jobs) = self.start() else {
            supervisor::raise_panic(launch);
            return true;
        };
        let job = LaunchJob {
            launch: launch.clone(),
            finish: Arc::clone(&finish),
            beats: Arc::clone(&beats),
            reports,
            environment,
        };
        jobs.send(job).unwrap_or_default();
        let watched: Vec<&Beat> = beats.iter().collect();
        self.is_lost |=
            !supervisor::supervise(launch, 1, (&finish, &watched), supervisor::Clock::Virtual);
        self.last = received.try_recv().ok();
        !self.is_lost
    }

    fn take_thread_error(&mut self) -> Option<io::Error> {
        self.thread_error.take()
    }

    fn release(&mut self) -> bool {
        !self.is_lost
    }

    fn builders(&self) -> Vec<String> {
        crate::host::names_of(&*self.builders)
    }
}

/// A host with a virtual clock.
pub(crate) trait VirtualHost: Host {
    /// Makes it a rank of a group.
    fn join_group(&mut self, endpoint: NetEndpoint);

    /// Sets which regions of its memory are fast.
    fn follow(&mut self, fast: FastRegions);

    /// What the last run says of itself; `None`: it has not come to its end.
    fn take_report(&mut self) -> Option<VirtualReport>;
}

impl<B: BuilderSet> VirtualHost for Virtual<B> {
    fn join_group(&mut self, endpoint: NetEndpoint) {
        self.environment.endpoint = Some(endpoint);
    }

    fn follow(&mut self, fast: FastRegions) {
        self.environment.fast = fast;
    }

    fn take_report(&mut self) -> Option<VirtualReport> {
        self.last.take()
    }
}

impl<B> Drop for Virtual<B> {
    fn drop(&mut self) {
        if let Some((jobs, handle)) = self.thread.take() {
            drop(jobs);
            if !self.is_lost {
                handle.join().unwrap_or_default();
            }
        }
    }
}

//! A device that runs programs of the field.
//!
//! ```text
//! run: options -> kernels registered -> tensors into GM -> the engine runs `enter` on its builder -> tensors back -> outcome
//! ```
//! The engine's builder finds the program by a ticket in its orchestration words. For the emulated machine and for an Ascend device the program runs here,
//! and its tasks go there as lists (`listed.rs`).

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::abi::numbers::Counted;
use pto_host::abi::{CoreKind, FuncId, GmAddr};
use pto_host::fw::Image;
use pto_host::graph::{BuildError, HostedBuilder};
use pto_host::virtual_time::{KernelCosts, VirtualOptions};
use pto_host::{
    A2a3Options, Capacities, Device, DeviceMemory, DeviceOptions, Hosting, Placement,
    QemuDeviceOptions, RunControl, RunOptions, RunReport, StreamCapacities, TraceOptions, Work,
};
use pto_native::{Failure, FailureKind, HostedBuilders, SharedDevice, call_guarded};

use crate::build::{Build, BuildContext, HEAPS};
use crate::call::{Call, DeviceTensors};
use crate::callable::Callable;
use crate::calls;
use crate::codes::{ErrorCode, FieldError};
use crate::frames::Frames;
use crate::limits::RingLimits;
use crate::listed::{self, State};
use crate::loaded::LoadedCallable;
use crate::options::{CallOptions, Rings};
use crate::outcome::RunOutcome;
use crate::outputs::Outputs;
use crate::races::Races;
use crate::recordings::Recordings;
use crate::rule::Writers;
use crate::run_log::RunLog;
use crate::scopes::{Ids, Scopes};
use crate::shared::{SharedState, runs_one};
use crate::wire::ChipTensor;

/// The builder program that enters programs of the field.
const BUILDER: &str = "field";
/// Tasks that may be alive, unless the call says otherwise: theirs is 16,384 as well.
const WINDOW: u32 = 16_384;
/// Bytes of each heap, unless the call says otherwise: as theirs.
const HEAP_BYTES: u64 = 256 << 20;
/// Cores of their simulator: 8 clusters.
const CLUSTERS: u32 = 8;

type WaitingBuilds = Arc<Mutex<BTreeMap<u64, Box<Build>>>>;

/// How programs come to the device.
enum EntryMode {
    /// Its firmware enters them in this process, by their tickets.
    Entered(WaitingBuilds),
    /// What they submit becomes lists of tasks.
    Listed,
}

/// See the file.
pub struct FieldDevice {
    device: Arc<SharedDevice>,
    hosting: Hosting,
    entry_mode: EntryMode,
    /// The program whose kernels are registered, and their ids.
    registered: Mutex<(u64, Vec<FuncId>)>,
    /// A word of GM that is zero.
    zero: GmAddr,
    tickets: AtomicU64,
}

impl FieldDevice {
    /// The device that their simulator has: 8 clusters.
    #[must_use]
    pub fn options(hosting: Hosting) -> DeviceOptions {
        DeviceOptions { aic: CLUSTERS, aiv: 2 * CLUSTERS, hosting, ..DeviceOptions::default() }
    }

    /// Opens the simulator.
    ///
    /// # Errors
    /// `WORKERS`, `MAP_GM`, `OUT_OF_MEMORY`.
    pub fn open(options: DeviceOptions) -> Result<Self, Failure> {
        let hosting = with_costs_of_programs(options.hosting);
        let options = DeviceOptions { hosting, ..options };
        Self::over(SharedDevice::open_sim(options)?, options.hosting)
    }

    /// The machine that has the clusters of their simulator.
    #[must_use]
    pub fn machine() -> QemuDeviceOptions {
        QemuDeviceOptions { aic: CLUSTERS, aiv: 2 * CLUSTERS, ..QemuDeviceOptions::default() }
    }

    /// Opens the emulated machine, with a firmware that expands lists of tasks, as the default one, and the blob of the kernels of a program: `pto fw build
    /// --kernel`. A process has one such machine at a time, because its memory is mapped at the same addresses in this process.
    ///
    /// # Errors
    /// `IMAGE`, `QEMU`, `OUT_OF_MEMORY`; `BUILDER_NOT_FOR_DEVICE`: the firmware expands no lists.
    pub fn open_qemu(
        options: &QemuDeviceOptions,
        firmware: &Image,
        kernels: &Image,
    ) -> Result<Self, Failure> {
        let options = QemuDeviceOptions { placement: Placement::InPlace, ..options.clone() };
        Self::listed(Device::open_qemu(&options, firmware, kernels)?)
    }

    /// Opens an Ascend device, with a firmware that expands lists of tasks, as the default one, and the kernels of a program: `pto fw build --image cann
    /// --aicore --kernel`.
    ///
    /// # Errors
    /// `IMAGE`, `OUT_OF_MEMORY`, or why the device cannot be taken; `BUILDER_NOT_FOR_DEVICE`: the firmware expands no lists.
    pub fn open_a2a3(
        options: &A2a3Options,
        firmware: &Image,
        kernels: &Image,
    ) -> Result<Self, Failure> {
        Self::listed(Device::open_a2a3(options, firmware, kernels)?)
    }

    fn listed(device: Device) -> Result<Self, Failure> {
        if !device.expands_plans() {
            let message = "the firmware image expands no lists of tasks: take one with the streaming runtime, such as the default one";
            return Err(Failure::new(FailureKind::BUILDER_NOT_FOR_DEVICE, message));
        }
        // Each of its cores runs by itself.
        Self::of(
            SharedDevice::over(device, HostedBuilders::default()),
            Hosting::Threads,
            EntryMode::Listed,
        )
    }

    /// Runs programs on a device that is open, and for which this object alone registers kernels.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY`; `BUILDER_NOT_FOR_DEVICE`: the emulated machine is opened with [`open_qemu`](Self::open_qemu).
    pub fn over(device: Arc<SharedDevice>, hosting: Hosting) -> Result<Self, Failure> {
        device.takes_builders()?;
        let waiting = WaitingBuilds::default();
        let programs = Arc::clone(&waiting);
        device.builders().insert(BUILDER, Arc::new(move |graph| enter_ticket(&programs, graph)));
        Self::of(device, hosting, EntryMode::Entered(waiting))
    }

    fn of(
        device: Arc<SharedDevice>,
        hosting: Hosting,
        entry_mode: EntryMode,
    ) -> Result<Self, Failure> {
        let zero = device.memory().alloc(64)?;
        device.memory().copy_to_device(zero, &[0; 64])?;
        let registered = Mutex::new((0, Vec::new()));
        Ok(Self { device, hosting, entry_mode, registered, zero, tickets: AtomicU64::new(1) })
    }

    /// The device's memory, usable during runs.
    #[must_use]
    pub fn memory(&self) -> &DeviceMemory {
        self.device.memory()
    }

    /// The device below.
    #[must_use]
    pub fn shared(&self) -> &Arc<SharedDevice> {
        &self.device
    }

    /// Runs a program to its end. What the program does wrong is in the outcome; `Err` says why nothing ran.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: the hosting mode does not suit the options; `OUT_OF_MEMORY`; `CAPACITY`; `BUSY`.
    ///
    /// # Safety
    /// The host pointers of the call's tensors are valid for their sizes, and nothing else uses this memory meanwhile.
    pub unsafe fn run(
        &self,
        callable: &Callable,
        call: &Call<'_>,
        options: &CallOptions,
        control: &RunControl,
    ) -> Result<RunOutcome, Failure> {
        let options = &self.suited(options)?;
        let run = run_options(options);
        self.register(&callable.0)?;
        if matches!(self.entry_mode, EntryMode::Listed) {
            listed::check_tensors(self.memory(), call.tensors)?;
        }
        // SAFETY: the caller vouches for the pointers.
        let arguments = unsafe { DeviceTensors::new(self.memory(), call) }?;
        if let Some(error) = arguments_missing(&callable.0, &arguments, call.scalars) {
            return Ok(RunOutcome::refused(error));
        }
        let mut build = self.build(&callable.0, &arguments, call, options, &run);
        let (result, build) = match &self.entry_mode {
            EntryMode::Entered(waiting) => {
                let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
                held(waiting).insert(ticket, Box::new(build));
                let work = Work::Stream { builder: BUILDER, orch_args: &[ticket] };
                let result = self.device.run(work, &run, control);
                let build = held(waiting).remove(&ticket);
                (result, build)
            }
            EntryMode::Listed => {
                let state = State::new(self.memory().clone())?;
                build.state = state.address().cast();
                build.listed_on = Some(self.memory().clone());
                build.frames = Frames::on(self.memory().clone());
                let enter = |context: &mut BuildContext<'_>| enter_program(context);
                let result = listed::run(&self.device, (&mut build, &state), &run, control, enter);
                (result, Some(Box::new(build)))
            }
        };
        // SAFETY: the caller vouches for the pointers, and the run is over.
        let copied = unsafe { arguments.finish(self.memory()) };
        let outcome = outcome_of(result, build)?;
        copied?;
        Ok(outcome)
    }

    /// The options with what they need; or why this hosting mode does not suit them.
    fn suited(&self, options: &CallOptions) -> Result<CallOptions, Failure> {
        if matches!(self.entry_mode, EntryMode::Listed) {
            listed::check_options(self.device.name(), options)?;
        }
        let mut options = options.clone();
        if !options.finds_shared_lines {
            return Ok(options);
        }
        if !runs_one(self.hosting) {
            let message = "lines that kernels share can be found only where one kernel at a time runs: open the device with hosting mode \
                 `virtual`, or `pool` with one OS thread";
            return Err(Failure::new(FailureKind::INVALID_ARGUMENT, message));
        }
        options.keeps.graph = true;
        Ok(options)
    }

    /// Makes the program's kernels those of the device.
    fn register(&self, program: &LoadedCallable) -> Result<(), Failure> {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if registered.0 == program.serial {
            return Ok(());
        }
        self.device.with(|device| {
            for id in registered.1.drain(..) {
                device.unregister_kernel(id)?;
            }
            registered.0 = 0;
            let kernels = match &self.entry_mode {
                EntryMode::Listed => {
                    listed::kernels(device.name(), program, &device.flashed_kernels())?
                }
                EntryMode::Entered(_) => match program.of_a_machine() {
                    None => program.registered(),
                    Some(name) => {
                        let message = format!(
                            "kernel `{name}` of {} has its code on a device, and this is the simulator",
                            program.name
                        );
                        return Err(Failure::new(FailureKind::INVALID_ARGUMENT, message));
                    }
                },
            };
            for (id, kernel) in kernels {
                device.register_kernel(id, kernel)?;
                registered.1.push(id);
            }
            registered.0 = program.serial;
            Ok(())
        })?
    }

    fn build(
        &self,
        program: &Arc<LoadedCallable>,
        arguments: &DeviceTensors<'_>,
        call: &Call<'_>,
        options: &CallOptions,
        run: &RunOptions,
    ) -> Build {
        let window = run.capacities.stream.window;
        let mut outputs = Outputs::default();
        let mark = outputs.begin();
        let shared = Box::new(SharedState::new(options, self.hosting));
        Build {
            callable: Arc::clone(program),
            state: (&raw const *shared).cast(),
            listed_on: None,
            shared,
            tensors: arguments.tensors().to_vec(),
            scalars: call.scalars.to_vec(),
            rule: options.edges,
            cores: [CoreKind::AIC, CoreKind::AIV].map(|kind| self.device.cores(kind)),
            zero: self.zero,
            frames: Frames::new(window.into()),
            outputs,
            scopes: Scopes::new(mark),
            ids: Ids::new(window as usize),
            writers: Writers::default(),
            limits: limits_of(options),
            run_log: options.keeps.is_any().then(|| RunLog::new(options.keeps, rings_of(run))),
            races: options.compares_rules.then(|| Races::new(window as usize)),
            error: None,
            fault: None,
            log: Vec::new(),
            notes: Vec::new(),
            recordings: Recordings::new(options.compares_rules),
            last_id: crate::wire::NO_TASK,
        }
    }
}

/// The limits that a program fails by, or those that give a note.
fn limits_of(options: &CallOptions) -> Option<RingLimits> {
    let asked = options.their_limits.map(RingLimits::new);
    asked.or_else(|| options.compares_rules.then(RingLimits::usual))
}

/// The options of the engine's run.
fn run_options(options: &CallOptions) -> RunOptions {
    let rings = options.rings;
    let or = |asked: u32, ours: u32| if asked == 0 { ours } else { asked };
    let window = or(rings.window, WINDOW).next_power_of_two();
    let heap = if rings.heap_bytes == 0 { HEAP_BYTES } else { rings.heap_bytes };
    let edges = if rings.edges == 0 { 16 * u64::from(window) } else { rings.edges };
    let stream = StreamCapacities {
        window,
        map_entries: (4 * window).max(1024),
        heap_rings: u32::try_from(HEAPS).unwrap_or(1),
        heap_bytes: heap.next_multiple_of(64),
    };
    let mut run = options.run.clone();
    if options.keeps.spans && run.trace.is_none() {
        run.trace = Some(TraceOptions::default());
    }
    run.capacities =
        Capacities { stream, arg_words: 16 * u64::from(window), edges, ..run.capacities };
    pto_native::streaming(&run)
}

/// In virtual time every kernel of a program costs the same, unless the options say otherwise: the cost model of our library knows its
/// kernels by their func ids, and here these are the program's own.
fn with_costs_of_programs(hosting: Hosting) -> Hosting {
    let Hosting::Virtual(machine) = hosting else { return hosting };
    let costs = match machine.costs {
        KernelCosts::Library { fallback } => KernelCosts::Constant(fallback),
        costs => costs,
    };
    Hosting::Virtual(VirtualOptions { costs, ..machine })
}

/// The sizes that a run has.
fn rings_of(run: &RunOptions) -> Rings {
    let Capacities { stream, edges, .. } = &run.capacities;
    Rings { window: stream.window, heap_bytes: stream.heap_bytes, edges: *edges }
}

/// The program expects more arguments than it gets.
fn arguments_missing(
    program: &LoadedCallable,
    arguments: &DeviceTensors<'_>,
    scalars: &[u64],
) -> Option<FieldError> {
    let (expects, config) = program.expected?;
    type Expected =
        unsafe extern "C" fn(*mut c_void, *const ChipTensor, u32, *const u64, u32) -> i32;
    // SAFETY: the header defines the function with this signature.
    let expects = unsafe { std::mem::transmute::<*mut c_void, Expected>(expects.as_ptr()) };
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let tensors = arguments.tensors();
    // SAFETY: the arguments hold as many as are said.
    let expected = unsafe {
        expects(
            config.as_ptr(),
            tensors.as_ptr(),
            count(tensors.len()),
            scalars.as_ptr(),
            count(scalars.len()),
        )
    };
    let given = tensors.len() + scalars.len();
    let expected = u64::try_from(expected).ok().filter(|expected| (given as u64) < *expected)?;
    let expected = Counted(expected, "argument");
    let detail = format!("{} expects {expected}, and gets {given}", program.name);
    Some(FieldError { code: ErrorCode(1), ..FieldError::new(ErrorCode::INVALID_ARGS, detail) })
}

/// `pto_field_enter` of the header.
type Enter = unsafe extern "C" fn(*mut c_void, *const ChipTensor, u32, *const u64, u32);

/// What the entry is called with.
struct Entered {
    enter: Enter,
    entry: *mut c_void,
    tensors: (*const ChipTensor, u32),
    scalars: (*const u64, u32),
}

/// # Safety
/// `argument` is an [`Entered`] that lives.
unsafe extern "C" fn enter(argument: *mut c_void, _: *mut u64, _: c_int) -> c_int {
    // SAFETY: the caller vouches for it. No value here has a destructor: a signal jumps over this frame.
    let entered = unsafe { &*argument.cast::<Entered>() };
    let Entered { enter, entry, tensors, scalars } = entered;
    // SAFETY: the header defines the function with this signature, and the arguments live.
    unsafe { enter(*entry, tensors.0, tensors.1, scalars.0, scalars.1) };
    0
}

fn held(waiting: &WaitingBuilds) -> MutexGuard<'_, BTreeMap<u64, Box<Build>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the program of the ticket in the orchestration words.
fn enter_ticket(
    waiting: &WaitingBuilds,
    graph: &mut (dyn HostedBuilder + '_),
) -> Result<(), BuildError> {
    let [ticket] = *graph.orch_args() else { return Err(BuildError::Failed(-1)) };
    let taken = held(waiting).remove(&ticket);
    let Some(mut build) = taken else { return Err(BuildError::Failed(-1)) };
    let Some(stream) = graph.as_stream() else { return Err(BuildError::Failed(-1)) };
    let shared: *const SharedState = &raw const *build.shared;
    // SAFETY: it is of the build, in a box of its own, and its changing fields are atomics or under a lock.
    let shared = unsafe { &*shared };
    shared.building(|| enter_program(&mut BuildContext { build: &mut build, stream }));
    let error = build.fault.map(BuildError::Fault);
    let is_over = build.is_over();
    held(waiting).insert(ticket, build);
    match error {
        Some(error) => Err(error),
        None if is_over => Err(BuildError::Failed(1)),
        None => Ok(()),
    }
}

fn enter_program(context: &mut BuildContext<'_>) {
    let program = Arc::clone(&context.build.callable);
    let (tensors, scalars) = (context.build.tensors.clone(), context.build.scalars.clone());
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut entered = Entered {
        // SAFETY: the header defines the function with this signature.
        enter: unsafe { std::mem::transmute::<*mut c_void, Enter>(program.enter.as_ptr()) },
        entry: program.entry.as_ptr(),
        tensors: (tensors.as_ptr(), count(tensors.len())),
        scalars: (scalars.as_ptr(), count(scalars.len())),
    };
    let argument = (&raw mut entered).cast();
    let called = calls::with(context, || {
        // SAFETY: the argument lives; what the program holds when it raises a signal is its own.
        unsafe { call_guarded(enter, argument, &program.name) }
    });
    if let Err(signal) = called {
        let number = context.build.ids.next();
        let detail =
            format!("{} raised {signal} after it had submitted {number} tasks", program.name);
        context.build.fail(ErrorCode::EXPLICIT_ORCH_FATAL, detail);
    }
    while context.build.scopes.depth() > 0 && !context.build.is_over() {
        context
            .build
            .note(|| "the program returned while a scope was open; the scope ends here".to_owned());
        context.close_scope();
    }
}

/// What to do about a completion that waited while no other kernel could run.
const WAITED_ALONE: &str = "Its task waits for notifications of tasks that it has no edge from, and here fewer kernels than the device has cores run at a time: open the \
                            device with hosting mode `threads` or `virtual`, or give the task edges from those that notify it.";

/// What became of a run.
fn outcome_of(
    result: Result<RunReport, Failure>,
    build: Option<Box<Build>>,
) -> Result<RunOutcome, Failure> {
    let Some(mut build) = build else {
        // The program did not come back, or was never entered.
        return match result {
            Ok(_) => Err(Failure::new(FailureKind::PANIC, "the program was not entered")),
            Err(failure) => Ok(RunOutcome::refused(scheduler_error(&failure)?)),
        };
    };
    let asynchronous = build.shared.failed.load(Ordering::Relaxed);
    let crash = build.shared.crash().map(|crash| FieldError {
        hint: crash.hint.to_owned(),
        ..FieldError::new(ErrorCode::SCHEDULER_TIMEOUT, crash.what)
    });
    let error = match (&build.error, &result) {
        _ if crash.is_some() => crash,
        (Some(error), _) => Some(error.clone()),
        (None, Err(failure)) => Some(stalled(scheduler_error(failure)?, &build)),
        (None, Ok(_)) if asynchronous != 0 => {
            let code = ErrorCode(asynchronous.unsigned_abs());
            let failed = FieldError::new(code, "a kernel's completion failed");
            Some(if build.shared.waited_alone.load(Ordering::Relaxed) {
                FieldError { hint: WAITED_ALONE.to_owned(), ..failed }
            } else {
                failed
            })
        }
        (None, Ok(_)) => None,
    };
    if let Some(location) = build.shared.went_on() {
        build.note(|| format!(
            "{location}: a kernel of this task ran for longer than 1 s, and the run went on around it, as if it waited for another task: the times of this run are not the same twice"
        ));
    }
    let outcome = RunOutcome::of(error, result.ok(), &mut build);
    if outcome.code != 0 && build.listed_on.is_none() {
        // A core that did not come back may still read its frame.
        std::mem::forget(build);
    }
    Ok(outcome)
}

/// Says what to do if a kernel that did not return waits for another task.
fn stalled(error: FieldError, build: &Build) -> FieldError {
    let may_wait = !build.shared.has_own_threads && !build.shared.runs_detached;
    if !may_wait || error.code != ErrorCode::SCHEDULER_TIMEOUT {
        return error;
    }
    let hint = format!(
        "{} If the kernel waits for another task while it runs: open the device with hosting mode `threads`, or `virtual`.",
        error.hint
    );
    FieldError { hint, ..error }
}

/// A fault that is not the orchestration's; what has no fault ran nothing.
fn scheduler_error(failure: &Failure) -> Result<FieldError, Failure> {
    if failure.code >= pto_native::HOST_CODES {
        return Err(failure.clone());
    }
    let fault = pto_host::abi::Fault::from_code(failure.code);
    let code = fault.map_or(ErrorCode::SCHEDULER_TIMEOUT, ErrorCode::of_fault);
    let detail = format!("{}: {}", failure.name, failure.message);
    Ok(FieldError {
        hint: format!("{} {}", code.hint(), failure.remedy),
        ..FieldError::new(code, detail)
    })
}

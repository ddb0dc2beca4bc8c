//! The options and the report of a run, and run controls.

use std::time::Duration;

use pto_host::abi::stream::StreamCapacities;
use pto_host::abi::{BuildMode, CoreKind, FanoutStrategy};
use pto_host::{RunControl, TraceOptions};
use pto_native::Failure;

use std::ffi::c_char;

use crate::argument::invalid;
use crate::error::{answer, answer_to};
use crate::handle;

/// A run's remote control. Created by `pto_control_create`, destroyed by `pto_control_destroy`; serves one run at a time.
#[derive(Debug)]
pub struct OpaqueControl;

/// How a run is done; `pto_run_options_init` fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// sizeof(pto_run_options).
    pub size: u32,
    /// 1 concurrent, 0 sequential: whether schedulers wait for the builder.
    pub build_mode: u32,
    /// 1 lock-free, 0 locked.
    pub fanout: u32,
    /// AICPU instances: 1 to 16; with a builder at least 2. 0: as many as find a cluster of cores to schedule, 4 at most.
    pub aicpu_instances: u32,
    /// Tasks that a builder may add. A graph brings its own need.
    pub tasks: u32,
    /// 1: kernel times are not measured.
    pub skip_kernel_times: u32,
    /// Argument words that a builder may add.
    pub arg_words: u64,
    /// Edges that a builder may add.
    pub edges: u64,
    /// How long one task may run on a core.
    pub task_budget_ns: u64,
    /// How long the run may go without progress while no core is busy.
    pub stall_budget_ns: u64,
    /// How long a core may take to answer the greeting.
    pub bring_up_budget_ns: u64,
    /// How long the whole run may take; 0: no limit.
    pub run_budget_ns: u64,
    /// Where the timeline of the run is written, for `pto view`, `pto analyze` and Perfetto; null: it is not recorded.
    pub trace_file: *const c_char,
    /// A remote control of the run; null: none.
    pub control: *mut OpaqueControl,
    /// Task slots of a streaming run: a power of two. 0: 4,096; sequential, as many as `tasks`.
    pub window: u32,
    /// Entries of its tensor map: a power of two, at least 256. 0: as usual, as below.
    pub map_entries: u32,
    /// Bytes of each of its heap rings: a multiple of 64. 0: 64 MiB.
    pub heap_bytes: u64,
    /// How many heap rings it has, one for each depth of scopes: 1 to 8. 0: 4.
    pub heap_rings: u32,
    /// Not used; zero.
    pub reserved: u32,
}

/// What a run that succeeded reports.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RunReport {
    /// Tasks that the program submitted: a chain is one.
    pub tasks: u64,
    /// Edges of the graph.
    pub edges: u64,
    /// Edges whose producer had completed when they were added.
    pub edges_satisfied: u64,
    /// From the launch to the last instance's return.
    pub makespan_ns: u64,
    /// Time in kernels, summed over the cores of a kind (0 AIC, 1 AIV).
    pub busy_ns: [u64; 2],
    /// Parts run by the cores of a kind: kernels of chains, and of each block of other tasks.
    pub tasks_run: [u64; 2],
    /// Log entries that were overwritten before they were read.
    pub logs_dropped: u64,
}

/// Fills in the defaults: concurrent, lock-free, 4 AICPU instances, 16,384 tasks, 60 s for a task, 5 s without progress.
///
/// Fails when `options` is null. Thread safety: any thread.
///
/// # Safety
/// `options` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_run_options_init(options: *mut RunOptions) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(options, "options", || Ok(RunOptions::default())) }
}

impl Default for RunOptions {
    fn default() -> Self {
        let defaults = pto_host::RunOptions::default();
        let nanoseconds = |budget: Duration| u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX);
        Self {
            size: u32::try_from(size_of::<Self>()).unwrap_or(0),
            build_mode: defaults.build_mode.get(),
            fanout: defaults.fanout.get(),
            aicpu_instances: defaults.aicpu_instances,
            tasks: defaults.capacities.tasks,
            skip_kernel_times: 0,
            arg_words: defaults.capacities.arg_words,
            edges: defaults.capacities.edges,
            task_budget_ns: nanoseconds(defaults.task_budget),
            stall_budget_ns: nanoseconds(defaults.stall_budget),
            bring_up_budget_ns: nanoseconds(defaults.bring_up_budget),
            run_budget_ns: 0,
            trace_file: std::ptr::null(),
            control: std::ptr::null_mut(),
            window: 0,
            map_entries: 0,
            heap_bytes: 0,
            heap_rings: 0,
            reserved: 0,
        }
    }
}

impl RunOptions {
    /// The same for the host.
    pub(crate) fn for_host(&self) -> Result<pto_host::RunOptions, Failure> {
        let size = size_of::<Self>();
        if self.size as usize != size {
            return Err(invalid(format!(
                "pto_run_options.size is {}, and this library has {size}: call pto_run_options_init",
                self.size
            )));
        }
        let build_mode = BuildMode::try_from(self.build_mode)
            .map_err(|error| invalid(format!("pto_run_options.build_mode: {error}; 0 or 1")))?;
        let fanout = FanoutStrategy::try_from(self.fanout)
            .map_err(|error| invalid(format!("pto_run_options.fanout: {error}; 0 or 1")))?;
        let mut options = pto_host::RunOptions {
            build_mode,
            fanout,
            aicpu_instances: self.aicpu_instances,
            task_budget: Duration::from_nanos(self.task_budget_ns),
            stall_budget: Duration::from_nanos(self.stall_budget_ns),
            bring_up_budget: Duration::from_nanos(self.bring_up_budget_ns),
            run_budget: (self.run_budget_ns > 0).then(|| Duration::from_nanos(self.run_budget_ns)),
            kernel_times: match self.skip_kernel_times {
                0 => pto_host::KernelTimes::Measure,
                1 => pto_host::KernelTimes::Skip,
                other => {
                    let message = format!("pto_run_options.skip_kernel_times is {other}; 0 or 1");
                    return Err(invalid(message));
                }
            },
            trace: (!self.trace_file.is_null()).then(TraceOptions::default),
            ..pto_host::RunOptions::default()
        };
        options.capacities.tasks = self.tasks;
        options.capacities.arg_words = self.arg_words;
        options.capacities.edges = self.edges;
        options.capacities.stream = self.stream();
        Ok(options)
    }

    fn stream(&self) -> StreamCapacities {
        let Self { window, map_entries, heap_rings, heap_bytes, .. } = *self;
        let mut stream = StreamCapacities { window, map_entries, heap_rings, heap_bytes };
        if stream == StreamCapacities::OFF {
            return stream;
        }
        let usual = StreamCapacities::STANDARD;
        for (field, usual) in [
            (&mut stream.window, usual.window),
            (&mut stream.map_entries, usual.map_entries),
            (&mut stream.heap_rings, usual.heap_rings),
        ] {
            *field = if *field == 0 { usual } else { *field };
        }
        stream.heap_bytes = if heap_bytes == 0 { usual.heap_bytes } else { heap_bytes };
        stream
    }

    /// The control that the run obeys.
    pub(crate) fn control(&self) -> Result<RunControl, Failure> {
        if self.control.is_null() { Ok(RunControl::new()) } else { handle::get(self.control) }
    }
}

impl RunReport {
    /// What the host reports, for C.
    pub(crate) fn of(report: &pto_host::RunReport) -> Self {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let kinds = [CoreKind::AIC.index(), CoreKind::AIV.index()];
        Self {
            tasks: report.tasks,
            edges: report.edges,
            edges_satisfied: report.edges_satisfied,
            makespan_ns: nanoseconds(report.makespan),
            busy_ns: kinds.map(|kind| nanoseconds(report.busy[kind])),
            tasks_run: kinds.map(|kind| report.parts_run[kind]),
            logs_dropped: report.logs_dropped,
        }
    }
}

/// Creates a run's remote control, to be put into pto_run_options.control.
///
/// Fails when `control` is null. Thread safety: any thread.
///
/// # Safety
/// `control` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_control_create(control: *mut *mut OpaqueControl) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(control, "control", || Ok(handle::open(RunControl::new()))) }
}

/// Destroys a run's remote control; a run that has it goes on.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_control_destroy(control: *mut OpaqueControl) -> i32 {
    answer(|| handle::close(control))
}

/// Ends the run that has this control: tasks that are on cores finish, no other one starts, and the run returns
/// RUN_CANCELLED. A run that is started with it afterwards ends at once.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread; that is what it is for.
#[unsafe(no_mangle)]
pub extern "C" fn pto_control_cancel(control: *const OpaqueControl) -> i32 {
    answer(|| {
        handle::get(control)?.cancel();
        Ok(())
    })
}

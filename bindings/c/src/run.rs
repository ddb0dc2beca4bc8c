//! Functions that run graphs and builder programs.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::PoisonError;

use pto_host::timeline::{Trace, file};
use pto_host::whole_file::write_whole;
use pto_host::{GraphImage, RunControl, Work};
use pto_native::{Failure, SharedDevice, streaming};

use crate::argument::{input, invalid, optional_text, output, put, text, values};
use crate::device::OpaqueDevice;
use crate::error::{answer, answer_to};
use crate::graph::OpaqueGraph;
use crate::handle;
use crate::log;
use crate::options::{OpaqueControl, RunOptions, RunReport};

/// How far a run is. The counts are later than the run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RunProgress {
    /// 1: the run is on. 0: it has not begun, or it is over; the counts are zero.
    pub running: u32,
    /// Not used; zero.
    pub reserved: u32,
    /// Tasks added.
    pub added: u64,
    /// Tasks published.
    pub published: u64,
    /// Tasks completed.
    pub completed: u64,
}

/// Runs a graph that was built on the host (`host_build_graph`), and returns when it has ended. `options` null: the
/// defaults. `report` null: not wanted.
///
/// Fails with INVALID_HANDLE, INVALID_ARGUMENT, a fault of the graph (GRAPH_CYCLE, BUILD_KERNEL_MISSING, ..) or of the run
/// (its message is the post-mortem, and the device can be used again), CAPACITY, ARENA_MEMORY, BUSY. Thread safety: any
/// thread; runs on one device follow one another, runs on several devices go on at once.
///
/// # Safety
/// `options` is null or valid; `report` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_run_graph(
    device: *const OpaqueDevice,
    graph: *const OpaqueGraph,
    options: *const RunOptions,
    report: *mut RunReport,
) -> i32 {
    answer(|| {
        let device = handle::get(device)?;
        let graph = handle::get(graph)?;
        // SAFETY: the caller vouches for the pointers.
        let checked = unsafe { CheckedRun::new(options, report) }?;
        let image: GraphImage = {
            let draft = graph.lock().unwrap_or_else(PoisonError::into_inner);
            device.finish(&draft)?
        };
        checked.run(&device, Work::HostGraph(&image))
    })
}

/// Runs a builder program of the device on AICPU instance 0 (`aicpu_build_graph`), with `count` words, at most 128, and
/// returns when the run has ended. `options` null: the defaults. `report` null: not wanted.
///
/// Fails as `pto_run_graph`; BUILD_NO_BUILDER when the device has none of this name, BUILD_FAILED when it returns another
/// value than 0. Thread safety: as `pto_run_graph`.
///
/// # Safety
/// `builder` is null or a C string; `words` is null or readable for `count` words; `options` is null or valid; `report` is
/// null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_run_builder(
    device: *const OpaqueDevice,
    builder: *const c_char,
    words: *const u64,
    count: u32,
    options: *const RunOptions,
    report: *mut RunReport,
) -> i32 {
    answer(|| {
        let device = handle::get(device)?;
        // SAFETY: the caller vouches for the pointers, here and below.
        let builder = unsafe { text(builder, "builder") }?;
        // SAFETY: as above.
        let orch_args = unsafe { values(words, count.into(), "words") }?;
        // SAFETY: as above.
        let checked = unsafe { CheckedRun::new(options, report) }?;
        checked.run(&device, Work::AicpuBuilder { builder, orch_args })
    })
}

/// Runs a builder program of the device as a streaming program (`tensormap_and_ringbuffer`): it submits tasks with tensors
/// (`pto_builder_submit`), or adds tasks as in `pto_run_builder`; memory depends on the windows in the options. Words and
/// the rest as in `pto_run_builder`.
///
/// Fails as `pto_run_builder`, and with STREAM_* faults. Thread safety: as `pto_run_graph`.
///
/// # Safety
/// As `pto_run_builder`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_run_stream(
    device: *const OpaqueDevice,
    builder: *const c_char,
    words: *const u64,
    count: u32,
    options: *const RunOptions,
    report: *mut RunReport,
) -> i32 {
    answer(|| {
        let device = handle::get(device)?;
        // SAFETY: the caller vouches for the pointers, here and below.
        let builder = unsafe { text(builder, "builder") }?;
        // SAFETY: as above.
        let orch_args = unsafe { values(words, count.into(), "words") }?;
        // SAFETY: as above.
        let mut checked = unsafe { CheckedRun::new(options, report) }?;
        checked.options = streaming(&checked.options);
        checked.run(&device, Work::Stream { builder, orch_args })
    })
}

/// The options of a run, checked.
struct CheckedRun<'a> {
    options: pto_host::RunOptions,
    control: RunControl,
    trace_file: Option<&'a str>,
    report: Option<&'a mut MaybeUninit<RunReport>>,
}

impl CheckedRun<'_> {
    /// # Safety
    /// `options` is null or valid; `report` is null or writable; both for as long as the result lives.
    unsafe fn new(options: *const RunOptions, report: *mut RunReport) -> Result<Self, Failure> {
        let defaults = RunOptions::default();
        let options = if options.is_null() {
            &defaults
        } else {
            // SAFETY: the caller vouches for the pointers, here and below.
            unsafe { input(options, "options") }?
        };
        let report = if report.is_null() {
            None
        } else {
            // SAFETY: as above.
            Some(unsafe { output(report, "report") }?)
        };
        // SAFETY: as above.
        let trace_file = unsafe { optional_text(options.trace_file, "trace_file") }?;
        let (control, options) = (options.control()?, options.for_host()?);
        Ok(Self { options, control, trace_file, report })
    }

    fn run(self, device: &SharedDevice, work: Work<'_>) -> Result<(), Failure> {
        let ended =
            device.with(|device| device.run_controlled(work, &self.options, &self.control))?;
        let (logs, trace) = match &ended {
            Ok(report) => (&report.logs, &report.trace),
            Err(pto_host::Error::Fault { report, .. }) => (&report.logs, &report.trace),
            Err(_) => (&Vec::new(), &None),
        };
        log::pass_on(logs);
        if let (Some(path), Some(trace)) = (self.trace_file, trace) {
            write_trace(path, trace)?;
        }
        let report = ended.map_err(|error| device.failure_of(error))?;
        if let Some(to) = self.report {
            put(to, RunReport::of(&report));
        }
        Ok(())
    }
}

fn write_trace(path: &str, trace: &Trace) -> Result<(), Failure> {
    let refused = |error| invalid(format!("the timeline cannot be written to '{path}': {error}"));
    write_whole(Path::new(path), |to| file::write(trace, to)).map_err(refused)
}

/// Says how far the run is that has this control.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread; that is what it is for.
///
/// # Safety
/// `progress` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_control_progress(
    control: *const OpaqueControl,
    progress: *mut RunProgress,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(progress, "progress", || {
            let control = handle::get(control)?;
            let held = control.progress().map(|progress| RunProgress {
                running: 1,
                reserved: 0,
                added: progress.added,
                published: progress.published,
                completed: progress.completed,
            });
            Ok(held.unwrap_or_default())
        })
    }
}

//! A program while it runs: what its calls do to the stream of tasks.
//!
//! `submit.rs` submits tasks, `tensors.rs` makes tensors and reads and writes elements, `fatal` ends the run. Invariant: after the
//! first error nothing is added, and every call returns at once.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use pto_host::DeviceMemory;
use pto_host::abi::{Fault, GmAddr};
use pto_host::graph::{DependencyMode, StreamBuilder, TensorView};
use pto_host::timeline::Trace;

use crate::codes::{ErrorCode, FieldError};
use crate::frames::Frames;
use crate::limits::RingLimits;
use crate::loaded::LoadedCallable;
use crate::options::EdgeRule;
use crate::outputs::Outputs;
use crate::races::Races;
use crate::recordings::Recordings;
use crate::rule::Writers;
use crate::run_log::RunLog;
use crate::scopes::{Ids, MAX_DEPTH, Scopes, TaskStatus};
use crate::shared::SharedState;
use crate::wire::{ChipTensor, NO_TASK, SourceLocation};

/// Depths of scopes that have a heap of their own; deeper scopes share the last one.
pub(crate) const HEAPS: usize = 4;
/// Notes of a run, at most; more of the same kind say nothing new.
const MAX_NOTES: usize = 100;

/// A message of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// 0 error, 1 warning, 2 timing, 3 info, 4 debug.
    pub level: i32,
    /// What it says.
    pub text: String,
    /// File and line.
    pub location: String,
}

/// See the file.
pub(crate) struct Build {
    pub(crate) callable: Arc<LoadedCallable>,
    pub(crate) shared: Box<SharedState>,
    /// What kernels find of all tasks of the run: `shared`, or in the memory of a device a `RunState`.
    pub(crate) state: *const c_void,
    /// The memory of the device that the tasks go to as lists; the device is not locked meanwhile. `None`: its engine enters the program.
    pub(crate) listed_on: Option<DeviceMemory>,
    pub(crate) tensors: Vec<ChipTensor>,
    pub(crate) scalars: Vec<u64>,
    pub(crate) rule: EdgeRule,
    pub(crate) cores: [u32; 2],
    /// A word of GM that is zero: what a task without a kernel is conditional on.
    pub(crate) zero: GmAddr,
    pub(crate) frames: Frames,
    pub(crate) outputs: Outputs,
    pub(crate) scopes: Scopes,
    pub(crate) ids: Ids,
    pub(crate) writers: Writers,
    /// The field's limits, if they are asked for, or if what differs from the field is to be said.
    pub(crate) limits: Option<RingLimits>,
    /// Where the rules differ, if that is asked for.
    pub(crate) races: Option<Races>,
    /// What the run did, if that is asked for.
    pub(crate) run_log: Option<RunLog>,
    pub(crate) error: Option<FieldError>,
    /// The engine's fault that caused `error`.
    pub(crate) fault: Option<Fault>,
    pub(crate) log: Vec<LogLine>,
    pub(crate) notes: Vec<String>,
    pub(crate) recordings: Recordings,
    pub(crate) last_id: u64,
}

// SAFETY: `state` is of the run's own memory, which any thread may use.
unsafe impl Send for Build {}

/// What a program runs on: its state, and the engine's stream.
pub(crate) struct BuildContext<'s> {
    pub(crate) build: &'s mut Build,
    pub(crate) stream: &'s mut dyn StreamBuilder,
}

/// The source location of a call, as text.
pub(crate) fn describe(location: &SourceLocation) -> String {
    location.describe()
}

/// A call's file without its folders, and its line.
fn site_of(location: &SourceLocation) -> String {
    let whole = location.describe();
    whole.rsplit('/').next().unwrap_or(&whole).to_owned()
}

/// A text of the program.
///
/// # Safety
/// Null, or a C string.
pub(crate) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the caller vouches for it.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Build {
    /// Ends the run, unless it has ended; the first error counts.
    #[cold]
    pub(crate) fn fail(&mut self, code: ErrorCode, detail: impl Into<String>) {
        if self.error.is_none() {
            self.error = Some(FieldError::new(code, detail));
        }
    }

    /// Ends the run with a fault of the engine.
    #[cold]
    pub(crate) fn fail_with(&mut self, fault: Fault, location: &SourceLocation, what: &str) {
        if self.error.is_some() {
            return;
        }
        let (sentence, remedy) = match fault.entry() {
            Some(entry) => (entry.sentence, entry.remedy),
            None => ("A fault without a name.", ""),
        };
        let mut code = ErrorCode::of_fault(fault);
        if code == ErrorCode::FLOW_CONTROL_DEADLOCK && self.scopes.depth() > 0 {
            code = ErrorCode::SCOPE_DEADLOCK;
        }
        let detail = format!("{}: {what}: {sentence}", describe(location));
        self.error = Some(FieldError {
            hint: format!("{} {remedy}", code.hint()),
            ..FieldError::new(code, detail)
        });
        self.fault = Some(fault);
    }

    /// Says something of the program that is no error.
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if self.notes.len() < MAX_NOTES {
            let text = text();
            if !self.notes.contains(&text) {
                self.notes.push(text);
            }
        }
    }

    /// The log of the run, with the spans and arguments that the cores have kept, and the timeline of a run that ended well.
    pub(crate) fn take_run_log(&mut self, trace: Option<&Trace>) -> Option<RunLog> {
        let mut run_log = self.run_log.take()?;
        let (mut spans, dumped) = self.shared.kept();
        for span in &mut spans {
            if let Some(task) = run_log.task(span.own) {
                span.task = task.id;
                span.func_id = task.kernels.get(usize::from(span.slot)).copied().unwrap_or(-1);
            }
        }
        for note in run_log.no_memory(&dumped.unreadable, "its contents are missing") {
            self.note(|| note);
        }
        run_log.finish(&spans, dumped, trace);
        run_log.set_rough(self.shared.rough());
        for note in self.shared.shared_lines(&run_log) {
            self.note(|| note);
        }
        Some(run_log)
    }

    /// Whether nothing is to be done any more.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.error.is_some()
    }
}

impl BuildContext<'_> {
    pub(crate) fn open_scope(&mut self, is_manual: bool, location: &SourceLocation) {
        if self.build.is_over() {
            return;
        }
        let scopes = &self.build.scopes;
        if scopes.innermost().is_manual && !is_manual {
            let detail = format!("{}: a scope AUTO within a scope MANUAL", describe(location));
            return self.build.fail(ErrorCode::INVALID_ARGS, detail);
        }
        if scopes.depth() == MAX_DEPTH {
            let detail = format!("{}: more than {MAX_DEPTH} scopes are open", describe(location));
            return self.build.fail(ErrorCode::SCOPE_TASKS_OVERFLOW, detail);
        }
        // Which edges there are is decided for each argument: all scopes of the engine derive theirs.
        let engine = if scopes.depth() + 1 < HEAPS {
            match self.stream.open_scope(DependencyMode::DERIVED) {
                Ok(id) => Some(id),
                Err(fault) => return self.build.fail_with(fault, location, "a scope"),
            }
        } else {
            None
        };
        let mark = self.build.outputs.begin();
        self.build.scopes.open(engine, is_manual, mark);
        if let Some(run_log) = &mut self.build.run_log {
            run_log.begin_scope(site_of(location));
        }
        if let Some(limits) = &mut self.build.limits {
            limits.open_scope();
        }
    }

    pub(crate) fn close_scope(&mut self) {
        if self.build.is_over() {
            return;
        }
        let Some(scope) = self.build.scopes.close() else {
            return self.build.fail(ErrorCode::INVALID_ARGS, "rt_scope_end: no scope is open");
        };
        self.build.outputs.end(scope.mark);
        if let Some(run_log) = &mut self.build.run_log {
            run_log.end_scope();
        }
        if let Some(limits) = &mut self.build.limits {
            limits.close_scope();
        }
        if let Some(Err(fault)) = scope.engine.map(|id| self.stream.close_scope(id)) {
            let nowhere = SourceLocation { file: std::ptr::null(), line: 0, reserved: 0 };
            self.build.fail_with(fault, &nowhere, "the end of a scope");
        }
    }

    /// The view that a tensor is; `None`: it has no elements. An error has been left.
    pub(crate) fn view_of(
        &mut self,
        tensor: &ChipTensor,
        location: &SourceLocation,
        what: &dyn Fn() -> String,
    ) -> Result<Option<TensorView<'static>>, ()> {
        let Some(tag) = self.build.scopes.tag_of(tensor.owner) else {
            let detail =
                format!("{}: {} is a tensor of a scope that has ended", describe(location), what());
            self.build.fail(ErrorCode::INVALID_ARGS, detail);
            return Err(());
        };
        if tensor.owner != NO_TASK && self.build.ids.find(tensor.owner) == TaskStatus::Unknown {
            let (ring, local) = (tensor.owner >> 32 & 0xFF, tensor.owner & 0xFFFF_FFFF);
            let detail = format!(
                "{}: {} says that task {local} of ring {ring} made it, and no such task was submitted",
                describe(location),
                what()
            );
            self.build.fail(ErrorCode::INVALID_ARGS, detail);
            return Err(());
        }
        let (shape, element) = (tensor.shape(), crate::wire::element_of(tensor.dtype));
        let (Some(shape), Some(element)) = (shape, element) else {
            let detail = format!(
                "{}: {} has {} dimensions and the data type {}: at most 5, and a DataType",
                describe(location),
                what(),
                tensor.ndims,
                tensor.dtype
            );
            self.build.fail(ErrorCode::INVALID_ARGS, detail);
            return Err(());
        };
        if shape.contains(&0) {
            return Ok(None);
        }
        let view = crate::views::view(tensor, shape, element);
        if view.defect().is_none() {
            return Ok(Some(view.tagged(tag)));
        }
        if tensor.bytes == 0 || tensor.address == 0 {
            let detail = format!("{}: {} has no memory", describe(location), what());
            self.build.fail(ErrorCode::INVALID_ARGS, detail);
            return Err(());
        }
        self.build.note(|| {
            format!(
                "{}: {} reaches beyond its buffer ({} elements of {} bytes from element {}, in {} bytes): a kernel that \
                 uses all of it writes or reads what is not its own",
                describe(location), what(), tensor.extent, element.bytes(), tensor.start_offset, tensor.bytes
            )
        });
        Ok(Some(crate::views::whole(tensor).tagged(tag)))
    }
}

//! `class Runtime` of `include/runtime.h`: existing sources in C++ run unmodified.
//!
//! ```text
//! FieldRuntime::new -> orchestrate(f) -> run(variant) -> finalize
//!   foreign/ calls.rs, slots.rs       current_build.rs         copies back what was recorded, frees everything;
//!   (the bytes) (what f calls)           (the plugin)    also after an error, and on drop
//! ```

mod calls;
mod current_build;
mod slots;
mod state;

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::mem::offset_of;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pto_host::abi::limits::{MAX_FUNC_ID, MAX_ORCH_ARGS};
use pto_host::abi::{BuildMode, CoreKind, Fault, RuntimeVariant};
use pto_host::graph::BuildError;
use pto_host::{Error, RunControl, RunOptions, RunReport, Work};

pub use crate::foreign::object::{MAX_PLUGIN_BYTES, MAX_TASKS};

use crate::device::{SharedDevice, streaming};
use crate::failure::{Failure, FailureKind};
use crate::foreign::object::{self, AicpuBuildApi, NAME_BYTES, RuntimeObject, function_name};
use crate::guard::{self, Call, Foreign};
use crate::raw_access::Decoy;
use crate::shared_object::SharedObject;
use current_build::Plugin;
use slots::Slot;
use state::State;

/// The plugin's function, unless the orchestration names another one.
const PLUGIN_FUNCTION: &str = "build_graph_aicpu";

/// A `Runtime` object, and what sources have done to it.
pub struct FieldRuntime {
    object: Box<UnsafeCell<RuntimeObject>>,
    state: Arc<State>,
    slot: Slot,
    orchestration: Option<SharedObject>,
}

// SAFETY: the object is reached by one call at a time, through `&mut self`; what foreign code does with it in a run
// happens while `run` has `&mut self`.
unsafe impl Send for FieldRuntime {}

impl FieldRuntime {
    /// An object for a device, with the kernels that are registered on it now.
    ///
    /// # Errors
    /// `RUNTIMES_LIMIT`; `BUSY`; `INVALID_ARGUMENT` for another value of `PTO_CHECK_RAW_ACCESS` than 0 or 1.
    pub fn new(device: &Arc<SharedDevice>, options: &RunOptions) -> Result<Self, Failure> {
        let decoy = Decoy::from_environment(device.memory())?;
        Self::watched_by(device, options, decoy)
    }

    /// An object whose sources are watched: a source that follows an address of the device's memory as a pointer ends with `RAW_ACCESS`, and
    /// the message says which byte of which buffer it reached for. [`new`](Self::new) does this if the environment has
    /// `PTO_CHECK_RAW_ACCESS=1`.
    ///
    /// # Errors
    /// As [`new`](Self::new), and `MAP_GM`.
    pub fn watched(device: &Arc<SharedDevice>, options: &RunOptions) -> Result<Self, Failure> {
        let decoy = Decoy::of(device.memory())?;
        Self::watched_by(device, options, Some(decoy))
    }

    fn watched_by(
        device: &Arc<SharedDevice>,
        options: &RunOptions,
        decoy: Option<Decoy>,
    ) -> Result<Self, Failure> {
        let state = Arc::new(State::new(Arc::clone(device), decoy));
        let slot = Slot::take(&state)?;
        let host_api = slot.api();
        let mut kernel_addrs = [0; MAX_FUNC_ID];
        for kernel in device.describe()?.kernels {
            if let Some(entry) = kernel_addrs.get_mut(kernel.func_id.index()) {
                *entry = kernel.address.0;
            }
        }
        let [cube, vector] = [CoreKind::AIC, CoreKind::AIV].map(|kind| device.cores(kind));
        let clusters = cube.max(vector.div_ceil(2));
        let options = options.fitted(RuntimeVariant::AICPU_BUILD_GRAPH, clusters);
        let count = |count: u32| c_int::try_from(count).unwrap_or(c_int::MAX);
        let object = RuntimeObject {
            worker_count: count(cube + vector),
            sche_cpu_num: count(options.aicpu_instances),
            orch_argc: 0,
            build_mode: count(options.build_mode.get()),
            orch_args: [0; MAX_ORCH_ARGS],
            kernel_addrs,
            aicpu_orch_func_name: function_name(PLUGIN_FUNCTION),
            aicpu_build_api: AicpuBuildApi::of::<Plugin>(&host_api),
            host_api,
            calls: &calls::CALLS,
            state: Arc::as_ptr(&state).cast(),
            stream_api: &calls::STREAM_API,
        };
        Ok(Self { object: Box::new(UnsafeCell::new(object)), state, slot, orchestration: None })
    }

    /// Loads an orchestration and calls its function with these words.
    ///
    /// # Errors
    /// `LOAD_FAILED`, `SYMBOL_MISSING`; `ORCHESTRATION_FAILED`: it returned another value than 0, or raised a signal;
    /// the first call of it that failed, whatever it returned.
    ///
    /// # Safety
    /// The words are what the function expects: addresses among them are those of buffers that live until
    /// [`FieldRuntime::finalize`] has returned.
    pub unsafe fn orchestrate(
        &mut self,
        path: &Path,
        function: &str,
        words: &mut [u64],
    ) -> Result<(), Failure> {
        let object = SharedObject::open(path)?;
        let entry = object.function(function)?;
        let name = format!("`{function}` of {}", path.display());
        // SAFETY: an orchestration function has this signature, as its author says.
        let entry = unsafe { std::mem::transmute::<*mut c_void, Foreign>(entry.as_ptr()) };
        self.orchestration = Some(object);
        let count = c_int::try_from(words.len()).unwrap_or(c_int::MAX);
        let alias = self.state.alias();
        words.iter_mut().for_each(|word| *word = alias.seen(*word));
        let runtime = self.object.get().cast();
        let call = Call { function: entry, runtime, args: words.as_mut_ptr(), count };
        // SAFETY: the caller vouches for the words; the object lives. No lock is held across the call.
        let returned = unsafe { guard::call(call, &name) };
        let returned = returned.map_err(|signal| {
            self.state.explain(&name, signal, words, FailureKind::ORCHESTRATION_FAILED)
        });
        words.iter_mut().for_each(|word| *word = alias.device(*word));
        let failed = |what: String| Failure::new(FailureKind::ORCHESTRATION_FAILED, what);
        let mut inner = self.state.inner();
        let why = inner.last.as_ref().map(|last| format!("; before that: {last}"));
        let why = why.unwrap_or_default();
        match (returned, inner.failure.take()) {
            (Err(failure), _) => Err(Failure { message: format!("{failure}{why}"), ..failure }),
            (Ok(0), None) => Ok(()),
            (Ok(0), Some(failure)) => Err(Failure {
                message: format!("{name} returned 0, and a call of it failed: {failure}"),
                ..failure
            }),
            (Ok(code), _) => Err(failed(format!("{name} returned {code}{why}"))),
        }
    }

    /// Runs what the orchestration has prepared; the object's `build_mode` is that of the run.
    ///
    /// # Errors
    /// `PLUGIN_MISSING`, `BUILDER_SIGNAL`, `INVALID_ARGUMENT` for a `build_mode` or `orch_argc` that cannot be, and those of
    /// [`SharedDevice::run`].
    pub fn run(
        &mut self,
        variant: RuntimeVariant,
        options: &RunOptions,
        control: &RunControl,
    ) -> Result<RunReport, Failure> {
        let build_mode = self.build_mode()?;
        let options = RunOptions { build_mode, ..options.clone() };
        if variant != RuntimeVariant::HOST_BUILD_GRAPH {
            return self.run_plugin(variant, &options, control);
        }
        let image = {
            let mut inner = self.state.inner();
            inner.take_views()?;
            self.state.device.finish(&inner.draft)?
        };
        self.state.device.run(Work::HostGraph(&image), &options, control)
    }

    fn run_plugin(
        &mut self,
        variant: RuntimeVariant,
        options: &RunOptions,
        control: &RunControl,
    ) -> Result<RunReport, Failure> {
        let bytes = std::mem::take(&mut self.state.inner().plugin);
        if bytes.is_empty() {
            let message = "the orchestration embedded no AICPU builder plugin";
            return Err(Failure::new(FailureKind::PLUGIN_MISSING, message));
        }
        let function = self.plugin_function()?;
        let name = format!("AICPU builder plugin `{function}`");
        let plugin = SharedObject::from_bytes(&bytes, &name)?;
        self.state.inner().plugin = bytes;
        let entry = plugin.function(&function)?.as_ptr().expose_provenance();
        let words = self.words()?;
        let ended_early = Arc::new(Mutex::new(None));
        let builder = format!("{function} of runtime {}", self.slot.number());
        let called = name.clone();
        let build = Build {
            state: Arc::clone(&self.state),
            entry,
            runtime: self.object.get().expose_provenance(),
            name,
            ended_early: Arc::clone(&ended_early),
        };
        let device = &self.state.device;
        device.builders().insert(&builder, Arc::new(move |graph| build.run(graph)));
        let (builder, orch_args) = (builder.as_str(), words.as_slice());
        let work = match variant {
            RuntimeVariant::AICPU_BUILD_GRAPH => Work::AicpuBuilder { builder, orch_args },
            _ => Work::Stream { builder, orch_args },
        };
        let options = match variant {
            RuntimeVariant::AICPU_BUILD_GRAPH => options.clone(),
            _ => streaming(options),
        };
        let ended = device.with(|device| device.run_controlled(work, &options, control));
        let known = device.builders().remove(builder);
        debug_assert!(known, "only this function removes it");
        let ended = ended?;
        if matches!(&ended, Err(Error::Fault { report, .. }) if report.arena_lost) {
            // The plugin may still be on a stack.
            std::mem::forget(plugin);
        }
        let early: Option<Failure> =
            ended_early.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (early, ended.map_err(Failure::from)) {
            (Some(early), Err(failure)) => {
                let message = format!("{}\n{}", early.message, failure.message);
                Err(Failure { message, ..early })
            }
            (None, Err(failure)) if is_of_build(&failure) => {
                Err(Failure { message: format!("{called}: {failure}"), ..failure })
            }
            (_, result) => result,
        }
    }

    /// Copies back what was recorded, and frees what was allocated and not freed; a second call does nothing.
    ///
    /// # Errors
    /// The first copy or release that failed; the others are done all the same.
    ///
    /// # Safety
    /// The host buffers that the orchestration has recorded are still there.
    pub unsafe fn finalize(&mut self) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the buffers.
        unsafe { self.state.inner().finalize(&self.state.device) }
    }

    /// Another build mode than the options of [`FieldRuntime::new`] or the orchestration say.
    pub fn set_build_mode(&mut self, mode: BuildMode) {
        self.object.get_mut().build_mode = c_int::try_from(mode.get()).unwrap_or(c_int::MAX);
    }

    fn build_mode(&self) -> Result<BuildMode, Failure> {
        // SAFETY: no foreign code runs now, and there is no other reference to the object.
        let mode = unsafe {
            object::field::<c_int>(self.object.get(), offset_of!(RuntimeObject, build_mode))
        };
        let known = u32::try_from(mode).ok().and_then(|mode| BuildMode::try_from(mode).ok());
        known.ok_or_else(|| {
            let message = format!("Runtime::build_mode is {mode}, and must be 0 or 1");
            Failure::new(FailureKind::INVALID_ARGUMENT, message)
        })
    }

    fn words(&self) -> Result<Vec<u64>, Failure> {
        // SAFETY: as in `build_mode`.
        let count = unsafe {
            object::field::<c_int>(self.object.get(), offset_of!(RuntimeObject, orch_argc))
        };
        // SAFETY: as above.
        let words = unsafe {
            object::field::<[u64; MAX_ORCH_ARGS]>(
                self.object.get(),
                offset_of!(RuntimeObject, orch_args),
            )
        };
        let used = usize::try_from(count).ok().and_then(|count| words.get(..count));
        let alias = self.state.alias();
        let device = |words: &[u64]| words.iter().map(|word| alias.device(*word)).collect();
        used.map(device).ok_or_else(|| {
            let message =
                format!("Runtime::orch_argc is {count}, and must be 0 to {MAX_ORCH_ARGS}");
            Failure::new(FailureKind::INVALID_ARGUMENT, message)
        })
    }

    fn plugin_function(&self) -> Result<String, Failure> {
        // SAFETY: as in `build_mode`.
        let name = unsafe {
            object::field::<[c_char; NAME_BYTES]>(
                self.object.get(),
                offset_of!(RuntimeObject, aicpu_orch_func_name),
            )
        };
        let bytes = name.map(c_char::cast_unsigned);
        let text = CStr::from_bytes_until_nul(&bytes).ok().and_then(|name| name.to_str().ok());
        text.map(str::to_owned).ok_or_else(|| {
            let message = "Runtime::aicpu_orch_func_name is no text that ends with a zero";
            Failure::new(FailureKind::INVALID_ARGUMENT, message)
        })
    }
}

/// What the builder program of a run needs.
struct Build {
    state: Arc<State>,
    entry: usize,
    runtime: usize,
    name: String,
    /// What the runtime does not say: a signal of the plugin, or a task that was refused.
    ended_early: Arc<Mutex<Option<Failure>>>,
}

impl Build {
    fn run(&self, graph: &mut dyn pto_host::graph::HostedBuilder) -> Result<(), BuildError> {
        let runtime: *mut RuntimeObject = std::ptr::with_exposed_provenance_mut(self.runtime);
        let entry: *mut c_void = std::ptr::with_exposed_provenance_mut(self.entry);
        // SAFETY: a builder plugin's function takes the runtime; what it does not take is passed in registers and not
        // looked at.
        let function = unsafe { std::mem::transmute::<*mut c_void, Foreign>(entry) };
        let call = Call { function, runtime: runtime.cast(), args: std::ptr::null_mut(), count: 0 };
        let words = graph.orch_args().to_vec();
        let record = |failure| {
            *self.ended_early.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        };
        let alias = self.state.alias();
        let built = current_build::with(runtime.cast_const().cast(), graph, alias, || {
            // SAFETY: the object lives as long as the run; the plugin's author vouches for the rest.
            unsafe { guard::call(call, &self.name) }.map_err(|signal| {
                let kind = FailureKind::BUILDER_SIGNAL;
                record(self.state.explain(&self.name, signal, &words, kind));
                BuildError::Failed(-1)
            })
        });
        if let Some(refused) = self.state.device.refused_call() {
            let message = format!("{}: {}", self.name, refused.message);
            record(Failure { message, ..refused });
        }
        built
    }
}

/// Whether a builder's calls, or its return, are the failure.
fn is_of_build(failure: &Failure) -> bool {
    failure.code >> 16 == Fault::BUILD_FAILED.code() >> 16
}

impl Drop for FieldRuntime {
    fn drop(&mut self) {
        // Recorded pairs are not copied back: an owner that drops the object without `finalize` may have freed the buffers.
        self.state.inner().pairs.clear();
        // SAFETY: no host buffer is recorded any more.
        let _: Result<(), Failure> = unsafe { self.finalize() };
    }
}

impl fmt::Debug for FieldRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldRuntime {} on {:?}", self.slot.number(), self.state.device)
    }
}

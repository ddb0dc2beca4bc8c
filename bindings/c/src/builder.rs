//! Builder programs in C: AICPU instance 0 calls them while the others schedule. Those with tensors: `stream.rs`.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use pto_host::abi::{Fault, GmAddr};
use pto_host::graph::{BuildError, HostedBuilder};
use pto_native::foreign::{Build, NewTask};
use pto_native::{Failure, FailureKind, ForeignFn, SharedDevice, Watched};

use crate::argument::{output, put, text, values};
use crate::device::OpaqueDevice;
use crate::error::answer;
use crate::handle;

/// The graph that a builder program builds; valid on its thread until it returns.
#[derive(Debug)]
pub struct OpaqueBuilder;

/// A builder program: 0, or an error of its own, which ends the run with BUILD_FAILED. The first call on `builder` that
/// fails is the fault of the run, whatever it returns.
pub type BuilderProgram =
    Option<unsafe extern "C" fn(builder: *mut OpaqueBuilder, user: *mut c_void) -> i32>;

/// The builder that is on the stack of this thread.
struct CurrentBuild<'g> {
    handle: usize,
    build: Build<'g>,
    /// The words of the run, as the program sees them.
    words: Vec<u64>,
    device: Weak<SharedDevice>,
}

thread_local! {
    static CURRENT_BUILD: Cell<*mut CurrentBuild<'static>> = const { Cell::new(std::ptr::null_mut()) };
}

/// Numbers of builders; odd, so that no other handle is like one.
static HANDLES: AtomicUsize = AtomicUsize::new(0x7071_0000_0000_0001);

/// A program that is registered.
struct RegisteredProgram {
    program: unsafe extern "C" fn(*mut OpaqueBuilder, *mut c_void) -> i32,
    user: usize,
    device: Weak<SharedDevice>,
    watched: Option<Watched>,
}

impl RegisteredProgram {
    fn build(&self, graph: &mut dyn HostedBuilder) -> Result<(), BuildError> {
        let alias = self.watched.as_ref().map(Watched::alias).unwrap_or_default();
        let given = graph.orch_args().to_vec();
        let words = given.iter().map(|word| alias.seen(*word)).collect();
        let handle = HANDLES.fetch_add(2, Ordering::Relaxed);
        let build = Build::new(graph).seeing(alias);
        let mut current = CurrentBuild { handle, build, words, device: Weak::clone(&self.device) };
        let before = CURRENT_BUILD.replace((&raw mut current).cast());
        let code = pto_native::building(|| self.call(handle, &given));
        CURRENT_BUILD.set(before);
        current.build.end(code)
    }

    /// What it returns; -1 where it does not, because it is watched and raised a signal.
    fn call(&self, handle: usize, words: &[u64]) -> i32 {
        let builder: *mut OpaqueBuilder = std::ptr::without_provenance_mut(handle);
        let user: *mut c_void = std::ptr::with_exposed_provenance_mut(self.user);
        let Some(watched) = &self.watched else {
            // SAFETY: the caller of `pto_register_builder` vouches for the program and for `user`.
            return unsafe { (self.program)(builder, user) };
        };
        // SAFETY: it takes two pointers, and what it does not take is passed in registers and not looked at.
        let function = unsafe {
            std::mem::transmute::<
                unsafe extern "C" fn(*mut OpaqueBuilder, *mut c_void) -> i32,
                ForeignFn,
            >(self.program)
        };
        // SAFETY: as for the call above.
        let returned = unsafe { watched.call(function, (builder.cast(), user.cast()), words) };
        returned.unwrap_or_else(|failure| {
            if let Some(device) = self.device.upgrade() {
                device.fail_builder(failure);
            }
            -1
        })
    }
}

/// The build of `builder`, if that is on the stack of this thread.
pub(crate) fn find<'s>(builder: *const OpaqueBuilder) -> Option<&'s mut Build<'static>> {
    current(builder).map(|current| &mut current.build)
}

fn current<'s>(builder: *const OpaqueBuilder) -> Option<&'s mut CurrentBuild<'static>> {
    // SAFETY: the pointer is null, or `build` is below on the stack of this thread, and its value lives; calls on one thread
    // follow one another, so that there is no other reference to it.
    unsafe { CURRENT_BUILD.get().as_mut() }.filter(|current| current.handle == builder.addr())
}

/// Calls `act` on the build of `builder`, unless an earlier call of it failed.
pub(crate) fn on<R>(
    builder: *const OpaqueBuilder,
    act: impl FnOnce(&mut Build<'_>) -> Result<R, Fault>,
) -> Result<R, Failure> {
    let outside = || {
        let message = "the builder is null, has returned, or is that of another thread";
        Failure::new(FailureKind::OUTSIDE_BUILDER, message)
    };
    let build = find(builder).ok_or_else(outside)?;
    let before = build.fault();
    // A signal within is one of this library, and not the program's.
    let called = pto_native::called_back(Err(Fault::BUILD_FAILED), || build.call(act));
    called.map_err(|fault| {
        let earlier = if before.is_some() { "an earlier call failed: " } else { "" };
        let failure = failure_of(builder, fault);
        Failure { message: format!("{earlier}{}", failure.message), ..failure }
    })
}

/// A fault of a call: a task that was refused says more than its fault.
fn failure_of(builder: *const OpaqueBuilder, fault: Fault) -> Failure {
    let device = current(builder).and_then(|current| current.device.upgrade());
    let refused = device.and_then(|device| device.refused_call());
    refused.unwrap_or_else(|| Failure::of_fault(fault, fault.to_string()))
}

/// The fault that the last call on `builder` has left.
pub(crate) fn first_fault(builder: *const OpaqueBuilder) -> Failure {
    let fault = find(builder).and_then(|build| build.fault()).unwrap_or(Fault::BUILD_FAILED);
    failure_of(builder, fault)
}

/// Gives a builder program to a device: runs name it. One of the same name before it is replaced. `user` is passed to
/// it as it is.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, BUILDER_NOT_FOR_DEVICE on qemu, whose builders are part of the image (`pto fw
/// build --builder`). Thread safety: any thread, also during a run, for the next run.
///
/// # Safety
/// `name` is null or a C string. `program` may be called on any thread until it is unregistered and no run uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_register_builder(
    device: *const OpaqueDevice,
    name: *const c_char,
    program: BuilderProgram,
    user: *mut c_void,
) -> i32 {
    answer(|| {
        let device = handle::get(device)?;
        // SAFETY: the caller vouches for the text.
        let name = unsafe { text(name, "name") }?;
        let null = || Failure::new(FailureKind::NULL_ARGUMENT, "`program` is null");
        let program = program.ok_or_else(null)?;
        device.takes_builders()?;
        let user = user.expose_provenance();
        let watched = Watched::from_environment(device.memory(), name)?;
        let registered =
            RegisteredProgram { program, user, device: Arc::downgrade(&device), watched };
        device.builders().insert(name, Arc::new(move |graph| registered.build(graph)));
        Ok(())
    })
}

/// Takes a builder program away.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT when the device has none of this name. Thread safety: any
/// thread, also during a run, which keeps it until its end.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_unregister_builder(
    device: *const OpaqueDevice,
    name: *const c_char,
) -> i32 {
    answer(|| {
        let device = handle::get(device)?;
        // SAFETY: the caller vouches for the text.
        let name = unsafe { text(name, "name") }?;
        let missing = || crate::argument::invalid(format!("there is no builder \"{name}\""));
        device.builders().remove(name).then_some(()).ok_or_else(missing)
    })
}

/// Gives the words that the run was started with; they are valid until the builder returns.
///
/// Fails with OUTSIDE_BUILDER, NULL_ARGUMENT. Thread safety: the builder's own thread.
///
/// # Safety
/// `words` and `count` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_words(
    builder: *const OpaqueBuilder,
    words: *mut *const u64,
    count: *mut u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let words = unsafe { output(words, "words") }?;
        // SAFETY: as above.
        let count = unsafe { output(count, "count") }?;
        on(builder, |_| Ok(()))?;
        // `on` has found the builder.
        let held = current(builder).map(|current| current.words.as_slice()).unwrap_or_default();
        put(words, held.as_ptr());
        put(count, u32::try_from(held.len()).unwrap_or(u32::MAX));
        Ok(())
    })
}

/// Adds a task, unpublished, as `pto_graph_add_task`.
///
/// Fails with OUTSIDE_BUILDER, NULL_ARGUMENT, KERNEL_CALL for a kernel of the library that does not take these words, or a fault of the build; the last two
/// end the run. Thread safety: the builder's own thread.
///
/// # Safety
/// `args` is null or readable for `num_args` words; `task` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_add_task(
    builder: *const OpaqueBuilder,
    func_id: i32,
    core_type: i32,
    args: *const u64,
    num_args: u32,
    task: *mut i32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let args = unsafe { values(args, num_args.into(), "args") }?;
        // SAFETY: as above.
        let number_out = unsafe { output(task, "task") }?;
        on(builder, |build| {
            let (func_id, core_type) = (func_id.into(), core_type.into());
            let task = NewTask { func_id, core_type, args, kernel: GmAddr::NULL };
            let number = build.add_task(&task)?;
            put(number_out, i32::try_from(number).map_err(|_| Fault::BUILD_TASKS_FULL)?);
            Ok(())
        })
    })
}

/// Makes task `consumer`, which is not published yet, wait for task `producer`, unless that has completed already.
///
/// Fails with OUTSIDE_BUILDER, or a fault of the build, which ends the run. Thread safety: the builder's own thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_builder_add_edge(
    builder: *const OpaqueBuilder,
    producer: i32,
    consumer: i32,
) -> i32 {
    answer(|| on(builder, |build| build.add_edge(producer.into(), consumer.into())))
}

/// Makes a task visible to the schedulers; every task must be published.
///
/// Fails with OUTSIDE_BUILDER, or a fault of the build, which ends the run. Thread safety: the builder's own thread.
#[unsafe(no_mangle)]
pub extern "C" fn pto_builder_publish(builder: *const OpaqueBuilder, task: i32) -> i32 {
    answer(|| on(builder, |build| build.publish(task.into())))
}

/// Reads a word of global memory, aligned to 4 bytes, such as an entry of a block table.
///
/// Fails with OUTSIDE_BUILDER, NULL_ARGUMENT, BUILD_GM_RANGE, which ends the run. Thread safety: the builder's own
/// thread.
///
/// # Safety
/// `word` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_builder_read_u32(
    builder: *const OpaqueBuilder,
    address: u64,
    word: *mut u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let word = unsafe { output(word, "word") }?;
        on(builder, |build| {
            put(word, build.read_u32(GmAddr(address))?);
            Ok(())
        })
    })
}

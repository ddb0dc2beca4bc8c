//! The functions that the methods of `class Runtime` call. Each marks that Rust runs, lets no panic through, and
//! remembers what failed.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use crate::foreign::calls as foreign;
use pto_host::abi::GmAddr;

use crate::foreign::object::{
    DeviceAlloc, RuntimeCalls, RuntimeObject, TaskView, TensorPair, field,
};
use crate::foreign::stream::StreamApi;

use super::current_build::{self, Plugin};
use super::state::{MutableState, State, address};
use crate::failure::{Failure, FailureKind};
use crate::guard::called_back;

/// The table that every object points to.
pub(super) static CALLS: RuntimeCalls = RuntimeCalls {
    add_task,
    add_successor,
    get_task,
    get_task_count,
    get_initial_ready_tasks,
    print_runtime,
    record_tensor_pair,
    get_tensor_pairs,
    get_tensor_pair_count,
    clear_tensor_pairs,
    record_device_alloc,
    get_device_allocs,
    get_device_alloc_count,
    clear_device_allocs,
    set_aicpu_orch_so,
    get_aicpu_orch_so_data,
    get_aicpu_orch_so_size,
};

/// The streaming interface of plugins, with a [`read`] that orchestrations have too.
pub(super) static STREAM_API: StreamApi = StreamApi::of::<Plugin>().reading(read);

/// Acts on the state of `runtime`; `failed` where there is none, or Rust panics.
///
/// # Safety
/// `runtime` is null, or a `Runtime` object that lives.
unsafe fn on<R: Copy>(
    runtime: *const c_void,
    failed: R,
    act: impl FnOnce(&mut MutableState) -> R,
) -> R {
    called_back(failed, || {
        // SAFETY: as the caller says.
        match unsafe { state_of(runtime) } {
            Some(state) => act(&mut state.inner()),
            None => failed,
        }
    })
}

/// The state of `runtime`.
///
/// # Safety
/// As [`on`].
unsafe fn state_of<'s>(runtime: *const c_void) -> Option<&'s State> {
    if runtime.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller says that it lives.
    let state = unsafe { field::<*const c_void>(runtime.cast(), offset_of!(RuntimeObject, state)) };
    // SAFETY: the object's owner keeps the state alive for longer.
    unsafe { state.cast::<State>().as_ref() }
}

/// # Safety
/// As the methods of the class: the object lives, and the pointers hold what they say.
unsafe extern "C" fn add_task(
    runtime: *mut c_void,
    args: *const u64,
    num_args: c_int,
    func_id: c_int,
    core_type: c_int,
) -> c_int {
    if current_build::is_building(runtime) {
        // SAFETY: the caller vouches for the pointers.
        return unsafe {
            foreign::add_task::<Plugin>(runtime, args, num_args, func_id, core_type, 0)
        };
    }
    // SAFETY: as above.
    let words = unsafe { foreign::words(args, num_args) };
    let words = words.map_err(|fault| {
        Failure::of_fault(fault, format!("add_task: {num_args} arguments at {args:?}"))
    });
    let add = |inner: &mut MutableState| {
        let added = words.and_then(|args| inner.add_task(args, func_id, core_type));
        added.unwrap_or_else(|failure| {
            inner.fail(failure);
            -1
        })
    };
    // SAFETY: as above.
    unsafe { on(runtime, -1, add) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn add_successor(runtime: *mut c_void, from: c_int, to: c_int) {
    if current_build::is_building(runtime) {
        // SAFETY: the caller vouches for the object.
        return unsafe { foreign::add_successor::<Plugin>(runtime, from, to) };
    }
    // SAFETY: as above.
    unsafe {
        on(runtime, (), |inner| {
            if let Err(failure) = inner.add_edge(from, to) {
                inner.fail(failure);
            }
        });
    }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_task(runtime: *mut c_void, task: c_int) -> *mut TaskView {
    if current_build::is_building(runtime) {
        return std::ptr::null_mut();
    }
    let none = std::ptr::null_mut();
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, none, |inner| inner.view(task).unwrap_or(none)) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_task_count(runtime: *const c_void) -> c_int {
    if let Some(count) = current_build::task_count(runtime) {
        return count;
    }
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, 0, |inner| count_of(inner.draft.graph().task_count())) }
}

fn count_of(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// # Safety
/// As `add_task`; `ready` is null, or has room for RUNTIME_MAX_TASKS ids.
unsafe extern "C" fn get_initial_ready_tasks(runtime: *mut c_void, ready: *mut c_int) -> c_int {
    let list = |inner: &mut MutableState| {
        for (index, task) in inner.ready().enumerate().filter(|_| !ready.is_null()) {
            // SAFETY: the caller vouches for the room; a Runtime has RUNTIME_MAX_TASKS tasks at most.
            unsafe { ready.wrapping_add(index).write(task) };
        }
        count_of(inner.ready().count())
    };
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, 0, list) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn print_runtime(runtime: *const c_void) {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, (), |inner| print!("{}", inner.describe())) }
}

/// # Safety
/// As `add_task`; the host buffer is there until the runtime is finalised.
unsafe extern "C" fn record_tensor_pair(
    runtime: *mut c_void,
    host_ptr: *mut c_void,
    dev_ptr: *mut c_void,
    size: usize,
) {
    // SAFETY: the caller vouches for the object.
    unsafe {
        on(runtime, (), |inner| {
            if host_ptr.is_null() || dev_ptr.is_null() || size == 0 {
                let message = format!(
                    "record_tensor_pair: host {host_ptr:?}, device {dev_ptr:?}, {size} bytes"
                );
                inner.fail(Failure::new(FailureKind::INVALID_ARGUMENT, message));
                return;
            }
            inner.pairs.push(TensorPair { host_ptr, dev_ptr, size });
        });
    }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_tensor_pairs(runtime: *mut c_void) -> *mut TensorPair {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, std::ptr::null_mut(), |inner| inner.pairs.as_mut_ptr()) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_tensor_pair_count(runtime: *const c_void) -> c_int {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, 0, |inner| count_of(inner.pairs.len())) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn clear_tensor_pairs(runtime: *mut c_void) {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, (), |inner| inner.pairs.clear()) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn record_device_alloc(runtime: *mut c_void, dev_ptr: *mut c_void) {
    // SAFETY: the caller vouches for the object.
    unsafe {
        on(runtime, (), |inner| {
            if address(dev_ptr).is_null() {
                let message = "record_device_alloc: the pointer is null";
                inner.fail(Failure::new(FailureKind::INVALID_ARGUMENT, message));
                return;
            }
            inner.allocs.push(DeviceAlloc { dev_ptr });
        });
    }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_device_allocs(runtime: *mut c_void) -> *mut DeviceAlloc {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, std::ptr::null_mut(), |inner| inner.allocs.as_mut_ptr()) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_device_alloc_count(runtime: *const c_void) -> c_int {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, 0, |inner| count_of(inner.allocs.len())) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn clear_device_allocs(runtime: *mut c_void) {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, (), |inner| inner.allocs.clear()) }
}

/// `pto_stream_api.read`: of the build, or where none is on, a copy from the device.
///
/// # Safety
/// As `add_task`; `to` is null, or writable for `bytes` bytes.
unsafe extern "C" fn read(runtime: *mut c_void, from: u64, to: *mut c_void, bytes: u64) -> c_int {
    if current_build::is_building(runtime) {
        // SAFETY: the caller vouches for the pointers.
        return unsafe { foreign::read::<Plugin>(runtime, from, to, bytes) };
    }
    let copy = |state: &State| {
        let failed =
            |fault| Failure::of_fault(fault, format!("a read of {bytes} bytes at {from:#x}"));
        // SAFETY: as above.
        let to = unsafe { foreign::target(to, bytes) }.map_err(failed)?;
        let mut held = vec![0; to.len()];
        let from = GmAddr(state.alias().device(from));
        state.device.memory().copy_from_device(from, &mut held)?;
        to.iter_mut().zip(held).for_each(|(to, byte)| _ = to.write(byte));
        Ok(())
    };
    called_back(-1, || {
        // SAFETY: the caller vouches for the object.
        let Some(state) = (unsafe { state_of(runtime) }) else { return -1 };
        let copied: Result<(), Failure> = copy(state);
        copied.map_or_else(
            |failure| {
                state.inner().fail(failure);
                -1
            },
            |()| 0,
        )
    })
}

/// # Safety
/// As `add_task`; `data` is null, or has `size` bytes.
unsafe extern "C" fn set_aicpu_orch_so(
    runtime: *mut c_void,
    data: *const c_void,
    size: usize,
) -> c_int {
    let bytes = if data.is_null() || isize::try_from(size).is_err() {
        &[]
    } else {
        // SAFETY: not null; the caller vouches for the bytes.
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }
    };
    let set = |inner: &mut MutableState| match inner.set_plugin(bytes) {
        Ok(()) => 0,
        Err(failure) => {
            inner.fail(failure);
            -1
        }
    };
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, -1, set) }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_aicpu_orch_so_data(runtime: *const c_void) -> *const c_void {
    let none = std::ptr::null();
    // SAFETY: the caller vouches for the object.
    unsafe {
        on(runtime, none, |inner| match inner.plugin.as_slice() {
            [] => none,
            bytes => bytes.as_ptr().cast(),
        })
    }
}

/// # Safety
/// As `add_task`.
unsafe extern "C" fn get_aicpu_orch_so_size(runtime: *const c_void) -> usize {
    // SAFETY: the caller vouches for the object.
    unsafe { on(runtime, 0, |inner| inner.plugin.len()) }
}

//! The functions that builder programs call to add, connect and publish tasks.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

use pto_abi::limits::MAX_ARGS;
use pto_abi::{Fault, GmAddr};

use crate::foreign::build::{Finder, NewTask, done};

/// What a call returns when it fails.
pub const FAILED: c_int = -1;

/// The words of a task, if they can be.
///
/// # Errors
/// `BUILD_TOO_MANY_ARGS`: the count is negative or above the limit; `BUILD_NULL_POINTER`.
///
/// # Safety
/// `args` is null, or has `count` words.
pub unsafe fn words<'a>(args: *const u64, count: c_int) -> Result<&'a [u64], Fault> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        Ok(count) if count > MAX_ARGS => Err(Fault::BUILD_TOO_MANY_ARGS),
        Ok(_) if args.is_null() || !args.is_aligned() => Err(Fault::BUILD_NULL_POINTER),
        // SAFETY: the caller says that there are as many words.
        Ok(count) => Ok(unsafe { core::slice::from_raw_parts(args, count) }),
        Err(_) => Err(Fault::BUILD_TOO_MANY_ARGS),
    }
}

/// `aicpu_build_api.add_task`: the task's number, or -1.
///
/// # Safety
/// `args` is null, or has `num_args` words.
pub unsafe extern "C" fn add_task<F: Finder>(
    runtime: *mut c_void,
    args: *const u64,
    num_args: c_int,
    func_id: c_int,
    core_type: c_int,
    function_bin_addr: u64,
) -> c_int {
    let kernel = GmAddr(function_bin_addr);
    F::find(runtime, FAILED, |build| {
        let added = build.call(|build| {
            // SAFETY: as the caller says.
            let args = unsafe { words(args, num_args) }?;
            let task =
                NewTask { func_id: func_id.into(), core_type: core_type.into(), args, kernel };
            let number = build.add_task(&task)?;
            c_int::try_from(number).map_err(|_| Fault::BUILD_TASKS_FULL)
        });
        added.unwrap_or(FAILED)
    })
}

/// `aicpu_runtime_add_successor_conditional`: 0, or -1.
///
/// # Safety
/// None needed: the runtime is compared, not followed.
pub unsafe extern "C" fn add_edge<F: Finder>(
    runtime: *mut c_void,
    from: c_int,
    to: c_int,
) -> c_int {
    F::find(runtime, FAILED, |build| {
        build.call(|build| build.add_edge(from.into(), to.into())).map_or(FAILED, |()| 0)
    })
}

/// `aicpu_runtime_publish_task`: 0, or -1.
///
/// # Safety
/// None needed: the runtime is compared, not followed.
pub unsafe extern "C" fn publish<F: Finder>(runtime: *mut c_void, task: c_int) -> c_int {
    F::find(runtime, FAILED, |build| {
        build.call(|build| build.publish(task.into())).map_or(FAILED, |()| 0)
    })
}

/// `pto_stream_api.read`: 0, or -1.
///
/// # Safety
/// `to` is null, or writable for `bytes` bytes.
pub unsafe extern "C" fn read<F: Finder>(
    runtime: *mut c_void,
    address: u64,
    to: *mut c_void,
    bytes: u64,
) -> c_int {
    done::<F>(runtime, |build| {
        // SAFETY: as the caller says.
        let to = unsafe { target(to, bytes) }?;
        build.read(GmAddr(address), to)
    })
}

/// Where bytes go that foreign code asks for.
///
/// # Errors
/// `BUILD_NULL_POINTER`; `BUILD_GM_RANGE` where no memory has so many bytes.
///
/// # Safety
/// `to` is null, or writable for `bytes` bytes.
pub unsafe fn target<'a>(to: *mut c_void, bytes: u64) -> Result<&'a mut [MaybeUninit<u8>], Fault> {
    if bytes == 0 {
        return Ok(&mut []);
    }
    let count = usize::try_from(bytes).ok().filter(|count| isize::try_from(*count).is_ok());
    let count = count.ok_or(Fault::BUILD_GM_RANGE)?;
    if to.is_null() {
        return Err(Fault::BUILD_NULL_POINTER);
    }
    // SAFETY: not null, and the caller says that there are as many bytes.
    Ok(unsafe { core::slice::from_raw_parts_mut(to.cast(), count) })
}

/// `aicpu_build_api.add_successor_conditional`.
///
/// # Safety
/// None needed: the runtime is compared, not followed.
pub unsafe extern "C" fn add_successor<F: Finder>(runtime: *mut c_void, from: c_int, to: c_int) {
    // SAFETY: none needed.
    unsafe { add_edge::<F>(runtime, from, to) };
}

/// `aicpu_build_api.publish_task`.
///
/// # Safety
/// None needed: the runtime is compared, not followed.
pub unsafe extern "C" fn publish_task<F: Finder>(runtime: *mut c_void, task: c_int) {
    // SAFETY: none needed.
    unsafe { publish::<F>(runtime, task) };
}

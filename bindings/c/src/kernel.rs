//! Functions that register kernels under func ids.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;

use pto_host::Kernel;
use pto_host::abi::FuncId;
use pto_native::kernels::{self, KERNEL_SYMBOL, KernelSource};
use pto_native::{Failure, FailureKind, checked};

use crate::argument::{optional_text, text, values};
use crate::device::OpaqueDevice;
use crate::error::answer;
use crate::handle;

/// A kernel: `args` are the words of its task.
pub type KernelFunction = Option<unsafe extern "C" fn(args: *mut i64)>;

fn register(device: *const OpaqueDevice, func_id: FuncId, kernel: Kernel) -> Result<(), Failure> {
    let device = handle::get(device)?;
    Ok(device.with(|device| device.register_kernel(func_id, kernel))??)
}

/// Registers a function of this process. `name` is what reports call it.
///
/// Fails with INVALID_HANDLE, NULL_ARGUMENT, BUILD_UNKNOWN_FUNC, BUILD_UNKNOWN_KIND, DUPLICATE_FUNC_ID,
/// KERNEL_NOT_FOR_DEVICE (qemu), BUSY. Thread safety: any thread; waits for a run to end.
///
/// # Safety
/// `name` is null or a C string. `entry` stays loaded as long as the process lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_register_kernel_function(
    device: *const OpaqueDevice,
    func_id: i32,
    core_type: i32,
    name: *const c_char,
    entry: KernelFunction,
) -> i32 {
    answer(|| {
        let (func_id, kind) = checked(func_id.into(), core_type.into())?;
        // SAFETY: the caller vouches for the text.
        let name = unsafe { text(name, "name") }?;
        let entry = entry.and_then(|entry| NonNull::new(entry as *mut c_void));
        let null = || Failure::new(FailureKind::NULL_ARGUMENT, "`entry` is null");
        let source = KernelSource { name, symbol: KERNEL_SYMBOL, kind };
        // SAFETY: the caller vouches for the function.
        let kernel = unsafe { kernels::from_pointer(entry.ok_or_else(null)?, source) };
        register(device, func_id, kernel)
    })
}

/// Registers the function `symbol` (null: "kernel_entry") of a shared or relocatable object, given as bytes. The text
/// of a relocatable object is loaded into executable memory. Code is loaded once for its content, and stays loaded.
///
/// Fails with those of `pto_register_kernel_function`, and LOAD_FAILED, SYMBOL_MISSING, OBJECT_FORMAT,
/// OBJECT_RELOCATION, EXECUTABLE_MEMORY. Thread safety: any thread; waits for a run to end.
///
/// # Safety
/// `name` and `symbol` are null or C strings; `object` is null or readable for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_register_kernel_object(
    device: *const OpaqueDevice,
    func_id: i32,
    core_type: i32,
    name: *const c_char,
    object: *const c_void,
    bytes: u64,
    symbol: *const c_char,
) -> i32 {
    answer(|| {
        let (func_id, kind) = checked(func_id.into(), core_type.into())?;
        // SAFETY: the caller vouches for texts and bytes, here and below.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: as above.
        let symbol = unsafe { optional_text(symbol, "symbol") }?.unwrap_or(KERNEL_SYMBOL);
        // SAFETY: as above.
        let object = unsafe { values(object.cast::<u8>(), bytes, "object") }?;
        let kernel = kernels::from_bytes(object, KernelSource { name, symbol, kind })?;
        register(device, func_id, kernel)
    })
}

/// As `pto_register_kernel_object`, from a file.
///
/// Fails with those of `pto_register_kernel_object`; LOAD_FAILED also when the file cannot be read. Thread safety: any
/// thread; waits for a run to end.
///
/// # Safety
/// `name`, `path` and `symbol` are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_register_kernel_file(
    device: *const OpaqueDevice,
    func_id: i32,
    core_type: i32,
    name: *const c_char,
    path: *const c_char,
    symbol: *const c_char,
) -> i32 {
    answer(|| {
        let (func_id, kind) = checked(func_id.into(), core_type.into())?;
        // SAFETY: the caller vouches for the texts, here and below.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: as above.
        let path = unsafe { text(path, "path") }?;
        // SAFETY: as above.
        let symbol = unsafe { optional_text(symbol, "symbol") }?.unwrap_or(KERNEL_SYMBOL);
        let kernel = kernels::from_file(Path::new(path), KernelSource { name, symbol, kind })?;
        register(device, func_id, kernel)
    })
}

/// Registers every kernel of the library under its own func id (`pto info kernels`); all of them or none.
///
/// Fails with INVALID_HANDLE, DUPLICATE_FUNC_ID, BUSY. Thread safety: any thread; waits for a run to end.
#[unsafe(no_mangle)]
pub extern "C" fn pto_register_library(device: *const OpaqueDevice) -> i32 {
    answer(|| Ok(handle::get(device)?.with(|device| device.register_library())??))
}

/// Registers the library kernel `kernel` under a func id of the caller's choice.
///
/// Fails with INVALID_HANDLE, UNKNOWN_KERNEL, BUILD_UNKNOWN_FUNC, DUPLICATE_FUNC_ID, BUSY. Thread safety: any thread;
/// waits for a run to end.
///
/// # Safety
/// `kernel` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_register_library_kernel(
    device: *const OpaqueDevice,
    func_id: i32,
    kernel: *const c_char,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the text.
        let kernel = Kernel::library(unsafe { text(kernel, "kernel") }?)?;
        let (func_id, _) = checked(func_id.into(), 0)?;
        register(device, func_id, kernel)
    })
}

/// Takes the kernel of a func id away.
///
/// Fails with INVALID_HANDLE, BUILD_UNKNOWN_FUNC, FUNC_ID_NOT_REGISTERED, BUSY. Thread safety: any thread; waits for a
/// run to end.
#[unsafe(no_mangle)]
pub extern "C" fn pto_unregister_kernel(device: *const OpaqueDevice, func_id: i32) -> i32 {
    answer(|| {
        let (func_id, _) = checked(func_id.into(), 0)?;
        Ok(handle::get(device)?.with(|device| device.unregister_kernel(func_id))??)
    })
}

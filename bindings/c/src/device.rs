//! Functions that open, describe and close devices.

use std::ffi::c_char;
use std::num::NonZeroUsize;

use pto_host::abi::CoreKind;
use pto_host::{Device, Hosting, QemuDeviceOptions};
use pto_native::{Failure, HostedBuilders, SharedDevice};

use crate::argument::{input, invalid, output, put, text};
use crate::error::{answer, answer_to};
use crate::handle;

/// A device. Opened by `pto_device_open`, closed by `pto_device_close`.
#[derive(Debug)]
pub struct OpaqueDevice;

/// What a device is opened with; `pto_device_options_init` fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// sizeof(pto_device_options).
    pub size: u32,
    /// Cube cores.
    pub aic: u32,
    /// Vector cores.
    pub aiv: u32,
    /// How a2a3sim is hosted: 0 a pool of OS threads, 1 one OS thread for each core and AICPU instance.
    pub hosting: u32,
    /// OS threads of the pool; 0: one for each CPU.
    pub os_threads: u32,
    /// AICPU instances of qemu.
    pub aicpu: u32,
    /// Bytes of global memory; they are used as they are touched.
    pub gm_bytes: u64,
}

/// What a device is and holds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceDescription {
    /// Cube cores.
    pub aic: u32,
    /// Vector cores.
    pub aiv: u32,
    /// Bytes of global memory.
    pub gm_bytes: u64,
    /// Bytes of it that are free.
    pub gm_free_bytes: u64,
    /// Kernels that are registered.
    pub kernels: u32,
    /// Builder programs that it knows.
    pub builders: u32,
    /// Its name, with a zero at its end.
    pub name: [c_char; 16],
}

/// Fills in the options of a full a2a3 die with 4 GiB.
///
/// Fails when `options` is null. Thread safety: any thread.
///
/// # Safety
/// `options` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_device_options_init(options: *mut DeviceOptions) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointer.
        let options = unsafe { output(options, "options") }?;
        let defaults = pto_host::DeviceOptions::default();
        let value = DeviceOptions {
            size: u32::try_from(size_of::<DeviceOptions>()).unwrap_or(0),
            aic: defaults.aic,
            aiv: defaults.aiv,
            hosting: 0,
            os_threads: 0,
            aicpu: QemuDeviceOptions::default().aicpu,
            gm_bytes: defaults.gm_bytes,
        };
        put(options, value);
        Ok(())
    })
}

/// Opens a device: "a2a3sim", the simulator in this process, or "qemu", the image that is flashed to it on an emulated
/// machine (with `options` null: 4 AIC, 8 AIV, 1 GiB). `options` null: the defaults.
///
/// Fails with WORKERS, MAP_GM, INVALID_ARGUMENT for an unknown name or option; for qemu also with IMAGE, STORE, QEMU.
/// Thread safety: any thread. Devices do not disturb each other.
///
/// # Safety
/// `name` is null or a C string; `options` is null or valid; `device` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_device_open(
    name: *const c_char,
    options: *const DeviceOptions,
    device: *mut *mut OpaqueDevice,
) -> i32 {
    let body = || {
        // SAFETY: the caller vouches for the pointers, here and below.
        let name = unsafe { text(name, "name") }?;
        let options = if options.is_null() {
            None
        } else {
            // SAFETY: as above.
            Some(checked(unsafe { input(options, "options") }?)?)
        };
        let opened = match name {
            "a2a3sim" => SharedDevice::open_sim(simulator(options)?)?,
            // Its earlier name was `virt`.
            "qemu" | "virt" => SharedDevice::over(open_qemu(options)?, HostedBuilders::default()),
            _ => {
                let message = format!("there is no device \"{name}\"; there are a2a3sim and qemu");
                return Err(invalid(message));
            }
        };
        Ok(handle::open(opened))
    };
    // SAFETY: the caller vouches for the pointer.
    unsafe { answer_to(device, "device", body) }
}

fn checked(options: &DeviceOptions) -> Result<&DeviceOptions, Failure> {
    let size = size_of::<DeviceOptions>();
    if options.size as usize != size {
        return Err(invalid(format!(
            "pto_device_options.size is {}, and this library has {size}: call pto_device_options_init",
            options.size
        )));
    }
    Ok(options)
}

fn simulator(options: Option<&DeviceOptions>) -> Result<pto_host::DeviceOptions, Failure> {
    let defaults = pto_host::DeviceOptions::default();
    let Some(options) = options else { return Ok(defaults) };
    let threads = NonZeroUsize::new(options.os_threads as usize);
    let os_threads = threads.unwrap_or_else(pto_host::default_pool_threads);
    let hosting = match options.hosting {
        0 => Hosting::Pool { os_threads },
        1 => Hosting::Threads,
        other => {
            return Err(invalid(format!(
                "hosting is {other}, and must be 0 (pool) or 1 (threads)"
            )));
        }
    };
    let DeviceOptions { aic, aiv, gm_bytes, .. } = *options;
    Ok(pto_host::DeviceOptions { aic, aiv, gm_bytes, hosting })
}

fn open_qemu(options: Option<&DeviceOptions>) -> Result<Device, Failure> {
    let defaults = QemuDeviceOptions::default();
    let options = match options {
        None => defaults,
        Some(options) => {
            let DeviceOptions { aicpu, aic, aiv, gm_bytes, .. } = *options;
            QemuDeviceOptions { aicpu, aic, aiv, gm_bytes, ..defaults }
        }
    };
    pto_native::open_qemu(&options)
}

/// Closes a device. Memory that is still allocated on it goes with it, when the calls that use it have returned.
///
/// Fails with INVALID_HANDLE. Thread safety: any thread; a run of another thread ends first.
#[unsafe(no_mangle)]
pub extern "C" fn pto_device_close(device: *mut OpaqueDevice) -> i32 {
    answer(|| handle::close(device))
}

/// Says what a device is and holds.
///
/// Fails with INVALID_HANDLE, BUSY (from a builder of its run). Thread safety: any thread; waits for a run to end.
///
/// # Safety
/// `description` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_device_describe(
    device: *const OpaqueDevice,
    description: *mut DeviceDescription,
) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        answer_to(description, "description", || {
            let device = handle::get(device)?;
            let held = device.describe()?;
            let mut name = [0; 16];
            // The last byte stays zero.
            for (to, from) in name.iter_mut().take(15).zip(held.name.bytes()) {
                *to = c_char::try_from(from).unwrap_or(0);
            }
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let value = DeviceDescription {
                aic: held.cores[CoreKind::AIC.index()],
                aiv: held.cores[CoreKind::AIV.index()],
                gm_bytes: held.gm_bytes,
                gm_free_bytes: held.gm_free_bytes,
                kernels: count(held.kernels.len()),
                builders: count(held.builders.len()),
                name,
            };
            Ok(value)
        })
    }
}

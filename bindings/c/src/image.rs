//! Functions that flash, list and roll back the images of devices.

use std::ffi::c_char;
use std::path::Path;

use pto_host::fw::{Entry, FlashDevice, Image, Store};
use pto_native::Failure;

use crate::argument::{invalid, output, put, put_if_wanted, text, values};
use crate::error::answer;

/// One generation of a device's images. Texts end with a zero; an image that is not there has an empty name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FlashedImage {
    /// Counts the generations; the first is 1.
    pub generation: u32,
    /// 1: the next run uses it.
    pub is_current: u32,
    /// When it was flashed, in seconds since 1970.
    pub flashed_at_s: u64,
    /// File name of the firmware.
    pub firmware: [c_char; 64],
    /// SHA-256 of the firmware.
    pub firmware_sha256: [c_char; 72],
    /// File name of the kernels.
    pub kernels: [c_char; 64],
    /// SHA-256 of the kernels.
    pub kernels_sha256: [c_char; 72],
}

fn device_of(name: &str) -> Result<FlashDevice, Failure> {
    FlashDevice::by_name(name).ok_or_else(|| {
        let names: Vec<_> = FlashDevice::ALL.iter().map(|device| device.name()).collect();
        invalid(format!("nothing is flashed to \"{name}\"; there are {}", names.join(", ")))
    })
}

fn fixed<const N: usize>(text: &str) -> [c_char; N] {
    let mut to = [0; N];
    // The last byte stays zero.
    for (to, from) in to.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    to
}

/// Verifies images and makes them the ones of a device ("qemu", "a2a3"), all together: a firmware, a blob of kernels, or
/// both. What is not given stays; interrupted, it leaves what was there. `generation` may be null.
///
/// Fails with INVALID_ARGUMENT, NULL_ARGUMENT, IMAGE, STORE. Thread safety: any thread, and any process: one flashes at
/// a time.
///
/// # Safety
/// `device` is null or a C string; `paths` is null or has `count` C strings; `generation` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_flash(
    device: *const c_char,
    paths: *const *const c_char,
    count: u32,
    generation: *mut u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let device = device_of(unsafe { text(device, "device") }?)?;
        // SAFETY: as above.
        let paths = unsafe { values(paths, count.into(), "paths") }?;
        let mut images = Vec::with_capacity(paths.len());
        for path in paths {
            // SAFETY: as above.
            let path = unsafe { text(*path, "paths[..]") }?;
            images.push(Image::read(Path::new(path))?);
        }
        let images: Vec<_> = images.iter().collect();
        let made = Store::open()?.flash(device, &images)?;
        // SAFETY: as above.
        unsafe { put_if_wanted(generation, "generation", made.number) }
    })
}

/// Lists the generations of a device, oldest first: at most `capacity` of them in `list`, and how many there are in
/// `count`.
///
/// Fails with INVALID_ARGUMENT, NULL_ARGUMENT, STORE. Thread safety: any thread.
///
/// # Safety
/// `device` is null or a C string; `list` is null or writable for `capacity` entries; `count` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_flashed(
    device: *const c_char,
    list: *mut FlashedImage,
    capacity: u32,
    count: *mut u32,
) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let device = device_of(unsafe { text(device, "device") }?)?;
        // SAFETY: as above.
        let count = unsafe { output(count, "count") }?;
        let state = Store::open()?.state(device)?;
        let (current, generations) =
            state.map_or((0, Vec::new()), |state| (state.current, state.generations));
        let name =
            |entry: &Option<Entry>| entry.clone().map(|entry| entry.name).unwrap_or_default();
        let hash =
            |entry: &Option<Entry>| entry.clone().map(|entry| entry.sha256).unwrap_or_default();
        for (index, held) in generations.iter().take(capacity as usize).enumerate() {
            let value = FlashedImage {
                generation: held.number,
                is_current: u32::from(held.number == current),
                flashed_at_s: held.flashed_at_s,
                firmware: fixed(&name(&held.firmware)),
                firmware_sha256: fixed(&hash(&held.firmware)),
                kernels: fixed(&name(&held.kernels)),
                kernels_sha256: fixed(&hash(&held.kernels)),
            };
            // SAFETY: as above.
            put(unsafe { output(list.wrapping_add(index), "list") }?, value);
        }
        put(count, u32::try_from(generations.len()).unwrap_or(u32::MAX));
        Ok(())
    })
}

/// Makes the generation before the current one current again; its number is in `generation`, which may be null.
///
/// Fails with INVALID_ARGUMENT, STORE, IMAGE. Thread safety: any thread, and any process: one at a time.
///
/// # Safety
/// `device` is null or a C string; `generation` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_rollback(device: *const c_char, generation: *mut u32) -> i32 {
    answer(|| {
        // SAFETY: the caller vouches for the pointers, here and below.
        let device = device_of(unsafe { text(device, "device") }?)?;
        let now = Store::open()?.rollback(device)?;
        // SAFETY: as above.
        unsafe { put_if_wanted(generation, "generation", now.number) }
    })
}

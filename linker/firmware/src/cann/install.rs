//! The bootstrap: the image writes itself to the folder where the driver stack looks for libraries with kernels.
//!
//! The driver stack loads the image from the device arguments in GM (`pto_abi::bootstrap`) and calls its initialisation. The
//! image writes the firmware that the device arguments name, which is the same file, under another name, and renames it: a process that
//! opens the name finds a whole file. Nothing here allocates, and nothing can panic.

use core::ffi::{CStr, c_char};

use heapless::Vec;
use pto_abi::bootstrap::{
    BAD_DEVICE_ARGS, DEVICE_ARGS_BYTES, DEVICE_ARGS_DEVICE, DEVICE_ARGS_FIRMWARE, DEVICE_ARGS_TAG,
    FOLDER, FOLDER_VARIABLE, LONG_FOLDER, NO_FILE, NOT_NAMED, NOT_WRITTEN, file_name,
};

use crate::cann::barrier;

const PATH_BYTES: usize = 256;
const MODE: libc::mode_t = 0o755;

/// A path, with its end.
type Path = Vec<u8, PATH_BYTES>;

/// What the device arguments ask for.
struct InstallRequest {
    device: u16,
    firmware: usize,
    bytes: usize,
    tag: u64,
}

/// Writes the firmware of the device arguments at `device_args`: 0, or a code of `pto_abi::bootstrap`.
///
/// # Safety
/// Device arguments are mapped there, and the firmware where they say.
pub(crate) unsafe fn install(device_args: usize) -> i32 {
    // SAFETY: by this function's contract.
    let Some(request) = (unsafe { read(device_args) }) else { return BAD_DEVICE_ARGS };
    let Some((path, temporary)) = paths(&request) else { return LONG_FOLDER };
    let firmware = core::ptr::with_exposed_provenance::<u8>(request.firmware);
    // SAFETY: mapped, by this function's contract. The host's DMA wrote it to memory, past the caches.
    unsafe { barrier::clean_and_invalidate(firmware, request.bytes) };
    // SAFETY: the paths have their ends, and the firmware is mapped.
    let written = unsafe { write(&temporary, firmware, request.bytes) };
    // SAFETY: both paths have their ends.
    match written.and_then(|()| unsafe { rename(&temporary, &path) }) {
        Ok(()) => 0,
        Err(code) => {
            // SAFETY: the path has its end. A file that is left over has a name that is not looked for.
            unsafe { libc::unlink(temporary.as_ptr().cast::<c_char>()) };
            code
        }
    }
}

/// # Safety
/// Device arguments are mapped there.
unsafe fn read(device_args: usize) -> Option<InstallRequest> {
    let start = core::ptr::with_exposed_provenance::<u8>(device_args);
    if !start.cast::<u64>().is_aligned() {
        return None;
    }
    // SAFETY: mapped, by this function's contract.
    unsafe { barrier::clean_and_invalidate(start, DEVICE_ARGS_BYTES) };
    // SAFETY: mapped, by this function's contract; the offsets are within the device arguments.
    let word = |offset| unsafe { start.wrapping_add(offset).cast::<u64>().read_volatile() };
    let request = InstallRequest {
        device: u16::try_from(word(DEVICE_ARGS_DEVICE)).ok()?,
        firmware: usize::try_from(word(DEVICE_ARGS_FIRMWARE)).ok()?,
        bytes: usize::try_from(word(DEVICE_ARGS_FIRMWARE + 8)).ok()?,
        tag: word(DEVICE_ARGS_TAG),
    };
    (request.firmware != 0 && request.bytes != 0).then_some(request)
}

/// The file's path, and that of the temporary file that is renamed to it.
fn paths(request: &InstallRequest) -> Option<(Path, Path)> {
    // SAFETY: the name is a string; the driver's process does not change its environment while it runs kernels.
    let named = unsafe { libc::getenv(FOLDER_VARIABLE.as_ptr()) };
    let folder = match named.is_null() {
        true => FOLDER.as_bytes(),
        // SAFETY: `getenv` returned a string of the environment.
        false => unsafe { CStr::from_ptr(named) }.to_bytes(),
    };
    let name = file_name(request.device, request.tag);
    // SAFETY: has no arguments, and cannot fail.
    let process = unsafe { libc::getpid() };
    let writer = file_name(request.device, u64::from(process.unsigned_abs()));
    Some((path(&[folder, b"/", &name])?, path(&[folder, b"/.", &writer])?))
}

fn path(parts: &[&[u8]]) -> Option<Path> {
    let mut path = Path::new();
    parts.iter().try_for_each(|part| path.extend_from_slice(part)).ok()?;
    path.push(0).ok()?;
    Some(path)
}

/// # Safety
/// The path has its end; `bytes` bytes are mapped at `from`.
unsafe fn write(path: &Path, from: *const u8, bytes: usize) -> Result<(), i32> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
    // SAFETY: the path has its end, by this function's contract.
    let file = unsafe { libc::open(path.as_ptr().cast::<c_char>(), flags, MODE) };
    if file < 0 {
        return Err(NO_FILE);
    }
    // SAFETY: the file is open, and the bytes are mapped, by this function's contract.
    let written = unsafe { write_all(file, from, bytes) };
    // SAFETY: the file is open. The mode is set once more, because the process may mask it.
    let has_mode = unsafe { libc::fchmod(file, MODE) } == 0;
    // SAFETY: the file is open, and is not used any more.
    let is_closed = unsafe { libc::close(file) } == 0;
    match (written, has_mode && is_closed) {
        (true, true) => Ok(()),
        (false, _) => Err(NOT_WRITTEN),
        (true, false) => Err(NOT_NAMED),
    }
}

/// # Safety
/// The file is open; `bytes` bytes are mapped at `from`.
unsafe fn write_all(file: i32, from: *const u8, bytes: usize) -> bool {
    let mut done = 0;
    while done < bytes {
        let at = from.wrapping_add(done).cast();
        // SAFETY: the rest of the bytes is mapped, by this function's contract.
        let written = unsafe { libc::write(file, at, bytes - done) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => done = done.saturating_add(written),
            _ => return false,
        }
    }
    true
}

/// # Safety
/// Both paths have their ends.
unsafe fn rename(from: &Path, to: &Path) -> Result<(), i32> {
    let (from, to) = (from.as_ptr().cast::<c_char>(), to.as_ptr().cast::<c_char>());
    // SAFETY: both are strings, by this function's contract.
    if unsafe { libc::rename(from, to) } == 0 { Ok(()) } else { Err(NOT_NAMED) }
}

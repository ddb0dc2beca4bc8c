//! `aclrt*`: devices, memory, streams.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use crate::Code;
use crate::checks::{BAD_ARGUMENT, Refusal, refuse};
use crate::machine::{DRIVER_FAILED, Held, Machine, machine};

const BAD_NULL: Code = 100_000;
const INITIALISED_BEFORE: Code = 100_002;
const NOT_INITIALISED: Code = 100_037;
const BAD_DEVICE: Code = 107_001;
const NO_CONTEXT: Code = 107_002;
pub(crate) const BAD_HANDLE: Code = 107_017;
const OUT_OF_MEMORY: Code = 207_001;
pub(crate) const CANNOT_SET_UP: Code = 507_033;
const RELEASED_BEFORE: Code = 507_007;
const SYNC_TIMEOUT: Code = 507_046;

thread_local! {
    /// The generation of the device whose context this thread has; its last message.
    static THREAD: RefCell<(u64, Option<CString>)> = const { RefCell::new((0, None)) };
}

/// Serves a call: first the injected faults, then the call.
pub(crate) fn answer(name: &str, act: impl FnOnce(&mut Held) -> Result<(), Refusal>) -> Code {
    let mut held = machine();
    let injected = held.faults.take(name).map(|code| (code, "injected".to_owned()));
    let result = injected.map_or_else(|| act(&mut held), Err);
    match result {
        Ok(()) => 0,
        Err((code, sentence)) => {
            held.message = format!("{name}: {sentence}");
            code
        }
    }
}

/// The same, of a thread that has the device's context, on a device that works.
pub(crate) fn on_device(name: &str, act: impl FnOnce(&mut Held) -> Result<(), Refusal>) -> Code {
    answer(name, |held| {
        let generation = THREAD.with_borrow(|thread| thread.0);
        if held.contexts == 0 || generation != held.generation {
            return Err((NO_CONTEXT, "this thread has no context".to_owned()));
        }
        held.look_at_clock();
        if held.is_poisoned {
            let before = held.message.clone();
            return Err((DRIVER_FAILED, format!("the device has failed before ({before})")));
        }
        act(held)
    })
}

/// Writes to an address that the caller gives.
pub(crate) fn give<T>(to: *mut T, value: T) -> Result<(), Refusal> {
    if to.is_null() {
        return Err((BAD_NULL, "a place for the answer is null".to_owned()));
    }
    // SAFETY: not null; the interface obliges the caller to give memory.
    unsafe { to.write(value) };
    Ok(())
}

/// The number that a handle or an address is.
pub(crate) fn number(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}

fn as_pointer(number: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(usize::try_from(number).unwrap_or(0))
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        $(
            $(#[$doc])*
            // SAFETY: the name is that of the interface, and no other library of the process is to have it.
            #[unsafe(no_mangle)]
            extern "C" fn $name($($arg: $type),*) -> $result $body
        )*
    };
}
pub(crate) use exports;

/// A stream's and a binary's handle for the caller.
pub(crate) fn give_handle(to: *mut *mut c_void, handle: u64) -> Result<(), Refusal> {
    give(to, as_pointer(handle))
}

exports! {
    fn aclInit(configuration: *const c_char) -> Code {
        answer("aclInit", |machine| {
            if !configuration.is_null() {
                return refuse("a configuration; the host gives none");
            }
            machine.inits += 1;
            if machine.inits > 1 {
                return Err((INITIALISED_BEFORE, "again".to_owned()));
            }
            Ok(())
        })
    }

    fn aclFinalize() -> Code {
        answer("aclFinalize", |machine| match std::mem::take(&mut machine.inits) {
            0 => Err((NOT_INITIALISED, "again".to_owned())),
            _ => Ok(()),
        })
    }

    fn aclGetRecentErrMsg() -> *const c_char {
        let message = std::mem::take(&mut machine().message);
        let message = CString::new(message).ok().filter(|message| !message.is_empty());
        THREAD.with_borrow_mut(|thread| {
            thread.1 = message;
            thread.1.as_ref().map_or(ptr::null(), |message| message.as_ptr())
        })
    }

    fn aclrtGetSocName() -> *const c_char {
        crate::die::processor().as_ptr()
    }

    fn aclrtGetVersion(major: *mut i32, minor: *mut i32, patch: *mut i32) -> Code {
        answer("aclrtGetVersion", |_| {
            give(major, 1)?;
            give(minor, 17)?;
            give(patch, 0)
        })
    }

    fn aclrtGetDeviceCount(count: *mut u32) -> Code {
        answer("aclrtGetDeviceCount", |_| give(count, 1))
    }

    fn aclrtGetDeviceInfo(device: u32, which: i32, value: *mut i64) -> Code {
        answer("aclrtGetDeviceInfo", |_| {
            if device != 0 {
                return Err((BAD_DEVICE, format!("no device {device}")));
            }
            let clusters = i64::from(crate::die::clusters());
            match which {
                1 => give(value, 6),
                102 => give(value, clusters),
                201 => give(value, 2 * clusters),
                _ => refuse(format!("no fact {which}")),
            }
        })
    }

    fn aclrtSetDevice(device: i32) -> Code {
        answer("aclrtSetDevice", |machine| {
            if device != 0 {
                return Err((BAD_DEVICE, format!("no device {device}")));
            }
            machine.take().map_err(|why| (CANNOT_SET_UP, why))?;
            let generation = machine.generation;
            THREAD.with_borrow_mut(|thread| thread.0 = generation);
            Ok(())
        })
    }

    fn aclrtResetDevice(device: i32) -> Code {
        answer("aclrtResetDevice", |machine| match machine.contexts {
            _ if device != 0 => Err((BAD_DEVICE, format!("no device {device}"))),
            0 => Err((RELEASED_BEFORE, "once too often".to_owned())),
            1 => {
                machine.put_down();
                Ok(())
            }
            _ => {
                machine.contexts -= 1;
                Ok(())
            }
        })
    }

    fn aclrtResetDeviceForce(device: i32) -> Code {
        answer("aclrtResetDeviceForce", |machine| {
            if device != 0 || machine.contexts == 0 {
                return Err((RELEASED_BEFORE, "nobody has the device".to_owned()));
            }
            machine.put_down();
            machine.resets += 1;
            Ok(())
        })
    }

    fn aclrtSetOpExecuteTimeOut(seconds: u32) -> Code {
        on_device("aclrtSetOpExecuteTimeOut", |machine| {
            machine.op_timeout_s = seconds;
            Ok(())
        })
    }

    fn aclrtMalloc(address: *mut *mut c_void, bytes: usize, policy: i32) -> Code {
        on_device("aclrtMalloc", |machine| {
            if bytes == 0 || !(0..=2).contains(&policy) {
                return Err((BAD_NULL, format!("{bytes} bytes by policy {policy}")));
            }
            let block = machine.memory.as_mut().and_then(|memory| memory.alloc(bytes as u64));
            let block = block.ok_or_else(|| (OUT_OF_MEMORY, format!("no room for {bytes} bytes")))?;
            give(address, as_pointer(block))
        })
    }

    fn aclrtFree(address: *mut c_void) -> Code {
        on_device("aclrtFree", |machine| {
            let blocks = machine.memory.as_mut().map(|memory| &mut memory.blocks);
            match blocks.and_then(|blocks| blocks.remove(&number(address))) {
                Some(_) => Ok(()),
                None => refuse("no block begins there"),
            }
        })
    }

    fn aclrtMemcpy(to: *mut c_void, most: usize, from: *const c_void, bytes: usize, kind: i32) -> Code {
        on_device("aclrtMemcpy", |machine| {
            if bytes > most {
                return refuse(format!("{bytes} bytes to a place of {most}"));
            }
            copy(machine, (number(to), to), (number(from), from), bytes, kind)
        })
    }

    fn aclrtMemset(to: *mut c_void, most: usize, value: i32, bytes: usize) -> Code {
        on_device("aclrtMemset", |machine| {
            let Some(memory) = &machine.memory else { return refuse("no device") };
            let start = memory.pointer(number(to)).filter(|_| memory.holds(number(to), bytes as u64));
            let Some(start) = start.filter(|_| bytes <= most) else { return refuse("not in one block") };
            let byte = u8::try_from(value).map_err(|_| (BAD_ARGUMENT, format!("{value} is no byte")))?;
            if byte == 0 {
                return zero(start, bytes);
            }
            // SAFETY: the range lies in a block of the mapping.
            unsafe { ptr::write_bytes(start, byte, bytes) };
            Ok(())
        })
    }

    fn aclrtCreateStream(stream: *mut *mut c_void) -> Code {
        on_device("aclrtCreateStream", |machine| {
            let handle = machine.handle();
            machine.streams.insert(handle, crate::machine::Stream::default());
            give_handle(stream, handle)
        })
    }

    fn aclrtDestroyStream(stream: *mut c_void) -> Code {
        on_device("aclrtDestroyStream", |machine| match machine.streams.remove(&number(stream)) {
            Some(one) if one.is_done() => Ok(()),
            Some(_) => refuse("the stream is not done"),
            None => Err((BAD_HANDLE, "no stream".to_owned())),
        })
    }

    fn aclrtStreamQuery(stream: *mut c_void, status: *mut i32) -> Code {
        answer("aclrtStreamQuery", |machine| {
            machine.look_at_clock();
            give(status, i32::from(!state(machine, number(stream))?))
        })
    }

    fn aclrtSynchronizeStreamWithTimeout(stream: *mut c_void, limit_ms: i32) -> Code {
        const NAME: &str = "aclrtSynchronizeStreamWithTimeout";
        let Ok(limit) = u64::try_from(limit_ms) else { return BAD_ARGUMENT };
        if limit == 0 {
            return BAD_ARGUMENT;
        }
        let deadline = Instant::now() + Duration::from_millis(limit);
        loop {
            let mut is_done = false;
            let code = answer(NAME, |machine| {
                machine.look_at_clock();
                is_done = state(machine, number(stream))?;
                Ok(())
            });
            if code != 0 || is_done {
                return code;
            }
            let next = deadline.min(Instant::now() + Duration::from_millis(100));
            if !machine().wait_until(next).1 && Instant::now() >= deadline {
                return SYNC_TIMEOUT;
            }
        }
    }
}

/// Whether a stream is done; an error: it has failed.
fn state(machine: &Machine, stream: u64) -> Result<bool, Refusal> {
    let one = machine.streams.get(&stream).ok_or((BAD_HANDLE, "no stream".to_owned()))?;
    match one.failure {
        0 => Ok(one.is_done()),
        code => Err((code, machine.message.clone())),
    }
}

/// Copies, if the kind says where the two places are.
fn copy(
    machine: &Machine,
    to: (u64, *mut c_void),
    from: (u64, *const c_void),
    bytes: usize,
    kind: i32,
) -> Result<(), Refusal> {
    let Some(memory) = &machine.memory else { return refuse("no device") };
    let places = (memory.is_device(from.0), memory.is_device(to.0));
    let done = match (kind, places) {
        (1, (false, true)) => memory.write(to.0, from.1, bytes),
        (2, (true, false)) => memory.read(from.0, bytes).map(|read| {
            // SAFETY: the interface obliges the caller to give memory of so many bytes.
            unsafe { ptr::copy_nonoverlapping(read.as_ptr(), to.1.cast(), bytes) };
        }),
        _ => return refuse(format!("kind {kind} from {:#x} to {:#x}", from.0, to.0)),
    };
    done.ok_or_else(|| (BAD_ARGUMENT, format!("{bytes} bytes do not lie in one block")))
}

/// Zeros a range of the mapping, whole pages by giving them back to the system.
fn zero(start: *mut u8, bytes: usize) -> Result<(), Refusal> {
    const PAGE: usize = 4096;
    let head = start.align_offset(PAGE).min(bytes);
    let whole = (bytes - head) / PAGE * PAGE;
    // SAFETY: the head is within the range.
    unsafe { ptr::write_bytes(start, 0, head) };
    let middle = start.wrapping_add(head);
    // SAFETY: whole pages of the range, of our own file: they read as zeros afterwards.
    let freed = unsafe { libc::madvise(middle.cast(), whole, libc::MADV_REMOVE) };
    if freed != 0 && whole > 0 {
        // SAFETY: the pages are within the range.
        unsafe { ptr::write_bytes(middle, 0, whole) };
    }
    // SAFETY: the rest is within the range.
    unsafe { ptr::write_bytes(middle.wrapping_add(whole), 0, bytes - head - whole) };
    Ok(())
}

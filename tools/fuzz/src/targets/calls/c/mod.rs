//! The interface of C: devices, sessions, streams, events, flags, recordings, tensors, and the ends of processes and threads. Pointers are valid or null: that is
//! what a caller of C vouches for. What devices and streams are given to do is in `c/work.rs`.

mod work;

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pto_runtime::device::{self, DeviceDescription, DeviceOptions};
use pto_runtime::kernel_stream::{self as stream, RecordingBinding};
use pto_runtime::session::{self, Counters};
use pto_runtime::{error, kernel, memory, program_stream, tensor};

use super::play::{Door, LIMIT, Pool, Settings, tell};
use super::{scarce, signals};
use crate::choices::Choices;
use crate::targets::c_calls::{SIZE_OF_OPTIONS, checked, count_of, nothing};

/// Bytes that copies of a session use.
const BYTES: u64 = 4096;
/// The kernel that takes any words.
const NOTHING: u32 = 900;
/// How long a call waits that need not be met.
const MOMENT_NS: u64 = 300_000;
/// A child of `fork` that has not ended by then hangs.
const CHILD_S: u32 = 40;

/// What is copied: it lives for as long as the process.
static HOST: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];

/// A handle that was opened.
struct Handle {
    raw: usize,
    /// Calls that close it, have closed it, or would close it if they succeed.
    closing: AtomicUsize,
    close: fn(usize) -> i32,
    /// An address on its device, if it has one.
    at: u64,
}

impl Handle {
    fn new<H>(raw: *mut H, close: fn(usize) -> i32) -> Self {
        Self { raw: raw.expose_provenance(), closing: AtomicUsize::new(0), close, at: 0 }
    }

    fn close(&self) {
        if self.closing.fetch_add(1, Ordering::Relaxed) == 0 {
            checked((self.close)(self.raw));
        }
    }

    /// A call may close it: `done` says whether it did.
    fn may_close(&self, call: impl FnOnce() -> i32) -> i32 {
        self.closing.fetch_add(1, Ordering::Relaxed);
        let status = call();
        if is_busy(status) {
            self.closing.fetch_sub(1, Ordering::Relaxed);
        }
        status
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

fn has_name(status: i32, name: &CStr) -> bool {
    let found = error::pto_error_name(status);
    // SAFETY: the names of errors are texts that stay.
    !found.is_null() && unsafe { CStr::from_ptr(found) } == name
}

fn is_busy(status: i32) -> bool {
    has_name(status, c"BUSY")
}

fn to<H>(raw: usize) -> *mut H {
    std::ptr::with_exposed_provenance_mut(raw)
}

/// Makes calls when its thread ends, after most of the library's data for the thread is dropped.
struct AtExit;

impl Drop for AtExit {
    fn drop(&mut self) {
        checked(stream::pto_kernel_stream_abort(to(1)));
        checked(device::pto_device_close(to(1)));
        error::pto_clear_error();
        let mut last = MaybeUninit::uninit();
        // SAFETY: the result pointer is valid for writes.
        checked(unsafe { error::pto_last_error(last.as_mut_ptr()) });
    }
}

thread_local! {
    static AT_EXIT: RefCell<Option<AtExit>> = const { RefCell::new(None) };
}

unsafe extern "C" fn function(user: *mut c_void) {
    let raw = user.expose_provenance();
    if raw > 1 {
        let mut is_idle = 0;
        // SAFETY: the result pointer is valid for writes.
        checked(unsafe { stream::pto_kernel_stream_query(to(raw), &raw mut is_idle) });
        checked(stream::pto_kernel_stream_synchronize(to(raw), MOMENT_NS));
    }
}

/// All handles.
pub(super) struct HandlePools {
    settings: Settings,
    devices: Pool<Handle>,
    sessions: Pool<Handle>,
    streams: Pool<Handle>,
    events: Pool<Handle>,
    flags: Pool<Handle>,
    recordings: Pool<Handle>,
    programs: Pool<Handle>,
    tensors: Pool<Handle>,
}

/// A handle of a pool, and the pointer for the call: now and then that of another handle.
struct ChosenHandle(usize, Option<Arc<Handle>>);

impl ChosenHandle {
    fn raw<H>(&self) -> *mut H {
        to(self.0)
    }

    fn at(&self) -> u64 {
        self.1.as_ref().map_or(0, |handle| handle.at)
    }
}

impl HandlePools {
    pub(super) fn open(settings: Settings, choices: &mut Choices<'_>) -> Self {
        let world = Self {
            settings,
            devices: Pool::default(),
            sessions: Pool::default(),
            streams: Pool::default(),
            events: Pool::default(),
            flags: Pool::default(),
            recordings: Pool::default(),
            programs: Pool::default(),
            tensors: Pool::default(),
        };
        for of in 0..2 {
            world.open_device(choices);
            // That of the pools, with this number.
            world.open_session(&mut Choices::new(&[u8::MAX, of]));
            for opens in [0, 0, 3, 6, 11] {
                world.with_session(&mut Choices::new(&[u8::MAX, of, opens]));
            }
        }
        // No session has this one.
        world.open_device(choices);
        world
    }

    fn choose(&self, from: &Pool<Handle>, choices: &mut Choices<'_>) -> ChosenHandle {
        match choices.byte() {
            0..=3 => ChosenHandle(0, None),
            4..=7 => ChosenHandle(16 * usize::from(choices.byte()), None),
            // Of another kind.
            8..=11 => ChosenHandle(self.events.any(choices).map_or(0, |handle| handle.raw), None),
            _ => match from.any(choices) {
                Some(handle) => ChosenHandle(handle.raw, Some(handle)),
                None => ChosenHandle(0, None),
            },
        }
    }

    /// Fails for a status that the caller cannot explain: handles that are not closed are valid.
    fn check(status: i32, used: &[&ChosenHandle]) -> i32 {
        checked(status);
        if has_name(status, c"INVALID_HANDLE") {
            let is_live = |chosen: &&&ChosenHandle| {
                let handle = chosen.1.as_ref();
                handle.is_some_and(|handle| handle.closing.load(Ordering::Relaxed) == 0)
            };
            assert!(
                used.iter().filter(is_live).count() < used.len(),
                "an open handle is refused as one that was closed"
            );
        }
        status
    }

    fn open_device(&self, choices: &mut Choices<'_>) {
        let options = DeviceOptions {
            size: SIZE_OF_OPTIONS,
            aic: 4,
            aiv: 8,
            hosting: u32::from(choices.byte() >= 240),
            os_threads: choices.one_of(&[1, 1, 1, 2]),
            aicpu: 0,
            gm_bytes: 64 << 20,
        };
        tell(format_args!("device: {options:?}"));
        let mut opened = null_mut();
        // SAFETY: every pointer is valid.
        let status = checked(unsafe {
            device::pto_device_open(c"a2a3sim".as_ptr(), &raw const options, &raw mut opened)
        });
        if status != 0 {
            return;
        }
        let func_id = i32::try_from(NOTHING).unwrap_or(0);
        let entry = Some(nothing as unsafe extern "C" fn(*mut i64));
        checked(kernel::pto_register_library(opened));
        // SAFETY: the name is a text, and the function takes any words.
        checked(unsafe {
            kernel::pto_register_kernel_function(opened, func_id, 1, c"nothing".as_ptr(), entry)
        });
        let mut handle = Handle::new(opened, |raw| device::pto_device_close(to(raw)));
        // SAFETY: the result pointer is valid for writes.
        checked(unsafe { memory::pto_device_malloc(opened, BYTES, &raw mut handle.at) });
        self.devices.put(handle);
    }

    fn with_device(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.devices, choices);
        let what = choices.byte() % 8;
        tell(format_args!("device {:#x}: call {what}", chosen.0));
        match what {
            0 => self.open_device(choices),
            1 if choices.byte() < 32 => {
                if let Some(handle) = &chosen.1 {
                    handle.close();
                }
            }
            2 => {
                let mut description = MaybeUninit::<DeviceDescription>::uninit();
                // SAFETY: the result pointer is valid for writes.
                let status =
                    unsafe { device::pto_device_describe(chosen.raw(), description.as_mut_ptr()) };
                Self::check(status, &[&chosen]);
            }
            3 => {
                let bytes = [7_u8; 64];
                let count = choices.one_of(&[0, 1, 64]);
                let pointer = bytes.as_ptr().cast();
                // SAFETY: there are as many bytes.
                let status = unsafe {
                    memory::pto_copy_to_device(chosen.raw(), chosen.at(), pointer, count)
                };
                Self::check(status, &[&chosen]);
            }
            _ => {
                let mut address = 0;
                let bytes = choices.number();
                // SAFETY: the result pointer is valid for writes.
                let status =
                    unsafe { memory::pto_device_malloc(chosen.raw(), bytes, &raw mut address) };
                if Self::check(status, &[&chosen]) == 0 {
                    checked(memory::pto_device_free(chosen.raw(), address));
                }
            }
        }
    }

    fn open_session(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.devices, choices);
        tell(format_args!("device {:#x}: session", chosen.0));
        let mut opened = null_mut();
        let on_chip = choices.one_of(&[0, 0, 4096, u64::MAX]);
        // SAFETY: the result pointer is valid for writes.
        let mut call =
            || unsafe { session::pto_session_open(chosen.raw(), on_chip, &raw mut opened) };
        let status = match &chosen.1 {
            Some(handle) => checked(handle.may_close(call)),
            None => checked(call()),
        };
        if status == 0 {
            let mut handle = Handle::new(opened, |raw| session::pto_session_close(to(raw)));
            handle.at = chosen.at();
            self.sessions.put(handle);
        }
    }

    fn with_session(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.sessions, choices);
        let what = choices.byte() % 16;
        tell(format_args!("session {:#x}: call {what}", chosen.0));
        let (mut event, mut flag, mut opened) = (null_mut(), null_mut(), null_mut());
        let used = &[&chosen];
        match what {
            0..=2 => {
                // SAFETY: the result pointer is valid for writes.
                let status =
                    unsafe { stream::pto_kernel_stream_open(chosen.raw(), &raw mut opened) };
                if Self::check(status, used) == 0 {
                    let close = |raw| stream::pto_kernel_stream_close(to(raw));
                    let mut handle = Handle::new(opened, close);
                    handle.at = chosen.at();
                    self.streams.put(handle);
                }
            }
            3..=5 => {
                // SAFETY: the result pointer is valid for writes.
                let status = unsafe { stream::pto_event_open(chosen.raw(), &raw mut event) };
                if Self::check(status, used) == 0 {
                    self.events.put(Handle::new(event, |raw| stream::pto_event_close(to(raw))));
                }
            }
            6 => {
                // SAFETY: the result pointer is valid for writes.
                let status = unsafe { stream::pto_notify_open(chosen.raw(), &raw mut flag) };
                if Self::check(status, used) == 0 {
                    self.flags.put(Handle::new(flag, |raw| stream::pto_notify_close(to(raw))));
                }
            }
            7 => drop(Self::check(session::pto_session_reset(chosen.raw()), used)),
            8 => drop(Self::check(session::pto_session_synchronize(chosen.raw()), used)),
            9 => {
                let mut counters = MaybeUninit::<Counters>::uninit();
                let pointer = counters.as_mut_ptr();
                // SAFETY: the result pointer is valid for writes.
                let status = unsafe { session::pto_session_counters(chosen.raw(), pointer) };
                Self::check(status, used);
            }
            10 if choices.byte() < 32 => {
                if let Some(handle) = &chosen.1 {
                    handle.close();
                }
            }
            11 => {
                let mut opened = null_mut();
                let overlap = choices.one_of(&[0, 1, 2, 8]);
                // SAFETY: the result pointer is valid for writes.
                let status = unsafe {
                    program_stream::pto_program_stream_open(chosen.raw(), overlap, &raw mut opened)
                };
                if Self::check(status, used) == 0 {
                    let close = |raw| program_stream::pto_program_stream_close(to(raw));
                    self.programs.put(Handle::new(opened, close));
                }
            }
            12 => scarce::begin(u32::from(choices.byte() % 3)),
            13 => {
                let mut last = MaybeUninit::uninit();
                // SAFETY: the result pointer is valid for writes.
                checked(unsafe { error::pto_last_error(last.as_mut_ptr()) });
            }
            14 => self.open_session(choices),
            _ => self.fork(choices),
        }
    }

    fn pointer(chosen: &ChosenHandle, choices: &mut Choices<'_>) -> u64 {
        match choices.byte() {
            0..=15 => choices.one_of(&[0, 1, u64::MAX, 1 << 63, u64::MAX - 7]),
            _ => chosen.at() + u64::from(choices.byte()) * 8,
        }
    }

    fn with_stream(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.streams, choices);
        let what = choices.byte() % 16;
        tell(format_args!("stream {:#x}: call {what}", chosen.0));
        let raw = chosen.raw();
        let (pointer, other) = (Self::pointer(&chosen, choices), Self::pointer(&chosen, choices));
        let bytes = choices.one_of(&[0, 8, 64, 64, 1024, BYTES, u64::MAX]);
        let host = HOST.as_ptr().cast_mut().cast::<c_void>();
        let host_bytes = choices.one_of(&[0, 8, 64, 1024]);
        let used = &[&chosen];
        let status = match what {
            0..=2 => {
                let args: Vec<u64> = (0..choices.one_of(&[0, 1, 4, 128, 129])).collect();
                let func_id = choices.one_of(&[NOTHING, NOTHING, NOTHING, 901, 65_536, u32::MAX]);
                let blocks = choices.one_of(&[1, 1, 3, 0, 65_536]);
                let count = count_of(&args);
                // SAFETY: the arguments are there.
                unsafe {
                    stream::pto_kernel_stream_launch(raw, func_id, blocks, args.as_ptr(), count)
                }
            }
            // SAFETY: the bytes live for ever.
            3 => unsafe {
                stream::pto_kernel_stream_copy_to_device(raw, pointer, host, host_bytes)
            },
            // SAFETY: the bytes live for ever.
            4 => unsafe {
                stream::pto_kernel_stream_copy_from_device(raw, pointer, host, host_bytes)
            },
            5 => stream::pto_kernel_stream_copy(raw, pointer, other, bytes),
            6 => stream::pto_kernel_stream_fill(raw, pointer, choices.byte(), bytes),
            7 => {
                let how = choices.one_of(&[c"sum", c"max", c"mean", c""]);
                let dtype = choices.one_of(&[c"f32", c"f16", c"i64", c"f33"]);
                let (how, dtype) = (how.as_ptr(), dtype.as_ptr());
                // SAFETY: both are texts.
                unsafe { stream::pto_kernel_stream_reduce(raw, how, dtype, pointer, other, bytes) }
            }
            8 => {
                let user = choices.one_of(&[0, 1, chosen.0]);
                let called: Option<unsafe extern "C" fn(*mut c_void)> =
                    (choices.byte() < 240).then_some(function);
                // SAFETY: the function takes any handle.
                unsafe { stream::pto_kernel_stream_call(raw, called, to(user)) }
            }
            9 => stream::pto_kernel_stream_write_value(raw, pointer, choices.number()),
            10 => stream::pto_kernel_stream_synchronize(raw, MOMENT_NS),
            11 => {
                let mut is_idle = 0;
                // SAFETY: the result pointer is valid for writes.
                unsafe { stream::pto_kernel_stream_query(raw, &raw mut is_idle) }
            }
            12 => stream::pto_kernel_stream_abort(raw),
            13 => stream::pto_kernel_stream_begin_capture(raw),
            14 => {
                let mut recording = null_mut();
                // SAFETY: the result pointer is valid for writes.
                let status =
                    unsafe { stream::pto_kernel_stream_end_capture(raw, &raw mut recording) };
                if status == 0 {
                    let close = |raw| stream::pto_recording_close(to(raw));
                    self.recordings.put(Handle::new(recording, close));
                }
                status
            }
            _ => {
                if let Some(handle) = chosen.1.as_ref().filter(|_| choices.byte() < 64) {
                    handle.close();
                }
                0
            }
        };
        Self::check(status, used);
    }

    fn with_two(&self, choices: &mut Choices<'_>) {
        let chosen = self.choose(&self.streams, choices);
        let raw = chosen.raw();
        let what = choices.byte() % 8;
        tell(format_args!("stream {:#x}: call {what} with another handle", chosen.0));
        match what {
            0..=2 => {
                let event = self.choose(&self.events, choices);
                let status = match what {
                    0 => stream::pto_kernel_stream_record(raw, event.raw()),
                    1 => stream::pto_kernel_stream_wait(raw, event.raw()),
                    _ => {
                        let mut is_complete = 0;
                        // SAFETY: the result pointer is valid for writes.
                        let status =
                            unsafe { stream::pto_event_query(event.raw(), &raw mut is_complete) };
                        Self::check(status, &[&event]);
                        return;
                    }
                };
                Self::check(status, &[&chosen, &event]);
            }
            3 => {
                let flag = self.choose(&self.flags, choices);
                let status = stream::pto_kernel_stream_notify(raw, flag.raw());
                Self::check(status, &[&chosen, &flag]);
            }
            4 => {
                let (event, flag) =
                    (self.choose(&self.events, choices), self.choose(&self.flags, choices));
                if let Some(handle) = [event, flag][usize::from(choices.byte() % 2)].1.as_ref() {
                    handle.close();
                }
            }
            _ => {
                let recording = self.choose(&self.recordings, choices);
                let at = Self::pointer(&chosen, choices);
                let bindings = [RecordingBinding { from: at, to: at }];
                let count = u32::from(choices.byte() % 2);
                // SAFETY: there is one binding.
                let status = unsafe {
                    stream::pto_kernel_stream_launch_recording(
                        raw,
                        recording.raw(),
                        bindings.as_ptr(),
                        count,
                    )
                };
                Self::check(status, &[&chosen, &recording]);
            }
        }
    }

    fn with_tensor(&self, choices: &mut Choices<'_>) {
        let (programs, chosen) =
            (self.choose(&self.programs, choices), self.choose(&self.tensors, choices));
        let what = choices.byte() % 8;
        tell(format_args!("tensor {:#x}: call {what}", chosen.0));
        let close = |raw| tensor::pto_tensor_release(to(raw));
        let (stream, raw) = (programs.raw(), chosen.raw());
        let mut made = null_mut();
        let element = choices.one_of(&[c"f32", c"f32", c"f16", c"f33", c""]).as_ptr();
        let layout = choices.one_of(&[c"row-major", c"row-major", c"nz", c"?"]).as_ptr();
        let status = match what {
            0 | 1 => {
                let shape = [choices.one_of(&[16, 16, 1, 0, 1 << 40, u64::MAX]); 3];
                let rank = choices.one_of(&[1, 2, 0, 3]);
                // SAFETY: every pointer is valid.
                unsafe {
                    tensor::pto_tensor_zeros(
                        stream,
                        element,
                        shape.as_ptr(),
                        rank,
                        layout,
                        &raw mut made,
                    )
                }
            }
            2 => {
                let (shape, elements) = ([16_u64], [1.0_f32; 16]);
                let (pointer, bytes) = (elements.as_ptr().cast(), choices.one_of(&[64, 64, 32, 0]));
                // SAFETY: every pointer is valid.
                unsafe {
                    tensor::pto_tensor_to_device(
                        stream,
                        element,
                        shape.as_ptr(),
                        1,
                        pointer,
                        bytes,
                        layout,
                        &raw mut made,
                    )
                }
            }
            3 => {
                let mut elements = [0.0_f32; 256];
                let (pointer, bytes) =
                    (elements.as_mut_ptr().cast(), choices.one_of(&[64, 1024, 4, 0]));
                // SAFETY: there is as much room.
                unsafe { tensor::pto_tensor_to_host(stream, raw, pointer, bytes) }
            }
            // SAFETY: every pointer is valid.
            4 => unsafe { tensor::pto_tensor_to_layout(stream, raw, layout, &raw mut made) },
            5 => {
                let from = self.choose(&self.programs, choices);
                // SAFETY: the result pointer is valid for writes.
                let status =
                    unsafe { tensor::pto_tensor_take_over(stream, raw, from.raw(), &raw mut made) };
                Self::check(status, &[&programs, &chosen, &from])
            }
            6 => {
                if let Some(handle) = &chosen.1 {
                    handle.close();
                }
                return;
            }
            _ => {
                let status = program_stream::pto_program_stream_synchronize(stream, MOMENT_NS);
                Self::check(status, &[&programs]);
                return;
            }
        };
        checked(status);
        if status == 0 && !made.is_null() {
            self.tensors.put(Handle::new(made, close));
        }
    }

    /// What a child of this process does with handles of its parent: it gets errors, and ends.
    fn fork(&self, choices: &mut Choices<'_>) {
        // Locks that other threads hold while a process forks stay locked in the child.
        if self.settings.threads > 1 || choices.byte() > 24 {
            return;
        }
        let (device, session, opened) =
            (self.devices.any(choices), self.sessions.any(choices), self.streams.any(choices));
        tell(format_args!("fork"));
        // SAFETY: the child calls the interface, as a program may, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            signals::of_child();
            // SAFETY: the signal ends a child that hangs.
            unsafe { libc::alarm(CHILD_S) };
            if let Some(opened) = opened {
                stream::pto_kernel_stream_synchronize(to(opened.raw), u64::MAX);
                stream::pto_kernel_stream_abort(to(opened.raw));
                stream::pto_kernel_stream_close(to(opened.raw));
            }
            if let Some(session) = session {
                session::pto_session_synchronize(to(session.raw));
                session::pto_session_close(to(session.raw));
            }
            if let Some(device) = device {
                device::pto_device_close(to(device.raw));
            }
            // SAFETY: ends the child, without what the parent has registered for its own end.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        let ended = loop {
            // SAFETY: the result pointer is valid for writes.
            let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
            let is_interrupted =
                std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
            if ended != -1 || !is_interrupted {
                break ended;
            }
        };
        assert!(ended == child && status == 0, "a child of fork ends with status {status:#x}");
    }
}

impl Door for HandlePools {
    fn call(&self, choices: &mut Choices<'_>) {
        // Registered before the library's data for this thread, so that it is dropped after that data.
        AT_EXIT.with_borrow_mut(|at_exit| {
            at_exit.get_or_insert(AtExit);
        });
        match choices.byte() % 64 {
            0..=6 => self.with_device(choices),
            7..=22 => self.with_session(choices),
            23..=41 => self.with_stream(choices),
            42..=51 => self.with_two(choices),
            52..=56 => self.with_tensor(choices),
            57..=60 => self.with_library(choices),
            61 => self.with_graph(choices),
            62 => self.with_builder(choices),
            _ => self.with_program(choices),
        }
    }

    fn finish(&self) {
        tell(format_args!("the end"));
        let limit = u64::try_from(LIMIT.as_nanos()).unwrap_or(u64::MAX);
        for handle in self.streams.all() {
            let status = checked(stream::pto_kernel_stream_synchronize(to(handle.raw), limit));
            assert!(!has_name(status, c"TIMED_OUT"), "a stream does not come to rest");
        }
    }
}

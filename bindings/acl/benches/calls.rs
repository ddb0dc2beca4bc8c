//! What a call of the interface costs above the call of a session beneath it, in one process: `cargo bench -p pto-acl --bench calls`.
//!
//! Both calls alternate in rounds, and the shortest round of each counts, so that other work on the machine disturbs both alike. With
//! `PTO_ACL_SEED=1` the devices are in virtual time: no other thread takes the commands meanwhile, which disturbs on a machine that is busy.

use std::ffi::{CString, c_char, c_void};
use std::time::Instant;

// The plug-in is linked for its symbols; the library of entry points adds one jump.
use pto_acl as _;
use pto_host::abi::{CoreKind, FuncId, GmAddr};
use pto_host::session::{Drive, Stream};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{DeviceOptions, Hosting, Kernel, Session, SessionOptions};

unsafe extern "C" {
    fn aclrtSetDevice(device: i32) -> i32;
    fn aclrtCreateStream(stream: *mut *mut c_void) -> i32;
    fn aclrtCreateEvent(event: *mut *mut c_void) -> i32;
    fn aclrtStreamQuery(stream: *mut c_void, status: *mut u32) -> i32;
    fn aclrtQueryEventStatus(event: *mut c_void, status: *mut u32) -> i32;
    fn aclrtRecordEvent(event: *mut c_void, stream: *mut c_void) -> i32;
    fn aclrtSynchronizeStream(stream: *mut c_void) -> i32;
    fn aclrtGetDevice(device: *mut i32) -> i32;
    fn aclrtStreamWaitEvent(stream: *mut c_void, event: *mut c_void) -> i32;
    fn aclrtMalloc(memory: *mut *mut c_void, bytes: usize, policy: u32) -> i32;
    fn aclrtMemsetAsync(
        to: *mut c_void,
        most: usize,
        byte: i32,
        bytes: usize,
        stream: *mut c_void,
    ) -> i32;
    fn aclrtMemcpyAsync(
        to: *mut c_void,
        most: usize,
        from: *const c_void,
        bytes: usize,
        kind: u32,
        stream: *mut c_void,
    ) -> i32;
    fn ptoAclKernelFromFunction(
        name: *const c_char,
        entry: unsafe extern "C" fn(*const u64),
        cores: u32,
        function: *mut *mut c_void,
    ) -> i32;
    fn aclrtLaunchKernelWithHostArgs(
        function: *mut c_void,
        blocks: u32,
        stream: *mut c_void,
        config: *mut c_void,
        arguments: *const u64,
        bytes: usize,
        holders: *const c_void,
        count: usize,
    ) -> i32;
    fn aclrtValueWrite(at: *mut c_void, value: u64, flag: u32, stream: *mut c_void) -> i32;
}

const CALLS: u32 = 128;
/// Rounds, unless `--rounds N` says otherwise.
const ROUNDS: u32 = 2_000;

/// How many rounds are asked for.
fn rounds() -> u32 {
    let mut words = std::env::args().skip_while(|word| word != "--rounds").skip(1);
    words.next().map_or(ROUNDS, |word| word.parse().expect("--rounds takes a number"))
}

/// Nanoseconds of one call in the shortest round; `settle` runs after each round.
fn shortest(best: &mut f64, call: &mut dyn FnMut(), settle: &mut dyn FnMut()) {
    let start = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    *best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    settle();
}

/// Prints both costs, and their difference.
fn compare(
    name: &str,
    [call, settle]: [&mut dyn FnMut(); 2],
    [beneath, settle_beneath]: [&mut dyn FnMut(); 2],
) {
    let (mut above_ns, mut beneath_ns) = (f64::MAX, f64::MAX);
    for _ in 0..rounds() {
        shortest(&mut above_ns, call, settle);
        shortest(&mut beneath_ns, beneath, settle_beneath);
    }
    let over_ns = above_ns - beneath_ns;
    let ratio = above_ns / beneath_ns;
    println!("{name:<24} {above_ns:>8.1} ns {beneath_ns:>8.1} ns {over_ns:>8.1} ns {ratio:>7.1}");
}

unsafe extern "C" fn nothing_at_all(_args: *const u64) {}

/// A kernel with one argument, which does nothing.
fn compare_launch(stream: *mut c_void, own_stream: &Stream, session: &Session) {
    const NOTHING: FuncId = FuncId(100);
    let kernel = Kernel::from_fn("nothing", CoreKind::AIV, nothing_at_all);
    session.register_kernel(NOTHING, kernel).expect("the number is free");
    let mut function = std::ptr::null_mut();
    // SAFETY: the pointers are valid during the call, and the function stays.
    checked(unsafe {
        ptoAclKernelFromFunction(c"nothing".as_ptr(), nothing_at_all, 1, &raw mut function)
    });
    let word = 0u64;
    let (nothing, none) = (std::ptr::null_mut(), std::ptr::null());
    compare(
        "aclrtLaunchKernel..",
        [
            &mut || {
                // SAFETY: the handles are those of the caller, and the word is read during the call.
                checked(unsafe {
                    aclrtLaunchKernelWithHostArgs(
                        function,
                        1,
                        stream,
                        nothing,
                        &raw const word,
                        8,
                        none,
                        0,
                    )
                });
            },
            // SAFETY: as above.
            &mut || checked(unsafe { aclrtSynchronizeStream(stream) }),
        ],
        [
            &mut || {
                own_stream.launch(NOTHING, &[word]).expect("the stream runs");
            },
            &mut || own_stream.synchronize().expect("the stream runs"),
        ],
    );
}

/// Commands that use memory of the device: two ranges of 64 bytes.
fn compare_memory(stream: *mut c_void, own_stream: &Stream, session: &Session) {
    const BYTES: usize = 64;
    let mut memory = std::ptr::null_mut();
    // SAFETY: the pointer is valid during the call.
    checked(unsafe { aclrtMalloc(&raw mut memory, 2 * BYTES, 0) });
    let other = memory.wrapping_byte_add(BYTES);
    let from = session.alloc(2 * BYTES as u64).expect("there is memory");
    let to = GmAddr(from.0 + BYTES as u64);
    // SAFETY: the handle is that of the caller.
    let mut settle = || checked(unsafe { aclrtSynchronizeStream(stream) });
    let mut settle_own = || own_stream.synchronize().expect("the stream runs");
    compare(
        "aclrtMemsetAsync",
        [
            // SAFETY: the memory is large enough.
            &mut || checked(unsafe { aclrtMemsetAsync(memory, BYTES, 7, BYTES, stream) }),
            &mut settle,
        ],
        [
            &mut || {
                own_stream.fill(from, 7, BYTES as u64).expect("the stream runs");
            },
            &mut settle_own,
        ],
    );
    compare(
        "aclrtMemcpyAsync",
        [
            // SAFETY: as above.
            &mut || checked(unsafe { aclrtMemcpyAsync(other, BYTES, memory, BYTES, 3, stream) }),
            &mut settle,
        ],
        [
            &mut || {
                own_stream.copy_on_device(from, to, BYTES as u64).expect("the stream runs");
            },
            &mut settle_own,
        ],
    );
    compare(
        "aclrtValueWrite",
        [
            // SAFETY: as above.
            &mut || checked(unsafe { aclrtValueWrite(memory, 7, 0, stream) }),
            &mut settle,
        ],
        [
            &mut || {
                own_stream.write_value(from, 7).expect("the stream runs");
            },
            &mut settle_own,
        ],
    );
}

/// `aclrtGetDevice` of a library next to this program.
fn get_device_of(file: &str) -> Option<impl Fn(&mut i32) -> i32> {
    let path = std::env::current_exe().ok()?.with_file_name(file);
    let path = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: a library of this project, by its name.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let symbol = |name: &std::ffi::CStr| {
        // SAFETY: the library is loaded and stays so.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?} is missing in {path:?}");
        found
    };
    // SAFETY: the function of this name has this type.
    let set = unsafe {
        std::mem::transmute::<*mut c_void, extern "C" fn(i32) -> i32>(symbol(c"aclrtSetDevice"))
    };
    checked(set(0));
    // SAFETY: as above.
    let get = unsafe {
        std::mem::transmute::<*mut c_void, extern "C" fn(*mut i32) -> i32>(symbol(
            c"aclrtGetDevice",
        ))
    };
    Some(move |device: &mut i32| get(device))
}

/// What the jump through the library of entry points costs: the same function of the same plug-in, with and without it.
fn compare_jump() {
    let through = get_device_of("libascendcl.so");
    let direct = get_device_of("libpto_acl.so");
    let (Some(through), Some(direct)) = (through, direct) else {
        println!("the jump is not timed: build pto-acl-entry and pto-acl in the same folder first");
        return;
    };
    let (mut one, mut other) = (0, 0);
    compare(
        "the jump of an entry",
        [&mut || checked(through(&mut one)), &mut || {}],
        [&mut || checked(direct(&mut other)), &mut || {}],
    );
}

/// A session as the interface has one.
fn own_session() -> Session {
    let (mut options, mut of_session) = (DeviceOptions::default(), SessionOptions::default());
    if let Some(seed) = std::env::var("PTO_ACL_SEED").ok().and_then(|seed| seed.parse().ok()) {
        options.hosting = Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() });
        of_session.drive = Some(Drive::Stepped { seed });
    }
    let device = pto_native::open_device(options).expect("the device opens");
    device.session(of_session).expect("the session opens")
}

fn checked(code: i32) {
    assert_eq!(code, 0, "a call of the interface failed");
}

fn main() {
    // cargo test --benches starts it as well: it is no test.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let (mut stream, mut event) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the pointers are valid during the calls.
    checked(unsafe { aclrtSetDevice(0) });
    // SAFETY: as above.
    checked(unsafe { aclrtCreateStream(&raw mut stream) });
    // SAFETY: as above.
    checked(unsafe { aclrtCreateEvent(&raw mut event) });
    let session = own_session();
    let own_stream = session.stream().expect("a stream opens");
    let own_event = session.event().expect("an event opens");
    let mut nothing = || {};
    let mut status = 0;
    println!(
        "{:<24} {:>11} {:>11} {:>11} {:>7}",
        "call", "interface", "session", "difference", "ratio"
    );
    let mut number = 0;
    compare(
        "aclrtGetDevice",
        // SAFETY: the pointer is valid during the call.
        [&mut || checked(unsafe { aclrtGetDevice(&raw mut number) }), &mut || {}],
        [&mut || {}, &mut nothing],
    );
    compare(
        "aclrtStreamQuery",
        // SAFETY: as above.
        [&mut || checked(unsafe { aclrtStreamQuery(stream, &raw mut status) }), &mut || {}],
        [&mut || assert!(own_stream.query().expect("the stream runs")), &mut nothing],
    );
    compare(
        "aclrtRecordEvent",
        [
            // SAFETY: the handles are those of the calls above.
            &mut || checked(unsafe { aclrtRecordEvent(event, stream) }),
            // SAFETY: as above.
            &mut || checked(unsafe { aclrtSynchronizeStream(stream) }),
        ],
        [
            &mut || {
                own_stream.record(&own_event).expect("the stream runs");
            },
            &mut || own_stream.synchronize().expect("the stream runs"),
        ],
    );
    compare(
        "aclrtStreamWaitEvent",
        [
            // SAFETY: as above.
            &mut || checked(unsafe { aclrtStreamWaitEvent(stream, event) }),
            // SAFETY: as above.
            &mut || checked(unsafe { aclrtSynchronizeStream(stream) }),
        ],
        [
            &mut || {
                own_stream.wait(&own_event).expect("the stream runs");
            },
            &mut || own_stream.synchronize().expect("the stream runs"),
        ],
    );
    compare_memory(stream, &own_stream, &session);
    compare_launch(stream, &own_stream, &session);
    compare(
        "aclrtQueryEventStatus",
        // SAFETY: as above.
        [&mut || checked(unsafe { aclrtQueryEventStatus(event, &raw mut status) }), &mut || {}],
        [&mut || assert!(own_event.is_complete()), &mut nothing],
    );
    compare_jump();
}

//! One AICPU instance, from the driver's call to its return, and the contract with the driver stack.
//!
//! The launch sequence is in facts/cann.md. What an image exports:
//!
//! | symbol | called | does |
//! |---|---|---|
//! | `StaticTileFwkBackendKernelServer` | looked up when the image is loaded | nothing; 0 |
//! | `DynTileFwkBackendKernelServerInit` | at the bootstrap, and once a device | writes the image where the bootstrap's device arguments say, else installs the log rings |
//! | `DynTileFwkBackendKernelServer` | by every AICPU instance of a launch, with the same pointer | runs it |
//! | `pto_aicpu_run_launch` | by our own loaders, with the launch words themselves | runs it |
//!
//! `pto_aicpu_run_launch` returns 0, -1 for a null or misaligned pointer, or the code of the fault that ended the run
//! (positive). `DynTileFwkBackendKernelServer` returns 0 for a fault as well, if the host finds it in GM: what it
//! returns otherwise is an AICPU exception to the driver, after which the device has to be reset. The initialisation
//! returns 0, -1 without arguments, or what `pto_abi::bootstrap` names.
//!
//! The host resets the handshake lines before it launches the AICores, which precede this launch: a core that
//! starts must not answer a greeting of an earlier bring-up, whose exit signal may still be in its doorbell.
//!
//! *Inferred*, for want of a device: that all instances of a launch get the same pointer and nothing that
//! distinguishes them (so that `LaunchWords.tickets` numbers them, in the order of their arrival); that
//! the arguments are readable at that pointer for as long as the call lasts; that word 48 of them is free for
//! us, after the dispatcher's at 40; that a fresh launch of the AICores precedes each launch here, so that the
//! host takes a new bring-up epoch for each and leaves `KEEP_CORES` off.

use core::ffi::c_void;

use crate::c_builder::DeviceBuilders;
use pto_abi::bootstrap::ARGS_DEVICE_ARGS;
use pto_abi::launch_words::ARGS_LAUNCH_OFFSET;
use pto_abi::{FanoutStrategy, Fault};
use pto_aicpu_fw::blame::Blame;
use pto_aicpu_fw::{FanoutPolicy, Instance, Launch, LockFree, Locked, instance, run};
use pto_graph::BuilderSet;

use crate::cann::builders::FreshReads;
use crate::cann::launch::AcceptedWords;
use crate::cann::platform::RegisterPlatform;
use crate::cann::{clock, logging};

/// What a run returns for a pointer that cannot be one.
pub const NO_ARGUMENTS: i32 = -1;

/// `DynTileFwkBackendKernelServerInit`: the bootstrap, if the arguments name device arguments of one.
///
/// # Safety
/// `args` is null, or points to arguments with an address or zero at [`ARGS_DEVICE_ARGS`]. Device arguments that are named there are as
/// `pto_abi::bootstrap` says, and the firmware is mapped where they say.
#[must_use]
pub unsafe fn init(args: *mut c_void) -> i32 {
    // SAFETY: by this function's contract.
    let Some(device_args) = (unsafe { argument(args, ARGS_DEVICE_ARGS) }) else {
        return NO_ARGUMENTS;
    };
    if device_args != 0 {
        // SAFETY: by this function's contract.
        #[cfg(target_os = "linux")]
        return unsafe { crate::cann::install::install(device_args) };
    }
    logging::install();
    0
}

/// The word at `offset` of the arguments.
///
/// # Safety
/// `args` is null, or points to arguments that reach that far.
unsafe fn argument(args: *mut c_void, offset: usize) -> Option<usize> {
    if args.is_null() || !args.cast::<u64>().is_aligned() {
        return None;
    }
    let word = args.cast::<u8>().wrapping_add(offset).cast::<u64>();
    // SAFETY: the arguments reach that far, by this function's contract. Volatile: the host wrote them.
    usize::try_from(unsafe { word.read_volatile() }).ok()
}

/// `DynTileFwkBackendKernelServer`: the address of the launch words is among the arguments.
///
/// # Safety
/// `args` is null, or points to arguments with the address of launch words at
/// [`ARGS_LAUNCH_OFFSET`]; these are as [`run_launch`] requires.
#[must_use]
pub unsafe fn run_args<B: BuilderSet>(args: *mut c_void, builders: B) -> i32 {
    // SAFETY: by this function's contract.
    let words = unsafe { argument(args, ARGS_LAUNCH_OFFSET) };
    let Some(words) = words else { return NO_ARGUMENTS };
    // SAFETY: by this function's contract.
    let code = unsafe { run_launch(core::ptr::with_exposed_provenance_mut(words), builders) };
    // Words that are no launch words hold no fault either.
    let is_in_gm = code > 0 && u32::try_from(code) != Ok(Fault::LAUNCH_MAGIC.code());
    if is_in_gm { 0 } else { code }
}

/// `pto_aicpu_run_launch`: one instance of a launch.
///
/// # Safety
/// `words` is null, or a `LaunchWords` is mapped there; GM and the register window are mapped where it says,
/// until the image is unloaded.
#[must_use]
pub unsafe fn run_launch<B: BuilderSet>(words: *mut c_void, builders: B) -> i32 {
    let words = words.cast::<u8>();
    if words.is_null() || !words.addr().is_multiple_of(64) {
        return NO_ARGUMENTS;
    }
    logging::install();
    // SAFETY: by this function's contract.
    match unsafe { AcceptedWords::accept(words) } {
        Ok(words) => code(take_part(&words, builders)),
        Err(fault) => code(Err(fault)),
    }
}

fn code(result: Result<(), Fault>) -> i32 {
    // The table's codes are far below the sign.
    result.map_or_else(|fault| i32::try_from(fault.code()).unwrap_or(i32::MAX), |()| 0)
}

/// Takes a ticket and is that instance until the run is over.
fn take_part<B: BuilderSet>(words: &AcceptedWords, builders: B) -> Result<(), Fault> {
    let me = words.tickets.take();
    words.coherence.enter(&words.arena, words.freshness);
    let accepted = Launch::accept(words.arena)
        .and_then(|launch| words.check_positions(&launch).map(|()| launch));
    let launch = match accepted {
        Ok(launch) => launch,
        Err(blame) => return Err(refuse(words, &blame, me)),
    };
    if me >= launch.aicpu_instances {
        // The host launched more instances than the run has: this one has no part in it.
        return Ok(());
    }
    let instances = launch.aicpu_instances;
    let result = match launch.fanout {
        FanoutStrategy::LOCKED => run_instance::<Locked, B>(words, launch, me, builders),
        _ => run_instance::<LockFree, B>(words, launch, me, builders),
    };
    if words.tickets.give_back(instances) {
        words.write_back();
    }
    result
}

/// Every instance refuses alike; the first one writes the epitaph.
#[cold]
fn refuse(words: &AcceptedWords, blame: &Blame, me: u32) -> Fault {
    instance::refuse(&words.arena, blame, me, clock::now_ns());
    words.write_back();
    blame.fault
}

#[inline(never)]
fn run_instance<F: FanoutPolicy, B: BuilderSet>(
    words: &AcceptedWords,
    launch: Launch<'static>,
    me: u32,
    builders: B,
) -> Result<(), Fault> {
    let arena = launch.arena;
    let ring = arena.log_ring(launch.log_region(), me as usize);
    let _log = ring.and_then(logging::attach);
    let reads = FreshReads { gm: arena.gm(), coherence: words.coherence };
    let builders = DeviceBuilders::new(builders, arena.window(), reads);
    let platform = RegisterPlatform::new(arena.workers(), words.registers, &words.positions)
        .in_memory(arena.gm(), words.coherence);
    run(Instance::<_, F>::new(launch, me, platform), &builders)
}

/// The panic handler of an image. No image reaches it (the test on the linked image proves that it is not even
/// there); were it reached, the driver would see an AICPU exception.
pub fn unreachable_panic() -> ! {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: raises an exception, from which nothing returns.
    unsafe {
        core::arch::asm!("brk #0xf01", options(noreturn));
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: raises an exception, from which nothing returns.
    unsafe {
        core::arch::asm!("ud2", options(noreturn));
    }
    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    loop {
        core::hint::spin_loop();
    }
}

//! Which build belongs to which runtime, while a builder in C is on the stack.
//!
//! C passes back only the runtime's address. A table of slots finds the build: a slot is taken before the builder
//! is called, and freed when it has returned.

use core::ffi::c_void;

use pto_abi::sync::{AtomicU64, Ordering};
use pto_native::foreign::{Build, Finder};

/// Builders in C that run at once in one process: one for each device.
const MAX_BUILDS: usize = 4;

struct BuildSlot {
    /// Address of the runtime; zero: free.
    runtime: AtomicU64,
    /// Address of the `Build` on the stack of `with`.
    build: AtomicU64,
}

static TABLE: [BuildSlot; MAX_BUILDS] =
    [const { BuildSlot { runtime: AtomicU64::new(0), build: AtomicU64::new(0) } }; MAX_BUILDS];

/// Calls `program` while the functions that C calls find `build` by `runtime`. `None`: all slots are taken, and
/// nothing was called.
pub(crate) fn with<R>(
    runtime: *mut c_void,
    build: &mut Build<'_>,
    program: impl FnOnce() -> R,
) -> Option<R> {
    let free = |slot: &&BuildSlot| {
        let runtime = runtime.addr() as u64;
        // Acquire: pairs with the Release store below; the builder before is done with the slot.
        slot.runtime.compare_exchange(0, runtime, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    let slot = TABLE.iter().find(free)?;
    let build = core::ptr::from_mut(build).expose_provenance() as u64;
    // Relaxed: only this thread looks for this runtime.
    slot.build.store(build, Ordering::Relaxed);
    let returned = program();
    slot.runtime.store(0, Ordering::Release);
    Some(returned)
}

/// The builder in C that calls: it is on the stack of the thread that calls, and makes one call after the other.
pub(crate) struct CurrentBuild;

impl Finder for CurrentBuild {
    fn find<R>(runtime: *mut c_void, failed: R, act: impl FnOnce(&mut Build<'_>) -> R) -> R {
        let address = runtime.addr() as u64;
        let is_ours = |slot: &&BuildSlot| slot.runtime.load(Ordering::Relaxed) == address;
        let slot = TABLE.iter().find(is_ours).filter(|_| address != 0);
        let build = slot.and_then(|slot| usize::try_from(slot.build.load(Ordering::Relaxed)).ok());
        let Some(build) = build else { return failed };
        let build = core::ptr::with_exposed_provenance_mut::<Build<'_>>(build);
        // SAFETY: `with` is below on the stack of this thread, so that its `Build` lives; the calls of a builder follow
        // one another (`include/pto_firmware.h`), so that there is no other reference.
        act(unsafe { &mut *build })
    }
}

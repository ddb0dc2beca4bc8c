//! Waking a vCPU that naps: a software-generated interrupt, which ends WFI without being taken.
//!
//! The sleeper says so in its flag and sleeps; who has something for it looks at the flag. Nothing orders the
//! two, so that now and then a wake is missed: the timer ends every nap (see `timer.rs`).

use pto_abi::fw_image::qemu;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::sync::{AtomicU32, Ordering};

/// Interrupt ids from here on say that there is none.
const SPECIAL_INTERRUPTS: u64 = 1020;

/// A flag in a line of its own.
#[repr(align(64))]
struct Flag(AtomicU32);

/// Whether each vCPU naps.
static NAPPING: [Flag; qemu::MAX_VCPUS] = [const { Flag(AtomicU32::new(0)) }; qemu::MAX_VCPUS];
/// Which vCPU schedules each worker, plus one; zero: none yet.
static OWNERS: [Flag; MAX_WORKERS] = [const { Flag(AtomicU32::new(0)) }; MAX_WORKERS];

/// Lets `sleep` sleep as vCPU `index`, so that others can wake it.
pub(crate) fn nap_with(index: usize, sleep: impl FnOnce()) {
    let Some(Flag(flag)) = NAPPING.get(index) else { return sleep() };
    flag.store(1, Ordering::Relaxed);
    sleep();
    flag.store(0, Ordering::Relaxed);
    acknowledge();
}

/// Wakes a vCPU, if it naps.
#[inline]
pub(crate) fn wake(index: usize) {
    if NAPPING.get(index).is_some_and(|flag| flag.0.load(Ordering::Relaxed) != 0) {
        interrupt(index as u64);
    }
}

/// The scheduler on vCPU `owner` schedules `worker` from now on.
pub(crate) fn own(owner: usize, worker: u32) {
    if let Some(Flag(entry)) = OWNERS.get(worker as usize) {
        entry.store(u32::try_from(owner + 1).unwrap_or(0), Ordering::Relaxed);
    }
}

/// `worker` has something for its scheduler.
#[inline]
pub(crate) fn wake_owner(worker: u32) {
    if let Some(Flag(entry)) = OWNERS.get(worker as usize) {
        wake((entry.load(Ordering::Relaxed) as usize).wrapping_sub(1));
    }
}

/// `ICC_SGI1R_EL1`: interrupt 0 to one vCPU, numbered as in `psci.rs`.
#[cold]
fn interrupt(index: u64) {
    write_register!("s3_0_c12_c11_5", 1 << (index & 15) | (index >> 4) << 16);
}

/// Takes what is pending off the interrupt controller: `ICC_IAR1_EL1`, `ICC_EOIR1_EL1`.
fn acknowledge() {
    for _ in 0..4 {
        let id = read_register!("s3_0_c12_c12_0");
        if id >= SPECIAL_INTERRUPTS {
            return;
        }
        write_register!("s3_0_c12_c12_1", id);
    }
}

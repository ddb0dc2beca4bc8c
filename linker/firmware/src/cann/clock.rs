//! The clock: the system counter, the same on every AICPU core (50 MHz on a2a3).

const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds since the counter started.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    nanoseconds(ticks(), frequency())
}

/// `ticks` of a counter of `hz`; zero of no counter.
fn nanoseconds(ticks: u64, hz: u64) -> u64 {
    let Some(hz) = core::num::NonZeroU64::new(hz) else { return 0 };
    // A frequency fits 32 bits, so that the product does not overflow.
    (ticks / hz).wrapping_mul(NS_PER_S).wrapping_add((ticks % hz).wrapping_mul(NS_PER_S) / hz)
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn ticks() -> u64 {
    let ticks;
    // SAFETY: Linux lets user space read the counter.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn frequency() -> u64 {
    let hz;
    // SAFETY: as in `ticks`.
    unsafe {
        core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(pure, nomem, nostack, preserves_flags));
    }
    hz
}

/// An image for the development machine: the system's clock, because the frequency of the processor's counter is not known.
#[cfg(all(target_arch = "x86_64", target_os = "linux", panic = "abort"))]
fn ticks() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that every Linux has, and memory for its time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs().wrapping_mul(NS_PER_S).wrapping_add(now.tv_nsec.unsigned_abs())
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", panic = "abort"))]
const fn frequency() -> u64 {
    NS_PER_S
}

/// Without the counter (unit tests on another machine): each look is a microsecond later than the one before.
#[cfg(not(any(
    target_arch = "aarch64",
    all(target_arch = "x86_64", target_os = "linux", panic = "abort")
)))]
fn ticks() -> u64 {
    use pto_abi::sync::{AtomicU64, Ordering};
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    LOOKS.fetch_add(1, Ordering::Relaxed)
}

#[cfg(not(any(
    target_arch = "aarch64",
    all(target_arch = "x86_64", target_os = "linux", panic = "abort")
)))]
const fn frequency() -> u64 {
    1_000_000
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn ticks_become_nanoseconds_without_loss() {
        assert_eq!(nanoseconds(1, 50_000_000), 20);
        assert_eq!(
            nanoseconds(50_000_000 * 86_400 * 365, 50_000_000),
            86_400 * 365 * 1_000_000_000
        );
        assert_eq!(nanoseconds(62_499_999, 62_500_000), 999_999_984);
        assert_eq!(nanoseconds(7, 0), 0);
    }
}

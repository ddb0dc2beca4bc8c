//! The clock (CNTVCT), and sleep: WFI until the virtual timer's interrupt, or that of another vCPU
//! (`wake.rs`), is pending. Interrupts stay masked: none is taken.

use core::arch::asm;

use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::wait::{self, SpinPolicy};

use crate::qemu::address::address;
use crate::qemu::{vcpu, wake};

/// The GICv3's distributor; QEMU's machine `virt` has it here.
pub(crate) const GIC_ADDRESS: u64 = 0x0800_0000;
const REDISTRIBUTORS: u64 = 0x080A_0000;
const REDISTRIBUTOR_STRIDE: u64 = 0x2_0000;
/// From a redistributor to its frame of private interrupts.
const PRIVATE_FRAME: u64 = 0x1_0000;
const GICD_CTLR: u64 = 0x0000;
const GICR_WAKER: u64 = 0x0014;
const GICR_IGROUPR0: u64 = 0x0080;
const GICR_ISENABLER0: u64 = 0x0100;
/// The interrupt by which vCPUs wake each other.
const WAKE_INTERRUPT: u32 = 0;
/// The virtual timer's private interrupt.
const TIMER_INTERRUPT: u32 = 27;
const ENABLED: u32 = 1 << TIMER_INTERRUPT | 1 << WAKE_INTERRUPT;
/// How often a redistributor is asked whether it is awake.
const WAKE_POLLS: u32 = 100_000;

/// A sleep in a run: 50 us after 200 empty polls keeps the mailbox round trip at 0.5 us on two host CPUs with
/// four vCPUs (facts/toolchain.md), and lets the others run.
pub(crate) const SLEEP_NS: u64 = 50_000;
/// Empty polls before a sleep.
const POLICY: SpinPolicy = SpinPolicy { spins: 200, yields: 0 };
/// A sleep between runs: 16 vCPUs that wake 500 times a second each cost the host little.
pub(crate) const LONG_SLEEP_NS: u64 = 2_000_000;

/// Nanoseconds in a tick, times 2^32.
static NS_PER_TICK: AtomicU64 = AtomicU64::new(0);

/// Learns the clock's frequency, which it returns. Once, on vCPU 0.
pub(crate) fn learn_frequency() -> u32 {
    let hz = read_register!("cntfrq_el0");
    let scale = (1_000_000_000_u64 << 32).checked_div(hz).unwrap_or(0);
    NS_PER_TICK.store(scale, Ordering::Relaxed);
    u32::try_from(hz).unwrap_or(u32::MAX)
}

/// The clock, in ticks.
#[inline]
pub(crate) fn ticks() -> u64 {
    read_register!("cntvct_el0")
}

/// The clock, in nanoseconds since power-on; the same on all vCPUs.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let scaled = u128::from(ticks()) * u128::from(NS_PER_TICK.load(Ordering::Relaxed));
    // 584 years fit.
    u64::try_from(scaled >> 32).unwrap_or(u64::MAX)
}

/// Lets the timer of vCPU `index` wake it from WFI.
pub(crate) fn enable(index: u64) {
    // Affinity routing, group 1.
    update(GIC_ADDRESS + GICD_CTLR, |control| control | 1 << 4 | 1 << 1);
    let redistributor = REDISTRIBUTORS + index * REDISTRIBUTOR_STRIDE;
    update(redistributor + GICR_WAKER, |waker| waker & !(1 << 1));
    for _ in 0..WAKE_POLLS {
        if load(redistributor + GICR_WAKER) & 1 << 2 == 0 {
            break;
        }
    }
    let private = redistributor + PRIVATE_FRAME;
    update(private + GICR_IGROUPR0, |groups| groups | ENABLED);
    store(private + GICR_ISENABLER0, ENABLED);
    // ICC_SRE_EL1: by system registers. ICC_PMR_EL1: every priority. ICC_IGRPEN1_EL1: group 1.
    write_register!("s3_0_c12_c12_5", 7);
    write_register!("s3_0_c4_c6_0", 0xFF);
    write_register!("s3_0_c12_c12_7", 1);
}

/// Sleeps for about `ns`.
pub(crate) fn sleep(ns: u64) {
    wake::nap_with(vcpu::current().index, || wait_for_timer(ns));
}

fn wait_for_timer(ns: u64) {
    let hz = read_register!("cntfrq_el0");
    write_register!("cntv_tval_el0", ns.saturating_mul(hz) / 1_000_000_000);
    write_register!("cntv_ctl_el0", 1);
    // SAFETY: waits for the timer; interrupts are masked, so that execution goes on here.
    unsafe { asm!("wfi", options(nomem, nostack, preserves_flags)) };
    // The interrupt is level-triggered: with the timer off it is pending no more.
    write_register!("cntv_ctl_el0", 0);
}

/// Polls a while, then sleeps.
pub(crate) struct Backoff {
    polls: wait::Backoff,
    sleep_ns: u64,
    longest_ns: u64,
}

impl Backoff {
    /// For waiting in a run.
    pub(crate) const fn in_run() -> Self {
        Self { polls: wait::Backoff::new(POLICY), sleep_ns: SLEEP_NS, longest_ns: SLEEP_NS }
    }

    /// For waiting between runs: sleeps grow while nothing comes.
    pub(crate) const fn between_runs() -> Self {
        Self { polls: wait::Backoff::new(POLICY), sleep_ns: SLEEP_NS, longest_ns: LONG_SLEEP_NS }
    }

    /// There was something to do.
    #[inline]
    pub(crate) const fn reset(&mut self) {
        self.polls.reset();
    }

    /// There was nothing to do; whether it slept.
    #[inline]
    pub(crate) fn relax(&mut self) -> bool {
        if !self.polls.wait(|| {}) {
            return false;
        }
        sleep(self.sleep_ns);
        self.sleep_ns = self.longest_ns.min(self.sleep_ns + self.sleep_ns / 16);
        true
    }
}

fn update(at: u64, change: impl Fn(u32) -> u32) {
    store(at, change(load(at)));
}

fn load(at: u64) -> u32 {
    let register = core::ptr::with_exposed_provenance::<u32>(address(at));
    // SAFETY: a register of the GIC, mapped as device memory; reading those used here changes nothing.
    unsafe { register.read_volatile() }
}

fn store(at: u64, value: u32) {
    let register = core::ptr::with_exposed_provenance_mut::<u32>(address(at));
    // SAFETY: a register of the GIC, mapped as device memory; this file alone uses the GIC.
    unsafe { register.write_volatile(value) };
}

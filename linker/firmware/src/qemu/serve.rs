//! What every vCPU does: boot, then wait for orders and take part in each, as AICPU instance or as worker.
//!
//! ```text
//! COLD: boot -> READY <--------------------------------------------.
//!                 |  look: an order                                |
//!                 |--> the only vCPU: solo::take_part (all instances and workers in turn)
//!                 |--> index < aicpu_instances: instance::take_part (INSTANCE)
//!                 |--> worker (vcpus - 1 - index): worker::take_part (WORKER), until it quits or an order comes
//!                 `--> neither --------------------------------------> done
//! RECOVERED: instance::give_up | worker::give_up ------------------> done
//! ```
//! Workers are counted from the last vCPU, so that a worker stays on its vCPU however many instances a run has.

use pto_abi::fw_image::{FW_STARTED, LaunchOrder, VCPU_INSTANCE, VCPU_READY, VCPU_WORKER};
use pto_abi::sync::Ordering;
use pto_graph::BuilderSet;

use crate::qemu::entry::ARRIVAL_RECOVERED;
use crate::qemu::timer::{self, Backoff};
use crate::qemu::vcpu::{self, Vcpu};
use crate::qemu::{instance, logging, psci, solo, uart, worker};

/// Runs vCPU `index` for good. `arrival` says whether it comes from reset or out of an exception.
pub fn serve<B: BuilderSet + Copy>(index: u64, arrival: u64, builders: B) -> ! {
    let me = vcpu::current();
    if arrival == ARRIVAL_RECOVERED {
        give_up(me);
    } else {
        boot(me, index);
    }
    me.line.state.store(VCPU_READY, Ordering::Relaxed);
    let mut backoff = Backoff::between_runs();
    loop {
        let seen = me.line.seen.load(Ordering::Relaxed);
        let Some(order) = vcpu::boot_block().launch.look(seen) else {
            if backoff.relax() {
                me.count_nap();
            }
            continue;
        };
        me.take_up(&order);
        me.line.seen_ticks.store(timer::ticks(), Ordering::Relaxed);
        // Release: pairs with the host's Acquire load in `boot::have_seen`; no earlier arena is touched any more.
        me.line.seen.store(order.sequence, Ordering::Release);
        take_part(me, &order, builders);
        finish(me);
        backoff = Backoff::between_runs();
    }
}

fn boot(me: Vcpu, index: u64) {
    if index == 0 {
        let firmware = &vcpu::boot_block().firmware;
        firmware.clock_hz.store(timer::learn_frequency(), Ordering::Relaxed);
        logging::install();
        let vcpus = vcpu::boot_block().header.vcpus.load(Ordering::Relaxed);
        for other in 1..u64::from(vcpus) {
            if !psci::start(other) {
                uart::line(format_args!("vcpu {other}: PSCI does not start it"));
            }
        }
        firmware.started_ticks.store(timer::ticks(), Ordering::Relaxed);
        // Release: pairs with the host's Acquire load in `boot::state`.
        firmware.state.store(FW_STARTED, Ordering::Release);
    }
    timer::enable(index);
    me.line.ready_ticks.store(timer::ticks(), Ordering::Relaxed);
    // Release: pairs with the host's Acquire load in `boot::state`.
    me.line.state.store(VCPU_READY, Ordering::Release);
}

fn take_part<B: BuilderSet>(me: Vcpu, order: &LaunchOrder, builders: B) {
    let Some(arena) = vcpu::arena_of(order) else { return };
    let config = arena.config();
    let vcpus = vcpu::boot_block().header.vcpus.load(Ordering::Relaxed);
    let instances = config.aicpu_instances;
    let Ok(index) = u32::try_from(me.index) else { return };
    let from_last = vcpus.wrapping_sub(1).wrapping_sub(index);
    if vcpus == 1 {
        assume(me, VCPU_INSTANCE, 0);
        solo::take_part(me, arena, builders);
    } else if index < instances || index == 0 {
        assume(me, VCPU_INSTANCE, index);
        instance::take_part(me, arena, builders);
    } else if from_last < config.worker_count {
        assume(me, VCPU_WORKER, from_last);
        worker::take_part(me, arena, from_last);
    }
}

fn assume(me: Vcpu, state: u32, role: u32) {
    me.line.role.store(role, Ordering::Relaxed);
    // Release: pairs with the host's Acquire load in `boot::state`.
    me.line.state.store(state, Ordering::Release);
}

/// The vCPU has done its part of the order.
fn finish(me: Vcpu) {
    me.set_log_ring(None);
    me.line.state.store(VCPU_READY, Ordering::Relaxed);
    let seen = me.line.seen.load(Ordering::Relaxed);
    // Release: pairs with the host's Acquire load in `boot::have_done`.
    me.line.done.store(seen, Ordering::Release);
}

/// After an exception: leaves the run that the vCPU was part of.
fn give_up(me: Vcpu) {
    if let Some(arena) = me.arena() {
        let role = me.line.role.load(Ordering::Relaxed);
        match me.line.state.load(Ordering::Relaxed) {
            VCPU_INSTANCE => instance::give_up(arena, role),
            VCPU_WORKER => worker::give_up(&arena, role),
            _ => {}
        }
    }
    finish(me);
}

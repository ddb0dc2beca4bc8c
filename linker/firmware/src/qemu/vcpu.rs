//! What belongs to one vCPU: its lines in the boot block, the order that it serves, its log ring.

use core::cell::Cell;
use core::mem::offset_of;

use pto_abi::GmWindow;
use pto_abi::arena::Arena;
use pto_abi::fw_image::{
    BOOT_MAGIC, BootBlock, BootHeader, ExceptionFrame, FW_REFUSED, FW_STARTED, LaunchOrder,
    VcpuLine, qemu,
};
use pto_abi::layout::LAYOUT_HASH;
use pto_abi::log_ring::LogRing;
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};
use pto_abi::sync::Ordering;

use crate::qemu::address::address;
use crate::qemu::semihosting;

/// The exit status when the boot header is refused.
const EXIT_REFUSED: u64 = 0x71;

/// One vCPU's view of itself.
#[derive(Clone, Copy)]
pub(crate) struct Vcpu {
    pub(crate) index: usize,
    pub(crate) line: &'static VcpuLine,
    pub(crate) exceptions: &'static ExceptionFrame,
    state: &'static VcpuState,
}

/// What only the vCPU itself touches; in a line of its own.
#[repr(align(64))]
struct VcpuState {
    order: Cell<Option<LaunchOrder>>,
    log: Cell<Option<LogRing<'static>>>,
}

/// One [`VcpuState`] per vCPU.
struct VcpuStates([VcpuState; qemu::MAX_VCPUS]);

// SAFETY: each vCPU touches its own entry only (`current` is the only way to one).
unsafe impl Sync for VcpuStates {}

static STATES: VcpuStates = VcpuStates(
    [const { VcpuState { order: Cell::new(None), log: Cell::new(None) } }; qemu::MAX_VCPUS],
);

/// The boot block.
pub(crate) fn boot_block() -> &'static BootBlock {
    let block = core::ptr::with_exposed_provenance::<BootBlock>(address(qemu::BOOT_BLOCK_ADDRESS));
    // SAFETY: the memory map keeps these pages for the block, always; it is made of atomics.
    unsafe { &*block }
}

/// The vCPU that this code runs on.
pub(crate) fn current() -> Vcpu {
    let index = address(read_register!("tpidr_el1")) % qemu::MAX_VCPUS;
    let block = boot_block();
    Vcpu {
        index,
        line: &block.vcpus[index],
        exceptions: &block.exceptions[index],
        state: &STATES.0[index],
    }
}

impl Vcpu {
    /// The host sees by the count that an idle vCPU lives.
    pub(crate) fn count_nap(&self) {
        let naps = &self.line.naps;
        naps.store(naps.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The order that the vCPU serves.
    pub(crate) fn order(&self) -> Option<LaunchOrder> {
        self.state.order.get()
    }

    /// Takes up an order: from now on the vCPU touches no earlier arena.
    pub(crate) fn take_up(&self, order: &LaunchOrder) {
        self.state.order.set(Some(*order));
    }

    /// Where the vCPU's log goes.
    pub(crate) fn log_ring(&self) -> Option<LogRing<'static>> {
        self.state.log.get()
    }

    /// What the vCPU logs from now on goes there.
    pub(crate) fn set_log_ring(&self, ring: Option<LogRing<'static>>) {
        self.state.log.set(ring);
    }

    /// The arena of the order that the vCPU serves.
    pub(crate) fn arena(&self) -> Option<Arena<'static>> {
        arena_of(&self.order()?)
    }
}

/// The arena of an order; `None`: the order lets go, or GM does not hold the arena.
pub(crate) fn arena_of(order: &LaunchOrder) -> Option<Arena<'static>> {
    let ram_bytes = boot_block().header.ram_bytes.load(Ordering::Relaxed);
    let ram_end = qemu::RAM_ADDRESS.checked_add(ram_bytes)?;
    let gm_end = order.gm_address.0.checked_add(order.gm_bytes)?;
    let is_gm = order.gm_address.0 >= qemu::GM_ADDRESS && gm_end <= ram_end;
    if !is_gm || order.arena_address.is_null() || !order.gm_address.0.is_multiple_of(64) {
        return None;
    }
    let start = core::ptr::with_exposed_provenance_mut::<u8>(address(order.gm_address.0));
    // SAFETY: the range is in GM, which is mapped and reached through windows only.
    let gm = unsafe { GmWindow::from_raw(start, order.gm_bytes, order.gm_address) };
    Arena::new(gm, order.arena_address, order.arena_bytes)
}

/// Checks what the host says of the machine, before anything relies on it; returns the size of RAM. A wrong
/// field ends the machine, and is reported in the firmware's line.
pub(crate) fn accept_boot_header(entry_ticks: u64) -> u64 {
    let BootBlock { header, firmware, .. } = boot_block();
    firmware.entry_ticks.store(entry_ticks, Ordering::Relaxed);
    let abi = u64::from(ABI_MAJOR) << 16 | u64::from(ABI_MINOR);
    let ram_bytes = header.ram_bytes.load(Ordering::Relaxed);
    let vcpus = header.vcpus.load(Ordering::Relaxed).into();
    let checks = [
        (offset_of!(BootHeader, magic), header.magic.load(Ordering::Relaxed), BOOT_MAGIC),
        (offset_of!(BootHeader, abi), header.abi.load(Ordering::Relaxed).into(), abi),
        (
            offset_of!(BootHeader, layout_hash),
            header.layout_hash.load(Ordering::Relaxed),
            LAYOUT_HASH,
        ),
        (offset_of!(BootHeader, vcpus), vcpus, vcpus.clamp(1, qemu::MAX_VCPUS as u64)),
        (offset_of!(BootHeader, ram_bytes), ram_bytes, usable(ram_bytes)),
    ];
    for (field, found, expected) in checks {
        if found != expected {
            let [where_, what] = &firmware.refused;
            where_.store(field as u64, Ordering::Relaxed);
            what.store(found, Ordering::Relaxed);
            // Release: pairs with the host's Acquire load in `boot::state`.
            firmware.state.store(FW_REFUSED, Ordering::Release);
            semihosting::exit(EXIT_REFUSED);
        }
    }
    firmware.state.store(FW_STARTED, Ordering::Release);
    ram_bytes
}

/// The size of RAM that comes closest to `bytes` and can be mapped.
fn usable(bytes: u64) -> u64 {
    let smallest = qemu::GM_ADDRESS - qemu::RAM_ADDRESS + qemu::RAM_GRANULE;
    bytes.clamp(smallest, qemu::MAX_RAM_BYTES) & !(qemu::RAM_GRANULE - 1)
}

//! How host and image meet on the device `qemu`, before there is an arena: the memory map ([`qemu`]) and the
//! pages that both know ([`BootBlock`]).
//!
//! ```text
//! host                                       image
//! header, then start QEMU  ----------------> checks it; state = REFUSED, or each vCPU: READY
//! LaunchLine::post(order)  ----------------> LaunchLine::look: seen = sequence, takes its part
//! VcpuLine::done of the instances <--------- done = sequence
//!                          <---------------- ExceptionFrame, stamp last
//! ```
//! Every line has one writer, and nothing here needs a read-modify-write: host and guest must not share
//! those under every accelerator (facts/toolchain.md, the trap).

use crate::ids::GmAddr;
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The memory map of the device `qemu`; the linker script of its image is generated from this.
pub mod qemu {
    /// First address of RAM, offset 0 of the shared file. QEMU puts its device tree here.
    pub const RAM_ADDRESS: u64 = 0x4000_0000;
    /// Where the `BootBlock` is; QEMU's device tree takes at most 1 MiB.
    pub const BOOT_BLOCK_ADDRESS: u64 = RAM_ADDRESS + (1 << 20);
    /// Where the image is linked.
    pub const IMAGE_ADDRESS: u64 = RAM_ADDRESS + (2 << 20);
    /// Room for the image: one table of pages.
    pub const IMAGE_BYTES: u64 = 2 << 20;
    /// The stacks of all vCPUs, with their gaps.
    pub const STACKS_ADDRESS: u64 = IMAGE_ADDRESS + IMAGE_BYTES;
    /// From one vCPU's stack to the next: gap, stack, gap, exception stack. A scheduler takes 40 KiB of it,
    /// the rest is for builders: the expansion of a plan takes 10 KiB for each of up to 32 levels of loops.
    pub const STACK_STRIDE: u64 = 512 << 10;
    /// A guard gap: one page that is not mapped.
    pub const STACK_GAP: u64 = PAGE_BYTES;
    /// The stack on which exceptions are taken.
    pub const EXCEPTION_STACK_BYTES: u64 = 2 * PAGE_BYTES;
    /// Bytes of a page.
    pub const PAGE_BYTES: u64 = 4096;
    /// vCPUs that the image provides for.
    pub const MAX_VCPUS: usize = 64;
    /// Where GM begins: the rest of RAM.
    pub const GM_ADDRESS: u64 = STACKS_ADDRESS + STACK_STRIDE * MAX_VCPUS as u64;
    /// RAM is a multiple of this (a block of the page tables).
    pub const RAM_GRANULE: u64 = 2 << 20;
    /// The most RAM that the image maps.
    pub const MAX_RAM_BYTES: u64 = 8 << 30;
}

/// `BootHeader::magic`: "PTOBOOT1", little-endian.
pub const BOOT_MAGIC: u64 = u64::from_le_bytes(*b"PTOBOOT1");
/// `FirmwareLine::state`: the image has not started.
pub const FW_OFF: u32 = 0;
/// `FirmwareLine::state`: the image runs and starts its vCPUs.
pub const FW_STARTED: u32 = 1;
/// `FirmwareLine::state`: the image does not accept the boot header; it has ended.
pub const FW_REFUSED: u32 = 2;
/// `VcpuLine::state`: not started.
pub const VCPU_OFF: u32 = 0;
/// `VcpuLine::state`: waits for a launch.
pub const VCPU_READY: u32 = 1;
/// `VcpuLine::state`: runs AICPU instance `VcpuLine::role`.
pub const VCPU_INSTANCE: u32 = 2;
/// `VcpuLine::state`: is worker `VcpuLine::role`.
pub const VCPU_WORKER: u32 = 3;
/// `VcpuLine::state`: stopped for good, after an exception in the handler of another one.
pub const VCPU_DEAD: u32 = 4;

shared_struct! {
    /// What the host says before it starts the machine; never written again.
    pub struct BootHeader [size = 64, align = 64] {
        /// [`BOOT_MAGIC`].
        0 => magic: AtomicU64,
        /// `ABI_MAJOR << 16 | ABI_MINOR`.
        8 => abi: AtomicU32,
        /// How many vCPUs the machine has.
        12 => vcpus: AtomicU32,
        /// `layout::LAYOUT_HASH`.
        16 => layout_hash: AtomicU64,
        /// Size of RAM.
        24 => ram_bytes: AtomicU64,
        /// Not used; zero.
        32 => reserved: [AtomicU64; 4],
    }
}

shared_struct! {
    /// What the image as a whole says; written by vCPU 0.
    pub struct FirmwareLine [size = 64, align = 64] {
        /// [`FW_OFF`] .. [`FW_REFUSED`].
        0 => state: AtomicU32,
        /// Ticks of the clock in a second.
        4 => clock_hz: AtomicU32,
        /// The clock at the first instruction.
        8 => entry_ticks: AtomicU64,
        /// The clock when all vCPUs had been started.
        16 => started_ticks: AtomicU64,
        /// In [`FW_REFUSED`]: offset of the field of `BootHeader`, and its value.
        24 => refused: [AtomicU64; 2],
        /// Not used; zero.
        40 => reserved: [AtomicU64; 3],
    }
}

shared_struct! {
    /// The host's order to run an arena.
    pub struct LaunchLine [size = 64, align = 64] {
        /// Counts the orders; zero: none, or one is being written.
        0 => sequence: AtomicU32,
        /// Not used; zero.
        4 => reserved_word: AtomicU32,
        /// Address of the arena; zero: let go of the one before.
        8 => arena_address: AtomicU64,
        /// Size of the arena.
        16 => arena_bytes: AtomicU64,
        /// First address of GM.
        24 => gm_address: AtomicU64,
        /// Size of GM.
        32 => gm_bytes: AtomicU64,
        /// Not used; zero.
        40 => reserved: [AtomicU64; 3],
    }
}

shared_struct! {
    /// What one vCPU says of itself.
    pub struct VcpuLine [size = 64, align = 64] {
        /// [`VCPU_OFF`] .. [`VCPU_DEAD`].
        0 => state: AtomicU32,
        /// Number of the instance or worker.
        4 => role: AtomicU32,
        /// The last order that it has taken up: it touches no earlier arena any more.
        8 => seen: AtomicU32,
        /// The last order that it has done its part of.
        12 => done: AtomicU32,
        /// The clock when it became ready.
        16 => ready_ticks: AtomicU64,
        /// The clock when it took up the last order.
        24 => seen_ticks: AtomicU64,
        /// Times that it slept.
        32 => naps: AtomicU64,
        /// On a machine of one vCPU, in the line of each instance's number: the ticks that the instance
        /// took in the last order. Where a tick is an instruction, they are counted exactly.
        40 => step_ticks: AtomicU64,
        /// Not used; zero.
        48 => reserved: [AtomicU64; 2],
    }
}

shared_struct! {
    /// The last exception of one vCPU.
    pub struct ExceptionFrame [size = 320, align = 64] {
        /// Counts the vCPU's exceptions; written last.
        0 => stamp: AtomicU32,
        /// `VCPU_INSTANCE`, `VCPU_WORKER`, or `VCPU_READY`: what it was at the time.
        4 => state: AtomicU32,
        /// Vector: 0 synchronous, 1 IRQ, 2 FIQ, 3 `SError`; plus 4 in a handler; 16: a panic.
        8 => vector: AtomicU32,
        /// Number of the instance or worker.
        12 => role: AtomicU32,
        /// Why: `ESR_EL1`.
        16 => syndrome: AtomicU64,
        /// Where: `ELR_EL1`.
        24 => pc: AtomicU64,
        /// Of which address: `FAR_EL1`.
        32 => fault_address: AtomicU64,
        /// `SPSR_EL1`.
        40 => status: AtomicU64,
        /// The stack pointer.
        48 => sp: AtomicU64,
        /// The vCPU's clock, in nanoseconds.
        56 => time_ns: AtomicU64,
        /// `x0` .. `x30`.
        64 => x: [AtomicU64; 31],
        /// Not used; zero.
        312 => reserved: AtomicU64,
    }
}

shared_struct! {
    /// The pages through which host and image meet, at [`qemu::BOOT_BLOCK_ADDRESS`].
    pub struct BootBlock [size = 24832, align = 64] {
        /// Written by the host, before the start.
        0 => header: BootHeader,
        /// Written by vCPU 0.
        64 => firmware: FirmwareLine,
        /// Written by the host.
        128 => launch: LaunchLine,
        /// Not used; zero.
        192 => reserved: [AtomicU64; 8],
        /// Each written by its vCPU.
        256 => vcpus: [VcpuLine; qemu::MAX_VCPUS],
        /// Each written by its vCPU.
        4352 => exceptions: [ExceptionFrame; qemu::MAX_VCPUS],
    }
}

/// An order, as the host gives and a vCPU takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchOrder {
    /// Number of the order; not zero.
    pub sequence: u32,
    /// Where the arena is; null: let go of the one before.
    pub arena_address: GmAddr,
    /// Size of the arena in bytes.
    pub arena_bytes: u64,
    /// Where GM begins.
    pub gm_address: GmAddr,
    /// Size of GM in bytes.
    pub gm_bytes: u64,
}

impl LaunchLine {
    /// Gives an order. The host does, one after the other.
    pub fn post(&self, order: &LaunchOrder) {
        self.sequence.store(0, Ordering::Relaxed);
        // Release, of each word: a vCPU that sees any of them sees the sequence cleared; pairs with the
        // Acquire loads in `look`.
        self.arena_address.store(order.arena_address.0, Ordering::Release);
        self.arena_bytes.store(order.arena_bytes, Ordering::Release);
        self.gm_address.store(order.gm_address.0, Ordering::Release);
        self.gm_bytes.store(order.gm_bytes, Ordering::Release);
        // Release: pairs with the first Acquire load in `look`; the arena is complete.
        self.sequence.store(order.sequence, Ordering::Release);
    }

    /// The order after `seen`, if there is one that is complete.
    #[must_use]
    #[inline]
    pub fn look(&self, seen: u32) -> Option<LaunchOrder> {
        // Acquire: pairs with the last Release store in `post`.
        let sequence = self.sequence.load(Ordering::Acquire);
        if sequence == seen || sequence == 0 {
            return None;
        }
        // Acquire: pair with the Release stores in `post`; an order that changes meanwhile is read again.
        let order = LaunchOrder {
            sequence,
            arena_address: GmAddr(self.arena_address.load(Ordering::Acquire)),
            arena_bytes: self.arena_bytes.load(Ordering::Acquire),
            gm_address: GmAddr(self.gm_address.load(Ordering::Acquire)),
            gm_bytes: self.gm_bytes.load(Ordering::Acquire),
        };
        (self.sequence.load(Ordering::Relaxed) == sequence).then_some(order)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{LaunchLine, LaunchOrder};
    use crate::ids::GmAddr;
    use crate::sync::{AtomicU32, AtomicU64, Ordering};

    #[test]
    fn an_order_is_taken_once_and_never_half_written() {
        let word = || AtomicU64::new(0);
        let line = LaunchLine {
            sequence: AtomicU32::new(0),
            reserved_word: AtomicU32::new(0),
            arena_address: word(),
            arena_bytes: word(),
            gm_address: word(),
            gm_bytes: word(),
            reserved: [word(), word(), word()],
        };
        assert_eq!(line.look(0), None);
        let order = LaunchOrder {
            sequence: 7,
            arena_address: GmAddr(1),
            arena_bytes: 2,
            gm_address: GmAddr(3),
            gm_bytes: 4,
        };
        line.post(&order);
        assert_eq!(line.look(0), Some(order));
        assert_eq!(line.look(7), None);
        line.sequence.store(0, Ordering::Relaxed);
        assert_eq!(line.look(6), None, "being written");
    }
}

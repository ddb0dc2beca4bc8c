//! What the host writes into GM for one launch of the `cann` image: where the arena is, where the control
//! registers are, and which position in them each worker has.
//!
//! ```text
//! host                                           AICPU instances (all enter the same function)
//! plan, cores, taken = 0, DMA to GM  ----------> invalidate, LaunchWords::accept
//! launch n instances                 ----------> LaunchTickets::take: 0, 1, .. n - 1
//!                                    <---------- LaunchTickets::give_back; refused, if nobody can run
//! ```
//! The launch sequence hands every instance the same pointer, and nothing else tells them apart: the ticket
//! decides which instance a thread is.

use bytemuck::{Pod, Zeroable};

use crate::closed_set;
use crate::ids::GmAddr;
use crate::limits::MAX_WORKERS;
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// `LaunchPlan::magic`: "PTOLNCH1", little-endian.
pub const LAUNCH_MAGIC: u64 = u64::from_le_bytes(*b"PTOLNCH1");
/// `FwIdentity::kind` of an image for the CANN driver stack.
pub const FW_KIND_CANN: [u8; 16] = *b"cann\0\0\0\0\0\0\0\0\0\0\0\0";
/// Bytes from the start of a kernel's arguments in the launch sequence to the address of the
/// [`LaunchWords`]. (The word before, at 40, belongs to the dispatcher that brings the image up.)
pub const ARGS_LAUNCH_OFFSET: usize = 48;
/// From one cluster's control registers to the next.
pub const CLUSTER_STRIDE: u64 = 8 << 20;
/// From one core's control registers to the next within a cluster.
pub const CORE_STRIDE: u64 = 1 << 20;
/// Positions in a cluster: 0 AIC, 1 and 2 AIV.
pub const CORES_PER_CLUSTER: u16 = 3;

closed_set! {
    /// Which offsets the control registers have, and what AICPU has to do for the host's DMA.
    pub struct Architecture(u32) {
        /// Ascend 910B and 910C.
        A2A3 = 1, "a2a3";
        /// Ascend 950.
        A5 = 2, "a5";
    }
}

shared_struct! {
    /// Where one worker's control registers are: window + cluster * 8 MiB + sub * 1 MiB.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct CorePosition [size = 4, align = 2] {
        /// The physical cluster.
        0 => cluster: u16,
        /// 0 the AIC, 1 and 2 the AIVs.
        2 => sub: u16,
    }
}

impl CorePosition {
    /// Bytes from the start of the register window.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.cluster as u64 * CLUSTER_STRIDE + self.sub as u64 * CORE_STRIDE
    }
}

shared_struct! {
    /// What the host decides of one launch.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct LaunchPlan [size = 128, align = 8] {
        /// [`LAUNCH_MAGIC`].
        0 => magic: u64,
        /// `ABI_MAJOR`.
        8 => abi_major: u16,
        /// `ABI_MINOR`.
        10 => abi_minor: u16,
        /// Size of [`LaunchWords`].
        12 => words_bytes: u32,
        /// `layout::LAYOUT_HASH`.
        16 => layout_hash: u64,
        /// Address of the arena in GM.
        24 => arena_address: GmAddr,
        /// Size of the arena.
        32 => arena_bytes: u64,
        /// First address of GM.
        40 => gm_address: GmAddr,
        /// Size of GM.
        48 => gm_bytes: u64,
        /// Where AICPU sees the window of control registers (the driver's REG_AIC_CTRL).
        56 => registers_address: u64,
        /// Size of that window.
        64 => registers_bytes: u64,
        /// An `Architecture`.
        72 => architecture: u32,
        /// Valid entries of `LaunchWords::cores`: the workers, all AIC, then all AIV.
        76 => core_count: u32,
        /// 1: the host has written the whole arena since the last launch; 0: the run's words only.
        80 => fresh_arena: u32,
        /// Not used; zero.
        84 => reserved_word: u32,
        /// Not used; zero.
        88 => reserved: [u64; 5],
    }
}

shared_struct! {
    /// Which instance is which; zero when the host launches.
    #[derive(Default)]
    pub struct LaunchTickets [size = 64, align = 64] {
        /// Instances that have entered.
        0 => taken: AtomicU32,
        /// Instances that have left.
        4 => given_back: AtomicU32,
        /// The first fault that no arena could hold: what is wrong with the launch words themselves; zero: none.
        8 => refused: AtomicU32,
        /// Not used; zero.
        12 => reserved_word: AtomicU32,
        /// Not used; zero.
        16 => reserved: [AtomicU64; 6],
    }
}

shared_struct! {
    /// One launch, in GM; aligned to 64 bytes.
    pub struct LaunchWords [size = 704, align = 64] {
        /// What the host decides.
        0 => plan: LaunchPlan,
        /// Where each worker's registers are, by worker number.
        128 => cores: [CorePosition; MAX_WORKERS],
        /// Which instance is which.
        640 => tickets: LaunchTickets,
    }
}

impl LaunchTickets {
    /// This thread's instance number.
    #[must_use]
    pub fn take(&self) -> u32 {
        // Relaxed: the number is all that is handed over; the launch words were complete before the launch.
        self.taken.fetch_add(1, Ordering::Relaxed)
    }

    /// The instance leaves; true for the last one of `instances`.
    pub fn give_back(&self, instances: u32) -> bool {
        // AcqRel: pairs with itself; the last instance sees what all others did before theirs.
        self.given_back.fetch_add(1, Ordering::AcqRel) + 1 == instances
    }

    /// Leaves the code of a fault that no arena can hold, if it is the first.
    pub fn refuse(&self, code: u32) {
        // Relaxed: the code is all there is; the host reads it after the launch has ended. A failure says
        // that another instance has said the same.
        self.refused
            .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_default();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{CorePosition, LaunchTickets};
    use crate::sync::Ordering;

    #[test]
    fn every_instance_has_a_number_and_one_is_the_last() {
        let tickets = LaunchTickets::default();
        assert_eq!([tickets.take(), tickets.take(), tickets.take()], [0, 1, 2]);
        assert_eq!([1, 2, 3].map(|_| tickets.give_back(3)), [false, false, true]);
    }

    #[test]
    fn the_first_refusal_stays() {
        let tickets = LaunchTickets::default();
        tickets.refuse(7);
        tickets.refuse(8);
        assert_eq!(tickets.refused.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn registers_of_a_core() {
        assert_eq!(CorePosition { cluster: 2, sub: 1 }.offset(), (16 << 20) + (1 << 20));
    }
}

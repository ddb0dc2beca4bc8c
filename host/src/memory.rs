//! GM together with the books of who owns which part of it; shared by a device and its buffers.
//!
//! What a user frees while a run is on goes to the runs (`runs.rs`), and is free when they have ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::GmAddr;

use crate::allocator::{Allocator, Owner};
use crate::error::Error;
use crate::gm::{Gm, HUGE_ARENA, LARGE, LARGE_ARENA};
use crate::runs::Runs;
use crate::traffic::{TrafficCounters, TrafficKind};

/// Memories of this process.
static MEMORIES: AtomicU64 = AtomicU64::new(1);

/// The memory of one device.
pub(crate) struct Memory {
    /// A number that no other memory of this process has.
    id: u64,
    /// How often a user has freed a block.
    freed: AtomicU64,
    gm: Gm,
    books: Mutex<Books>,
    traffic: TrafficCounters,
}

/// Who has what.
struct Books {
    allocator: Allocator,
    runs: Runs,
}

/// A run that is on: what users free meanwhile is not given to anybody else before this value is dropped.
#[must_use]
pub(crate) struct RunHold {
    memory: Arc<Memory>,
    run: u64,
}

impl RunHold {
    /// A core of the run did not come back, and may write for ever: no memory that users have now, or have freed during the
    /// run, is allocated again.
    pub(crate) fn lose(self) {
        self.memory.lose_run(self.run);
    }
}

impl Drop for RunHold {
    fn drop(&mut self) {
        // After a panic of the host, cores of its run may still write.
        if std::thread::panicking() {
            self.memory.lose_run(self.run);
        } else {
            self.memory.end_run(self.run);
        }
    }
}

impl Memory {
    /// Maps `bytes` bytes.
    pub(crate) fn map(bytes: u64) -> Result<Self, Error> {
        Gm::map(bytes).map(Self::of)
    }

    /// Takes `gm` over.
    pub(crate) fn of(gm: Gm) -> Self {
        let allocator = Allocator::new(gm.address(), gm.bytes());
        let books = Mutex::new(Books { allocator, runs: Runs::default() });
        let (id, freed) = (MEMORIES.fetch_add(1, Ordering::Relaxed), AtomicU64::new(0));
        Self { id, freed, gm, books, traffic: TrafficCounters::default() }
    }

    /// The mapping.
    pub(crate) fn gm(&self) -> &Gm {
        &self.gm
    }

    /// What was moved in and out of it.
    pub(crate) fn traffic(&self) -> &TrafficCounters {
        &self.traffic
    }

    /// Takes a block; its bytes are what the last owner left.
    pub(crate) fn alloc(&self, bytes: u64, owner: Owner) -> Result<GmAddr, Error> {
        self.books().allocator.alloc(bytes, owner)
    }

    /// Takes a block of zeros, without touching what was never used.
    pub(crate) fn alloc_zeroed(&self, bytes: u64, owner: Owner) -> Result<GmAddr, Error> {
        let (address, untouched) = {
            let mut books = self.books();
            let untouched = books.allocator.untouched();
            (books.allocator.alloc(bytes, owner)?, untouched)
        };
        let large = if owner == Owner::Runtime { LARGE_ARENA } else { LARGE };
        self.gm.zero(address, bytes.min(untouched.0.saturating_sub(address.0)), large)?;
        if owner == Owner::Runtime && bytes >= HUGE_ARENA {
            self.gm.prefer_huge_pages(address, bytes);
        }
        Ok(address)
    }

    /// Gives a block back. A user's block is free when the runs have ended that are on.
    pub(crate) fn free(&self, address: GmAddr, owner: Owner) -> Result<(), Error> {
        let Books { allocator, runs } = &mut *self.books();
        if owner != Owner::User {
            return allocator.free(address, owner);
        }
        // Relaxed: a run and a free of its memory on another thread are not ordered by the caller either.
        self.freed.fetch_add(1, Ordering::Relaxed);
        if !allocator.retire(address)? || runs.wait(address) {
            return Ok(());
        }
        allocator.release(address)
    }

    /// Which memory it is, and how often a user has freed a block of it: as long as both stay the same, every live allocation is still
    /// there.
    pub(crate) fn generation(&self) -> [u64; 2] {
        [self.id, self.freed.load(Ordering::Relaxed)]
    }

    /// Whether something was freed that runs still hold.
    pub(crate) fn has_waiting(&self) -> bool {
        self.books().allocator.waiting_bytes() > 0
    }

    /// A run begins.
    pub(crate) fn begin_run(self: &Arc<Self>) -> RunHold {
        RunHold { run: self.books().runs.begin(), memory: Arc::clone(self) }
    }

    fn end_run(&self, run: u64) {
        let Books { allocator, runs } = &mut *self.books();
        for address in runs.end(run) {
            let released = allocator.release(address);
            debug_assert!(released.is_ok(), "a block waits once: {released:?}");
        }
    }

    fn lose_run(&self, run: u64) {
        let Books { allocator, runs } = &mut *self.books();
        runs.lose(run);
        allocator.lose_users();
    }

    /// Bytes that users have allocated and not freed.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.books().allocator.user_bytes()
    }

    /// Bytes that are free, and the largest block among them.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        self.books().allocator.free_bytes()
    }

    /// The live allocation of a user that `address` lies in: where it begins, and its bytes.
    pub(crate) fn allocation(&self, address: GmAddr) -> Option<(GmAddr, u64)> {
        self.books().allocator.allocation(address)
    }

    /// Copies into one live allocation.
    pub(crate) fn copy_in(&self, to: GmAddr, from: &[u8]) -> Result<(), Error> {
        self.check_user_range(to, from.len() as u64)?;
        self.traffic.count(TrafficKind::ToDevice, from.len() as u64);
        self.gm.write(to, from)
    }

    /// Copies out of one live allocation.
    pub(crate) fn copy_out(&self, from: GmAddr, to: &mut [u8]) -> Result<(), Error> {
        self.peek(from, to)?;
        self.traffic.count(TrafficKind::ToHost, to.len() as u64);
        Ok(())
    }

    /// As [`copy_out`](Self::copy_out), without counting the copy.
    pub(crate) fn peek(&self, from: GmAddr, to: &mut [u8]) -> Result<(), Error> {
        self.check_user_range(from, to.len() as u64)?;
        self.gm.read(from, to)
    }

    /// Whether the range lies in one live allocation of a user.
    pub(crate) fn check_user_range(&self, address: GmAddr, bytes: u64) -> Result<(), Error> {
        self.books().allocator.check_range(address, bytes)
    }

    /// A word anywhere in GM, as a builder on the device reads it.
    pub(crate) fn read_u32(&self, address: GmAddr) -> Option<u32> {
        let mut word = [0; 4];
        let is_aligned = address.0.is_multiple_of(4);
        self.gm.read(address, &mut word).ok().filter(|()| is_aligned)?;
        Some(u32::from_le_bytes(word))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // A panic in the allocator is a bug of it; its maps are still memory-safe to use.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Memory, Owner};
    use std::sync::Arc;

    #[test]
    fn used_memory_comes_back_as_zeros() {
        let memory = Memory::map(1 << 20).unwrap();
        let bytes = 200_000;
        let first = memory.alloc(bytes, Owner::User).unwrap();
        memory.copy_in(first, &vec![7; 200_000]).unwrap();
        memory.free(first, Owner::User).unwrap();
        let second = memory.alloc_zeroed(bytes + 100_000, Owner::User).unwrap();
        assert_eq!(first, second);
        let mut read = vec![1; 300_000];
        memory.copy_out(second, &mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_is_freed_during_a_run_is_free_after_it() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let all = memory.free_bytes();
        let block = memory.alloc(64, Owner::User).unwrap();
        let hold = memory.begin_run();
        memory.free(block, Owner::User).unwrap();
        assert_ne!(memory.free_bytes(), all);
        assert_ne!(memory.alloc(64, Owner::User).unwrap(), block);
        drop(hold);
        assert_eq!(memory.alloc(64, Owner::User).unwrap(), block);
    }

    #[test]
    fn a_run_that_ends_with_a_panic_keeps_what_it_has() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let block = memory.alloc(64, Owner::User).unwrap();
        let panics = || {
            let _hold = memory.begin_run();
            panic!("in the middle of a run");
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).unwrap_err();
        memory.free(block, Owner::User).unwrap();
        assert_ne!(memory.alloc(64, Owner::User).unwrap(), block);
    }

    #[test]
    fn a_builder_reads_words_of_gm_only() {
        let memory = Memory::map(1 << 16).unwrap();
        let start = memory.gm().address();
        memory.gm().window().write(8, &42_u32).unwrap();
        assert_eq!(memory.read_u32(start.offset(8)), Some(42));
        assert_eq!(memory.read_u32(start.offset(9)), None, "misaligned");
        assert_eq!(memory.read_u32(start.offset(1 << 16)), None);
        assert_eq!(memory.read_u32(start.offset(0_u64.wrapping_sub(4))), None);
    }
}

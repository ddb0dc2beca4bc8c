//! Doorbells and hints between the instances of a pool: bits in memory of its own.

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};

/// What the machines of the instances tell the thread that schedules. Atomic, because threads take turns at scheduling; only one does at a time.
#[derive(Default)]
pub(super) struct DoorbellBits {
    cores: [AtomicU64; 2],
    work_shared: AtomicU32,
}

impl DoorbellBits {
    /// The cores that were rung since the last call.
    #[inline]
    pub(super) fn take(&self) -> [u64; 2] {
        let take = |word: &AtomicU64| {
            let cores = word.load(Ordering::Relaxed);
            if cores != 0 {
                word.store(0, Ordering::Relaxed);
            }
            cores
        };
        [take(&self.cores[0]), take(&self.cores[1])]
    }

    /// These cores were rung, and are not run yet.
    pub(super) fn put(&self, cores: [u64; 2]) {
        for (word, bits) in self.cores.iter().zip(cores) {
            word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }

    pub(super) fn is_one_core(&self) -> bool {
        let [low, high] = [&self.cores[0], &self.cores[1]].map(|word| word.load(Ordering::Relaxed));
        low & low.wrapping_sub(1) | high & high.wrapping_sub(1) == 0 && (low == 0) != (high == 0)
    }

    pub(super) fn take_work_shared(&self) -> bool {
        let shared = self.work_shared.load(Ordering::Relaxed) != 0;
        if shared {
            self.work_shared.store(0, Ordering::Relaxed);
        }
        shared
    }

    /// This core is rung.
    #[inline]
    pub(super) fn ring(&self, worker: u32) {
        let word = &self.cores[worker as usize / 64 % 2];
        word.store(word.load(Ordering::Relaxed) | 1 << (worker % 64), Ordering::Relaxed);
    }

    /// Ready tasks are in a shared queue.
    #[inline]
    pub(super) fn share_work(&self) {
        self.work_shared.store(1, Ordering::Relaxed);
    }
}

//! The one module that names the atomics: `core`, loom or shuttle by cfg, and how they are shared.
//!
//! [`Sharing`] decides by type whether a read-modify-write has to be one: [`Concurrent`] between OS threads
//! or device cores, [`Exclusive`] where one OS thread steps everything (then a plain load and store do,
//! about 5 ns less for each; `pto bench` prints both).

#[cfg(not(any(loom, shuttle)))]
pub use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
#[cfg(shuttle)]
pub use shuttle::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The atomics of the processor, also under loom and shuttle: for copies of bytes, which no model has.
pub(crate) mod processor {
    pub(crate) use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
}

/// How the words of a run are shared between the agents that touch them.
pub trait Sharing: Copy + Default + Send + Sync + 'static {
    /// Whether one agent does everything: then what others would write costs nothing to look at.
    const IS_EXCLUSIVE: bool = false;

    /// Adds `value`, returns what was there before.
    fn fetch_add(word: &AtomicU64, value: u64, ordering: Ordering) -> u64;
    /// Subtracts `value`, returns what was there before.
    fn fetch_sub(word: &AtomicU64, value: u64, ordering: Ordering) -> u64;
    /// Subtracts `value`, returns what was there before.
    fn fetch_sub_u32(word: &AtomicU32, value: u32, ordering: Ordering) -> u32;
    /// Sets the bits of `value`, returns what was there before.
    fn fetch_or_u32(word: &AtomicU32, value: u32, ordering: Ordering) -> u32;
    /// Replaces `current` by `new`; `Err` with what is there otherwise.
    ///
    /// # Errors
    /// The value found, when it is not `current`. On failure the load is `Relaxed`.
    fn compare_exchange(
        word: &AtomicU64,
        current: u64,
        new: u64,
        success: Ordering,
    ) -> Result<u64, u64>;
    /// As [`Sharing::compare_exchange`], on 32 bits.
    ///
    /// # Errors
    /// The value found, when it is not `current`. On failure the load is `Acquire`.
    fn compare_exchange_u32(
        word: &AtomicU32,
        current: u32,
        new: u32,
        success: Ordering,
    ) -> Result<u32, u32>;
}

/// Several OS threads or device cores touch the words: every operation is atomic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Concurrent;

impl Sharing for Concurrent {
    #[inline]
    fn fetch_add(word: &AtomicU64, value: u64, ordering: Ordering) -> u64 {
        word.fetch_add(value, ordering)
    }
    #[inline]
    fn fetch_sub(word: &AtomicU64, value: u64, ordering: Ordering) -> u64 {
        word.fetch_sub(value, ordering)
    }
    #[inline]
    fn fetch_sub_u32(word: &AtomicU32, value: u32, ordering: Ordering) -> u32 {
        word.fetch_sub(value, ordering)
    }
    #[inline]
    fn fetch_or_u32(word: &AtomicU32, value: u32, ordering: Ordering) -> u32 {
        word.fetch_or(value, ordering)
    }
    #[inline]
    fn compare_exchange(
        word: &AtomicU64,
        current: u64,
        new: u64,
        success: Ordering,
    ) -> Result<u64, u64> {
        word.compare_exchange(current, new, success, Ordering::Relaxed)
    }
    #[inline]
    fn compare_exchange_u32(
        word: &AtomicU32,
        current: u32,
        new: u32,
        success: Ordering,
    ) -> Result<u32, u32> {
        // Acquire on failure: the caller names the Release store that it pairs with, above its call.
        word.compare_exchange(current, new, success, Ordering::Acquire)
    }
}

/// One OS thread steps every agent: program order is the only order there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exclusive;

impl Sharing for Exclusive {
    const IS_EXCLUSIVE: bool = true;

    #[inline]
    fn fetch_add(word: &AtomicU64, value: u64, _: Ordering) -> u64 {
        let old = word.load(Ordering::Relaxed);
        word.store(old.wrapping_add(value), Ordering::Relaxed);
        old
    }
    #[inline]
    fn fetch_sub(word: &AtomicU64, value: u64, ordering: Ordering) -> u64 {
        Self::fetch_add(word, value.wrapping_neg(), ordering)
    }
    #[inline]
    fn fetch_sub_u32(word: &AtomicU32, value: u32, _: Ordering) -> u32 {
        let old = word.load(Ordering::Relaxed);
        word.store(old.wrapping_sub(value), Ordering::Relaxed);
        old
    }
    #[inline]
    fn fetch_or_u32(word: &AtomicU32, value: u32, _: Ordering) -> u32 {
        let old = word.load(Ordering::Relaxed);
        word.store(old | value, Ordering::Relaxed);
        old
    }
    #[inline]
    fn compare_exchange(word: &AtomicU64, current: u64, new: u64, _: Ordering) -> Result<u64, u64> {
        let old = word.load(Ordering::Relaxed);
        if old != current {
            return Err(old);
        }
        word.store(new, Ordering::Relaxed);
        Ok(old)
    }
    #[inline]
    fn compare_exchange_u32(
        word: &AtomicU32,
        current: u32,
        new: u32,
        _: Ordering,
    ) -> Result<u32, u32> {
        let old = word.load(Ordering::Relaxed);
        if old != current {
            return Err(old);
        }
        word.store(new, Ordering::Relaxed);
        Ok(old)
    }
}

/// The lock of one task's fanout, for the `locked` strategy: one byte, unlocked when zero.
#[repr(transparent)]
pub struct TaskLock {
    #[cfg(not(any(loom, shuttle)))]
    inner: spin::mutex::SpinMutex<()>,
    #[cfg(loom)]
    inner: loom::sync::Mutex<()>,
    #[cfg(shuttle)]
    inner: shuttle::sync::Mutex<()>,
}

impl TaskLock {
    /// Runs `critical` while holding the lock.
    #[inline]
    pub fn hold<R>(&self, critical: impl FnOnce() -> R) -> R {
        let _guard = self.inner.lock();
        critical()
    }
}

impl Default for TaskLock {
    fn default() -> Self {
        #[cfg(not(any(loom, shuttle)))]
        let inner = spin::mutex::SpinMutex::new(());
        #[cfg(loom)]
        let inner = loom::sync::Mutex::new(());
        #[cfg(shuttle)]
        let inner = shuttle::sync::Mutex::new(());
        Self { inner }
    }
}

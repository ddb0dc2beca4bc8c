//! How many commands are in flight, and what begins with the first of them and ends after the last one.
//!
//! ```text
//!            enter: begin, under the lock             enter: without the lock
//!  0        ------------------------------>   1   ------------------------------>   2 ...
//!  end,     <------------------------------       <------------------------------
//!  if still 0     leave, then the lock                  leave: without the lock
//! ```
//! Invariants: the count leaves 0 only under the lock and after `begin`. So after `enter` the hold has begun, also if another thread was the
//! first. After `close` no command enters: the count only falls, and at 0 none is left.

use pto_abi::sync::{AtomicU64, Ordering};

/// No command enters any more.
const CLOSED: u64 = 1 << 63;

/// The count, and whether it is closed.
#[derive(Debug)]
pub(super) struct InFlight(AtomicU64);

impl Default for InFlight {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl InFlight {
    /// Counts one more; `false`: it is closed. If the count was 0, `begin` is called with the lock.
    #[inline]
    pub(super) fn enter<L>(&self, lock: impl FnOnce() -> L, begin: impl FnOnce(&mut L)) -> bool {
        // Relaxed: the exchange checks what was read.
        let mut count = self.0.load(Ordering::Relaxed);
        while count > 0 && count & CLOSED == 0 {
            // Acquire: pairs with the Release half of the addition in `enter_first`: the hold has begun. The exchanges of other threads
            // continue its release sequence.
            let entered = self.0.compare_exchange_weak(
                count,
                count + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match entered {
                Ok(_) => return true,
                Err(found) => count = found,
            }
        }
        count & CLOSED == 0 && self.enter_first(lock, begin)
    }

    #[cold]
    fn enter_first<L>(&self, lock: impl FnOnce() -> L, begin: impl FnOnce(&mut L)) -> bool {
        let mut held = lock();
        // Relaxed: `close` changes it under the lock.
        if self.0.load(Ordering::Relaxed) & CLOSED != 0 {
            return false;
        }
        begin(&mut held);
        // Release: pairs with the Acquire exchange in `enter`. Acquire: pairs with the Release subtractions in `leave`.
        self.0.fetch_add(1, Ordering::AcqRel);
        drop(held);
        true
    }

    /// From here on no command enters.
    pub(super) fn close<L>(&self, lock: impl FnOnce() -> L) {
        let _held = lock();
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Counts so many fewer. If none is left, `end` is called with the lock.
    #[inline]
    pub(super) fn leave<L>(
        &self,
        commands: u64,
        lock: impl FnOnce() -> L,
        end: impl FnOnce(&mut L),
    ) {
        // Release: pairs with the Acquire below in the thread that ends the hold, which then sees what the commands did.
        if self.0.fetch_sub(commands, Ordering::Release) & !CLOSED != commands {
            return;
        }
        let mut held = lock();
        // Acquire: pairs with the Release above in other threads. A command may have entered since, which takes the lock.
        if self.0.load(Ordering::Acquire) & !CLOSED == 0 {
            end(&mut held);
        }
    }

    /// How many there are now.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !CLOSED
    }
}

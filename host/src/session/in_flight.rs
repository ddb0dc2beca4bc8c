//! How many commands are in flight, and what is begun for the first of them and ended behind the last one.
//!
//! ```text
//!            enter: begin, under the lock             enter: without the lock
//!  0        ------------------------------>   1   ------------------------------>   2 ...
//!  end,     <------------------------------       <------------------------------
//!  if still 0     leave, then the lock                  leave: without the lock
//! ```
//! Invariants: the count leaves 0 under the lock only, behind `begin`. So whoever has entered knows that what is held has begun,
//! also when somebody else was the first. Behind `close` nobody enters: the count only falls, and when it is 0 nobody is left.

use pto_abi::sync::{AtomicU64, Ordering};

/// Nobody enters any more.
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
    /// One more, unless it is closed: whether there is one more. Where there was none, `begin` is called with the lock.
    #[inline]
    pub(super) fn enter<L>(&self, lock: impl FnOnce() -> L, begin: impl FnOnce(&mut L)) -> bool {
        // Relaxed: the exchange checks what was read.
        let mut count = self.0.load(Ordering::Relaxed);
        while count > 0 && count & CLOSED == 0 {
            // Acquire: pairs with the Release half of the addition in `enter_first`: what is held has begun. The exchanges of others
            // continue its sequence.
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
        // Relaxed: it is closed under the lock.
        if self.0.load(Ordering::Relaxed) & CLOSED != 0 {
            return false;
        }
        begin(&mut held);
        // Release: pairs with the Acquire exchange in `enter`. Acquire: pairs with the Release subtractions in `leave`.
        self.0.fetch_add(1, Ordering::AcqRel);
        drop(held);
        true
    }

    /// From here on nobody enters.
    pub(super) fn close<L>(&self, lock: impl FnOnce() -> L) {
        let _held = lock();
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// So many fewer. Where none is left, `end` is called with the lock.
    #[inline]
    pub(super) fn leave<L>(
        &self,
        commands: u64,
        lock: impl FnOnce() -> L,
        end: impl FnOnce(&mut L),
    ) {
        // Release: pairs with the Acquire below of whoever ends what is held: what the commands did is done.
        if self.0.fetch_sub(commands, Ordering::Release) & !CLOSED != commands {
            return;
        }
        let mut held = lock();
        // Acquire: pairs with the Release above of the others. Somebody may have entered since, and does so under the lock.
        if self.0.load(Ordering::Acquire) & !CLOSED == 0 {
            end(&mut held);
        }
    }

    /// How many there are now.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !CLOSED
    }
}

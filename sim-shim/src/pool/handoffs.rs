//! Work for idle threads of a pool: a busy thread gives away cores that it has rung but not stepped yet.
//!
//! ```text
//! idle thread:  wants_work = 1; polls its slot now and then
//! busy thread:  sees wants_work = 1, and has cores to give:
//!               wants_work = 0, puts half of the cores into the slot
//! ```
//! `worker` decides whether kernels are long enough for that.

use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};

/// How many of its cores a thread gives away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// About half; one core stays, for its thread is about to step it.
    Half,
    /// All.
    All,
}

#[derive(Default)]
#[repr(align(64))]
struct HandoffSlot {
    wants_work: AtomicU32,
    cores: [AtomicU64; 2],
}

/// One slot per OS thread.
pub(crate) struct HandoffSlots {
    slots: Vec<HandoffSlot>,
}

impl HandoffSlots {
    pub(crate) fn new(os_threads: usize) -> Self {
        Self { slots: (0..os_threads).map(|_| HandoffSlot::default()).collect() }
    }

    /// Thread `me` has nothing to do.
    pub(crate) fn ask(&self, me: usize) {
        if self.slots[me].wants_work.load(Ordering::Relaxed) == 0 {
            self.slots[me].wants_work.store(1, Ordering::Relaxed);
        }
    }

    /// Thread `me` has found something itself.
    pub(crate) fn decline(&self, me: usize) {
        if self.slots[me].wants_work.load(Ordering::Relaxed) == 1 {
            self.slots[me].wants_work.store(0, Ordering::Relaxed);
        }
    }

    /// Takes what thread `me` was given.
    pub(crate) fn take(&self, me: usize) -> [u64; 2] {
        self.slots[me].take()
    }

    /// Takes what another thread was given and has not taken yet: `me` has nothing to do.
    pub(crate) fn take_back(&self, me: usize) -> [u64; 2] {
        let found = self.others(me).map(HandoffSlot::take).find(|cores| *cores != [0; 2]);
        found.unwrap_or_default()
    }

    /// Whether a thread other than `me` has nothing to do.
    #[inline]
    pub(crate) fn is_asked(&self, me: usize) -> bool {
        self.others(me).any(|slot| slot.wants_work.load(Ordering::Relaxed) != 0)
    }

    fn others(&self, me: usize) -> impl Iterator<Item = &HandoffSlot> {
        let others = self.slots.iter().enumerate().filter(move |(index, _)| *index != me);
        others.map(|(_, slot)| slot)
    }

    /// Gives a share of `cores` to a thread that wants work, if there is one; returns what is left.
    pub(crate) fn give(&self, me: usize, cores: [u64; 2], share: Share) -> [u64; 2] {
        let given = if share == Share::All { cores } else { upper_half(cores) };
        if given == [0; 2] {
            return cores;
        }
        for slot in self.others(me) {
            if slot.wants_work.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Relaxed: the exchange only makes sure that one giver claims this slot.
            let claimed =
                slot.wants_work.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
            if claimed.is_ok() {
                slot.put(given);
                return [cores[0] & !given[0], cores[1] & !given[1]];
            }
        }
        cores
    }
}

impl HandoffSlot {
    fn take(&self) -> [u64; 2] {
        let take = |word: &AtomicU64| {
            if word.load(Ordering::Relaxed) == 0 {
                return 0;
            }
            // Acquire: pairs with the Release in `put`; the cores' lines are then as the giver saw them.
            word.swap(0, Ordering::Acquire)
        };
        [take(&self.cores[0]), take(&self.cores[1])]
    }

    fn put(&self, cores: [u64; 2]) {
        for (word, bits) in self.cores.iter().zip(cores) {
            if bits != 0 {
                // Release: pairs with the Acquire swap in `take`.
                word.fetch_or(bits, Ordering::Release);
            }
        }
    }
}

/// The upper half of the set bits; of one bit, none. The lowest bit always stays.
fn upper_half(cores: [u64; 2]) -> [u64; 2] {
    let mut rest = cores;
    for _ in 0..(cores[0].count_ones() + cores[1].count_ones()).div_ceil(2) {
        let word = usize::from(rest[0] == 0);
        rest[word] &= rest[word].wrapping_sub(1);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::{HandoffSlots, Share, upper_half};

    #[test]
    fn a_thread_that_wants_work_gets_half_once() {
        let handoffs = HandoffSlots::new(2);
        let cores = [0b11 << 62, 0b11];
        assert_eq!(handoffs.give(0, cores, Share::Half), cores, "no thread wants work");
        handoffs.ask(1);
        assert_eq!(handoffs.give(0, cores, Share::Half), [0b11 << 62, 0]);
        assert_eq!(handoffs.give(0, cores, Share::Half), cores, "its request is claimed");
        assert_eq!(handoffs.take(1), [0, 0b11]);
        assert_eq!(handoffs.take(1), [0, 0]);
        handoffs.ask(1);
        assert_eq!(handoffs.give(0, [1, 0], Share::Half), [1, 0], "one core stays");
        assert_eq!(handoffs.give(0, [1, 0], Share::All), [0, 0]);
        assert_eq!(handoffs.take(1), [1, 0]);
        handoffs.ask(1);
        assert!(handoffs.is_asked(0) && !handoffs.is_asked(1));
        assert_eq!(handoffs.give(0, [0b11, 0], Share::All), [0, 0]);
        assert_eq!(handoffs.take_back(0), [0b11, 0], "it has not begun them");
        assert_eq!(handoffs.take(1), [0, 0]);
        handoffs.ask(1);
        handoffs.decline(1);
        assert_eq!(handoffs.give(0, cores, Share::Half), cores);
    }

    #[test]
    fn halves() {
        assert_eq!(upper_half([0, 0]), [0, 0]);
        assert_eq!(upper_half([0, 1 << 63]), [0, 0]);
        assert_eq!(upper_half([0b10110, 0]), [0b10000, 0]);
        assert_eq!(upper_half([1, 1]), [0, 1]);
        assert_eq!(upper_half([u64::MAX; 2]), [0, u64::MAX]);
    }
}

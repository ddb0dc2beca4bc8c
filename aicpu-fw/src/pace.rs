//! Estimates when a core will be free, and so when polling it is worthwhile, from the durations of kernels earlier in the run.
//! For machines on which a look costs as much as a hundred instructions (`Platform::POLLS_COST`); others
//! compute nothing of this.
//!
//! The estimate of a kernel is the time after which most of its tasks have finished. The first look at a task comes
//! then. If it is in vain the estimate grows by 1/16, if not it shrinks by 1/64, so that four of five first looks find an end
//! (docs/decisions/polling.md). Late looks do not bias it, it takes no multiplication, and it follows a kernel that changes. Further looks come after
//! 1/8 of the estimate each; no look is ever more than [`LOOK_WITHIN_NS`] away.
//!

use pto_abi::limits::MAX_WORKERS;

/// A busy core is looked at at least once within this time.
pub const LOOK_WITHIN_NS: u64 = 20_000;
/// Two looks at a core are at least this far apart, unless there is nothing else to do: four looks' time.
const LOOK_AGAIN_NS: u64 = 400;
/// Estimates; kernels whose function ids agree in the low bits share one, which costs looks and nothing else.
const ESTIMATES: usize = 256;
/// A kernel that is not known yet.
const UNKNOWN: u32 = 0;

/// What one core is doing, as far as this is about time.
#[derive(Clone, Copy, Hash)]
struct CoreTiming {
    started_ns: u64,
    looked_ns: u64,
    due_ns: u64,
    kernel: u8,
    was_in_vain: bool,
}

/// The expectations of one scheduler, and the clock as its step found it.
#[derive(Hash)]
pub(crate) struct Pace {
    now_ns: u64,
    expected_ns: [u32; ESTIMATES],
    cores: [CoreTiming; MAX_WORKERS],
}

impl Pace {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        let turn = CoreTiming {
            started_ns: 0,
            looked_ns: u64::MAX,
            due_ns: 0,
            kernel: 0,
            was_in_vain: false,
        };
        Self { now_ns: 0, expected_ns: [UNKNOWN; ESTIMATES], cores: [turn; MAX_WORKERS] }
    }

    /// A step begins at this time: everything until the next one happens about now.
    #[inline]
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// A core starts a task of this kernel about now.
    #[inline]
    pub(crate) fn start(&mut self, core: usize, func_id: u16) {
        let now_ns = self.now_ns;
        let [kernel, _] = func_id.to_le_bytes();
        let expected_ns = self.expected_ns[usize::from(kernel)];
        let wait_ns = u64::from(expected_ns).min(LOOK_WITHIN_NS);
        if let Some(turn) = self.cores.get_mut(core) {
            let due_ns = now_ns + wait_ns;
            let started_ns = now_ns;
            *turn =
                CoreTiming { started_ns, looked_ns: u64::MAX, due_ns, kernel, was_in_vain: false };
        }
    }

    /// The core has finished what it was given: the next look is due at once.
    #[inline]
    pub(crate) fn hurry(&mut self, core: usize) {
        if let Some(turn) = self.cores.get_mut(core) {
            turn.due_ns = 0;
        }
    }

    /// Whether a look of this step has found the core busy.
    #[inline]
    pub(crate) fn was_looked_at(&self, core: usize) -> bool {
        self.cores.get(core).is_some_and(|turn| turn.looked_ns == self.now_ns)
    }

    /// Whether a look at the core is likely to be worth it.
    #[inline]
    pub(crate) fn is_due(&self, core: usize) -> bool {
        self.cores.get(core).is_none_or(|turn| turn.due_ns <= self.now_ns)
    }

    /// A look when it was due has found the core busy.
    #[inline]
    pub(crate) fn looked_in_vain(&mut self, core: usize) {
        let now_ns = self.now_ns;
        let Some(turn) = self.cores.get_mut(core) else { return };
        let expected_ns = &mut self.expected_ns[usize::from(turn.kernel)];
        if !turn.was_in_vain {
            turn.was_in_vain = true;
            // An unknown one stays so: its first task says how long it takes.
            *expected_ns = expected_ns.saturating_add(*expected_ns / 16);
        }
        turn.looked_ns = now_ns;
        let wait_ns = u64::from(*expected_ns / 8).clamp(LOOK_AGAIN_NS, LOOK_WITHIN_NS);
        turn.due_ns = now_ns + wait_ns;
    }

    /// The task of the core has been found finished.
    #[inline]
    pub(crate) fn finished(&mut self, core: usize) {
        let now_ns = self.now_ns;
        let Some(turn) = self.cores.get(core) else { return };
        let expected_ns = &mut self.expected_ns[usize::from(turn.kernel)];
        if *expected_ns == UNKNOWN {
            let taken_ns = now_ns.saturating_sub(turn.started_ns).max(LOOK_AGAIN_NS);
            *expected_ns = u32::try_from(taken_ns).unwrap_or(u32::MAX);
        } else if !turn.was_in_vain {
            // By less than a look in vain adds: most first looks are to find an end. It must be able to grow again by a sixteenth.
            *expected_ns = (*expected_ns - *expected_ns / 64).max(16);
        }
    }

    /// How long the core will go on, as far as one knows; `None`: unknown, or it should have finished long ago.
    #[inline]
    pub(crate) fn remaining_ns(&self, core: usize) -> Option<u64> {
        let now_ns = self.now_ns;
        let turn = self.cores.get(core)?;
        let expected_ns = u64::from(self.expected_ns[usize::from(turn.kernel)]);
        let taken_ns = now_ns.saturating_sub(turn.started_ns);
        // Twice its time: whatever it does, it is not what was learned.
        let is_known = expected_ns > 0 && taken_ns <= 2 * expected_ns;
        is_known.then(|| expected_ns.saturating_sub(taken_ns))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{LOOK_WITHIN_NS, Pace};

    /// Runs `durations` on core 0 with a look whenever one is due; returns the looks.
    fn looks(pace: &mut Pace, durations: impl IntoIterator<Item = u64>) -> u64 {
        let (mut now, mut looks) = (0, 0);
        for duration in durations {
            let end = now + duration;
            pace.begin(now);
            pace.start(0, 7);
            loop {
                now += 100;
                pace.begin(now);
                if !pace.is_due(0) {
                    continue;
                }
                looks += 1;
                if now >= end {
                    break pace.finished(0);
                }
                pace.looked_in_vain(0);
            }
        }
        looks
    }

    #[test]
    fn a_steady_kernel_needs_about_two_looks() {
        let mut pace = Pace::new();
        let looks = looks(&mut pace, [10_000; 1000]);
        assert!((1000..=2600).contains(&looks), "{looks}");
        let expected = pace.expected_ns[7];
        assert!((8_000..12_000).contains(&expected), "{expected}");
    }

    #[test]
    fn the_estimate_follows_a_kernel_that_changes() {
        let mut pace = Pace::new();
        looks(&mut pace, [10_000; 100]);
        looks(&mut pace, [2_000; 200]);
        assert!((1_500..2_600).contains(&pace.expected_ns[7]), "{}", pace.expected_ns[7]);
    }

    #[test]
    fn a_core_is_looked_at_within_the_bound() {
        let mut pace = Pace::new();
        looks(&mut pace, [1_000_000; 50]);
        pace.begin(0);
        pace.start(0, 7);
        pace.begin(LOOK_WITHIN_NS);
        assert!(pace.is_due(0));
        pace.begin(5);
        pace.looked_in_vain(0);
        pace.begin(5 + LOOK_WITHIN_NS);
        assert!(pace.is_due(0));
    }

    #[test]
    fn what_remains_is_known_only_while_it_is() {
        let mut pace = Pace::new();
        pace.start(0, 7);
        let remaining_ns = |pace: &mut Pace, now_ns| {
            pace.begin(now_ns);
            pace.remaining_ns(0)
        };
        assert_eq!(remaining_ns(&mut pace, 0), None, "never seen");
        pace.begin(1_000);
        pace.finished(0);
        pace.begin(5_000);
        pace.start(0, 7);
        assert_eq!(remaining_ns(&mut pace, 5_400), Some(600));
        assert_eq!(remaining_ns(&mut pace, 6_500), Some(0), "overdue");
        assert_eq!(remaining_ns(&mut pace, 7_001), None, "for too long");
    }
}

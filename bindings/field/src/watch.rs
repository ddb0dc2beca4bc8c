//! Notices kernels that wait for others which cannot run meanwhile, in hosting modes in which one OS thread runs several cores.
//!
//! A kernel that waits looks at the same words again and again, through functions of the prelude: `ld_dev`, `dcci`, `get_sys_cnt`, or a flag.
//! [`PollHistory`] says of one kernel whether it saw anything new; [`StallDetector`] knows how many kernels of a run do so.
//!
//! ```text
//! computing --looks again, nothing new--> waiting --something new, or returned--> computing
//! ```
//! A run is stuck when all of its kernels wait, the orchestration has no thread to submit more, and none has begun for a while. No
//! kernel can change what they wait for then. Loops that look without these functions are not seen: the budget of the task ends them.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long nothing happens until a run counts as stuck, where kernels look at memory or wait for flags.
const QUIET: Duration = Duration::from_secs(1);
/// The same where they look at the clock alone: that may be a delay, and no task of the field's runtime takes longer.
const QUIET_BY_CLOCK: Duration = Duration::from_secs(10);
/// What counts of the time between two looks: a machine that was paused has seen nothing.
const MOST_BETWEEN: Duration = Duration::from_millis(20);
/// Looks without news between two that ask for the time.
const LOOKS_A_STEP: u32 = 256;
/// Words that a kernel is taken to wait for at once: as many as ranks in a group.
const WORDS: usize = 16;

/// A word that a kernel looks at, and what it saw there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PolledWord {
    pub(crate) address: u64,
    pub(crate) value: u64,
}

impl PolledWord {
    /// At the clock.
    pub(crate) const CLOCK: Self = Self { address: u64::MAX, value: 0 };

    /// At a flag that is not there.
    pub(crate) fn flag(flag: u32) -> Self {
        Self { address: u64::MAX - 1, value: flag.into() }
    }
}

/// What the kernels of a run do. In a line of its own: all threads write it.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct StallDetector {
    running: AtomicU32,
    waiting: AtomicU32,
    /// Kernels that have begun.
    changes: AtomicU64,
    /// The orchestration may submit tasks: it runs, and on no thread that is in a kernel.
    builds: AtomicBool,
}

impl StallDetector {
    fn is_stuck(&self) -> bool {
        let [running, waiting] = [&self.running, &self.waiting].map(|c| c.load(Ordering::Relaxed));
        running == waiting && !self.builds.load(Ordering::Relaxed)
    }
}

/// What one kernel has looked at.
struct PollHistory {
    seen: [Option<PolledWord>; WORDS],
    /// How many words were new; 0: it has not looked.
    next: usize,
    /// Without news.
    again: u32,
    looks_at_clock_alone: bool,
    waiting: Option<QuietPeriod>,
}

/// Since when nothing has changed, for a kernel that waits.
#[derive(Clone, Copy)]
struct QuietPeriod {
    changes: u64,
    looked: Instant,
    quiet: Duration,
}

impl PollHistory {
    const NONE: Self =
        Self { seen: [None; WORDS], next: 0, again: 0, looks_at_clock_alone: true, waiting: None };

    /// Remembers what a look showed; whether it was something new.
    fn learns(&mut self, look: PolledWord) -> bool {
        if self.seen.contains(&Some(look)) {
            return false;
        }
        let known =
            self.seen.iter().position(|seen| seen.is_some_and(|s| s.address == look.address));
        let at = known.unwrap_or_else(|| {
            self.next += 1;
            self.next % WORDS
        });
        self.seen[at] = Some(look);
        true
    }

    /// The kernel computes again.
    fn resume(&mut self, watch: &StallDetector) {
        self.again = 0;
        self.looks_at_clock_alone = true;
        if self.waiting.take().is_some() {
            watch.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The kernel has returned. Most have looked at nothing.
    fn forget(&mut self, watch: &StallDetector) {
        if self.next != 0 {
            self.resume(watch);
            *self = Self::NONE;
        }
    }

    /// The kernel looks at a word; whether the run is stuck.
    fn look(&mut self, watch: &StallDetector, look: PolledWord) -> bool {
        if self.learns(look) {
            self.resume(watch);
            return false;
        }
        self.looks_at_clock_alone &= look == PolledWord::CLOCK;
        self.again += 1;
        self.again.is_multiple_of(LOOKS_A_STEP) && self.step(watch, Instant::now())
    }

    /// The kernel has waited for a while; whether the run is stuck.
    fn step(&mut self, watch: &StallDetector, now: Instant) -> bool {
        let changes = watch.changes.load(Ordering::Relaxed);
        let Some(waiting) = &mut self.waiting else {
            watch.waiting.fetch_add(1, Ordering::Relaxed);
            self.waiting = Some(QuietPeriod { changes, looked: now, quiet: Duration::ZERO });
            return false;
        };
        if waiting.changes != changes || !watch.is_stuck() {
            *waiting = QuietPeriod { changes, looked: now, quiet: Duration::ZERO };
            return false;
        }
        waiting.quiet += now.saturating_duration_since(waiting.looked).min(MOST_BETWEEN);
        waiting.looked = now;
        waiting.quiet >= if self.looks_at_clock_alone { QUIET_BY_CLOCK } else { QUIET }
    }
}

thread_local! {
    /// The poll history of the kernel on this thread.
    static LOOKS: RefCell<PollHistory> = const { RefCell::new(PollHistory::NONE) };
    /// The orchestration of a run is on this thread's stack.
    static BUILDS: Cell<bool> = const { Cell::new(false) };
}

impl StallDetector {
    /// Calls the orchestration.
    pub(crate) fn building<R>(&self, build: impl FnOnce() -> R) -> R {
        self.builds.store(true, Ordering::Relaxed);
        let before = BUILDS.replace(true);
        let built = build();
        BUILDS.set(before);
        self.builds.store(false, Ordering::Relaxed);
        built
    }

    /// Calls a kernel.
    pub(crate) fn running<R>(&self, kernel: impl FnOnce() -> R) -> R {
        let is_above_builder = BUILDS.get();
        if is_above_builder {
            self.builds.store(false, Ordering::Relaxed);
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
        let ended = kernel();
        LOOKS.with_borrow_mut(|looks| looks.forget(self));
        self.running.fetch_sub(1, Ordering::Relaxed);
        if is_above_builder {
            self.builds.store(true, Ordering::Relaxed);
        }
        ended
    }

    /// The kernel on this thread looks at a word; whether the run is stuck.
    pub(crate) fn look(&self, look: PolledWord) -> bool {
        LOOKS.with_borrow_mut(|looks| looks.look(self, look))
    }

    /// The same for a look that comes some milliseconds after the last one.
    pub(crate) fn look_slowly(&self, look: PolledWord) -> bool {
        LOOKS.with_borrow_mut(|looks| {
            if looks.learns(look) {
                looks.resume(self);
                return false;
            }
            looks.looks_at_clock_alone = false;
            looks.step(self, Instant::now())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{PollHistory, PolledWord, QUIET, QUIET_BY_CLOCK, StallDetector};
    use std::sync::atomic::Ordering;

    /// After how many steps of 10 ms a kernel that looks there finds its run stuck, of at most 2,000.
    fn steps(watch: &StallDetector, look: PolledWord, mut between: impl FnMut(u32)) -> Option<u32> {
        let (mut looks, begin) = (PollHistory::NONE, Instant::now());
        looks.look(watch, look);
        looks.look(watch, look);
        let found = (0..2_000).find(|step| {
            between(*step);
            looks.step(watch, begin + Duration::from_millis(10) * *step)
        });
        looks.resume(watch);
        found
    }

    const WORD: PolledWord = PolledWord { address: 64, value: 0 };

    fn steps_of(quiet: Duration) -> Option<u32> {
        u32::try_from(quiet.as_millis() / 10).ok()
    }

    #[test]
    fn a_run_is_stuck_when_all_of_its_kernels_wait() {
        let alone = StallDetector::default();
        alone.running.store(1, Ordering::Relaxed);
        assert_eq!(steps(&alone, WORD, |_| ()), steps_of(QUIET));
        let with_another = StallDetector::default();
        with_another.running.store(2, Ordering::Relaxed);
        assert_eq!(steps(&with_another, WORD, |_| ()), None, "the other one computes");
        with_another.waiting.store(1, Ordering::Relaxed);
        assert_eq!(steps(&with_another, WORD, |_| ()), steps_of(QUIET));
    }

    #[test]
    fn what_begins_or_ends_begins_the_wait_anew() {
        let watch = StallDetector::default();
        watch.running.store(1, Ordering::Relaxed);
        let change = |step| {
            if step == 50 {
                watch.changes.fetch_add(1, Ordering::Relaxed);
            }
        };
        assert_eq!(steps(&watch, WORD, change), steps_of(QUIET).map(|steps| steps + 50));
        let watch = StallDetector::default();
        watch.running.store(1, Ordering::Relaxed);
        watch.building(|| assert_eq!(steps(&watch, WORD, |_| ()), None, "it submits more"));
        watch.building(|| {
            watch.running.store(0, Ordering::Relaxed);
            watch.running(|| assert_eq!(steps(&watch, WORD, |_| ()), steps_of(QUIET)));
        });
    }

    #[test]
    fn a_delay_by_the_clock_may_take_longer() {
        let watch = StallDetector::default();
        watch.running.store(1, Ordering::Relaxed);
        assert_eq!(steps(&watch, PolledWord::CLOCK, |_| ()), steps_of(QUIET_BY_CLOCK));
    }

    #[test]
    fn new_is_another_value_or_an_address_that_was_long_not_looked_at() {
        let mut looks = PollHistory::NONE;
        let at = |address, value| PolledWord { address, value };
        assert!(looks.learns(at(64, 0)) && !looks.learns(at(64, 0)));
        assert!(looks.learns(at(64, 1)) && !looks.learns(at(64, 1)));
        for _ in 0..3 {
            for address in 0..100 {
                assert!(looks.learns(at(address, 0)), "a kernel that reads an array computes");
            }
        }
    }

    #[test]
    fn a_kernel_that_returns_waits_no_more() {
        let watch = StallDetector::default();
        watch.running(|| {
            for _ in 0..3 * super::LOOKS_A_STEP {
                assert!(!watch.look(WORD));
            }
            assert!(watch.is_stuck(), "it is the only one");
        });
        assert_eq!(watch.waiting.load(Ordering::Relaxed), 0);
        watch.running(|| assert!(!watch.is_stuck()));
    }
}

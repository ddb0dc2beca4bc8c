//! Publishes tasks: counts them, and lets the run end after the last one.
//!
//! Invariants: `outstanding` is raised before a task is published, in reserves of [`RESERVE`], one read-modify-write for
//! each; what is left of the reserve is given back before `build_done` is set.

use pto_abi::runtime::{InstanceLine, Progress};
use pto_abi::sync::{AtomicU64, Ordering, Sharing};
use pto_abi::task::{Task, UNPUBLISHED};

use crate::mutant::{self, Mutant};

/// Tasks by which `outstanding` is raised at once. 64: of 1, 16, 64 and 256, the first at which the raise
/// no longer shows in `pto bench`.
pub const RESERVE: u64 = 64;

/// The counters of a builder's publishes.
pub(crate) struct Publisher<'a> {
    progress: &'a Progress,
    line: &'a InstanceLine,
    /// Tasks that `outstanding` was raised by and that have not been published.
    reserve: u64,
}

impl<'a> Publisher<'a> {
    pub(crate) const fn new(progress: &'a Progress, line: &'a InstanceLine) -> Self {
        Self { progress, line, reserve: 0 }
    }

    /// The builder's own line.
    #[inline]
    pub(crate) const fn line(&self) -> &'a InstanceLine {
        self.line
    }

    /// Tasks that were published.
    #[inline]
    pub(crate) fn published(&self) -> u64 {
        self.line.published.load(Ordering::Relaxed)
    }

    /// What is left of the reserve.
    pub(crate) const fn reserve(&self) -> u64 {
        self.reserve
    }

    /// One task is about to be published.
    #[inline]
    pub(crate) fn count<S: Sharing>(&mut self) {
        if self.reserve == 0 {
            // Relaxed: ordered before every decrement of these tasks by the publish itself.
            let raise = if mutant::is(Mutant::NeverRaises) { 0 } else { RESERVE };
            S::fetch_add(&self.progress.outstanding, raise, Ordering::Relaxed);
            self.reserve = RESERVE;
        }
        self.reserve -= 1;
        count_one(&self.line.published);
    }

    /// Counts tasks that are about to be published, with no reserve.
    pub(crate) fn count_all<S: Sharing>(&self, tasks: u64) {
        // Relaxed: ordered before every decrement of these tasks by the pushes and releases that follow.
        S::fetch_add(&self.progress.outstanding, tasks, Ordering::Relaxed);
        count_some(&self.line.published, tasks);
    }

    /// So many tasks that were counted with no reserve are not published after all.
    #[cold]
    pub(crate) fn count_off<S: Sharing>(&self, tasks: u64) {
        S::fetch_sub(&self.progress.outstanding, tasks, Ordering::Relaxed);
        self.line.published.store(self.published() - tasks, Ordering::Relaxed);
    }

    /// The last publish has been made: the run may end.
    pub(crate) fn end<S: Sharing>(&mut self) {
        S::fetch_sub(&self.progress.outstanding, self.reserve, Ordering::Relaxed);
        self.reserve = 0;
        // Release: pairs with the Acquire load in `SharedState::build_is_done`; a scheduler that sees it sees every raise.
        self.progress.build_done.store(1, Ordering::Release);
    }
}

/// Adds one to a counter that only this instance writes.
#[inline]
pub(crate) fn count_one(counter: &AtomicU64) {
    count_some(counter, 1);
}

/// Adds to a counter that only this instance writes.
#[inline]
pub(crate) fn count_some(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// Turns [`UNPUBLISHED`] into `edges_in`, the producers counted; whether none of them is left.
#[inline]
pub(crate) fn release_published<S: Sharing>(task: &Task, edges_in: u32) -> bool {
    if edges_in == 0 {
        // No edge leads here, so no scheduler touches the fanin.
        task.fanin.store(0, Ordering::Relaxed);
        return true;
    }
    let bias = UNPUBLISHED - edges_in;
    // AcqRel: Release pairs with the Acquire half of the last decrement in `Flow::release`, whose
    // scheduler then reads the task; Acquire pairs with the Release half of the decrements made so far.
    S::fetch_sub_u32(&task.fanin, bias, Ordering::AcqRel) == bias
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Publisher, RESERVE, release_published};
    use pto_abi::runtime::{InstanceLine, Progress};
    use pto_abi::sync::{Exclusive, Ordering::Relaxed};
    use pto_abi::task::{Task, UNPUBLISHED};

    #[test]
    fn what_is_left_of_the_reserve_is_given_back() {
        let (progress, line) = (Progress::default(), InstanceLine::default());
        let mut publisher = Publisher::new(&progress, &line);
        let outstanding = || progress.outstanding.load(Relaxed);
        publisher.count::<Exclusive>();
        assert_eq!((outstanding(), publisher.reserve()), (RESERVE, RESERVE - 1));
        (0..RESERVE).for_each(|_| publisher.count::<Exclusive>());
        assert_eq!(outstanding(), 2 * RESERVE, "raised again, one read-modify-write for each");
        publisher.count_all::<Exclusive>(5);
        publisher.end::<Exclusive>();
        assert_eq!((outstanding(), publisher.published()), (RESERVE + 6, RESERVE + 6));
        assert_eq!(progress.build_done.load(Relaxed), 1);
    }

    #[test]
    fn a_task_is_ready_when_no_producer_is_left() {
        for (edges_in, released) in [(0, 0), (3, 3), (3, 2)] {
            let task = Task::default();
            task.fanin.store(UNPUBLISHED - released, Relaxed);
            let is_ready = release_published::<Exclusive>(&task, edges_in);
            assert_eq!(
                (is_ready, task.fanin.load(Relaxed)),
                (edges_in == released, edges_in - released)
            );
        }
    }
}

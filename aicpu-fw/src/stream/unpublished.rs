//! Tasks that the program keeps back: added, and published later. What the rings need because of them.
//!
//! While a task is kept back, nothing that was taken since it was added retires. How much that was is known when it
//! is published, from what the builder has noted of its slot: nothing is counted on the way there, and tasks that are
//! published as they are added are not looked at. In addition, an older task that waits for a later one keeps its slot until that
//! one is published.
//!
//! Invariant: what was taken since a task is counted once for each number of the next task.

/// No task.
const NONE: u64 = u64::MAX;

/// What is noted of tasks that are kept back.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnpublishedTasks {
    /// The oldest task that waits for a later one, since all tasks were published last.
    waiting: u64,
    /// Task `next` was the next one, and what was taken since task `from` was counted.
    counted: (u64, u64),
    /// The most entries of the tensor map.
    entries: u64,
}

impl UnpublishedTasks {
    pub(super) const fn new() -> Self {
        Self { waiting: NONE, counted: (NONE, NONE), entries: 0 }
    }

    /// Task `consumer` waits for a later one.
    pub(super) const fn waits_for_later(&mut self, consumer: u64) {
        if consumer < self.waiting {
            self.waiting = consumer;
        }
    }

    /// Whether task `number`, which is published while `next` is the next one, was kept back, or keeps another one.
    #[inline]
    pub(super) const fn concerns(&self, number: u64, next: u64) -> bool {
        number + 1 != next || self.waiting != NONE
    }

    /// The task since which is to be counted what was taken, when `number` is published; `None`: that was counted.
    #[must_use]
    pub(super) fn count_from(&mut self, number: u64, watermark: u64, next: u64) -> Option<u64> {
        let from = number.min(self.waiting.max(watermark));
        let (then, known) = self.counted;
        let is_new = then != next || from < known;
        if is_new {
            self.counted = (next, from);
        }
        is_new.then_some(from)
    }

    /// So many entries of the tensor map were taken while a task was kept back.
    pub(super) fn count_entries(&mut self, entries: u64) {
        self.entries = self.entries.max(entries);
    }

    /// All tasks are published.
    pub(super) const fn none_is_left(&mut self) {
        self.waiting = NONE;
    }

    /// The most entries of the tensor map that were taken while a task was kept back.
    pub(super) const fn entries(&self) -> u64 {
        self.entries
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::UnpublishedTasks;

    #[test]
    fn what_was_taken_is_counted_from_the_oldest_task_that_is_kept() {
        let mut unpublished = UnpublishedTasks::new();
        assert!(!unpublished.concerns(9, 10), "published as it is added");
        assert!(unpublished.concerns(7, 10));
        assert_eq!(unpublished.count_from(7, 5, 10), Some(7));
        assert_eq!(unpublished.count_from(8, 5, 10), None, "it was taken since task 7, too");
        assert_eq!(unpublished.count_from(8, 5, 11), Some(8), "more was added");
        unpublished.waits_for_later(6);
        unpublished.waits_for_later(7);
        assert!(unpublished.concerns(10, 11));
        assert_eq!(unpublished.count_from(10, 5, 11), Some(6), "task 6 keeps its slot");
        assert_eq!(unpublished.count_from(10, 9, 12), Some(9), "unless it has completed");
        unpublished.none_is_left();
        assert!(!unpublished.concerns(11, 12));
    }
}

//! The window of slots: tasks are numbered in the order in which they are added; task `n` is in slot `n % window`.
//!
//! Invariants: `first <= watermark <= next`, and `next - watermark` is at most the number of slots. Every task below the
//! watermark has completed. An id is a slot and a generation; the generation grows by one each time round the window, from
//! the first one of the run. Ids of one run are all different, up to 2^32 times round, and an
//! id of an earlier run is known as such unless a run goes round very often (`first_generation`).
//!
//! Why it is so: `docs/decisions/slot-reuse.md`.

use core::hash::{Hash, Hasher};

use pto_abi::kinds::TaskState;
use pto_abi::stream::SlotNote;
use pto_abi::sync::Ordering;
use pto_abi::task::Task;
use pto_abi::{Fault, TaskId};
use pto_graph::Origin;

use super::rings::low_half;
use crate::blame::Blame;
use crate::builder::task_line::first_generation;

/// See the file.
#[derive(Clone)]
pub(super) struct SlotWindow<'a> {
    tasks: &'a [Task],
    /// What the builder notes of each slot: where the rings stood before its task took a part of them.
    notes: &'a [SlotNote],
    /// The number of the next task, and of the oldest one that has not completed.
    next: u64,
    watermark: u64,
    first: u64,
    shift: u32,
    mask: u64,
    generation: u32,
}

impl<'a> SlotWindow<'a> {
    /// An empty window; `notes`: as many as it has slots, a power of two.
    pub(super) fn new(
        tasks: &'a [Task],
        notes: &'a [SlotNote],
        first: u64,
        generation: u32,
    ) -> Self {
        let slots = notes.len() as u64;
        Self {
            tasks,
            notes,
            next: first,
            watermark: first,
            first,
            shift: slots.checked_ilog2().unwrap_or(0),
            mask: slots.saturating_sub(1),
            generation: first_generation(generation),
        }
    }

    /// The number of the next task.
    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The number of the oldest task that has not completed; [`next`](Self::next): there is none.
    #[inline]
    pub(super) const fn watermark(&self) -> u64 {
        self.watermark
    }

    /// How many tasks were added.
    #[inline]
    pub(super) const fn added(&self) -> u64 {
        self.next - self.first
    }

    /// Tasks that have not retired.
    #[inline]
    pub(super) const fn in_use(&self) -> u64 {
        self.next - self.watermark
    }

    /// How many slots there are.
    #[inline]
    pub(super) const fn slots(&self) -> u64 {
        self.mask + 1
    }

    /// The number of this run.
    pub(super) const fn run(&self) -> u32 {
        self.generation
    }

    /// The number of this run and the window's tasks, for templates of chains.
    #[inline]
    pub(super) fn origin(&self) -> Origin {
        Origin::of(self.tasks, self.generation)
    }

    #[inline]
    pub(super) const fn slot_of(&self, number: u64) -> u32 {
        // The mask is below 2^25.
        low_half(number & self.mask)
    }

    #[inline]
    pub(super) const fn id_of(&self, number: u64) -> TaskId {
        let lap = low_half(number >> self.shift);
        TaskId { slot: self.slot_of(number), generation: self.generation.wrapping_add(lap) }
    }

    /// The id that the next task will have.
    pub(super) const fn next_id(&self) -> TaskId {
        self.id_of(self.next)
    }

    /// The task in the slot of `number`.
    #[inline]
    pub(super) fn task(&self, number: u64) -> Option<&'a Task> {
        self.task_in(self.slot_of(number))
    }

    /// The task in a slot.
    #[inline]
    pub(super) fn task_in(&self, slot: u32) -> Option<&'a Task> {
        self.tasks.get(slot as usize)
    }

    /// What was noted of the slot of `number`.
    #[inline]
    pub(super) fn note(&self, number: u64) -> Option<&'a SlotNote> {
        self.notes.get(self.slot_of(number) as usize)
    }

    /// The state of a task that is not retired.
    pub(super) fn state_of(&self, number: u64) -> u8 {
        // Acquire: as in `advance`.
        self.task(number).map_or(0, |task| task.state.load(Ordering::Acquire))
    }

    /// Whether a task has completed, or retired.
    pub(super) fn has_completed(&self, number: u64) -> bool {
        number < self.watermark || self.state_of(number) == TaskState::COMPLETED.get()
    }

    /// Whether the program has added a task that has not retired, and not published it.
    pub(super) fn is_added(&self, number: u64) -> bool {
        self.state_of(number) == TaskState::ADDED.get()
    }

    /// The oldest task that the program has added and not published.
    pub(super) fn oldest_unpublished(&self) -> Option<u64> {
        (self.watermark..self.next).find(|number| self.is_added(*number))
    }

    /// The tasks that have not retired, oldest first.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &'a Task> + Clone + use<'a, '_> {
        (self.watermark..self.next).filter_map(|number| self.task(number))
    }

    /// Note, line and id of the next task; `None`: the host's tables are shorter than its window.
    #[inline]
    pub(super) fn open(&self) -> Option<(&'a SlotNote, &'a Task, TaskId)> {
        let id = self.next_id();
        Some((self.note(self.next)?, self.task_in(id.slot)?, id))
    }

    /// Why there is no slot for the next task.
    #[cold]
    #[inline(never)]
    pub(super) const fn no_slot(&self) -> Blame {
        let blame = Blame::of(Fault::STREAM_WINDOW_SIZE).task(self.next_id());
        blame.detail(self.next, self.slots())
    }

    /// The next task has been written.
    #[inline]
    pub(super) const fn add(&mut self) {
        self.next += 1;
    }

    /// Moves the watermark to the first task that has not completed; whether it has moved.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        let before = self.watermark;
        while self.watermark < self.next {
            let Some(task) = self.task(self.watermark) else { break };
            // Acquire: pairs with the Release store in `Flow::note_completed`, after which no scheduler touches the task, its
            // arguments or its edges.
            if task.state.load(Ordering::Acquire) != TaskState::COMPLETED.get() {
                break;
            }
            self.watermark += 1;
        }
        self.watermark > before
    }

    /// The number of a task that this run gave an id to; `None`: it gave none, and [`refusal`](Self::refusal) says why.
    #[inline]
    pub(super) fn number_of(&self, id: TaskId) -> Option<u64> {
        let (lap, age) = self.lap_and_age(id);
        // An age of more laps than there were gives a number far above `next`, because ages are below 2^32 and shifts below 26.
        let number = lap.wrapping_sub(age) << self.shift | u64::from(id.slot);
        let is_ours = number.wrapping_sub(self.first) < self.added();
        (is_ours && u64::from(id.slot) <= self.mask).then_some(number)
    }

    /// How often the next task's number goes round the window, and how many times less that of a task with this id does.
    #[inline]
    fn lap_and_age(&self, id: TaskId) -> (u64, u64) {
        let lap = self.next >> self.shift;
        let newest = self.generation.wrapping_add(low_half(lap));
        (lap, u64::from(newest.wrapping_sub(id.generation)))
    }

    /// Why this run gave no task this id.
    #[cold]
    #[inline(never)]
    pub(super) fn refusal(&self, id: TaskId) -> Blame {
        let (lap, age) = self.lap_and_age(id);
        if age > lap - (self.first >> self.shift) {
            let newest = self.id_of(lap << self.shift).generation;
            let blame = Blame::of(Fault::BUILD_STALE_TASK).task(id);
            return blame.detail(id.generation.into(), newest.into());
        }
        let number = (lap - age) << self.shift | u64::from(id.slot);
        Blame::of(Fault::BUILD_UNKNOWN_TASK).task(id).detail(number, self.next)
    }

    /// Hashes its position.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { tasks: _, notes: _, next, watermark, first, shift: _, mask: _, generation } =
            self;
        (next, watermark, first, generation).hash(into);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::SlotWindow;
    use pto_abi::kinds::TaskState;
    use pto_abi::stream::SlotNote;
    use pto_abi::sync::Ordering::Relaxed;
    use pto_abi::task::Task;
    use pto_abi::{Fault, TaskId};
    use std::vec::Vec;

    fn with_window(first: u64, test: impl FnOnce(&mut SlotWindow<'_>, &[Task])) {
        let tasks: Vec<Task> = (0..4).map(|_| Task::default()).collect();
        let notes: Vec<SlotNote> = (0..4).map(|_| SlotNote::default()).collect();
        test(&mut SlotWindow::new(&tasks, &notes, first, 3), &tasks);
    }

    fn add(window: &mut SlotWindow<'_>, state: TaskState) {
        let (_, task, _) = window.open().unwrap();
        task.state.store(state.get(), Relaxed);
        window.add();
    }

    #[test]
    fn the_watermark_stops_at_the_first_task_that_has_not_completed() {
        with_window(6, |window, tasks| {
            for state in [TaskState::COMPLETED, TaskState::ADDED, TaskState::COMPLETED] {
                add(window, state);
            }
            assert_eq!((window.advance(), window.watermark(), window.in_use()), (true, 7, 2));
            assert_eq!((window.oldest_unpublished(), window.has_completed(8)), (Some(7), true));
            assert!(!window.advance() && window.has_completed(6) && !window.has_completed(7));
            // Task 7 is in slot 3.
            tasks[3].state.store(TaskState::COMPLETED.get(), Relaxed);
            assert!(window.advance() && window.watermark() == window.next());
            assert_eq!((window.added(), window.oldest_unpublished()), (3, None));
        });
    }

    #[test]
    fn an_id_is_known_for_as_long_as_the_run_lasts() {
        for first in [0, 6, u64::from(u32::MAX) * 4 + 1] {
            with_window(first, |window, _| {
                let ids: Vec<TaskId> = (0..40)
                    .map(|_| {
                        let id = window.next_id();
                        add(window, TaskState::COMPLETED);
                        window.advance();
                        id
                    })
                    .collect();
                for (number, id) in (first..).zip(&ids) {
                    assert_eq!(window.number_of(*id), Some(number));
                }
                let fault = |id| {
                    assert_eq!(window.number_of(id), None);
                    window.refusal(id).fault
                };
                assert_eq!(fault(window.next_id()), Fault::BUILD_UNKNOWN_TASK);
                let older = TaskId { generation: ids[0].generation.wrapping_sub(1), ..ids[0] };
                assert_eq!(fault(older), Fault::BUILD_STALE_TASK);
                let beyond = TaskId { slot: 4, ..ids[39] };
                assert_eq!(fault(beyond), Fault::BUILD_UNKNOWN_TASK);
            });
        }
    }
}

//! Numbers of tasks: foreign code counts them from 0, in the order in which it added them.

use pto_abi::{Fault, TaskId};

/// Finds the id of a task by its number, in constant space. A streaming run gives out its slots in laps, each lap with a
/// generation of its own; how many slots there are shows when the first lap ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// The first task that was noted, and its number.
    first: Option<(TaskId, u64)>,
    /// Slots of a lap; 0: the first one has not ended.
    lap: u64,
    count: u64,
}

impl Numbers {
    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Notes the next task; its number.
    ///
    /// # Errors
    /// `BUILD_TASKS_FULL`: the sign does not hold it.
    pub fn note(&mut self, id: TaskId) -> Result<i64, Fault> {
        let (first, before) = *self.first.get_or_insert((id, self.count));
        let laps = u64::from(id.generation.wrapping_sub(first.generation));
        let at = u64::from(first.slot) + (self.count - before);
        if self.lap == 0 && laps > 0 {
            // Slots are given out one after the other.
            self.lap = at.saturating_sub(id.slot.into()) / laps;
        }
        let number = i64::try_from(self.count).map_err(|_| Fault::BUILD_TASKS_FULL)?;
        self.count += 1;
        Ok(number)
    }

    /// Counts tasks that were added at once, from a recording.
    pub fn skip(&mut self, tasks: u32) {
        self.count += u64::from(tasks);
    }

    /// The task with a number.
    ///
    /// # Errors
    /// `BUILD_UNKNOWN_TASK`.
    pub fn id(&self, number: i64) -> Result<TaskId, Fault> {
        let number = u64::try_from(number).ok().filter(|number| *number < self.count);
        let (number, (first, before)) = number.zip(self.first).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        let since = number.checked_sub(before).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        let at = u64::from(first.slot) + since;
        let laps = at.checked_div(self.lap).unwrap_or(0);
        let slot = u32::try_from(at - laps * self.lap).map_err(|_| Fault::BUILD_UNKNOWN_TASK)?;
        // Generations wrap, as those of the firmware do.
        let lap = u32::try_from(laps & u64::from(u32::MAX)).unwrap_or(0);
        Ok(TaskId { slot, generation: first.generation.wrapping_add(lap) })
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;
    use pto_abi::{Fault, TaskId};

    fn id(slot: u32, generation: u32) -> TaskId {
        TaskId { slot, generation }
    }

    #[test]
    fn without_laps_a_number_is_a_slot() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.id(0), Err(Fault::BUILD_UNKNOWN_TASK));
        for slot in 0..5 {
            assert_eq!(numbers.note(id(slot, 7)), Ok(slot.into()));
        }
        assert_eq!(numbers.id(3), Ok(id(3, 7)));
        assert_eq!(
            (numbers.id(5), numbers.id(-1)),
            (Err(Fault::BUILD_UNKNOWN_TASK), Err(Fault::BUILD_UNKNOWN_TASK))
        );
    }

    #[test]
    fn replays_are_counted() {
        // A window of 8; a replay of 5 tasks before the first one, and of 11 before the second one.
        let mut numbers = Numbers::default();
        numbers.skip(5);
        assert_eq!(numbers.note(id(5, 3)), Ok(5));
        numbers.skip(11);
        assert_eq!(numbers.note(id((5 + 12) % 8, 3 + 2)), Ok(17));
        assert_eq!((numbers.id(5), numbers.id(17)), (Ok(id(5, 3)), Ok(id(1, 5))));
        assert_eq!((numbers.id(8), numbers.id(9)), (Ok(id(0, 4)), Ok(id(1, 4))));
        assert_eq!(numbers.id(4), Err(Fault::BUILD_UNKNOWN_TASK), "before the first one");
    }

    #[test]
    fn laps_of_a_window_are_followed() {
        // A window of 8, a run whose first task has slot 6; the generations wrap.
        let expected = |n: u32| id((6 + n) % 8, (u32::MAX - 1).wrapping_add((6 + n) / 8));
        let mut numbers = Numbers::default();
        for n in 0..100 {
            assert_eq!(numbers.note(expected(n)), Ok(n.into()));
            assert!((0..=n).all(|n| numbers.id(n.into()) == Ok(expected(n))), "after {n}");
        }
    }
}

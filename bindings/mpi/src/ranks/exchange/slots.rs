//! The signal slots of this rank, and the transfers that wait for them.

use crate::ranks::group::SIGNAL_SLOTS;

/// The values, and who waits for which.
#[derive(Debug)]
pub(crate) struct Slots {
    values: Vec<u64>,
    waiting: Vec<(u64, u32, u64)>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { values: vec![0; SIGNAL_SLOTS as usize], waiting: Vec::new() }
    }
}

impl Slots {
    /// Adds to a slot; which transfers are over with it. `None`: there is no such slot.
    pub(crate) fn add(&mut self, slot: u32, value: u64) -> Option<Vec<u64>> {
        let held = self.values.get_mut(slot as usize)?;
        *held = held.wrapping_add(value);
        let held = *held;
        let is_over = |(_, other, at_least): &(u64, u32, u64)| *other == slot && held >= *at_least;
        let over = self.waiting.iter().filter(|one| is_over(one)).map(|(number, ..)| *number);
        let over = over.collect();
        self.waiting.retain(|one| !is_over(one));
        Some(over)
    }

    /// A transfer waits until a slot has at least `at_least`; whether it has that already. `None`: there is no such slot.
    pub(crate) fn wait(&mut self, number: u64, slot: u32, at_least: u64) -> Option<bool> {
        let has = *self.values.get(slot as usize)? >= at_least;
        if !has {
            self.waiting.push((number, slot, at_least));
        }
        Some(has)
    }

    /// A run begins.
    pub(crate) fn clear(&mut self) {
        self.values.fill(0);
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;
    use crate::ranks::group::SIGNAL_SLOTS;

    #[test]
    fn who_waits_is_over_when_the_slot_has_the_value() {
        let mut slots = Slots::default();
        assert_eq!(slots.wait(1, 3, 2), Some(false));
        assert_eq!(slots.wait(2, 4, 1), Some(false));
        assert_eq!(slots.add(3, 1), Some(vec![]));
        assert_eq!(slots.add(3, 1), Some(vec![1]));
        assert_eq!(slots.wait(3, 3, 2), Some(true));
        assert_eq!(slots.add(SIGNAL_SLOTS, 1), None);
        assert_eq!(slots.wait(4, SIGNAL_SLOTS, 1), None);
        slots.clear();
        assert_eq!(slots.wait(5, 3, 1), Some(false));
    }
}

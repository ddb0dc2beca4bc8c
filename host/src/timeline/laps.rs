//! Which task an event is of, in a run that used slots again.
//!
//! An event names its slot and the low bits of the slot's generation. The builder's `ADDED` says when each task got its slot:
//! of the tasks that had the slot with these bits, it is the one that got it next to the event's time. That time may be off
//! by as much as clocks of agents are, and a moment may be older than the event that reports it; half of all laps is more.

use std::collections::HashMap;

use pto_abi::trace::LAPS;

/// A task in its slot.
#[derive(Clone, Copy, Debug)]
struct Lap {
    number: u32,
    bits: u8,
    added_ns: u64,
}

/// The tasks of each slot, in their order.
#[derive(Debug, Default)]
pub(crate) struct Laps {
    of_slot: HashMap<u32, Vec<Lap>>,
    count: u32,
}

impl Laps {
    /// The next task.
    pub(crate) fn add(&mut self, slot: u32, bits: u8, added_ns: u64) {
        let lap = Lap { number: self.count, bits, added_ns };
        self.of_slot.entry(slot).or_default().push(lap);
        self.count += 1;
    }

    /// The number of the task that had the slot in a lap with these bits, at about this time.
    pub(crate) fn find(&self, slot: u32, bits: u8, time_ns: u64) -> Option<u32> {
        let laps = self.of_slot.get(&slot)?;
        let at = laps.partition_point(|lap| lap.added_ns <= time_ns).saturating_sub(1);
        let found = (0..LAPS as usize / 2).find_map(|distance| {
            let is_it = |index: &usize| laps.get(*index).is_some_and(|lap| lap.bits == bits);
            let before = at.checked_sub(distance).filter(is_it);
            before.or_else(|| Some(at + distance).filter(is_it))
        })?;
        laps.get(found).map(|lap| lap.number)
    }

    /// The number of the last task that had the slot before task `number` was added.
    pub(crate) fn before(&self, slot: u32, number: u32) -> Option<u32> {
        let laps = self.of_slot.get(&slot)?;
        let at = laps.partition_point(|lap| lap.number < number);
        laps.get(at.checked_sub(1)?).map(|lap| lap.number)
    }
}

#[cfg(test)]
mod tests {
    use super::Laps;

    /// Two slots, task `n` in slot `n % 2` at time `10 n`; generations begin at 125.
    fn laps() -> Laps {
        let mut laps = Laps::default();
        for number in 0..1000_u32 {
            let lap = (125 + number / 2) % 128;
            laps.add(number % 2, u8::try_from(lap).unwrap(), u64::from(number) * 10);
        }
        laps
    }

    #[test]
    fn an_event_finds_its_task_whatever_its_clock_is_off_by() {
        let laps = laps();
        for number in 0..1000 {
            let bits = u8::try_from((125 + number / 2) % 128).unwrap();
            for time in [0_u64, 5, 15, 600].map(u64::from) {
                let at = u64::from(number) * 10;
                assert_eq!(laps.find(number % 2, bits, at + time), Some(number));
                assert_eq!(laps.find(number % 2, bits, at.saturating_sub(time)), Some(number));
            }
        }
        assert_eq!(laps.find(2, 0, 0), None);
        assert_eq!(laps.find(0, 124, 10), None, "not near");
    }

    #[test]
    fn a_producer_had_its_slot_before_its_consumer() {
        let laps = laps();
        assert_eq!((laps.before(0, 500), laps.before(1, 500)), (Some(498), Some(499)));
        assert_eq!((laps.before(0, 501), laps.before(1, 0)), (Some(500), None));
    }
}

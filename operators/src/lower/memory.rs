//! Memory of activations: a list of holes, of which the first one that fits is taken.

use std::collections::BTreeMap;

/// Activations begin at lines of the cache.
const ALIGNMENT: u64 = 64;

/// Gives parts of one tensor to values, and takes them back.
#[derive(Debug, Default)]
pub(super) struct Planner {
    /// Holes below the peak: first byte, and the one behind the last.
    holes: BTreeMap<u64, u64>,
    taken: BTreeMap<usize, (u64, u64)>,
    peak: u64,
    sum: u64,
}

impl Planner {
    /// The first byte for a value of so many.
    pub(super) fn take(&mut self, value: usize, bytes: u64) -> u64 {
        let bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
        self.sum += bytes;
        let hole = self
            .holes
            .iter()
            .find(|(from, to)| *to - *from >= bytes)
            .map(|(from, to)| (*from, *to));
        let first = match hole {
            Some((from, to)) => {
                self.holes.remove(&from);
                if to - from > bytes {
                    self.holes.insert(from + bytes, to);
                }
                from
            }
            None => {
                // A hole at the end grows.
                let end = self
                    .holes
                    .last_key_value()
                    .filter(|(_, to)| **to == self.peak)
                    .map(|(from, _)| *from);
                let from = end.unwrap_or(self.peak);
                self.holes.remove(&from);
                self.peak = from + bytes;
                from
            }
        };
        self.taken.insert(value, (first, first + bytes));
        first
    }

    /// The value is not needed any more.
    pub(super) fn give_back(&mut self, value: usize) {
        let Some((mut from, mut to)) = self.taken.remove(&value) else { return };
        if let Some((before, end)) =
            self.holes.range(..from).next_back().map(|(from, to)| (*from, *to))
            && end == from
        {
            self.holes.remove(&before);
            from = before;
        }
        if let Some(end) = self.holes.remove(&to) {
            to = end;
        }
        self.holes.insert(from, to);
    }

    /// Bytes of the tensor.
    pub(super) const fn peak(&self) -> u64 {
        self.peak
    }

    /// Bytes of all values.
    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::Planner;

    #[test]
    fn holes_are_joined_and_reused() {
        let mut planner = Planner::default();
        let places: Vec<_> = (0..4).map(|value| planner.take(value, 64)).collect();
        assert_eq!(places, [0, 64, 128, 192]);
        planner.give_back(1);
        planner.give_back(2);
        assert_eq!(planner.take(4, 128), 64, "both holes together");
        planner.give_back(3);
        assert_eq!(planner.take(5, 200), 192, "the hole at the end grows");
        assert_eq!((planner.peak(), planner.sum()), (192 + 256, 4 * 64 + 128 + 256));
    }
}

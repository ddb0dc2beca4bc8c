//! Which of the streams that are ready is served next: pure functions of what is ready and of a number.

/// A stream that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The index of the stream in the service's table.
    pub(super) index: usize,
    /// 0 is served first.
    pub(super) priority: u8,
}

/// Sorts them into the order in which the service serves them: by priority, and round-robin within a priority, so that none starves.
pub(super) fn in_turn(candidates: &mut [Candidate], turn: usize) {
    let count = candidates.iter().map(|candidate| candidate.index + 1).max().unwrap_or(1);
    let distance = |index: usize| (index + count - turn % count) % count;
    // No two have the same key.
    candidates.sort_unstable_by_key(|candidate| (candidate.priority, distance(candidate.index)));
}

/// Choices by a seed (splitmix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `of`.
    pub(crate) fn below(&mut self, of: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let draw = (z ^ (z >> 31)) >> 32;
        usize::try_from((draw * of as u64) >> 32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Seeded, in_turn};

    fn order(priorities: &[u8], turn: usize) -> Vec<usize> {
        let candidates = priorities.iter().enumerate();
        let candidates = candidates.map(|(index, &priority)| Candidate { index, priority });
        let mut candidates: Vec<_> = candidates.collect();
        in_turn(&mut candidates, turn);
        candidates.into_iter().map(|candidate| candidate.index).collect()
    }

    #[test]
    fn priorities_come_first_and_equals_take_turns() {
        assert_eq!(order(&[7, 0, 7, 7], 0), [1, 0, 2, 3]);
        assert_eq!(order(&[7, 0, 7, 7], 2), [1, 2, 3, 0]);
        let firsts: Vec<_> = (0..6).map(|turn| order(&[1, 1, 1], turn)[0]).collect();
        assert_eq!(firsts, [0, 1, 2, 0, 1, 2]);
        assert!(order(&[], 5).is_empty());
    }

    #[test]
    fn a_seed_gives_the_same_choices_and_all_of_them() {
        let draw = |seed| {
            let mut seeded = Seeded::new(seed);
            (0..100).map(|_| seeded.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        assert!((0..7).all(|choice| draw(3).contains(&choice)));
    }
}

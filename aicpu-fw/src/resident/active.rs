//! Which streams have something to do, and in which order they are served: by priority, and within a priority in turns; or, with
//! a seed, from a stream that the seed chooses.

use pto_abi::limits::MAX_STREAMS;

const WORDS: usize = MAX_STREAMS.div_ceil(64);
/// Priorities of streams.
const PRIORITIES: usize = 8;

/// See the file.
pub(super) struct ActiveLanes {
    lanes: [[u64; WORDS]; PRIORITIES],
    /// Streams whose head was accepted, and waits.
    waiting: [u64; WORDS],
    /// Priorities that some active stream has, by bit.
    used: u32,
    turn: usize,
    seed: u64,
}

impl Default for ActiveLanes {
    fn default() -> Self {
        let lanes = [[0; WORDS]; PRIORITIES];
        Self { lanes, waiting: [0; WORDS], used: 0, turn: 0, seed: 0 }
    }
}

impl ActiveLanes {
    /// From now on `seed` chooses where a turn begins, unless it is zero.
    pub(super) const fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    pub(super) const fn is_seeded(&self) -> bool {
        self.seed != 0
    }

    /// The stream has something to do.
    pub(super) fn add(&mut self, stream: usize, priority: u64) {
        let priority = usize::try_from(priority).unwrap_or(PRIORITIES).min(PRIORITIES - 1);
        let lanes = self.lanes.get_mut(priority);
        if let Some(word) = lanes.and_then(|lanes| lanes.get_mut(stream / 64)) {
            *word |= 1 << (stream % 64);
            self.used |= 1 << priority;
        }
    }

    /// Whether the head of the stream was accepted, and waits.
    #[inline]
    pub(super) fn is_waiting(&self, stream: usize) -> bool {
        self.waiting.get(stream / 64).is_some_and(|word| word & 1 << (stream % 64) != 0)
    }

    /// Notes that.
    #[inline]
    pub(super) fn set_waiting(&mut self, stream: usize, is_waiting: bool) {
        if let Some(word) = self.waiting.get_mut(stream / 64) {
            *word = *word & !(1 << (stream % 64)) | u64::from(is_waiting) << (stream % 64);
        }
    }

    /// The stream has nothing to do.
    pub(super) fn remove(&mut self, stream: usize) {
        self.set_waiting(stream, false);
        for (priority, lanes) in self.lanes.iter_mut().enumerate() {
            if self.used & 1 << priority == 0 {
                continue;
            }
            if let Some(word) = lanes.get_mut(stream / 64) {
                *word &= !(1 << (stream % 64));
            }
            if lanes.iter().all(|word| *word == 0) {
                self.used &= !(1 << priority);
            }
        }
    }

    /// Whether no stream has anything to do.
    pub(super) const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The order of the next turn.
    pub(super) fn order(&mut self) -> RoundRobin {
        self.turn = if self.is_seeded() { self.draw() } else { (self.turn + 1) % MAX_STREAMS };
        RoundRobin { priority: 0, start: self.turn, at: self.turn, has_wrapped: false }
    }

    /// A number below [`MAX_STREAMS`] (xorshift64, Marsaglia 2003).
    fn draw(&mut self) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        usize::try_from(self.seed % MAX_STREAMS as u64).unwrap_or(0)
    }

    /// The first active stream of a priority from `at` on.
    fn from(&self, priority: usize, at: usize) -> Option<usize> {
        let lanes = self.lanes.get(priority).filter(|_| self.used & 1 << priority != 0)?;
        let mut mask = u64::MAX << (at % 64);
        for (index, word) in lanes.iter().enumerate().skip(at / 64) {
            let found = word & mask;
            if found != 0 {
                return Some(64 * index + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// A turn over the active streams.
pub(super) struct RoundRobin {
    priority: usize,
    start: usize,
    at: usize,
    has_wrapped: bool,
}

impl RoundRobin {
    /// The next stream of the turn.
    pub(super) fn next(&mut self, lanes: &ActiveLanes) -> Option<usize> {
        while self.priority < PRIORITIES {
            let found = lanes.from(self.priority, self.at);
            match found.filter(|found| !self.has_wrapped || *found < self.start) {
                Some(stream) => {
                    self.at = stream + 1;
                    return Some(stream);
                }
                None if self.has_wrapped => {
                    self.priority += 1;
                    (self.at, self.has_wrapped) = (self.start, false);
                }
                None => (self.at, self.has_wrapped) = (0, true),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::ActiveLanes;
    use std::vec::Vec;

    fn turn(lanes: &mut ActiveLanes) -> Vec<usize> {
        let mut order = lanes.order();
        core::iter::from_fn(|| order.next(lanes)).collect()
    }

    #[test]
    fn a_turn_has_every_active_stream_once_by_priority() {
        let mut lanes = ActiveLanes::default();
        for (stream, priority) in [(3, 7), (64, 7), (1983, 7), (5, 0), (0, 7)] {
            lanes.add(stream, priority);
        }
        assert_eq!(turn(&mut lanes), [5, 3, 64, 1983, 0], "from 1 on");
        lanes.turn = 4;
        assert_eq!(turn(&mut lanes), [5, 64, 1983, 0, 3], "from 5 on");
        [5, 64, 7].into_iter().for_each(|stream| lanes.remove(stream));
        assert_eq!(turn(&mut lanes).len(), 3);
    }

    #[test]
    fn a_seed_begins_everywhere() {
        let mut lanes = ActiveLanes::default();
        (0..1984).step_by(248).for_each(|stream| lanes.add(stream, 7));
        lanes.seed(9);
        let firsts: Vec<usize> = (0..200).map(|_| turn(&mut lanes)[0]).collect();
        assert!((0..1984).step_by(248).all(|stream| firsts.contains(&stream)));
    }
}

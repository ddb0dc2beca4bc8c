//! What edges a program should have, from sets of bytes, by brute force.

use std::collections::BTreeSet;

use crate::random::meet;

/// One access: task, tensor, bytes, whether it writes.
#[derive(Clone)]
pub(crate) struct Touch {
    pub(crate) task: u64,
    pub(crate) tensor: u64,
    pub(crate) bytes: Vec<u64>,
    pub(crate) writes: bool,
}

impl Touch {
    fn conflicts(&self, other: &Self) -> bool {
        self.tensor == other.tensor
            && (self.writes || other.writes)
            && meet(&self.bytes, &other.bytes)
    }

    /// One run of bytes around the other's, or the same bytes.
    fn covers(&self, other: &Self) -> bool {
        let contains = self.bytes.iter().zip(&other.bytes).all(|(a, b)| b & !a == 0);
        self.tensor == other.tensor && contains && (self.is_run() || self.bytes == other.bytes)
    }

    fn is_run(&self) -> bool {
        let ones: u32 = self.bytes.iter().map(|word| word.count_ones()).sum();
        let bits =
            || (0..self.bytes.len() * 64).filter(|b| self.bytes[b / 64] >> (b % 64) & 1 == 1);
        let (first, last) = (bits().next(), bits().next_back());
        first.zip(last).is_some_and(|(first, last)| last - first + 1 == ones as usize)
    }
}

/// Keeps what was touched so far, without what is hidden.
#[derive(Default)]
pub(crate) struct Oracle {
    seen: Vec<Touch>,
    all: Vec<Touch>,
}

impl Oracle {
    /// The producers of a task; `derived`: it waits for them, and hides what it covers.
    pub(crate) fn submit(&mut self, touches: &[Touch], derived: bool) -> BTreeSet<u64> {
        let mut producers = BTreeSet::new();
        if derived {
            for touch in touches {
                producers.extend(self.seen.iter().filter(|s| s.conflicts(touch)).map(|s| s.task));
            }
            for touch in touches.iter().filter(|touch| touch.writes) {
                self.seen.retain(|seen| !touch.covers(seen));
            }
        }
        self.seen.extend_from_slice(touches);
        self.all.extend_from_slice(touches);
        producers
    }

    /// Every pair of tasks that conflict, whether hidden or not.
    pub(crate) fn conflicts(&self) -> BTreeSet<(u64, u64)> {
        let mut pairs = BTreeSet::new();
        for (at, later) in self.all.iter().enumerate() {
            let earlier =
                self.all[..at].iter().filter(|e| e.task < later.task && e.conflicts(later));
            pairs.extend(earlier.map(|earlier| (earlier.task, later.task)));
        }
        pairs
    }
}

/// Whether each pair is a path along the edges.
pub(crate) fn all_reachable(
    tasks: u64,
    edges: &BTreeSet<(u64, u64)>,
    pairs: &BTreeSet<(u64, u64)>,
) -> bool {
    let size = usize::try_from(tasks).unwrap();
    let mut before = vec![vec![false; size]; size];
    for task in 0..size {
        for (producer, _) in edges.iter().filter(|(_, consumer)| *consumer == task as u64) {
            let producer = usize::try_from(*producer).unwrap();
            let row = before[producer].clone();
            before[task].iter_mut().zip(row).for_each(|(to, from)| *to |= from);
            before[task][producer] = true;
        }
    }
    pairs.iter().all(|(a, b)| before[usize::try_from(*b).unwrap()][usize::try_from(*a).unwrap()])
}

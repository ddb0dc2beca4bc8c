//! What edges a program should have, from sets of bytes, by brute force.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::meet;

/// One access: task, tensor, bytes, whether it writes.
#[derive(Clone)]
pub(crate) struct Touch {
    pub(crate) task: u64,
    pub(crate) tensor: u64,
    pub(crate) bytes: Vec<u64>,
    pub(crate) writes: bool,
    /// Whether its task waits for what the oracle says.
    pub(crate) derived: bool,
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

/// Keeps what was touched so far, without what is hidden, and which tasks each task waits for.
#[derive(Default)]
pub(crate) struct Oracle {
    seen: Vec<Touch>,
    all: Vec<Touch>,
    waits: BTreeMap<u64, BTreeSet<u64>>,
}

impl Oracle {
    /// Whose accesses conflict with those of a task and are not hidden; if it is derived, it waits for them, and hides what
    /// it covers.
    pub(crate) fn submit(&mut self, touches: &[Touch]) -> BTreeSet<u64> {
        let mut producers = BTreeSet::new();
        if touches.iter().all(|touch| touch.derived) {
            for touch in touches {
                producers.extend(self.seen.iter().filter(|s| s.conflicts(touch)).map(|s| s.task));
            }
        }
        for touch in touches {
            // Also what the task itself did in an argument before.
            self.seen.retain(|seen| !(touch.writes && touch.derived && touch.covers(seen)));
            self.seen.push(touch.clone());
        }
        self.all.extend_from_slice(touches);
        producers
    }

    /// Whether the producers found are some of those expected, and wait for the others: an edge from a task that is waited
    /// for anyhow may be left out.
    pub(crate) fn accepts(
        &mut self,
        task: u64,
        expected: &BTreeSet<u64>,
        found: &BTreeSet<u64>,
    ) -> bool {
        let mut waits = found.clone();
        for producer in found {
            waits.extend(self.waits.get(producer).into_iter().flatten());
        }
        let accepts = found.is_subset(expected) && expected.is_subset(&waits);
        self.waits.insert(task, waits);
        accepts
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

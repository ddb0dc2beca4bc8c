//! Races: two accesses to the same bytes, at least one of which writes, and no way between their nodes.
//!
//! ```text
//! accesses --by bytes--> classes --sweep over a block--> pairs of classes that meet (overlap.rs of the firmware)
//!   pair of classes: the accesses in an order of the graph; each is asked for a way from the last write before it and to
//!                    the first write after it --> reach.rs
//! ```
//! Where the writes of a class are a chain, and each access has a way to its neighbours in that chain, all pairs are ordered:
//! a race is found if there is one. Where a chain is broken, that is a race by itself, and others may hide after it.
//!
//! Cost: a comparison for each pair of classes of a block whose ranges of bytes meet (most tensors have few ways to be
//! used), and up to two questions for each access and each class that meets its own.

use std::collections::HashSet;

use pto_aicpu_fw::stream::overlap::overlap;
use pto_aicpu_fw::stream::region::{Dim, Region};

use crate::graph::Graph;
use crate::layout::{Access, Class};
use crate::reach::without_way;

/// Questions that are answered together: what they take of memory.
const TOGETHER: usize = 4_000_000;
/// Races that are reported one by one; more are only counted.
pub(crate) const MAX_REPORTED: usize = 1000;

/// Two accesses without an order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race {
    pub(crate) one: Access,
    pub(crate) other: Access,
    /// Their classes.
    pub(crate) classes: (usize, usize),
}

/// What the search came to.
#[derive(Debug, Default)]
pub(crate) struct Races {
    /// The first of them.
    pub(crate) races: Vec<Race>,
    /// How many were found.
    pub(crate) count: usize,
    /// Pairs of classes that take too many steps to compare.
    pub(crate) undecided: Vec<(usize, usize)>,
    /// Comparisons of regions, and questions for ways: the cost.
    pub(crate) compared: u64,
    pub(crate) asked: u64,
}

struct Search<'a> {
    graph: &'a Graph,
    positions: &'a [u32],
    classes: &'a [Class],
    pairs: Vec<(u32, u32)>,
    meant: Vec<Race>,
    /// The same pair is asked from both sides, and by several classes.
    seen: HashSet<(u32, u32, u32, u32)>,
    found: Races,
}

/// Shows each class, with those that begin before it in its block and reach to where it begins: the only ones that may have bytes in common with it.
pub(crate) fn sweep(classes: &[Class], mut look: impl FnMut(usize, &[usize])) {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|class| (classes[*class].block, classes[*class].region.low));
    // Classes that reach to where the sweep is.
    let mut open: Vec<usize> = Vec::new();
    for &class in &order {
        let Class { block, region, .. } = &classes[class];
        open.retain(|other| {
            let other = &classes[*other];
            other.block == *block && other.region.high > region.low
        });
        look(class, &open);
        open.push(class);
    }
}

/// All races, or as many as show that there are some. Nodes are below those of the graph, of which `positions` is an order.
pub(crate) fn races(graph: &Graph, positions: &[u32], classes: &[Class]) -> Races {
    let (pairs, meant, seen) = (Vec::new(), Vec::new(), HashSet::new());
    let mut search =
        Search { graph, positions, classes, pairs, meant, seen, found: Races::default() };
    search.sweep();
    search.answer();
    search.found
}

impl Search<'_> {
    /// Every pair of classes that meet, and every class by itself.
    fn sweep(&mut self) {
        let classes = self.classes;
        let sorted: Vec<Vec<Access>> = classes.iter().map(|class| self.sorted(class)).collect();
        let writes: Vec<bool> =
            sorted.iter().map(|class| class.iter().any(|access| access.writes)).collect();
        sweep(classes, |class, open| {
            if writes[class] {
                self.ask(&sorted, (class, class));
            }
            for &other in open {
                if !writes[class] && !writes[other] {
                    continue;
                }
                self.found.compared += 1;
                match overlap(&classes[other].region, &classes[class].region) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.ask(&sorted, (other, class));
                        self.ask(&sorted, (class, other));
                    }
                    Err(_) => self.found.undecided.push((other, class)),
                }
            }
        });
    }

    /// The accesses of a class in the order of the graph.
    fn sorted(&self, class: &Class) -> Vec<Access> {
        let mut accesses = class.accesses.clone();
        accesses.sort_by_key(|access| self.positions[access.node as usize]);
        accesses
    }

    /// Asks each access of the first class for its neighbours among the writes of the second one.
    fn ask(&mut self, sorted: &[Vec<Access>], classes: (usize, usize)) {
        let writes: Vec<Access> =
            sorted[classes.1].iter().filter(|access| access.writes).copied().collect();
        let position = |access: &Access| self.positions[access.node as usize];
        let mut questions = Vec::new();
        let mut next = 0;
        for access in &sorted[classes.0] {
            while writes.get(next).is_some_and(|write| position(write) < position(access)) {
                next += 1;
            }
            let before = next.checked_sub(1).and_then(|last| writes.get(last));
            let next_write = writes[next..].iter().find(|write| write.node != access.node);
            questions.extend(before.map(|write| (*write, *access, (classes.1, classes.0))));
            questions.extend(next_write.map(|write| (*access, *write, classes)));
        }
        for (one, other, classes) in questions {
            self.pairs.push((one.node, other.node));
            self.meant.push(Race { one, other, classes });
        }
        if self.pairs.len() > TOGETHER {
            self.answer();
        }
    }

    /// Looks for the ways that were asked for.
    fn answer(&mut self) {
        self.found.asked += self.pairs.len() as u64;
        let without = without_way(self.graph, self.positions, &self.pairs);
        for at in without {
            let race = self.meant[at];
            if self.seen.insert(key(&race)) {
                self.found.count += 1;
                if self.found.races.len() < MAX_REPORTED {
                    self.found.races.push(race);
                }
            }
        }
        self.pairs.clear();
        self.meant.clear();
    }
}

fn key(race: &Race) -> (u32, u32, u32, u32) {
    (race.one.node, race.other.node, race.one.argument, race.other.argument)
}

/// The first run of bytes that two regions have in common, from the beginning of one; `None`: there is none, or it takes too
/// many steps to find.
pub(crate) fn common_bytes(one: &Region, other: &Region) -> Option<(u64, u64)> {
    let run = first_run(one, other)?;
    let other = first_run(other, &run)?;
    let (low, high) = (run.low.max(other.low), run.high.min(other.high));
    (low < high).then_some((low, high))
}

/// The first run of bytes of a region that meets another one: halves what is left until it is one run.
fn first_run(region: &Region, other: &Region) -> Option<Region> {
    if !overlap(region, other).ok()? {
        return None;
    }
    let mut region = *region;
    while let Some((outermost, inner)) = region.dims().split_last() {
        let part = |start: u32, count: u32| {
            let mut dims = inner.to_vec();
            dims.extend((count > 1).then_some(Dim { stride: outermost.stride, count }));
            let low = region.low + u64::from(start) * outermost.stride;
            let reach = |dim: &Dim| dim.stride * u64::from(dim.count - 1);
            let high = low + dims.iter().map(reach).sum::<u64>() + region.run;
            Region::from_parts(low, high, region.run, &dims)
        };
        let half = outermost.count / 2;
        let first = part(0, half);
        region =
            if overlap(&first, other).ok()? { first } else { part(half, outermost.count - half) };
    }
    Some(region)
}

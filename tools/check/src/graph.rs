//! A directed graph of nodes that are numbers: neighbours, an order that respects all edges, the shortest cycle.

use std::collections::VecDeque;

/// Nodes that are looked at, at most, in the search for the shortest cycle; the first cycles that are found come from edges
/// against the order of the file, of which programs have few.
const SEARCHED: usize = 50_000_000;

/// The edges, grouped by producer, each once.
#[derive(Debug)]
pub(crate) struct Graph {
    starts: Vec<u32>,
    consumers: Vec<u32>,
}

impl Graph {
    /// All ends are below `nodes`. Edges that come twice are one.
    pub(crate) fn new(nodes: usize, mut edges: Vec<(u32, u32)>) -> Self {
        edges.sort_unstable();
        edges.dedup();
        let mut starts = vec![0_u32; nodes + 1];
        for (producer, _) in &edges {
            starts[*producer as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        Self { starts, consumers: edges.into_iter().map(|(_, consumer)| consumer).collect() }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Those who wait for a node, ascending.
    pub(crate) fn consumers(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.consumers[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// Whether one waits for the other by an edge of its own.
    pub(crate) fn has_edge(&self, producer: u32, consumer: u32) -> bool {
        self.consumers(producer).binary_search(&consumer).is_ok()
    }

    fn all(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.nodes()).unwrap_or(u32::MAX)
    }

    /// The position of each node in an order in which producers come first. `Err`: which nodes wait for a cycle, or are on one.
    pub(crate) fn order(&self) -> Result<Vec<u32>, Vec<u32>> {
        // Most programs are in order as they stand.
        if self.all().all(|node| self.consumers(node).first().is_none_or(|first| *first > node)) {
            return Ok(self.all().collect());
        }
        let mut waits = vec![0_u32; self.nodes()];
        for consumer in &self.consumers {
            waits[*consumer as usize] += 1;
        }
        let mut free: VecDeque<u32> =
            self.all().filter(|node| waits[*node as usize] == 0).collect();
        let mut positions = vec![u32::MAX; self.nodes()];
        let mut next = 0;
        while let Some(node) = free.pop_front() {
            positions[node as usize] = next;
            next += 1;
            for consumer in self.consumers(node) {
                waits[*consumer as usize] -= 1;
                if waits[*consumer as usize] == 0 {
                    free.push_back(*consumer);
                }
            }
        }
        if next as usize == self.nodes() {
            return Ok(positions);
        }
        Err(self.all().filter(|node| positions[*node as usize] == u32::MAX).collect())
    }

    /// The shortest cycle, producers before consumers, from its lowest node on. Every cycle has an edge against the order of
    /// the numbers; from the end of each such edge the way back to its start is searched breadth first. `among` are the nodes
    /// that [`order`](Self::order) has named.
    pub(crate) fn shortest_cycle(&self, among: &[u32]) -> Vec<u32> {
        let mut is_left = vec![false; self.nodes()];
        among.iter().for_each(|node| is_left[*node as usize] = true);
        let back = among.iter().flat_map(|node| {
            let back = self.consumers(*node).iter().take_while(move |consumer| *consumer < node);
            back.map(move |consumer| (*node, *consumer))
        });
        let mut best: Vec<u32> = Vec::new();
        let mut budget = SEARCHED;
        let mut came_from = vec![u32::MAX; self.nodes()];
        for (producer, consumer) in back {
            let longest = if best.is_empty() { usize::MAX } else { best.len() - 1 };
            let way =
                self.way((consumer, producer), &is_left, longest, &mut came_from, &mut budget);
            if let Some(way) = way {
                best = way;
            }
            // No cycle is shorter, or it has taken long enough.
            if best.len() == 2 || budget == 0 && !best.is_empty() {
                break;
            }
        }
        let lowest = best.iter().enumerate().min_by_key(|(_, node)| **node);
        let lowest = lowest.map_or(0, |(position, _)| position);
        best.rotate_left(lowest);
        best
    }

    /// The shortest way between two nodes, if it has at most `longest` nodes.
    fn way(
        &self,
        (from, to): (u32, u32),
        is_left: &[bool],
        longest: usize,
        came_from: &mut [u32],
        budget: &mut usize,
    ) -> Option<Vec<u32>> {
        let mut seen = vec![from];
        came_from[from as usize] = from;
        let (mut level, mut depth, mut found) = (0..1, 1, from == to);
        while !found && !level.is_empty() && depth < longest {
            let end = seen.len();
            for at in level {
                let node = seen[at];
                *budget = budget.saturating_sub(1);
                for consumer in self.consumers(node) {
                    let position = &mut came_from[*consumer as usize];
                    if *position == u32::MAX && is_left[*consumer as usize] {
                        *position = node;
                        seen.push(*consumer);
                        found |= *consumer == to;
                    }
                }
            }
            level = end..seen.len();
            depth += 1;
        }
        let mut way = vec![to];
        while found && way.last() != Some(&from) {
            let last = way[way.len() - 1];
            way.push(came_from[last as usize]);
        }
        way.reverse();
        seen.iter().for_each(|node| came_from[*node as usize] = u32::MAX);
        found.then_some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;

    #[test]
    fn a_graph_without_a_cycle_has_an_order() {
        let graph = Graph::new(5, vec![(3, 1), (1, 0), (3, 0), (0, 4), (3, 1)]);
        let positions = graph.order().unwrap();
        for (producer, consumer) in [(3, 1), (1, 0), (3, 0), (0, 4)] {
            assert!(positions[producer] < positions[consumer]);
        }
        assert_eq!(graph.consumers(3), [0, 1], "an edge that comes twice is one");
        assert_eq!(Graph::new(3, vec![(0, 2)]).order().unwrap(), [0, 1, 2]);
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        // 0 -> 1 -> 2 -> 3 -> 4 -> 0 with a shortcut 1 -> 4, and 5 -> 6 -> 7 -> 5 after it.
        let edges = vec![(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 4), (4, 5), (5, 6), (6, 7)];
        let with = |more: &[(u32, u32)]| {
            let graph = Graph::new(9, edges.iter().chain(more).copied().collect());
            let left = graph.order().unwrap_err();
            (left.len(), graph.shortest_cycle(&left))
        };
        assert_eq!(with(&[]), (8, vec![0, 1, 4]));
        assert_eq!(with(&[(7, 6)]), (8, vec![6, 7]));
        assert_eq!(with(&[(7, 5), (8, 0)]), (8, vec![0, 1, 4]));
    }

    /// Against all simple cycles, on small random graphs.
    #[test]
    fn no_cycle_is_shorter() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from((seed >> 33) % below).unwrap()
        };
        let mut cyclic = 0;
        for _ in 0..400 {
            let count = 4 + random(9);
            let edges: Vec<(u32, u32)> =
                (0..count).map(|_| (random(8), random(8))).filter(|(a, b)| a != b).collect();
            // The shortest way from each node to itself, by powers of the matrix.
            let shortest = (0..8).filter_map(|node| {
                let mut reached = vec![node];
                (1..=8).find(|_| {
                    let next = edges.iter().filter(|(a, _)| reached.contains(a)).map(|(_, b)| *b);
                    reached = next.collect();
                    reached.contains(&node)
                })
            });
            let shortest = shortest.min();
            let graph = Graph::new(8, edges.clone());
            match graph.order() {
                Ok(_) => assert_eq!(shortest, None),
                Err(left) => {
                    let cycle = graph.shortest_cycle(&left);
                    assert_eq!(Some(cycle.len()), shortest, "{edges:?}");
                    let next = cycle.iter().skip(1).chain(cycle.first());
                    assert!(cycle.iter().zip(next).all(|(a, b)| graph.has_edge(*a, *b)));
                    cyclic += 1;
                }
            }
        }
        assert!(cyclic > 100, "{cyclic}");
    }
}

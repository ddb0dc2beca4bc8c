//! Whether there is a way from one node to another, for many pairs at once.
//!
//! Pairs are taken in groups of 64 sources, in the order of the graph: one pass over the nodes from the first source to the
//! last target carries a word with a bit for each source along the edges. Cost: an edge is looked at once for each group
//! whose range it is in, `edges * sources / 64` at most, without a matrix; what is asked here is mostly near: neighbours among
//! the accesses to one tensor. Pairs with an edge of their own are not asked at all.

use crate::graph::Graph;

/// Sources of a pass: bits of a word.
const SOURCES: usize = 64;

/// The pairs, by their indices in `pairs`, that have no way; `positions` is an order of the graph ([`Graph::order`]).
pub(crate) fn without_way(graph: &Graph, positions: &[u32], pairs: &[(u32, u32)]) -> Vec<usize> {
    let position = |node: u32| positions[node as usize];
    let mut order = vec![0_u32; positions.len()];
    for (node, position) in (0_u32..).zip(positions) {
        order[*position as usize] = node;
    }
    let mut without = Vec::new();
    let mut asked = Vec::new();
    for (at, (from, to)) in pairs.iter().enumerate() {
        if position(*from) >= position(*to) {
            without.push(at);
        } else if !graph.has_edge(*from, *to) {
            asked.push(at);
        }
    }
    asked.sort_unstable_by_key(|at| position(pairs[*at].0));
    let mut pass = Pass { graph, positions, order: &order, reached: vec![0; positions.len()] };
    let mut rest = asked.as_slice();
    while let Some(first) = rest.first() {
        let mut sources = vec![pairs[*first].0];
        let mut count = 0;
        for at in rest {
            let source = pairs[*at].0;
            if sources.last() != Some(&source) {
                if sources.len() == SOURCES {
                    break;
                }
                sources.push(source);
            }
            count += 1;
        }
        let (group, others) = rest.split_at(count);
        without.extend(pass.answer(&sources, pairs, group));
        rest = others;
    }
    without.sort_unstable();
    without
}

struct Pass<'g> {
    graph: &'g Graph,
    positions: &'g [u32],
    order: &'g [u32],
    /// By position; zero between passes.
    reached: Vec<u64>,
}

impl Pass<'_> {
    /// The pairs of a group that have no way; its sources ascend by position.
    fn answer(&mut self, sources: &[u32], pairs: &[(u32, u32)], group: &[usize]) -> Vec<usize> {
        let position = |node: u32| self.positions[node as usize] as usize;
        let first = position(sources[0]);
        let last = group.iter().map(|at| position(pairs[*at].1)).max().unwrap_or(first);
        for (bit, source) in sources.iter().enumerate() {
            self.reached[position(*source)] |= 1 << bit;
        }
        for at in first..=last {
            let bits = self.reached[at];
            if bits != 0 {
                for consumer in self.graph.consumers(self.order[at]) {
                    let to = self.positions[*consumer as usize] as usize;
                    if to <= last {
                        self.reached[to] |= bits;
                    }
                }
            }
        }
        let mut bit = 0;
        let mut without = Vec::new();
        for at in group {
            let (from, to) = pairs[*at];
            while sources[bit] != from {
                bit += 1;
            }
            if self.reached[position(to)] >> bit & 1 == 0 {
                without.push(*at);
            }
        }
        self.reached[first..=last].fill(0);
        without
    }
}

#[cfg(test)]
mod tests {
    use super::without_way;
    use crate::graph::Graph;

    #[test]
    fn ways_are_found_as_by_hand() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from((seed >> 33) % below).unwrap()
        };
        for round in 0..20 {
            let nodes = 150_u32;
            // Half of the graphs are in order as they stand, the others are not.
            let name = |node: u32| if round % 2 == 0 { node } else { (node * 77 + 5) % nodes };
            let edges: Vec<(u32, u32)> = (0..200)
                .map(|_| (random(150), random(150)))
                .filter(|(a, b)| a < b)
                .map(|(a, b)| (name(a), name(b)))
                .collect();
            let mut reaches = vec![vec![false; 150]; 150];
            for node in (0..nodes).rev().map(name) {
                for (_, to) in edges.iter().filter(|(from, _)| *from == node) {
                    let row = reaches[*to as usize].clone();
                    reaches[node as usize].iter_mut().zip(row).for_each(|(a, b)| *a |= b);
                    reaches[node as usize][*to as usize] = true;
                }
            }
            let graph = Graph::new(150, edges);
            let positions = graph.order().unwrap();
            let pairs: Vec<(u32, u32)> =
                (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))).collect();
            let without = without_way(&graph, &positions, &pairs);
            let expected: Vec<usize> = (0..pairs.len())
                .filter(|at| !reaches[pairs[*at].0 as usize][pairs[*at].1 as usize])
                .collect();
            assert_eq!(without, expected);
        }
    }
}

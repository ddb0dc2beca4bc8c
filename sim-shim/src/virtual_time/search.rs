//! A depth-first search over all choices of a machine, and over its states where they are known.
//!
//! For every path the machine is run from the start: the choices of the path before up to the last one that has another
//! alternative, that alternative, and from there on the first alternative of each. Where the machine says in which state
//! it is, no path goes on from a state that another one went on from: what comes there is part of that one. How many orders
//! there are is counted all the same: each state knows how many go on from it.
//!
//! Why it is so: `docs/decisions/state-search.md`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// One choice: what was chosen, out of how many.
#[derive(Clone, Copy, Debug)]
struct Branch {
    chosen: u32,
    of: u32,
    /// The state before it, if it is known.
    state: Option<u128>,
    /// Orders that go on from it, by the alternatives that are done.
    orders: u128,
}

/// What is known of a state.
#[derive(Clone, Copy, Debug)]
enum StateStatus {
    /// The state is on the current path.
    UnderWay,
    /// The state was searched; this many orders continue from it.
    Done(u128),
}

/// A search.
#[derive(Clone, Debug)]
pub struct Search {
    path: Vec<Branch>,
    next: usize,
    known: Option<HashMap<u128, StateStatus>>,
    /// The state before the next choice.
    state: Option<u128>,
    /// The path has come to this state, which was known.
    joined: Option<StateStatus>,
    orders: u128,
    cycles: u64,
}

impl Search {
    const fn new(known: Option<HashMap<u128, StateStatus>>) -> Self {
        Self { path: Vec::new(), next: 0, known, state: None, joined: None, orders: 0, cycles: 0 }
    }

    /// A search over all paths.
    pub(super) const fn over_paths() -> Self {
        Self::new(None)
    }

    /// A search over all states.
    pub(super) fn over_states() -> Self {
        Self::new(Some(HashMap::new()))
    }

    /// Whether states are compared.
    pub(super) const fn is_over_states(&self) -> bool {
        self.known.is_some()
    }

    /// How many orders of choices there are; 0 before the search is over. One that comes back to where it was is not counted.
    #[must_use]
    pub const fn orders(&self) -> u128 {
        self.orders
    }

    /// How many states there are at which there is a choice.
    #[must_use]
    pub fn states(&self) -> usize {
        self.known.as_ref().map_or(0, HashMap::len)
    }

    /// How many paths have come back to a state that they had been in.
    #[must_use]
    pub const fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Whether the state before the next choice is of interest: that choice is a new one.
    #[inline]
    pub(super) const fn wants_state(&self) -> bool {
        self.known.is_some() && self.joined.is_none() && self.next >= self.path.len()
    }

    /// The machine is in this state; a choice follows.
    pub(super) fn visit(&mut self, state: u128) {
        let Some(known) = &mut self.known else { return };
        match known.entry(state) {
            Entry::Occupied(found) => self.joined = Some(*found.get()),
            Entry::Vacant(vacant) => {
                vacant.insert(StateStatus::UnderWay);
                self.state = Some(state);
            }
        }
    }

    /// The next choice of this path, out of `of`.
    #[inline]
    pub(super) fn step(&mut self, of: u32) -> u32 {
        if let Some(branch) = self.path.get(self.next) {
            self.next += 1;
            return branch.chosen.min(of - 1);
        }
        if self.joined.is_none() {
            self.next += 1;
            self.path.push(Branch { chosen: 0, of, state: self.state.take(), orders: 0 });
        }
        0
    }

    /// The run is over: goes on to the next path. `false`: all have been taken.
    pub(super) fn advance(&mut self) -> bool {
        let mut orders = match self.joined.take() {
            None => 1,
            Some(StateStatus::Done(orders)) => orders,
            Some(StateStatus::UnderWay) => {
                self.cycles += 1;
                0
            }
        };
        self.next = 0;
        while let Some(last) = self.path.last_mut() {
            last.orders = last.orders.saturating_add(orders);
            if last.chosen + 1 < last.of {
                last.chosen += 1;
                return true;
            }
            orders = last.orders;
            if let Some((known, state)) = self.known.as_mut().zip(last.state) {
                known.insert(state, StateStatus::Done(orders));
            }
            self.path.pop();
        }
        self.orders = orders;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Search;

    /// Two agents that take `steps` steps each; the state is how many each has taken.
    fn walk(search: &mut Search, steps: u32) {
        let mut taken = [0; 2];
        while taken != [steps; 2] {
            let able = taken.map(|taken| taken < steps);
            let chosen = if able == [true; 2] {
                if search.wants_state() {
                    search.visit(u128::from(taken[0]) << 64 | u128::from(taken[1]));
                }
                search.step(2) as usize
            } else {
                usize::from(!able[0])
            };
            taken[chosen] += 1;
        }
    }

    fn searched(mut search: Search, steps: u32) -> (u64, Search) {
        for runs in 1.. {
            walk(&mut search, steps);
            if !search.advance() {
                return (runs, search);
            }
        }
        unreachable!("the search ends");
    }

    #[test]
    fn both_ways_count_the_same_orders() {
        for steps in 1..7 {
            let (paths, all) = searched(Search::over_paths(), steps);
            let (runs, states) = searched(Search::over_states(), steps);
            assert_eq!((all.orders(), states.orders()), (paths.into(), paths.into()));
            assert_eq!((states.states(), states.cycles()), ((steps * steps) as usize, 0));
            assert!(runs <= u64::from(2 * steps * steps), "{runs} runs for {paths} orders");
        }
        let (runs, states) = searched(Search::over_states(), 40);
        assert!(runs < 3_300 && states.orders() > 1 << 70, "{runs}: {}", states.orders());
    }

    #[test]
    fn a_path_that_comes_back_is_not_followed_for_ever() {
        let mut search = Search::over_states();
        let mut runs = 0;
        loop {
            // Two states, from each of which one alternative leads to the other one, and one to the end.
            let mut state = 0;
            for _ in 0..100 {
                if search.wants_state() {
                    search.visit(state);
                }
                if search.step(2) == 1 {
                    break;
                }
                state = 1 - state;
            }
            runs += 1;
            if !search.advance() {
                break;
            }
        }
        assert_eq!((runs, search.orders(), search.cycles()), (3, 2, 1));
    }
}

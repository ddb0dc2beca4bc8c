//! The event queue of the machine: which agent takes its turn at which time.
//!
//! Each agent (an AICPU instance, its alarm, a core, or the transfer engine) is due at most once; idle agents are not due and cost nothing.
//! Agents due at the present moment are in a list of their own, from which the [`Chooser`] picks; later ones
//! in a binary heap. An entry whose agent has meanwhile been made due earlier is skipped when it comes up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};

use pto_abi::limits::{MAX_AICPU_INSTANCES, MAX_WORKERS};

use super::chooser::Chooser;

/// Who may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    /// An AICPU instance.
    Instance(usize),
    /// What wakes that instance if nothing else does, for its watchdog.
    Alarm(usize),
    /// A core.
    Core(usize),
    /// What moves transfers between the devices of a group.
    Engine,
}

const FIRST_CORE: usize = 2 * MAX_AICPU_INSTANCES;
const ENGINE: usize = FIRST_CORE + MAX_WORKERS;
const AGENTS: usize = ENGINE + 1;
const NEVER: u64 = u64::MAX;

/// Whose turn came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextTurn {
    /// The next turn is that of an agent in the agenda.
    Agent(Agent),
    /// Of the caller, who competes with the agents (a builder program on the stack).
    Caller,
}

pub(super) struct Agenda {
    due: [u64; AGENTS],
    present: Vec<u8>,
    present_ns: u64,
    future: BinaryHeap<Reverse<(u64, u8)>>,
    turns: u64,
}

impl Agenda {
    pub(super) fn new() -> Self {
        Self {
            due: [NEVER; AGENTS],
            present: Vec::with_capacity(AGENTS),
            present_ns: 0,
            future: BinaryHeap::with_capacity(4 * AGENTS),
            turns: 0,
        }
    }

    /// Hashes who is due when.
    pub(super) fn hash_state(&self, into: &mut impl Hasher) {
        (&self.due, self.present_ns).hash(into);
    }

    /// Whether [`next`](Self::next) would have a choice.
    pub(super) fn offers_choice(&mut self, limit_ns: u64, rival: Rival) -> bool {
        if self.present.is_empty() && !self.move_on(limit_ns) || self.present_ns > limit_ns {
            return false;
        }
        let is_rival = rival == Rival::Caller && self.present_ns == limit_ns;
        self.present.len() + usize::from(is_rival) > 1
    }

    /// The present moment: no agent is due earlier.
    #[inline]
    pub(super) const fn now(&self) -> u64 {
        self.present_ns
    }

    /// How many turns agents have taken.
    pub(super) const fn turns(&self) -> u64 {
        self.turns
    }

    /// When the agent is due; `u64::MAX`: it is not.
    #[inline]
    pub(super) fn due(&self, agent: Agent) -> u64 {
        self.due[index(agent)]
    }

    /// Makes the agent due at `time_ns`, or at the present moment if that is past, unless it is due earlier.
    #[inline]
    pub(super) fn schedule(&mut self, agent: Agent, time_ns: u64) {
        let index = index(agent);
        let time_ns = time_ns.max(self.present_ns);
        if self.due[index] <= time_ns {
            return;
        }
        self.due[index] = time_ns;
        let number = u8::try_from(index).unwrap_or(u8::MAX);
        if time_ns == self.present_ns {
            self.present.push(number);
        } else {
            self.future.push(Reverse((time_ns, number)));
        }
    }

    /// When the next agent is due; `None`: no agent is.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.due.iter().copied().filter(|due| *due != NEVER).min()
    }

    /// The agent is not due any more.
    #[inline]
    pub(super) fn cancel(&mut self, agent: Agent) {
        let index = index(agent);
        if self.due[index] == self.present_ns {
            self.present.retain(|other| usize::from(*other) != index);
        }
        self.due[index] = NEVER;
    }

    /// The next turn, and its time, not later than `limit_ns`; `None`: no agent is due until then. With
    /// [`Rival::Caller`] the caller is due at `limit_ns` too, and competes with the agents of that moment.
    #[inline]
    pub(super) fn next(
        &mut self,
        limit_ns: u64,
        rival: Rival,
        chooser: &mut Chooser,
    ) -> Option<(u64, NextTurn)> {
        if self.present.is_empty() && !self.move_on(limit_ns) {
            return None;
        }
        if self.present_ns > limit_ns {
            return None;
        }
        let agents = u32::try_from(self.present.len()).unwrap_or(u32::MAX);
        let rivals = u32::from(rival == Rival::Caller && self.present_ns == limit_ns);
        let chosen = chooser.agent(agents + rivals);
        if chosen >= agents {
            return Some((self.present_ns, NextTurn::Caller));
        }
        let number = self.present.swap_remove(chosen as usize);
        self.due[usize::from(number)] = NEVER;
        self.turns += 1;
        Some((self.present_ns, NextTurn::Agent(agent(usize::from(number)))))
    }

    /// Goes on to the next moment at which an agent is due, unless it is later than `limit_ns`.
    #[inline]
    fn move_on(&mut self, limit_ns: u64) -> bool {
        while let Some(Reverse((time_ns, number))) = self.future.peek().copied() {
            if self.due[usize::from(number)] != time_ns {
                self.future.pop();
                continue;
            }
            if time_ns > limit_ns {
                return false;
            }
            self.present_ns = time_ns;
            self.fill_present();
            return true;
        }
        false
    }

    #[inline]
    fn fill_present(&mut self) {
        while let Some(Reverse((time_ns, number))) = self.future.peek().copied() {
            if time_ns != self.present_ns {
                break;
            }
            self.future.pop();
            // Twice in the heap for the same time: once is enough.
            if self.due[usize::from(number)] == time_ns && !self.present.contains(&number) {
                self.present.push(number);
            }
        }
    }
}

/// Whether the caller of [`Agenda::next`] is itself due at the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    None,
    Caller,
}

#[inline]
const fn index(agent: Agent) -> usize {
    match agent {
        Agent::Instance(instance) => instance % MAX_AICPU_INSTANCES,
        Agent::Alarm(instance) => MAX_AICPU_INSTANCES + instance % MAX_AICPU_INSTANCES,
        Agent::Core(worker) => FIRST_CORE + worker % MAX_WORKERS,
        Agent::Engine => ENGINE,
    }
}

#[inline]
const fn agent(index: usize) -> Agent {
    match (index.checked_sub(FIRST_CORE), index.checked_sub(MAX_AICPU_INSTANCES)) {
        (Some(MAX_WORKERS), _) => Agent::Engine,
        (Some(worker), _) => Agent::Core(worker),
        (None, Some(instance)) => Agent::Alarm(instance),
        (None, None) => Agent::Instance(index),
    }
}

#[cfg(test)]
mod tests {
    use super::{Agenda, Agent, Chooser, NextTurn, Rival};

    fn next(agenda: &mut Agenda, limit: u64) -> Option<(u64, NextTurn)> {
        agenda.next(limit, Rival::None, &mut Chooser::replay(Vec::new()))
    }

    #[test]
    fn the_earliest_comes_first_and_once() {
        let mut agenda = Agenda::new();
        agenda.schedule(Agent::Core(127), 30);
        agenda.schedule(Agent::Instance(3), 20);
        agenda.schedule(Agent::Core(0), 20);
        agenda.schedule(Agent::Core(127), 10);
        agenda.schedule(Agent::Core(127), 40);
        assert_eq!(agenda.due(Agent::Core(127)), 10);
        assert_eq!(next(&mut agenda, 9), None);
        assert_eq!(next(&mut agenda, 99), Some((10, NextTurn::Agent(Agent::Core(127)))));
        let two = [next(&mut agenda, 99), next(&mut agenda, 99)];
        assert!(two.contains(&Some((20, NextTurn::Agent(Agent::Core(0))))));
        assert!(two.contains(&Some((20, NextTurn::Agent(Agent::Instance(3))))));
        assert_eq!((next(&mut agenda, u64::MAX - 1), agenda.now()), (None, 20));
        agenda.schedule(Agent::Core(1), 5);
        assert_eq!(agenda.due(Agent::Core(1)), 20, "no agent is due in the past");
        agenda.cancel(Agent::Core(1));
        assert_eq!(next(&mut agenda, 99), None);
    }

    #[test]
    fn the_caller_competes_at_its_own_moment_only() {
        let mut agenda = Agenda::new();
        agenda.schedule(Agent::Core(1), 10);
        let mut last = Chooser::replay(vec![1]);
        assert_eq!(
            agenda.next(11, Rival::Caller, &mut last),
            Some((10, NextTurn::Agent(Agent::Core(1))))
        );
        agenda.schedule(Agent::Core(1), 11);
        assert_eq!(agenda.next(11, Rival::Caller, &mut last), Some((11, NextTurn::Caller)));
        assert_eq!(agenda.due(Agent::Core(1)), 11);
    }
}

//! Which of the tasks that wait at one priority gets cores next: the one that became ready first, whatever its kind
//! (docs/decisions/priorities.md).
//!
//! Tasks with a block shape are numbered as they are posted, and remember how far the ready queues of plain tasks were then. So
//! any two that want the same cores can be compared, and plain tasks pay nothing.
//!
//! What cannot be had now does not hold up the rest: a list whose oldest task finds no cores is closed for the rest of the step
//! (what it needs most was set apart for it), and the next oldest task has its turn.

use pto_abi::CoreKind;

use crate::block_shapes::{Head, LEVEL_LISTS, WaitsFor};
use crate::mutant::{self, Mutant};

/// What waits at one priority, and what there is for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    /// The oldest task of each list that is not closed.
    pub(super) heads: [Option<Head>; LEVEL_LISTS],
    /// The position of the oldest plain task, by kind, if plain tasks have this priority.
    pub(super) plain: [Option<u64>; CoreKind::COUNT],
    /// Whether a core is free, by kind.
    pub(super) has_free: [bool; CoreKind::COUNT],
}

/// What happens next at one priority.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextDispatch {
    /// Plain tasks of this kind, those before this position of their queue, go to free cores.
    Plain(CoreKind, u64),
    /// The task at the head of this list gets what it waits for, as far as it is there.
    Blocks(WaitsFor, u32),
    /// Nothing is left that could be done here. (Plain tasks have further ways to go.)
    Nothing,
}

impl Level {
    /// Decides what happens next.
    pub(super) fn choose(&self) -> NextDispatch {
        let lists = WaitsFor::ALL.into_iter().zip(self.heads);
        let can_start = |list: WaitsFor| match list {
            WaitsFor::Core(kind) => self.has_free[kind.index()],
            WaitsFor::Cluster | WaitsFor::AllAtOnce => true,
        };
        let waiting = lists.filter_map(|(list, head)| Some((list, head?)));
        let waiting = waiting.filter(|(list, _)| can_start(*list));
        let Some((list, head)) = waiting.min_by_key(|(_, head)| head.age.posted) else {
            return NextDispatch::Nothing;
        };
        let is_older = |kind: &CoreKind| {
            let position = self.plain[kind.index()].filter(|_| self.has_free[kind.index()]);
            position.is_some_and(|position| position < head.age.plain_before[kind.index()])
        };
        match CoreKind::ALL.iter().copied().find(is_older) {
            Some(kind) if !mutant::is(Mutant::LetsPlainTasksWait) => {
                NextDispatch::Plain(kind, head.age.plain_before[kind.index()])
            }
            _ => NextDispatch::Blocks(list, head.slot),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{Level, NextDispatch};
    use crate::block_shapes::{Age, Head, LEVEL_LISTS, WaitsFor};
    use pto_abi::CoreKind;
    use std::vec::Vec;

    /// A task as a reference sees it: when it became ready, and what it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Ready {
        Plain(CoreKind),
        Blocks(WaitsFor),
    }

    struct Lcg(u64);

    impl Lcg {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % bound
        }

        fn ready(&mut self) -> Ready {
            let kind = CoreKind::ALL[usize::try_from(self.below(2)).unwrap()];
            match self.below(8) {
                0..4 => Ready::Plain(kind),
                4..6 => Ready::Blocks(WaitsFor::Core(kind)),
                6 => Ready::Blocks(WaitsFor::Cluster),
                _ => Ready::Blocks(WaitsFor::AllAtOnce),
            }
        }
    }

    /// The level that these tasks make, in the order in which they became ready, the oldest first.
    fn level_of(ready: &[Ready], first: [u64; 2], has_free: [bool; 2], closed: u64) -> Level {
        let mut level = Level { has_free, ..Level::default() };
        let mut tails = first;
        for (slot, task) in (0..).zip(ready) {
            match task {
                Ready::Plain(kind) => {
                    let tail = &mut tails[kind.index()];
                    level.plain[kind.index()].get_or_insert(*tail);
                    *tail += 1;
                }
                Ready::Blocks(list) => {
                    let age = Age { posted: 100 + u64::from(slot), plain_before: tails };
                    if closed >> list.index() & 1 == 0 {
                        level.heads[list.index()].get_or_insert(Head { slot, age });
                    }
                }
            }
        }
        level
    }

    /// Against a reference that has all tasks in one line: of the tasks for which there may be cores the oldest is chosen, and
    /// of plain ones exactly those that are older than the next task with blocks.
    #[test]
    fn the_oldest_goes_first() {
        let mut random = Lcg(11);
        let mut plain_first = 0;
        let rounds = if cfg!(miri) { 50 } else { 50_000 };
        for _ in 0..rounds {
            let count = random.below(12);
            let ready: Vec<Ready> = (0..count).map(|_| random.ready()).collect();
            let first = [random.below(5), 1 + random.below(5)];
            let has_free = [random.below(3) > 0, random.below(3) > 0];
            let closed = random.below(1 << LEVEL_LISTS) & random.below(1 << LEVEL_LISTS);
            let is_open = |task: &Ready| match task {
                Ready::Plain(kind) => has_free[kind.index()],
                Ready::Blocks(list) => {
                    let is_closed = closed >> list.index() & 1 == 1;
                    let has_core = |kind: CoreKind| has_free[kind.index()];
                    !is_closed
                        && if let WaitsFor::Core(kind) = *list { has_core(kind) } else { true }
                }
            };
            let open = (0_u32..).zip(&ready).filter(|(_, task)| is_open(task));
            let blocks = open.clone().find(|(_, task)| matches!(task, Ready::Blocks(_)));
            let oldest = open.clone().next();
            let choice = level_of(&ready, first, has_free, closed).choose();
            match (choice, oldest, blocks) {
                (NextDispatch::Nothing, _, None) => {}
                (NextDispatch::Blocks(list, slot), Some((oldest, task)), Some(_)) => {
                    assert_eq!((slot, &Ready::Blocks(list)), (oldest, task), "{ready:?}");
                }
                (
                    NextDispatch::Plain(kind, before),
                    Some((_, Ready::Plain(_))),
                    Some((next, _)),
                ) => {
                    let older = ready.iter().take(next as usize);
                    let count = older.filter(|task| **task == Ready::Plain(kind)).count() as u64;
                    assert!(count > 0 && before == first[kind.index()] + count, "{ready:?}");
                    plain_first += 1;
                }
                other => panic!("{ready:?} {has_free:?} {closed:b}: {other:?}"),
            }
        }
        assert!(plain_first > rounds / 10, "{plain_first}");
    }
}

//! The proof that nothing can move: it ends a wait that no scheduler will end.
//!
//! A task *moves* from when its fanin is zero until it is complete: it is in a queue, on a core, or its consumers are being
//! released. While the builder waits, everything that happens to other tasks is done for one that moves, so if none does,
//! none ever will. Schedulers may be at work while the builder looks at one task after the other; so it looks at all
//! of them twice.
//!
//! **Claim.** If in both looks every task is added, complete, or published with a fanin that is not zero, and as many are
//! complete in the second one as in the first, then nothing moves.
//! *Proof.* As no task leaves `COMPLETED` while the builder waits, the same tasks are complete in both: the set `C`. Suppose
//! that some task outside of `C` has moved; let `m` be the first such one in the order of happens-before. All its producers have
//! completed their release of it, so they have moved, so they are in `C`. A scheduler stores `COMPLETED` with Release after
//! its last decrement for a task, and the first look has loaded that with Acquire: all decrements of `m`'s fanin, and the
//! publish, which is the builder's own, happen before the second look. So that finds a fanin of zero, or `DISPATCHED`, or
//! `COMPLETED`: against the assumption. The first look alone does not say it: a task that waits for one with a later number
//! (an edge of [`add_edge`](pto_graph::GraphBuilder::add_edge)) has been passed when that one completes.
//!
//! A look ends at the first task that moves. The oldest one that has not completed does, unless it is added or waits for a later
//! one; so a look is at one line in nearly all waits, and at all of them in programs that keep tasks back. `ProofBackoff`
//! makes even those rare.

use pto_abi::kinds::TaskState;
use pto_abi::sync::Ordering;
use pto_abi::task::{EdgeChunk, Task};

use super::window::SlotWindow;
use crate::fanout::{ConsumerWalk, FanoutPolicy};

/// Whether schedulers run while the builder does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedulers {
    /// They do.
    Run,
    /// They wait for it: nothing completes before it has returned.
    Wait,
}

/// Turns of a wait before the first proof is tried. Under loom, where every turn multiplies what there is to explore: none.
const FIRST_PROOF: u64 = if cfg!(loom) { 0 } else { 8 };
/// Turns between two proofs at most, where fewer tasks than this are under way: a fraction of every stall budget.
const MOST_TURNS: u64 = 1024;
/// Walks back through the window in search of what keeps a task waiting. Each but the last one follows an edge from a later
/// task to an earlier one, of which a chain in a real program has few.
const WALKS: u32 = 64;

/// How many of these tasks are complete; `None`: one of them moves.
#[must_use]
pub fn rest<'t>(tasks: impl Iterator<Item = &'t Task>) -> Option<u64> {
    let mut completed = 0;
    for task in tasks {
        // Acquire: pairs with the Release store in `Flow::note_completed`; what that task has released is seen from here on.
        let state = task.state.load(Ordering::Acquire);
        if state == TaskState::COMPLETED.get() {
            completed += 1;
        } else if state == TaskState::ADDED.get() {
            // The builder's own, which waits.
        } else if state != TaskState::PUBLISHED.get() || task.fanin.load(Ordering::Relaxed) == 0 {
            return None;
        }
    }
    Some(completed)
}

/// Whether none of these tasks, which are all that have not retired, moves or ever will while the builder waits.
#[must_use]
pub fn nothing_moves<'t>(tasks: impl Iterator<Item = &'t Task> + Clone) -> bool {
    let first = rest(tasks.clone());
    first.is_some() && rest(tasks) == first
}

/// When a wait that does not end asks for the proof: after 8 turns, 16, 32, and so on, up to as many as there are tasks to be
/// looked at (at least 1,024). So it costs less than a load a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProofBackoff {
    turns: u64,
    pause: u64,
}

impl ProofBackoff {
    pub(super) const fn new() -> Self {
        Self { turns: FIRST_PROOF, pause: FIRST_PROOF }
    }

    /// One more turn has brought nothing; whether it is time for the proof, with this many tasks under way.
    const fn spend(&mut self, alive: u64) -> bool {
        if self.turns > 0 {
            self.turns -= 1;
            return false;
        }
        let most = if alive > MOST_TURNS { alive } else { MOST_TURNS };
        self.pause = if 2 * self.pause < most { 2 * self.pause } else { most };
        self.turns = self.pause;
        true
    }
}

/// What keeps a task waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocker {
    /// The program has not published this one.
    Unpublished(u64),
    /// This one waits for itself, through others, or no task releases it.
    Deadlock(u64),
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The watermark passes more tasks.
    Retired,
    /// It does, or this task completes.
    RetiredOrComplete(u64),
    /// This task completes.
    Complete(u64),
}

impl Until {
    /// Whether it is plain that this never comes while the builder waits: the program itself keeps back what it waits for, or
    /// nothing is under way.
    fn is_never(self, window: &SlotWindow<'_>) -> bool {
        let oldest = window.watermark();
        match self {
            Self::Retired => oldest == window.next() || window.is_added(oldest),
            Self::RetiredOrComplete(task) => window.is_added(oldest) && window.is_added(task),
            Self::Complete(task) => window.is_added(task),
        }
    }

    /// One more turn of a wait has brought nothing; whether what is waited for can never come. The caller then looks once more:
    /// it may have come in between.
    pub(super) fn give_up(
        self,
        window: &SlotWindow<'_>,
        schedulers: Schedulers,
        backoff: &mut ProofBackoff,
    ) -> bool {
        self.is_never(window)
            || schedulers == Schedulers::Wait
            || backoff.spend(window.in_use()) && nothing_moves(window.tasks())
    }
}

/// Why task `number`, which is not complete, never will be, when nothing moves: follows the edges back.
///
/// A walk goes from the newest task to the oldest one, so that it follows any number of edges from earlier tasks to later
/// ones. Circles are found in Brent's way: the search comes back to a task that it has remembered.
pub(super) fn cause_of<F: FanoutPolicy>(
    window: &SlotWindow<'_>,
    chunks: &[EdgeChunk],
    number: u64,
) -> Blocker {
    let (mut at, mut remembered) = (number, number);
    let (mut steps, mut limit) = (0_u64, 1_u64);
    for _ in 0..WALKS {
        let start = at;
        for producer in (window.watermark()..window.next()).rev() {
            if window.is_added(at) {
                return Blocker::Unpublished(at);
            }
            if !keeps_waiting::<F>(window, chunks, producer, at) {
                continue;
            }
            at = producer;
            if at == remembered {
                return Blocker::Deadlock(at);
            }
            steps += 1;
            if steps == limit {
                (remembered, steps, limit) = (at, 0, 2 * limit);
            }
        }
        if at == start {
            return Blocker::Deadlock(at);
        }
    }
    window.oldest_unpublished().map_or(Blocker::Deadlock(at), Blocker::Unpublished)
}

/// Whether `consumer` waits for `producer`, which has not completed.
fn keeps_waiting<F: FanoutPolicy>(
    window: &SlotWindow<'_>,
    chunks: &[EdgeChunk],
    producer: u64,
    consumer: u64,
) -> bool {
    let Some((task, count)) = window.task(producer).and_then(|task| Some((task, F::count(task)?)))
    else {
        return false;
    };
    let (mut walk, slot) = (ConsumerWalk::new(count), window.slot_of(consumer));
    core::iter::from_fn(|| walk.next(task, chunks)).any(|found| found == slot)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{MOST_TURNS, ProofBackoff, nothing_moves, rest};
    use pto_abi::kinds::TaskState;
    use pto_abi::sync::Ordering::Relaxed;
    use pto_abi::task::{Task, UNPUBLISHED};

    fn task(state: TaskState, fanin: u32) -> Task {
        let task = Task::default();
        task.state.store(state.get(), Relaxed);
        task.fanin.store(fanin, Relaxed);
        task
    }

    #[test]
    fn a_task_moves_from_its_last_release_to_its_completion() {
        let still = [
            task(TaskState::COMPLETED, 0),
            task(TaskState::ADDED, UNPUBLISHED),
            // Its producers have completed, and it was not published.
            task(TaskState::ADDED, 0),
            task(TaskState::PUBLISHED, 1),
            task(TaskState::COMPLETED, 0),
        ];
        assert_eq!((rest(still.iter()), nothing_moves(still.iter())), (Some(2), true));
        for moving in [task(TaskState::PUBLISHED, 0), task(TaskState::DISPATCHED, 0)] {
            assert!(!nothing_moves(still.iter().chain([&moving])));
        }
        assert!(nothing_moves(still[..0].iter()));
    }

    #[test]
    fn the_proof_is_tried_at_growing_distances_that_have_a_bound() {
        let tried = |alive: u64| {
            let mut backoff = ProofBackoff::new();
            let turns = (0..100_000_u64).filter(|_| backoff.spend(alive));
            turns.collect::<std::vec::Vec<_>>()
        };
        for (alive, most) in [(0, MOST_TURNS), (5000, 5000)] {
            let tried = tried(alive);
            assert_eq!(tried[..3], [8, 25, 58]);
            let longest = tried.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert_eq!(longest, Some(most + 1), "{alive}");
        }
    }
}

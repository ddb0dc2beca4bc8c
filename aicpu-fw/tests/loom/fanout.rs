//! Appending an edge against the completion of its producer, through the builder's own `add_edge`: either the
//! edge is counted, and then the completing scheduler finds the consumer; or it is reported satisfied,
//! and then the builder (and the scheduler that it publishes to) sees what the producer wrote.

use pto_abi::sync::{AtomicU32, Concurrent, Exclusive, Ordering, Sharing};
use pto_abi::task::{CLOSED, Task};
use pto_abi::{CoreKind, FuncId, TaskId};
use pto_aicpu_fw::fanout::ConsumerWalk;
use pto_aicpu_fw::{Builder, FanoutPolicy, LockFree, Locked};
use pto_graph::{EdgeOutcome, GraphBuilder, TaskSpec};

use crate::words::{FakeDevice, Size, StateMemory, quiet};
use crate::{explore, spawn};

struct FanoutScenario {
    words: StateMemory,
    /// What the producer's kernel writes.
    output: AtomicU32,
}

/// The fanout has `before` consumers; then the builder adds two edges while the producer completes.
fn append_against_close<S: Sharing, F: FanoutPolicy>(before: u32) {
    let size = Size { tasks: before + 3, arg_words: 0, edges: 12, instances: 1 };
    let setup = move || FanoutScenario { words: StateMemory::new(size), output: AtomicU32::new(0) };
    explore(5, setup, move |run| {
        let mut builder = Builder::<(S, F, _, _)>::new(run.words.inputs(), FakeDevice, quiet());
        let [producer, consumers @ ..] = &add(&mut builder, size.tasks)[..] else { return };
        let (early, late) = consumers.split_at(before as usize);
        for consumer in early {
            builder.add_edge(*producer, *consumer).unwrap();
        }
        let completer = spawn(move || complete::<S, F>(run));
        let added: Vec<u32> = late
            .iter()
            .filter(|consumer| {
                let outcome = builder.add_edge(*producer, **consumer).unwrap();
                if outcome == EdgeOutcome::AlreadySatisfied {
                    let seen = run.output.load(Ordering::Relaxed);
                    assert_eq!(seen, 1, "satisfied, and what was written is not visible");
                }
                outcome == EdgeOutcome::Added
            })
            .map(|consumer| consumer.slot)
            .collect();
        let released = completer.join().unwrap();
        for consumer in late {
            let waits = run.words.tasks[consumer.slot as usize].edges_in.load(Ordering::Relaxed);
            let is_added = added.contains(&consumer.slot);
            assert_eq!(waits, u32::from(is_added), "waits for the edges that are counted");
        }
        let expected: Vec<u32> = (1..=before).chain(added).collect();
        assert_eq!(released, expected, "released are those that were counted");
    });
}

fn add<G: GraphBuilder>(builder: &mut G, tasks: u32) -> Vec<TaskId> {
    let spec = TaskSpec::new(FuncId(0), CoreKind::AIV, &[]);
    (0..tasks).map(|_| builder.add_task(spec).unwrap()).collect()
}

/// What a scheduler does with a finished producer.
fn complete<S: Sharing, F: FanoutPolicy>(run: &FanoutScenario) -> Vec<u32> {
    run.output.store(1, Ordering::Relaxed);
    let producer = &run.words.tasks[0];
    let mut walk = ConsumerWalk::new(F::close::<S>(producer));
    std::iter::from_fn(|| walk.next(producer, run.words.state().chunks)).collect()
}

#[test]
fn locked_in_the_line() {
    append_against_close::<Concurrent, Locked>(0);
}

#[test]
fn locked_in_a_new_chunk() {
    append_against_close::<Concurrent, Locked>(5);
}

#[test]
fn lock_free_in_the_line() {
    append_against_close::<Concurrent, LockFree>(0);
}

#[test]
fn lock_free_in_a_new_chunk() {
    append_against_close::<Concurrent, LockFree>(5);
}

#[test]
#[should_panic(expected = "released are those that were counted")]
fn wrong_when_the_count_is_not_exchanged() {
    append_against_close::<Exclusive, LockFree>(0);
}

/// A lock-free fanout with one step done wrong.
struct Broken<const STEP: u8>;

/// A closed fanout is found by a relaxed load.
const RELAXED_COUNT: u8 = 0;
/// The count is exchanged without release: the entry of the consumer is not visible.
const RELAXED_COMMIT: u8 = 1;
/// The fanout is closed without release.
const RELAXED_CLOSE: u8 = 2;

impl<const STEP: u8> FanoutPolicy for Broken<STEP> {
    const NAME: &'static str = "broken";

    fn count(task: &Task) -> Option<u32> {
        if STEP == RELAXED_COUNT {
            let fanout = task.fanout.load(Ordering::Relaxed);
            return (fanout & CLOSED == 0).then_some(fanout);
        }
        LockFree::count(task)
    }

    fn commit<S: Sharing>(task: &Task, count: u32) -> bool {
        if STEP == RELAXED_COMMIT {
            let relaxed = Ordering::Relaxed;
            return task.fanout.compare_exchange(count, count + 1, relaxed, relaxed).is_ok();
        }
        LockFree::commit::<S>(task, count)
    }

    fn close<S: Sharing>(task: &Task) -> u32 {
        if STEP == RELAXED_CLOSE {
            return task.fanout.fetch_or(CLOSED, Ordering::Acquire) & !CLOSED;
        }
        LockFree::close::<S>(task)
    }
}

#[test]
#[should_panic(expected = "what was written is not visible")]
fn wrong_when_closed_is_seen_by_a_relaxed_load() {
    append_against_close::<Concurrent, Broken<RELAXED_COUNT>>(0);
}

#[test]
#[should_panic(expected = "released are those that were counted")]
fn wrong_when_the_entry_is_not_released() {
    append_against_close::<Concurrent, Broken<RELAXED_COMMIT>>(0);
}

#[test]
#[should_panic(expected = "what was written is not visible")]
fn wrong_when_the_close_is_not_released() {
    append_against_close::<Concurrent, Broken<RELAXED_CLOSE>>(0);
}

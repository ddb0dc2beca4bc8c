//! Waits of the builder: those that nothing can end are faults that say what keeps them waiting, all others end. The schedulers
//! do nothing until the builder waits; then a task completes with each turn, the oldest one that can.

use std::collections::VecDeque;

use pto_abi::stream::RingKind;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicpu_fw::Machine;
use pto_aicpu_fw::blame::Blame;
use pto_graph::{
    Arg, Bindings, DependencyMode, ElementType, GraphBuilder, StreamBuilder, TaskSpec, TensorTask,
    TensorView,
};

use crate::rig::{Memory, RingSizes, TestStream};

/// Eight slots.
const SMALL: RingSizes = RingSizes { window: 8, words: 64, chunks: 4, heap_bytes: 1 << 10 };
/// Turns after which a wait that ends by itself would have ended, and one that cannot must have been found.
const MOST_TURNS: u32 = 2000;

/// The schedulers of this test.
struct Lazy<'m> {
    memory: &'m Memory,
    alive: VecDeque<u32>,
    turns: u32,
}

impl Machine for Lazy<'_> {
    fn now_ns(&self) -> u64 {
        0
    }

    fn added(&mut self, slot: u32) {
        self.alive.push_back(slot);
    }

    fn relax(&mut self) {
        self.turns += 1;
        assert!(self.turns < MOST_TURNS, "the watchdog");
        let at = self.alive.iter().position(|slot| self.memory.is_ready(*slot));
        if let Some(slot) = at.and_then(|at| self.alive.remove(at)) {
            self.memory.complete(slot);
        }
    }
}

type Lazily<'a, 'm> = TestStream<'a, Lazy<'m>>;

/// What a program needs of its rings, by `RingKind`; or the circumstances of its fault.
fn run(
    sizes: RingSizes,
    program: impl FnOnce(&mut Lazily<'_, '_>) -> Result<(), Fault>,
) -> Result<Vec<u64>, Blame> {
    let memory = Memory::new(sizes);
    let host = Lazy { memory: &memory, alive: VecDeque::new(), turns: 0 };
    memory.run(host, |stream| {
        let ended = program(stream).and_then(|()| stream.finish());
        ended.map_err(|fault| stream.blame(fault))
    })?;
    Ok(memory.header.rings.iter().map(|line| line.needed.load(Relaxed)).collect())
}

fn tensor(number: u64) -> TensorView<'static> {
    TensorView::dense(GmAddr(0x1000 + 64 * number), ElementType::U32, &[1])
}

fn spec() -> TaskSpec<'static> {
    TaskSpec::new(FuncId(3), CoreKind::AIV, &[])
}

fn many(stream: &mut Lazily<'_, '_>, count: usize) -> Result<(), Fault> {
    (0..count).try_for_each(|_| stream.submit(spec(), &[]).map(|_| ()))
}

/// The slot of the task that is to blame.
fn blamed(found: &Result<Vec<u64>, Blame>) -> (Fault, u32) {
    let blame = found.as_ref().unwrap_err();
    assert_eq!(blame.func_id, 3, "{blame:?}");
    (blame.fault, blame.task.slot)
}

#[test]
fn a_task_that_waits_for_a_later_one_which_is_not_published_is_found() {
    let held = |published: bool| {
        run(SMALL, |stream| {
            many(stream, 3)?;
            // 3 waits for 7, which waits for 6, which waits for 5; no task waits for 4.
            let [first, other, a, b, c] = [0; 5].map(|_| stream.add_task(spec()));
            let [first, other, a, b, c] = [first?, other?, a?, b?, c?];
            for (producer, consumer) in [(a, b), (b, c), (c, first)] {
                stream.add_edge(producer, consumer)?;
            }
            for task in [first, b, c] {
                stream.publish(task)?;
            }
            if published {
                stream.publish(other)?;
                stream.publish(a)?;
            }
            many(stream, 20)
        })
    };
    let found = held(false);
    assert_eq!(blamed(&found), (Fault::STREAM_WINDOW_RING, 5), "what the oldest one waits for");
    let blame = found.unwrap_err();
    assert_eq!((blame.detail, blame.ring), ([8, 16], (1, 0)));
    // The oldest one keeps its slot until the last one is published.
    assert_eq!(held(true).unwrap()[..2], [8, 5]);
}

#[test]
fn tasks_that_wait_for_each_other_are_no_matter_of_rings() {
    let found = run(SMALL, |stream| {
        let [waits, a, b, other] = [0; 4].map(|_| stream.add_task(spec()));
        let [waits, a, b, other] = [waits?, a?, b?, other?];
        for (producer, consumer) in [(a, waits), (a, b), (b, a)] {
            stream.add_edge(producer, consumer)?;
        }
        for task in [waits, a, b, other] {
            stream.publish(task)?;
        }
        many(stream, 20)
    });
    let (fault, slot) = blamed(&found);
    assert!(fault == Fault::STALL_DEADLOCK && [1, 2].contains(&slot), "{found:?}");
}

/// The program may wait for one task while it keeps an older one back.
#[test]
fn a_value_that_will_come_is_waited_for() {
    let get = |from_kept: bool| {
        run(SMALL, |stream| {
            let (x, y) = (tensor(0), tensor(1));
            let first = [Arg::Out(&x)];
            let first = TensorTask::new(FuncId(3), CoreKind::AIV, &first);
            let kept = stream.add_tensor_task(&first)?;
            let source = if from_kept { &x } else { &tensor(2) };
            let second = [Arg::In(source), Arg::Out(&y)];
            stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &second))?;
            stream.get(&y, &[0])?;
            stream.publish(kept)
        })
    };
    assert!(get(false).is_ok());
    let found = get(true);
    assert_eq!(
        blamed(&found),
        (Fault::STREAM_WAIT_FOREVER, 0),
        "the task that it waits for, in the end"
    );
}

/// A task whose producers have many consumers, on a ring of one chunk: what has completed needs no edge.
#[test]
fn waiting_for_chunks_ends_when_no_edge_is_needed() {
    let sizes = RingSizes { chunks: 1, window: 16, ..SMALL };
    let producers = |kept: bool| {
        run(sizes, |stream| {
            let producers = [0; 3].map(|_| stream.submit(spec(), &[]).unwrap());
            let held = stream.add_task(spec())?;
            if !kept {
                stream.publish(held)?;
            }
            for _ in 0..5 {
                stream.submit(spec(), &producers)?;
            }
            // The next consumer of each of them takes a chunk.
            stream.submit(spec(), &producers)?;
            if kept { stream.publish(held) } else { Ok(()) }
        })
    };
    assert_eq!(producers(false).unwrap()[usize::from(RingKind::EDGES.get())], 1);
    assert!(producers(true).is_ok(), "no task waits for the one that is kept back");
}

#[test]
fn words_are_needed_to_the_last_one() {
    let program = |words: usize| {
        run(RingSizes { words, ..SMALL }, |stream| {
            let args = [1; 6];
            // So that what is kept back begins anywhere in the ring.
            for number in 0..5 {
                stream.submit(TaskSpec { args: &args[..number], ..spec() }, &[])?;
            }
            let kept = stream.add_task(TaskSpec { args: &args, ..spec() })?;
            for number in 1..4 {
                stream.submit(TaskSpec { args: &args[..number], ..spec() }, &[])?;
            }
            stream.publish(kept)
        })
    };
    let least = 7 + 2 + 3 + 4;
    for words in least..2 * least {
        assert_eq!(program(words).unwrap()[..2], [4, least as u64], "{words}");
    }
    for words in 7..least {
        let found = program(words);
        assert_eq!(blamed(&found), (Fault::STREAM_ARGS_RING, 5), "{words}");
        let [in_use, suffices] = found.unwrap_err().detail;
        assert!(in_use <= words as u64 && suffices > words as u64, "{words}: {suffices}");
    }
}

/// Scopes that are closed keep their tensors while an older task is kept back.
#[test]
fn a_heap_is_needed_for_the_scopes_after_a_task_that_is_kept_back() {
    let program = |heap_bytes: u64| {
        run(RingSizes { heap_bytes, ..SMALL }, |stream| {
            let mut kept = TaskId::NONE;
            for scope in 0..6 {
                if scope == 1 {
                    kept = stream.add_task(spec())?;
                }
                stream.scope(DependencyMode::DERIVED, |inner| {
                    let tensor = inner.tensor(ElementType::U8, &[100])?;
                    let args = [Arg::Out(&tensor)];
                    inner.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))?;
                    Ok::<_, Fault>(())
                })?;
                if scope == 4 {
                    stream.publish(kept)?;
                }
            }
            Ok(())
        })
    };
    let heap = usize::from(RingKind::HEAP.get()) + 1;
    let needed = program(1 << 16).unwrap()[heap];
    assert_eq!(needed, 4 * 128 + 128, "four scopes, and what may be skipped");
    assert!(program(needed).is_ok());
    let found = program(3 * 128);
    assert_eq!(blamed(&found), (Fault::STREAM_HEAP_RING, 1));
    assert_eq!(found.unwrap_err().detail, [3 * 128, 5 * 128]);
}

#[test]
fn a_recording_needs_a_slot_for_each_of_its_tasks() {
    let needs = run(SMALL, |stream| {
        stream.record(&[tensor(0)], |stream, bound| {
            for _ in 0..5 {
                let args = [Arg::InOut(&bound.tensor(0))];
                stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))?;
            }
            Ok::<_, Fault>(())
        })?;
        Ok(())
    });
    assert_eq!(needs.unwrap()[0], 8);
}

/// The words of each task of a replay are contiguous, wherever they are in the ring.
#[test]
fn words_of_a_replay_run_on_past_the_end_of_the_ring() {
    let counts = [3_u64, 1, 8, 4];
    let mut run_on = 0;
    for ring in 20..60 {
        let memory = Memory::new(RingSizes { words: ring, ..SMALL });
        let host = Lazy { memory: &memory, alive: VecDeque::new(), turns: 0 };
        memory.run(host, |stream| {
            let recording = stream.record(&[], |stream, bound| {
                for count in counts {
                    let mut args: Vec<_> =
                        (1..count).map(|at| Arg::Scalar(10 * count + at)).collect();
                    args.push(bound.scalar(0));
                    stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))?;
                }
                Ok::<_, Fault>(())
            });
            for round in 0..100 {
                let bindings = Bindings { tensors: &[], scalars: &[1000 + round] };
                stream.replay(recording.as_ref().unwrap(), &bindings).unwrap();
                let first = stream.added() - 4;
                for (number, count) in (first..).zip(counts) {
                    let task = &memory.run.tasks[usize::try_from(number % 8).unwrap()];
                    let first = task.payload.load(Relaxed) as usize;
                    let words =
                        &memory.run.payloads[first..=first + usize::try_from(count).unwrap()];
                    let found: Vec<u64> = words.iter().map(|word| word.load(Relaxed)).collect();
                    let scalars = (1..count).map(|at| 10 * count + at);
                    let expected: Vec<u64> = scalars.chain([1000 + round, 1 << 32]).collect();
                    assert_eq!(found, expected, "ring {ring}, round {round}, task {number}");
                    run_on += usize::from(first + found.len() > ring);
                }
            }
        });
    }
    assert!(run_on > 100, "{run_on}");
}

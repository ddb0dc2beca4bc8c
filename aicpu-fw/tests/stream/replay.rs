//! Records: what is replayed is ordered as what is submitted, on random programs; and what a replay refuses.

use std::collections::BTreeSet;

use pto_abi::ready::QueueEnds;
use pto_abi::runtime::{FaultLine, InstanceLine, Progress};
use pto_abi::stream::{
    Arg, Bindings, DependencyMode, ElementType, MapEntry, MapGrid, MapRecord, SlotRecord,
    StreamBuilder, StreamHeader, TensorTask, TensorView,
};
use pto_abi::sync::{AtomicU32, AtomicU64, Exclusive, Ordering::Relaxed};
use pto_abi::task::{EdgeChunk, Task};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, GraphBuilder};
use pto_aicpu_fw::builder::BuilderInputs;
use pto_aicpu_fw::fanout::ConsumerWalk;
use pto_aicpu_fw::ready_queue::ReadyQueue;
use pto_aicpu_fw::stream::map::{MapMemory, TensorMap};
use pto_aicpu_fw::stream::{Schedulers, Stream, StreamMemory};
use pto_aicpu_fw::{DeviceMemory, LockFree, SharedState};

use crate::oracle::all_reachable;
use crate::random::{ELEMENTS, Random, view};

const WINDOW: usize = 512;
const HEAP: u64 = 1 << 40;

struct Kernels;

impl DeviceMemory for Kernels {
    fn kernel_addr(&self, func: FuncId) -> GmAddr {
        GmAddr(64 + u64::from(func.0))
    }
    fn read_u32(&self, _: GmAddr) -> Option<u32> {
        None
    }
}

type TestStream<'a> = Stream<'a, Exclusive, LockFree, Kernels, ()>;

/// What a program has made: pairs of producers and consumers, and the words of each task, those of the heap as zero.
#[derive(Debug, PartialEq)]
struct Made {
    edges: BTreeSet<(u64, u64)>,
    words: Vec<Vec<u64>>,
}

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

fn with_stream(program: impl FnOnce(&mut TestStream<'_>)) -> Made {
    let tasks: Vec<Task> = many(WINDOW);
    let payloads: Vec<AtomicU64> = many(16 * WINDOW);
    let (chunks, slots) = (many::<EdgeChunk>(8 * WINDOW), [many(2 * WINDOW), many(2 * WINDOW)]);
    let (ends, progress, fault) = <([QueueEnds; 2], Progress, FaultLine)>::default();
    let (instances, header) = (many::<InstanceLine>(1), StreamHeader::default());
    let (tensors, cells) = (many::<MapRecord>(16), many::<MapRecord>(64));
    let (grids, entries) = (many::<MapGrid>(16), many::<MapEntry>(4096));
    let (records, tape) = (many::<SlotRecord>(WINDOW), many::<AtomicU64>(32 * WINDOW));
    let queue = |kind: usize| ReadyQueue::new(&ends[kind], &slots[kind]).unwrap();
    let state = SharedState {
        tasks: &tasks,
        payloads: &payloads,
        payloads_address: GmAddr(0x1000),
        chunks: &chunks,
        ready: [queue(0), queue(1)],
        progress: &progress,
        fault: &fault,
        instances: &instances,
        shapes: None,
    };
    let (tensor_places, cell_places) = (many::<AtomicU32>(16), many::<AtomicU32>(64));
    let map = MapMemory {
        tensors: &tensors,
        tensor_places: &tensor_places,
        cells: &cells,
        cell_places: &cell_places,
        grids: &grids,
        entries: &entries,
    };
    let memory = StreamMemory {
        header: &header,
        records: &records,
        map: TensorMap::new(map, 0).unwrap(),
        tape: &tape,
        arg_words: payloads.len() as u64,
        edge_chunks: chunks.len() as u64,
        heap_rings: 4,
        heap_bytes: 1 << 20,
        heap: GmAddr(HEAP),
        first_task: 0,
    };
    let inputs = BuilderInputs {
        state,
        line: &instances[0],
        orch_args: &[],
        generation: 1,
        has_kind: [true; 2],
    };
    let mut stream = TestStream::new(inputs, &memory, Schedulers::Run, Kernels, ());
    program(&mut stream);
    assert_eq!(stream.added(), instances[0].published.load(Relaxed));
    let added = usize::try_from(stream.added()).unwrap();
    let mut made = Made { edges: BTreeSet::new(), words: Vec::new() };
    for (number, task) in (0..).zip(&tasks[..added]) {
        let fanin = task.edges_in.load(Relaxed);
        assert_eq!(task.fanin.load(Relaxed), fanin, "task {number}");
        let mut walk = ConsumerWalk::new(task.fanout.load(Relaxed));
        while let Some(consumer) = walk.next(task, &chunks) {
            made.edges.insert((number, consumer.into()));
        }
        let first = task.payload.load(Relaxed) as usize;
        let count = usize::from(task.arg_count.load(Relaxed));
        let words = payloads[first..first + count].iter().map(|word| word.load(Relaxed));
        made.words.push(words.map(|word| if word >= HEAP { 0 } else { word }).collect());
    }
    let into = |number: u64| made.edges.iter().filter(|(_, consumer)| *consumer == number).count();
    for (number, task) in (0..).zip(&tasks[..added]) {
        assert_eq!(task.edges_in.load(Relaxed) as usize, into(number), "task {number}");
    }
    made
}

fn whole(number: u64) -> TensorView<'static> {
    TensorView::dense(GmAddr(0x10_0000 * (1 + number)), ElementType::F32, &[ELEMENTS])
}

/// A part of a tensor, as `random::view` cuts it out of one, or the whole of it.
fn part<'s>(random: &mut Random, of: &TensorView<'s>) -> TensorView<'s> {
    if random.below(3) == 0 {
        return *of;
    }
    loop {
        // Strided parts of the tensor that `of` is, on the same elements.
        let cut = view(random, GmAddr(0));
        if cut.element() == of.element() && cut.shape().len() == 1 {
            let (start, step) = (cut.offset_bytes() / 4, cut.strides()[0].max(1));
            let start = u32::try_from(start).unwrap();
            let part = of.slice(0, start, ELEMENTS - start);
            let step = u32::try_from(step).unwrap();
            return part.step(0, step).slice(
                0,
                0,
                cut.shape()[0].min((ELEMENTS - start).div_ceil(step)),
            );
        }
    }
}

/// A piece of a program on four tensors: tasks, a scope with a temporary, an explicit one, and words that change.
fn piece<G: StreamBuilder>(
    stream: &mut G,
    seed: u64,
    tensors: &[TensorView<'_>; 4],
    salt: Arg<'_>,
) -> Result<(), Fault> {
    let random = &mut Random(seed);
    for part_of_it in 0..1 + random.below(3) {
        let mode = match random.below(6) {
            0 => DependencyMode::EXPLICIT,
            1 => DependencyMode::MANUAL,
            _ => DependencyMode::DERIVED,
        };
        stream.scope(mode, |scope| {
            let temporary = scope.tensor(ElementType::F32, &[ELEMENTS])?;
            let mut last = None;
            for _ in 0..1 + random.below(6) {
                let mut views = Vec::new();
                for _ in 0..1 + random.below(3) {
                    let number = random.below(5) as usize;
                    let tensor = tensors.get(number).unwrap_or(&temporary).detach();
                    views.push((part(random, &tensor), random.below(3)));
                }
                let mut args = vec![Arg::Scalar(part_of_it.into()), salt];
                let mut written = BTreeSet::new();
                for (view, kind) in &views {
                    // Outputs of one task must not overlap.
                    let writes = *kind == 0 && written.insert(view.base().0);
                    args.push(if writes { Arg::InOut(view) } else { Arg::In(view) });
                }
                let mut task = TensorTask::new(FuncId(3), CoreKind::AIV, &args);
                let after: Vec<_> = last.into_iter().collect();
                if mode != DependencyMode::DERIVED || random.below(4) == 0 {
                    task.after = &after;
                }
                last = Some(scope.submit_tensors(&task)?);
            }
            Ok::<(), Fault>(())
        })?;
    }
    Ok(())
}

/// Pieces in turn, on the tensors in turn, with single tasks between them.
fn program(seed: u64, replays: bool) -> Made {
    with_stream(|stream| {
        let random = &mut Random(seed);
        let all = [0, 1, 2, 3, 4].map(whole);
        let seeds = [random.word(), random.word()];
        let mut records = Vec::new();
        for seed in seeds {
            let shapes = [whole(0); 3];
            let record = |stream: &mut TestStream<'_>, bound: &pto_abi::stream::Bound<'_>| {
                let [a, b, c] = [0, 1, 2].map(|index| bound.tensor(index));
                piece(stream, seed, &[a, b, c, all[4]], bound.scalar(0))
            };
            if replays {
                records.push(stream.record(&shapes, record).unwrap());
            }
        }
        for round in 0..8_u64 {
            let which = random.below(2) as usize;
            let turn = random.below(4) as usize;
            let tensors = [0, 1, 2].map(|index| all[(index + turn) % 4]);
            if replays {
                let bindings = Bindings { tensors: &tensors, scalars: &[round] };
                stream.replay(&records[which], &bindings).unwrap();
            } else {
                let [a, b, c] = tensors;
                let tensors = [a, b, c, all[4]];
                piece(stream, seeds[which], &tensors, Arg::Scalar(round)).unwrap();
            }
            let (tensor, kind) = (all[random.below(5) as usize], random.below(2));
            let view = part(random, &tensor);
            let arg = if kind == 0 { Arg::In(&view) } else { Arg::Out(&view) };
            stream.submit_tensors(&TensorTask::new(FuncId(1), CoreKind::AIV, &[arg])).unwrap();
        }
    })
}

#[test]
fn a_replay_is_ordered_as_a_submission() {
    let mut edges = 0;
    for seed in 0..150 {
        let (submitted, replayed) = (program(seed, false), program(seed, true));
        assert_eq!(submitted.words, replayed.words, "seed {seed}");
        let tasks = submitted.words.len() as u64;
        let (one, other) = (&submitted.edges, &replayed.edges);
        assert!(all_reachable(tasks, other, one), "seed {seed}: an order is lost");
        assert!(all_reachable(tasks, one, other), "seed {seed}: an order too many");
        edges += other.len();
    }
    assert!(edges > 10_000, "{edges}");
}

/// What a call of a closure on a stream with one record of two tensors, the second one written, and one scalar returns.
fn refused(bind: impl FnOnce(&mut TestStream<'_>, &pto_abi::stream::Record) -> Fault) -> Fault {
    let mut found = None;
    with_stream(|stream| {
        let shapes = [whole(0), whole(0).slice(0, 0, 100).step(0, 2)];
        let record = stream.record(&shapes, |stream, bound| {
            let (a, b) = (bound.tensor(0), bound.tensor(1));
            let args = [Arg::In(&a), Arg::Out(&b), bound.scalar(0)];
            stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))?;
            Ok::<(), Fault>(())
        });
        found = Some(bind(stream, &record.unwrap()));
    });
    found.unwrap()
}

#[test]
fn what_does_not_fit_is_refused() {
    let replay = |tensors: &[TensorView<'_>], scalars: &[u64]| {
        let bindings = Bindings { tensors, scalars };
        refused(|stream, record| stream.replay(record, &bindings).unwrap_err())
    };
    let (a, b) = (whole(1), whole(2).slice(0, 7, 100).step(0, 2));
    assert_eq!(replay(&[a], &[1]), Fault::STREAM_REPLAY_MISFIT, "too few tensors");
    assert_eq!(replay(&[a, b], &[]), Fault::STREAM_REPLAY_MISFIT, "too few scalars");
    assert_eq!(replay(&[a, whole(2)], &[1]), Fault::STREAM_REPLAY_MISFIT, "another shape");
    assert_eq!(
        replay(&[a, whole(2).slice(0, 7, 50)], &[1]),
        Fault::STREAM_REPLAY_MISFIT,
        "other strides"
    );
    let bytes = TensorView::dense(GmAddr(64), ElementType::U8, &[ELEMENTS]);
    assert_eq!(replay(&[bytes, b], &[1]), Fault::STREAM_REPLAY_MISFIT, "another element type");
    let over = whole(1).slice(0, 0, 100).step(0, 2);
    assert_eq!(replay(&[a, over], &[1]), Fault::STREAM_REPLAY_ALIAS);
    assert_eq!(replay(&[a, b.slice(0, 9, 900)], &[1]), Fault::STREAM_VIEW_RANGE);
    let other_run = |stream: &mut TestStream<'_>, record: &pto_abi::stream::Record| {
        let other = pto_abi::stream::Record { run: record.run + 1, ..*record };
        stream.replay(&other, &Bindings::default()).unwrap_err()
    };
    assert_eq!(refused(other_run), Fault::STREAM_RECORD_UNKNOWN);
    let elsewhere = |stream: &mut TestStream<'_>, record: &pto_abi::stream::Record| {
        let other = pto_abi::stream::Record { at: record.at + 1, ..*record };
        stream.replay(&other, &Bindings::default()).unwrap_err()
    };
    assert_eq!(refused(elsewhere), Fault::STREAM_RECORD_UNKNOWN);
}

#[test]
fn what_a_record_cannot_hold_is_refused() {
    let record = |body: &dyn Fn(&mut TestStream<'_>) -> Result<(), Fault>| {
        let mut found = None;
        with_stream(|stream| {
            found = Some(stream.record(&[whole(0)], |stream, _| body(stream)).unwrap_err());
            // The record that failed is still open; nothing was added.
            let _ = stream.end_record();
        });
        found.unwrap()
    };
    let open = Fault::STREAM_RECORD_OPEN;
    assert_eq!(record(&|stream| stream.begin_record(&[]).map(|_| ())), open);
    assert_eq!(record(&|stream| stream.get(&whole(0), &[0]).map(|_| ())), open);
    assert_eq!(record(&|stream| stream.set(&whole(0), &[0], 1)), open);
    let spec = pto_abi::graph::TaskSpec::new(FuncId(1), CoreKind::AIV, &[]);
    assert_eq!(record(&|stream| stream.add_task(spec).map(|_| ())), open);
    let submit = |stream: &mut TestStream<'_>, arg: Arg<'_>| {
        stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &[arg])).map(|_| ())
    };
    let endless = |stream: &mut TestStream<'_>| loop {
        submit(stream, Arg::Scalar(1))?;
    };
    assert_eq!(record(&endless), Fault::STREAM_RECORD_FULL);
    assert_eq!(record(&|stream| submit(stream, Arg::BoundScalar(64))), Fault::STREAM_RECORD_FULL);
    with_stream(|stream| {
        let fault = submit(stream, Arg::BoundScalar(0)).unwrap_err();
        assert_eq!(fault, Fault::STREAM_NOT_RECORDING);
        assert_eq!(stream.end_record().unwrap_err(), Fault::STREAM_NOT_RECORDING);
        let mut kept = None;
        let record = stream.record(&[whole(0)], |_, bound| {
            kept = Some(bound.tensor(0));
            Ok::<(), Fault>(())
        });
        assert_eq!(record.unwrap().tasks, 0);
        let fault = submit(stream, Arg::In(&kept.unwrap())).unwrap_err();
        assert_eq!(fault, Fault::STREAM_STALE_TENSOR, "a placeholder outside of its record");
        let refused = stream.scope(DependencyMode::DERIVED, |scope| {
            let outer = scope.tensor(ElementType::F32, &[8])?;
            scope.record(&[], |stream, _| submit(stream, Arg::In(&outer))).map(|_| ())
        });
        assert_eq!(refused.unwrap_err(), Fault::STREAM_REPLAY_MISFIT, "of an outer scope");
    });
}

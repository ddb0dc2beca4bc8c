//! Ranges on tensors: what they make is what the same tasks make one by one, in every mode of dependencies, and while rings are full.

use std::collections::VecDeque;

use pto_abi::sync::Ordering::Relaxed;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicpu_fw::Machine;
use pto_graph::{
    Arg, Comparison, DependencyMode, ElementType, GraphBuilder, Predicate, StreamBuilder,
    Submission, TaskDesc, TensorRange, TensorTask, TensorView, Variation,
    submit_tensor_range_one_by_one,
};

use crate::random::view;
use crate::rig::{Memory, NO_KERNEL, RingSizes, TestStream, with_stream};
use crate::split_mix::SplitMix64;

/// How a range is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    AtOnce,
    OneByOne,
}

/// A range of up to three tensors and a scalar.
struct RandomRange {
    views: Vec<(TensorView<'static>, u32)>,
    times: u32,
    steps: Vec<i64>,
    columns: Vec<Option<Vec<u64>>>,
    waits: bool,
}

impl RandomRange {
    /// `tidy`: its tensors are rows of matrices that move by whole rows, most of which stay in their tensors.
    fn new(random: &mut SplitMix64) -> Self {
        let times = 1 + random.below(7);
        let tidy = random.below(3) > 0;
        let (mut views, mut steps, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..1 + random.below(3) {
            let base = GmAddr(0x1000 * u64::from(1 + random.below(4)));
            let part = if tidy {
                let whole = TensorView::dense(base, ElementType::F32, &[24, 30]);
                whole.slice(0, random.below(4), 2).slice(1, 5 * random.below(3), 5)
            } else {
                view(random, base)
            };
            let size = part.element().bytes().cast_signed();
            let step = match random.below(5) {
                0 => 0,
                1 => 20,
                2 => i64::from(random.below(200)) - 60,
                _ => 30 * i64::from(random.below(4)),
            };
            let first = part.address().0;
            let address = |random: &mut SplitMix64| {
                let far = i64::from(random.below(90)) - 10;
                first.wrapping_add_signed(far * size)
            };
            columns.push(
                (random.below(5) == 0).then(|| (0..times).map(|_| address(random)).collect()),
            );
            steps.push(step * size);
            views.push((part, random.below(4)));
        }
        Self { views, times, steps, columns, waits: random.below(3) == 0 }
    }

    fn submit(
        &self,
        stream: &mut TestStream<'_>,
        how: How,
        ids: &mut Vec<TaskId>,
    ) -> Result<(), Fault> {
        let arg = |(view, does): &'_ (TensorView<'static>, u32)| (*view, *does);
        let views: Vec<_> = self.views.iter().map(arg).collect();
        let mut args: Vec<Arg<'_>> = views
            .iter()
            .map(|(view, does)| match does {
                0 => Arg::InOut(view),
                1 => Arg::Out(view),
                2 => Arg::In(view),
                _ => Arg::NoDep(view),
            })
            .collect();
        args.push(Arg::Scalar(7));
        let mut varies = vec![Variation::by(args.len() - 1, 3)];
        for (at, (step, column)) in self.steps.iter().zip(&self.columns).enumerate() {
            varies.push(match column {
                Some(words) => Variation::of(at, words),
                None => Variation::by(at, *step),
            });
        }
        let last = ids.last().copied();
        let after = if self.waits { last.as_slice() } else { &[] };
        let task = TensorTask::new(FuncId(1), CoreKind::AIV, &args).after(after);
        let range = TensorRange::new(task).times(self.times).varying(&varies);
        let mut own = vec![TaskId::NONE; self.times as usize];
        let ended = match how {
            How::AtOnce => stream.submit_tensor_range(&range, &mut own),
            How::OneByOne => submit_tensor_range_one_by_one(stream, &range, &mut own),
        };
        ids.extend(own.into_iter().filter(|id| *id != TaskId::NONE));
        ended
    }
}

/// Submits a range of four tasks. Returns whether the stream has accepted all of them at once.
fn submit_at_once(
    stream: &mut TestStream<'_>,
    task: TensorTask<'_>,
    varies: &[Variation<'_>],
) -> bool {
    let range = TensorRange::new(task).times(4).varying(varies);
    let mut ids = [TaskId::NONE; 4];
    let taken = stream.submit_desc(Submission::new(TaskDesc::TensorRange(&range, &mut ids)));
    matches!(taken, Ok(Some(last)) if last == ids[3])
}

#[test]
fn a_range_makes_what_its_tasks_make_one_by_one() {
    let (mut edges, mut faults) = (0, 0);
    for seed in 0..400 {
        let mut random = SplitMix64(seed);
        let ranges: Vec<_> =
            (0..4 + random.below(20)).map(|_| RandomRange::new(&mut random)).collect();
        let modes = [DependencyMode::DERIVED, DependencyMode::EXPLICIT, DependencyMode::MANUAL];
        let inner = modes[random.below(3) as usize];
        let mut runs = Vec::new();
        let mut make = |how| {
            with_stream(|stream| {
                let (mut ids, mut ends) = (Vec::new(), Vec::new());
                for (number, range) in ranges.iter().enumerate() {
                    let scope = (number % 5 == 3).then(|| stream.open_scope(inner).unwrap());
                    let end = range.submit(stream, how, &mut ids);
                    ends.push(end.map_err(|fault| (fault, stream.blame(fault))));
                    if let Some(scope) = scope {
                        stream.close_scope(scope).unwrap();
                    }
                }
                runs.push((ids, ends));
            })
        };
        let made = [make(How::AtOnce), make(How::OneByOne)];
        assert_eq!(made[0], made[1], "seed {seed}");
        assert_eq!(format!("{:?}", runs[0]), format!("{:?}", runs[1]), "seed {seed}");
        edges += made[0].edges.len();
        faults += runs[0].1.iter().filter(|end| end.is_err()).count();
    }
    assert!(edges > 4_000 && faults > 300, "{edges} edges, {faults} faults");
}

#[test]
fn what_is_taken_at_once() {
    let whole = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[16, 16]);
    let other = TensorView::dense(GmAddr(0x8000), ElementType::F32, &[16, 16]);
    let (tile, far) = (whole.slice(0, 0, 4).slice(1, 0, 4), other.slice(0, 0, 4));
    let cube = TensorView::dense(GmAddr(0x20_000), ElementType::F32, &[8, 8, 8]);
    let block = cube.slice(0, 0, 2).slice(1, 0, 2).slice(2, 0, 2);
    let flag = TensorView::dense(GmAddr(0x30_000), ElementType::U32, &[1]);
    let when = Predicate::new(&flag, &[0], Comparison::EQUAL, 0);
    fn task<'a>(args: &'a [Arg<'a>]) -> TensorTask<'a> {
        TensorTask::new(FuncId(1), CoreKind::AIV, args)
    }
    with_stream(|stream| {
        let moves = [Variation::by(0, 16)];
        let one = [Arg::InOut(&tile), Arg::In(&far)];
        assert!(submit_at_once(stream, task(&one), &moves));
        assert!(submit_at_once(stream, task(&one), &[Variation::by(0, 4 * 64)]), "down");
        assert!(!submit_at_once(stream, task(&one), &[Variation::by(0, 5 * 64)]), "too far down");
        assert!(!submit_at_once(stream, task(&one), &[Variation::by(0, -16)]), "before it");
        assert!(!submit_at_once(stream, task(&one), &[Variation::by(0, 2)]), "no element");
        assert!(!submit_at_once(stream, task(&one), &[Variation::by(2, 2)]), "no argument");
        assert!(!submit_at_once(stream, task(&one).when(&when), &moves), "a predicate");
        let two = [Arg::InOut(&tile), Arg::Out(&whole)];
        assert!(!submit_at_once(stream, task(&two), &[]), "two outputs in one tensor");
        let apart = [Arg::InOut(&tile), Arg::Out(&far)];
        assert!(submit_at_once(stream, task(&apart), &moves));
        assert!(!submit_at_once(stream, task(&[Arg::In(&block)]), &[]), "two strides");
        let shapes = [whole];
        stream
            .record(&shapes, |stream, _| {
                assert!(!submit_at_once(stream, task(&[Arg::In(&whole)]), &[]), "in a recording");
                Ok::<_, Fault>(())
            })
            .unwrap();
    });
}

#[test]
fn what_is_refused_leaves_nothing() {
    let whole = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[64]);
    let (part, varies) = (whole.slice(0, 0, 8), [Variation::by(0, 32)]);
    let args = [Arg::InOut(&part)];
    let made = with_stream(|stream| {
        let task = TensorTask::new(FuncId(1), CoreKind::AIV, &args);
        let range = TensorRange::new(task).times(4).varying(&varies);
        let few = stream.submit_tensor_range(&range, &mut [TaskId::NONE; 3]);
        assert_eq!(few, Err(Fault::BUILD_RANGE_LENGTH));
        assert_eq!(stream.blame(Fault::BUILD_RANGE_LENGTH).detail, [3, 4]);
        let column = [Variation::of(0, &[0x1000; 3])];
        let short = stream.submit_tensor_range(&range.varying(&column), &mut [TaskId::NONE; 4]);
        assert_eq!(short, Err(Fault::BUILD_CHAIN_VARIES));
        let strange = TensorRange::new(TensorTask::new(NO_KERNEL, CoreKind::AIV, &args)).times(4);
        let unknown = stream.submit_tensor_range(&strange, &mut [TaskId::NONE; 4]);
        assert_eq!(unknown, Err(Fault::BUILD_KERNEL_MISSING));
        assert_eq!(stream.submit_tensor_range(&range.times(0), &mut []), Ok(()));
        // The ninth leaves the tensor: those before it are there, as in a loop.
        let long = stream.submit_tensor_range(&range.times(9), &mut [TaskId::NONE; 9]);
        assert_eq!(long, Err(Fault::STREAM_VIEW_RANGE));
        assert_eq!(stream.blame(Fault::STREAM_VIEW_RANGE).argument, 1);
    });
    assert_eq!(made.words.len(), 8);
    assert_eq!(made.words[7], [0x1000 + 7 * 32]);
}

/// Schedulers that complete one task whenever the builder waits, and report in which order.
struct Lazy<'m> {
    memory: &'m Memory,
    alive: VecDeque<u32>,
    completed: &'m core::cell::RefCell<Vec<u32>>,
}

impl Machine for Lazy<'_> {
    fn now_ns(&self) -> u64 {
        0
    }

    fn added(&mut self, slot: u32) {
        self.alive.push_back(slot);
    }

    fn relax(&mut self) {
        let at = self.alive.iter().position(|slot| self.memory.is_ready(*slot));
        if let Some(slot) = at.and_then(|at| self.alive.remove(at)) {
            self.memory.complete(slot);
            self.completed.borrow_mut().push(slot);
        }
    }
}

#[test]
fn a_range_that_is_larger_than_the_rings_waits_as_its_tasks_do() {
    let whole = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[8 * 60]);
    let part = whole.slice(0, 0, 8);
    let run = |how: How| {
        let memory =
            Memory::new(RingSizes { window: 8, words: 32, chunks: 4, heap_bytes: 1 << 10 });
        let completed = core::cell::RefCell::new(Vec::new());
        let host = Lazy { memory: &memory, alive: VecDeque::new(), completed: &completed };
        memory.run(host, |stream| {
            let args = [Arg::InOut(&part), Arg::In(&whole), Arg::Scalar(1)];
            let task = TensorTask::new(FuncId(1), CoreKind::AIV, &args[..2]);
            let varies = [Variation::by(0, 32)];
            let range = TensorRange::new(task).times(60).varying(&varies);
            let mut ids = [TaskId::NONE; 60];
            let ended = match how {
                How::AtOnce => {
                    let submission = Submission::new(TaskDesc::TensorRange(&range, &mut ids));
                    stream.submit_desc(submission).map(|taken| assert!(taken.is_some()))
                }
                How::OneByOne => submit_tensor_range_one_by_one(stream, &range, &mut ids),
            };
            assert_eq!(ended.and_then(|()| stream.finish()), Ok(()));
        });
        let needed = memory.header.rings.iter().map(|line| line.needed.load(Relaxed));
        let words = memory.run.payloads.iter().map(|word| word.load(Relaxed));
        (needed.collect::<Vec<_>>(), words.collect::<Vec<_>>(), completed.into_inner())
    };
    let at_once = run(How::AtOnce);
    assert_eq!(at_once, run(How::OneByOne));
    assert!(at_once.2.len() > 50, "the builder waited: {:?}", at_once.2);
}

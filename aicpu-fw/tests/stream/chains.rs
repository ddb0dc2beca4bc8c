//! Chains on tensors: the edges of random ones against the oracle, which looks at the bytes of each kernel.

use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{
    Arg, Chain, DependencyMode, ElementType, GraphBuilder, Link, StreamBuilder, Submission,
    TaskDesc, TaskSpec, TensorView, Variation,
};

use crate::oracle::{Oracle, Touch, all_reachable};
use crate::random::{bytes_of, view};
use crate::rig::{TestStream, with_stream};
use crate::split_mix::SplitMix64;

/// A link of one argument: what it does, where, how often, and how the address varies.
struct RandomLink {
    view: TensorView<'static>,
    writes: bool,
    times: u32,
    step: i64,
    /// Addresses, instead of steps.
    column: Option<Vec<u64>>,
}

impl RandomLink {
    /// One whose addresses are all within the tensor.
    fn new(random: &mut SplitMix64) -> Self {
        loop {
            let base = GmAddr(0x1000 * u64::from(1 + random.below(3)));
            let view = view(random, base);
            let (writes, times) = (random.below(2) == 0, 1 + random.below(4));
            let size = view.element().bytes().cast_signed();
            let step = (i64::from(random.below(120)) - 60) * size;
            let first = view.address().0;
            let column = (random.below(3) == 0).then(|| {
                let address =
                    |_| first.wrapping_add_signed((i64::from(random.below(80)) - 40) * size);
                (0..times).map(address).collect()
            });
            let link = Self { view, writes, times, step, column };
            let args = link.args();
            let fits = link.with(&args, |link| link.views(0).all(|view| view.defect().is_none()));
            if fits {
                return link;
            }
        }
    }

    fn args(&self) -> [Arg<'_>; 1] {
        [if self.writes { Arg::InOut(&self.view) } else { Arg::In(&self.view) }]
    }

    fn with<R>(&self, args: &[Arg<'_>], use_link: impl FnOnce(&Link<'_>) -> R) -> R {
        let varies = [match &self.column {
            Some(words) => Variation::of(0, words),
            None => Variation::by(0, self.step),
        }];
        let link = Link::on_tensors(FuncId(1), CoreKind::AIV, args);
        use_link(&link.times(self.times).varying(&varies))
    }

    /// What its kernels touch, one by one.
    fn touches(&self, task: u64) -> Vec<Touch> {
        let args = self.args();
        self.with(&args, |link| {
            let views = (0..self.times).map(|turn| link.view_at(0, turn).unwrap());
            let touch = |view: TensorView<'_>| Touch {
                task,
                tensor: view.base().0,
                bytes: bytes_of(&view),
                writes: self.writes,
                derived: true,
            };
            views.map(touch).collect()
        })
    }
}

/// Submits a chain of two of them.
fn submit(stream: &mut TestStream<'_>, links: &[RandomLink; 2]) {
    let args = links.each_ref().map(RandomLink::args);
    links[0].with(&args[0], |first| {
        links[1].with(&args[1], |second| {
            stream.submit_chain(&Chain::new(&[*first, *second]), &[]).unwrap();
        });
    });
}

#[test]
fn a_chain_waits_for_what_its_kernels_touch() {
    let mut edges = 0;
    for seed in 0..120 {
        let mut random = SplitMix64(seed);
        let count = 10 + random.below(30);
        let chains: Vec<_> = (0..count)
            .map(|_| [RandomLink::new(&mut random), RandomLink::new(&mut random)])
            .collect();
        let made = with_stream(|stream| chains.iter().for_each(|chain| submit(stream, chain)));
        let mut oracle = Oracle::default();
        for (number, chain) in (0..).zip(&chains) {
            let touches: Vec<_> = chain.iter().flat_map(|link| link.touches(number)).collect();
            oracle.submit(&touches);
        }
        let pairs = oracle.conflicts();
        assert!(made.edges.is_subset(&pairs), "seed {seed}: an edge without a conflict");
        let is_whole = all_reachable(count.into(), &made.edges, &pairs);
        assert!(is_whole, "seed {seed}: a conflict without a path");
        edges += made.edges.len();
    }
    assert!(edges > 5_000, "{edges}: the chains hardly conflict");
}

/// After a task that is published and one that is kept back; and with wrong producers.
#[test]
fn a_submission_is_its_calls() {
    let task = TaskSpec::new(FuncId(1), CoreKind::AIV, &[5, 6]);
    let links = [Link::new(task).times(3)];
    let chain = Chain::new(&links);
    for is_chain in [false, true] {
        for case in 0..6 {
            let [by_calls, at_once] = [false, true].map(|at_once| {
                let mut outcome = None;
                let made = with_stream(|stream| {
                    let first = stream.submit(task, &[]).unwrap();
                    let kept = stream.add_task(task).unwrap();
                    let next = TaskId { slot: kept.slot + 1, ..kept };
                    let stale = TaskId { generation: first.generation.wrapping_sub(1), ..first };
                    let unknown = TaskId { slot: next.slot + 1, ..next };
                    let producers: &[TaskId] = match case {
                        0 => &[],
                        1 => &[first],
                        2 => &[first, kept],
                        3 => &[first, next],
                        4 => &[stale],
                        _ => &[kept, unknown],
                    };
                    let found = match (at_once, is_chain) {
                        (true, false) => stream.submit(task, producers),
                        (true, true) => stream.submit_chain(&chain, producers),
                        (false, _) => {
                            let id = match is_chain {
                                false => stream.add_task(task).unwrap(),
                                true => {
                                    let work =
                                        Submission::new(TaskDesc::Chain(&chain)).unpublished();
                                    stream.submit_desc(work).unwrap().unwrap()
                                }
                            };
                            let edges = producers.iter().try_for_each(|&producer| {
                                stream.add_edge(producer, id).map(|_| ())
                            });
                            edges.and_then(|()| stream.publish(id)).map(|()| id)
                        }
                    };
                    let blame = found.err().map(|fault| stream.blame(fault));
                    let blame = blame.map(|blame| (blame.fault, blame.task, blame.detail));
                    // A task with a wrong producer is added, and is published without it.
                    let published = found.is_ok() || stream.publish(next).is_ok();
                    stream.publish(kept).unwrap();
                    outcome = Some((found, blame, published));
                });
                (outcome, made.edges)
            });
            assert_eq!(by_calls, at_once, "case {case}, a chain: {is_chain}");
            assert!(
                at_once
                    .0
                    .is_some_and(|(found, _, published)| found.is_ok() == (case < 3) && published)
            );
        }
    }
}

#[test]
fn a_chain_waits_for_what_the_program_states() {
    let task = TaskSpec::new(FuncId(1), CoreKind::AIV, &[]);
    let links = [Link::new(task).times(3)];
    let chain = Chain::new(&links);
    let made = with_stream(|stream| {
        let first = stream.submit(task, &[]).unwrap();
        // Added, published after the chain, which waits for it nevertheless.
        let kept = stream.add_task(task).unwrap();
        let id = stream.submit_chain(&chain, &[first, kept]).unwrap();
        assert_eq!(stream.publish(id), Err(Fault::BUILD_ALREADY_PUBLISHED));
        stream.add_edge(first, kept).unwrap();
        stream.publish(kept).unwrap();
        let itself = TaskId { slot: id.slot + 1, ..id };
        assert_eq!(stream.submit_chain(&chain, &[itself]), Err(Fault::BUILD_SELF_EDGE));
        stream.add_edge(id, itself).unwrap();
        stream.publish(itself).unwrap();
    });
    assert_eq!(made.edges, [(0, 1), (0, 2), (1, 2), (2, 3)].into());
}

#[test]
fn a_manual_scope_derives_nothing_and_looks_at_the_tensors_nevertheless() {
    let whole = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[8, 16]);
    let row = whole.slice(0, 0, 1);
    let args = [Arg::InOut(&row)];
    let varies = [Variation::by(0, 64)];
    let link = Link::on_tensors(FuncId(1), CoreKind::AIV, &args).varying(&varies);
    let made = with_stream(|stream| {
        let scope = stream.open_scope(DependencyMode::MANUAL).unwrap();
        for _ in 0..3 {
            stream.submit_chain(&Chain::new(&[link.times(8)]), &[]).unwrap();
        }
        let far = stream.submit_chain(&Chain::new(&[link.times(9)]), &[]);
        assert_eq!(far, Err(Fault::STREAM_VIEW_RANGE));
        let blame = stream.blame(Fault::STREAM_VIEW_RANGE);
        assert_eq!((blame.argument, blame.func_id), (1, 1));
        stream.close_scope(scope).unwrap();
        // One kernel on a tensor waits as a task does.
        stream.submit_chain(&Chain::new(&[link]), &[]).unwrap();
        stream.submit_chain(&Chain::new(&[link]), &[]).unwrap();
    });
    assert_eq!(made.edges, [(3, 4)].into());
}

//! The builder alone: what it writes, and every fault with its blame.

use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::kinds::TaskState;
use pto_abi::limits::MAX_FANIN;
use pto_abi::runtime::NOBODY;
use pto_abi::sync::{Concurrent, Ordering};
use pto_abi::task::UNPUBLISHED;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicpu_fw::builder::RESERVE;
use pto_aicpu_fw::fanout::ConsumerWalk;
use pto_aicpu_fw::{Builder, FanoutPolicy, LockFree};
use pto_graph::{
    Chain, ChainTemplate, EdgeOutcome, GraphBuilder, Link, TaskRange, TaskSpec, Variation, Wait,
};

use crate::words::{FakeDevice, GENERATION, KERNELS, REGISTERED, Size, StateMemory, quiet};
use crate::{TestBuilder, both_strategies, builder};

const SMALL: Size = Size { tasks: 4, arg_words: 8, edges: 0, instances: 1 };
const LARGE: Size = Size { tasks: 256, arg_words: 512, edges: 1024, instances: 1 };
const FUNC: FuncId = FuncId(3);

fn spec(args: &[u64]) -> TaskSpec<'_> {
    TaskSpec::new(FUNC, CoreKind::AIV, args)
}

fn add<F: FanoutPolicy>(builder: &mut TestBuilder<'_, F>) -> TaskId {
    builder.add_task(spec(&[])).unwrap()
}

fn id(slot: u32) -> TaskId {
    TaskId { slot, generation: GENERATION }
}

/// A call that must fail: with which fault, blaming which task and func id, and the detail.
struct Refused<T> {
    result: Result<T, Fault>,
    fault: Fault,
    task: TaskId,
    func_id: u32,
    detail: [u64; 2],
}

impl<T: std::fmt::Debug> Refused<T> {
    #[track_caller]
    fn check<F: FanoutPolicy>(self, builder: &TestBuilder<'_, F>) {
        assert_eq!(self.result.unwrap_err(), self.fault);
        let blame = builder.blame(self.fault);
        let found = (blame.fault, blame.task, blame.func_id, blame.detail, blame.worker);
        assert_eq!(found, (self.fault, self.task, self.func_id, self.detail, NOBODY));
    }
}

fn chains_are_tasks<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let first = add(&mut builder);
    let grows = [Variation::by(0, 64)];
    let link = Link::new(spec(&[100, 7]));
    let links = [link.times(3).varying(&grows), link];
    let chain = builder.submit_chain(&Chain::new(&links), &[first]).unwrap();
    let task = &words.tasks[1];
    let line = (task.kernel.load(Ordering::Relaxed), task.func_id.load(Ordering::Relaxed));
    assert_eq!((chain, line), (id(1), (CHAIN_KERNEL.0, FUNC.0)));
    assert_eq!((task.kind.load(Ordering::Relaxed), task.fanin.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(words.instances[0].chained.load(Ordering::Relaxed), 3);
    // A chain of one kernel is a task like any other, after the words of the chain.
    let one = builder.submit_chain(&Chain::new(&[link]), &[chain]).unwrap();
    let task = &words.tasks[2];
    assert_eq!((one, task.kernel.load(Ordering::Relaxed)), (id(2), KERNELS + 3));
    assert_eq!(
        task.payload.load(Ordering::Relaxed),
        1 + u32::try_from(Chain::new(&links).words()).unwrap()
    );
    builder.publish(first).unwrap();
    builder.finish().unwrap();
}

fn chains_that_are_refused<F: FanoutPolicy>() {
    let words = StateMemory::new(SMALL);
    let mut builder = builder::<F>(&words);
    let (vector, cube) = (spec(&[1]), TaskSpec::new(FUNC, CoreKind::AIC, &[]));
    let missing = TaskSpec { func_id: FuncId(REGISTERED), ..vector };
    let wrong = [Variation::by(1, 8)];
    let links = [
        (vec![], Fault::BUILD_CHAIN_EMPTY),
        (vec![Link::new(vector).times(0), Link::new(vector)], Fault::BUILD_CHAIN_EMPTY),
        (vec![Link::new(vector), Link::new(cube)], Fault::BUILD_CHAIN_KIND),
        (vec![Link::new(vector).times(2).varying(&wrong)], Fault::BUILD_CHAIN_VARIES),
        (vec![Link::new(vector), Link::new(missing)], Fault::BUILD_KERNEL_MISSING),
        (vec![Link::new(vector); 5], Fault::BUILD_PAYLOADS_FULL),
    ];
    for (links, fault) in links {
        let refused = builder.submit_chain(&Chain::new(&links), &[]);
        assert_eq!(refused, Err(fault));
        assert_eq!((builder.blame(fault).fault, builder.blame(fault).task.slot), (fault, 0));
    }
    assert_eq!((builder.added(), words.instances[0].chained.load(Ordering::Relaxed)), (0, 0));
}

/// The chain of a template is written as the chain whose words were set.
fn templates_are_chains<F: FanoutPolicy>() {
    let [words, others] = [(); 2].map(|()| StateMemory::new(LARGE));
    let (mut builder, mut other) = (builder::<F>(&words), builder::<F>(&others));
    let grows = [Variation::by(0, 64), Variation::of(1, &[5, 6, 7])];
    let link = Link::new(spec(&[100, 7])).times(3).varying(&grows);
    let mut template = ChainTemplate::new();
    builder.fill_template(&mut template, &Chain::new(&[link, link])).unwrap();
    let first = [add(&mut builder), add(&mut other)];
    for (word, producers) in [(200, 1), (300, 0)] {
        template.set(0, 0, word).unwrap();
        template.advance(1, 0, -4).unwrap();
        builder.submit_template(&template, &first[..producers]).unwrap();
        let args = [[word, 7], [if word == 200 { 96 } else { 92 }, 7]];
        let links = args.each_ref().map(|args| Link::new(spec(args)).times(3).varying(&grows));
        other.submit_chain(&Chain::new(&links), &first[..producers]).unwrap();
    }
    let payloads = |words: &StateMemory| -> Vec<u64> {
        words.payloads.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    };
    assert_eq!(payloads(&words), payloads(&others));
    assert!(payloads(&words).contains(&300));
    for (task, expected) in words.tasks.iter().zip(&others.tasks).take(3) {
        let line = |task: &pto_abi::task::Task| {
            let of = (&task.func_id, &task.kind, &task.kernel, &task.payload, &task.fanin);
            (
                (of.0.load(Ordering::Relaxed), of.1.load(Ordering::Relaxed)),
                (of.2.load(Ordering::Relaxed), of.3.load(Ordering::Relaxed)),
                of.4.load(Ordering::Relaxed),
            )
        };
        assert_eq!(line(task), line(expected));
    }
    let chained = |words: &StateMemory| words.instances[0].chained.load(Ordering::Relaxed);
    assert_eq!((chained(&words), chained(&others)), (10, 10));
}

fn templates_that_are_refused<F: FanoutPolicy>() {
    let words = StateMemory::new(SMALL);
    let mut builder = builder::<F>(&words);
    let missing = TaskSpec { func_id: FuncId(REGISTERED), ..spec(&[1]) };
    let column = [7; 126];
    let long = [Variation::of(0, &column)];
    let wide = Link::new(spec(&[1])).times(126).varying(&long);
    let mut template = ChainTemplate::new();
    for (link, fault) in [
        (wide, Fault::BUILD_TEMPLATE_LIMIT),
        (Link::new(missing), Fault::BUILD_KERNEL_MISSING),
        (Link::new(missing).times(0), Fault::BUILD_CHAIN_EMPTY),
    ] {
        let refused = builder.fill_template(&mut template, &Chain::new(&[link]));
        assert_eq!(refused, Err(fault));
        assert_eq!((builder.blame(fault).fault, builder.blame(fault).task.slot), (fault, 0));
    }
    let long = builder.fill_template(&mut template, &Chain::new(&[wide]));
    let blame = builder.blame(long.unwrap_err());
    assert_eq!(blame.detail, [1 + 2 + 1 + 1 + 126, 128]);
    // It is empty, and then it is another run's.
    assert_eq!(builder.submit_template(&template, &[]), Err(Fault::BUILD_CHAIN_EMPTY));
    let others = StateMemory::new(SMALL);
    let mut other = self::builder::<F>(&others);
    other.fill_template(&mut template, &Chain::new(&[Link::new(spec(&[1]))])).unwrap();
    assert_eq!(builder.submit_template(&template, &[]), Err(Fault::BUILD_TEMPLATE_FOREIGN));
    assert_eq!(builder.blame(Fault::BUILD_TEMPLATE_FOREIGN).task.slot, 0);
    // It takes what a chain takes.
    builder.fill_template(&mut template, &Chain::new(&[Link::new(spec(&[1])); 5])).unwrap();
    assert_eq!(builder.submit_template(&template, &[]), Err(Fault::BUILD_PAYLOADS_FULL));
    assert_eq!((builder.added(), words.instances[0].chained.load(Ordering::Relaxed)), (0, 0));
}

fn tasks_that_are_refused<F: FanoutPolicy>() {
    let words = StateMemory::new(SMALL);
    let mut inputs = words.inputs();
    inputs.has_kind = [false, true];
    let mut builder = TestBuilder::<F>::new(inputs, FakeDevice, quiet());
    add(&mut builder);
    let no_args = TaskSpec::new(FUNC, CoreKind::AIV, &[]);
    let many = [0; 129];
    let cases = [
        (TaskSpec { func_id: FuncId(1024), ..no_args }, Fault::BUILD_UNKNOWN_FUNC, [1024, 1023]),
        (
            TaskSpec { func_id: FuncId(u16::MAX), ..no_args },
            Fault::BUILD_UNKNOWN_FUNC,
            [65535, 1023],
        ),
        (TaskSpec { args: &many, ..no_args }, Fault::BUILD_TOO_MANY_ARGS, [129, 128]),
        (TaskSpec { kind: CoreKind::AIC, ..no_args }, Fault::BUILD_NO_CORE_OF_KIND, [0, 0]),
        (TaskSpec { func_id: FuncId(REGISTERED), ..no_args }, Fault::BUILD_KERNEL_MISSING, [16, 0]),
    ];
    for (spec, fault, detail) in cases {
        let func_id = spec.func_id.0.into();
        let result = builder.add_task(spec);
        Refused { result, fault, task: id(1), func_id, detail }.check(&builder);
    }
    // Nothing of it stays: the next task is the next slot, with the next words.
    assert_eq!(builder.add_task(spec(&[5])), Ok(id(1)));
    assert_eq!(words.tasks[1].payload.load(Ordering::Relaxed), 1);
    assert_eq!(words.instances[0].added.load(Ordering::Relaxed), 2);
}

fn capacities_that_are_used_up<F: FanoutPolicy>() {
    // 8 argument words and 4 of block context.
    let words = StateMemory::new(SMALL);
    let mut builder = builder::<F>(&words);
    assert!(builder.add_task(spec(&[1; 8])).is_ok());
    let result = builder.add_task(spec(&[1; 3]));
    let payloads = Fault::BUILD_PAYLOADS_FULL;
    Refused { result, fault: payloads, task: id(1), func_id: 3, detail: [9, 12] }.check(&builder);
    (1..4).for_each(|slot| assert_eq!(add(&mut builder), id(slot)));
    let result = builder.add_task(spec(&[]));
    let full = Fault::BUILD_TASKS_FULL;
    Refused { result, fault: full, task: id(4), func_id: 3, detail: [4, 4] }.check(&builder);

    let words = StateMemory::new(Size { tasks: 16, ..SMALL });
    let mut builder = crate::builder::<F>(&words);
    let producer = add(&mut builder);
    for _ in 0..5 {
        let consumer = add(&mut builder);
        assert_eq!(builder.add_edge(producer, consumer), Ok(EdgeOutcome::Added));
    }
    let sixth = add(&mut builder);
    let result = builder.add_edge(producer, sixth);
    let edges = Fault::BUILD_EDGES_FULL;
    Refused { result, fault: edges, task: producer, func_id: NOBODY, detail: [0, 0] }
        .check(&builder);
    assert_eq!(words.tasks[sixth.slot as usize].edges_in.load(Ordering::Relaxed), 0);
}

fn edges_that_are_refused<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let (a, b) = (add(&mut builder), add(&mut builder));
    let published = builder.submit(spec(&[]), &[]).unwrap();
    let stale = TaskId { slot: 0, generation: GENERATION - 1 };
    let added = u64::from(TaskState::ADDED.get());
    let is_published = u64::from(TaskState::PUBLISHED.get());
    let cases = [
        (id(3), b, Fault::BUILD_UNKNOWN_TASK, id(3), [3, 3]),
        (a, id(255), Fault::BUILD_UNKNOWN_TASK, id(255), [255, 3]),
        (a, id(u32::MAX), Fault::BUILD_UNKNOWN_TASK, id(u32::MAX), [u32::MAX.into(), 3]),
        (stale, b, Fault::BUILD_STALE_TASK, stale, [6, 7]),
        (a, stale, Fault::BUILD_STALE_TASK, stale, [6, 7]),
        (TaskId::NONE, b, Fault::BUILD_STALE_TASK, TaskId::NONE, [0, 7]),
        (a, a, Fault::BUILD_SELF_EDGE, a, [0, 0]),
        (a, published, Fault::BUILD_CONSUMER_PUBLISHED, published, [is_published, added]),
    ];
    for (producer, consumer, fault, task, detail) in cases {
        let result = builder.add_edge(producer, consumer);
        Refused { result, fault, task, func_id: NOBODY, detail }.check(&builder);
    }
    words.tasks[b.slot as usize].edges_in.store(MAX_FANIN, Ordering::Relaxed);
    let result = builder.add_edge(a, b);
    let detail = [MAX_FANIN.into(), MAX_FANIN.into()];
    let fault = Fault::BUILD_FANIN_LIMIT;
    Refused { result, fault, task: b, func_id: NOBODY, detail }.check(&builder);
    assert_eq!(words.tasks[0].fanout.load(Ordering::Relaxed), 0, "no edge was counted");
    assert_eq!(words.instances[0].edges.load(Ordering::Relaxed), 0);
}

fn publishes_that_are_refused<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let (a, b) = (add(&mut builder), add(&mut builder));
    builder.publish(a).unwrap();
    let is_published = u64::from(TaskState::PUBLISHED.get());
    let added = u64::from(TaskState::ADDED.get());
    let stale = TaskId { slot: 0, generation: GENERATION + 1 };
    let cases = [
        (a, Fault::BUILD_ALREADY_PUBLISHED, [is_published, added]),
        (id(2), Fault::BUILD_UNKNOWN_TASK, [2, 2]),
        (stale, Fault::BUILD_STALE_TASK, [8, 7]),
    ];
    for (task, fault, detail) in cases {
        let result = builder.publish(task);
        Refused { result, fault, task, func_id: NOBODY, detail }.check(&builder);
    }
    assert_eq!(words.state().queue(CoreKind::AIV).len(), 1, "it is ready once");
    let result = builder.finish();
    let fault = Fault::BUILD_NOT_PUBLISHED;
    Refused { result, fault, task: b, func_id: NOBODY, detail: [0, 0] }.check(&builder);
    assert!(!words.state().build_is_done(), "the run must not end");
    builder.publish(b).unwrap();
    assert_eq!(builder.finish(), Ok(()));
}

fn a_fault_of_the_run_stops_the_builder<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let task = add(&mut builder);
    assert!(words.fault.raise(Fault::STALL_CORE));
    assert_eq!(builder.publish(task), Err(Fault::STALL_CORE));
    assert!(words.state().queue(CoreKind::AIV).is_empty());
}

fn a_task_is_written_as_it_was_given<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    add(&mut builder);
    let kernel = GmAddr(0xABC0);
    let given = TaskSpec { func_id: FuncId(900), kind: CoreKind::AIC, args: &[7, 8, 9], kernel };
    let task = &words.tasks[builder.add_task(given).unwrap().slot as usize];
    assert_eq!(task.kernel.load(Ordering::Relaxed), 0xABC0, "its own code, not the table's");
    assert_eq!(task.func_id.load(Ordering::Relaxed), 900);
    assert_eq!(task.kind.load(Ordering::Relaxed), CoreKind::AIC.get());
    assert_eq!(task.arg_count.load(Ordering::Relaxed), 3);
    assert_eq!(task.fanin.load(Ordering::Relaxed), UNPUBLISHED);
    assert_eq!(task.generation.load(Ordering::Relaxed), GENERATION);
    let first = task.payload.load(Ordering::Relaxed) as usize;
    assert_eq!(first, 1, "after the block context of task 0");
    let payload: Vec<u64> = words.state().payloads[first..first + 4]
        .iter()
        .map(|w| w.load(Ordering::Relaxed))
        .collect();
    assert_eq!(payload, [7, 8, 9, 1 << 32], "arguments, then block 0 of 1");
    assert_eq!(words.tasks[0].kernel.load(Ordering::Relaxed), KERNELS + 3);
    assert!(builder.add_task(spec(&[1; 128])).is_ok(), "128 arguments are the most");
}

fn consumers_are_in_order_however_many<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let (first, second) = (add(&mut builder), add(&mut builder));
    let mut expected = [Vec::new(), Vec::new()];
    for number in 0..200_u32 {
        let consumer = add(&mut builder);
        // Two fanouts that grow at once share the chunks.
        builder.add_edge(first, consumer).unwrap();
        expected[0].push(consumer.slot);
        if number % 3 == 0 {
            builder.add_edge(second, consumer).unwrap();
            expected[1].push(consumer.slot);
        }
        builder.publish(consumer).unwrap();
        let edges_in = 1 + u32::from(number % 3 == 0);
        assert_eq!(words.tasks[consumer.slot as usize].fanin.load(Ordering::Relaxed), edges_in);
    }
    for (producer, expected) in [first, second].iter().zip(expected) {
        let task = &words.tasks[producer.slot as usize];
        let mut walk = ConsumerWalk::new(F::close::<Concurrent>(task));
        let found: Vec<u32> =
            std::iter::from_fn(|| walk.next(task, words.state().chunks)).collect();
        assert_eq!(found, expected);
    }
    assert_eq!(words.instances[0].edges.load(Ordering::Relaxed), 200 + 67);
}

fn an_edge_from_a_completed_task_is_satisfied<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let (producer, consumer) = (add(&mut builder), add(&mut builder));
    builder.publish(producer).unwrap();
    assert_eq!(F::close::<Concurrent>(&words.tasks[0]), 0);
    assert_eq!(builder.add_edge(producer, consumer), Ok(EdgeOutcome::AlreadySatisfied));
    builder.publish(consumer).unwrap();
    assert_eq!(words.state().queue(CoreKind::AIV).len(), 2, "it waits for no task");
    let line = &words.instances[0];
    let counts = [&line.edges, &line.edges_satisfied].map(|word| word.load(Ordering::Relaxed));
    assert_eq!(counts, [0, 1]);
}

/// What is raised is at least what is published, at every moment; exactly that in the end.
fn outstanding_is_raised_before_and_settled_at_the_end<F: FanoutPolicy>() {
    for tasks in [0, 1, RESERVE - 1, RESERVE, RESERVE + 1, 3 * RESERVE] {
        let words = StateMemory::new(LARGE);
        let mut builder = builder::<F>(&words);
        for published in 0..tasks {
            assert!(words.state().outstanding() >= published);
            builder.submit(spec(&[]), &[]).unwrap();
        }
        assert!(!words.state().build_is_done());
        builder.finish().unwrap();
        assert!(words.state().build_is_done());
        assert_eq!(words.state().outstanding(), tasks);
    }
}

/// The lines and words of a run, apart from addresses.
fn written(words: &StateMemory, tasks: u32) -> Vec<Vec<u64>> {
    let of = |slot: u32| {
        let task = &words.tasks[slot as usize];
        let first = task.payload.load(Ordering::Relaxed) as usize;
        let count = usize::from(task.arg_count.load(Ordering::Relaxed));
        let payload = &words.state().payloads[first..=first + count];
        let line = [
            task.fanin.load(Ordering::Relaxed),
            task.fanout.load(Ordering::Relaxed),
            task.edges_in.load(Ordering::Relaxed),
            task.payload.load(Ordering::Relaxed),
            task.generation.load(Ordering::Relaxed),
            task.state.load(Ordering::Relaxed).into(),
            task.kind.load(Ordering::Relaxed).into(),
        ];
        let mut walk = ConsumerWalk::new(task.fanout.load(Ordering::Relaxed));
        let consumers = std::iter::from_fn(|| walk.next(task, words.state().chunks));
        let line = line.into_iter().chain(consumers.collect::<Vec<_>>()).map(u64::from);
        let kernel = task.kernel.load(Ordering::Relaxed);
        line.chain(payload.iter().map(|word| word.load(Ordering::Relaxed)))
            .chain([kernel])
            .collect()
    };
    (0..tasks).map(of).collect()
}

fn a_range_writes_what_its_tasks_would<F: FanoutPolicy>() {
    const WIDTH: u32 = 9;
    let (ranged, single) = (StateMemory::new(LARGE), StateMemory::new(LARGE));
    let (mut ranges, mut singles) = (builder::<F>(&ranged), builder::<F>(&single));
    let mut above = [[TaskId::NONE; WIDTH as usize]; 2];
    let column: [u64; WIDTH as usize] = std::array::from_fn(|at| 1000 + at as u64 * at as u64);
    for row in 0..6_u32 {
        let args = [u64::from(row), 500, 0];
        let varies = [Variation::by(1, -8), Variation::of(2, &column), Variation::by(2, 1)];
        let [from_range, from_single] = &mut above;
        let wide = Wait::window(if row == 0 { &[] } else { &*from_range }, -1, 3);
        let ends: Vec<u32> = (0..WIDTH).map(|at| if row > 0 { at + 1 } else { 0 }).collect();
        let listed = Wait::listed(if row == 0 { &[] } else { &*from_range }, &ends);
        // The last row waits twice for some, and for one task with more consumers than its line holds.
        let join = Wait::all(if row == 5 { &from_range[..1] } else { &[] });
        let waits = [wide, listed, join];
        let range = TaskRange::new(spec(&args)).times(WIDTH).varying(&varies).after(&waits);
        let mut ids = [TaskId::NONE; WIDTH as usize];
        ranges.submit_range(&range, &mut ids).unwrap();
        let mut alone = [TaskId::NONE; WIDTH as usize];
        for (index, id) in (0..).zip(&mut alone) {
            let steps = 500 - 8 * u64::from(index);
            let args = [u64::from(row), steps, column[index as usize] + u64::from(index)];
            let mut producers = Vec::new();
            for wait in &waits {
                producers.extend(wait.of(index));
            }
            *id = singles.submit(spec(&args), &producers).unwrap();
        }
        assert_eq!(ids, alone);
        (*from_range, *from_single) = (ids, alone);
    }
    assert_eq!(written(&ranged, 6 * WIDTH), written(&single, 6 * WIDTH));
    let counts = |words: &StateMemory| {
        let line = &words.instances[0];
        [&line.edges, &line.edges_satisfied, &line.added, &line.published]
            .map(|word| word.load(Ordering::Relaxed))
    };
    assert_eq!(counts(&ranged), counts(&single));
    assert_eq!((ranges.finish(), singles.finish()), (Ok(()), Ok(())));
    assert_eq!(ranged.state().outstanding(), single.state().outstanding());
    let queued = [&ranged, &single].map(|words| words.state().queue(CoreKind::AIV).len());
    assert_eq!(queued, [u64::from(WIDTH); 2], "the first row is ready");
}

fn a_range_after_completed_tasks_is_ready<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let mut ids = [TaskId::NONE; 3];
    builder.submit_range(&TaskRange::new(spec(&[])).times(3), &mut ids).unwrap();
    assert_eq!(F::close::<Concurrent>(&words.tasks[1]), 0);
    let waits = [Wait::each(&ids)];
    let mut next = [TaskId::NONE; 3];
    builder.submit_range(&TaskRange::new(spec(&[])).times(3).after(&waits), &mut next).unwrap();
    let ready = |slot: usize| words.tasks[slot].fanin.load(Ordering::Relaxed) == 0;
    assert_eq!([3, 4, 5].map(ready), [false, true, false]);
    assert_eq!(words.state().queue(CoreKind::AIV).len(), 4);
    assert_eq!(words.instances[0].edges_satisfied.load(Ordering::Relaxed), 1);
}

fn ranges_that_are_refused<F: FanoutPolicy>() {
    let words = StateMemory::new(SMALL);
    let mut builder = builder::<F>(&words);
    let none = [TaskId::NONE; 16];
    let mut refuse = |range: TaskRange<'_>, ids: usize, fault, func_id, detail| {
        let mut given = none;
        let result = builder.submit_range(&range, &mut given[..ids]);
        Refused { result, fault, task: id(0), func_id, detail }.check(&builder);
        assert_eq!((given, builder.added()), (none, 0), "nothing of it stays");
    };
    let range = TaskRange::new(spec(&[1]));
    let wrong = [Variation::by(1, 8)];
    refuse(range.times(3), 2, Fault::BUILD_RANGE_LENGTH, NOBODY, [2, 3]);
    refuse(range.times(2).varying(&wrong), 2, Fault::BUILD_CHAIN_VARIES, NOBODY, [2, 2]);
    refuse(range.times(5), 5, Fault::BUILD_TASKS_FULL, 3, [4, 4]);
    let long = TaskRange::new(spec(&[1; 3])).times(4);
    refuse(long, 4, Fault::BUILD_PAYLOADS_FULL, 3, [16, 12]);
    let missing = TaskSpec { func_id: FuncId(REGISTERED), ..spec(&[]) };
    refuse(TaskRange::new(missing), 1, Fault::BUILD_KERNEL_MISSING, 16, [16, 0]);
    // Nothing at all, and then a task that waits for a later one.
    assert_eq!(builder.submit_range(&range.times(0), &mut []), Ok(()));
    let producers = [id(0), id(1)];
    let waits = [Wait::listed(&producers, &[0, 1, 2])];
    let mut ids = [TaskId::NONE; 3];
    let result = builder.submit_range(&TaskRange::new(spec(&[])).times(3).after(&waits), &mut ids);
    assert_eq!(result, Ok(()), "one of the range may wait for one before it, if its id is known");
}

fn a_range_that_breaks_off_is_not_finished<F: FanoutPolicy>() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<F>(&words);
    let first = add(&mut builder);
    builder.publish(first).unwrap();
    let producers = [first, id(77)];
    let waits = [Wait::listed(&producers, &[0, 1, 2, 2])];
    let mut ids = [TaskId::NONE; 4];
    let result = builder.submit_range(&TaskRange::new(spec(&[])).times(4).after(&waits), &mut ids);
    let fault = Fault::BUILD_UNKNOWN_TASK;
    Refused { result, fault, task: id(77), func_id: NOBODY, detail: [77, 5] }.check(&builder);
    assert_eq!(builder.added(), 4, "the third task of the range is half-made");
    let result = builder.finish();
    let fault = Fault::BUILD_NOT_PUBLISHED;
    Refused { result, fault, task: id(3), func_id: NOBODY, detail: [0, 0] }.check(&builder);
    let line = &words.instances[0];
    assert_eq!(line.published.load(Ordering::Relaxed), 3);
    assert!(words.state().outstanding() >= 3 && !words.state().build_is_done());
}

both_strategies! {
    a_range_is_its_tasks => a_range_writes_what_its_tasks_would;
    a_range_after_completed_tasks => a_range_after_completed_tasks_is_ready;
    a_wrong_range_is_refused_and_leaves_nothing => ranges_that_are_refused;
    a_range_with_a_wrong_edge_breaks_off => a_range_that_breaks_off_is_not_finished;
    a_chain_is_one_task_to_everybody_else => chains_are_tasks;
    a_chain_that_cannot_run_is_refused_and_leaves_nothing => chains_that_are_refused;
    a_template_is_written_as_its_chain => templates_are_chains;
    a_template_that_cannot_run_is_refused_and_leaves_nothing => templates_that_are_refused;
    a_wrong_task_is_refused_and_blamed => tasks_that_are_refused;
    a_capacity_that_is_used_up_is_named => capacities_that_are_used_up;
    a_wrong_edge_is_refused_and_blamed => edges_that_are_refused;
    a_wrong_publish_is_refused_and_blamed => publishes_that_are_refused;
    a_fault_stops_the_builder => a_fault_of_the_run_stops_the_builder;
    tasks_are_written_as_given => a_task_is_written_as_it_was_given;
    consumers_are_in_order => consumers_are_in_order_however_many;
    a_completed_producer_satisfies => an_edge_from_a_completed_task_is_satisfied;
    outstanding_covers_what_is_published => outstanding_is_raised_before_and_settled_at_the_end;
}

#[test]
fn device_memory_is_read_in_range_and_aligned() {
    let words = StateMemory::new(SMALL);
    let builder: Builder<'_, (Concurrent, LockFree, FakeDevice, ())> = builder(&words);
    assert_eq!(builder.read_u32(GmAddr(0x1004)), Ok(0x1004));
    for address in [0x0FFC, 0x2000, 0x1002, u64::MAX] {
        assert_eq!(builder.read_u32(GmAddr(address)), Err(Fault::BUILD_GM_RANGE));
        let blame = builder.blame(Fault::BUILD_GM_RANGE);
        assert_eq!((blame.task.slot, blame.detail), (0, [address, 0]), "for the first task");
    }
    assert_eq!(builder.blame(Fault::BUILD_UNKNOWN_KIND).task.slot, 0);
}

#[test]
fn submit_is_add_edges_publish() {
    let words = StateMemory::new(LARGE);
    let mut builder = builder::<LockFree>(&words);
    let a = builder.submit(spec(&[]), &[]).unwrap();
    let b = builder.submit(spec(&[]), &[]).unwrap();
    let c = builder.submit(spec(&[]), &[a, b]).unwrap();
    assert_eq!(words.tasks[c.slot as usize].fanin.load(Ordering::Relaxed), 2);
    assert_eq!(words.tasks[c.slot as usize].state.load(Ordering::Relaxed), 2);
    let fault = builder.submit(spec(&[]), &[a, id(77)]).unwrap_err();
    assert_eq!(fault, Fault::BUILD_UNKNOWN_TASK);
    assert_eq!(builder.finish(), Err(Fault::BUILD_NOT_PUBLISHED), "the half-made task is there");
}

//! Dispatches that are staged ahead of their tasks: which are, which are started, and what happens to those whose core is
//! taken.

use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, CoreKind, FuncId, TaskId};
use pto_aicpu_fw::{FanoutPolicy, Scheduler, Step};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::mock::{BUDGETS, Mock, with_options};
use crate::words::{Size, StateMemory};
use crate::{TestBuilder, both_strategies, builder};

const SIZE: Size = Size { tasks: 64, arg_words: 0, edges: 128, instances: 3 };
const AIC: CoreKind = CoreKind::AIC;
const AIV: CoreKind = CoreKind::AIV;

type Two<'a, F> = (Scheduler<'a, Mock<2>, F>, Mock<2>);

fn scheduler<'a, F: FanoutPolicy>(words: &'a StateMemory, kinds: &[CoreKind]) -> Two<'a, F> {
    with_options::<F, 2>(words, 1, kinds, BuildMode::CONCURRENT, BUDGETS)
}

fn submit<F: FanoutPolicy>(
    builder: &mut TestBuilder<'_, F>,
    kind: CoreKind,
    after: &[TaskId],
) -> TaskId {
    builder.submit(TaskSpec::new(FuncId(3), kind, &[]), after).unwrap()
}

fn step<F: FanoutPolicy>((scheduler, mock): &mut Two<'_, F>) -> Step {
    mock.now_ns += 10;
    scheduler.step(mock).unwrap()
}

/// The tasks that were staged ahead, by core.
fn ahead(mock: &Mock<2>) -> Vec<Option<u32>> {
    mock.ahead.iter().map(|staged| staged.map(|staged| staged.task)).collect()
}

fn a_consumer_is_staged_while_its_producer_runs_and_started_when_that_is_done<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut graph = builder::<F>(&words);
    let first = submit(&mut graph, AIC, &[]);
    submit(&mut graph, AIV, &[first]);
    let mut two = scheduler::<F>(&words, &[AIC, AIV]);
    assert_eq!(step(&mut two), Step::Worked);
    assert_eq!((ahead(&two.1), two.1.running(1)), (vec![None, Some(1)], None), "not started");
    assert_eq!(step(&mut two), Step::Idle, "and not again");
    let commits = two.1.commits;
    two.1.finish(0);
    assert_eq!(step(&mut two), Step::Worked);
    assert_eq!((two.1.running(1), two.1.started_ahead), (Some(1), 1));
    assert_eq!(two.1.commits, commits, "no further barrier");
    two.1.finish(1);
    assert_eq!(step(&mut two), Step::Worked);
    assert_eq!(words.instances[1].completed.load(Ordering::Relaxed), 2);
}

fn a_consumer_of_the_same_kind_is_staged_after_its_producer<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut graph = builder::<F>(&words);
    let mut last = submit(&mut graph, AIV, &[]);
    for _ in 0..5 {
        last = submit(&mut graph, AIV, &[last]);
    }
    let mut two = scheduler::<F>(&words, &[AIV, AIV]);
    step(&mut two);
    for task in 0..5 {
        let core = (0..2).find(|core| two.1.running(*core) == Some(task)).expect("it runs");
        step(&mut two);
        assert_eq!(ahead(&two.1)[core], Some(task + 1), "on the core that will be free");
        two.1.finish(core);
        assert_eq!(step(&mut two), Step::Worked);
    }
    assert_eq!(two.1.started_ahead, 5);
}

/// A fanin of two is not of interest, until the other producer has completed.
fn a_consumer_with_another_producer_is_not_staged<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut graph = builder::<F>(&words);
    let producers = [submit(&mut graph, AIC, &[]), submit(&mut graph, AIC, &[])];
    submit(&mut graph, AIV, &producers);
    let mut two = scheduler::<F>(&words, &[AIC, AIC, AIV]);
    (0..4).for_each(|_| {
        step(&mut two);
    });
    assert_eq!(ahead(&two.1), [None; 3], "it waits for both");
    two.1.finish(0);
    // A look in vain at the other one is the occasion to look at what waits for it.
    two.1.now_ns += 100_000;
    while step(&mut two) == Step::Worked {}
    let at = ahead(&two.1)[2];
    two.1.finish(1);
    step(&mut two);
    assert_eq!((two.1.running(2), two.1.started_ahead), (Some(2), usize::from(at.is_some())));
}

fn a_ready_task_takes_the_core_and_nothing_is_lost<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut graph = builder::<F>(&words);
    let first = submit(&mut graph, AIC, &[]);
    submit(&mut graph, AIV, &[first]);
    let mut two = scheduler::<F>(&words, &[AIC, AIV]);
    step(&mut two);
    step(&mut two);
    assert_eq!(ahead(&two.1), [None, Some(1)]);
    submit(&mut graph, AIV, &[]);
    assert_eq!(step(&mut two), Step::Worked);
    assert_eq!(
        (two.1.running(1), ahead(&two.1)),
        (Some(2), vec![None; 2]),
        "who is ready goes first"
    );
    two.1.finish(0);
    step(&mut two);
    assert_eq!(two.1.started_ahead, 0, "another one has the core");
    two.1.finish(1);
    step(&mut two);
    assert_eq!(two.1.tasks(), [0, 2, 1]);
}

both_strategies! {
    staged_then_started => a_consumer_is_staged_while_its_producer_runs_and_started_when_that_is_done;
    staged_after => a_consumer_of_the_same_kind_is_staged_after_its_producer;
    two_producers => a_consumer_with_another_producer_is_not_staged;
    taken => a_ready_task_takes_the_core_and_nothing_is_lost;
}

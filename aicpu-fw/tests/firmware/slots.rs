//! Two dispatches a core: who gets a second one, what happens when it ends, and whom the watchdog blames; and which
//! cores are looked at.

use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, CoreKind, Fault, FuncId, TaskId};
use pto_aicpu_fw::pace::LOOK_WITHIN_NS;
use pto_aicpu_fw::{Budgets, FanoutPolicy, LockFree, Scheduler, Step};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::mock::{Mock, with_options, worker_of};
use crate::words::{GENERATION, Size, StateMemory};
use crate::{both_strategies, builder};

const AIV: CoreKind = CoreKind::AIV;
const SIZE: Size = Size { tasks: 256, arg_words: 0, edges: 512, instances: 3 };
/// How long the kernel of these tests takes.
const KERNEL_NS: u64 = 1_000;
const BUDGETS: Budgets =
    Budgets { task_ns: 100_000, stall_ns: 100_000, run_ns: 0, of_launches: false };

type Two<'a, F> = (Scheduler<'a, Mock<2>, F>, Mock<2>);

fn scheduler<'a, F: FanoutPolicy>(
    words: &'a StateMemory,
    instance: usize,
    cores: usize,
) -> Two<'a, F> {
    let kinds = vec![AIV; cores];
    with_options::<F, 2>(words, instance, &kinds, BuildMode::CONCURRENT, BUDGETS)
}

fn spec(func_id: u16) -> TaskSpec<'static> {
    TaskSpec::new(FuncId(func_id), AIV, &[])
}

fn submit<F: FanoutPolicy>(words: &StateMemory, func_id: u16, count: usize) {
    let mut builder = builder::<F>(words);
    (0..count).for_each(|_| assert!(builder.submit(spec(func_id), &[]).is_ok()));
}

fn step<F: FanoutPolicy>((scheduler, mock): &mut Two<'_, F>, later: u64) -> Step {
    mock.now_ns += later;
    scheduler.step(mock).unwrap()
}

/// A scheduler of one core which runs the second of `tasks` tasks, and knows the kernel; the third is pending.
fn with_a_pending_task<'a, F: FanoutPolicy>(words: &'a StateMemory, tasks: usize) -> Two<'a, F> {
    submit::<F>(words, 5, tasks);
    let mut two = scheduler::<F>(words, 1, 1);
    step(&mut two, 0);
    assert_eq!(two.1.pending(0), None, "after a kernel of unknown length");
    two.1.finish(0);
    assert_eq!(step(&mut two, KERNEL_NS), Step::Worked);
    assert_eq!((two.1.running(0), two.1.pending(0)), (Some(1), None), "not with the first one");
    step(&mut two, 10);
    assert_eq!((two.1.running(0), two.1.pending(0)), (Some(1), Some(2)));
    two
}

fn a_pending_task_follows_by_itself<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut two = with_a_pending_task::<F>(&words, 4);
    two.1.finish(0);
    assert_eq!(step(&mut two, KERNEL_NS), Step::Worked);
    assert_eq!((two.1.running(0), two.1.pending(0)), (Some(2), Some(3)), "and the next is pending");
    two.1.finish_both(0);
    assert_eq!(step(&mut two, 2 * KERNEL_NS), Step::Worked);
    assert_eq!((two.1.running(0), two.0.busy_count()), (None, 0), "both were collected");
    assert_eq!(two.1.tasks(), [0, 1, 2, 3]);
    assert_eq!(words.instances[1].completed.load(Ordering::Relaxed), 4);
}

fn the_watchdog_blames_the_one_that_runs<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut two = with_a_pending_task::<F>(&words, 3);
    let mut look = |later: u64| {
        two.1.now_ns += later;
        (0..64).find_map(|_| two.0.step(&mut two.1).err())
    };
    assert_eq!(look(0), None);
    assert_eq!(look(BUDGETS.task_ns + 1), Some(Fault::STALL_CORE));
    let blame = two.0.blame(Fault::STALL_CORE);
    let task = TaskId { slot: 1, generation: GENERATION };
    assert_eq!((blame.task, blame.worker), (task, worker_of(1, 0)));
}

/// The pending task gets the whole budget: it counts from where it starts.
fn a_task_is_not_overdue_for_the_time_that_it_was_pending<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut two = with_a_pending_task::<F>(&words, 3);
    for later in [0, BUDGETS.task_ns] {
        two.1.now_ns += later;
        (0..64).for_each(|_| assert_eq!(two.0.step(&mut two.1), Ok(Step::Idle)));
    }
    two.1.finish(0);
    assert_eq!(step(&mut two, 1), Step::Worked);
    for later in [0, BUDGETS.task_ns] {
        two.1.now_ns += later;
        (0..64).for_each(|_| assert_eq!(two.0.step(&mut two.1), Ok(Step::Idle)));
    }
}

fn nothing_is_pended_while_a_sibling_has_a_free_core<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut hungry = scheduler::<F>(&words, 2, 1);
    let mut two = scheduler::<F>(&words, 1, 1);
    submit::<F>(&words, 5, 3);
    step(&mut two, 0);
    two.1.finish(0);
    step(&mut two, KERNEL_NS);
    step(&mut two, 10);
    assert_eq!(two.1.pending(0), None, "the sibling could run it");
    step(&mut hungry, 0);
    assert_eq!(hungry.1.tasks(), [2]);
    submit_one_more(&words);
    step(&mut two, 10);
    assert!(two.1.pending(0).is_some(), "the sibling's core is busy now");
}

/// Three schedulers with two, two and four free cores, and four tasks: one, one and two of them.
fn ready_tasks_are_divided_by_free_cores<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut three = [(0, 2), (1, 2), (2, 4)].map(|(at, cores)| scheduler::<F>(&words, at, cores));
    submit::<F>(&words, 5, 4);
    let tasks = three.each_mut().map(|two| {
        step(two, 10);
        two.1.tasks().len()
    });
    assert_eq!(tasks, [1, 1, 2]);
    assert!(words.state().queue(AIV).is_empty());
}

/// One task has four consumers: its own core goes on with one of them, two of the three others get one each, and one goes to a sibling,
/// although a third core is free.
fn a_sibling_gets_its_part_of_what_one_releases<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut graph = builder::<F>(&words);
    let first = graph.submit(spec(5), &[]).unwrap();
    (0..4).for_each(|_| assert!(graph.submit(spec(5), &[first]).is_ok()));
    let mut two = [1, 2].map(|at| scheduler::<F>(&words, at, 4));
    step(&mut two[0], 10);
    let core = (0..4).find(|core| two[0].1.running(*core).is_some()).unwrap();
    two[0].1.finish(core);
    step(&mut two[0], KERNEL_NS);
    assert_eq!((two[0].1.tasks().len(), words.state().queue(AIV).len()), (1 + 1 + 2, 1));
    assert!(two[0].1.wakes > 0, "the sibling may sleep");
    step(&mut two[1], 10);
    assert_eq!((two[1].1.tasks().len(), words.state().queue(AIV).len()), (1, 0));
}

/// Publishes a task that the test made by hand, as the builder of another call cannot go on.
fn submit_one_more(words: &StateMemory) {
    let task = &words.tasks[3];
    task.kind.store(AIV.get(), Ordering::Relaxed);
    task.state.store(pto_abi::kinds::TaskState::PUBLISHED.get(), Ordering::Relaxed);
    words.state().queue(AIV).push::<pto_abi::sync::Concurrent>(&[3]);
}

pub(crate) fn nothing_is_pended_after_a_long_kernel<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    submit::<F>(&words, 5, 4);
    let mut two = scheduler::<F>(&words, 1, 1);
    let long_ns = 4 * LOOK_WITHIN_NS;
    step(&mut two, 0);
    two.1.finish(0);
    step(&mut two, long_ns);
    step(&mut two, 10);
    assert_eq!(two.1.pending(0), None, "it goes on for long");
    // The look in vain just now has added a sixteenth.
    step(&mut two, long_ns + LOOK_WITHIN_NS / 8);
    assert!(two.1.pending(0).is_some(), "it is about to end");
    two.1.finish(0);
    step(&mut two, long_ns);
    step(&mut two, 3 * long_ns);
    assert_eq!(two.1.pending(0), None, "it goes on for longer than one knows");
}

both_strategies! {
    pending_follows => a_pending_task_follows_by_itself;
    blamed_in_order => the_watchdog_blames_the_one_that_runs;
    pending_has_its_own_budget => a_task_is_not_overdue_for_the_time_that_it_was_pending;
    divided => ready_tasks_are_divided_by_free_cores;
    part_of_a_sibling => a_sibling_gets_its_part_of_what_one_releases;
    hungry_sibling => nothing_is_pended_while_a_sibling_has_a_free_core;
    long_kernel => nothing_is_pended_after_a_long_kernel;
}

/// A core that cannot have finished is not looked at while there is something else to do, but within the bound.
#[test]
fn looks_wait_until_they_are_due() {
    let words = StateMemory::new(SIZE);
    submit::<LockFree>(&words, 5, 64);
    let mut two = scheduler::<LockFree>(&words, 1, 2);
    step(&mut two, 0);
    // Core 0 teaches how long the kernel takes; core 1 stays where it is.
    for _ in 0..8 {
        two.1.finish(0);
        step(&mut two, 3 * KERNEL_NS);
    }
    let before = two.1.polls;
    two.1.finish(0);
    step(&mut two, LOOK_WITHIN_NS);
    assert_eq!(two.1.polls - before, 2, "both are due");
    let before = two.1.polls;
    two.1.finish(0);
    let mut steps = 0;
    while two.1.polls == before {
        step(&mut two, 100);
        steps += 1;
    }
    assert!((2..=200).contains(&steps), "{steps}: neither at once, nor after the bound");
}

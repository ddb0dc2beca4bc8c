//! Stalls: what is one, what is not, and what the epitaph says of it.

use pto_abi::kinds::TaskState;
use pto_abi::runtime::{EPITAPH_BLOCKED, NOBODY};
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, CoreKind, Fault, FuncId, TaskId};
use pto_aicpu_fw::{Budgets, FanoutPolicy, LockFree, Scheduler, Step, stall};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::mock::{BUDGETS, Core, Mock, scheduler, with_options, worker_of};
use crate::words::{GENERATION, KERNELS, Size, StateMemory};
use crate::{both_strategies, builder};

const AIC: CoreKind = CoreKind::AIC;
const AIV: CoreKind = CoreKind::AIV;
const SIZE: Size = Size { tasks: 256, arg_words: 0, edges: 512, instances: 3 };
/// Idle steps in which the watchdog looks at the clock at least once.
const LOOK: usize = 64;

fn spec(kind: CoreKind) -> TaskSpec<'static> {
    TaskSpec::new(FuncId(5), kind, &[])
}

/// Idle steps, one look at the clock at least; the fault if there is one.
fn idle<F: FanoutPolicy>(
    scheduler: &mut Scheduler<'_, Mock, F>,
    mock: &mut Mock,
) -> Result<(), Fault> {
    for _ in 0..LOOK {
        assert_ne!(scheduler.step(mock)?, Step::Done);
    }
    Ok(())
}

/// A look, `later` nanoseconds of nothing, another look.
fn idle_for<F: FanoutPolicy>(
    scheduler: &mut Scheduler<'_, Mock, F>,
    mock: &mut Mock,
    later: u64,
) -> Result<(), Fault> {
    idle(scheduler, mock)?;
    mock.now_ns += later;
    idle(scheduler, mock)
}

pub(crate) fn a_slow_core_is_no_stall<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    builder.submit(spec(AIV), &[]).unwrap();
    builder.finish().unwrap();
    let (mut busy, mut cores) = scheduler::<F>(&words, 0, &[AIV]);
    let (mut sibling, mut no_work) = scheduler::<F>(&words, 1, &[AIV]);
    busy.step(&mut cores).unwrap();
    for _ in 0..9 {
        // 9,000 ns in sum: the stall budget nine times, the task budget not quite.
        assert_eq!(idle_for(&mut busy, &mut cores, 1_000), Ok(()));
        assert_eq!(idle_for(&mut sibling, &mut no_work, 1_001), Ok(()));
    }
}

pub(crate) fn an_overdue_core_is_named<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    for _ in 0..3 {
        builder.submit(spec(AIV), &[]).unwrap();
    }
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 1, &[AIC, AIV, AIV]);
    scheduler.step(&mut mock).unwrap();
    assert_eq!(idle_for(&mut scheduler, &mut mock, BUDGETS.task_ns), Ok(()), "just within");
    mock.finish(1);
    let stays = mock.running(2).unwrap();
    assert_eq!(scheduler.step(&mut mock), Ok(Step::Worked));
    assert_eq!(idle_for(&mut scheduler, &mut mock, 1), Err(Fault::STALL_CORE));
    let blame = scheduler.blame(Fault::STALL_CORE);
    let task = TaskId { slot: stays, generation: GENERATION };
    assert_eq!((blame.worker, blame.task, blame.func_id), (worker_of(1, 2), task, 5));
    assert_eq!(blame.since_ns, BUDGETS.task_ns + 1);
    let epitaph = stall::epitaph(&words.state(), &blame, 1, mock.now_ns);
    assert_eq!((epitaph.instance, epitaph.core, epitaph.kernel), (1, worker_of(1, 2), KERNELS + 5));
    assert_eq!((epitaph.added, epitaph.published, epitaph.completed), (3, 3, 1));
    assert_eq!((epitaph.busy_cores, epitaph.ready), (2, [0, 0]));
    assert_eq!((epitaph.time_ns, epitaph.since_ns), (mock.now_ns, BUDGETS.task_ns + 1));
}

fn a_core_that_gets_new_tasks_is_not_overdue<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    (0..20).for_each(|_| assert!(builder.submit(spec(AIV), &[]).is_ok()));
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 1, &[AIV]);
    scheduler.step(&mut mock).unwrap();
    for _ in 0..19 {
        assert_eq!(idle_for(&mut scheduler, &mut mock, BUDGETS.task_ns / 2 + 1), Ok(()));
        mock.finish(0);
        scheduler.step(&mut mock).unwrap();
    }
}

fn ready_tasks_without_a_core_are_a_stall<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    builder::<F>(&words).submit(spec(AIC), &[]).unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 1, &[AIV]);
    assert_eq!(idle_for(&mut scheduler, &mut mock, BUDGETS.stall_ns), Ok(()), "just within");
    mock.now_ns += 1;
    assert_eq!(idle(&mut scheduler, &mut mock), Err(Fault::STALL_READY));
    let blame = scheduler.blame(Fault::STALL_READY);
    assert_eq!((blame.detail[0], blame.since_ns), (1, BUDGETS.stall_ns + 1));
    assert_eq!(stall::epitaph(&words.state(), &blame, 1, 0).ready, [1, 0]);
}

/// In sequential mode what is ready waits for the builder, not for a scheduler.
fn a_builder_that_stops_after_a_publish_is_the_stall<F: FanoutPolicy>() {
    for (mode, fault) in
        [(BuildMode::SEQUENTIAL, Fault::STALL_BUILDER), (BuildMode::CONCURRENT, Fault::STALL_READY)]
    {
        let words = StateMemory::new(SIZE);
        let mut builder = builder::<F>(&words);
        // There is no such core, so that in concurrent mode no scheduler takes it either.
        builder.submit(spec(AIC), &[]).unwrap();
        let (mut scheduler, mut mock) = with_options::<F, 1>(&words, 1, &[AIV], mode, BUDGETS);
        let stall = idle_for(&mut scheduler, &mut mock, BUDGETS.stall_ns + 1);
        assert_eq!(stall, Err(fault), "{mode}");
    }
}

fn a_builder_that_adds_nothing_is_a_stall<F: FanoutPolicy>() {
    for mode in [BuildMode::CONCURRENT, BuildMode::SEQUENTIAL] {
        let words = StateMemory::new(SIZE);
        let mut builder = builder::<F>(&words);
        let (mut scheduler, mut mock) = with_options::<F, 1>(&words, 1, &[AIV], mode, BUDGETS);
        let first = builder.add_task(spec(AIV)).unwrap();
        for _ in 0..5 {
            // Each of these is progress.
            assert_eq!(idle_for(&mut scheduler, &mut mock, BUDGETS.stall_ns), Ok(()));
            let task = builder.add_task(spec(AIV)).unwrap();
            assert_eq!(idle_for(&mut scheduler, &mut mock, BUDGETS.stall_ns), Ok(()));
            builder.add_edge(first, task).unwrap();
        }
        let stall = idle_for(&mut scheduler, &mut mock, BUDGETS.stall_ns + 1);
        assert_eq!(stall, Err(Fault::STALL_BUILDER), "{mode}");
    }
}

/// The epitaph of a run that has stalled with everything published.
fn deadlock<F: FanoutPolicy>(
    words: &StateMemory,
) -> (pto_aicpu_fw::blame::Blame, pto_abi::runtime::Epitaph) {
    let (mut scheduler, mut mock) = scheduler::<F>(words, 1, &[AIC, AIV]);
    for _ in 0..words.tasks.len() {
        scheduler.step(&mut mock).unwrap();
        mock.finish_all();
    }
    let stall = idle_for(&mut scheduler, &mut mock, BUDGETS.stall_ns + 1);
    assert_eq!(stall, Err(Fault::STALL_DEADLOCK));
    let blame = scheduler.blame(Fault::STALL_DEADLOCK);
    (blame, stall::epitaph(&words.state(), &blame, 1, mock.now_ns))
}

fn a_cycle_is_named<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    let source = builder.submit(spec(AIV), &[]).unwrap();
    let [a, b, c] = [0; 3].map(|_| builder.add_task(spec(AIC)).unwrap());
    for (producer, consumer) in [(source, a), (a, b), (b, c), (c, a)] {
        builder.add_edge(producer, consumer).unwrap();
    }
    for task in [a, b, c] {
        builder.publish(task).unwrap();
    }
    builder.submit(spec(AIV), &[source, c]).unwrap();
    builder.finish().unwrap();
    let (blame, epitaph) = deadlock::<F>(&words);
    assert_eq!((blame.task, blame.func_id), (a, 5));
    assert_eq!(blame.detail, [0, 4], "none ready, four outstanding");
    assert_eq!((epitaph.added, epitaph.completed, epitaph.blocked_count), (5, 1, 4));
    let named: Vec<_> =
        epitaph.blocked[..4].iter().map(|b| (b.task, b.fanin, b.producer)).collect();
    assert_eq!(named, [(1, 1, 3), (2, 1, 1), (3, 1, 2), (4, 1, 3)]);
    let published = u32::from(TaskState::PUBLISHED.get());
    assert!(epitaph.blocked[..4].iter().all(|b| b.producer_state == published));
}

fn a_lost_edge_is_distinguished_from_a_cycle<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    let source = builder.submit(spec(AIV), &[]).unwrap();
    let task = builder.submit(spec(AIC), &[source]).unwrap();
    // An edge that no fanout holds.
    words.tasks[task.slot as usize].fanin.fetch_add(1, Ordering::Relaxed);
    builder.finish().unwrap();
    let (blame, epitaph) = deadlock::<F>(&words);
    assert_eq!(blame.task, task);
    assert_eq!(epitaph.blocked_count, 1);
    let entry = epitaph.blocked[0];
    assert_eq!((entry.task, entry.fanin, entry.producer), (1, 1, NOBODY));
}

/// A long list is counted, and its start is named; producers beyond the line of the task are found too.
fn a_long_list_is_counted<F: FanoutPolicy>() {
    const BLOCKED: u32 = 100;
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    let producer = builder.add_task(spec(AIC)).unwrap();
    let mut last = producer;
    for _ in 0..BLOCKED {
        last = builder.submit(spec(AIV), &[producer]).unwrap();
    }
    builder.add_edge(last, producer).unwrap();
    builder.publish(producer).unwrap();
    builder.finish().unwrap();
    let (_, epitaph) = deadlock::<F>(&words);
    assert_eq!(epitaph.blocked_count, BLOCKED + 1);
    let named: Vec<_> = epitaph.blocked.iter().map(|entry| (entry.task, entry.producer)).collect();
    let expected: Vec<(u32, u32)> = (0..u32::try_from(EPITAPH_BLOCKED).unwrap())
        .map(|task| (task, if task == 0 { last.slot } else { producer.slot }))
        .collect();
    assert_eq!(named, expected);
}

const RUN: Budgets = Budgets { task_ns: 10_000, stall_ns: 10_000, run_ns: 500, of_launches: false };

fn the_run_budget_ends_an_idle_run<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    builder::<F>(&words).submit(spec(AIV), &[]).unwrap();
    let (mut scheduler, mut mock) =
        with_options::<F, 1>(&words, 1, &[AIV], BuildMode::CONCURRENT, RUN);
    scheduler.step(&mut mock).unwrap();
    assert_eq!(idle_for(&mut scheduler, &mut mock, 500), Ok(()), "just within");
    mock.now_ns += 1;
    assert_eq!(idle(&mut scheduler, &mut mock), Err(Fault::STALL_RUN_BUDGET));
    assert_eq!(scheduler.blame(Fault::STALL_RUN_BUDGET).since_ns, 501);
}

/// A run that always has something to do is over its budget all the same.
fn the_run_budget_ends_a_busy_run<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    (0..250).for_each(|_| assert!(builder.submit(spec(AIV), &[]).is_ok()));
    let (mut scheduler, mut mock) =
        with_options::<F, 1>(&words, 1, &[AIV], BuildMode::CONCURRENT, RUN);
    let fault = (0..250).find_map(|_| {
        let result = scheduler.step(&mut mock);
        mock.finish_all();
        mock.now_ns += 100;
        result.err()
    });
    assert_eq!(fault, Some(Fault::STALL_RUN_BUDGET));
}

/// An instance that never idles says all the same what it does: its siblings see no stall.
fn a_sibling_that_never_idles_is_no_stall<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    let mut last = builder.submit(spec(AIV), &[]).unwrap();
    (0..20).for_each(|_| last = builder.submit(spec(AIV), &[last]).unwrap());
    builder.finish().unwrap();
    let (mut busy, mut cores) = scheduler::<F>(&words, 1, &[AIV]);
    let (mut sibling, mut no_work) = scheduler::<F>(&words, 2, &[AIV]);
    busy.step(&mut cores).unwrap();
    for _ in 0..20 {
        // The core is busy for longer than the stall budget, and no scheduler polls it meanwhile.
        assert_eq!(idle_for(&mut sibling, &mut no_work, BUDGETS.stall_ns + 1), Ok(()));
        cores.finish(0);
        assert_eq!(busy.step(&mut cores), Ok(Step::Worked));
    }
}

both_strategies! {
    slow_core => a_slow_core_is_no_stall;
    overdue_core => an_overdue_core_is_named;
    busy_core => a_core_that_gets_new_tasks_is_not_overdue;
    ready_without_core => ready_tasks_without_a_core_are_a_stall;
    stopped_builder => a_builder_that_stops_after_a_publish_is_the_stall;
    silent_builder => a_builder_that_adds_nothing_is_a_stall;
    cycle => a_cycle_is_named;
    lost_edge => a_lost_edge_is_distinguished_from_a_cycle;
    long_list => a_long_list_is_counted;
    run_budget_idle => the_run_budget_ends_an_idle_run;
    run_budget_busy => the_run_budget_ends_a_busy_run;
    sibling_at_work => a_sibling_that_never_idles_is_no_stall;
}

#[test]
fn the_watchdog_looks_at_the_clock_and_not_at_steps() {
    let words = StateMemory::new(SIZE);
    let (mut scheduler, mut mock) = scheduler::<LockFree>(&words, 1, &[AIV]);
    for _ in 0..200 {
        assert_eq!(idle(&mut scheduler, &mut mock), Ok(()), "time does not advance");
    }
    assert_eq!(mock.cores, [Core::Free]);
}

/// The supervisor may look at a core that has received no task yet (its words are zeros), or no new task.
#[test]
fn only_a_launch_on_a_core_has_the_time_of_its_stream() {
    let words = StateMemory::new(SIZE);
    let (state, task) = (words.state(), &words.tasks[0]);
    let budgets = Budgets { of_launches: true, ..BUDGETS };
    task.last_chunk.store(0, Ordering::Relaxed);
    for (at, expected) in [
        (TaskState::NONE, BUDGETS.task_ns),
        (TaskState::PUBLISHED, BUDGETS.task_ns),
        (TaskState::DISPATCHED, 0),
        (TaskState::COMPLETED, BUDGETS.task_ns),
    ] {
        task.state.store(at.get(), Ordering::Relaxed);
        assert_eq!(budgets.of(0, &state), expected, "{at:?}");
    }
    task.state.store(TaskState::DISPATCHED.get(), Ordering::Relaxed);
    assert_eq!(BUDGETS.of(0, &state), BUDGETS.task_ns, "no session");
}

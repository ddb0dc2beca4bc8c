//! The scheduler with scripted cores: dispatch, release, the end, and what it refuses.

use pto_abi::gm::GmWindow;
use pto_abi::kinds::TaskState;
use pto_abi::stream::{BlockBoard, BlockLine};
use pto_abi::sync::{Concurrent, Ordering};
use pto_abi::task::Task;
use pto_abi::{BuildMode, CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicpu_fw::block_shapes::{BlockShapeMemory, LANE_SETS, List};
use pto_aicpu_fw::scheduler::RELEASES_A_PASS;
use pto_aicpu_fw::{FanoutPolicy, Scheduler, SharedState, Step};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::mock::{BUDGETS, Core, Mock, scheduler, with_options, worker_of};
use crate::words::{GENERATION, KERNELS, PAYLOADS, Size, StateMemory};
use crate::{both_strategies, builder};

const AIC: CoreKind = CoreKind::AIC;
const AIV: CoreKind = CoreKind::AIV;
const SIZE: Size = Size { tasks: 64, arg_words: 64, edges: 128, instances: 2 };

fn on(kind: CoreKind) -> TaskSpec<'static> {
    TaskSpec::new(FuncId(u16::from(kind.get())), kind, &[])
}

fn step<F: FanoutPolicy>(scheduler: &mut Scheduler<'_, Mock, F>, mock: &mut Mock) -> Step {
    scheduler.step(mock).unwrap()
}

/// Steps until the run is over; every core finishes what it has at once.
fn to_the_end<F: FanoutPolicy>(scheduler: &mut Scheduler<'_, Mock, F>, mock: &mut Mock) {
    let is_over = |_| {
        mock.finish_all();
        step(scheduler, mock) == Step::Done
    };
    assert!((0..50_000).any(is_over), "the run does not end");
}

fn state_of(words: &StateMemory, slot: u32) -> u8 {
    words.tasks[slot as usize].state.load(Ordering::Relaxed)
}

fn dispatch_by_kind<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    for kind in [AIV, AIV, AIC, AIC, AIV] {
        builder.submit(TaskSpec { args: &[1, 2], ..on(kind) }, &[]).unwrap();
    }
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIC, AIV, AIV]);
    assert_eq!(step(&mut scheduler, &mut mock), Step::Worked);
    let mut on_aiv = [mock.running(1), mock.running(2)];
    on_aiv.sort_unstable();
    assert_eq!((mock.running(0), on_aiv), (Some(2), [Some(0), Some(1)]));
    assert_eq!((mock.commits, scheduler.busy_count()), (1, 3), "one barrier for the batch");
    for (core, staged) in &mock.dispatches {
        assert_eq!(staged.kernel, GmAddr(KERNELS + u64::from(*core != 0)));
        assert_eq!(staged.args, PAYLOADS.offset(8 * 3 * u64::from(staged.task)));
        assert_eq!(state_of(&words, staged.task), TaskState::DISPATCHED.get());
    }
    assert_eq!(step(&mut scheduler, &mut mock), Step::Idle, "no free core for the rest");
    let finished = mock.finish(1);
    step(&mut scheduler, &mut mock);
    assert_eq!(mock.running(1), Some(4));
    assert_eq!(state_of(&words, finished), TaskState::COMPLETED.get());
    assert_eq!(words.state().queue(AIC).len(), 1, "the second AIC task waits for the AIC core");
}

/// The consumer that a completion makes ready goes to the core that has just become free, in the same
/// step, and not through the shared queue.
fn direct_hand_over<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut builder = builder::<F>(&words);
    let mut last = builder.submit(on(AIV), &[]).unwrap();
    for _ in 0..9 {
        last = builder.submit(on(AIV), &[last]).unwrap();
    }
    builder.finish().unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIV]);
    step(&mut scheduler, &mut mock);
    let pushed = words.ends[1].tail.load(Ordering::Relaxed);
    for slot in 1..10 {
        mock.finish(0);
        step(&mut scheduler, &mut mock);
        assert_eq!(mock.running(0), Some(slot));
    }
    assert_eq!(words.ends[1].tail.load(Ordering::Relaxed), pushed);
    assert_eq!(mock.wakes, 0, "nothing was shared");
    mock.finish(0);
    assert_eq!(step(&mut scheduler, &mut mock), Step::Worked);
    assert_eq!(step(&mut scheduler, &mut mock), Step::Done);
    assert_eq!(mock.tasks(), (0..10).collect::<Vec<_>>());
}

/// A fanout of 10,000 is released over several steps; the producer counts as completed with the last.
fn a_large_fanout_is_released_in_steps<F: FanoutPolicy>() {
    const CONSUMERS: u32 = 10_000;
    let size = Size { tasks: CONSUMERS + 1, arg_words: 0, edges: CONSUMERS.into(), instances: 2 };
    let words = StateMemory::new(size);
    let mut builder = builder::<F>(&words);
    let producer = builder.submit(on(AIC), &[]).unwrap();
    for _ in 0..CONSUMERS {
        builder.submit(on(AIV), &[producer]).unwrap();
    }
    builder.finish().unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIC, AIV, AIV]);
    step(&mut scheduler, &mut mock);
    mock.finish(0);
    let (mut released, mut steps) = (0, 0);
    while state_of(&words, 0) != TaskState::COMPLETED.get() {
        assert!(steps < 100, "it is never completed");
        assert_eq!(step(&mut scheduler, &mut mock), Step::Worked);
        let waiting = |task: &&pto_abi::task::Task| task.fanin.load(Ordering::Relaxed) > 0;
        let left = u32::try_from(words.tasks.iter().filter(waiting).count()).unwrap();
        assert!(CONSUMERS - left - released <= RELEASES_A_PASS, "a step is bounded");
        assert!(words.state().outstanding() > u64::from(CONSUMERS), "not completed yet");
        (released, steps) = (CONSUMERS - left, steps + 1);
    }
    assert_eq!((released, steps), (CONSUMERS, CONSUMERS.div_ceil(RELEASES_A_PASS)));
    assert!(mock.wakes > 0, "siblings hear of what the own cores did not take");
    to_the_end(&mut scheduler, &mut mock);
    let mut tasks = mock.tasks();
    tasks.sort_unstable();
    assert_eq!(tasks, (0..=CONSUMERS).collect::<Vec<_>>(), "each once");
}

/// While a large fanout is released, finished cores wait for the next step, and none is forgotten.
fn completions_after_a_large_fanout<F: FanoutPolicy>() {
    let consumers = RELEASES_A_PASS + 10;
    let size = Size { tasks: 2048, arg_words: 0, edges: 4096, instances: 1 };
    let words = StateMemory::new(size);
    let mut builder = builder::<F>(&words);
    let large = builder.submit(on(AIV), &[]).unwrap();
    let small = builder.submit(on(AIV), &[]).unwrap();
    for _ in 0..consumers {
        builder.submit(on(AIC), &[large, small]).unwrap();
    }
    builder.finish().unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIC, AIV, AIV]);
    step(&mut scheduler, &mut mock);
    mock.finish_all();
    to_the_end(&mut scheduler, &mut mock);
    assert_eq!(mock.tasks().len() as u64, u64::from(consumers) + 2);
}

/// Tasks that do not run complete without a core, several in a step, and share the releases of the step.
fn skipped_tasks_share_the_releases_of_a_step<F: FanoutPolicy>() {
    const SKIPPED: u32 = 16;
    const CONSUMERS: u32 = 200;
    let tasks = SKIPPED * (1 + CONSUMERS);
    let words = StateMemory::new(Size { tasks, arg_words: 0, edges: tasks.into(), instances: 1 });
    let mut builder = builder::<F>(&words);
    let skipped: Vec<_> = (0..SKIPPED).map(|_| builder.add_task(on(AIV)).unwrap()).collect();
    for producer in &skipped {
        for _ in 0..CONSUMERS {
            builder.submit(on(AIV), &[*producer]).unwrap();
        }
    }
    let board = BlockBoard::default();
    board.reset();
    let lines: Vec<_> = (0..SKIPPED).map(|_| BlockLine::default()).collect();
    let (parts_address, gm, room) = (GmAddr::NULL, GmWindow::empty(), [1; LANE_SETS]);
    let memory =
        BlockShapeMemory { board: &board, lines: &lines, parts: &[], parts_address, gm, room };
    for task in &skipped {
        let line = &words.tasks[task.slot as usize];
        line.state.store(TaskState::PUBLISHED.get(), Ordering::Relaxed);
        // The element is nowhere, and reads as zero.
        lines[task.slot as usize].value.store(1, Ordering::Relaxed);
        memory.post(List::ARRIVALS, task.slot, [0; CoreKind::COUNT]);
    }
    let state = SharedState { shapes: Some(memory), ..words.state() };
    let (line, mode) = (&words.instances[0], BuildMode::CONCURRENT);
    let mut scheduler = Scheduler::<Mock, F>::new(state, line, mode, GENERATION, BUDGETS);
    scheduler.add_core(0, AIV).unwrap();
    scheduler.form_clusters(|_| None);
    let mut mock = Mock::new(1);
    let waiting = || {
        let waits = |task: &&Task| task.fanin.load(Ordering::Relaxed) == 1;
        u32::try_from(words.tasks.iter().filter(waits).count()).unwrap()
    };
    let mut before = waiting();
    assert_eq!(before, SKIPPED * CONSUMERS);
    while before > 0 {
        step(&mut scheduler, &mut mock);
        let released = before - waiting();
        assert!((1..=RELEASES_A_PASS + SKIPPED).contains(&released), "{released} in one step");
        before -= released;
    }
}

fn sequential_mode_waits_for_the_builder<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let (mode, kinds) = (BuildMode::SEQUENTIAL, [AIV]);
    let (mut scheduler, mut mock) = with_options::<F, 1>(&words, 1, &kinds, mode, BUDGETS);
    let mut builder = builder::<F>(&words);
    builder.submit(on(AIV), &[]).unwrap();
    for _ in 0..10 {
        assert_eq!(step(&mut scheduler, &mut mock), Step::Idle);
    }
    assert!(mock.dispatches.is_empty());
    builder.finish().unwrap();
    assert_eq!(step(&mut scheduler, &mut mock), Step::Worked);
    assert_eq!(mock.running(0), Some(0));
}

fn the_end_is_exact<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let (mut first, mut mine) = scheduler::<F>(&words, 0, &[AIV]);
    let (mut other, mut others) = scheduler::<F>(&words, 1, &[AIV]);
    let mut builder = builder::<F>(&words);
    builder.submit(on(AIV), &[]).unwrap();
    step(&mut first, &mut mine);
    assert_eq!(step(&mut other, &mut others), Step::Idle, "the builder may go on");
    builder.finish().unwrap();
    assert_eq!(step(&mut other, &mut others), Step::Idle, "a task is on the sibling's core");
    mine.finish(0);
    step(&mut first, &mut mine);
    assert_eq!(step(&mut first, &mut mine), Step::Done);
    assert!(mine.wakes > 0, "siblings that sleep hear of the end");
    assert_eq!(step(&mut other, &mut others), Step::Done);
}

fn an_end_with_work_left_is_a_fault<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    builder::<F>(&words).finish().unwrap();
    words.state().queue(AIC).push::<Concurrent>(&[3]);
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIV]);
    assert_eq!(scheduler.step(&mut mock), Err(Fault::SCHEDULE_LEFT_WORK));
    assert_eq!(scheduler.blame(Fault::SCHEDULE_LEFT_WORK).detail, [1, 0]);
}

fn a_foreign_status_is_a_fault<F: FanoutPolicy>() {
    for (core, found) in [(Core::Foreign(0x8000_0009), 0x8000_0009), (Core::Free, 0)] {
        let words = StateMemory::new(SIZE);
        let mut builder = builder::<F>(&words);
        builder.submit(on(AIC), &[]).unwrap();
        builder.submit(on(AIV), &[]).unwrap();
        let (mut scheduler, mut mock) = scheduler::<F>(&words, 1, &[AIC, AIV]);
        step(&mut scheduler, &mut mock);
        mock.cores[1] = core;
        assert_eq!(scheduler.step(&mut mock), Err(Fault::CORE_WRONG_STATUS));
        let blame = scheduler.blame(Fault::CORE_WRONG_STATUS);
        let task = TaskId { slot: 1, generation: GENERATION };
        assert_eq!((blame.worker, blame.task, blame.func_id), (worker_of(1, 1), task, 1));
        assert_eq!(blame.detail, [found, 0]);
    }
}

fn a_task_is_not_dispatched_twice<F: FanoutPolicy>() {
    let dispatched = u64::from(TaskState::DISPATCHED.get());
    let published = u64::from(TaskState::PUBLISHED.get());
    for (slot, found) in [(0, dispatched), (1, 1), (63, 0), (64, 0), (u32::MAX, 0)] {
        let words = StateMemory::new(SIZE);
        let mut builder = builder::<F>(&words);
        builder.submit(on(AIV), &[]).unwrap();
        builder.add_task(on(AIV)).unwrap();
        let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIV, AIV]);
        step(&mut scheduler, &mut mock);
        words.state().queue(AIV).push::<Concurrent>(&[slot]);
        assert_eq!(scheduler.step(&mut mock), Err(Fault::SCHEDULE_TASK_STATE));
        let blame = scheduler.blame(Fault::SCHEDULE_TASK_STATE);
        // No task has stood in slot 63.
        let generation = if slot == 63 { 0 } else { GENERATION };
        assert_eq!(blame.task, TaskId { slot, generation });
        assert_eq!(blame.detail, [found, published]);
        assert_eq!(mock.dispatches.len(), 1);
    }
}

fn a_core_that_is_not_free_is_a_fault<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    builder::<F>(&words).submit(on(AIV), &[]).unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 1, &[AIC, AIV]);
    mock.cores[1] = Core::Running(9);
    assert_eq!(scheduler.step(&mut mock), Err(Fault::SCHEDULE_CORE_NOT_FREE));
    let blame = scheduler.blame(Fault::SCHEDULE_CORE_NOT_FREE);
    assert_eq!(blame.worker, worker_of(1, 1));
}

fn nothing_is_dispatched_after_a_fault<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    builder::<F>(&words).submit(on(AIV), &[]).unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIV]);
    assert!(words.fault.raise(Fault::CORE_WRONG_STATUS));
    assert!(!words.fault.raise(Fault::STALL_READY), "the first one wins");
    assert_eq!(scheduler.step(&mut mock), Err(Fault::CORE_WRONG_STATUS));
    assert!(mock.dispatches.is_empty());
}

/// More cores than the device may have are refused, not taken for other cores.
fn too_many_cores_are_refused<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let (mut scheduler, _) = scheduler::<F>(&words, 0, &[AIV; 128]);
    assert_eq!(scheduler.add_core(128, AIV), Err(Fault::RUNTIME_WORKER_COUNT));
    assert_eq!(scheduler.core_count(), 128);
}

fn a_full_set_of_cores_is_used<F: FanoutPolicy>() {
    let words = StateMemory::new(Size { tasks: 200, ..SIZE });
    let mut builder = builder::<F>(&words);
    (0..130).for_each(|_| assert!(builder.submit(on(AIV), &[]).is_ok()));
    builder.finish().unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[AIV; 128]);
    step(&mut scheduler, &mut mock);
    assert_eq!(scheduler.busy_count(), 128);
    to_the_end(&mut scheduler, &mut mock);
    assert_eq!(mock.dispatches.len(), 130);
}

both_strategies! {
    skipped => skipped_tasks_share_the_releases_of_a_step;
    tasks_go_to_cores_of_their_kind => dispatch_by_kind;
    a_chain_stays_on_its_core => direct_hand_over;
    ten_thousand_consumers_take_several_steps => a_large_fanout_is_released_in_steps;
    cores_that_finish_after_a_large_fanout => completions_after_a_large_fanout;
    sequential_mode => sequential_mode_waits_for_the_builder;
    the_end_comes_when_all_is_completed => the_end_is_exact;
    work_that_is_left_is_a_fault => an_end_with_work_left_is_a_fault;
    foreign_status => a_foreign_status_is_a_fault;
    dispatch_twice => a_task_is_not_dispatched_twice;
    core_not_free => a_core_that_is_not_free_is_a_fault;
    fault_of_a_sibling => nothing_is_dispatched_after_a_fault;
    cores_beyond_the_limit => too_many_cores_are_refused;
    cores_up_to_the_limit => a_full_set_of_cores_is_used;
}

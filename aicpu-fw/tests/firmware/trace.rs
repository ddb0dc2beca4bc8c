//! The events that builder and scheduler leave, in their order.

use pto_abi::kinds::TaskState;
use pto_abi::stream::{BLOCK_WORDS, BlockBoard, BlockLine};
use pto_abi::sync::{AtomicU64, Concurrent, Ordering::Relaxed};
use pto_abi::task::SHAPED;
use pto_abi::trace::{TraceKind, TracePoint};
use pto_abi::{BuildMode, CoreKind, FuncId, GmAddr, GmWindow, TaskId};
use pto_aicpu_fw::block_shapes::{BlockShapeMemory, Lanes, List};
use pto_aicpu_fw::{Builder, FanoutPolicy, Machine, Scheduler, SharedState, Step};
use pto_graph::{GraphBuilder, Priority, TaskSpec};

use crate::both_strategies;
use crate::mock::{BUDGETS, Mock, scheduler, worker_of};
use crate::words::{FakeDevice, GENERATION, Size, StateMemory};

const SIZE: Size = Size { tasks: 16, arg_words: 16, edges: 16, instances: 1 };

/// A builder's machine whose clock goes on by ten at each look.
#[derive(Default)]
struct ClockedMachine {
    looks: std::cell::Cell<u64>,
    events: Vec<TracePoint>,
}

impl Machine for ClockedMachine {
    fn traces(&self) -> bool {
        true
    }
    fn now_ns(&self) -> u64 {
        self.looks.set(self.looks.get() + 10);
        self.looks.get()
    }
    fn trace(&mut self, point: TracePoint) {
        self.events.push(point);
    }
}

type Event = (&'static str, u32, u32);

fn described(events: &[TracePoint]) -> Vec<Event> {
    events.iter().map(|event| (event.kind.name(), event.task, event.extra)).collect()
}

fn build<F: FanoutPolicy>(words: &StateMemory, machine: &mut ClockedMachine) -> [TaskId; 3] {
    let mut builder =
        Builder::<(Concurrent, F, FakeDevice, _)>::new(words.inputs(), FakeDevice, machine);
    let mut add = |kind: CoreKind, producers: &[TaskId]| {
        let task = builder.add_task(TaskSpec::new(FuncId(5), kind, &[])).unwrap();
        producers.iter().for_each(|producer| {
            builder.add_edge(*producer, task).unwrap();
        });
        builder.publish(task).unwrap();
        task
    };
    let first = add(CoreKind::AIC, &[]);
    let second = add(CoreKind::AIV, &[first]);
    let third = add(CoreKind::AIV, &[first, second]);
    builder.finish().unwrap();
    [first, second, third]
}

fn events_of_a_graph<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut machine = ClockedMachine::default();
    build::<F>(&words, &mut machine);
    let aiv = 5 | 1 << 16;
    let expected = [
        ("added", 0, 5),
        ("published", 0, 0),
        ("ready", 0, 0),
        ("added", 1, aiv),
        ("edge", 1, 0),
        ("published", 1, 0),
        ("added", 2, aiv),
        ("edge", 2, 0),
        ("edge", 2, 1),
        ("published", 2, 0),
    ];
    assert_eq!(described(&machine.events), expected);
    assert!(machine.events.is_sorted_by_key(|event| event.time_ns));
    assert_eq!(machine.looks.get(), 60, "two looks at the clock for each task");

    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[CoreKind::AIC, CoreKind::AIV]);
    for time in 1..4 {
        mock.now_ns = 1000 * time;
        scheduler.step(&mut mock).unwrap();
        mock.finish_all();
    }
    mock.now_ns = 4000;
    assert_eq!(scheduler.step(&mut mock), Ok(Step::Worked));
    let [aic, aiv] = [0, 1].map(|core| worker_of(0, core));
    let expected = [
        ("dispatched", 0, aic),
        ("completed", 0, aic),
        ("ready", 1, 0),
        ("dispatched", 1, aiv),
        ("completed", 1, aiv),
        ("ready", 2, 0),
        ("dispatched", 2, aiv),
        ("completed", 2, aiv),
    ];
    assert_eq!(described(&mock.events), expected);
    let times: Vec<_> = mock.events.iter().map(|event| event.time_ns).collect();
    assert_eq!(times, [1000, 2000, 2000, 2000, 3000, 3000, 3000, 4000]);
}

fn an_edge_that_is_satisfied_is_traced_as_such<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut machine = ClockedMachine::default();
    let mut builder =
        Builder::<(Concurrent, F, FakeDevice, _)>::new(words.inputs(), FakeDevice, &mut machine);
    let spec = TaskSpec::new(FuncId(1), CoreKind::AIV, &[]);
    let first = builder.submit(spec, &[]).unwrap();
    let (mut scheduler, mut mock) = scheduler::<F>(&words, 0, &[CoreKind::AIV]);
    scheduler.step(&mut mock).unwrap();
    mock.finish_all();
    scheduler.step(&mut mock).unwrap();
    builder.submit(spec, &[first]).unwrap();
    let edges: Vec<_> = described(&machine.events)
        .into_iter()
        .filter(|event| event.0.starts_with("edge"))
        .collect();
    assert_eq!(edges, [(TraceKind::EDGE_SATISFIED.name(), 1, 0)]);
}

/// A part may be counted down by an agent that is interrupted between its look at the clock and that: the agent with the last
/// part looks again, so that no part ends after its task.
fn a_task_with_parts_is_complete_after_all_of_them<F: FanoutPolicy>() {
    let words = StateMemory::new(SIZE);
    let mut machine = ClockedMachine::default();
    let mut builder =
        Builder::<(Concurrent, F, FakeDevice, _)>::new(words.inputs(), FakeDevice, &mut machine);
    let slot = builder.add_task(TaskSpec::new(FuncId(5), CoreKind::AIV, &[])).unwrap().slot;
    let (board, lines) = (BlockBoard::default(), [(); 16].map(|()| BlockLine::default()));
    board.reset();
    let parts: Vec<AtomicU64> = (0..40 * BLOCK_WORDS).map(|_| AtomicU64::new(0)).collect();
    // SAFETY: there is nothing in it.
    let gm = unsafe { GmWindow::from_raw(core::ptr::null_mut(), 0, GmAddr(0)) };
    let shapes = BlockShapeMemory {
        board: &board,
        lines: &lines,
        parts: &parts,
        parts_address: GmAddr(0x8000),
        gm,
        room: [2; 8],
    };
    // A task of two blocks, which is published and ready.
    let (task, line) = (&words.tasks[slot as usize], &lines[slot as usize]);
    task.kind.store(CoreKind::AIV.get() | SHAPED, Relaxed);
    task.state.store(TaskState::PUBLISHED.get(), Relaxed);
    let aiv = Lanes::one(CoreKind::AIV);
    let list = List::spread(Priority::NORMAL, aiv);
    line.flags.store(aiv.0.into(), Relaxed);
    line.blocks.store(2, Relaxed);
    line.parts_left.store(2, Relaxed);
    line.list.store(list.0, Relaxed);
    shapes.post(list, slot, [0, 0]);

    let state = SharedState { shapes: Some(shapes), ..words.state() };
    let line = &words.instances[0];
    let mut scheduler =
        Scheduler::<Mock, F>::new(state, line, BuildMode::CONCURRENT, GENERATION, BUDGETS);
    let mut mock = Mock::new(2);
    mock.look_ns = 1;
    (0..2).for_each(|core| scheduler.add_core(worker_of(0, core), CoreKind::AIV).unwrap());
    scheduler.form_clusters(|_| None);
    scheduler.step(&mut mock).unwrap();
    assert!(mock.finish_all());
    mock.events.clear();
    scheduler.step(&mut mock).unwrap();
    // The busy cores are in the order in which they were given something, the last free one first.
    let [second, first] = [0, 1].map(|core| worker_of(0, core));
    let expected =
        [("collected", slot, first), ("collected", slot, second), ("completed", slot, second)];
    assert_eq!(described(&mock.events), expected);
    assert!(mock.events.is_sorted_by(|one, next| one.time_ns < next.time_ns), "{:?}", mock.events);
}

both_strategies! {
    parts_before_their_task => a_task_with_parts_is_complete_after_all_of_them;
    every_event_of_a_graph_in_order => events_of_a_graph;
    satisfied_edges => an_edge_that_is_satisfied_is_traced_as_such;
}

//! The proof that nothing can move never holds while something does: two looks of the builder at its tasks, while a scheduler
//! completes one and runs another, which waited for it although it was added first.

use pto_abi::kinds::TaskState;
use pto_abi::sync::{Concurrent, Ordering};
use pto_abi::task::Task;
use pto_abi::{BuildMode, CoreKind, FuncId};
use pto_aicpu_fw::stream::proof::{nothing_moves, rest};
use pto_aicpu_fw::{Budgets, Builder, LockFree, Scheduler};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::stub::{Script, Stub};
use crate::words::{FakeDevice, GENERATION, Size, StateMemory, quiet};
use crate::{explore, spawn};

/// Tasks that run.
const RUN: u64 = 2;

/// How the builder decides that nothing moves.
trait Proof: 'static {
    fn holds(tasks: &[Task]) -> bool;
}

/// As the streaming builder does.
struct AsItIs;

impl Proof for AsItIs {
    fn holds(tasks: &[Task]) -> bool {
        nothing_moves(tasks.iter())
    }
}

/// Wrong on purpose: what it has passed may move by what it finds complete.
struct OneLook;

impl Proof for OneLook {
    fn holds(tasks: &[Task]) -> bool {
        rest(tasks.iter()).is_some()
    }
}

/// Wrong on purpose: the second look need not see what the tasks have released that the first one has found complete.
struct Relaxed;

impl Proof for Relaxed {
    fn holds(tasks: &[Task]) -> bool {
        let look = || {
            let mut completed = 0;
            for task in tasks {
                match task.state.load(Ordering::Relaxed).try_into() {
                    Ok(TaskState::COMPLETED) => completed += 1,
                    Ok(TaskState::ADDED) => {}
                    Ok(TaskState::PUBLISHED) if task.fanin.load(Ordering::Relaxed) != 0 => {}
                    _ => return None,
                }
            }
            Some(completed)
        };
        let first: Option<u64> = look();
        first.is_some() && look() == first
    }
}

/// One core, which has finished when it is looked at.
struct Core;

impl Script for Core {}

/// Task 0 waits for task 1; task 2 is not published.
fn look_at_work<P: Proof>() {
    let size = Size { tasks: 3, arg_words: 0, edges: 1, instances: 2 };
    explore(
        4,
        move || StateMemory::new(size),
        |words| {
            let mut builder =
                Builder::<(Concurrent, LockFree, _, _)>::new(words.inputs(), FakeDevice, quiet());
            let spec = TaskSpec::new(FuncId(0), CoreKind::AIV, &[]);
            let [waits, first, _] = [0; 3].map(|_| builder.add_task(spec).unwrap());
            builder.add_edge(first, waits).unwrap();
            builder.publish(waits).unwrap();
            builder.publish(first).unwrap();
            let budgets = Budgets { task_ns: 1, stall_ns: 1, run_ns: 0, of_launches: false };
            let (line, mode) = (&words.instances[1], BuildMode::CONCURRENT);
            let mut core = Stub::<Concurrent, _>::new(1, Core);
            let mut scheduler =
                Scheduler::<_, LockFree>::new(words.state(), line, mode, GENERATION, budgets);
            scheduler.add_core(0, CoreKind::AIV).unwrap();
            let runs = spawn(move || {
                // One is dispatched; it finishes, and the other one is dispatched; that one finishes.
                for _ in 0..=RUN {
                    scheduler.step(&mut core).unwrap();
                }
            });
            if P::holds(&words.tasks) {
                assert_eq!(rest(words.tasks.iter()), Some(RUN), "something moved");
            }
            runs.join().unwrap();
            assert!(P::holds(&words.tasks), "nothing moves any more");
        },
    );
}

#[test]
fn it_never_holds_while_something_moves() {
    look_at_work::<AsItIs>();
}

#[test]
#[should_panic(expected = "something moved")]
fn wrong_with_one_look() {
    look_at_work::<OneLook>();
}

#[test]
#[should_panic(expected = "something moved")]
fn wrong_with_looks_that_acquire_nothing() {
    look_at_work::<Relaxed>();
}

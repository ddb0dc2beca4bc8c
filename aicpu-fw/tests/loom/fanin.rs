//! Two producers complete on two schedulers while the builder publishes their consumer: exactly one of the
//! three makes it ready, and the scheduler that dispatches it sees what both producers and the builder wrote.

use pto_abi::sync::{AtomicU32, Concurrent, Exclusive, Ordering, Sharing};
use pto_abi::{BuildMode, CoreKind, FuncId};
use pto_aicpu_fw::platform::Staged;
use pto_aicpu_fw::{Budgets, Builder, LockFree, Scheduler};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::stub::{Script, Stub};
use crate::words::{FakeDevice, GENERATION, PAYLOADS, Size, StateMemory, quiet};
use crate::{WEAK_TASKS, Weak, explore, spawn};

/// Slot of the consumer; 0 and 1 are its producers.
const CONSUMER: u32 = 2;
const ARGUMENT: u64 = 77;

struct FaninScenario {
    words: StateMemory,
    /// What the producers' kernels write.
    outputs: [AtomicU32; 2],
}

/// One core; what it has finishes when it is polled, from when the test says so.
pub(crate) struct OneCore {
    run: &'static FaninScenario,
    finishes: bool,
    consumer: u32,
}

impl Script for OneCore {
    fn finishes(&mut self, task: u32) -> bool {
        if self.finishes {
            self.run.outputs[task as usize].store(1, Ordering::Relaxed);
        }
        self.finishes
    }

    fn staged(&mut self, dispatch: Staged) {
        self.finishes = false;
        if dispatch.task == CONSUMER {
            self.consumer += 1;
            for output in &self.run.outputs {
                let seen = output.load(Ordering::Relaxed);
                assert_eq!(seen, 1, "what a producer wrote is not visible");
            }
            let first = usize::try_from((dispatch.args.0 - PAYLOADS.0) / 8).unwrap();
            let argument = self.run.words.state().payloads[first].load(Ordering::Relaxed);
            assert_eq!(argument, ARGUMENT, "what the builder wrote is not visible");
        }
    }
}

type Core<S> = Stub<S, OneCore>;
type OneScheduler<S> = (Scheduler<'static, Core<S>, LockFree>, Core<S>);

fn scheduler<S: Sharing>(run: &'static FaninScenario, instance: usize) -> OneScheduler<S> {
    let budgets = Budgets { task_ns: 1, stall_ns: 1, run_ns: 0, of_launches: false };
    let (line, mode) = (&run.words.instances[instance], BuildMode::CONCURRENT);
    let mut scheduler = Scheduler::new(run.words.state(), line, mode, GENERATION, budgets);
    scheduler.add_core(0, CoreKind::AIV).unwrap();
    (scheduler, Stub::new(1, OneCore { run, finishes: false, consumer: 0 }))
}

fn two_completions_and_a_publish<S: Sharing>() {
    let size = Size { tasks: 3, arg_words: 1, edges: 2, instances: 4 };
    let setup =
        move || FaninScenario { words: StateMemory::new(size), outputs: Default::default() };
    explore(4, setup, |run| {
        let mut builder =
            Builder::<(S, LockFree, _, _)>::new(run.words.inputs(), FakeDevice, quiet());
        let spec = TaskSpec::new(FuncId(0), CoreKind::AIV, &[]);
        let producers = [0; 2].map(|_| builder.submit(spec, &[]).unwrap());
        let completers = [1, 2].map(|instance| {
            let (mut scheduler, mut core) = scheduler::<S>(run, instance);
            scheduler.step(&mut core).unwrap();
            core.script.finishes = true;
            (scheduler, core)
        });
        let consumer = builder.add_task(TaskSpec { args: &[ARGUMENT], ..spec }).unwrap();
        for producer in producers {
            builder.add_edge(producer, consumer).unwrap();
        }
        let threads = completers.map(|(mut scheduler, mut core)| {
            spawn(move || {
                scheduler.step(&mut core).unwrap();
                core.script.consumer
            })
        });
        builder.publish(consumer).unwrap();
        let (mut third, mut core) = scheduler::<S>(run, 3);
        third.step(&mut core).unwrap();
        let by_completers: u32 = threads.map(|thread| thread.join().unwrap()).into_iter().sum();
        let queued = run.words.state().queue(CoreKind::AIV).len();
        let made_ready = u64::from(by_completers + core.script.consumer) + queued;
        assert_eq!(made_ready, 1, "made ready by exactly one");
    });
}

#[test]
fn exactly_one_makes_it_ready_and_sees_everything() {
    two_completions_and_a_publish::<Concurrent>();
}

#[test]
// What is not visible first is the state of the task.
#[should_panic(expected = "SCHEDULE_TASK_STATE")]
fn wrong_when_the_fanin_orders_nothing() {
    two_completions_and_a_publish::<Weak<WEAK_TASKS>>();
}

#[test]
#[should_panic(expected = "made ready by exactly one")]
fn wrong_when_the_fanin_is_not_one_operation() {
    two_completions_and_a_publish::<Exclusive>();
}

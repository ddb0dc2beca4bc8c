//! The end: no thread sees it before every task has been completed, and a thread that sees it sees what the tasks wrote.

use std::marker::PhantomData;

use loom::thread;
use pto_abi::sync::{AtomicU32, Concurrent, Ordering, Sharing};
use pto_abi::{BuildMode, CoreKind, FuncId};
use pto_aicpu_fw::{Budgets, Builder, FanoutPolicy, LockFree, Scheduler, Step};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::stub::{Script, Stub};
use crate::words::{FakeDevice, GENERATION, Size, StateMemory, quiet};
use crate::{WEAK_END, Weak, explore, spawn};

const TASKS: u32 = 2;

struct TerminationScenario {
    words: StateMemory,
    outputs: [AtomicU32; TASKS as usize],
}

/// Cores that finish what they have when they are polled; or no core.
struct Instant(&'static TerminationScenario);

impl Script for Instant {
    fn finishes(&mut self, task: u32) -> bool {
        self.0.outputs[task as usize].fetch_add(1, Ordering::Relaxed);
        true
    }
}

type StubCores<S> = Stub<S, Instant>;
type OneScheduler<S, F> = (Scheduler<'static, StubCores<S>, F>, StubCores<S>);

fn scheduler<S: Sharing, F: FanoutPolicy>(
    run: &'static TerminationScenario,
    instance: usize,
    cores: u32,
) -> OneScheduler<S, F> {
    let budgets = Budgets { task_ns: 1, stall_ns: 1, run_ns: 0, of_launches: false };
    let (line, mode) = (&run.words.instances[instance], BuildMode::CONCURRENT);
    let mut scheduler = Scheduler::new(run.words.state(), line, mode, GENERATION, budgets);
    (0..cores).for_each(|worker| scheduler.add_core(worker, CoreKind::AIV).unwrap());
    (scheduler, Stub::new(cores as usize, Instant(run)))
}

fn outputs(run: &TerminationScenario) -> Vec<u32> {
    run.outputs.iter().map(|output| output.load(Ordering::Relaxed)).collect()
}

/// How the builder's thread ends the build.
type Build<S> = fn(&'static TerminationScenario) -> PhantomData<S>;

fn build<S: Sharing>(run: &'static TerminationScenario) -> PhantomData<S> {
    let mut builder = Builder::<(S, LockFree, _, _)>::new(run.words.inputs(), FakeDevice, quiet());
    let spec = TaskSpec::new(FuncId(0), CoreKind::AIV, &[]);
    let first = builder.submit(spec, &[]).unwrap();
    builder.submit(spec, &[first]).unwrap();
    builder.finish().unwrap();
    PhantomData
}

/// One scheduler works, one only looks for the end, the builder builds a chain of two.
fn the_end<S: Sharing>(build: Build<S>) {
    let size = Size { tasks: TASKS, arg_words: 0, edges: 2, instances: 3 };
    let setup =
        move || TerminationScenario { words: StateMemory::new(size), outputs: Default::default() };
    explore(3, setup, move |run| {
        let looker = spawn(move || {
            let (mut scheduler, mut none) = scheduler::<S, LockFree>(run, 2, 0);
            for _ in 0..2 {
                if scheduler.step(&mut none).unwrap() == Step::Done {
                    assert_eq!(outputs(run), [1; TASKS as usize], "an end before the last task");
                    return;
                }
                thread::yield_now();
            }
        });
        let builder = spawn(move || {
            build(run);
        });
        let (mut scheduler, mut core) = scheduler::<S, LockFree>(run, 1, 1);
        while scheduler.step(&mut core).unwrap() != Step::Done {
            thread::yield_now();
        }
        assert_eq!(outputs(run), [1; TASKS as usize], "an end before the last task");
        builder.join().unwrap();
        looker.join().unwrap();
    });
}

#[test]
fn no_thread_sees_the_end_before_the_last_completion() {
    the_end::<Concurrent>(build);
}

#[test]
// The end is seen, and the pops before it are not.
#[should_panic(expected = "SCHEDULE_LEFT_WORK")]
fn wrong_when_completions_are_not_released() {
    the_end::<Weak<WEAK_END>>(build);
}

/// Says that the build is done, and publishes the last task after that.
#[test]
#[should_panic]
fn wrong_when_build_done_is_set_before_the_last_publish() {
    the_end::<Concurrent>(|run| {
        let mut builder =
            Builder::<(Concurrent, LockFree, _, _)>::new(run.words.inputs(), FakeDevice, quiet());
        let spec = TaskSpec::new(FuncId(0), CoreKind::AIV, &[]);
        let first = builder.add_task(spec).unwrap();
        builder.submit(spec, &[]).unwrap();
        run.words.progress.outstanding.fetch_sub(63, Ordering::Relaxed);
        run.words.progress.build_done.store(1, Ordering::Release);
        builder.publish(first).unwrap();
        PhantomData
    });
}

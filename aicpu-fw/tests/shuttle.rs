//! Whole runs under shuttle: the builder, schedulers and cores on threads, random graphs, thousands of
//! schedules. `RUSTFLAGS="--cfg shuttle" cargo test -p pto-aicpu-fw --test shuttle --release`.
//!
//! A failure prints the schedule; `shuttle::replay` runs it again.
#![cfg(shuttle)]

#[path = "common/words.rs"]
mod words;

use std::marker::PhantomData;

use pto_abi::handshake::{Command, Handshake};
use pto_abi::kinds::TaskState;
use pto_abi::sync::{AtomicU32, Concurrent, Exclusive, Ordering, Sharing};
use pto_abi::{BuildMode, CoreKind, FuncId, TaskId};
use pto_aicpu_fw::builder::Builder;
use pto_aicpu_fw::platform::Platform;
use pto_aicpu_fw::{
    Budgets, FanoutPolicy, LinesPlatform, LockFree, Locked, Machine, Scheduler, Step,
};
use pto_graph::{EdgeOutcome, GraphBuilder, TaskSpec};
use shuttle::rand::RngCore;
use shuttle::thread;

use words::{FakeDevice, GENERATION, Size, StateMemory, quiet};

/// Idle steps after which a run counts as hung. A schedule may starve a thread for long, not for ever.
const IDLE_STEPS: u32 = 20_000;

fn below(bound: u32) -> u32 {
    u32::try_from(shuttle::rand::thread_rng().next_u64() % u64::from(bound.max(1))).unwrap()
}

/// A graph: for each task its kind and its producers.
struct Plan {
    kinds: Vec<CoreKind>,
    producers: Vec<Vec<u32>>,
    /// So many tasks are added before the first one is published.
    lag: usize,
}

impl Plan {
    fn random() -> Self {
        let tasks = 2 + below(9);
        let kinds = (0..tasks).map(|_| CoreKind::ALL[below(2) as usize]).collect();
        let producers = (0..tasks).map(|task| {
            let mut chosen: Vec<u32> = (0..below(4).min(task)).map(|_| below(task)).collect();
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        });
        Self { kinds, producers: producers.collect(), lag: below(3) as usize }
    }

    fn tasks(&self) -> u32 {
        u32::try_from(self.kinds.len()).unwrap()
    }
}

/// Everything that the threads share.
struct SharedLines {
    words: StateMemory,
    lines: Vec<Handshake>,
    plan: Plan,
    /// How often each task has run, and whether it has finished.
    runs: Vec<AtomicU32>,
    finished: Vec<AtomicU32>,
    /// Whether a core is inside a kernel.
    inside: Vec<AtomicU32>,
}

impl SharedLines {
    fn new(schedulers: usize) -> Self {
        let plan = Plan::random();
        let (tasks, edges) = (plan.tasks(), plan.producers.iter().map(Vec::len).sum::<usize>());
        let size = Size { tasks, arg_words: 0, edges: edges as u64, instances: schedulers + 1 };
        let words = |count: usize| (0..count).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
        let lines: Vec<Handshake> = (0..2 * schedulers).map(|_| Handshake::default()).collect();
        lines.iter().for_each(Handshake::reset);
        let (runs, finished) = (words(plan.kinds.len()), words(plan.kinds.len()));
        Self {
            words: StateMemory::new(size),
            inside: words(lines.len()),
            lines,
            plan,
            runs,
            finished,
        }
    }

    /// The kernel of `task`, with the checks that every task makes.
    fn kernel(&self, worker: usize, task: u32) {
        let inside = self.inside[worker].swap(1, Ordering::Relaxed);
        assert_eq!(inside, 0, "a dispatch to a busy core");
        let kind = CoreKind::ALL[worker % 2];
        assert_eq!(self.plan.kinds[task as usize], kind, "a task on a core of the other kind");
        for producer in &self.plan.producers[task as usize] {
            let finished = self.finished[*producer as usize].load(Ordering::Relaxed);
            assert_eq!(finished, 1, "task {task} runs before its producer {producer}");
        }
        let before = self.runs[task as usize].fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "task {task} runs twice");
        self.finished[task as usize].store(1, Ordering::Relaxed);
        self.inside[worker].store(0, Ordering::Relaxed);
    }

    /// One core: even ones are AIC, odd ones AIV.
    fn core(&self, worker: usize) {
        let lines = &self.lines[worker];
        loop {
            match lines.command() {
                Command::Run(dispatch) => {
                    self.kernel(worker, dispatch.task);
                    lines.finish(dispatch.id);
                }
                Command::Greet(epoch) => {
                    lines.introduce(
                        epoch,
                        u32::try_from(worker).unwrap(),
                        CoreKind::ALL[worker % 2],
                    );
                }
                Command::Wait => thread::yield_now(),
                Command::Quit => return lines.leave(),
            }
        }
    }

    fn build<S: Sharing, F: FanoutPolicy>(&self) {
        let mut builder = Builder::<(S, F, _, _)>::new(self.words.inputs(), FakeDevice, quiet());
        let mut ids: Vec<TaskId> = Vec::new();
        let mut satisfied = 0;
        for (kind, producers) in self.plan.kinds.iter().zip(&self.plan.producers) {
            let id = builder.add_task(TaskSpec::new(FuncId(0), *kind, &[])).unwrap();
            for producer in producers {
                let outcome = builder.add_edge(ids[*producer as usize], id).unwrap();
                if outcome == EdgeOutcome::AlreadySatisfied {
                    satisfied += 1;
                    let finished = self.finished[*producer as usize].load(Ordering::Relaxed);
                    assert_eq!(finished, 1, "satisfied by a producer that has not finished");
                }
            }
            ids.push(id);
            if let Some(late) = ids.len().checked_sub(1 + self.plan.lag) {
                builder.publish(ids[late]).unwrap();
            }
        }
        for late in &ids[ids.len().saturating_sub(self.plan.lag)..] {
            builder.publish(*late).unwrap();
        }
        let counted = self.words.instances[0].edges_satisfied.load(Ordering::Relaxed);
        assert_eq!(counted, satisfied);
        builder.finish().unwrap();
    }

    /// The scheduler of cores `2 * number` and `2 * number + 1`, from bring-up to the last exit.
    fn schedule<S: Sharing, F: FanoutPolicy>(&self, number: usize, mode: BuildMode) {
        let budgets =
            Budgets { task_ns: u64::MAX, stall_ns: u64::MAX, run_ns: 0, of_launches: false };
        let line = &self.words.instances[number + 1];
        let mut scheduler: Scheduler<'_, LinesPlatform<'_, S, QuietMachine>, F> =
            Scheduler::new(self.words.state(), line, mode, GENERATION, budgets);
        let mut platform = LinesPlatform::new(&self.lines, QuietMachine(PhantomData));
        for (core, worker) in [2 * number, 2 * number + 1].into_iter().enumerate() {
            let worker = u32::try_from(worker).unwrap();
            scheduler.add_core(worker, CoreKind::ALL[core]).unwrap();
            platform.attach(worker);
            platform.greet(core, 1);
            while platform.answer(core, 1).is_none() {
                thread::yield_now();
            }
        }
        let mut idle_steps = 0;
        loop {
            match scheduler.step(&mut platform).unwrap_or_else(|fault| panic!("{fault}")) {
                Step::Worked => idle_steps = 0,
                Step::Idle => {
                    idle_steps += 1;
                    assert!(idle_steps < IDLE_STEPS, "a task was lost: the run does not end");
                    thread::yield_now();
                }
                Step::Done => break,
            }
        }
        let runs: Vec<u32> = self.runs.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        assert!(runs.iter().all(|runs| *runs == 1), "an end before the last task: {runs:?}");
        for core in 0..2 {
            platform.stop(core);
            while !platform.stopped(core) {
                thread::yield_now();
            }
        }
    }

    fn check(&self) {
        let state = self.words.state();
        assert_eq!(state.outstanding(), 0);
        for (slot, task) in self.words.tasks.iter().enumerate() {
            let state = task.state.load(Ordering::Relaxed);
            assert_eq!(state, TaskState::COMPLETED.get(), "task {slot}");
        }
        let counts = state.sum(|line| {
            line.edges.load(Ordering::Relaxed) + line.edges_satisfied.load(Ordering::Relaxed)
        });
        assert_eq!(counts, self.plan.producers.iter().map(Vec::len).sum::<usize>() as u64);
        assert_eq!(
            state.sum(|line| line.completed.load(Ordering::Relaxed)),
            state.tasks.len() as u64
        );
    }
}

struct QuietMachine(PhantomData<()>);

impl Machine for QuietMachine {
    fn now_ns(&self) -> u64 {
        0
    }
}

fn one_run<S: Sharing, F: FanoutPolicy>(mode: BuildMode) {
    let schedulers = 1 + below(3) as usize;
    let machine = SharedLines::new(schedulers);
    thread::scope(|scope| {
        for worker in 0..machine.lines.len() {
            scope.spawn({
                let machine = &machine;
                move || machine.core(worker)
            });
        }
        for number in 0..schedulers {
            scope.spawn({
                let machine = &machine;
                move || machine.schedule::<S, F>(number, mode)
            });
        }
        machine.build::<S, F>();
    });
    machine.check();
}

const SCHEDULES: usize = 1_500;

fn config() -> shuttle::Config {
    let mut config = shuttle::Config::new();
    config.max_steps = shuttle::MaxSteps::FailAfter(2_000_000);
    config
}

fn random<F: FanoutPolicy>(mode: BuildMode) {
    let scheduler = shuttle::scheduler::RandomScheduler::new(SCHEDULES);
    shuttle::Runner::new(scheduler, config()).run(move || one_run::<Concurrent, F>(mode));
}

#[test]
fn lock_free_concurrent() {
    random::<LockFree>(BuildMode::CONCURRENT);
}

#[test]
fn lock_free_sequential() {
    random::<LockFree>(BuildMode::SEQUENTIAL);
}

#[test]
fn locked_concurrent() {
    random::<Locked>(BuildMode::CONCURRENT);
}

#[test]
fn locked_sequential() {
    random::<Locked>(BuildMode::SEQUENTIAL);
}

/// Few switches at unlikely steps find what uniform choices miss.
fn priorities<F: FanoutPolicy>() {
    let scheduler = shuttle::scheduler::PctScheduler::new(3, SCHEDULES / 3);
    shuttle::Runner::new(scheduler, config())
        .run(|| one_run::<Concurrent, F>(BuildMode::CONCURRENT));
}

#[test]
fn lock_free_by_priorities() {
    priorities::<LockFree>();
}

#[test]
fn locked_by_priorities() {
    priorities::<Locked>();
}

/// Wrong on purpose: reads and writes instead of atomic operations.
#[test]
#[should_panic]
fn wrong_when_operations_are_not_atomic() {
    let scheduler = shuttle::scheduler::RandomScheduler::new(SCHEDULES);
    let config = || {
        let mut config = config();
        config.failure_persistence = shuttle::FailurePersistence::None;
        config
    };
    shuttle::Runner::new(scheduler, config())
        .run(|| one_run::<Exclusive, LockFree>(BuildMode::CONCURRENT));
}

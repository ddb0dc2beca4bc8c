//! Random graphs, random interleavings of whole steps: after every step of every scheduler the invariants
//! are checked from outside. With one dispatch a core, and with two.

use std::collections::HashSet;

use pto_abi::kinds::TaskState;
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, CoreKind, FuncId, TaskId};
use pto_aicpu_fw::{FanoutPolicy, Scheduler, Step};
use pto_graph::{GraphBuilder, TaskSpec};

use crate::mock::{BUDGETS, Core, Mock, with_options};
use crate::split_mix::SplitMix64;
use crate::words::{Size, StateMemory};
use crate::{TestBuilder, both_strategies, builder};

const SEEDS: u64 = 150;

/// A random number below `bound`; 0 if that is 0.
fn below(random: &mut SplitMix64, bound: usize) -> usize {
    random.below(u32::try_from(bound).unwrap()) as usize
}

/// A builder that is a step at a time, and the edges that it added.
struct RandomGraph<'a, F: FanoutPolicy> {
    builder: TestBuilder<'a, F>,
    tasks: usize,
    ids: Vec<TaskId>,
    unpublished: Vec<TaskId>,
    producers: Vec<Vec<u32>>,
    done: bool,
}

impl<F: FanoutPolicy> RandomGraph<'_, F> {
    /// Adds a task with its edges, or publishes one of those that are not published, or finishes.
    fn step(&mut self, random: &mut SplitMix64) {
        let open = !self.unpublished.is_empty();
        if self.ids.len() < self.tasks && (!open || below(random, 2) == 0) {
            let kind = CoreKind::ALL[below(random, 2)];
            let id = self.builder.add_task(TaskSpec::new(FuncId(1), kind, &[])).unwrap();
            let mut producers = HashSet::new();
            for _ in 0..below(random, 4).min(self.ids.len()) {
                // Mostly recent ones, so that some complete at this very moment.
                let back = if below(random, 4) == 0 { self.ids.len() } else { 6 };
                let producer =
                    self.ids[self.ids.len() - 1 - below(random, back.min(self.ids.len()))];
                if producers.insert(producer.slot) {
                    self.builder.add_edge(producer, id).unwrap();
                }
            }
            self.producers.push(producers.into_iter().collect());
            self.ids.push(id);
            self.unpublished.push(id);
        } else if open {
            let at = below(random, self.unpublished.len());
            self.builder.publish(self.unpublished.swap_remove(at)).unwrap();
        } else if !self.done {
            self.builder.finish().unwrap();
            self.done = true;
        }
    }
}

/// What must hold after every step.
struct Checker<'a> {
    words: &'a StateMemory,
    dispatched: HashSet<u32>,
}

impl Checker<'_> {
    fn tasks_in(&self, wanted: impl Fn(&pto_abi::task::Task) -> bool) -> Vec<u32> {
        let tasks = (0_u32..).zip(&self.words.tasks);
        tasks.filter(|(_, task)| wanted(task)).map(|(slot, _)| slot).collect()
    }

    /// No ready task is held privately; with cores of the stepped scheduler free, no more wait than its siblings have free cores
    /// for, by what they said last.
    fn no_hoarding<const SLOTS: usize>(
        &self,
        (instance, kinds): (usize, &[CoreKind]),
        stepped: Option<&Mock<SLOTS>>,
    ) {
        for &kind in CoreKind::ALL {
            let ready = self.tasks_in(|task| {
                task.state.load(Ordering::Relaxed) == TaskState::PUBLISHED.get()
                    && task.fanin.load(Ordering::Relaxed) == 0
                    && task.kind.load(Ordering::Relaxed) == kind.get()
            });
            let queued = self.words.state().queue(kind).len();
            assert_eq!(
                queued,
                ready.len() as u64,
                "ready {kind} tasks that only one instance sees"
            );
            let Some(mock) = stepped else { continue };
            let free = |(core, own): (&Core, &CoreKind)| *own == kind && *core == Core::Free;
            if mock.cores.iter().zip(kinds).any(free) {
                let lines =
                    (0..).zip(&self.words.instances).filter(|(other, _)| *other != instance);
                let free =
                    lines.map(|(_, line)| line.free_cores[kind.index()].load(Ordering::Relaxed));
                let elsewhere = u64::from(free.sum::<u32>());
                assert!(
                    queued <= elsewhere,
                    "an {kind} core is free and {queued} tasks wait for {elsewhere} cores of siblings"
                );
            }
        }
    }

    /// Exactly once, after all producers, and counted as outstanding until completed.
    fn order<const SLOTS: usize>(&mut self, mock: &mut Mock<SLOTS>, producers: &[Vec<u32>]) {
        for (_, staged) in mock.dispatches.drain(..) {
            assert!(self.dispatched.insert(staged.task), "task {} ran twice", staged.task);
            for &producer in &producers[staged.task as usize] {
                let state = self.words.tasks[producer as usize].state.load(Ordering::Relaxed);
                // A large fanout may be released in several steps; these are small ones.
                assert_eq!(state, TaskState::COMPLETED.get(), "{producer} -> {}", staged.task);
            }
        }
        for core in &mock.cores {
            // A free core is not in trouble, whatever its last task was.
            let (Core::Running(task) | Core::Finished(task)) = *core else { continue };
            let state = self.words.tasks[task as usize].state.load(Ordering::Relaxed);
            assert_eq!(
                state,
                TaskState::DISPATCHED.get(),
                "task {task} counts as completed, and runs"
            );
        }
        let open = self.tasks_in(|task| {
            let state = task.state.load(Ordering::Relaxed);
            [TaskState::PUBLISHED.get(), TaskState::DISPATCHED.get()].contains(&state)
        });
        assert!(self.words.state().outstanding() >= open.len() as u64);
    }
}

/// A core may have a second dispatch only while no core of its kind is free, of whichever scheduler. `before`:
/// the second dispatches of the stepped scheduler's cores before its step; returns how many it has given.
fn no_pending_while_a_core_is_free<F, const SLOTS: usize>(
    schedulers: &[SchedulerUnderTest<'_, F, SLOTS>],
    kinds: &[Vec<CoreKind>],
    at: usize,
    before: &[Option<u32>],
) -> usize {
    let mut given = 0;
    for (core, kind) in kinds[at].iter().enumerate() {
        let pending = schedulers[at].mock.pending(core);
        if pending.is_none() || before.contains(&pending) {
            continue;
        }
        given += 1;
        for (scheduler, kinds) in schedulers.iter().zip(kinds) {
            let mut cores = scheduler.mock.cores.iter().zip(kinds);
            let is_free = cores.any(|(core, other)| other == kind && *core == Core::Free);
            assert!(!is_free, "an {kind} task waits for a busy core while another core is free");
        }
    }
    given
}

/// A scheduler, its cores, and whether it has come to its end.
struct SchedulerUnderTest<'a, F, const SLOTS: usize> {
    scheduler: Scheduler<'a, Mock<SLOTS>, F>,
    mock: Mock<SLOTS>,
    is_done: bool,
}

/// Returns how many second dispatches there were, and how many that were staged ahead of their tasks.
fn one_run<F: FanoutPolicy, const SLOTS: usize>(seed: u64) -> [usize; 2] {
    let random = &mut SplitMix64(seed);
    let tasks = 1 + below(random, 60);
    let size = Size { tasks: 64, arg_words: 0, edges: 256, instances: 4 };
    let words = StateMemory::new(size);
    let mode = BuildMode::ALL[below(random, 2)];
    let instances = 1 + below(random, 3);
    let kinds: Vec<Vec<CoreKind>> = (0..instances)
        .map(|_| {
            let mut kinds: Vec<_> =
                (0..below(random, 5)).map(|_| CoreKind::ALL[below(random, 2)]).collect();
            // Every kind is somewhere.
            kinds.extend(CoreKind::ALL);
            kinds
        })
        .collect();
    let mut schedulers: Vec<SchedulerUnderTest<'_, F, SLOTS>> = (0..instances)
        .map(|i| with_options::<F, SLOTS>(&words, i + 1, &kinds[i], mode, BUDGETS))
        .map(|(scheduler, mock)| SchedulerUnderTest { scheduler, mock, is_done: false })
        .collect();
    let mut given = 0;
    let (ids, unpublished, producers) = (Vec::new(), Vec::new(), Vec::new());
    let builder = builder::<F>(&words);
    let mut graph = RandomGraph { builder, tasks, ids, unpublished, producers, done: false };
    let mut checker = Checker { words: &words, dispatched: HashSet::new() };
    let mut steps = 0;
    while schedulers.iter().any(|scheduler| !scheduler.is_done) {
        steps += 1;
        assert!(steps < 20_000, "the run does not end");
        if below(random, 3) == 0 {
            graph.step(random);
            checker.no_hoarding::<SLOTS>((0, &[]), None);
            continue;
        }
        let at = below(random, instances);
        let SchedulerUnderTest { scheduler, mock, is_done } = &mut schedulers[at];
        let before: Vec<_> = (0..mock.cores.len()).map(|core| mock.pending(core)).collect();
        mock.now_ns += 10;
        for core in 0..mock.cores.len() {
            if mock.running(core).is_some() && below(random, 3) == 0 {
                mock.finish(core);
            }
        }
        if *is_done {
            continue;
        }
        *is_done = scheduler.step(mock).unwrap() == Step::Done;
        let waits = mode == BuildMode::SEQUENTIAL && !graph.done;
        assert!(!waits || mock.dispatches.is_empty());
        checker.no_hoarding((at + 1, &kinds[at]), (!waits).then_some(&*mock));
        checker.order(mock, &graph.producers);
        assert!(!*is_done || checker.dispatched.len() == tasks, "an end before the last task");
        given += no_pending_while_a_core_is_free(&schedulers, &kinds, at, &before);
    }
    assert_eq!(checker.dispatched.len(), tasks);
    let line = &words.instances[0];
    let edges = line.edges.load(Ordering::Relaxed) + line.edges_satisfied.load(Ordering::Relaxed);
    assert_eq!(edges, graph.producers.iter().map(Vec::len).sum::<usize>() as u64);
    [given, schedulers.iter().map(|scheduler| scheduler.mock.started_ahead).sum()]
}

/// Returns how many second dispatches there were, and how many that were staged ahead of their tasks.
fn random_runs<F: FanoutPolicy, const SLOTS: usize>() -> [usize; 2] {
    let one = |seed| {
        let run = std::panic::AssertUnwindSafe(|| one_run::<F, SLOTS>(seed));
        std::panic::catch_unwind(run).unwrap_or_else(|panic| {
            eprintln!("{} fanout, {SLOTS} dispatches a core, seed {seed}", F::NAME);
            std::panic::resume_unwind(panic);
        })
    };
    (0..SEEDS).map(one).fold([0; 2], |sum, run| [sum[0] + run[0], sum[1] + run[1]])
}

pub(crate) fn with_one_dispatch<F: FanoutPolicy>() {
    assert_eq!(random_runs::<F, 1>(), [0, 0]);
}

pub(crate) fn with_two_dispatches<F: FanoutPolicy>() {
    let [given, ahead] = random_runs::<F, 2>();
    assert!(given > 500 && ahead > 100, "{given}, {ahead}: the test would not see much");
}

both_strategies! {
    random_runs_keep_the_invariants => with_one_dispatch;
    random_runs_with_two_slots_keep_the_invariants => with_two_dispatches;
}

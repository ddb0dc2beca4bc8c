//! The graph program of the benchmark: builds the graph that it was given, task by task, from the
//! lists of producers. The same code builds on the host and on the AICPU.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pto_abi::{CoreKind, FuncId, GmAddr, TaskId};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, BuilderSet, GraphBuilder, HostedBuilder, TaskRange, TaskSpec, Wait};

use crate::csr::Csr;

/// The program's name.
pub const NAME: &str = "bench";
/// The program's own error: it was given no graph.
pub const NO_GRAPH: i32 = 1;
/// The program's own error: the ids of tasks do not count up, so that the program cannot name producers.
pub const IDS_WITH_GAPS: i32 = 2;

/// What each task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Nothing, and takes no arguments.
    Empty,
    /// Nothing; every other task runs on a cube core.
    Halves,
    /// Keeps a core busy.
    Spin {
        /// Iterations of [`spin`](pto_aicore_kernels::spin).
        iterations: u64,
    },
    /// Counts its execution, and mixes its value from its producers' values.
    Check {
        /// `u64` a task.
        values: GmAddr,
        /// `u32` a task.
        counters: GmAddr,
        /// The producers of all tasks, `u32` each.
        producers: GmAddr,
    },
}

impl Kernel {
    /// Argument words of each task.
    #[must_use]
    pub const fn words(self) -> u64 {
        match self {
            Self::Empty | Self::Halves => 0,
            Self::Spin { .. } => 1,
            Self::Check { .. } => 6,
        }
    }
}

/// A graph, and what its tasks do.
#[derive(Clone, Debug)]
pub struct GraphJob {
    /// The graph.
    pub graph: Arc<Csr>,
    /// What each task does.
    pub kernel: Kernel,
}

impl GraphJob {
    /// Builds the graph.
    ///
    /// # Errors
    /// Those of [`GraphBuilder`], and [`IDS_WITH_GAPS`].
    pub fn build<G: HostedBuilder>(&self, graph: &mut G) -> Result<(), BuildError> {
        match self.kernel {
            Kernel::Empty => emit(&self.graph, vector(func::EMPTY_AIV), |_, _| [], graph),
            Kernel::Halves => emit_halves(&self.graph, graph),
            Kernel::Spin { iterations } => {
                emit(&self.graph, vector(func::SPIN_AIV), |_, _| [iterations], graph)
            }
            Kernel::Check { values, counters, producers } => {
                let mut first = 0;
                let words = |task: u32, count: usize| {
                    let (at, count) = (producers.offset(4 * first), count as u64);
                    first += count;
                    [task.into(), 0, values.0, counters.0, at.0, count]
                };
                emit(&self.graph, vector(func::DAG_NODE_AIV), words, graph)
            }
        }
    }
}

/// What a task calls, and the kind of core that it runs on.
type Call = (FuncId, CoreKind);

/// All tasks call one kernel on vector cores.
fn vector(func_id: FuncId) -> impl Fn(u32) -> Call {
    move |_| (func_id, CoreKind::AIV)
}

/// Every other task runs on a cube core.
fn half(index: u32) -> Call {
    match index % 2 {
        0 => (func::EMPTY_AIC, CoreKind::AIC),
        _ => (func::EMPTY_AIV, CoreKind::AIV),
    }
}

/// Most tasks of a range of [`emit_halves`].
const MOST_OF_A_ROW: usize = 4096;

/// Submits a graph whose tasks of even numbers run on cube cores, and the others on vector cores, row by row: tasks that follow each other and of which
/// none waits for another one. Each half of a row is a range.
fn emit_halves<G: GraphBuilder>(csr: &Csr, graph: &mut G) -> Result<(), BuildError> {
    let mut ids = vec![TaskId { slot: 0, generation: 0 }; csr.tasks() as usize];
    let mut first = 0;
    while first < csr.tasks() {
        let is_of_row = |task: &u32| csr.producers_of(*task).iter().all(|at| *at < first);
        let row: Vec<u32> =
            (first..csr.tasks()).take_while(is_of_row).take(MOST_OF_A_ROW).collect();
        for parity in 0..2 {
            let half_of_row = row.iter().copied().filter(|task| task % 2 == parity);
            let half_of_row: Vec<u32> = half_of_row.collect();
            submit_half(csr, &half_of_row, &mut ids, graph)?;
        }
        first += u32::try_from(row.len()).unwrap_or(u32::MAX);
    }
    Ok(())
}

/// Submits tasks that call one kernel as a range.
fn submit_half<G: GraphBuilder>(
    csr: &Csr,
    tasks: &[u32],
    ids: &mut [TaskId],
    graph: &mut G,
) -> Result<(), BuildError> {
    let Some(one) = tasks.first() else { return Ok(()) };
    let (mut producers, mut ends) = (Vec::new(), Vec::with_capacity(tasks.len()));
    for task in tasks {
        producers.extend(csr.producers_of(*task).iter().map(|at| ids[*at as usize]));
        ends.push(u32::try_from(producers.len()).unwrap_or(u32::MAX));
    }
    let (func_id, kind) = half(*one);
    let waits = [Wait::listed(&producers, &ends)];
    let range = TaskRange::new(TaskSpec::new(func_id, kind, &[]));
    let range = range.times(u32::try_from(tasks.len()).unwrap_or(u32::MAX)).after(&waits);
    let mut given = vec![TaskId { slot: 0, generation: 0 }; tasks.len()];
    graph.submit_range(&range, &mut given)?;
    tasks.iter().zip(given).for_each(|(task, id)| ids[*task as usize] = id);
    Ok(())
}

/// Tasks whose producers [`emit`] names at once: few enough that the names are in the first-level cache when they are wanted.
const TASKS_NAMED_AT_ONCE: u32 = 256;

/// Submits every task with its edges. The ids of one run count up from the first, which is all
/// that the program needs to know to name a producer.
fn emit<G: GraphBuilder, const WORDS: usize>(
    csr: &Csr,
    call: impl Fn(u32) -> Call,
    mut words: impl FnMut(u32, usize) -> [u64; WORDS],
    graph: &mut G,
) -> Result<(), BuildError> {
    if csr.tasks() == 0 {
        return Ok(());
    }
    let words_of_first = words(0, 0);
    let (func_id, kind) = call(0);
    let first = graph.submit(TaskSpec::new(func_id, kind, &words_of_first), &[])?;
    let id = move |index| TaskId { slot: first.slot.wrapping_add(index), ..first };
    let mut ids = Vec::new();
    for start in (1..csr.tasks()).step_by(TASKS_NAMED_AT_ONCE as usize) {
        let some = start..csr.tasks().min(start + TASKS_NAMED_AT_ONCE);
        ids.clear();
        ids.extend(csr.producers_between(some.clone()).iter().map(|producer| id(*producer)));
        let mut rest = &*ids;
        for (index, producers) in csr.iter_between(some) {
            let words = words(index, producers.len());
            let Some((producers, others)) = rest.split_at_checked(producers.len()) else { break };
            rest = others;
            let (func_id, kind) = call(index);
            let task = graph.submit(TaskSpec::new(func_id, kind, &words), producers)?;
            if task != id(index) {
                return Err(BuildError::Failed(IDS_WITH_GAPS));
            }
        }
    }
    Ok(())
}

/// The one builder program of the benchmark's firmware, and what it is to build next.
#[derive(Clone, Debug, Default)]
pub struct Program {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    job: Option<GraphJob>,
    took: Duration,
}

impl Program {
    /// Gives it a job.
    pub fn assign(&self, job: GraphJob) {
        self.state().job = Some(job);
    }

    /// How long it built the last time. In a concurrent build on one OS thread that includes the tasks that ran
    /// meanwhile.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.state().took
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A thread that panicked while it held the state has not left it half written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds the job that it has.
    ///
    /// # Errors
    /// [`NO_GRAPH`], and those of [`GraphJob::build`].
    pub fn run<G: HostedBuilder>(&self, graph: &mut G) -> Result<(), BuildError> {
        let job = self.state().job.clone().ok_or(BuildError::Failed(NO_GRAPH))?;
        let start = Instant::now();
        job.build(graph)?;
        self.state().took = start.elapsed();
        Ok(())
    }
}

impl BuilderSet for Program {
    fn names(&self) -> &[&str] {
        &[NAME]
    }

    fn build<G: HostedBuilder>(
        &self,
        symbol: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        (symbol == pto_abi::symbol::symbol(NAME)).then(|| self.run(graph))
    }
}

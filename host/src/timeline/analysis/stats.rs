//! Per-kernel statistics, and the worst waits.

use std::collections::BTreeMap;

use pto_abi::CoreKind;
use serde::Serialize;

use super::kind::kind_name;
use super::time::Times;
use crate::timeline::model::{Task, Trace};

/// How many waits are reported.
pub(crate) const WORST: usize = 10;

/// The runs of one kernel. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelStats {
    /// The kernel's name.
    pub kernel: String,
    /// Which cores it runs on.
    #[serde(serialize_with = "kind_name")]
    pub kind: CoreKind,
    /// How often it ran.
    pub count: usize,
    /// Time in it, summed.
    pub total_ns: u64,
    /// The shortest run.
    pub min_ns: u64,
    /// Half the runs are not longer.
    pub median_ns: u64,
    /// 95 of 100 runs are not longer.
    pub p95_ns: u64,
    /// The longest run.
    pub max_ns: u64,
    /// From ready to started, on average.
    pub mean_wait_ns: u64,
}

/// A task that waited from ready to started.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// The task.
    pub task: u32,
    /// Its kernel.
    pub kernel: String,
    /// The core that ran it.
    pub core: String,
    /// When it was ready.
    pub ready_ns: u64,
    /// From ready to started.
    pub wait_ns: u64,
    /// The part of the wait in which the task was ready and not dispatched.
    pub dispatching_ns: u64,
    /// The part of the wait in which a core of its kind was idle.
    pub idle_core_ns: u64,
    /// Dispatched and not started.
    pub starting_ns: u64,
}

/// Statistics by kernel, the one with the most time first.
pub(crate) fn kernels(trace: &Trace) -> Vec<KernelStats> {
    let mut runs: BTreeMap<(u16, CoreKind), Vec<&Task>> = BTreeMap::new();
    for task in trace.runs().map(|run| run.run).filter(|task| task.span().is_some()) {
        runs.entry((task.func_id, task.kind)).or_default().push(task);
    }
    let mut stats: Vec<_> = runs
        .into_iter()
        .map(|((func, kind), tasks)| stats(trace.kernel(func), kind, &tasks))
        .collect();
    stats.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.kernel.cmp(&b.kernel)));
    stats
}

fn stats(kernel: String, kind: CoreKind, tasks: &[&Task]) -> KernelStats {
    let mut times: Vec<_> = tasks.iter().map(|task| task.duration_ns()).collect();
    times.sort_unstable();
    // The smallest time that so many of a hundred runs do not exceed.
    let percentile = |of_hundred: usize| times[(times.len() * of_hundred).div_ceil(100).max(1) - 1];
    let waits: u64 = tasks.iter().filter_map(|task| wait_ns(task)).sum();
    KernelStats {
        kernel,
        kind,
        count: times.len(),
        total_ns: times.iter().sum(),
        min_ns: percentile(0),
        median_ns: percentile(50),
        p95_ns: percentile(95),
        max_ns: percentile(100),
        mean_wait_ns: waits / times.len() as u64,
    }
}

fn wait_ns(task: &Task) -> Option<u64> {
    Some(task.at.started?.saturating_sub(task.at.ready?))
}

/// The tasks that waited longest; of equals, the one with the lower slot.
pub(crate) fn worst_waits(trace: &Trace, times: &Times) -> Vec<Wait> {
    let waits = (0_u32..).zip(&trace.tasks).filter_map(|(slot, task)| Some((wait_ns(task)?, slot)));
    let mut waits: Vec<_> = waits.filter(|(wait, _)| *wait > 0).collect();
    waits.sort_unstable_by_key(|(wait, slot)| (std::cmp::Reverse(*wait), *slot));
    waits.truncate(WORST);
    waits.into_iter().filter_map(|(wait, slot)| wait_of(trace, times, wait, slot)).collect()
}

fn wait_of(trace: &Trace, times: &Times, wait_ns: u64, slot: u32) -> Option<Wait> {
    let task = trace.task(slot)?;
    let (ready, started) = (task.at.ready?, task.at.started?);
    let dispatched = task.at.dispatched.unwrap_or(started).clamp(ready, started);
    Some(Wait {
        task: slot,
        kernel: trace.kernel(task.func_id),
        core: task.core.map_or_else(|| "?".to_owned(), |core| trace.core_name(core)),
        ready_ns: ready,
        wait_ns,
        dispatching_ns: dispatched - ready,
        idle_core_ns: times.idle_between(task.kind, ready, dispatched),
        starting_ns: started - dispatched,
    })
}

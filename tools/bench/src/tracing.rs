//! What it costs to trace a run, on one OS thread: the same graph with events and without, in turn. Kernel times are measured in both, as in
//! every run that does not say otherwise.

use std::sync::Arc;

use pto_abi::BuildMode;
use serde::Serialize;

use crate::family::Family;
use crate::runner::pto::{Die, Pto, Traced, Variant, pool};
use crate::runner::{Error, LoadedGraph, Runner};
use crate::stats::{Spread, Statistic};

/// The numbers of tasks that are measured if none are named: events that fit a cache, and events that do not.
pub const TASKS: [u32; 2] = [3_000, 100_000];
/// Tasks that a round runs at least, with events and without: a run of few tasks is repeated.
const TASKS_A_ROUND: u32 = 100_000;

/// One graph.
#[derive(Clone, Debug, Serialize)]
pub struct TraceCost {
    /// Its name.
    pub graph: &'static str,
    /// Its tasks.
    pub tasks: u32,
    /// Events of a task.
    pub events: f64,
    /// From the launch to the last instance's return, ns a task, without events.
    pub off: Spread,
    /// The same with events.
    pub on: Spread,
    /// What the host takes before and after that, ns a task, without events.
    pub host_off: Spread,
    /// The same with events: it reads them, and makes the timeline.
    pub host_on: Spread,
}

impl TraceCost {
    /// What tracing adds, ns a task.
    #[must_use]
    pub fn cost(&self, by: Statistic) -> f64 {
        self.on.by(by) - self.off.by(by)
    }

    /// What the timeline takes when the run is over, ns a task.
    #[must_use]
    pub fn timeline(&self, by: Statistic) -> f64 {
        self.host_on.by(by) - self.host_off.by(by)
    }
}

/// Measures every graph with about so many tasks.
///
/// # Errors
/// Those of the device.
///
/// # Panics
/// When there are no rounds.
pub fn measure(
    families: &[Family],
    tasks: &[u32],
    rounds: u32,
    die: Die,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<TraceCost>, Error> {
    let mut all = Vec::new();
    for &tasks in tasks {
        for &family in families {
            say(&format!("tracing {family}, {tasks} tasks"));
            all.push(measure_one(family, tasks, rounds, die)?);
        }
    }
    Ok(all)
}

fn measure_one(family: Family, tasks: u32, rounds: u32, die: Die) -> Result<TraceCost, Error> {
    let graph = Arc::new(family.graph(tasks));
    let mut runner = Pto::open(pool(1), Variant::Aicpu(BuildMode::CONCURRENT), die)?;
    runner.load(LoadedGraph { graph: &graph, file: None })?;
    let tasks = graph.tasks();
    let per_task = |ns: f64| ns / f64::from(tasks);
    let (mut off, mut on) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    let mut events = 0;
    for _ in 0..rounds {
        for _ in 0..TASKS_A_ROUND.div_ceil(tasks.max(1)) {
            for (traced, (run, host)) in [(Traced::Off, &mut off), (Traced::On, &mut on)] {
                // Reading the events of a run sweeps the caches: both are measured after that.
                runner.run_timed(Traced::On)?;
                let timed = runner.run_timed(traced)?;
                run.push(per_task(timed.run_ns));
                host.push(per_task(timed.whole_ns - timed.run_ns));
                events = timed.events;
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
    let events = events as f64 / f64::from(tasks);
    let spread = |ns: &[f64]| Spread::of(ns).expect("a round has a run");
    let (host_off, host_on) = (spread(&off.1), spread(&on.1));
    let (off, on) = (spread(&off.0), spread(&on.0));
    Ok(TraceCost { graph: family.name(), tasks, events, off, on, host_off, host_on })
}

//! METG(50 %): the least granularity at which a runtime still reaches half of the machine's peak, as Task Bench
//! defines it. Granularity is wall time times threads over tasks; the peak is a kernel on each thread all the time.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::family::Family;
use crate::measure::iterations_for;
use crate::probe;
use crate::runner::{Class, Error, LoadedGraph, Runner};
use crate::stats::Spread;

/// Tasks of each graph: 256 rows of 64.
pub const TASKS: u32 = 64 * 256;
/// The patterns that are measured if none are named.
pub const PATTERNS: [&str; 4] = ["tb_stencil_1d", "tb_fft", "tb_nearest", "tb_random_nearest"];

/// Where the search begins, and how far it goes, in ns of kernel.
const FIRST_NS: f64 = 512.0;
const MOST_NS: f64 = 65_536.0;
const LEAST_NS: f64 = 4.0;
/// From one kernel to the next.
const STEP: f64 = std::f64::consts::SQRT_2;
/// Runs with each kernel, of which the median counts.
const RUNS: usize = 3;

/// One runner on one graph.
#[derive(Clone, Debug, Serialize)]
pub struct Metg {
    /// The graph's name.
    pub graph: &'static str,
    /// The runner's name.
    pub runner: String,
    /// What it is.
    pub class: Class,
    /// Its OS threads.
    pub threads: usize,
    /// METG(50 %) in us, over the rounds; `None`: half of the peak is not reached even with long kernels.
    pub us: Option<Spread>,
    /// The round trip of a line between the rounds, in ns.
    pub round_trip_ns: Option<Spread>,
}

/// What a kernel of one length gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) granularity_ns: f64,
    /// The part of the peak that is reached.
    pub(crate) efficiency: f64,
}

/// Measures every runner on every family, in `rounds` interleaved rounds; graphs are written to `folder` for runners
/// outside of this process.
///
/// # Errors
/// The first runner that cannot run a graph.
pub fn measure(
    families: &[Family],
    runners: &mut [Box<dyn Runner>],
    rounds: u32,
    folder: Option<&Path>,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Metg>, Error> {
    let mut all = Vec::new();
    for &family in families {
        let graph = Arc::new(family.graph(TASKS));
        let file = folder.map(|folder| folder.join("graph"));
        if let Some(file) = &file {
            let wrong = |source| Error::File { what: file.display().to_string(), source };
            graph.write(file).map_err(wrong)?;
        }
        let mut found: Vec<Vec<Option<f64>>> = vec![Vec::new(); runners.len()];
        let mut trips: Vec<Vec<f64>> = vec![Vec::new(); runners.len()];
        for runner in runners.iter_mut() {
            runner.load(LoadedGraph { graph: &graph, file: file.as_deref() })?;
        }
        for round in 1..=rounds {
            for (index, runner) in runners.iter_mut().enumerate() {
                say(&format!("METG of {family}, round {round} of {rounds}: {}", runner.name()));
                trips[index].extend((runner.threads() > 1).then(probe::round_trip_ns));
                found[index].push(search(&mut **runner, graph.tasks())?);
            }
        }
        for ((runner, found), trips) in runners.iter().zip(found).zip(trips) {
            let found: Option<Vec<f64>> = found.into_iter().collect();
            all.push(Metg {
                graph: family.name(),
                runner: runner.name().to_owned(),
                class: runner.class(),
                threads: runner.threads(),
                us: found.and_then(|found| Spread::of(&found)),
                round_trip_ns: Spread::of(&trips),
            });
        }
    }
    Ok(all)
}

/// METG(50 %) in us.
fn search(runner: &mut dyn Runner, tasks: u32) -> Result<Option<f64>, Error> {
    let each = runner.ns_per_iteration()?;
    let mut measured = |kernel_ns: f64| point(runner, tasks, kernel_ns, each);
    let mut kernel_ns = FIRST_NS;
    let mut here = measured(kernel_ns)?;
    if here.efficiency >= 0.5 {
        while kernel_ns > LEAST_NS {
            kernel_ns /= STEP;
            let below = measured(kernel_ns)?;
            if below.efficiency < 0.5 {
                return Ok(Some(between(below, here) / 1e3));
            }
            here = below;
        }
        return Ok(Some(here.granularity_ns / 1e3));
    }
    while kernel_ns < MOST_NS {
        kernel_ns *= STEP;
        let above = measured(kernel_ns)?;
        if above.efficiency >= 0.5 {
            return Ok(Some(between(here, above) / 1e3));
        }
        here = above;
    }
    Ok(None)
}

fn point(
    runner: &mut dyn Runner,
    tasks: u32,
    kernel_ns: f64,
    ns_per_iteration: f64,
) -> Result<Point, Error> {
    #[expect(clippy::cast_precision_loss, reason = "threads and iterations are few")]
    let (threads, iterations) = {
        let iterations = iterations_for(kernel_ns, ns_per_iteration).max(1);
        (runner.threads() as f64, (iterations, iterations as f64))
    };
    let mut times = Vec::new();
    for _ in 0..RUNS {
        times.push(runner.sample(iterations.0)?.total.as_secs_f64() * 1e9);
    }
    times.sort_by(f64::total_cmp);
    let granularity_ns = times[RUNS / 2] * threads / f64::from(tasks);
    Ok(Point { granularity_ns, efficiency: iterations.1 * ns_per_iteration / granularity_ns })
}

/// The granularity at which the efficiency is one half, between a point below and one above.
pub(crate) fn between(below: Point, above: Point) -> f64 {
    let part = (0.5 - below.efficiency) / (above.efficiency - below.efficiency);
    let (from, to) = (below.granularity_ns.ln(), above.granularity_ns.ln());
    (from + part * (to - from)).exp()
}

#[cfg(test)]
mod tests {
    use super::{TASKS, search};
    use crate::runner::{Class, Error, LoadedGraph, Runner, Sample};
    use std::time::Duration;

    /// Takes so many ns for each task in addition to its kernel, on one thread.
    struct Costs(f64);

    impl Runner for Costs {
        fn name(&self) -> &str {
            "costs"
        }
        fn class(&self) -> Class {
            Class::Library
        }
        fn threads(&self) -> usize {
            1
        }
        fn load(&mut self, _: LoadedGraph<'_>) -> Result<(), Error> {
            Ok(())
        }
        fn check(&mut self) -> Result<u64, Error> {
            Ok(0)
        }
        fn ns_per_iteration(&mut self) -> Result<f64, Error> {
            Ok(1.0)
        }
        fn sample(&mut self, iterations: u64) -> Result<Sample, Error> {
            let ns = (self.0 + iterations as f64) * f64::from(TASKS);
            Ok(Sample { total: Duration::from_secs_f64(ns / 1e9), ..Sample::default() })
        }
    }

    #[test]
    fn half_of_the_peak_is_where_a_kernel_takes_what_its_task_costs() {
        for cost in [20.0, 300.0, 5_000.0] {
            let metg = search(&mut Costs(cost), TASKS).unwrap().unwrap() * 1e3;
            assert!((metg / (2.0 * cost) - 1.0).abs() < 0.02, "{cost}: {metg}");
        }
        assert_eq!(search(&mut Costs(1e6), TASKS).unwrap(), None);
    }
}

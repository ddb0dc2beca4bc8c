//! Measuring: every runner takes its turn in every round, so that what the machine does to one it does to all.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::csr::Csr;
use crate::family::Family;
use crate::probe::{self, Distance};
use crate::runner::{Class, Error, LoadedGraph, Runner, Sample};
use crate::stats::{Spread, Statistic};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The graphs.
    pub families: Vec<Family>,
    /// About how many tasks each.
    pub tasks: Vec<u32>,
    /// How long each kernel takes, in us; 0: empty kernels.
    pub kernel_us: Vec<u32>,
    /// Turns of each runner.
    pub rounds: u32,
    /// Where graphs are written for runners outside of this process; `None`: there are none.
    pub folder: Option<PathBuf>,
}

/// One runner on one graph.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// The graph's name.
    pub graph: &'static str,
    /// About how many tasks were asked for.
    pub asked: u32,
    /// Its tasks.
    pub tasks: u32,
    /// Its edges.
    pub edges: u64,
    /// How long each kernel takes, in us.
    pub kernel_us: u32,
    /// The runner's name.
    pub runner: String,
    /// What it is.
    pub class: Class,
    /// Its OS threads.
    pub threads: usize,
    /// Adding tasks and edges, ns a task.
    pub build: Option<Spread>,
    /// From the first task to the last, ns a task.
    pub run: Option<Spread>,
    /// Both, ns a task.
    pub total: Spread,
    /// Every total in the order of the rounds, ns a task; those that count.
    pub samples: Vec<f64>,
    /// The round of each.
    pub rounds: Vec<u32>,
    /// The round trip of a line around these measurements, in ns, where there are two threads or more.
    pub round_trip_ns: Option<Spread>,
    /// How far the CPUs were from each other; `None`: one thread, or some of both.
    pub distance: Option<Distance>,
    /// Bytes of memory a task.
    pub bytes_per_task: Option<f64>,
}

impl Series {
    /// The statistic of the samples of these rounds; `None`: there are none.
    #[must_use]
    pub fn total_in(&self, rounds: &[u32], statistic: Statistic) -> Option<f64> {
        let all = self.rounds.iter().zip(&self.samples);
        let chosen: Vec<f64> =
            all.filter(|(round, _)| rounds.contains(round)).map(|(_, ns)| *ns).collect();
        Some(Spread::of(&chosen)?.by(statistic))
    }
}

/// A turn, and the probes around it.
#[derive(Clone, Copy, Debug)]
struct MeasuredRound {
    round: u32,
    sample: Sample,
    round_trip_ns: Option<f64>,
}

/// Beyond so many tasks, checks take longer than measurements: their order is checked on the same graph with fewer.
const CHECKED_TASKS: u32 = 1_000_000;
/// A run that takes longer is repeated [`ENOUGH`] times only.
const SLOW: Duration = Duration::from_millis(200);
/// Samples of one distance that suffice to leave the others out.
const ENOUGH: usize = 3;

/// Measures every runner on every graph of the plan. `say` gets a line about each step.
///
/// # Errors
/// The first runner that cannot run a graph, or runs it wrongly.
pub fn measure(
    plan: &Plan,
    runners: &mut [Box<dyn Runner>],
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Series>, Error> {
    let mut series = Vec::new();
    for &tasks in &plan.tasks {
        for &family in &plan.families {
            say(&format!("{family}, {tasks} tasks"));
            let graph = Arc::new(family.graph(tasks));
            let file = plan.folder.as_ref().map(|folder| folder.join("graph"));
            if let Some(file) = &file {
                let wrong = |source| Error::File { what: file.display().to_string(), source };
                graph.write(file).map_err(wrong)?;
            }
            let loaded = LoadedGraph { graph: &graph, file: file.as_deref() };
            let mut chosen: Vec<_> =
                runners.iter_mut().filter(|runner| tasks <= runner.most_tasks()).collect();
            for runner in &mut chosen {
                runner.load(loaded)?;
                check(&mut ***runner, &graph, say)?;
            }
            for &kernel_us in &plan.kernel_us {
                let turns = take_turns(plan.rounds, kernel_us, &mut chosen, say)?;
                for (runner, turns) in chosen.iter_mut().zip(&turns) {
                    let point = Point { family, asked: tasks, kernel_us, graph: &graph };
                    series.push(summary(point, &mut ***runner, turns)?);
                }
            }
        }
    }
    Ok(series)
}

fn check(runner: &mut dyn Runner, graph: &Csr, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    if graph.tasks() > CHECKED_TASKS {
        say(&format!("{}: order not checked beyond {CHECKED_TASKS} tasks", runner.name()));
        return Ok(());
    }
    let (found, expected) = (runner.check()?, graph.checksum());
    if found == expected {
        return Ok(());
    }
    Err(Error::Wrong { runner: runner.name().to_owned(), found, expected })
}

/// The turns of each runner. The first round is not kept: it warms up.
fn take_turns(
    rounds: u32,
    kernel_us: u32,
    runners: &mut [&mut Box<dyn Runner>],
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Vec<MeasuredRound>>, Error> {
    let mut iterations = Vec::with_capacity(runners.len());
    for runner in &mut *runners {
        iterations.push(iterations_for(f64::from(kernel_us) * 1e3, runner.ns_per_iteration()?));
    }
    let mut turns: Vec<Vec<MeasuredRound>> = vec![Vec::new(); runners.len()];
    let mut slow = vec![false; runners.len()];
    // A probe moves threads from CPU to CPU: it goes before the turns of all runners, or of none.
    let is_probed = runners.iter().any(|runner| runner.threads() > 1);
    for round in 0..=rounds {
        for (index, runner) in runners.iter_mut().enumerate() {
            if slow[index] && turns[index].len() >= ENOUGH {
                continue;
            }
            say(&format!("round {round} of {rounds}: {}", runner.name()));
            let (sample, round_trip_ns) =
                take_turn(&mut ***runner, iterations[index], is_probed, slow[index])?;
            slow[index] = sample.total > SLOW;
            if round > 0 {
                turns[index].push(MeasuredRound { round, sample, round_trip_ns });
            }
        }
    }
    Ok(turns)
}

/// The measurement, and the greater of the probes around it.
fn take_turn(
    runner: &mut dyn Runner,
    iterations: u64,
    is_probed: bool,
    slow: bool,
) -> Result<(Sample, Option<f64>), Error> {
    let probe = || probe::round_trip_ns();
    let before = is_probed.then(probe).filter(|_| runner.threads() > 1);
    // What ran before has filled the caches with its own; where a run is long, that does not matter.
    if !slow {
        runner.sample(iterations)?;
    }
    let sample = runner.sample(iterations)?;
    let round_trip_ns = before.map(|before| before.max(probe()));
    Ok((sample, round_trip_ns))
}

/// How many iterations take so long.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of iterations"
)]
pub fn iterations_for(ns: f64, ns_per_iteration: f64) -> u64 {
    (ns / ns_per_iteration).round() as u64
}

/// The turns that are compared: those of one distance, if there are enough, and the distance.
fn like_with_like(turns: &[MeasuredRound]) -> (Vec<MeasuredRound>, Option<Distance>) {
    for wanted in [Distance::Near, Distance::Far] {
        let is_wanted =
            |turn: &&MeasuredRound| turn.round_trip_ns.map(Distance::of) == Some(wanted);
        let kept: Vec<MeasuredRound> = turns.iter().filter(is_wanted).copied().collect();
        if kept.len() >= ENOUGH.min(turns.len()) {
            return (kept, Some(wanted));
        }
    }
    (turns.to_vec(), None)
}

/// A graph with its kernels.
#[derive(Clone, Copy)]
struct Point<'a> {
    family: Family,
    asked: u32,
    kernel_us: u32,
    graph: &'a Csr,
}

fn summary(
    point: Point<'_>,
    runner: &mut dyn Runner,
    turns: &[MeasuredRound],
) -> Result<Series, Error> {
    let tasks = point.graph.tasks();
    let (turns, distance) = like_with_like(turns);
    let each = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(tasks);
    let of = |part: fn(&Sample) -> Option<Duration>| {
        let times: Option<Vec<f64>> =
            turns.iter().map(|turn| part(&turn.sample).map(each)).collect();
        times.and_then(|times| Spread::of(&times))
    };
    let round_trips: Option<Vec<f64>> = turns.iter().map(|turn| turn.round_trip_ns).collect();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
    let bytes_per_task = runner.memory_bytes()?.map(|bytes| bytes as f64 / f64::from(tasks));
    Ok(Series {
        graph: point.family.name(),
        asked: point.asked,
        tasks,
        edges: point.graph.edges(),
        kernel_us: point.kernel_us,
        runner: runner.name().to_owned(),
        class: runner.class(),
        threads: runner.threads(),
        build: of(|sample| sample.build),
        run: of(|sample| sample.run),
        total: of(|sample| Some(sample.total)).expect("there is at least one round"),
        samples: turns.iter().map(|turn| each(turn.sample.total)).collect(),
        rounds: turns.iter().map(|turn| turn.round).collect(),
        round_trip_ns: round_trips.and_then(|times| Spread::of(&times)),
        distance,
        bytes_per_task,
    })
}

#[cfg(test)]
mod tests {
    use super::{MeasuredRound, Plan, like_with_like, measure};
    use crate::family::Family;
    use crate::probe::Distance;
    use crate::runner::floor::{AtomicSweep, PlainSweep};
    use crate::runner::{Class, Error, LoadedGraph, Runner, Sample};
    use crate::stats::Statistic;

    fn plan() -> Plan {
        let families = Family::programs().collect();
        Plan { families, tasks: vec![500], kernel_us: vec![0], rounds: 2, folder: None }
    }

    #[test]
    fn every_runner_is_measured_on_every_graph() {
        let mut runners: Vec<Box<dyn Runner>> =
            vec![Box::<AtomicSweep>::default(), Box::<PlainSweep>::default()];
        let series = measure(&plan(), &mut runners, &mut |_| {}).unwrap();
        assert_eq!(series.len(), 20);
        assert!(series.iter().all(|one| one.samples.len() == 2 && one.total.min > 0.0));
        assert!(series.iter().all(|one| one.bytes_per_task >= Some(64.0)));
        let first = &series[0];
        assert_eq!(first.rounds, [1, 2]);
        assert_eq!(first.total_in(&[2], Statistic::Least), Some(first.samples[1]));
        assert_eq!(first.total_in(&[1, 2, 3], Statistic::Least), Some(first.total.min));
        assert_eq!(first.total_in(&[3], Statistic::Least), None);
    }

    /// Runs nothing.
    struct Idle;

    impl Runner for Idle {
        fn name(&self) -> &str {
            "idle"
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
        fn sample(&mut self, _: u64) -> Result<Sample, Error> {
            Ok(Sample::default())
        }
    }

    #[test]
    fn a_runner_that_runs_nothing_is_not_measured() {
        let error = measure(&plan(), &mut [Box::new(Idle)], &mut |_| {}).unwrap_err();
        assert!(error.to_string().starts_with("idle ran the graph wrongly"), "{error}");
    }

    #[test]
    fn near_is_compared_with_near() {
        let turns = |trips: &[f64]| -> Vec<MeasuredRound> {
            let turn = |(round, trip): (u32, &f64)| MeasuredRound {
                round,
                sample: Sample::default(),
                round_trip_ns: Some(*trip),
            };
            (1..).zip(trips).map(turn).collect()
        };
        let kept = |trips: &[f64]| {
            let (kept, distance) = like_with_like(&turns(trips));
            (kept.len(), distance)
        };
        assert_eq!(kept(&[50.0, 400.0, 50.0, 60.0]), (3, Some(Distance::Near)));
        assert_eq!(kept(&[400.0, 400.0, 50.0, 400.0]), (3, Some(Distance::Far)));
        assert_eq!(kept(&[400.0, 50.0, 50.0, 400.0]), (4, None));
    }
}

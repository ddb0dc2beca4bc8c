//! Which of the targets of the project are met, as far as they were measured.

use serde::Serialize;

use super::tables::{aligned, grouped, number};
use crate::device_metg::{DeviceMetg, LONGEST_NS};
use crate::field_timings::TOLERANCE;
use crate::measure::Series;
use crate::report::measured::Report;
use crate::report::ratios::Comparison;
use crate::runner::Class;
use crate::stats::geometric_mean;

/// A target, and how far it is met.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// What it is about.
    pub what: String,
    /// The bound.
    pub bound: f64,
    /// Whether the figure must not exceed the bound, or not stay below it.
    pub direction: Direction,
    /// What was measured.
    pub found: f64,
}

/// On which side of its bound a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// At most the bound.
    AtMost,
    /// At least the bound.
    AtLeast,
}

impl Target {
    /// Whether it is met.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.direction {
            Direction::AtMost => self.found <= self.bound,
            Direction::AtLeast => self.found >= self.bound,
        }
    }
}

fn at_most(what: impl Into<String>, bound: f64, found: f64) -> Target {
    Target { what: what.into(), bound, direction: Direction::AtMost, found }
}

fn at_least(what: impl Into<String>, bound: f64, found: f64) -> Target {
    Target { what: what.into(), bound, direction: Direction::AtLeast, found }
}

/// About how many tasks the targets for graphs are stated for; where so many were not measured, the most below count.
const TASKS: u32 = 100_000;

/// What tracing a run may add to a task.
const TRACING_NS: f64 = 60.0;

fn stated(report: &Report) -> u32 {
    let measured = report.comparisons.iter().map(|one| one.tasks);
    measured.filter(|tasks| *tasks <= TASKS).max().unwrap_or(TASKS)
}

/// Every target that can be judged.
#[must_use]
pub fn judge(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    let tasks = stated(report);
    let point = |threads: usize| {
        let here =
            |one: &&Comparison| one.threads == threads && one.tasks == tasks && one.kernel_us == 0;
        report.comparisons.iter().find(here)
    };
    if let Some(one) = point(1) {
        one_thread(one, &mut targets);
    }
    if let Some(two) = point(2) {
        let library = two.library_over_ours;
        targets.extend(
            library.map(|ratio| at_least("two OS threads: best library over ours", 2.0, ratio)),
        );
    }
    two_over_one(report, &mut targets);
    targets.extend(prepared(report));
    targets.extend(built_meanwhile(report));
    targets.extend(overlap(report));
    metg(report, &mut targets);
    report.device_metg.iter().for_each(|one| device_metg(one, &mut targets));
    for one in &report.field_timings {
        let what = format!("{}: distance of the model from what is published", one.program);
        targets.push(at_most(what, TOLERANCE, (one.ratio() - 1.0).abs()));
    }
    for one in &report.trace_costs {
        let (graph, tasks) = (one.graph, grouped(one.tasks));
        let what = format!("tracing {graph}, {tasks} tasks: ns a task");
        targets.push(at_most(what, TRACING_NS, one.cost(report.statistic)));
    }
    let sessions = report.sessions.iter();
    targets.extend(sessions.map(|cost| at_most(cost.what.clone(), cost.bound, cost.found)));
    targets.extend(scaling(report));
    for small in &report.small_runs {
        let bound = if small.runner.contains("threads") { 300.0 } else { 50.0 };
        if !small.runner.contains("pool-2") {
            targets.push(at_most(
                format!("four tasks, us: {}", small.runner),
                bound,
                small.us.median,
            ));
        }
    }
    targets
}

/// Where half is not reached, the longest kernel that was tried is taken, which is above every aim.
fn device_metg(one: &DeviceMetg, targets: &mut Vec<Target>) {
    let graph = &one.graph;
    let longest_us = LONGEST_NS as f64 / 1e3;
    let (said, found) = match one.us {
        Some(us) => ("", us),
        None => (" (not reached; the longest kernel that was tried)", longest_us),
    };
    let aim = one.aim_us();
    targets.extend(
        aim.map(|aim| at_most(format!("device METG(50 %) of {graph}, us{said}"), aim, found)),
    );
    if !graph.starts_with("tb_") {
        targets.push(at_most(format!("AICPU time a task of {graph}, us"), 0.25, one.aicpu_us));
    }
}

fn one_thread(one: &Comparison, targets: &mut Vec<Target>) {
    let library = one.library_over_ours;
    targets
        .extend(library.map(|ratio| at_least("one OS thread: best library over ours", 1.5, ratio)));
    let sweep = one.ours_over_sweep;
    targets.extend(sweep.map(|ratio| at_most("one OS thread: ours over the sweep", 2.5, ratio)));
    // The build mode is not a variant: of each variant the better figure counts.
    let other_variant =
        one.others.iter().filter(|(name, _)| name.contains("host") != one.ours.contains("host"));
    let least = other_variant.map(|(_, ratio)| *ratio).min_by(f64::total_cmp);
    targets.extend(
        least.map(|ratio| at_most("one OS thread: the other variant over the better", 2.0, ratio)),
    );
}

/// The series with empty kernels of a runner whose name contains all `parts`, by graph.
fn series<'a>(report: &'a Report, tasks: u32, parts: &[&str]) -> Vec<&'a Series> {
    let is_it = |one: &&Series| {
        let named = parts.iter().all(|part| one.runner.contains(part));
        let is_ours = matches!(one.class, Class::Ours | Class::Prepared);
        is_ours && one.kernel_us == 0 && one.asked == tasks && named
    };
    report.series.iter().filter(is_it).collect()
}

fn ns(report: &Report, one: &Series) -> f64 {
    one.total.by(report.statistic)
}

/// Two threads against the same variant on one, in the same rounds: the worst graph, and all of them.
fn two_over_one(report: &Report, targets: &mut Vec<Target>) {
    let tasks = stated(report);
    let two = report.comparisons.iter().find(|one| one.threads == 2 && one.tasks == tasks);
    let Some(ours) = two.map(|two| &two.ours) else { return };
    let single = ours.replace("pool-2", "pool-1");
    let (two, one) = (series(report, tasks, &[ours]), series(report, tasks, &[&single]));
    let ratio = |two: &&Series| {
        let one = one.iter().find(|one| one.graph == two.graph && one.runner == single)?;
        let one_ns = one.total_in(&two.rounds, report.statistic)?;
        Some((ns(report, two) / one_ns, two.graph))
    };
    let exact = two.iter().filter(|it| it.runner == *ours);
    let ratios: Vec<_> = exact.filter_map(ratio).collect();
    let worst = ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    targets.extend(worst.map(|(ratio, graph)| {
        at_most(format!("two OS threads over one, worst graph ({graph})"), 1.3, *ratio)
    }));
    let mean = geometric_mean(&ratios.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>());
    targets.extend(mean.map(|mean| {
        let what = format!("two OS threads over one, geometric mean of {} graphs", ratios.len());
        at_most(what, 1.0, mean)
    }));
}

fn prepared(report: &Report) -> Option<Target> {
    let all = series(report, stated(report), &["pool-1", "prepared"]);
    let mean = geometric_mean(&all.iter().map(|one| ns(report, one)).collect::<Vec<_>>())?;
    Some(at_most("a prepared graph, one OS thread, ns a task, geometric mean", 25.0, mean))
}

fn built_meanwhile(report: &Report) -> Option<Target> {
    let all = series(report, stated(report), &["pool-1", "aicpu-built"]);
    let runs = all.iter().filter(|one| one.runner.ends_with("aicpu-built"));
    let mean = geometric_mean(&runs.map(|one| ns(report, one)).collect::<Vec<_>>())?;
    Some(at_most("a graph built meanwhile, one OS thread, ns a task, geometric mean", 60.0, mean))
}

/// Build and run at once against one after the other, on two threads.
fn overlap(report: &Report) -> Option<Target> {
    let all = series(report, stated(report), &["pool-2", "aicpu-built"]);
    let find = |end: &str| {
        all.iter().find(|one| one.graph == "wavefront" && one.runner.ends_with(end)).copied()
    };
    let (concurrent, sequential) = (find("aicpu-built")?, find("then run")?);
    let ratio = ns(report, concurrent) / ns(report, sequential);
    Some(at_most("wavefront, two OS threads: concurrent over sequential build", 0.7, ratio))
}

fn metg(report: &Report, targets: &mut Vec<Target>) {
    let two = || report.metg.iter().filter(|one| one.threads == 2);
    let mut graphs: Vec<&str> = two().map(|one| one.graph).collect();
    graphs.dedup();
    for graph in &graphs {
        let least = |is_ours: bool| {
            let group = two().filter(|one| one.graph == *graph && one.class != Class::Floor);
            let group = group.filter(|one| (one.class == Class::Ours) == is_ours);
            group.filter_map(|one| Some(one.us?.by(report.statistic))).min_by(f64::total_cmp)
        };
        let Some(ours) = least(true) else { continue };
        targets.push(at_most(format!("METG(50 %) of {graph}, us"), 0.2, ours));
        let peer = least(false).map(|peer| peer / ours);
        targets.extend(peer.map(|ratio| {
            at_least(format!("METG(50 %) of {graph}: best peer over ours"), 1.0, ratio)
        }));
    }
}

/// 10,000,000 tasks against 10,000, of the variant that was better there; the geometric mean over the graphs.
fn scaling(report: &Report) -> Option<Target> {
    let ours =
        &report.comparisons.iter().find(|one| one.threads == 1 && one.tasks == 10_000_000)?.ours;
    let small = series(report, 10_000, &[ours]);
    let ratio = |large: &Series| {
        let small =
            small.iter().find(|one| one.graph == large.graph && one.runner == large.runner)?;
        Some(ns(report, large) / ns(report, small))
    };
    let large = series(report, 10_000_000, &[ours]);
    let large = large.iter().filter(|one| one.runner == *ours);
    let ratios: Option<Vec<f64>> = large.map(|one| ratio(one)).collect();
    Some(at_most("one OS thread: 10,000,000 tasks over 10,000", 1.5, geometric_mean(&ratios?)?))
}

/// The targets for people.
pub(super) fn text(targets: &[Target]) -> String {
    if targets.is_empty() {
        return String::new();
    }
    let mut rows = vec![["target", "bound", "found", ""].map(str::to_owned).to_vec()];
    for target in targets {
        let sign = if target.direction == Direction::AtMost { "<=" } else { ">=" };
        let verdict = if target.is_met() { "met" } else { "missed" };
        let found =
            if target.found < 10.0 { format!("{:.2}", target.found) } else { number(target.found) };
        rows.push(vec![
            target.what.clone(),
            format!("{sign} {}", target.bound),
            found,
            verdict.to_owned(),
        ]);
    }
    format!("\n{}", aligned(&rows))
}

//! What is said of the measurements: as text, as one JSON value, as a picture.

mod plot;
mod ratios;
mod tables;
mod targets;

use std::fmt::Write as _;

use serde::Serialize;

use crate::instructions::Counted;
use crate::measure::Series;
use crate::metg::Metg;
use crate::small::SmallRun;
use crate::stats::Statistic;

pub use plot::plot;
pub use ratios::{At, Comparison, compare};
pub use targets::{Direction, Target, judge};

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// What stands for the rounds in tables and ratios.
    pub statistic: Statistic,
    /// Runners on graphs.
    pub series: Vec<Series>,
    /// Ours against libraries and floor, by OS threads.
    pub comparisons: Vec<Comparison>,
    /// What two CPUs can do, ns a number: one-line mailboxes with so many lines.
    pub mailboxes: Vec<Mailboxes>,
    /// Repeated runs of four tasks.
    pub small_runs: Vec<SmallRun>,
    /// METG(50 %).
    pub metg: Vec<Metg>,
    /// Instructions a task, under callgrind.
    pub instructions: Vec<Counted>,
    /// What was asked for and could not be measured, and why.
    pub missing: Vec<String>,
}

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor, as it names itself.
    pub processor: String,
    /// Its CPUs.
    pub cpus: usize,
    /// An iteration of the kernel, in ns.
    pub ns_per_iteration: f64,
    /// The round trip of a line between two threads, in ns, at the start.
    pub round_trip_ns: f64,
}

/// A floor of hand-overs between two CPUs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mailboxes {
    /// Lines.
    pub lines: usize,
    /// ns a number.
    pub ns: f64,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let named = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            processor: named.map_or("unknown processor", |(_, name)| name.trim()).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            ns_per_iteration: crate::runner::own_ns_per_iteration(),
            round_trip_ns: crate::probe::round_trip_ns(),
        }
    }
}

impl Report {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.heading();
        text += &tables::all(&self.series, self.statistic);
        for comparison in &self.comparisons {
            text += &ratios::text(comparison);
        }
        text += &tables::metg(&self.metg, self.statistic);
        text += &tables::instructions(&self.instructions);
        text += &self.floors();
        text += &targets::text(&judge(self));
        for missing in &self.missing {
            let _ = writeln!(text, "\nnot measured: {missing}");
        }
        text
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or(serde_json::Value::Null);
        value["targets"] = judge(self)
            .iter()
            .map(|target| {
                let mut value = serde_json::to_value(target).unwrap_or_default();
                value["met"] = target.is_met().into();
                value
            })
            .collect();
        value
    }

    fn heading(&self) -> String {
        let Machine { processor, cpus, ns_per_iteration, round_trip_ns } = &self.machine;
        format!(
            "{processor}, {cpus} CPUs; a round trip of a line between two {round_trip_ns:.0} ns; \
             an iteration of the kernel {ns_per_iteration:.1} ns\n"
        )
    }

    fn floors(&self) -> String {
        let mut text = String::new();
        if !self.mailboxes.is_empty() {
            text += "\nfloor of hand-overs between two CPUs: one-line mailboxes, ns each\n";
        }
        for Mailboxes { lines, ns } in &self.mailboxes {
            let _ = writeln!(text, "  {lines:3} lines  {ns:6.1}");
        }
        if !self.small_runs.is_empty() {
            text += "\nfour tasks on an open device, again and again: us from call to return\n";
        }
        for small in &self.small_runs {
            let us = small.us;
            let _ = writeln!(
                text,
                "  {:28} median {:7.1}, half of them {:.1} to {:.1}, least {:.1}",
                small.runner, us.median, us.p25, us.p75, us.min
            );
        }
        text
    }
}

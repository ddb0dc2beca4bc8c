//! What is said of the measurements: as text, as one JSON value, as a picture.

pub mod chart;
mod measured;
mod plot;
mod ratios;
mod tables;
mod targets;

use std::fmt::Write as _;

pub use measured::{MachineDescription, Mailboxes, Report};
pub use plot::plot;
pub use ratios::{At, Comparison, compare};
pub use targets::{Direction, Target, judge};

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
        text += &tables::device_metg(&self.device_metg);
        text += &tables::field_timings(&self.field_timings);
        text += &tables::instructions(&self.instructions);
        text += &tables::trace_costs(&self.trace_costs, self.statistic);
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
        let MachineDescription { processor, cpus, ns_per_iteration, round_trip_ns } = &self.machine;
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
            let noun = if *lines == 1 { "line " } else { "lines" };
            let _ = writeln!(text, "  {lines:3} {noun}  {ns:6.1}");
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

//! Everything that was measured.

use serde::Serialize;

use super::ratios::Comparison;
use crate::device_metg::DeviceMetg;
use crate::field_timings::FieldTiming;
use crate::instructions::Counted;
use crate::measure::Series;
use crate::metg::Metg;
use crate::sessions::SessionCost;
use crate::small::SmallRun;
use crate::stats::Statistic;
use crate::tracing::TraceCost;

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: MachineDescription,
    /// The statistic of the rounds in tables and ratios.
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
    /// METG(50 %) on the device, in virtual time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_metg: Vec<DeviceMetg>,
    /// Published times of programs of the field, in addition to those in virtual time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub field_timings: Vec<FieldTiming>,
    /// Instructions a task, under callgrind.
    pub instructions: Vec<Counted>,
    /// What it costs to trace a run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace_costs: Vec<TraceCost>,
    /// What sessions cost; reported as targets.
    #[serde(skip)]
    pub sessions: Vec<SessionCost>,
    /// What was asked for and could not be measured, and why.
    pub missing: Vec<String>,
}

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineDescription {
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

impl MachineDescription {
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

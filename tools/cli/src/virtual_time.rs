//! The part of a report that is about virtual time, and the command that repeats the run.

use std::time::Duration;

use pto_abi::{CoreKind, RuntimeVariant};
use pto_host::virtual_time::{Injection, KindReport, VirtualOptions, VirtualReport};
use serde_json::{Value, json};

use crate::device::Wanted;
use crate::errors::Failure;
use crate::replay;
use crate::round::Round;
use crate::text::{duration, grouped};

/// The report of a run in virtual time.
#[derive(Clone, Copy)]
pub(crate) struct VirtualRun<'a> {
    /// How it was made.
    pub(crate) options: &'a VirtualOptions,
    /// What the machine saw.
    pub(crate) report: &'a VirtualReport,
    /// AICPU instances that only build.
    pub(crate) builders: usize,
    /// What it took on this machine.
    pub(crate) wall: Duration,
}

impl<'a> VirtualRun<'a> {
    /// Of a round that was hosted so.
    pub(crate) fn of(
        round: &'a Round,
        variant: RuntimeVariant,
        device: &'a Wanted,
    ) -> Option<Self> {
        let report = round.report.virtual_report.as_deref()?;
        let builders = usize::from(variant.has_builder());
        Some(Self { options: device.virtual_options()?, report, builders, wall: round.wall })
    }

    /// Whether a fault was asked for and did not happen.
    pub(crate) fn missed_fault(&self) -> bool {
        self.options.injection.is_some() && self.report.injections == 0
    }

    /// The hash of the run's trace, as text.
    pub(crate) fn trace_hash(&self) -> String {
        format!("{:016x}", self.report.trace_hash)
    }

    fn bounds(&self) -> String {
        let report = self.report;
        let [path, bound] = [report.critical_path_ns, report.lower_bound_ns()];
        let ratio = ratio(report.graph_ns, bound);
        format!(
            "{ratio:.2} times the larger bound of {} (critical path {})",
            time(bound),
            time(path)
        )
    }

    fn overhead(&self) -> String {
        let kinds = CoreKind::ALL.iter().filter(|kind| self.kind(**kind).cores > 0);
        let text = |kind: &CoreKind| {
            let time = self.kind(*kind).time;
            let cores_ns = self.kind(*kind).cores as u64 * self.report.graph_ns;
            let lost = ratio(time.overhead_core_ns, cores_ns);
            let unfit = match time.unfit_core_ns {
                0 => String::new(),
                unfit_ns => {
                    format!("; {:.1} % waited for others", 100.0 * ratio(unfit_ns, cores_ns))
                }
            };
            let overhead = self.report.overhead(*kind);
            let name = kind.name().to_uppercase();
            format!(
                "{name} {:.1} % of the graph ({:.1} % of core time{unfit})",
                100.0 * overhead,
                100.0 * lost
            )
        };
        kinds.map(text).collect::<Vec<_>>().join(", ")
    }

    fn kind(&self, kind: CoreKind) -> &KindReport {
        &self.report.kinds[kind.index()]
    }

    /// For people: names and values.
    pub(crate) fn rows(&self) -> Vec<[String; 2]> {
        let report = self.report;
        let mut rows = Vec::new();
        let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
        row("graph", format!("{}, {}", time(report.graph_ns), self.bounds()));
        row("overhead", self.overhead());
        let aicpu = report.aicpu_ns_per_kernel(self.builders);
        row("AICPU", format!("{aicpu:.0} ns a kernel in schedulers"));
        if let Some(injection) = self.options.injection {
            row("fault", injected_text(&injection, report));
        }
        for violation in report.violations.iter().take(3) {
            row("VIOLATION", violation.to_string());
        }
        if report.violation_count > 3 {
            row("", format!("and {} more", grouped(report.violation_count - 3)));
        }
        let (choices, wall) = (grouped(report.choices), duration(self.wall));
        row(
            "trace hash",
            format!("{:016x}, {choices} choices, simulated in {wall}", report.trace_hash),
        );
        rows
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let report = self.report;
        let [aic, aiv] = [CoreKind::AIC, CoreKind::AIV].map(|kind| {
            let KindReport { cores, parts, busy_ns, time } = *self.kind(kind);
            json!({
                "cores": cores,
                "parts": parts,
                "busy_ns": busy_ns,
                "work_bound_ns": self.kind(kind).work_bound_ns(),
                "utilisation": report.utilisation(kind),
                "overhead": report.overhead(kind),
                "overhead_ns": time.overhead_ns,
                "all_idle_ns": time.all_idle_ns,
                "overhead_core_ns": time.overhead_core_ns,
                "unfit_core_ns": time.unfit_core_ns,
                "no_work_core_ns": time.no_work_core_ns,
            })
        });
        json!({
            "profile": self.options.profile.name,
            "unknowns": self.options.profile.unknowns(),
            "seed": self.options.seed,
            "trace_hash": self.trace_hash(),
            "choices": report.choices,
            "makespan_ns": report.makespan_ns,
            "graph_ns": report.graph_ns,
            "critical_path_ns": report.critical_path_ns,
            "lower_bound_ns": report.lower_bound_ns(),
            "over_bound": ratio(report.graph_ns, report.lower_bound_ns()),
            "aicpu_ns_per_kernel": report.aicpu_ns_per_kernel(self.builders),
            "waits_ns": {
                "dispatch": report.waits.dispatch_ns,
                "start": report.waits.start_ns,
                "report": report.waits.report_ns,
            },
            "aic": aic,
            "aiv": aiv,
            "fault": self.options.injection.map(|injection| injection.to_string()),
            "faults_injected": report.injections,
            "fault_missed": self.missed_fault(),
            "violations": report.violations.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "violation_count": report.violation_count,
            "wall_ns": u64::try_from(self.wall.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// Facts for the file of a timeline.
    pub(crate) fn facts(&self) -> [(&'static str, String); 2] {
        let aicpu = self.report.aicpu_ns_per_kernel(self.builders);
        [
            ("trace hash", format!("{:016x}", self.report.trace_hash)),
            ("AICPU", format!("{aicpu:.0} ns a kernel in schedulers")),
        ]
    }
}

fn injected_text(injection: &Injection, report: &VirtualReport) -> String {
    match report.injections {
        0 if injection.trouble.is_builders() => {
            format!("{injection} did NOT happen: the program has no such task")
        }
        0 => format!("{injection} did NOT happen: the core had no such task"),
        _ => format!("{injection} happened"),
    }
}

/// What a run that failed says in addition to its fault, if it was one in virtual time.
pub(crate) fn tell_failed(failure: Failure, options: Option<&VirtualOptions>) -> Failure {
    let Some(options) = options.filter(|_| failure.is_fault()) else { return failure };
    let mut sentences = Vec::new();
    if let Some(report) = failure.virtual_report() {
        let injected = options.injection.map(|injection| injected_text(&injection, report));
        sentences.extend(injected.map(|injected_text| format!("Injected: {injected_text}.")));
        sentences.extend(report.violations.iter().map(|found| format!("Violated: {found}.")));
        let (hash, makespan) = (report.trace_hash, time(report.makespan_ns));
        sentences.push(format!("Trace hash {hash:016x}, {makespan} of virtual time."));
    }
    let replay = replay::this_command();
    sentences.push(format!("To replay it: {replay}"));
    sentences.into_iter().fold(failure, Failure::and).replayed_by(replay)
}

fn time(ns: u64) -> String {
    duration(Duration::from_nanos(ns))
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

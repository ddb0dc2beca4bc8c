//! The report of `pto run`: the same facts as text and as JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pto_abi::{CoreKind, RuntimeVariant};
use pto_examples::host::{Nans, NotFinite, Params, Verdict};
use pto_host::timeline::Trace;
use pto_host::{RingUse, RunOptions, RunReport, StartTimes, StreamReport};
use serde_json::{Value, json};

use crate::chart::chart;
use crate::device::Wanted;
use crate::dump::WrittenDump;
use crate::errors::{Exit, Failure};
use crate::kernels::KernelSet;
use crate::predict::Prediction;
use crate::replay;
use crate::round::Round;
use crate::text::{bytes, counted, duration, filled, grouped, rate, table};
use crate::virtual_time::VirtualRun;

/// What it means that an injected fault did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissedFault {
    /// The run does not show what it was asked for.
    Fails,
    /// The user has said that it may.
    Passes,
}

/// An input from a file.
pub(crate) struct GivenInput {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) not_finite: NotFinite,
}

impl GivenInput {
    /// What is not finite in it; `None`: everything is.
    fn warning(&self) -> Option<String> {
        let NotFinite { nan, infinite, of } = self.not_finite;
        let parts: Vec<_> = [(nan, "NaN"), (infinite, "infinite")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", grouped(count)))
            .collect();
        let parts = (!parts.is_empty()).then(|| parts.join(" and "))?;
        Some(format!("{}: {parts}, of {}", self.name, counted(of, "value")))
    }

    fn json(&self) -> Value {
        let NotFinite { nan, infinite, of } = self.not_finite;
        json!({
            "name": self.name,
            "file": self.path.display().to_string(),
            "values": of,
            "nan": nan,
            "infinite": infinite,
        })
    }
}

/// An output, and the file that it was to be written to.
pub(crate) struct WrittenOutput<'a> {
    pub(crate) name: &'a str,
    pub(crate) path: &'a Path,
    /// Why it is not there.
    pub(crate) unwritten: Option<Failure>,
}

/// The traced run, and the file that it was to be written to.
pub(crate) struct WrittenTrace<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) path: &'a Path,
    /// Why it is not there.
    pub(crate) unwritten: Option<Failure>,
}

/// Everything that is known at the end of a run.
pub(crate) struct Summary<'a> {
    /// What it takes on a device, if that was asked for.
    pub(crate) prediction: Option<&'a Prediction>,
    pub(crate) example: &'a str,
    pub(crate) device: &'a str,
    pub(crate) wanted: &'a Wanted,
    /// How long the device took to start, if there was something to start.
    pub(crate) start_times: Option<StartTimes>,
    pub(crate) options: &'a RunOptions,
    pub(crate) variant: RuntimeVariant,
    pub(crate) params: &'a Params,
    /// How long the host took to build the graph, if it did.
    pub(crate) build_time: Option<Duration>,
    /// At least one.
    pub(crate) rounds: &'a [Round],
    /// Whether a fault that was asked for may have been missed.
    pub(crate) missed_fault: MissedFault,
    /// The inputs that were not drawn.
    pub(crate) inputs: &'a [GivenInput],
    pub(crate) outputs: &'a [WrittenOutput<'a>],
    /// What the tasks called.
    pub(crate) kernels: &'a KernelSet,
    /// All that the tasks wrote, if that was asked for.
    pub(crate) dump: Option<WrittenDump<'a>>,
    /// The traced run, and its file.
    pub(crate) trace: Option<WrittenTrace<'a>>,
    /// The traced run, to be shown.
    pub(crate) chart: Option<&'a Trace>,
}

impl Summary<'_> {
    /// Whether every round gave the right result.
    pub(crate) fn exit(&self) -> Exit {
        if self.wrong_rounds() > 0 || self.missed_fault() {
            return Exit::Wrong;
        }
        if self.unwritten().next().is_some() { Exit::Internal } else { Exit::Pass }
    }

    /// Why files are missing.
    pub(crate) fn unwritten(&self) -> impl Iterator<Item = &Failure> {
        let trace = self.trace.as_ref().and_then(|trace| trace.unwritten.as_ref());
        let dump = self.dump.as_ref().and_then(|dump| dump.unwritten.as_ref());
        let first = trace.into_iter().chain(dump);
        first.chain(self.outputs.iter().filter_map(|output| output.unwritten.as_ref()))
    }

    /// Whether the run should have been disturbed, and was not. A fault happens once, in one of the rounds.
    fn missed_fault(&self) -> bool {
        self.missed_fault == MissedFault::Fails
            && self.virtual_run().is_some_and(|run| run.missed_fault())
    }

    fn wrong_rounds(&self) -> usize {
        self.rounds.iter().filter(|round| !round.passed()).count()
    }

    /// The verdict on the first wrong round, or on the last one.
    fn verdict(&self) -> Option<&Verdict> {
        let mut verdicts = self.rounds.iter().filter_map(|round| round.verdict.as_ref());
        verdicts.clone().find(|verdict| !verdict.passed()).or_else(|| verdicts.next_back())
    }

    /// The reports from the fastest round to the slowest.
    fn reports(&self) -> Vec<&RunReport> {
        let mut reports: Vec<_> = self.rounds.iter().map(|round| &round.report).collect();
        reports.sort_by_key(|report| report.makespan);
        reports
    }

    /// The first round that failed, or the one in which the fault happened, or the last one; if it was hosted in virtual
    /// time.
    fn virtual_run(&self) -> Option<VirtualRun<'_>> {
        let of = |round| VirtualRun::of(round, self.variant, self.wanted);
        let failed = self.rounds.iter().find(|round| !round.passed());
        let disturbed = || self.rounds.iter().find(|round| round.was_disturbed());
        of(failed.or_else(disturbed).or(self.rounds.last())?)
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
        row("runtime", self.runtime());
        row("device", self.device_line());
        let params: Vec<_> =
            self.params.iter().map(|(name, value)| self.param_text(name, value)).collect();
        for (index, line) in filled(&params).into_iter().enumerate() {
            row(if index == 0 { "parameters" } else { "" }, line);
        }
        if let Some(kernels) = self.kernels.text() {
            row("kernels", kernels);
        }
        if let Some(time) = self.build_time {
            row("host build", duration(time));
        }
        if let Some(times) = self.start_times {
            row("start", start(&times));
        }
        let reports = self.reports();
        // Of an even number the slower one of the two in the middle.
        if let Some(median) = reports.get(reports.len() / 2) {
            let kernels = counted(median.kernels, "kernel");
            row("tasks", format!("{}, of {kernels}", grouped(median.tasks)));
            let [aic, aiv] = median.parts_run.map(grouped);
            let parts = grouped(median.parts_run.iter().sum());
            row("parts", format!("{parts} ({aic} AIC, {aiv} AIV)"));
            let satisfied = grouped(median.edges_satisfied);
            row("edges", format!("{} ({satisfied} satisfied when added)", grouped(median.edges)));
            row("makespan", makespan(&reports, median));
            let virtual_run = self.virtual_run();
            if virtual_run.is_none() {
                if let Some(graph) = median.graph() {
                    row("graph", duration(graph));
                }
                row("throughput", format!("{} tasks/s", rate(median.tasks_per_second())));
            }
            row("utilisation", utilisation(median));
            virtual_run
                .iter()
                .flat_map(VirtualRun::rows)
                .for_each(|[name, value]| row(&name, value));
        }
        if let Some([time, shares]) = self.prediction.map(Prediction::text) {
            row("device time", time);
            row("", shares);
        }
        if let Some(stream) = reports.last().and_then(|report| report.stream.as_ref()) {
            for (index, line) in filled(&rings(stream)).into_iter().enumerate() {
                row(if index == 0 { "rings" } else { "" }, line);
            }
        }
        for [name, value] in self.rounds.last().map_or(Vec::new(), |round| facts(&round.facts)) {
            row(&name, value);
        }
        for (index, warning) in self.inputs.iter().filter_map(GivenInput::warning).enumerate() {
            row(if index == 0 { "inputs" } else { "" }, warning);
        }
        row("check", self.check());
        if let Some(nans) = self.verdict().and_then(nans) {
            row("", nans);
        }
        if self.missed_fault() {
            let what = "FAIL, the fault did not happen: name a task that the core has";
            row("", format!("{what}, or add --allow-missed-fault"));
        }
        for WrittenOutput { name, path, unwritten } in self.outputs {
            let what = if unwritten.is_some() { "NOT WRITTEN" } else { "written" };
            row(what, format!("{name} to {}", path.display()));
        }
        if let Some(dump) = &self.dump {
            row(if dump.unwritten.is_some() { "NOT WRITTEN" } else { "dump" }, dump.text());
        }
        match &self.trace {
            None => {}
            Some(WrittenTrace { path, unwritten: Some(_), .. }) => {
                row("NOT WRITTEN", format!("the timeline to {}", path.display()));
            }
            Some(WrittenTrace { trace, path, unwritten: None }) => {
                row("timeline", format!("{}{}", path.display(), dropped(trace)));
                let path = replay::quoted(path.as_os_str());
                row("", format!("pto view {path}; pto analyze {path}"));
            }
        }
        if self.exit() != Exit::Pass && self.virtual_run().is_some() {
            rows.push(vec!["replay".to_owned(), replay::this_command()]);
        }
        let chart = self.chart.map(|trace| format!("\n{}", chart(trace)));
        format!("{}\n\n{}{}", self.example, table(&rows, &[]), chart.unwrap_or_default())
    }

    fn runtime(&self) -> String {
        let mode = match self.variant {
            RuntimeVariant::HOST_BUILD_GRAPH => String::new(),
            _ => format!(", {}", self.options.build_mode),
        };
        format!("{}{mode}, {} fanout", self.variant, self.options.fanout)
    }

    fn device_line(&self) -> String {
        let [aic, aiv] = [CoreKind::AIC, CoreKind::AIV].map(|kind| self.wanted.cores(kind));
        let aicpu = self.options.aicpu_instances;
        let (gm, hosting) = (bytes(self.wanted.gm_bytes()), self.wanted.hosting());
        format!("{}, {aicpu} AICPU, {aic} AIC, {aiv} AIV, {gm}, {hosting}", self.device)
    }

    fn check(&self) -> String {
        let Some(verdict) = self.verdict() else { return "none: kernels were left out".to_owned() };
        if verdict.checked == 0 {
            return "none: nothing says what is right; --expect NAME=FILE.npy does".to_owned();
        }
        let checked = counted(verdict.checked, "value");
        if verdict.passed() {
            return match verdict.tolerance {
                _ if verdict.nans.expected >= verdict.checked => {
                    format!("PASS, none of {checked} is a number, as the reference says")
                }
                0.0 if verdict.largest_error == 0.0 => format!("PASS, {checked}, exact"),
                _ => format!("PASS, {}, {checked}", errors(verdict)),
            };
        }
        let rounds = match self.rounds.len() {
            1 => String::new(),
            rounds => format!(" in {} of {rounds} rounds", self.wrong_rounds()),
        };
        let mut text = format!("FAIL{rounds}, {} of {checked} wrong", grouped(verdict.wrong));
        if verdict.tolerance > 0.0 {
            text += &format!(", {}", errors(verdict));
        }
        if let Some(position) = &verdict.position {
            text += &format!("; {position}");
        }
        text
    }

    /// A parameter, for people: the number that is meant, where a whole number encodes it.
    fn param_text(&self, name: &str, value: u64) -> String {
        let meant = self.params.meant(name);
        meant.map_or_else(|| format!("{name} {value}"), |meant| format!("{name} {meant}"))
    }

    fn param_json(&self, name: &str, value: u64) -> Value {
        self.params.meant(name).map_or_else(|| json!(value), |meant| json!(meant))
    }

    /// For programs. Times in nanoseconds; numbers that JSON cannot say are null.
    pub(crate) fn json(&self) -> Value {
        let reports = self.reports();
        let median = reports.get(reports.len() / 2);
        let span = |report: Option<&&RunReport>| report.map(|report| nanos(report.makespan));
        let params: serde_json::Map<_, _> = self
            .params
            .iter()
            .map(|(name, value)| (name.to_owned(), self.param_json(name, value)))
            .collect();
        let build_mode = self.variant.has_builder().then(|| self.options.build_mode.name());
        json!({
            "example": self.example,
            "runtime": self.variant.name(),
            "build_mode": build_mode,
            "fanout": self.options.fanout.name(),
            "device": {
                "name": self.device,
                "aicpu": self.options.aicpu_instances,
                "aic": self.wanted.cores(CoreKind::AIC),
                "aiv": self.wanted.cores(CoreKind::AIV),
                "gm_bytes": self.wanted.gm_bytes(),
                "hosting": self.wanted.hosting(),
                "start": self.start_times.map(start_json),
            },
            "params": params,
            "host_build_ns": self.build_time.map(nanos),
            "median": median.map(|report| round_json(report)),
            "makespan_ns": {
                "min": span(reports.first()),
                "median": span(median),
                "max": span(reports.last()),
            },
            "rounds": self.rounds.iter().map(|r| round_json(&r.report)).collect::<Vec<_>>(),
            "prediction": self.prediction.map(Prediction::json),
            "virtual": self.virtual_run().map(|run| run.json()),
            "replay": self.virtual_run().map(|_| replay::this_command()),
            "wrong_rounds": self.wrong_rounds(),
            "check": self.verdict().map(verdict_json),
            "inputs": self.inputs.iter().map(GivenInput::json).collect::<Vec<_>>(),
            "outputs": self.outputs.iter().map(|output| json!({
                "name": output.name,
                "file": output.path.display().to_string(),
                "error": output.unwritten.as_ref().map(Failure::message),
            })).collect::<Vec<_>>(),
            "dump": self.dump.as_ref().map(WrittenDump::json),
            "trace": self.trace.as_ref().map(|traced| json!({
                "file": traced.path.display().to_string(),
                "events_dropped": traced.trace.dropped(),
                "error": traced.unwritten.as_ref().map(Failure::message),
            })),
            "fault": Value::Null,
            "trace_hash": self.virtual_run().map(|run| run.trace_hash()),
        })
    }
}

/// Facts as rows. Those whose names begin with that of the first one stand below it, with the rest of their names.
fn facts(facts: &[(String, String)]) -> Vec<[String; 2]> {
    let first = facts.first().map_or("", |(name, _)| name);
    let row = |(name, value): &(String, String)| match name.strip_prefix(first) {
        Some(rest) if !rest.is_empty() => {
            [String::new(), format!("{}: {value}", rest.trim_start())]
        }
        _ => [name.clone(), value.clone()],
    };
    facts.iter().map(row).collect()
}

fn dropped(trace: &Trace) -> String {
    match trace.dropped() {
        0 => String::new(),
        count => format!(", INCOMPLETE: {} dropped", counted(count, "event")),
    }
}

fn start(times: &StartTimes) -> String {
    let (boot, guest) = (duration(times.boot), duration(times.guest_boot));
    let mut text = format!("boot {boot} ({guest} in the firmware)");
    for (what, time) in [("handshake", times.handshake), ("first task", times.first_task)] {
        if let Some(time) = time {
            text += &format!(", {what} {}", duration(time));
        }
    }
    text
}

fn start_json(times: StartTimes) -> Value {
    json!({
        "boot_ns": nanos(times.boot),
        "firmware_boot_ns": nanos(times.guest_boot),
        "handshake_ns": times.handshake.map(nanos),
        "first_task_ns": times.first_task.map(nanos),
    })
}

/// What is not a number in the result, or should not be; `None`: nothing.
fn nans(verdict: &Verdict) -> Option<String> {
    let Nans { found, expected } = verdict.nans;
    if (found, expected) == (0, 0) {
        return None;
    }
    let (found, expected) = (counted(found, "value"), grouped(expected));
    Some(format!("NaN: {found} of the result, {expected} of the reference"))
}

fn errors(verdict: &Verdict) -> String {
    let tolerance = verdict.tolerance;
    match verdict.largest_error {
        0.0 => format!("largest error 0, tolerance {tolerance:.1e}"),
        error => format!("largest error {error:.1e}, tolerance {tolerance:.1e}"),
    }
}

fn makespan(reports: &[&RunReport], median: &RunReport) -> String {
    let text = duration(median.makespan);
    match reports {
        [fastest, .., slowest] => {
            let [fastest, slowest] = [fastest, slowest].map(|report| duration(report.makespan));
            format!("{text} median of {} rounds, {fastest} to {slowest}", reports.len())
        }
        _ => text,
    }
}

fn utilisation(report: &RunReport) -> String {
    let kinds = CoreKind::ALL.iter().filter(|kind| report.cores[kind.index()] > 0);
    let percent = |kind: &CoreKind| {
        let name = kind.name().to_uppercase();
        format!("{name} {:.1} %", report.utilisation(*kind) * 100.0)
    };
    kinds.map(percent).collect::<Vec<_>>().join(", ")
}

/// The rings of a streaming run: the most that was in use of how much, and what was wanting.
fn rings(stream: &StreamReport) -> Vec<String> {
    let used = stream.rings.iter().filter(|ring| ring.high_water > 0);
    let tell = |ring: &RingUse| {
        let (most, all) = (grouped(ring.high_water), grouped(ring.capacity));
        let mut text = format!("{} {most} of {all} {}", ring.name, ring.unit);
        if ring.needed > 0 {
            text += &format!(" (needs {})", grouped(ring.needed));
        }
        if ring.waits > 0 {
            text += &format!(" (waited {} times)", grouped(ring.waits));
        }
        text
    };
    used.map(tell).collect()
}

fn ring_json(ring: &RingUse) -> Value {
    json!({
        "name": ring.name,
        "unit": ring.unit,
        "capacity": ring.capacity,
        "high_water": ring.high_water,
        "needed": ring.needed,
        "waits": ring.waits,
    })
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn round_json(report: &RunReport) -> Value {
    let [aic, aiv] = [CoreKind::AIC, CoreKind::AIV].map(|kind| {
        json!({
            "cores": report.cores[kind.index()],
            "parts": report.parts_run[kind.index()],
            "busy_ns": nanos(report.busy[kind.index()]),
            "utilisation": report.utilisation(kind),
        })
    });
    json!({
        "tasks": report.tasks,
        "kernels": report.kernels,
        "edges": report.edges,
        "edges_satisfied": report.edges_satisfied,
        "makespan_ns": nanos(report.makespan),
        "graph_ns": report.graph().map(nanos),
        "tasks_per_second": report.tasks_per_second(),
        "aic": aic,
        "aiv": aiv,
        "rings": report.stream.as_ref().map(|s| s.rings.iter().map(ring_json).collect::<Vec<_>>()),
    })
}

fn verdict_json(verdict: &Verdict) -> Value {
    let position = verdict.position.as_ref().map(|position| {
        json!({
            "tensor": position.tensor,
            "index": position.index,
            "found": position.found,
            "expected": position.expected,
        })
    });
    json!({
        "passed": verdict.passed(),
        "values": verdict.checked,
        "wrong": verdict.wrong,
        "nan": { "found": verdict.nans.found, "expected": verdict.nans.expected },
        "largest_error": verdict.largest_error,
        "tolerance": verdict.tolerance,
        "place": position,
    })
}

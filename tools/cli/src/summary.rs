//! What `pto run` says at the end: the same facts for people and for programs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pto_abi::{CoreKind, RuntimeVariant};
use pto_examples::host::{Params, Verdict};
use pto_host::{RingUse, RunOptions, RunReport, StartTimes, StreamReport};
use pto_timeline::Trace;
use serde_json::{Value, json};

use crate::device::Wanted;
use crate::errors::Exit;
use crate::replay;
use crate::run::Round;
use crate::text::{bytes, duration, filled, grouped, rate, table};
use crate::virtual_time::VirtualRun;

/// Everything that is known at the end of a run.
pub(crate) struct Summary<'a> {
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
    pub(crate) outputs: &'a [(String, PathBuf)],
    /// The recorded run, and its file.
    pub(crate) trace: Option<(&'a Trace, &'a Path)>,
    /// The recorded run, to be shown.
    pub(crate) chart: Option<&'a Trace>,
}

impl Summary<'_> {
    /// Whether every round gave the right result.
    pub(crate) fn exit(&self) -> Exit {
        if self.wrong_rounds() == 0 { Exit::Pass } else { Exit::Wrong }
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

    /// The first round that failed, or the last one, if it was hosted in virtual time.
    fn virtual_run(&self) -> Option<VirtualRun<'_>> {
        let failed = self.rounds.iter().find(|round| !round.passed());
        VirtualRun::of(failed.or(self.rounds.last())?, self.variant, self.wanted)
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
        row("runtime", self.runtime());
        row("device", self.device_line());
        let params: Vec<_> =
            self.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
        for (index, line) in filled(&params).into_iter().enumerate() {
            row(if index == 0 { "parameters" } else { "" }, line);
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
            let [aic, aiv] = median.tasks_run.map(grouped);
            row("tasks", format!("{} ({aic} AIC, {aiv} AIV)", grouped(median.tasks)));
            let satisfied = grouped(median.edges_satisfied);
            row("edges", format!("{} ({satisfied} satisfied when added)", grouped(median.edges)));
            row("makespan", makespan(&reports, median));
            let virtual_run = self.virtual_run();
            if virtual_run.is_none() {
                row("throughput", format!("{} tasks/s", rate(median.tasks_per_second())));
            }
            row("utilisation", utilisation(median));
            virtual_run
                .iter()
                .flat_map(VirtualRun::rows)
                .for_each(|[name, value]| row(&name, value));
        }
        if let Some(stream) = reports.last().and_then(|report| report.stream.as_ref()) {
            for (index, line) in filled(&rings(stream)).into_iter().enumerate() {
                row(if index == 0 { "rings" } else { "" }, line);
            }
        }
        row("check", self.check());
        for (name, path) in self.outputs {
            row("written", format!("{name} to {}", path.display()));
        }
        if let Some((trace, path)) = self.trace {
            rows.push(vec!["timeline".to_owned(), format!("{}{}", path.display(), dropped(trace))]);
            let next = format!("pto view {0}; pto analyze {0}", path.display());
            rows.push(vec![String::new(), next]);
        }
        if self.exit() != Exit::Pass && self.virtual_run().is_some() {
            rows.push(vec!["replay".to_owned(), replay::this_command()]);
        }
        let chart = self.chart.map(|trace| format!("\n{}", crate::view::chart(trace)));
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
        let checked = grouped(verdict.checked);
        if verdict.passed() {
            return match verdict.tolerance {
                0.0 if verdict.largest_error == 0.0 => format!("PASS, {checked} values are exact"),
                _ => format!("PASS, {}, {checked} values", errors(verdict)),
            };
        }
        let rounds = match self.rounds.len() {
            1 => String::new(),
            rounds => format!(" in {} of {rounds} rounds", self.wrong_rounds()),
        };
        let mut text =
            format!("FAIL{rounds}, {} of {checked} values are wrong", grouped(verdict.wrong));
        if verdict.tolerance > 0.0 {
            text += &format!(", {}", errors(verdict));
        }
        if let Some(place) = &verdict.place {
            text += &format!("; {place}");
        }
        text
    }

    /// For programs. Times in nanoseconds; numbers that JSON cannot say are null.
    pub(crate) fn json(&self) -> Value {
        let reports = self.reports();
        let median = reports.get(reports.len() / 2);
        let span = |report: Option<&&RunReport>| report.map(|report| nanos(report.makespan));
        let params: serde_json::Map<_, _> =
            self.params.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
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
            "virtual": self.virtual_run().map(|run| run.json()),
            "replay": self.virtual_run().map(|_| replay::this_command()),
            "wrong_rounds": self.wrong_rounds(),
            "check": self.verdict().map(verdict_json),
            "outputs": self.outputs.iter()
                .map(|(name, path)| json!({ "name": name, "file": path.display().to_string() }))
                .collect::<Vec<_>>(),
            "trace": self.trace.map(|(trace, path)| json!({
                "file": path.display().to_string(),
                "events_dropped": trace.dropped(),
            })),
            "exit_code": self.exit() as u8,
        })
    }
}

fn dropped(trace: &Trace) -> String {
    match trace.dropped() {
        0 => String::new(),
        count => format!(", INCOMPLETE: {} events were dropped", grouped(count)),
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
            "tasks": report.tasks_run[kind.index()],
            "busy_ns": nanos(report.busy[kind.index()]),
            "utilisation": report.utilisation(kind),
        })
    });
    json!({
        "tasks": report.tasks,
        "edges": report.edges,
        "edges_satisfied": report.edges_satisfied,
        "makespan_ns": nanos(report.makespan),
        "tasks_per_second": report.tasks_per_second(),
        "aic": aic,
        "aiv": aiv,
        "rings": report.stream.as_ref().map(|s| s.rings.iter().map(ring_json).collect::<Vec<_>>()),
    })
}

fn verdict_json(verdict: &Verdict) -> Value {
    let place = verdict.place.as_ref().map(|place| {
        json!({
            "tensor": place.tensor,
            "index": place.index,
            "found": place.found,
            "expected": place.expected,
        })
    });
    json!({
        "passed": verdict.passed(),
        "values": verdict.checked,
        "wrong": verdict.wrong,
        "largest_error": verdict.largest_error,
        "tolerance": verdict.tolerance,
        "place": place,
    })
}

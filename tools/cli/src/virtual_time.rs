//! `--hosting virtual`: its options, what a run in virtual time says of itself, and the command that repeats it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use pto_abi::{CoreKind, RuntimeVariant};
use pto_host::virtual_time::{
    Compute, Injection, KernelCosts, KindReport, LineModel, Profile, VirtualOptions, VirtualReport,
};
use serde_json::{Value, json};

use crate::device::Wanted;
use crate::errors::Failure;
use crate::replay;
use crate::run::Round;
use crate::text::{duration, grouped};

/// Options of `--hosting virtual`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Virtual time (--hosting virtual)")]
pub(crate) struct VirtualArgs {
    /// Decides every choice that hardware leaves open: the same seed and options give the same run, on every
    /// machine [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// What operations cost, and how many cores there are: a2a3, a5, ideal (everything but kernels is free), or a file
    /// like sim-shim/profiles/a2a3.toml [default: a2a3]
    #[arg(long, value_name = "PROFILE|FILE")]
    pub(crate) profile: Option<String>,
    /// What kernels cost: a time (5us), a range (5us..20us, drawn by seed and task), `model[:TIME]` (the PTO-ISA cost
    /// model; TIME for kernels that are not in it), or table:FILE (lines of `kernel = TIME`, one of them
    /// `default = TIME`) [default: model:5us]
    #[arg(long, value_name = "SPEC")]
    pub(crate) kernel_cost: Option<String>,
    /// What goes wrong, once: `NAME[=VALUE][:core=N][,task=N]`, where task counts those of the core, or of the builder;
    /// such as hang:core=3,task=1, slow=1000, doorbell-lost, status-delayed=1ms, builder-stops:task=8
    #[arg(long, value_name = "SPEC")]
    pub(crate) fault: Option<String>,
    /// Passes also if the fault of --fault did not happen
    #[arg(long, requires = "fault")]
    pub(crate) allow_missed_fault: bool,
    /// Leaves the kernels out: they only take their time, and the result is not checked
    #[arg(long)]
    pub(crate) no_compute: bool,
    /// Follows the lines of memory that dag_node and elementwise kernels read and write from cache to cache, and
    /// reports what a device without coherent caches would get wrong
    #[arg(long)]
    pub(crate) stale_lines: bool,
}

impl VirtualArgs {
    /// The first of them that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        // --allow-missed-fault stands with --fault only.
        let Self { seed, profile, kernel_cost, fault, no_compute, stale_lines, .. } = self;
        let given = [
            (seed.is_some(), "--seed"),
            (profile.is_some(), "--profile"),
            (kernel_cost.is_some(), "--kernel-cost"),
            (fault.is_some(), "--fault"),
            (*no_compute, "--no-compute"),
            (*stale_lines, "--stale-lines"),
        ];
        given.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name)
    }

    /// What they ask for.
    pub(crate) fn options(&self) -> Result<VirtualOptions, Failure> {
        let base = VirtualOptions::default();
        let seed = self.seed.unwrap_or(base.seed);
        let costs = self.kernel_cost.as_deref().map(|text| costs(text, seed));
        let injection = self.fault.as_deref().map(|text| {
            let parsed = text.parse::<Injection>();
            parsed.map_err(|error| Failure::usage(format!("--fault {text}: {error}")))
        });
        Ok(VirtualOptions {
            seed,
            profile: self.profile.as_deref().map_or(Ok(base.profile), profile)?,
            costs: costs.unwrap_or(Ok(base.costs))?,
            compute: if self.no_compute { Compute::Off } else { Compute::Run },
            lines: if self.stale_lines { LineModel::Results } else { LineModel::Handshake },
            injection: injection.transpose()?,
            keep: base.keep,
        })
    }
}

/// A built-in profile, or that of a file.
pub(crate) fn profile(name: &str) -> Result<&'static Profile, Failure> {
    if let Some(profile) = Profile::by_name(name) {
        return Ok(profile);
    }
    if !Path::new(name).exists() {
        return Err(Failure::usage(format!(
            "there is no profile and no file '{name}'; profiles are {}",
            Profile::NAMES.join(", ")
        )));
    }
    Profile::load(&read(name)?)
        .map_err(|error| Failure::usage(format!("cannot use '{name}': {error}")))
}

fn costs(text: &str, seed: u64) -> Result<KernelCosts, Failure> {
    let parsed = match text.strip_prefix("table:") {
        Some(name) => KernelCosts::table(&read(name)?),
        None => KernelCosts::parse(text, seed),
    };
    parsed.map_err(|error| Failure::usage(format!("--kernel-cost {text}: {error}")))
}

fn read(name: &str) -> Result<String, Failure> {
    fs::read_to_string(name)
        .map_err(|error| Failure::internal(format!("cannot read '{name}': {error}")))
}

/// A run in virtual time, as it is told.
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

    /// The hash of the run's trace, as it is told.
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
                "{name} {:.1} % of the makespan ({:.1} % of core time{unfit})",
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
        let aicpu = report.aicpu_ns_per_task(self.builders);
        row("AICPU", format!("{aicpu:.0} ns a task in schedulers"));
        if let Some(injection) = self.options.injection {
            row("fault", told(&injection, report));
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
            let KindReport { cores, tasks, busy_ns, time } = *self.kind(kind);
            json!({
                "cores": cores,
                "tasks": tasks,
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
            "aicpu_ns_per_task": report.aicpu_ns_per_task(self.builders),
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
        let aicpu = self.report.aicpu_ns_per_task(self.builders);
        [
            ("trace hash", format!("{:016x}", self.report.trace_hash)),
            ("AICPU", format!("{aicpu:.0} ns a task in schedulers")),
        ]
    }
}

fn told(injection: &Injection, report: &VirtualReport) -> String {
    match report.injections {
        0 if injection.trouble.is_builders() => {
            format!("{injection} did NOT happen: the program has no such task")
        }
        0 => format!("{injection} did NOT happen: the core had no such task"),
        _ => format!("{injection} happened"),
    }
}

/// What a run that failed says beside its fault, if it was one in virtual time.
pub(crate) fn tell_failed(failure: Failure, options: Option<&VirtualOptions>) -> Failure {
    let Some(options) = options.filter(|_| failure.is_fault()) else { return failure };
    let mut sentences = Vec::new();
    if let Some(report) = failure.virtual_report() {
        let injected = options.injection.map(|injection| told(&injection, report));
        sentences.extend(injected.map(|told| format!("Injected: {told}.")));
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

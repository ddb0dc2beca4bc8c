//! `--predict`: what the same run takes on a device, as the machine in virtual time has it, and what bounds it there.

use pto_abi::{CoreKind, RuntimeVariant};
use pto_examples::host::{Inputs, Params, Prepared};
use pto_host::timeline::Bottleneck;
use pto_host::virtual_time::{KindReport, VirtualOptions, VirtualReport};
use pto_host::{DeviceOptions, Hosting, RunOptions};
use serde_json::{Value, json};

use crate::device::Wanted;
use crate::errors::Failure;
use crate::progress::Phase;
use crate::target::Target;
use crate::text::duration;
use crate::virtual_report::virtual_report;

/// What a run takes on a device.
pub(crate) struct Prediction {
    options: VirtualOptions,
    report: Box<VirtualReport>,
    /// AICPU instances that only build.
    builders: usize,
}

/// What may bound a run, and which part of its time it takes at least.
type Share = (Bottleneck, f64);

/// Runs the work once more, in virtual time, on as many cores.
pub(crate) fn predict(
    target: &Target,
    params: &Params,
    inputs: &Inputs,
    wanted: &Wanted,
    variant: RuntimeVariant,
    base: &RunOptions,
) -> Result<Prediction, Failure> {
    let _phase = Phase::begin("predicting", 1);
    let options = VirtualOptions::default();
    let [aic, aiv] = [CoreKind::AIC, CoreKind::AIV].map(|kind| wanted.cores(kind));
    let hosting = Hosting::Virtual(options);
    let device = DeviceOptions { aic, aiv, gm_bytes: wanted.gm_bytes(), hosting };
    let run = |_: &Prepared| RunOptions { trace: None, ..*base };
    let report = virtual_report(target, (params, inputs), (device, variant), run)?;
    Ok(Prediction::new(options, report, usize::from(variant.has_builder())))
}

/// What a core of a kind spends, in the mean, from doorbells to the starts of kernels, and between the kernels of chains.
fn start_up_ns(kind: &KindReport) -> u64 {
    let starting = kind.time.occupied_core_ns.saturating_sub(kind.busy_ns);
    starting.checked_div(kind.cores.into()).unwrap_or(0)
}

impl Prediction {
    /// What a report of virtual time says.
    pub(crate) const fn new(
        options: VirtualOptions,
        report: Box<VirtualReport>,
        builders: usize,
    ) -> Self {
        Self { options, report, builders }
    }

    /// Which part of the time each of them takes at least; the largest first.
    fn shares(&self) -> Vec<Share> {
        let report = &self.report;
        let share = |ns: u64| {
            if report.makespan_ns == 0 { 0.0 } else { ns as f64 / report.makespan_ns as f64 }
        };
        let worked = |instances: &[pto_host::virtual_time::InstanceReport]| {
            share(instances.iter().map(|instance| instance.worked_ns).max().unwrap_or(0))
        };
        let (builders, schedulers) =
            report.instances.split_at(self.builders.min(report.instances.len()));
        let cores = report.kinds.iter().map(|kind| kind.work_bound_ns()).max().unwrap_or(0);
        let start_up = report.kinds.iter().map(start_up_ns).max().unwrap_or(0);
        let mut shares = vec![
            (Bottleneck::Schedulers, worked(schedulers)),
            (Bottleneck::Cores, share(cores)),
            (Bottleneck::CriticalPath, share(report.critical_path_ns)),
            (Bottleneck::StartUp, share(start_up)),
        ];
        if self.builders > 0 {
            shares.insert(0, (Bottleneck::Builder, worked(builders)));
        }
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        shares
    }

    /// For people.
    pub(crate) fn text(&self) -> [String; 2] {
        let makespan = duration(std::time::Duration::from_nanos(self.report.makespan_ns));
        let shares = self.shares();
        let bound = shares.first().map_or(String::new(), |(by, _)| {
            format!(", bound by the {}: {}", by.name(), by.change())
        });
        let shares_text: Vec<_> = shares
            .iter()
            .map(|(by, share)| format!("{} {:.0} %", by.name(), share * 100.0))
            .collect();
        [
            format!("{makespan} on profile {}{bound}", self.options.profile.name),
            format!("busy for at least: {}", shares_text.join(", ")),
        ]
    }

    /// What the run takes at least, where cores of each kind take so long for transfers together; and how many times the largest of that it takes.
    pub(crate) fn bounds(&self, transfers_ns: [u64; CoreKind::COUNT]) -> String {
        let report = &self.report;
        let of_kinds = |of: fn(&KindReport, u64) -> u64| {
            let kinds = report.kinds.iter().zip(transfers_ns);
            kinds.map(|(kind, transfers_ns)| of(kind, transfers_ns)).max().unwrap_or(0)
        };
        let cores_ns = of_kinds(|kind, _| kind.work_bound_ns());
        let memory_ns = of_kinds(|kind, all_ns| all_ns.checked_div(kind.cores.into()).unwrap_or(0));
        let bounds_ns = [report.critical_path_ns, cores_ns, memory_ns];
        let largest_ns = bounds_ns.into_iter().max().unwrap_or(0).max(1);
        let [path, cores, memory] =
            bounds_ns.map(|ns| duration(std::time::Duration::from_nanos(ns)));
        let times = report.makespan_ns as f64 / largest_ns as f64;
        format!(
            "critical path {path}, cores {cores}, memory {memory}; the run takes {times:.2} times the largest"
        )
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let shares = self.shares();
        let of =
            |wanted: Bottleneck| shares.iter().find(|(by, _)| *by == wanted).map(|share| share.1);
        json!({
            "profile": self.options.profile.name,
            "makespan_ns": self.report.makespan_ns,
            "bound_by": shares.first().map(|(by, _)| by),
            "builder": of(Bottleneck::Builder),
            "schedulers": of(Bottleneck::Schedulers),
            "cores": of(Bottleneck::Cores),
            "critical_path": of(Bottleneck::CriticalPath),
            "start_up": of(Bottleneck::StartUp),
        })
    }
}

//! `pto run EXAMPLE --group ..`: the same program on every device of a group, each result checked against the reference.

use std::time::Duration;

use pto_examples::host::{self, Example, Inputs, Member, Nans, Params, Prepared, Tensor, Verdict};
use pto_host::group::{GroupOptions, GroupReport, GroupTarget, GroupWork};
use pto_host::{DeviceOptions, RunOptions};
use serde_json::{Value, json};

use super::open::{Opened, cores};
use crate::args::{DeviceChoice, RunArgs};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::program::example;
use crate::replay;
use crate::request::request;
use crate::text::{bytes, counted, duration, grouped};

/// Runs an example on a group.
pub(crate) fn run(args: &RunArgs, target: &GroupTarget) -> Result<Exit, Failure> {
    refuse_others(args)?;
    let example = example(&args.example)?;
    if !example.is_for_groups() {
        let names = host::EXAMPLES.iter().filter(|one| one.is_for_groups()).map(|one| one.name());
        return Err(Failure::usage(format!(
            "'{}' is a program for one device; leave --group out, or take one of {}",
            example.name(),
            names.collect::<Vec<_>>().join(", ")
        )));
    }
    let (params, inputs) = request(example, &args.params, &args.inputs)?;
    let options = GroupOptions { device: device(args, target), ..GroupOptions::default() };
    let mut job = Job::new(Opened::open(target, &options)?, example, &params, &inputs)?;
    let told = job.run(args)?;
    let exit = if told.passed { Exit::Pass } else { Exit::Wrong };
    if !job.opened.is_teller() {
        return Ok(exit);
    }
    answer(Form::from(args.json), exit, || told.text(example), || told.json(example))
}

/// Options that belong to a run of one device.
fn refuse_others(args: &RunArgs) -> Result<(), Failure> {
    let own = [
        ("--device", args.device != DeviceChoice::A2a3sim),
        ("--pool-threads", args.pool_threads.is_some()),
        ("--hosting", args.hosting.is_some()),
    ];
    let mut options = own.into_iter().chain(args.of_one_graph());
    let given = options.find(|(_, is_given)| *is_given).map(|(option, _)| option);
    match given.or_else(|| args.virtual_time.given()) {
        Some(option) => Err(Failure::usage(format!(
            "{option} is for a run of one device; leave it out, or leave --group out"
        ))),
        None => Ok(()),
    }
}

/// Each device of the group.
fn device(args: &RunArgs, target: &GroupTarget) -> DeviceOptions {
    let (base, (aic, aiv)) = (GroupOptions::default().device, cores(target));
    DeviceOptions {
        aic: args.aic.unwrap_or(aic),
        aiv: args.aiv.unwrap_or(aiv),
        gm_bytes: args.gm_bytes.unwrap_or(1 << 30),
        ..base
    }
}

/// An example on the members of this process.
struct Job {
    opened: Opened,
    prepared: Vec<Prepared>,
}

/// What came of it, of all ranks.
struct Told {
    place: String,
    ranks: u32,
    passed: bool,
    verdicts: Vec<(u32, Verdict)>,
    report: GroupReport,
    digest: u64,
}

impl Job {
    fn new(
        opened: Opened,
        example: &dyn Example,
        params: &Params,
        inputs: &Inputs,
    ) -> Result<Self, Failure> {
        let size = opened.group.size();
        let prepare = |member: &pto_host::group::Member| {
            let of = Member { rank: member.rank(), size };
            example.prepare_member(of, params, inputs, member.device())
        };
        let prepared = opened.group.members().iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { opened, prepared })
    }

    fn run(&mut self, args: &RunArgs) -> Result<Told, Failure> {
        for prepared in &mut self.prepared {
            prepared.reset()?;
        }
        let options = self.options(args);
        let first = self.opened.group.members().first().map_or(0, |member| member.rank());
        let own = self.prepared.iter().map(|prepared| prepared.orch_args().to_vec());
        let own: Vec<Vec<u64>> = own.collect();
        let words = |rank: u32| own.get((rank - first) as usize).cloned().unwrap_or_default();
        let builder = self.prepared.first().map_or("", Prepared::builder);
        let work = GroupWork { builder, args: &words };
        let report = self.opened.group.run(&work, &options).map_err(Failure::from);
        let report = report.map_err(|failure| match args.group {
            Some(GroupTarget::Virtual(..)) => failure.replayed_by(replay::this_command()),
            _ => failure,
        })?;
        self.judge(report)
    }

    /// Every member's result, and those of the other processes.
    fn judge(&mut self, report: GroupReport) -> Result<Told, Failure> {
        let (mut verdicts, mut digest) = (Vec::new(), 0_u64);
        let ranks = self.opened.group.members().iter().map(pto_host::group::Member::rank);
        for (rank, prepared) in ranks.zip(&mut self.prepared) {
            let verdict = prepared.verify()?;
            for (_, tensor) in prepared.outputs()? {
                digest = digest.wrapping_add(digest_of(rank, &tensor));
            }
            verdicts.push((rank, verdict));
        }
        let here = verdicts.iter().all(|(_, verdict)| verdict.passed());
        let passed = self.opened.exchange(u64::from(here))?.iter().all(|word| *word == 1);
        let digests = self.opened.exchange(digest)?;
        let digest = digests.iter().fold(0_u64, |sum, one| sum.wrapping_add(*one));
        let (place, ranks) = (self.opened.place(), self.opened.group.size());
        Ok(Told { place, ranks, passed, verdicts, report, digest })
    }

    /// A window that holds the whole program of the rank with the most tasks.
    fn options(&self, args: &RunArgs) -> RunOptions {
        let largest = self.prepared.iter().map(Prepared::capacities);
        let largest = largest.max_by_key(|capacities| capacities.tasks).unwrap_or_default();
        RunOptions {
            capacities: largest.streamed_whole(),
            aicpu_instances: args.aicpu.unwrap_or(2),
            task_budget: args.task_budget_ms,
            stall_budget: args.stall_budget_ms,
            bring_up_budget: args.bring_up_budget_ms,
            run_budget: args.run_budget_ms,
            ..RunOptions::default()
        }
    }
}

/// A number of the bits of a rank's output. The sum over the ranks does not depend on where they run.
fn digest_of(rank: u32, tensor: &Tensor) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(rank);
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    tensor.bytes().into_iter().fold(start, step)
}

impl Told {
    fn text(&self, example: &dyn Example) -> String {
        let verdict = if self.passed { "passed" } else { "WRONG" };
        let transfers = self.report.transfers();
        let mut text = format!("{} on {}: {verdict}\n", example.name(), self.place);
        for (rank, verdict) in &self.verdicts {
            let ran = self.report.ranks.iter().find(|one| one.rank == *rank);
            let (tasks, time) =
                ran.map_or((0, Duration::ZERO), |one| (one.run.tasks, one.run.makespan));
            text += &format!(
                "  rank {rank}: {} in {}, {} checked, {} wrong\n",
                counted(tasks, "task"),
                duration(time),
                counted(verdict.checked, "value"),
                grouped(verdict.wrong)
            );
            let nans = verdict.nans;
            if nans != Nans::default() {
                text += &format!(
                    "    NaN: {} of the result, {} of the reference\n",
                    counted(nans.found, "value"),
                    grouped(nans.expected)
                );
            }
            if let Some(place) = verdict.place.as_ref().filter(|_| !verdict.passed()) {
                text += &format!("    {place}\n");
            }
        }
        text += &format!(
            "  {} transfers, {} sent; digest of the results {:016x}\n",
            grouped(transfers.transfers),
            bytes(transfers.bytes_given),
            self.digest
        );
        text
    }

    fn json(&self, example: &dyn Example) -> Value {
        let ranks = self.verdicts.iter().map(|(rank, verdict)| {
            let ran = self.report.ranks.iter().find(|one| one.rank == *rank);
            let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            json!({
                "rank": rank,
                "tasks": ran.map_or(0, |one| one.run.tasks),
                "makespan_ns": ran.map_or(0, |one| nanoseconds(one.run.makespan)),
                "values": verdict.checked,
                "wrong": verdict.wrong,
                "nan": { "found": verdict.nans.found, "expected": verdict.nans.expected },
                "passed": verdict.passed(),
            })
        });
        let transfers = self.report.transfers();
        json!({
            "example": example.name(),
            "group": self.place,
            "ranks": self.ranks,
            "passed": self.passed,
            "digest": format!("{:016x}", self.digest),
            "transfers": transfers.transfers,
            "bytes_sent": transfers.bytes_given,
            "ranks_of_this_process": ranks.collect::<Vec<_>>(),
        })
    }
}

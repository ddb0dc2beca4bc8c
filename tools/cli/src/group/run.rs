//! `pto run EXAMPLE --group ..`: the same program on every device of a group, each result checked against the reference.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pto_examples::host::{
    self, Example, GroupRank, Inputs, Nans, Params, Prepared, Tensor, Verdict,
};
use pto_host::group::{
    ContributionReport, GroupError, GroupOptions, GroupReport, GroupTarget, GroupWork, clock_ns,
};
use pto_host::timeline::{Trace, ranks};
use pto_host::virtual_time::{Compute, KernelCosts, Profile, VirtualOptions};
use pto_host::{DeviceOptions, Error, Hosting, RunOptions};
use serde_json::{Value, json};

use super::explored::Explored;
use super::open::{Opened, cores};
use crate::args::{DeviceChoice, RunArgs, VirtualArgs};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::{answer, answer_with_failures};
use crate::output_file;
use crate::program::NamedProgram;
use crate::replay;
use crate::request::request;
use crate::text::{bytes, counted, duration, grouped};
use crate::timeline;

/// Runs an example on a group.
pub(crate) fn run(args: &RunArgs, target: &GroupTarget) -> Result<Exit, Failure> {
    refuse_others(args, target)?;
    let example: &dyn Example = match NamedProgram::find(&args.example)? {
        NamedProgram::Example(example) => example,
        NamedProgram::Workload(file) => file,
        NamedProgram::Graph(_) => {
            return Err(Failure::usage("a graph file is for one device; leave --group out"));
        }
    };
    if !example.is_for_groups() {
        let names = host::EXAMPLES.iter().filter(|one| one.is_for_groups()).map(|one| one.name());
        return Err(Failure::usage(format!(
            "'{}' is a program for one device; leave --group out, or take a workload whose processes are on ranks, or one of {}",
            example.name(),
            names.collect::<Vec<_>>().join(", ")
        )));
    }
    args.trace.as_deref().map_or(Ok(()), |path| output_file::check_form(path, "json"))?;
    let (params, inputs) = request(example, &args.params, &args.inputs)?;
    let options = GroupOptions { device: device(args, target), ..GroupOptions::default() };
    let mut job = GroupJob::new(Opened::open(target, &options)?, example, &params, &inputs)?;
    if let Some(runs) = args.explore {
        return job.explore(args, runs.get(), example.name());
    }
    let mut summary = job.run(args)?;
    let written =
        args.trace.as_deref().map(|path| job.write_timeline(&mut summary.report, path, args));
    // Whatever becomes of the file, the result is summary.
    let unwritten = match written.transpose() {
        Ok(timelines) => {
            summary.timelines = timelines;
            None
        }
        Err(unwritten) => Some(unwritten),
    };
    let exit = match (summary.passed, &unwritten) {
        (false, _) => Exit::Wrong,
        (true, Some(_)) => Exit::Internal,
        (true, None) => Exit::Pass,
    };
    if !job.opened.is_teller() {
        return unwritten.map_or(Ok(exit), Err);
    }
    let unwritten: Vec<_> = unwritten.iter().collect();
    let form = Form::from(args.json);
    answer_with_failures(form, exit, &unwritten, || summary.text(example), || summary.json(example))
}

/// Options that belong to a run of one device.
fn refuse_others(args: &RunArgs, target: &GroupTarget) -> Result<(), Failure> {
    let own = [
        ("--device", args.device != DeviceChoice::A2a3sim),
        ("--pool-threads", args.pool_threads.is_some()),
        ("--hosting", args.hosting.is_some()),
    ];
    let of_one_graph = args.of_one_graph().filter(|(option, _)| *option != "--trace");
    let mut options = own.into_iter().chain(of_one_graph);
    let given = options.find(|(_, is_given)| *is_given).map(|(option, _)| option);
    // Virtual time can leave the computation out of a group as well.
    let is_virtual = matches!(target, GroupTarget::Virtual(..));
    let of_virtual = VirtualArgs { no_compute: false, ..args.virtual_time.clone() };
    let of_virtual = if is_virtual { of_virtual } else { args.virtual_time.clone() };
    let explores = args.explore.is_some();
    if explores && !is_virtual {
        return Err(Failure::usage(
            "--explore chooses which transfer arrives next, which virtual time can; use --group virtual:N",
        ));
    }
    let unexplored_options =
        [("--trace", args.trace.is_some()), ("--no-compute", args.virtual_time.no_compute)];
    if let Some((option, _)) =
        unexplored_options.into_iter().find(|(_, is_given)| explores && *is_given)
    {
        return Err(Failure::usage(format!(
            "{option} is for one run, and --explore makes many; leave one of them out"
        )));
    }
    match given.or_else(|| of_virtual.given()) {
        Some(option) => Err(Failure::usage(format!(
            "{option} is for a run of one device; leave it out, or leave --group out"
        ))),
        None => Ok(()),
    }
}

/// Each device of the group.
fn device(args: &RunArgs, target: &GroupTarget) -> DeviceOptions {
    let (usual, (aic, aiv)) = (GroupOptions::default().device.hosting, cores(target));
    let compute = Compute::Contributions;
    let follows = Hosting::Virtual(VirtualOptions { compute, ..VirtualOptions::default() });
    // Between two arrivals every rank comes to rest, so that nothing takes long.
    let (profile, costs) = (Profile::ideal(), KernelCosts::Constant(0));
    let explores = Hosting::Virtual(VirtualOptions { profile, costs, ..VirtualOptions::default() });
    DeviceOptions {
        hosting: match (args.explore, args.virtual_time.no_compute) {
            (Some(_), _) => explores,
            (None, true) => follows,
            (None, false) => usual,
        },
        aic: args.aic.unwrap_or(aic),
        aiv: args.aiv.unwrap_or(aiv),
        gm_bytes: args.memory.unwrap_or(1 << 30),
    }
}

/// An example on the members of this process.
struct GroupJob {
    opened: Opened,
    prepared: Vec<Prepared>,
    /// What the clock of this process was at when all ranks met before the run; zero where they have one clock.
    met_ns: u64,
}

/// What came of it, of all ranks.
struct GroupSummary {
    group_name: String,
    ranks: u32,
    passed: bool,
    verdicts: Vec<(u32, Verdict)>,
    report: GroupReport,
    /// Of the bits of all results, if they were computed.
    digest: Option<u64>,
    /// Where the timelines are, in words, if they were asked for.
    timelines: Option<String>,
}

impl GroupJob {
    fn new(
        opened: Opened,
        example: &dyn Example,
        params: &Params,
        inputs: &Inputs,
    ) -> Result<Self, Failure> {
        let size = opened.group.size();
        let prepare = |member: &pto_host::group::RankDevice| {
            let of = GroupRank { rank: member.rank(), size };
            example.prepare_member(of, params, inputs, member.device())
        };
        let prepared = opened.group.members().iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { opened, prepared, met_ns: 0 })
    }

    fn run(&mut self, args: &RunArgs) -> Result<GroupSummary, Failure> {
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
        if options.trace.is_some() && self.opened.mpi().is_some() {
            // Clocks of several processes have this moment in common.
            self.opened.exchange(0)?;
            self.met_ns = clock_ns();
        }
        let report = self.opened.group.run(&work, &options);
        let report = report.map_err(|error| self.failed(error, args));
        let report = report.map_err(|failure| match args.group {
            Some(GroupTarget::Virtual(..)) => failure.replayed_by(replay::this_command()),
            _ => failure,
        })?;
        self.judge(report)
    }

    /// Runs the example in every order in which its transfers can arrive, and reports what has been found.
    fn explore(mut self, args: &RunArgs, runs: u64, example: &str) -> Result<Exit, Failure> {
        let options = self.options(args);
        let own: Vec<Vec<u64>> =
            self.prepared.iter().map(|prepared| prepared.orch_args().to_vec()).collect();
        let words = |rank: u32| own.get(rank as usize).cloned().unwrap_or_default();
        let builder = self.prepared.first().map_or("", Prepared::builder);
        let prepared = &mut self.prepared;
        let found = self.opened.group.explore(runs, |group| {
            let text = |error: &dyn std::fmt::Display| error.to_string();
            prepared.iter_mut().try_for_each(Prepared::reset).map_err(|error| text(&error))?;
            let ran = group.run(&GroupWork { builder, args: &words }, &options);
            ran.map_err(|error| text(&error))?;
            for (rank, prepared) in prepared.iter_mut().enumerate() {
                let verdict = prepared.verify().map_err(|error| text(&error))?;
                if !verdict.passed() {
                    let position =
                        verdict.position.map(|position| position.to_string()).unwrap_or_default();
                    return Err(format!("rank {rank}: {} wrong; {position}", verdict.wrong));
                }
            }
            Ok(())
        });
        let group_name = self.opened.describe();
        let explored = Explored { example, group_name, found: found.map_err(Failure::from)? };
        let exit = explored.exit();
        answer(Form::from(args.json), exit, || explored.text(), || explored.json())
    }

    /// Every member's result, and those of the other processes.
    fn judge(&mut self, report: GroupReport) -> Result<GroupSummary, Failure> {
        if let Some(found) = &report.contributions {
            let (passed, verdicts) = (found.wrong == 0, Vec::new());
            let (group_name, ranks) = (self.opened.describe(), self.opened.group.size());
            return Ok(GroupSummary {
                group_name,
                ranks,
                passed,
                verdicts,
                report,
                digest: None,
                timelines: None,
            });
        }
        let (mut verdicts, mut digest) = (Vec::new(), 0_u64);
        let ranks = self.opened.group.members().iter().map(pto_host::group::RankDevice::rank);
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
        let (group_name, ranks) = (self.opened.describe(), self.opened.group.size());
        let digest = Some(digest);
        Ok(GroupSummary { group_name, ranks, passed, verdicts, report, digest, timelines: None })
    }

    /// A run that failed: the timeline of the ranks of this process up to then is kept, if it was asked for.
    fn failed(&self, mut error: GroupError, args: &RunArgs) -> Failure {
        let mut traces = Vec::new();
        if let GroupError::Failed { failures } = &mut error {
            for failure in failures {
                if let Error::Fault { report, .. } = &mut failure.error {
                    traces.extend(report.trace.take().map(|trace| self.on_one_clock(*trace)));
                }
            }
        }
        let failure = Failure::from(error);
        let Ok(trace) = ranks::merge(&traces) else { return failure };
        let path = args.trace.as_deref().map(|path| self.file(path));
        let failure = failure.with_trace(trace);
        timeline::keep_in(failure, path.as_deref(), |trace| self.with_facts(trace, args))
    }

    /// Writes the timeline of all ranks of this process to a file; where it is, in words. Each process of an MPI job has a file of its own.
    fn write_timeline(
        &self,
        report: &mut GroupReport,
        path: &Path,
        args: &RunArgs,
    ) -> Result<String, Failure> {
        let traces = report.ranks.iter_mut().filter_map(|rank| rank.run.trace.take());
        let traces: Vec<Trace> = traces.map(|trace| self.on_one_clock(*trace)).collect();
        let (file, trace) = (
            self.file(path),
            match self.opened.mpi() {
                // `pto view` merges it with the others.
                Some(_) => traces.into_iter().next(),
                None => Some(ranks::merge(&traces).map_err(Failure::internal)?),
            },
        );
        let trace = trace.ok_or_else(|| {
            Failure::internal("the run has left no timeline; this is an error of the runtime")
        })?;
        timeline::write_run(&self.with_facts(trace, args), &file)?;
        Ok(match self.opened.mpi() {
            None => format!("the timeline of all ranks is in {}", file.display()),
            Some(_) => format!(
                "the timelines of the ranks are in {} and next to it; give all of them to `pto view`",
                file.display()
            ),
        })
    }

    /// The file of this process: `run.json` is `run.3.json` for rank 3 of an MPI job.
    fn file(&self, path: &Path) -> PathBuf {
        let member = self.opened.group.members().first().filter(|_| self.opened.mpi().is_some());
        let Some(member) = member else { return path.to_owned() };
        let extension = path.extension().unwrap_or_else(|| "json".as_ref()).to_string_lossy();
        path.with_extension(format!("{}.{extension}", member.rank()))
    }

    fn on_one_clock(&self, trace: Trace) -> Trace {
        Trace { began_ns: trace.began_ns.saturating_sub(self.met_ns), ..trace }
    }

    fn with_facts(&self, mut trace: Trace, args: &RunArgs) -> Trace {
        let params: Vec<_> =
            args.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let facts = [
            ("example", args.example.clone()),
            (
                "parameters",
                if params.is_empty() { "defaults".to_owned() } else { params.join(" ") },
            ),
            ("group", self.opened.describe()),
            ("pto", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        trace.run.extend(facts.map(|(name, fact)| (name.to_owned(), fact)));
        trace
    }

    /// A window that holds the whole program of the rank with the most tasks.
    fn options(&self, args: &RunArgs) -> RunOptions {
        let largest = self.prepared.iter().map(Prepared::capacities);
        let largest = largest.max_by_key(|capacities| capacities.tasks).unwrap_or_default();
        RunOptions {
            capacities: largest.streamed_whole(),
            aicpu_instances: args.aicpu.unwrap_or(2),
            trace: timeline::options(args),
            ..args.with_budgets(RunOptions::default())
        }
    }
}

/// A number of the bits of a rank's output. The sum over the ranks does not depend on where they run.
fn digest_of(rank: u32, tensor: &Tensor) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(rank);
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    tensor.bytes().into_iter().fold(start, step)
}

impl GroupSummary {
    fn text(&self, example: &dyn Example) -> String {
        let verdict = if self.passed { "passed" } else { "WRONG" };
        let transfers = self.report.transfers();
        let mut text = format!("{} on {}: {verdict}\n", example.name(), self.group_name);
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
            if let Some(position) = verdict.position.as_ref().filter(|_| !verdict.passed()) {
                text += &format!("    {position}\n");
            }
        }
        if let Some(found) = &self.report.contributions {
            text += &self.of_contributions(found);
        }
        text += &format!(
            "  {} transfers, {} sent",
            grouped(transfers.transfers),
            bytes(transfers.bytes_given)
        );
        text += &self.digest.map_or_else(
            || "; nothing was computed\n".to_owned(),
            |digest| format!("; digest of the results {digest:016x}\n"),
        );
        if let Some(timelines) = &self.timelines {
            text += &format!("  {timelines}\n");
        }
        text
    }

    /// What the collectives have left, where nothing was computed.
    fn of_contributions(&self, found: &ContributionReport) -> String {
        let (tasks, time) = (self.report.tasks(), self.report.makespan());
        let mut text = format!("  {} in {}\n", counted(tasks, "task"), duration(time));
        text += &match found.calls {
            0 => "  no collective calls that could be followed\n".to_owned(),
            calls => format!(
                "  {} of all ranks: {} followed, {} without the values of the right ranks\n",
                counted(calls, "collective call"),
                counted(found.elements, "element"),
                grouped(found.wrong)
            ),
        };
        for wrong in &found.found {
            text += &format!("    {wrong}\n");
        }
        if found.replayed > 0 {
            text += &format!("  not followed: {} in recordings\n", grouped(found.replayed));
        }
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
            "group": self.group_name,
            "ranks": self.ranks,
            "passed": self.passed,
            "digest": self.digest.map(|digest| format!("{digest:016x}")),
            "contributions": self.report.contributions.as_ref().map(contributions),
            "transfers": transfers.transfers,
            "bytes_sent": transfers.bytes_given,
            "ranks_of_this_process": ranks.collect::<Vec<_>>(),
        })
    }
}

fn contributions(found: &ContributionReport) -> Value {
    json!({
        "calls": found.calls,
        "elements": found.elements,
        "calls_in_recordings": found.replayed,
        "wrong": found.wrong,
        "found": found.found.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

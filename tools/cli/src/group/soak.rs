//! `pto soak --groups`: campaigns over groups in virtual time; a failure is a seed, a program of a few calls, and a command.

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use pto_host::group::soak::{self, FailedSeed, SoakReport};
use serde_json::{Value, json};

use crate::args::SoakArgs;
use crate::campaign::{self, Commands, GoOn, Kind, RankJob, SharedPhase, Tally};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::interrupt;
use crate::output::answer;
use crate::progress::Phase;
use crate::text::{duration, grouped, table};

const OF_GROUPS: Commands = Commands { which: "--groups" };

/// Runs a campaign over these seeds, or the one seed that is to be run again.
pub(crate) fn run(args: &SoakArgs, seeds: Range<u64>) -> Result<Exit, Failure> {
    if let Some(seed) = args.replay {
        return replay_seed(args, seed);
    }
    if let Some(mut job) = RankJob::join(args, seeds.clone(), "groups")? {
        return share(args, &mut job);
    }
    let start = Instant::now();
    let interrupted = interrupt::watch();
    let phase = Phase::begin("groups", args.seeds);
    let report = soak::soak(seeds.clone(), args.threads_alone(), |done| {
        phase.reach(done);
        if interrupted.has_come() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(phase);
    let go_on = interrupted.has_come().then(|| OF_GROUPS.go_on(seeds, report.seeds)).flatten();
    let exit = interrupt::campaign_exit(!report.failures.is_empty(), interrupted.has_come());
    let (wall, go_on) = (start.elapsed(), go_on.as_deref());
    answer(
        Form::from(args.json),
        exit,
        || text(&report, wall, go_on),
        || as_json(&report, wall, go_on),
    )
}

fn replay_seed(args: &SoakArgs, seed: u64) -> Result<Exit, Failure> {
    let (setting, report) = match soak::replay(seed) {
        Ok(passed) => passed,
        Err(failed) => {
            let report = SoakReport { seeds: 1, failures: vec![failed], ..SoakReport::default() };
            (String::new(), report)
        }
    };
    let exit = if report.failures.is_empty() { Exit::Pass } else { Exit::Wrong };
    let head =
        if setting.is_empty() { setting } else { format!("seed {seed}: passed\n  {setting}\n") };
    answer(
        Form::from(args.json),
        exit,
        || head + &text(&report, Duration::ZERO, None),
        || as_json(&report, Duration::ZERO, None),
    )
}

/// What the counts of a tally are.
const COUNTS: [&str; 6] =
    ["seeds", "runs", "transfers", "faults_injected", "runs_that_faulted", "virtual_ns"];

/// This rank's part of a campaign.
fn share(args: &SoakArgs, job: &mut RankJob) -> Result<Exit, Failure> {
    let threads = args.threads_of_a_rank();
    let run = |seeds: Range<u64>, go_on: &GoOn<'_>| tally(&soak::soak(seeds, threads, |_| go_on()));
    let again = |_: &str, seed| {
        let what = soak::replay(seed).err().map(|failed| failed.to_string());
        let passes = || format!("seed {seed}: failed on its rank, and passes here");
        (what.unwrap_or_else(passes), OF_GROUPS.replay(seed))
    };
    let phases = [SharedPhase { name: "groups", run: &run }];
    campaign::share(args, job, &phases, &Kind { counts: &COUNTS, again: &again })
}

fn counts(report: &SoakReport) -> [u64; 6] {
    let SoakReport { seeds, runs, transfers, injected, faulted, virtual_ns, .. } = *report;
    [seeds, runs, transfers, injected, faulted, virtual_ns]
}

fn tally(report: &SoakReport) -> Tally {
    Tally {
        counts: counts(report),
        hash: report.hash,
        failed: report.failures.iter().map(|failed| failed.seed).collect(),
    }
}

/// What repeats one seed.
fn again(failed: &FailedSeed) -> String {
    OF_GROUPS.replay(failed.seed)
}

fn text(report: &SoakReport, wall: Duration, go_on: Option<&str>) -> String {
    let row = |what: &str, value: String| vec![what.replace('_', " "), value];
    let numbers = COUNTS.iter().zip(counts(report)).take(5);
    let mut rows: Vec<_> = numbers.map(|(what, count)| row(what, grouped(count))).collect();
    rows.push(row("failures", grouped(report.failures.len() as u64)));
    rows.push(row("virtual time", duration(Duration::from_nanos(report.virtual_ns))));
    rows.push(row("hash", format!("{:016x}", report.hash)));
    if !wall.is_zero() {
        rows.push(row("time", duration(wall)));
    }
    let with_replay =
        |failed: &FailedSeed| format!("\n{failed}\n  to replay it: {}\n", again(failed));
    let failures: String = report.failures.iter().map(with_replay).collect();
    table(&rows, &[1]) + &failures + &interrupt::resume_hint(go_on)
}

fn as_json(report: &SoakReport, wall: Duration, go_on: Option<&str>) -> Value {
    let failed = |failed: &FailedSeed| {
        json!({
            "seed": failed.seed,
            "setting": failed.setting,
            "what": failed.what,
            "replay": again(failed),
        })
    };
    let mut object = json!({
        "hash": format!("{:016x}", report.hash),
        "wall_ns": u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        "failures": report.failures.iter().map(failed).collect::<Vec<_>>(),
        "go_on": go_on,
    });
    for (what, count) in COUNTS.iter().zip(counts(report)) {
        object[*what] = count.into();
    }
    object
}

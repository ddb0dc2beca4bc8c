//! `pto soak --sessions`: campaigns over sessions in virtual time; a failure is a seed and a command.

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use pto_host::session::soak::{self, FailedSeed, SoakReport};
use serde_json::{Value, json};

use crate::args::SoakArgs;
use crate::campaign::{self, Commands, GoOn, Kind, RankJob, SharedPhase, Tally};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::interrupt;
use crate::output::answer;
use crate::progress::Phase;
use crate::text::{duration, grouped, table};

const OF_SESSIONS: Commands = Commands { which: "--sessions" };

/// Runs a campaign over these seeds, or the one seed that is to be run again.
pub(crate) fn run(args: &SoakArgs, seeds: Range<u64>) -> Result<Exit, Failure> {
    if args.replay.is_none()
        && let Some(mut job) = RankJob::join(args, seeds.clone(), "sessions")?
    {
        return share(args, &mut job);
    }
    let start = Instant::now();
    let (report, is_interrupted) = match args.replay {
        Some(seed) => (soak::replay(seed).unwrap_or_else(of_failure), false),
        None => alone(args, seeds.clone())?,
    };
    let wall = start.elapsed();
    let go_on = is_interrupted.then(|| OF_SESSIONS.go_on(seeds, report.seeds)).flatten();
    let exit = interrupt::campaign_exit(!report.failures.is_empty(), is_interrupted);
    answer(
        Form::from(args.json),
        exit,
        || text(&report, wall, go_on.as_deref()),
        || as_json(&report, wall, go_on.as_deref()),
    )
}

/// What the counts of a tally are.
const COUNTS: [&str; 5] = ["seeds", "commands", "firmware_starts", "streams_told", "virtual_ns"];

/// This rank's part of a campaign.
fn share(args: &SoakArgs, job: &mut RankJob) -> Result<Exit, Failure> {
    let threads = args.threads_of_a_rank();
    let run = |seeds: Range<u64>, go_on: &GoOn<'_>| tally(&soak::soak(seeds, threads, |_| go_on()));
    let again = |_: &str, seed| {
        let what = soak::replay(seed).err().map(|failed| failed.to_string());
        let passes = || format!("seed {seed}: failed on its rank, and passes here");
        (what.unwrap_or_else(passes), OF_SESSIONS.replay(seed))
    };
    let phases = [SharedPhase { name: "sessions", run: &run }];
    campaign::share(args, job, &phases, &Kind { counts: &COUNTS, again: &again })
}

fn tally(report: &SoakReport) -> Tally {
    Tally {
        counts: [
            report.seeds,
            report.commands,
            report.launches,
            report.failed_streams,
            report.virtual_ns,
            0,
        ],
        hash: report.hash,
        failed: report.failures.iter().map(|failed| failed.seed).collect(),
    }
}

/// What came of it, and whether the user has interrupted it.
fn alone(args: &SoakArgs, seeds: Range<u64>) -> Result<(SoakReport, bool), Failure> {
    let interrupted = interrupt::watch();
    let phase = Phase::begin("sessions", args.seeds);
    let report = soak::soak(seeds, args.threads_alone(), |done| {
        phase.reach(done);
        if interrupted.has_come() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Ok((report, interrupted.has_come()))
}

fn of_failure(failed: FailedSeed) -> SoakReport {
    SoakReport { seeds: 1, failures: vec![failed], ..SoakReport::default() }
}

/// What repeats one seed.
fn again(failed: &FailedSeed) -> String {
    OF_SESSIONS.replay(failed.seed)
}

fn text(report: &SoakReport, wall: Duration, go_on: Option<&str>) -> String {
    let counts = [
        ("seeds", report.seeds),
        ("commands", report.commands),
        ("starts of the firmware", report.launches),
        ("streams that reported a failure", report.failed_streams),
        ("failures", report.failures.len() as u64),
    ];
    let mut rows: Vec<_> =
        counts.into_iter().map(|(what, count)| vec![what.to_owned(), grouped(count)]).collect();
    let virtual_time = Duration::from_nanos(report.virtual_ns);
    rows.push(vec!["virtual time".to_owned(), duration(virtual_time)]);
    rows.push(vec!["time".to_owned(), duration(wall)]);
    rows.push(vec!["hash".to_owned(), format!("{:016x}", report.hash)]);
    let with_replay =
        |failed: &FailedSeed| format!("\n{failed}\n  to replay it: {}\n", again(failed));
    let failures: String = report.failures.iter().map(with_replay).collect();
    table(&rows, &[1]) + &failures + &interrupt::resume_hint(go_on)
}

fn as_json(report: &SoakReport, wall: Duration, go_on: Option<&str>) -> Value {
    let failed = |failed: &FailedSeed| json!({ "seed": failed.seed, "what": failed.what, "replay": again(failed) });
    json!({
        "seeds": report.seeds,
        "commands": report.commands,
        "firmware_starts": report.launches,
        "streams_told": report.failed_streams,
        "virtual_ns": report.virtual_ns,
        "hash": format!("{:016x}", report.hash),
        "wall_ns": u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        "failures": report.failures.iter().map(failed).collect::<Vec<_>>(),
        "go_on": go_on,
    })
}

//! `pto soak`: campaigns of seeded runs in virtual time; a failure is a seed, a small graph, and a command.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pto_host::virtual_time::soak::{self, FailedSeed, Passed, Troubles};
use pto_host::virtual_time::{SoakOptions, SoakReport};
use serde_json::{Value, json};

use crate::args::{SoakArgs, profile};
use crate::campaign::{self, GoOn, Kind, RankJob, SharedPhase, Tally};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::group;
use crate::interrupt;
use crate::output::answer;
use crate::output_file;
use crate::progress::Phase;
use crate::replay;
use crate::session_soak;
use crate::soak_case;
use crate::text::{counted, duration, grouped, table};

/// Runs a campaign, or one seed of it.
pub(crate) fn soak(args: &SoakArgs) -> Result<Exit, Failure> {
    if args.sessions {
        return session_soak::run(args, seeds(args)?);
    }
    if args.groups {
        return group::soak::run(args, seeds(args)?);
    }
    let options = SoakOptions {
        tasks: args.tasks,
        profile: args.profile.as_deref().map(profile).transpose()?,
        threads: args.threads_alone(),
        ..SoakOptions::default()
    };
    let phases = [Troubles::Some, Troubles::None].into_iter().filter(|troubles| match troubles {
        Troubles::Some => !args.no_faults,
        Troubles::None => !args.faults,
    });
    match args.replay {
        Some(seed) => replay_seed(args, seed, phases, &options),
        None => match RankJob::join(args, seeds(args)?, "graphs")? {
            Some(mut job) => share(args, &mut job, phases, &options),
            None => alone(args, seeds(args)?, phases, &options),
        },
    }
}

/// What the counts of a tally are.
const COUNTS: [&str; 5] = ["seeds", "runs", "tasks", "faults_injected", "runs_that_faulted"];
/// Failures of one turn after which a rank tries the rest of it no more.
const ENOUGH: usize = 4;

/// This rank's part of a campaign.
fn share(
    args: &SoakArgs,
    job: &mut RankJob,
    phases: impl Iterator<Item = Troubles>,
    options: &SoakOptions,
) -> Result<Exit, Failure> {
    let threads = args.threads_of_a_rank();
    let options = SoakOptions { threads, stop_after: ENOUGH, ..*options };
    let of = |troubles| SoakOptions { troubles, ..options };
    let tried = |troubles| {
        move |seeds: Range<u64>, go_on: &GoOn<'_>| {
            tally(&soak::soak(seeds, &of(troubles), |_| go_on()))
        }
    };
    let (some, none) = (tried(Troubles::Some), tried(Troubles::None));
    let phases: Vec<_> = phases
        .map(|troubles| SharedPhase {
            name: name(troubles),
            run: if troubles == Troubles::Some { &some } else { &none },
        })
        .collect();
    let again = |phase: &str, seed| {
        let is_some = phase == name(Troubles::Some);
        let troubles = if is_some { Troubles::Some } else { Troubles::None };
        let what = match soak::replay(seed, &of(troubles)) {
            Ok(_) => format!("seed {seed}: failed on its rank, and passes here"),
            Err(failed) => failed.to_string(),
        };
        (what, command(args, troubles, seed))
    };
    campaign::share(args, job, &phases, &Kind { counts: &COUNTS, again: &again })
}

fn tally(report: &SoakReport) -> Tally {
    Tally {
        counts: [report.seeds, report.runs, report.tasks, report.injected, report.faulted, 0],
        hash: report.hash,
        failed: report.failures.iter().map(|failed| failed.seed).collect(),
    }
}

/// The seeds that are asked for.
fn seeds(args: &SoakArgs) -> Result<Range<u64>, Failure> {
    match args.seed.checked_add(args.seeds) {
        Some(end) => Ok(args.seed..end),
        None => Err(Failure::usage(format!(
            "{} seeds from {} on would go beyond the last seed, {}; give a smaller --seed",
            args.seeds,
            args.seed,
            u64::MAX
        ))),
    }
}

/// A phase of a campaign.
struct Campaign {
    troubles: Troubles,
    report: SoakReport,
    wall: Duration,
}

fn alone(
    args: &SoakArgs,
    seeds: Range<u64>,
    phases: impl Iterator<Item = Troubles>,
    options: &SoakOptions,
) -> Result<Exit, Failure> {
    let interrupted = interrupt::watch();
    let (mut done, end) = (Vec::new(), seeds.end);
    for troubles in phases {
        let phase = Phase::begin(name(troubles), args.seeds);
        let start = Instant::now();
        let options = SoakOptions { troubles, ..*options };
        let report = soak::soak(seeds.clone(), &options, |seeds| {
            phase.reach(seeds);
            if interrupted.has_come() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        drop(phase);
        let failed = !report.failures.is_empty();
        done.push(Campaign { troubles, report, wall: start.elapsed() });
        if failed || interrupted.has_come() {
            break;
        }
    }
    let go_on = interrupted.has_come().then(|| go_on(args, end, &done)).flatten();
    let failed = done.iter().any(|phase| !phase.report.failures.is_empty());
    let exit = interrupt::campaign_exit(failed, interrupted.has_come());
    answer(
        Form::from(args.json),
        exit,
        || text(args, &done) + &interrupt::resume_hint(go_on.as_deref()),
        || campaign_json(args, &done, go_on.as_deref()),
    )
}

/// The commands that try what an interrupted campaign has not, one after the other; `None`: it had tried everything.
fn go_on(args: &SoakArgs, end: u64, done: &[Campaign]) -> Option<String> {
    let last = done.last()?;
    let from = args.seed + last.report.seeds;
    let rest = (from < end).then(|| campaign_words(args, last.troubles, from, end - from));
    let is_behind = last.troubles == Troubles::Some && !args.faults;
    let after = is_behind.then(|| campaign_words(args, Troubles::None, args.seed, end - args.seed));
    let commands: Vec<_> = rest.into_iter().chain(after).collect();
    (!commands.is_empty()).then(|| commands.join(" && "))
}

/// A campaign of a phase as a command.
fn campaign_words(args: &SoakArgs, troubles: Troubles, from: u64, seeds: u64) -> String {
    let range = ["--seed".to_owned(), from.to_string(), "--seeds".to_owned(), seeds.to_string()];
    pto_soak(args, troubles, range)
}

const fn name(troubles: Troubles) -> &'static str {
    match troubles {
        Troubles::Some => "with faults",
        Troubles::None => "without faults",
    }
}

fn text(args: &SoakArgs, phases: &[Campaign]) -> String {
    let head =
        ["", "seeds", "runs", "tasks", "faults injected", "runs that faulted", "failures", "time"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for Campaign { troubles, report, wall } in phases {
        let failures = report.failures.len() as u64;
        let counts =
            [report.seeds, report.runs, report.tasks, report.injected, report.faulted, failures];
        let mut row = vec![name(*troubles).to_owned()];
        row.extend(counts.map(grouped));
        row.push(duration(*wall));
        rows.push(row);
    }
    let mut text = table(&rows, &[1, 2, 3, 4, 5, 6, 7]);
    for Campaign { troubles, report, .. } in phases {
        for failed in &report.failures {
            text +=
                &format!("\n{failed}\n  to replay it: {}\n", command(args, *troubles, failed.seed));
        }
    }
    text
}

/// What repeats one scenario.
fn command(args: &SoakArgs, troubles: Troubles, seed: u64) -> String {
    pto_soak(args, troubles, ["--replay".to_owned(), seed.to_string()])
}

/// `pto soak` for one phase, with the options of this campaign.
fn pto_soak(
    args: &SoakArgs,
    troubles: Troubles,
    which: impl IntoIterator<Item = String>,
) -> String {
    let faults = if troubles == Troubles::Some { "--faults" } else { "--no-faults" };
    let mut words = vec!["soak".to_owned()];
    words.extend(which);
    words.push(faults.to_owned());
    if args.tasks != SoakOptions::default().tasks {
        words.extend(["--tasks".to_owned(), args.tasks.to_string()]);
    }
    if let Some(profile) = &args.profile {
        words.extend(["--profile".to_owned(), profile.clone()]);
    }
    let program = std::env::args_os().next();
    replay::command(program.into_iter().chain(words.into_iter().map(Into::into)))
}

fn campaign_json(args: &SoakArgs, phases: &[Campaign], go_on: Option<&str>) -> Value {
    let phases = phases.iter().map(|Campaign { troubles, report, wall }| {
        let failures = report.failures.iter().map(|failed| failed_json(args, *troubles, failed));
        json!({
            "phase": name(*troubles),
            "seeds": report.seeds,
            "runs": report.runs,
            "tasks": report.tasks,
            "faults_injected": report.injected,
            "runs_that_faulted": report.faulted,
            "hash": format!("{:016x}", report.hash),
            "wall_ns": u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            "failures": failures.collect::<Vec<_>>(),
        })
    });
    json!({
        "seed": args.seed,
        "graph_tasks": args.tasks,
        "phases": phases.collect::<Vec<_>>(),
        "go_on": go_on,
    })
}

fn failed_json(args: &SoakArgs, troubles: Troubles, failed: &FailedSeed) -> Value {
    json!({
        "seed": failed.seed,
        "what": failed.failure.to_string(),
        "shrunk_tasks": failed.shrunk.0.graph.nodes.len(),
        "report": failed.to_string(),
        "replay": command(args, troubles, failed.seed),
    })
}

/// A scenario that was run again, and the files that were written of one that fails.
struct Replayed {
    options: SoakOptions,
    result: Result<Passed, Box<FailedSeed>>,
    files: Vec<PathBuf>,
}

fn replay_seed(
    args: &SoakArgs,
    seed: u64,
    phases: impl Iterator<Item = Troubles>,
    options: &SoakOptions,
) -> Result<Exit, Failure> {
    let folder = args.save.clone().unwrap_or_else(|| soak_case::folder_of(seed));
    output_file::check_folder("--save", &folder)?;
    let mut results = Vec::new();
    for troubles in phases {
        let options = SoakOptions { troubles, ..*options };
        let result = soak::replay(seed, &options);
        let files = match &result {
            Ok(_) => Vec::new(),
            Err(failed) => soak_case::write(&folder, troubles, &options.scenario(seed), failed)?,
        };
        results.push(Replayed { options, result, files });
    }
    let shown = |Replayed { options, result, files }: &Replayed| match result {
        Ok(passed) => format!(
            "seed {seed} {}: {}",
            name(options.troubles),
            passed_text(options, seed, passed)
        ),
        Err(failed) => {
            let files: String =
                files.iter().map(|file| format!("\n  written: {}", file.display())).collect();
            format!("{}, {failed}{files}", name(options.troubles))
        }
    };
    let told_json = |Replayed { options, result, files }: &Replayed| match result {
        Ok(passed) => json!({
            "phase": name(options.troubles),
            "passed": true,
            "fault": passed.fault.map(|fault| fault.name()),
            "runs": passed.runs,
            "trace_hash": format!("{:016x}", passed.hash),
        }),
        Err(failed) => {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            json!({ "phase": name(options.troubles), "passed": false, "files": files,
                "failure": failed_json(args, options.troubles, failed) })
        }
    };
    let failed = results.iter().any(|replayed| replayed.result.is_err());
    answer(
        Form::from(args.json),
        if failed { Exit::Wrong } else { Exit::Pass },
        || results.iter().map(shown).collect::<Vec<_>>().join("\n"),
        || json!({ "seed": seed, "scenarios": results.iter().map(told_json).collect::<Vec<_>>() }),
    )
}

fn passed_text(options: &SoakOptions, seed: u64, passed: &Passed) -> String {
    let scenario = options.scenario(seed);
    let injected = match scenario.options.injection {
        Some(injection) if passed.was_injected => format!("{injection}, "),
        Some(injection) => format!("{injection} did not happen, "),
        None => String::new(),
    };
    let fault = passed.fault.map_or("no fault", |fault| fault.name());
    format!(
        "passed\n  {}, profile {}\n  {injected}{fault}, {}, {} completed, trace hash {:016x}",
        scenario.setup,
        scenario.options.profile.name,
        counted(passed.runs, "run"),
        counted(passed.tasks, "task"),
        passed.hash
    )
}

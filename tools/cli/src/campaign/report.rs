//! What the ranks of a campaign tell: one table, or one JSON object, by one of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::ranks::{CampaignResult, RankJob, SharedPhase};
use super::tally::Tally;
use crate::args::SoakArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::interrupt;
use crate::output::answer;
use crate::text::{counted, duration, grouped, table};

/// A kind of campaign.
pub(crate) struct Kind<'a> {
    /// What the counts of a tally are; seeds first.
    pub(crate) counts: &'a [&'static str],
    /// What is wrong with a seed of a phase, and the command that runs it again.
    pub(crate) again: &'a dyn Fn(&str, u64) -> (String, String),
}

/// A seed that failed, in which phase, what was wrong, and the command that runs it again.
type Finding = (&'static str, u64, String, String);

/// Makes this rank's part of a campaign. One rank reports what all have found.
pub(crate) fn share(
    args: &SoakArgs,
    job: &mut RankJob,
    phases: &[SharedPhase<'_>],
    kind: &Kind<'_>,
) -> Result<Exit, Failure> {
    let interrupted = interrupt::watch();
    let start = std::time::Instant::now();
    let ended = job.run(phases, &|| interrupted.has_come())?;
    if ended.left == 0 {
        job.forget();
    }
    if !ended.is_teller {
        return Ok(ended.lost.map_or(Exit::Pass, |_| Exit::Fault));
    }
    let (description, wall) = (job.description(), start.elapsed());
    let findings = findings(&ended, kind);
    let exit = match (findings.is_empty(), ended.lost.is_some(), ended.left) {
        (false, ..) => Exit::Wrong,
        (true, true, _) => Exit::Fault,
        (true, false, 1..) => Exit::Interrupted,
        (true, false, 0) => Exit::Pass,
    };
    answer(
        Form::from(args.json),
        exit,
        || text(&description, &ended, &findings, kind, wall) + &how_to_go_on(args, &ended),
        || as_json(&description, &ended, &findings, kind, wall),
    )
}

fn findings(ended: &CampaignResult, kind: &Kind<'_>) -> Vec<Finding> {
    let of = |(phase, tally): &(&'static str, Tally)| {
        let phase = *phase;
        let with_replay = |seed: &u64| {
            let (what, command) = (kind.again)(phase, *seed);
            (phase, *seed, what, command)
        };
        tally.failed.iter().map(with_replay).collect::<Vec<_>>()
    };
    ended.tallies.iter().flat_map(of).collect()
}

fn text(
    description: &str,
    ended: &CampaignResult,
    findings: &[Finding],
    kind: &Kind<'_>,
    wall: Duration,
) -> String {
    let mut head = vec![String::new()];
    head.extend(kind.counts.iter().map(|count| count.replace('_', " ")));
    head.push("failures".to_owned());
    let row = |(phase, tally): &(&str, Tally)| {
        let mut row = vec![(*phase).to_owned()];
        row.extend(tally.counts.iter().take(kind.counts.len()).map(|count| grouped(*count)));
        row.push(grouped(tally.failed.len() as u64));
        row
    };
    let right: Vec<_> = (1..head.len()).collect();
    let rows: Vec<_> = [head].into_iter().chain(ended.tallies.iter().map(row)).collect();
    let mut text = format!("{description}, {}\n{}", duration(wall), table(&rows, &right));
    for (phase, _, what, command) in findings {
        text += &format!("\n{phase}: {what}\n  to replay it: {command}\n");
    }
    text
}

fn how_to_go_on(args: &SoakArgs, ended: &CampaignResult) -> String {
    let why = match &ended.lost {
        Some(lost) => lost.to_string(),
        None if ended.left > 0 => "Not all seeds were tried".to_owned(),
        None => return String::new(),
    };
    format!(
        "\n{why}.\nLeft: {}. What was tried is in '{}': start the same command again, with as many ranks as you like, and it goes on from there.\n",
        counted(ended.left, "seed"),
        args.journal().display()
    )
}

fn as_json(
    description: &str,
    ended: &CampaignResult,
    findings: &[Finding],
    kind: &Kind<'_>,
    wall: Duration,
) -> Value {
    let phases = ended.tallies.iter().map(|(phase, tally)| {
        let failures = findings.iter().filter(|(of, ..)| of == phase);
        let failures = failures.map(
            |(_, seed, what, command)| json!({ "seed": seed, "what": what, "replay": command }),
        );
        let counts = kind.counts.iter().zip(tally.counts);
        let counts: serde_json::Map<_, _> =
            counts.map(|(what, count)| ((*what).to_owned(), Value::from(count))).collect();
        json!({
            "phase": phase,
            "counts": counts,
            "hash": format!("{:016x}", tally.hash),
            "failures": failures.collect::<Vec<_>>(),
        })
    });
    json!({
        "group": description,
        "phases": phases.collect::<Vec<_>>(),
        "seeds_left": ended.left,
        "lost": ended.lost.as_ref().map(ToString::to_string),
        "wall_ns": u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
    })
}

//! Timelines as files: what `pto run --trace` writes, and what the commands that read it do first.

use std::path::Path;

use pto_host::timeline::{Trace, file};
use pto_host::{TraceOptions, WhenFull};

use crate::args::{KeptEvents, RunArgs};
use crate::device::Wanted;
use crate::errors::Failure;
use crate::input_file;
use crate::output_file;
use crate::progress::Phase;
use crate::round::Round;
use crate::virtual_time::VirtualRun;

/// How the run is to be traced; `None`: it is not.
pub(crate) fn options(args: &RunArgs) -> Option<TraceOptions> {
    let wanted = args.trace.is_some() || args.gantt;
    let when_full = match args.trace_keep {
        None | Some(KeptEvents::Newest) => WhenFull::DropOldest,
        Some(KeptEvents::Oldest) => WhenFull::KeepOldest,
        Some(KeptEvents::All) => WhenFull::Wait,
    };
    let events = args.trace_events;
    wanted.then_some(TraceOptions { instance_events: events, core_events: events, when_full })
}

/// The timeline of the last round.
pub(crate) fn traced(
    rounds: &[Round],
    args: &RunArgs,
    device: &Wanted,
    finish: impl FnOnce(&mut Trace),
) -> Option<Trace> {
    let round = rounds.last()?;
    let mut trace = with_facts(round.report.trace.as_deref()?.clone(), args, device);
    finish(&mut trace);
    if let Some(run) = VirtualRun::of(round, round.report.variant, device) {
        trace.run.extend(run.facts().map(|(name, fact)| (name.to_owned(), fact)));
    }
    Some(trace)
}

/// Gives the tasks their names: those of all tasks of the program, in the order in which it adds them.
pub(crate) fn name_tasks(trace: &mut Trace, mut names: Vec<String>, when_full: WhenFull) {
    // Of rings that ran over, the timeline has the tasks of one end.
    let is_part = trace.run.contains_key("recorded");
    match when_full {
        WhenFull::DropOldest if is_part && trace.fault.is_some() => return,
        WhenFull::DropOldest if is_part => {
            names.drain(..names.len().saturating_sub(trace.tasks.len()));
        }
        _ => names.truncate(trace.tasks.len()),
    }
    trace.task_names = names;
}

/// What the command line knows of the run, and the library does not.
pub(crate) fn with_facts(mut trace: Trace, args: &RunArgs, device: &Wanted) -> Trace {
    let params: Vec<_> =
        args.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let facts = [
        ("example", args.example.clone()),
        ("parameters", if params.is_empty() { "defaults".to_owned() } else { params.join(" ") }),
        ("hosting", device.hosting()),
        ("pto", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    trace.run.extend(facts.map(|(name, fact)| (name.to_owned(), fact)));
    trace
}

/// Writes the timeline of a run that ended well.
pub(crate) fn write_run(trace: &Trace, path: &Path) -> Result<(), Failure> {
    let _phase = Phase::begin("writing the timeline", 1);
    output_file::write(path, |to| file::write(trace, to))
}

/// Writes the timeline of a run that did not, and says so with the fault.
pub(crate) fn keep(
    failure: Failure,
    args: &RunArgs,
    device: &Wanted,
    finish: impl FnOnce(&mut Trace),
) -> Failure {
    keep_in(failure, args.trace.as_deref(), |trace| {
        let mut trace = with_facts(trace, args, device);
        finish(&mut trace);
        trace
    })
}

/// Writes the timeline up to a fault to a file, if one was asked for, with what `facts` adds to it.
pub(crate) fn keep_in(
    mut failure: Failure,
    path: Option<&Path>,
    facts: impl FnOnce(Trace) -> Trace,
) -> Failure {
    let (Some(trace), Some(path)) = (failure.take_trace(), path) else { return failure };
    if trace.tasks.is_empty() {
        return failure;
    }
    let trace = facts(trace);
    match output_file::write(path, |to| file::write(&trace, to)) {
        Ok(()) => {
            let notice = format!("The timeline up to the fault is in {}.", path.display());
            failure.and(notice).kept_in(path)
        }
        Err(unwritten) => failure.and(unwritten.message()),
    }
}

/// Reads a timeline.
pub(crate) fn read(path: &Path) -> Result<Trace, Failure> {
    let name = path.display();
    file::read(&input_file::bytes(path)?)
        .map_err(|error| Failure::usage(format!("cannot use '{name}': {error}")))
}

//! `pto view`: a recorded run as a page, a picture, or a chart; several runs as one page.

use std::io::Write;
use std::path::{Path, PathBuf};

use pto_host::timeline::html::ShownRun;
use pto_host::timeline::{Analysis, Trace, html, ranks, svg};

use crate::args::{MAX_RUNS, ViewArgs};
use crate::chart::chart;
use crate::errors::{Exit, Failure};
use crate::input_file;
use crate::output::say;
use crate::output_file;
use crate::timeline;

/// Shows one trace, or several on one page.
pub(crate) fn view(args: &ViewArgs) -> Result<Exit, Failure> {
    let [first, others @ ..] = &args.traces[..] else {
        return Err(Failure::usage("no trace is given; name a file that `pto run --trace` wrote"));
    };
    let of_ranks = merged(&args.traces)?;
    let is_one = others.is_empty() || of_ranks.is_some();
    if args.text && is_one {
        let trace = of_ranks.map_or_else(|| timeline::read(first), Ok)?;
        return say(chart(&trace));
    }
    let own = args
        .output
        .as_ref()
        .filter(|path| !output_file::is_standard_output(path) && args.traces.contains(path));
    if let Some(path) = own {
        return Err(Failure::usage(format!(
            "'{}' is the trace itself; choose another file with -o",
            path.display()
        )));
    }
    let form = form(args)?;
    if !is_one && args.traces.len() > MAX_RUNS {
        return Err(Failure::usage(format!(
            "{} runs are given, and a page shows {MAX_RUNS} at most; give fewer",
            args.traces.len()
        )));
    }
    if !is_one && (args.text || form == ViewOutput::Picture) {
        return Err(Failure::usage(
            "a chart or a picture shows one run, and several are given; give one trace, or leave --text and --svg out to get a page of all",
        ));
    }
    let runs = match of_ranks {
        Some(trace) => vec![SavedRun::of(first, trace)?],
        None => {
            args.traces.iter().map(|path| SavedRun::read(path)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let (made, extension) = match form {
        ViewOutput::Picture => (svg::picture(&runs[0].trace, &runs[0].analysis), "svg"),
        ViewOutput::Page => (page(&runs), "html"),
    };
    if args.output.as_deref().is_some_and(output_file::is_standard_output) {
        return say(made);
    }
    let path = args.output.clone().unwrap_or_else(|| input_file::sibling(first, extension));
    output_file::write(&path, |to| to.write_all(made.as_bytes()))?;
    say(path.display().to_string())
}

/// The timeline of all ranks, where several files are given and each is of a rank.
fn merged(paths: &[PathBuf]) -> Result<Option<Trace>, Failure> {
    if paths.len() < 2 {
        return Ok(None);
    }
    let traces = paths.iter().map(|path| timeline::read(path)).collect::<Result<Vec<_>, _>>()?;
    if traces.iter().any(|trace| trace.rank.is_none()) {
        return Ok(None);
    }
    ranks::merge(&traces).map(Some).map_err(Failure::usage)
}

/// What a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViewOutput {
    Page,
    Picture,
}

/// What was asked for: by a flag, or by the name of the file.
fn form(args: &ViewArgs) -> Result<ViewOutput, Failure> {
    let known = [("html", ViewOutput::Page), ("svg", ViewOutput::Picture)];
    let named = args.output.as_deref().map(|path| output_file::form_of(path, &known));
    match (named.transpose()?.flatten(), args.svg) {
        (Some(ViewOutput::Page), true) => Err(Failure::usage(
            "--svg writes a picture, and the name of the file ends with .html; leave --svg out, or end the name with .svg",
        )),
        (Some(shown), _) => Ok(shown),
        (None, true) => Ok(ViewOutput::Picture),
        (None, false) => Ok(ViewOutput::Page),
    }
}

/// A trace and its numbers.
struct SavedRun {
    name: String,
    trace: Trace,
    analysis: Analysis,
}

impl SavedRun {
    fn read(path: &Path) -> Result<Self, Failure> {
        Self::of(path, timeline::read(path)?)
    }

    fn of(path: &Path, trace: Trace) -> Result<Self, Failure> {
        let analysis = Analysis::of(&trace).map_err(|error| {
            Failure::usage(format!("cannot show '{}': {error}", path.display()))
        })?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(Self { name: name.to_string_lossy().into_owned(), trace, analysis })
    }
}

fn page(runs: &[SavedRun]) -> String {
    if let [SavedRun { trace, analysis, .. }] = runs {
        return html::page(trace, analysis);
    }
    let shown: Vec<_> = runs
        .iter()
        .map(|SavedRun { name, trace, analysis }| ShownRun { name, trace, analysis })
        .collect();
    html::page_of(&shown)
}

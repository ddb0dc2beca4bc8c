//! `pto view`: a recorded run as a page, a picture, or a chart.

use std::io::Write;

use pto_timeline::{Analysis, Trace, gantt, html, svg};

use crate::args::ViewArgs;
use crate::errors::{Exit, Failure};
use crate::output::say;
use crate::output_file;
use crate::timeline;

/// Characters of time in a chart, where the terminal does not say how wide it is.
const COLUMNS: usize = 80;
/// What stands beside them.
const MARGIN: usize = 22;

/// Shows a trace.
pub(crate) fn view(args: &ViewArgs) -> Result<Exit, Failure> {
    let trace = timeline::read(&args.trace)?;
    if args.text {
        return say(chart(&trace));
    }
    let own = args.output.as_deref().filter(|path| **path == *args.trace);
    if let Some(path) = own {
        return Err(Failure::usage(format!(
            "'{}' is the trace itself; choose another file with -o",
            path.display()
        )));
    }
    let form = form(args)?;
    let analysis = Analysis::of(&trace).map_err(|error| {
        Failure::usage(format!("cannot show '{}': {error}", args.trace.display()))
    })?;
    let (made, extension) = match form {
        Shown::Picture => (svg::picture(&trace, &analysis), "svg"),
        Shown::Page => (html::page(&trace, &analysis), "html"),
    };
    if args.output.as_deref().is_some_and(output_file::is_standard_output) {
        return say(made);
    }
    let path = args.output.clone().unwrap_or_else(|| args.trace.with_extension(extension));
    output_file::write(&path, |to| to.write_all(made.as_bytes()))?;
    say(path.display().to_string())
}

/// What a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Page,
    Picture,
}

/// What was asked for: by a flag, or by the name of the file.
fn form(args: &ViewArgs) -> Result<Shown, Failure> {
    let known = [("html", Shown::Page), ("svg", Shown::Picture)];
    let named = args.output.as_deref().map(|path| output_file::form_of(path, &known));
    match (named.transpose()?.flatten(), args.svg) {
        (Some(Shown::Page), true) => Err(Failure::usage(
            "--svg makes a picture, and the file is called .html; leave --svg out, or call it .svg",
        )),
        (Some(shown), _) => Ok(shown),
        (None, true) => Ok(Shown::Picture),
        (None, false) => Ok(Shown::Page),
    }
}

/// The run as a chart for this terminal.
pub(crate) fn chart(trace: &Trace) -> String {
    let wide = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    gantt::chart(trace, wide.map_or(COLUMNS, |columns| columns.saturating_sub(MARGIN)))
}

//! `pto view`: a recorded run as a page, a picture, or a chart.

use std::io::Write;

use pto_timeline::{Analysis, Trace, gantt, html, svg};

use crate::args::ViewArgs;
use crate::errors::{Exit, Failure};
use crate::output::{Form, answer};
use crate::timeline;

/// Characters of time in a chart, where the terminal does not say how wide it is.
const COLUMNS: usize = 80;
/// What stands beside them.
const MARGIN: usize = 22;

/// Shows a trace.
pub(crate) fn view(args: &ViewArgs) -> Result<Exit, Failure> {
    let trace = timeline::read(&args.trace)?;
    if args.text {
        answer(Form::Text, || chart(&trace), || serde_json::Value::Null)?;
        return Ok(Exit::Pass);
    }
    let analysis = Analysis::of(&trace).map_err(|error| {
        Failure::usage(format!("cannot show '{}': {error}", args.trace.display()))
    })?;
    let (made, extension) = match args.svg {
        true => (svg::picture(&trace, &analysis), "svg"),
        false => (html::page(&trace, &analysis), "html"),
    };
    let path = args.output.clone().unwrap_or_else(|| args.trace.with_extension(extension));
    if path == args.trace {
        return Err(Failure::usage(format!(
            "'{}' is the trace itself; choose another file with -o",
            path.display()
        )));
    }
    timeline::write(&path, |to| to.write_all(made.as_bytes()))?;
    answer(Form::Text, || format!("{}", path.display()), || serde_json::Value::Null)?;
    Ok(Exit::Pass)
}

/// The run as a chart for this terminal.
pub(crate) fn chart(trace: &Trace) -> String {
    let wide = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    gantt::chart(trace, wide.map_or(COLUMNS, |columns| columns.saturating_sub(MARGIN)))
}

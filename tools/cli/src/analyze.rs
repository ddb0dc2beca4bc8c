//! `pto analyze`: a recorded run against its lower bounds, and where the difference went.

use pto_timeline::{Analysis, report};
use serde_json::json;

use crate::args::AnalyzeArgs;
use crate::errors::{Exit, Failure};
use crate::output::{Form, answer};
use crate::timeline;

/// Analyses a trace.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<Exit, Failure> {
    let trace = timeline::read(&args.trace)?;
    let analysis = Analysis::of(&trace).map_err(|error| {
        Failure::usage(format!("cannot analyse '{}': {error}", args.trace.display()))
    })?;
    answer(
        Form::from(args.json),
        Exit::Pass,
        || format!("{}\n\n{}", args.trace.display(), report::text(&trace, &analysis)),
        || json!({ "run": trace.run, "fault": trace.fault, "analysis": analysis, "over_bound": analysis.over_bound() }),
    )
}

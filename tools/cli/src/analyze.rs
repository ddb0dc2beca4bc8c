//! `pto analyze`: a recorded run against its lower bounds, and against another run; and where the difference went.

use std::path::Path;

use pto_host::timeline::{Analysis, Bottleneck, Comparison, Limit, Trace, report};
use serde_json::{Value, json};

use crate::args::AnalyzeArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::timeline;

/// Analyses a trace.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<Exit, Failure> {
    let run = Analysed::of(&args.trace)?;
    let against = args.against.as_deref().map(Analysed::of).transpose()?;
    answer(
        Form::from(args.json),
        Exit::Pass,
        || run.text() + &against.as_ref().map_or_else(String::new, |other| run.text_against(other)),
        || run.json(against.as_ref()),
    )
}

/// A trace and its numbers.
struct Analysed<'p> {
    path: &'p Path,
    trace: Trace,
    analysis: Analysis,
}

impl<'p> Analysed<'p> {
    fn of(path: &'p Path) -> Result<Self, Failure> {
        let trace = timeline::read(path)?;
        let analysis = Analysis::of(&trace).map_err(|error| {
            Failure::usage(format!("cannot analyse '{}': {error}", path.display()))
        })?;
        Ok(Self { path, trace, analysis })
    }

    fn text(&self) -> String {
        format!("{}\n\n{}", self.path.display(), report::text(&self.trace, &self.analysis))
    }

    fn text_against(&self, other: &Self) -> String {
        let compared = Comparison::of(&self.analysis, &other.analysis).text();
        format!("\nagainst {}\n\n{compared}", other.path.display())
    }

    fn json(&self, against: Option<&Self>) -> Value {
        let of = |run: &Self| {
            let Self { trace, analysis, .. } = run;
            let over_bound = analysis.over_bound();
            // The rows of a program are streams, and what bounds it has the name of its commands.
            let bound = match &trace.names {
                Some(_) => json!(Limit::of(trace, analysis).map(|limit| limit.name)),
                None => {
                    json!(Bottleneck::of(&analysis.chain, &analysis.bounds).map(|(bound, _)| bound))
                }
            };
            json!({
                "run": trace.run,
                "fault": trace.fault,
                "analysis": analysis,
                "over_bound": over_bound,
                "bound_by": bound,
            })
        };
        let mut value = of(self);
        if let Some(other) = against {
            value["against"] = of(other);
            value["comparison"] = json!(Comparison::of(&self.analysis, &other.analysis));
        }
        value
    }
}

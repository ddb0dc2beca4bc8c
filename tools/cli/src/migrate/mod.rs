//! `pto compat simpler`: says of programs of the field's runtime which run here, which do not, and in which lines the reason is.
//!
//! Nothing is compiled or run: [`rules`] are about words in lines, [`names`] about what is imported, [`files`] finds programs and what belongs to them, [`reach`] says which tests of a
//! file run all the same, and [`vintages`] when a program was written.

mod files;
mod names;
mod python;
mod reach;
mod rules;
mod vintages;

use serde_json::{Value, json};

use crate::args::MigrateArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::text::counted;
use files::{Program, Verdict};

/// Says it.
pub(crate) fn migrate(args: &MigrateArgs) -> Result<Exit, Failure> {
    let programs = files::programs(&args.path)?;
    let exit = if programs.iter().all(|program| program.verdict() == Verdict::Runs) {
        Exit::Pass
    } else {
        Exit::Wrong
    };
    answer(Form::from(args.json), exit, || text(&programs), || as_json(&programs))
}

fn count(programs: &[Program], verdict: Verdict) -> usize {
    programs.iter().filter(|program| program.verdict() == verdict).count()
}

fn text(programs: &[Program]) -> String {
    let mut text = String::new();
    for program in programs {
        let dates = program.vintage.words();
        let dates = if dates.is_empty() { dates } else { format!(", {dates}") };
        text += &format!("{:<14} {}{dates}\n", program.verdict().words(), program.path.display());
        for reason in &program.reasons {
            let location = format!("{}:{}", reason.path.display(), reason.line);
            text += &format!("    {location}: {}\n", reason.sentence);
        }
    }
    let [runs, partly, hardware, stops] =
        [Verdict::Runs, Verdict::Partly, Verdict::Hardware, Verdict::Stops]
            .map(|verdict| count(programs, verdict));
    let partly = if partly == 0 { String::new() } else { format!("; in part: {partly}") };
    let try_them = if hardware == 0 { "" } else { " (--hardware tries them)" };
    text + &format!(
        "{}. Run here: {runs}{partly}; do not: {stops}; name no simulator: {hardware}. \
         To run them: python -m simpler_setup.folder PATH{try_them}, with --pto-isa DIR for kernels that include PTO-ISA; that needs pytest\n",
        counted(programs.len() as u64, "program")
    )
}

fn as_json(programs: &[Program]) -> Value {
    let one = |program: &Program| {
        let reasons: Vec<Value> = program
            .reasons
            .iter()
            .map(|reason| json!({ "file": reason.path, "line": reason.line, "reason": reason.sentence }))
            .collect();
        let (from, until) = program.vintage.dates();
        json!({ "program": program.path, "verdict": program.verdict().words(), "from": from, "until": until, "reasons": reasons })
    };
    json!({ "programs": programs.iter().map(one).collect::<Vec<_>>() })
}

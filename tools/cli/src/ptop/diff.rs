//! `pto program diff`: shows the differences between two program files.

use pto_host::workloads::program::{Difference, Program, differences};
use serde_json::json;

use crate::args::ProgramDiffArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;

/// Compares.
pub(super) fn diff(
    args: &ProgramDiffArgs,
    first: &Program,
    second: &Program,
) -> Result<Exit, Failure> {
    let found = differences(first, second);
    let exit = if found.is_empty() { Exit::Pass } else { Exit::Wrong };
    let as_text = || match found.as_slice() {
        [] => "the programs are the same\n".to_owned(),
        found => found.iter().map(text).collect::<Vec<_>>().join(""),
    };
    let as_json = || {
        let one = |difference: &Difference| {
            let Difference { what, first, second, is_interface } = difference;
            json!({ "what": what, "first": first, "second": second, "is_interface": is_interface })
        };
        json!({
            "same": found.is_empty(),
            "same_interface": !found.iter().any(|difference| difference.is_interface),
            "differences": found.iter().map(one).collect::<Vec<_>>(),
        })
    };
    answer(Form::from(args.json), exit, as_text, as_json)
}

fn text(difference: &Difference) -> String {
    let side = |mark: &str, side: &Option<String>| {
        let lines = side.as_deref().unwrap_or("not there").lines();
        lines.map(|line| format!("  {mark} {line}\n")).collect::<String>()
    };
    let Difference { what, first, second, is_interface } = difference;
    let mark = if *is_interface { " (part of the interface)" } else { "" };
    format!("{what}{mark}\n{}{}", side("-", first), side("+", second))
}

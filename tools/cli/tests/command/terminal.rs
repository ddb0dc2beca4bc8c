//! On a terminal no line of a report is wider than it.

use std::process::{Command, Stdio};

use crate::pto::{answer, pto};

/// What commands print on a terminal of so many columns.
fn on_terminal(columns: usize, commands: &[&str]) -> Vec<String> {
    let calls: Vec<_> =
        commands.iter().map(|words| format!("{} {words}", env!("CARGO_BIN_EXE_pto"))).collect();
    let session = format!("stty rows 40 cols {columns}; {}; true", calls.join("; "));
    // Of Debian's package bsdutils, which each system has.
    let mut script = Command::new("script");
    script.args(["-qec", &session, "/dev/null"]).env_remove("COLUMNS").stdin(Stdio::null());
    let printed = answer(&mut script).stdout;
    printed.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

/// The timeline of a group has wide tables, and rows with long names.
#[test]
fn tables_are_no_wider_than_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("run.json");
    let trace = trace.to_str().expect("temporary folders have plain names");
    let run = ["run", "tp_decoder", "--group=virtual:2", "--no-compute", "--trace", trace];
    pto(&run, 0);
    let (analyze, view) = (format!("analyze {trace}"), format!("view --text {trace}"));
    let commands = [
        &analyze,
        &view,
        "info examples",
        "info kernels",
        "check decoder_layer",
        "run paged_attention --hosting virtual --no-compute",
        "program query",
    ];
    for columns in [80, 100] {
        let lines = on_terminal(columns, &commands);
        let wide: Vec<_> = lines.iter().filter(|line| line.chars().count() > columns).collect();
        assert!(wide.is_empty() && lines.len() > 300, "{wide:#?} of {} lines", lines.len());
        // The columns that did not fit are in a table of their own, below the same kernels.
        let heads = lines.iter().filter(|line| line.starts_with("  kernel  "));
        let ends = heads.filter(|line| line.ends_with("  mean wait")).count();
        assert_eq!(ends, 1, "{lines:#?}");
    }
}

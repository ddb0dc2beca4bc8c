//! Records and replays: their tasks are checked as if they were submitted.

use pto_check::program::{Action, Program};
use pto_check::{Cores, Kind, task_graph, without_recordings};

use crate::{checked, only, standard, streaming};

const TENSORS: [&str; 2] = [
    r#"{"tensor": 0, "name": "x", "element": "f32", "shape": [8, 8]}"#,
    r#"{"tensor": 1, "name": "y", "element": "f32", "shape": [8, 8]}"#,
];

/// A record of two tasks in a scope of this mode, replayed on rows of `x` and then on others.
fn program(mode: &str, replays: &[&str]) -> Program {
    let scope = format!(r#"{{"scope": "{mode}"}}"#);
    let body = [
        r#"{"record": 4, "tensors": [{"tensor": 20, "element": "f32", "shape": [8]}, {"tensor": 21, "element": "f32", "shape": [8]}]}"#,
        &scope,
        r#"{"alloc": 22, "element": "f32", "shape": [8]}"#,
        r#"{"task": 7, "func": 1, "kind": "aiv", "args": [{"in": 20}, {"out": 22}, {"bound": 0}]}"#,
        r#"{"task": 8, "func": 2, "kind": "aiv", "args": [{"in": 22}, {"inout": 21}]}"#,
        r#"{"end": "scope"}"#,
        r#"{"end": "record"}"#,
    ];
    streaming(&[&TENSORS, &body[..], replays].concat())
}

fn replay(rows: [u32; 2]) -> String {
    let [a, b] = rows.map(|row| 8 * row);
    format!(
        r#"{{"replay": 4, "tensors": [{{"tensor": 0, "offset": {a}, "shape": [8]}}, {{"tensor": 1, "offset": {b}, "shape": [8]}}], "scalars": [1]}}"#
    )
}

#[test]
fn a_replay_is_what_it_replays() {
    let (one, other) = (replay([0, 0]), replay([1, 0]));
    let derived = checked(&program("derived", &[&one, &other, &one]), standard());
    assert!(derived.is_clean(), "{:#?}", derived.findings);
    // Two tasks a replay; each second one waits for the first one and for that of the replay before.
    assert_eq!((derived.tasks, derived.derived_edges, derived.accesses), (6, 3 + 2, 12));
    assert!(
        derived.rings.iter().any(|ring| ring.name == "heap 1" && ring.needs > 0),
        "{derived:?}"
    );
}

#[test]
fn a_race_within_a_recording_and_between_replays_is_found() {
    let (one, other) = (replay([0, 0]), replay([1, 0]));
    let within = only(
        &program("manual", &[&one]),
        Kind::Race,
        &["task 7 of replay 1", "task 8 of replay 1", "tensor 22"],
    );
    assert_eq!(within.tasks, [7, 8]);
    let report = checked(&program("manual", &[&one, &other]), standard());
    let between = report.findings.iter().filter(|finding| finding.tensor == Some(1));
    let between: Vec<String> = between.map(ToString::to_string).collect();
    assert_eq!((report.count(Kind::Race), between.len()), (3, 1), "{:#?}", report.findings);
    assert!(
        between[0].contains("task 8 of replay 1") && between[0].contains("task 8 of replay 2"),
        "{between:?}"
    );
    let apart = checked(&program("manual", &[&one, &replay([0, 3])]), standard());
    assert_eq!(apart.count(Kind::Race), 2, "rows of their own: only those within");
}

#[test]
fn what_does_not_fit_a_recording_is_refused() {
    let alone = r#"{"replay": 4, "tensors": [{"tensor": 0, "shape": [8]}], "scalars": [1]}"#;
    only(
        &program("derived", &[alone]),
        Kind::Refused,
        &["a replay of record 4", "STREAM_REPLAY_MISFIT", "line 11"],
    );
    let after = program("derived", &[]);
    let mut outside = after.clone();
    outside.tasks[1].after = vec![99];
    only(&outside, Kind::UnknownTask, &["task 8 of a record", "task 99"]);
}

/// Tasks of a record may have a shape; their predicates are reads, of what the replay binds as well.
#[test]
fn shapes_within_a_recording_are_checked() {
    let program = |mode: &str| {
        let scope = format!(r#"{{"scope": "{mode}"}}"#);
        let lines = [
            r#"{"record": 0, "tensors": [{"tensor": 20, "element": "f32", "shape": [8]}]}"#,
            &scope,
            r#"{"task": 1, "func": 1, "kind": "aiv", "args": [{"out": 20}], "blocks": 8}"#,
            r#"{"task": 2, "func": 2, "kind": "aic", "mix": [3, 4], "when": {"element": {"tensor": 20, "offset": 3, "shape": [1]}, "is": "==", "value": 0}}"#,
            r#"{"end": "scope"}"#,
            r#"{"end": "record"}"#,
            r#"{"replay": 0, "tensors": [{"tensor": 0, "offset": 16, "shape": [8]}]}"#,
        ];
        streaming(&[&TENSORS, &lines[..]].concat())
    };
    assert!(checked(&program("derived"), standard()).is_clean());
    let race =
        only(&program("manual"), Kind::Race, &["task 2 of replay 1 (func 2, its predicate)"]);
    assert_eq!(race.bytes, Some([4 * 19, 4 * 20]), "of the tensor that is bound");
}

/// The tasks and edges of replays, with other names.
#[test]
fn a_program_without_its_recordings_has_the_same_edges() {
    let replays = [replay([0, 0]), replay([1, 0]), replay([0, 3])];
    let program = program("derived", &[&replays[0], &replays[1], &replays[0], &replays[2]]);
    let flat = without_recordings(&program).unwrap();
    let is_of_recording = |action: &Action| {
        matches!(
            action,
            Action::BeginRecording { .. } | Action::EndRecording | Action::Replay { .. }
        )
    };
    assert!(!flat.steps.iter().any(|step| is_of_recording(&step.action)), "{:?}", flat.steps);
    let edges = |of: &Program| task_graph(of, Cores::default()).unwrap().edges;
    assert_eq!(edges(&flat), edges(&program));
    assert_eq!((flat.tasks.len(), flat.tensors.len()), (8, 2 + 4), "each replay has its own");
    let offsets: Vec<_> =
        flat.tasks.iter().map(|task| task.args[0].view().unwrap().0.offset).collect();
    assert_eq!(offsets, [0, 0, 8, 0, 0, 0, 0, 0]);
    let (before, after) = (checked(&program, standard()), checked(&flat, standard()));
    assert!(after.is_clean(), "{:#?}", after.findings);
    assert_eq!((before.tasks, before.accesses), (after.tasks, after.accesses));
}

#[test]
fn a_replay_that_binds_too_little_is_told() {
    let refused = |line: &str, words: &str| {
        let text = without_recordings(&program("derived", &[line])).unwrap_err();
        assert!(text.contains(words) && text.contains("line 11"), "{text}");
    };
    let views = r#"[{"tensor": 0, "shape": [8]}, {"tensor": 1, "shape": [8]}]"#;
    refused(&format!(r#"{{"replay": 4, "tensors": {views}}}"#), "binds 0 words");
    refused(
        r#"{"replay": 4, "tensors": [{"tensor": 0, "shape": [8]}], "scalars": [1]}"#,
        "binds 1 tensor,",
    );
}

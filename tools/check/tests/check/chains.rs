//! Chains in graph files: what each kernel does counts, the chain is one task to the runtime, and nothing is lost on the way.

use pto_check::program::{Action, Argument, Program, Task};
use pto_check::{Cores, Kind, demanded_path, file, task_graph, without_chains};

use crate::{checked, of, only, standard, streaming};

const MATRIX: &str = r#"{"tensor": 0, "name": "matrix", "element": "f32", "shape": [8, 16]}"#;
/// Four kernels, each of which writes a row.
const ROWS: &str = r#"{"task": 0, "kind": "aiv", "chain": [{"func": 1, "args": [{"out": {"tensor": 0, "shape": [1, 16]}}, 7], "times": 4, "vary": [{"arg": 0, "by": 64}]}]}"#;
/// Reads row 2.
const READER: &str = r#"{"task": 1, "func": 2, "kind": "aiv", "args": [{"in": {"tensor": 0, "offset": 32, "shape": [1, 16]}}]}"#;
/// Reads row 4.
const OTHER_ROW_READER: &str = r#"{"task": 2, "func": 2, "kind": "aiv", "args": [{"in": {"tensor": 0, "offset": 64, "shape": [1, 16]}}]}"#;

#[test]
fn edges_of_a_chain_follow_from_its_tensors() {
    let program = streaming(&[MATRIX, ROWS, READER, OTHER_ROW_READER]);
    let report = checked(&program, standard());
    assert_eq!((report.kernels, report.derived_edges, report.is_clean()), (6, 1, true));
    assert_eq!(program.task_count(), 6);
    let shown = task_graph(&program, Cores::default()).unwrap();
    assert_eq!(shown.edges, [(0, 1)]);
    // The words of the chain: a header, a link with two arguments and one variation; and one of block context.
    let words = report.rings.iter().find(|ring| ring.name.contains("arg")).unwrap().needs;
    assert_eq!(words, 1 + 2 + 2 + 1 + 1);
}

#[test]
fn a_race_names_the_kernel_of_the_chain() {
    let scope = r#"{"scope": "manual"}"#;
    let end = r#"{"end": "scope"}"#;
    let program = streaming(&[MATRIX, scope, ROWS, READER, OTHER_ROW_READER, end]);
    let words = ["task 0 (func 1, argument 0 of its kernel 2, out)", "bytes 128 to 192", "task 1"];
    let finding = only(&program, Kind::Race, &words);
    assert_eq!(finding.arguments, [4, 0]);
    let waits = READER.replace(r#""args""#, r#""after": [0], "args""#);
    let ordered = streaming(&[MATRIX, scope, ROWS, &waits, OTHER_ROW_READER, end]);
    assert!(checked(&ordered, standard()).is_clean());
}

/// What a chain keeps in order is on the path where one kernel needs what another one has written, and not otherwise.
#[test]
fn the_path_has_the_kernels_that_need_each_other() {
    let path = |lines: &[&str]| demanded_path(&streaming(lines));
    assert_eq!(path(&[MATRIX, ROWS]), Some(1), "four rows apart");
    assert_eq!(path(&[MATRIX, ROWS, READER]), Some(2), "one that reads one of them");
    assert_eq!(path(&[MATRIX, ROWS, OTHER_ROW_READER]), Some(1), "one that reads another row");
    let sum = ROWS.replace(r#", "vary": [{"arg": 0, "by": 64}]"#, "").replace("out", "inout");
    assert_eq!(path(&[MATRIX, &sum]), Some(4), "four that add to one row");
    let readers = ROWS.replace(r#", "vary": [{"arg": 0, "by": 64}]"#, "").replace("out", "in");
    let writer = READER.replace(r#""in""#, r#""out""#).replace("32", "0");
    assert_eq!(path(&[MATRIX, &readers]), Some(1), "four that read one row");
    assert_eq!(path(&[MATRIX, &readers, &writer]), Some(2), "one that overwrites what was read");
    let may = sum.replace(
        r#""kind""#,
        r#""when": {"element": {"tensor": 0, "offset": 100, "shape": [1]}, "is": "!=", "value": 0}, "kind""#,
    );
    assert_eq!(path(&[MATRIX, &may, &writer]), Some(1), "what may be skipped counts nothing");
}

/// Kernels whose extents differ say so each for itself.
#[test]
fn uses_go_before_arguments() {
    let uses = r#"{"task": 0, "kind": "aiv", "chain": [{"func": 1, "args": [{"nodep": {"tensor": 0, "shape": [1]}, "use": "none"}, 4], "times": 2, "vary": [{"arg": 0, "of": [256, 0]}, {"arg": 1, "by": -2}], "uses": [[{"nodep": {"tensor": 0, "offset": 64, "shape": [4]}, "use": "write"}, 4], [{"nodep": {"tensor": 0, "shape": [2]}, "use": "write"}, 2]]}]}"#;
    let program = streaming(&[MATRIX, uses, READER, OTHER_ROW_READER]);
    let finding = only(&program, Kind::Race, &["of its kernel 0", "bytes 256 to 272", "task 2"]);
    assert_eq!(finding.tasks, [0, 2]);
    comes_back(&program);
}

fn comes_back(program: &Program) {
    let mut text = Vec::new();
    file::write(program, &mut text).unwrap();
    let again = file::read(text.as_slice()).unwrap();
    assert_eq!((&again.tasks, &again.tensors), (&program.tasks, &program.tensors));
}

#[test]
fn a_file_with_chains_comes_back() {
    comes_back(&streaming(&[MATRIX, ROWS, READER]));
    comes_back(&of("aicpu_build_graph", &[MATRIX, ROWS, READER]));
}

#[test]
fn without_chains_each_kernel_is_a_task_behind_the_one_before() {
    let later = ROWS.replace(r#""kind""#, r#""publish": "later", "after": [7], "kind""#);
    let before = r#"{"task": 7, "func": 2, "kind": "aiv"}"#;
    let publish = r#"{"publish": 0}"#;
    let waits = READER.replace(r#""args""#, r#""after": [0], "args""#);
    let graph = of("aicpu_build_graph", &[MATRIX, before, &later, publish, &waits]);
    let flat = without_chains(&graph);
    let id_and_after = |task: &Task| (task.id, task.after.clone());
    let tasks: Vec<_> = flat.tasks.iter().map(id_and_after).collect();
    let expected =
        [(7, vec![]), (8, vec![7]), (9, vec![8]), (10, vec![9]), (0, vec![10]), (1, vec![0])];
    assert_eq!(tasks, expected);
    let published = flat.steps.iter().filter_map(|step| match step.action {
        Action::Publish(id) => Some(id),
        _ => None,
    });
    assert_eq!(published.collect::<Vec<_>>(), [8, 9, 10, 0]);
    let reports = [&graph, &flat].map(|program| checked(program, standard()));
    assert_eq!(reports[0].accesses, reports[1].accesses);
    assert!(reports.iter().all(|report| report.is_clean() && report.kernels == 6));
}

#[test]
fn a_chain_that_is_none_is_refused_with_its_place() {
    let refused = |chain: &str, words: &[&str]| {
        let header =
            r#"{"format": "pto-graph", "version": 1, "variant": "tensormap_and_ringbuffer"}"#;
        let text = format!("{header}\n{MATRIX}\n{{\"task\": 0, \"kind\": \"aiv\", {chain}}}\n");
        let error = file::read(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
        for word in [&["line 3"], words].concat() {
            assert!(error.contains(word), "no {word:?} in: {error}");
        }
    };
    refused(r#""args": []"#, &["func: a task names its kernel", "chain"]);
    refused(r#""func": 1, "chain": [{"func": 1}]"#, &["func: each kernel", "leave it out"]);
    refused(
        r#""blocks": 2, "chain": [{"func": 1}]"#,
        &["chain: ", "one core", "leave mix, blocks"],
    );
    refused(r#""chain": [{"func": 1, "times": 0}]"#, &["chain[0].times: 0", "at least once"]);
    let unequal =
        r#""chain": [{"func": 1, "times": 2, "with_next": true}, {"func": 1, "times": 3}]"#;
    refused(unequal, &["chain.times: links that take turns run 2, 3 times"]);
    refused(r#""chain": [{"func": 1}, {"func": 1024}]"#, &["chain[1].func: 1024"]);
    let far = r#""chain": [{"func": 1, "args": [{"in": {"tensor": 0, "shape": [1, 16]}}], "times": 9, "vary": [{"arg": 0, "by": 64}]}]"#;
    refused(far, &["chain[0].vary: argument 0 at time 8", "outside of its tensor"]);
    let none = r#""chain": [{"func": 1, "args": [5], "times": 2, "vary": [{"arg": 1, "by": 64}]}]"#;
    refused(none, &["chain[0].vary: the kernel has no argument 1"]);
    let few = r#""chain": [{"func": 1, "args": [5], "times": 2, "vary": [{"arg": 0, "of": [1]}]}]"#;
    refused(few, &["1 word for 2 times"]);
    let both = r#""chain": [{"func": 1, "args": [5], "vary": [{"arg": 0, "of": [1], "by": 2}]}]"#;
    refused(both, &["vary: ", "\"by\" a step"]);
    let nested = |turns: &str| {
        let vary = format!(r#"[{{"arg": 0, "of": [1, 2, 3], {turns}}}]"#);
        format!(r#""chain": [{{"func": 1, "args": [5], "times": 4, "vary": {vary}}}]"#)
    };
    refused(&nested(r#""every": 2"#), &["3 words for 2 turns"]);
    refused(&nested(r#""within": 2"#), &["3 words for 2 turns"]);
    refused(&nested(r#""every": 0"#), &["\"every\" and \"within\" are from 1 to 16383"]);
    refused(&nested(r#""within": 16384"#), &["\"every\" and \"within\" are from 1 to 16383"]);
    refused(&nested(r#""every": 2, "within": 2"#), &["two nested loops", "an entry for each"]);
}

/// Six kernels: the rows of two, each of which is written in three parts of a row, with a number of the row and one of the part.
#[test]
fn a_link_of_two_nested_loops_says_what_each_kernel_uses() {
    let vary = r#"[{"arg": 0, "by": 128, "every": 3}, {"arg": 0, "by": 16, "within": 3}, {"arg": 1, "of": [7, 8], "every": 3}, {"arg": 2, "of": [1, 2, 3], "within": 3}]"#;
    let args = r#"[{"out": {"tensor": 0, "shape": [1, 4]}}, 0, 0]"#;
    let link = format!(r#"{{"func": 1, "args": {args}, "times": 6, "vary": {vary}}}"#);
    let chain = format!(r#"{{"task": 0, "kind": "aiv", "chain": [{link}]}}"#);
    let program = streaming(&[MATRIX, &chain, READER]);
    let parts = program.tasks[0].kernels().map(|kernel| {
        let words = [1, 2].map(|at| match kernel.args[at] {
            Argument::Scalar(word) => word,
            _ => panic!("argument {at} is a number"),
        });
        (kernel.args[0].view().unwrap().0.offset, words)
    });
    let expected =
        [(0, [7, 1]), (4, [7, 2]), (8, [7, 3]), (32, [8, 1]), (36, [8, 2]), (40, [8, 3])];
    assert!(parts.eq(expected));
    // The reader's row begins at element 32, so that it waits for the kernels of the second row.
    let shown = task_graph(&program, Cores::default()).unwrap();
    assert_eq!(shown.edges, [(0, 1)]);
    comes_back(&program);
    let flat = without_chains(&program);
    assert_eq!(flat.tasks.len(), 7);
    assert_eq!(checked(&flat, standard()).accesses, checked(&program, standard()).accesses);
}

#[test]
fn kernels_of_links_that_take_turns_alternate() {
    let link = |func: u16, next: &str| {
        let args = r#"[{"inout": {"tensor": 0, "shape": [1, 16]}}]"#;
        let vary = r#"[{"arg": 0, "by": 64}]"#;
        format!(r#"{{"func": {func}, "args": {args}, "times": 3{next}, "vary": {vary}}}"#)
    };
    let links = [link(1, r#", "with_next": true"#), link(2, "")].join(", ");
    let chain = format!(r#"{{"task": 0, "kind": "aiv", "chain": [{links}]}}"#);
    let program = streaming(&[MATRIX, &chain]);
    let order = program.tasks[0].kernels().map(|kernel| {
        let view = kernel.args[0].view().map(|(view, _)| view.offset);
        (kernel.func, view)
    });
    let expected = [0, 16, 32].into_iter().flat_map(|row| [(1, Some(row)), (2, Some(row))]);
    assert!(order.eq(expected));
    comes_back(&program);
}

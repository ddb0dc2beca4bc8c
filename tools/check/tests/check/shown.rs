//! Programs as graphs to be shown.

use pto_check::program::Program;
use pto_check::{Cores, task_graph};

use crate::{of, streaming};

const LINES: [&str; 9] = [
    r#"{"tensor": 0, "name": "x", "element": "f32", "shape": [4, 8]}"#,
    r#"{"tensor": 1, "name": "counts", "element": "i32", "shape": [2, 4]}"#,
    r#"{"task": 0, "func": 1, "kind": "aiv", "args": [{"out": 1}]}"#,
    r#"{"task": 1, "func": 2, "kind": "aic", "mix": [3], "blocks": 4, "args": [{"inout": 0}], "when": {"element": {"tensor": 1, "offset": 6, "shape": [1]}, "is": ">", "value": 4294967295}}"#,
    r#"{"record": 5, "tensors": [{"tensor": 20, "element": "f32", "shape": [4, 8]}]}"#,
    r#"{"task": 2, "func": 1, "kind": "aiv", "args": [{"inout": 20}]}"#,
    r#"{"task": 3, "func": 1, "kind": "aiv", "args": [{"in": 20}], "after": [2]}"#,
    r#"{"end": "record"}"#,
    r#"{"replay": 5, "tensors": [{"tensor": 0, "shape": [4, 8]}]}"#,
];

fn conditions(program: &Program) -> Vec<String> {
    let whens = program.tasks.iter().filter_map(|task| task.block_shape.when.as_ref());
    whens.map(|when| program.condition(when)).collect()
}

#[test]
fn a_graph_has_derived_and_stated_edges_and_every_replay() {
    let program = streaming(&[&LINES[..], &LINES[8..]].concat());
    let graph = task_graph(&program, Cores::default()).unwrap();
    assert_eq!(graph.tasks, [0, 1, 2, 3, 2, 3]);
    // The predicate; x, the replay after it; within each replay one edge, said and derived; the reader before the next writer.
    assert_eq!(graph.edges, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
    assert_eq!(conditions(&program), ["tensor 1 'counts'[1, 2] > -1"]);
}

#[test]
fn what_the_program_waits_for_is_not_in_it() {
    let get = r#"{"get": {"tensor": 1, "offset": 0, "shape": [1]}}"#;
    let program = streaming(&[&LINES[..3], &[get], &LINES[3..4]].concat());
    let graph = task_graph(&program, Cores::default()).unwrap();
    assert_eq!((graph.tasks, graph.edges), (vec![0, 1], vec![(0, 1)]));
}

#[test]
fn a_program_of_tasks_and_edges_is_a_graph_as_it_stands() {
    let task = r#"{"task": 0, "func": 1, "kind": "aiv"}"#;
    let after = r#"{"task": 1, "func": 1, "kind": "aic", "after": [0]}"#;
    let graph = task_graph(&of("host_build_graph", &[task, after]), Cores::default()).unwrap();
    assert_eq!((graph.tasks, graph.edges), (vec![0, 1], vec![(0, 1)]));
}

#[test]
fn a_refused_program_says_why() {
    let many = r#"{"task": 9, "func": 1, "kind": "aic", "blocks": 25, "start": "sync"}"#;
    let refused = task_graph(&streaming(&[many]), Cores::default()).unwrap_err();
    assert_eq!(refused.fault, Some("STREAM_SYNC_BLOCKS"), "{refused}");
}

#[test]
fn conditions_are_in_the_words_of_their_elements() {
    let numbers = |element: &str, value: u64| {
        let tensor = format!(r#"{{"tensor": 0, "element": "{element}", "shape": [1]}}"#);
        let task = format!(
            r#"{{"task": 0, "func": 1, "kind": "aiv", "when": {{"element": 0, "is": "<=", "value": {value}}}}}"#
        );
        conditions(&streaming(&[&tensor, &task])).remove(0)
    };
    assert_eq!(numbers("f32", 0x3FC0_0000), "tensor 0[0] <= 1.5");
    assert_eq!(numbers("f64", 0xBFF0_0000_0000_0000), "tensor 0[0] <= -1");
    assert_eq!(numbers("u8", 200), "tensor 0[0] <= 200");
    assert_eq!(numbers("i8", 200), "tensor 0[0] <= -56");
}

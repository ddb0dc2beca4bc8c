//! What is written is read as the same program.

use pto_check::{file, program::Program};

use crate::{of, streaming};

fn again(program: &Program) -> (Program, String) {
    let mut text = Vec::new();
    file::write(program, &mut text).unwrap();
    (file::read(text.as_slice()).unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_file_comes_back_as_it_was() {
    let program = streaming(&[
        r#"{"tensor": 3, "name": "a", "base": "0x1000", "element": "bf16", "shape": [16, 64]}"#,
        r#"{"tensor": 8, "bytes": 100}"#,
        r#"{"scope": "explicit"}"#,
        r#"{"alloc": 1, "element": "f32", "shape": [4, 4]}"#,
        r#"{"task": 9, "name": "x", "func": 3, "kind": "aic", "args": [{"in": 3}, {"out": {"tensor": 1, "shape": [2, 2], "strides": [4, 1]}}, 18446744073709551615, {"f32": 0.5}, {"nodep": 1, "use": "write"}, {"inout": {"tensor": 8, "element": "u64", "offset": 1, "shape": [3]}}], "publish": "later"}"#,
        r#"{"task": 4, "func": 1, "kind": "aiv", "after": [9], "mix": [7], "blocks": 3, "start": "sync", "priority": "high", "when": {"element": {"tensor": 1, "shape": [1]}, "is": "<=", "value": 3}}"#,
        r#"{"edge": [4, 9]}"#,
        r#"{"publish": 9}"#,
        r#"{"end": "scope"}"#,
        r#"{"get": {"tensor": 8, "shape": [1]}}"#,
        r#"{"set": {"tensor": 8, "shape": [1]}}"#,
        r#"{"record": 2, "tensors": [{"tensor": 10, "element": "f32", "shape": [2, 2], "strides": [9, 1]}]}"#,
        r#"{"task": 5, "func": 1, "kind": "aiv", "args": [{"in": {"tensor": 10, "offset": 1, "shape": [2], "strides": [9]}}, {"bound": 0}]}"#,
        r#"{"end": "record"}"#,
        r#"{"replay": 2, "tensors": [{"tensor": 3, "element": "f32", "shape": [2, 2], "strides": [9, 1]}], "scalars": [1]}"#,
    ]);
    let (once, text) = again(&program);
    assert_eq!(again(&once).1, text, "written twice, it is the same file");
    // Tensors of the host's come first, wherever they stood.
    let lines =
        |program: &Program| program.steps.iter().map(|s| s.action.clone()).collect::<Vec<_>>();
    assert_eq!(
        (lines(&once), &once.tasks, &once.tensors),
        (lines(&program), &program.tasks, &program.tensors)
    );
    assert_eq!(text.lines().count(), 16);
    assert!(text.contains(r#"{"in":3},{"out":{"tensor":1,"shape":[2,2],"strides":[4,1]}},18446744073709551615,1056964608"#), "{text}");
}

#[test]
fn a_graph_comes_back_as_well() {
    let program = of(
        "host_build_graph",
        &[
            r#"{"task": 2, "func": 3, "kind": "aic", "args": [1, 2], "after": [1]}"#,
            r#"{"task": 1, "func": 3, "kind": "aic"}"#,
            r#"{"edge": [2, 1]}"#,
        ],
    );
    assert_eq!(again(&program).0, program);
}

//! Each finding, by a program that has nothing else wrong.

use pto_check::{Finding, Kind};

use crate::{checked, of, only, standard, streaming};

const A: &str = r#"{"tensor": 0, "name": "a", "element": "f32", "shape": [16, 16]}"#;

#[test]
fn a_cycle_is_named_by_its_shortest_form() {
    let lines = [
        r#"{"task": 1, "func": 0, "kind": "aiv", "after": [5]}"#,
        r#"{"task": 2, "func": 0, "kind": "aiv", "after": [1]}"#,
        r#"{"task": 3, "func": 0, "kind": "aiv", "after": [2]}"#,
        r#"{"task": 5, "func": 0, "kind": "aiv", "after": [3, 2]}"#,
        r#"{"task": 9, "func": 0, "kind": "aiv", "after": [3]}"#,
    ];
    for variant in ["host_build_graph", "aicpu_build_graph"] {
        let words = ["1 -> 2 -> 5 -> 1", "2 tasks behind them", "line 2"];
        assert_eq!(only(&of(variant, &lines), Kind::Cycle, &words).tasks, [1, 2, 5]);
    }
}

/// The streaming runtime lets a program close a cycle before its tasks are published.
#[test]
fn a_cycle_of_a_streaming_program_is_found() {
    let program = streaming(&[
        A,
        r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": 0}], "publish": "later"}"#,
        r#"{"task": 1, "func": 0, "kind": "aiv", "args": [{"in": 0}]}"#,
        r#"{"edge": [1, 0]}"#,
        r#"{"publish": 0}"#,
    ]);
    only(&program, Kind::Cycle, &["0 -> 1 -> 0"]);
}

#[test]
fn edges_to_nobody_and_to_oneself_are_found() {
    let lines = [
        r#"{"task": 7, "func": 0, "kind": "aic"}"#,
        r#"{"task": 8, "func": 0, "kind": "aic", "after": [6]}"#,
    ];
    only(&of("host_build_graph", &lines), Kind::UnknownTask, &["6 -> 8", "task 6", "line 3"]);
    only(&streaming(&lines), Kind::UnknownTask, &["6 -> 8", "line 3"]);
    let lines = [lines[0], r#"{"edge": [7, 7]}"#];
    let own = only(&of("aicpu_build_graph", &lines), Kind::SelfEdge, &["task 7", "line 3"]);
    assert_eq!(own.tasks, [7]);
    only(&streaming(&lines), Kind::SelfEdge, &["task 7"]);
}

#[test]
fn a_streaming_program_cannot_wait_for_what_is_not_there_yet() {
    let program = streaming(&[
        r#"{"task": 0, "func": 0, "kind": "aiv", "after": [1]}"#,
        r#"{"task": 1, "func": 0, "kind": "aiv"}"#,
    ]);
    only(&program, Kind::UnknownTask, &["added later", r#"{"edge": [1, 0]}"#, "line 2"]);
}

#[test]
fn a_race_names_tasks_arguments_and_bytes() {
    // Rows 0 to 7, and columns 4 to 7: the first bytes that both touch are those of row 0.
    let race = r#"{"task": 4, "name": "sum", "func": 9, "kind": "aiv",
        "args": [7, {"in": {"tensor": 0, "offset": 4, "shape": [16, 4], "strides": [16, 1]}}]}"#
        .replace('\n', "");
    let lines = [
        A,
        r#"{"task": 3, "func": 8, "kind": "aic", "args": [{"out": {"tensor": 0, "shape": [8, 16]}}]}"#,
        &race,
    ];
    let words =
        ["task 3 (func 8, argument 0, out) writes", "task 4 'sum' (func 9, argument 1, in) reads"];
    let more = ["bytes 16 to 32 of tensor 0 'a'", "line 4", "\"after\""];
    let found =
        only(&of("host_build_graph", &lines), Kind::Race, &[words, [more[0], more[1]]].concat());
    assert_eq!(
        (found.tasks, found.arguments, found.bytes),
        (vec![3, 4], vec![0, 1], Some([16, 32]))
    );
    // Where edges are derived there is none, and in a manual scope it is back.
    assert!(checked(&streaming(&lines), standard()).findings.is_empty());
    let manual =
        [&[lines[0], r#"{"scope": "manual"}"#], &lines[1..], &[r#"{"end": "scope"}"#]].concat();
    only(&streaming(&manual), Kind::Race, &["task 3", "task 4"]);
    let explicit = manual.iter().map(|line| line.replace("manual", "explicit")).collect::<Vec<_>>();
    let explicit: Vec<&str> = explicit.iter().map(String::as_str).collect();
    only(&streaming(&explicit), Kind::Race, &["task 3", "task 4"]);
}

#[test]
fn views_that_only_touch_do_not_race_and_readers_do_not() {
    let lines = [
        A,
        r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": {"tensor": 0, "shape": [16, 8], "strides": [16, 1]}}]}"#,
        r#"{"task": 1, "func": 0, "kind": "aiv", "args": [{"out": {"tensor": 0, "offset": 8, "shape": [16, 8], "strides": [16, 1]}}]}"#,
        r#"{"task": 2, "func": 0, "kind": "aiv", "args": [{"in": 0}], "after": [0, 1]}"#,
        r#"{"task": 3, "func": 0, "kind": "aiv", "args": [{"in": 0}], "after": [0, 1]}"#,
    ];
    assert!(checked(&of("aicpu_build_graph", &lines), standard()).is_clean());
}

/// What a task does with an argument from which no edges are derived.
#[test]
fn an_argument_without_edges_races_with_writes_beside_it() {
    let with = |nodep: &str| {
        let other =
            format!(r#"{{"task": 1, "func": 0, "kind": "aiv", "args": [{{"nodep": 0{nodep}}}]}}"#);
        let writes = r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": 0}]}"#;
        let reads = r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"in": 0}]}"#;
        [writes, reads]
            .map(|first| checked(&streaming(&[A, first, &other]), standard()).count(Kind::Race))
    };
    assert_eq!(with(""), [1, 0], "who writes beside it is wrong whatever is done");
    assert_eq!(with(r#", "use": "read""#), [1, 0]);
    assert_eq!(with(r#", "use": "write""#), [1, 1]);
    assert_eq!(with(r#", "use": "none""#), [0, 0]);
}

/// A program that gets an element waits for those that write it, where it can know of them; what comes later is after it.
#[test]
fn what_the_program_itself_reads_is_ordered_where_it_waits() {
    let lines = |mode: &str| {
        let scope = format!(r#"{{"scope": "{mode}"}}"#);
        let program = [
            A,
            &scope,
            r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": 0}]}"#,
            r#"{"get": {"tensor": 0, "offset": 3, "shape": [1]}}"#,
            r#"{"task": 1, "func": 0, "kind": "aiv", "args": [{"inout": 0}]}"#,
            r#"{"end": "scope"}"#,
        ];
        checked(&streaming(&program), standard())
    };
    assert!(lines("derived").is_clean());
    assert!(lines("explicit").is_clean(), "accesses are noted, and the get orders the two tasks");
    let manual = lines("manual");
    assert_eq!(manual.count(Kind::Race), 2, "{:#?}", manual.findings);
    let is_its_own = |finding: &&Finding| finding.message.contains("the program (line 5)");
    assert_eq!(manual.findings.iter().filter(is_its_own).count(), 1, "{:#?}", manual.findings);
}

#[test]
fn a_predicate_is_a_read() {
    let when = r#", "when": {"element": {"tensor": 0, "shape": [1]}, "is": ">", "value": 0}"#;
    let last = format!(r#"{{"task": 1, "func": 5, "kind": "aiv"{when}}}"#);
    let lines = [A, r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": 0}]}"#, &last];
    assert!(checked(&streaming(&lines), standard()).is_clean());
    let manual = [&[A, r#"{"scope": "manual"}"#], &lines[1..], &[r#"{"end": "scope"}"#]].concat();
    only(
        &streaming(&manual),
        Kind::Race,
        &["task 1 (func 5, its predicate) reads", "bytes 0 to 4"],
    );
}

#[test]
fn what_the_runtime_refuses_is_told_with_its_fault() {
    let twice = r#"{"task": 0, "func": 3, "kind": "aiv", "args": [{"out": 0}, 5, {"inout": 0}]}"#;
    let words = ["task 0 (func 3), argument 2", "STREAM_OUT_OVERLAP", "line 3"];
    let refused = only(&streaming(&[A, twice]), Kind::Refused, &words);
    assert_eq!(refused.fault, Some("STREAM_OUT_OVERLAP"));
    let stale = [
        r#"{"scope": "derived"}"#,
        r#"{"alloc": 0, "element": "f32", "shape": [4]}"#,
        r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": 0}]}"#,
        r#"{"task": 1, "func": 0, "kind": "aiv", "args": [{"in": 0}]}"#,
        r#"{"end": "scope"}"#,
        r#"{"task": 2, "func": 0, "kind": "aiv", "args": [{"in": 0}]}"#,
    ];
    only(&streaming(&stale), Kind::Refused, &["task 2", "STREAM_STALE_TENSOR", "line 7"]);
    let unpublished = [r#"{"task": 9, "func": 0, "kind": "aiv", "publish": "later"}"#];
    only(&streaming(&unpublished), Kind::Refused, &["end of the program", "BUILD_NOT_PUBLISHED"]);
    let open = [r#"{"scope": "manual"}"#];
    only(&streaming(&open), Kind::Refused, &["STREAM_SCOPE_LEFT_OPEN"]);
    let late = [
        r#"{"task": 0, "func": 0, "kind": "aiv"}"#,
        r#"{"task": 1, "func": 0, "kind": "aiv"}"#,
        r#"{"edge": [1, 0]}"#,
    ];
    only(&streaming(&late), Kind::Refused, &["the edge 1 -> 0", "BUILD_CONSUMER_PUBLISHED"]);
    let blocks = [r#"{"task": 0, "func": 0, "kind": "aic", "blocks": 25, "start": "sync"}"#];
    only(&streaming(&blocks), Kind::Refused, &["STREAM_SYNC_BLOCKS", "Found 25, expected 24"]);
}

#[test]
fn tensors_that_meet_in_memory_are_told() {
    let lines = [
        r#"{"tensor": 0, "bytes": 4096, "base": "0x10000"}"#,
        r#"{"tensor": 1, "bytes": 64, "base": "0x10f00"}"#,
        r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": 0}]}"#,
        r#"{"task": 1, "func": 0, "kind": "aiv", "args": [{"in": 1}], "after": [0]}"#,
    ];
    only(&streaming(&lines), Kind::Alias, &["tensor 0", "tensor 1", "one tensor"]);
    // Without the edge there is a race, which the runtime does not see.
    let apart = lines[3].replace(r#", "after": [0]"#, "");
    let report = checked(&streaming(&[lines[0], lines[1], lines[2], &apart]), standard());
    assert_eq!((report.count(Kind::Race), report.count(Kind::Alias)), (1, 1));
    assert_eq!(report.findings[0].bytes, Some([0xf00, 0xf40]), "{}", report.findings[0]);
}

#[test]
fn tensors_of_the_heap_that_are_not_read_are_warnings() {
    let with = |tasks: &[&str]| {
        let alloc = r#"{"alloc": 6, "name": "t", "element": "f32", "shape": [4]}"#;
        let (open, end) = (r#"{"scope": "derived"}"#, r#"{"end": "scope"}"#);
        streaming(&[&[open, alloc], tasks, &[end]].concat())
    };
    let out = r#"{"task": 0, "func": 0, "kind": "aiv", "args": [{"out": 6}]}"#;
    let read = r#"{"task": 1, "func": 0, "kind": "aiv", "args": [{"in": 6}]}"#;
    only(&with(&[]), Kind::NeverUsed, &["tensor 6 't'", "no task uses it"]);
    only(&with(&[out]), Kind::NeverRead, &["task 0 writes tensor 6", "nothing reads it"]);
    only(
        &with(&[read]),
        Kind::ReadBeforeWrite,
        &["task 1 reads tensor 6", "before anything writes"],
    );
    let late = out.replace("\"task\": 0", "\"task\": 2");
    only(&with(&[read, &late]), Kind::ReadBeforeWrite, &["task 1"]);
    assert!(checked(&with(&[out, read]), standard()).warnings.is_empty());
}

#[test]
fn tasks_that_declare_no_tensors_are_told() {
    let lines = [r#"{"task": 0, "func": 0, "kind": "aiv", "args": [4096]}"#];
    let report = checked(&of("aicpu_build_graph", &lines), standard());
    assert!(report.is_clean() && report.notes[0].contains("1 task does not declare"), "{report:?}");
}

/// Func ids, kinds of cores and numbers of arguments are those of the kernels that there are.
#[test]
fn kernels_are_compared_with_those_that_there_are() {
    let args = |names: &str| names.split_whitespace().map(str::to_owned).collect();
    let signature = |func, name: &str, kind, names| {
        let name = name.to_owned();
        let (args, takes_more, footprint) = (args(names), func == 7, None);
        pto_check::Signature { func, name, kind, args, takes_more, footprint }
    };
    let known = [
        signature(3, "exp", pto_abi::CoreKind::AIV, "a out n"),
        signature(6, "matmul", pto_abi::CoreKind::AIC, "a b c"),
        signature(7, "tile", pto_abi::CoreKind::AIV, "code epitaph"),
    ];
    let kernels = pto_check::Signatures::new(known.to_vec());
    let tensor = r#"{"tensor": 0, "element": "f32", "shape": [4]}"#;
    let finds = |task: &str, words: &[&str]| {
        let program = streaming(&[tensor, task]);
        let options = pto_check::Options {
            rings: standard(),
            cores: pto_check::Cores::default(),
            kernels: Some(kernels.clone()),
        };
        let report = pto_check::check(&program, &options);
        let text: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(report.count(Kind::Kernel), usize::from(!words.is_empty()), "{text:?}");
        for word in words {
            assert!(text.iter().any(|text| text.contains(word)), "no {word:?} in {text:?}");
        }
        assert_eq!(checked(&program, standard()).count(Kind::Kernel), 0, "without kernels");
    };
    finds(r#"{"task": 7, "func": 3, "kind": "aiv", "args": [{"in": 0}, {"out": 0}, 4]}"#, &[]);
    let unknown = r#"{"task": 7, "func": 9, "kind": "aiv"}"#;
    finds(unknown, &["line 3: task 7: no kernel has func id 9"]);
    let kind = r#"{"task": 7, "func": 3, "kind": "aic", "args": [{"in": 0}, {"out": 0}, 4]}"#;
    finds(kind, &["exp runs on aiv cores, and the task is for aic"]);
    let few = r#"{"task": 7, "func": 3, "kind": "aiv", "args": [{"in": 0}, {"out": 0}]}"#;
    finds(few, &["exp takes 3 arguments (a, out, n), and the task has 2"]);
    let mix = r#"{"task": 7, "func": 6, "kind": "aic", "mix": [6], "args": [1, 2, 3]}"#;
    finds(mix, &["matmul runs on aic cores, and the task is for aiv"]);
    finds(r#"{"task": 7, "func": 7, "kind": "aiv", "args": [1, {"out": 0}, 3, 4]}"#, &[]);
    let few = r#"{"task": 7, "func": 7, "kind": "aiv", "args": [{"out": 0}]}"#;
    finds(few, &["tile takes at least 2 arguments (code, epitaph), and the task has 1"]);
}

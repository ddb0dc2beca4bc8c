//! Workloads that are refused: the error names the loop, the kernel and the argument.

use pto_workload::Workload;
use pto_workload::tree::{Axis, Loop, TreeNode};

const COPY: &str = "kernel copy(x: in f32[4, 8], y: out f32[4, 8]) {
    %0 = load x : f32[4, 8]
    store y, %0
  }
  kernel scale(x: inout f32[4, 8], s: f32) {
    %0 = load x : f32[4, 8]
    %1 = scalar s : f32
    %2 = mul %0, %1 by one : f32[4, 8]
    store x, %2
  }";

fn refusal(head: &str, root: &str) -> String {
    let text = format!(
        "workload w {{
  {head}
  tensor X : f32[3, 4, 8]
  tensor Y : f32[3, 4, 8]
  tensor H : f16[3, 4, 8]
  tensor D : f32[2, 3, 4, 8]
  {COPY}
  do {root}
}}"
    );
    let workload = Workload::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    workload.check().unwrap_err().to_string()
}

#[test]
fn workers_without_end_are_refused() {
    for workers in [65_537, 4_294_967_296, u64::MAX] {
        let text = format!(
            "workload w {{ schedule round_robin workers {workers} window 8 stall do empty }}"
        );
        let error = Workload::parse(&text).unwrap().check().unwrap_err().to_string();
        assert!(error.contains(&format!("has {workers} workers. The limit is 65536.")), "{error}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let copy = "copy[b](x = X[b], y = Y[b])";
    for (root, expected) in [
        (
            "parallel b in dense 4 { copy[b](x = X[b], y = Y[b]) }",
            "Workload w, loop b, kernel copy, argument x: The index of dimension 0 of X becomes 3, and the dimension has 3 places.",
        ),
        (
            "parallel b in dense 3 { copy[b](x = X[b], y = Y[b - 1]) }",
            "Workload w, loop b, kernel copy, argument y: The index of dimension 0 of Y becomes -1, and the dimension has 3 places.",
        ),
        (
            "parallel b in dense 3 { copy[b](x = X[0, b * 2 for 4], y = Y[b]) }",
            "Workload w, loop b, kernel copy, argument x: The index of dimension 1 of X becomes 4, and the dimension has 4 places.",
        ),
        (
            "parallel b in dense 3 { copy[b](x = X[0, b - 2 for symbol(n)], y = Y[b]) }",
            "Workload w, loop b, kernel copy, argument x: The index of dimension 1 of X becomes -2, and the dimension has 4 places.",
        ),
        (
            "parallel b in dense 3 { copy[b](x = H[b], y = Y[b]) }",
            "Workload w, loop b, kernel copy, argument x: The kernel needs f32[4, 8], and the tensor H is of type f16.",
        ),
        (
            "parallel b in dense 2 { copy[b](x = D[b], y = Y[b]) }",
            "Workload w, loop b, kernel copy, argument x: The view of D has 3 dimensions without an index, and f32[4, 8] takes two. Index the leading ones.",
        ),
        (
            "parallel b in dense 3 { copy[b](x = X[b, 0, 0, 0], y = Y[b]) }",
            "Workload w, loop b, kernel copy, argument x: The view of X has 4 indices, and the tensor 3 dimensions.",
        ),
        (
            "parallel b in dense 3 { copy[b](x = X[b, 0], y = Y[b]) }",
            "Workload w, loop b, kernel copy, argument x: The view of X has 1 dimension without an index, and f32[4, 8] takes two. Give the tile one row or one column.",
        ),
        (
            "parallel b in dense 3 { parallel b in dense 2 { copy[b](x = X[b], y = Y[b]) } }",
            "Workload w, loop b, loop b: The loop variable b hides that of a loop around it. Give one of them another name.",
        ),
        (
            "parallel b in dense 3 { scale[b](x = X[b], s = c) }",
            "Workload w, loop b, kernel scale, argument s: There is no loop variable c here.",
        ),
        (
            "parallel b in dense 3 { copy[b < 2](x = X[b], y = Y[b]) }",
            "Workload w, loop b, kernel copy: The axis is bool and must be an integer.",
        ),
        (
            "parallel b in dense 3 { if b { empty } else { empty } }",
            "Workload w, loop b: A predicate must be bool. Compare it with a number.",
        ),
        (
            "select e in dense 3 { empty }",
            "Workload w: A selection goes over a sparse axis. Use a parallel loop.",
        ),
        (
            "parallel e (r, c) in dense 3 { empty }",
            "Workload w, loop e: Only ragged and sparse axes give more variables than one.",
        ),
        ("slot 256 = 3", "Workload w: There is no slot 256. The last one is 255."),
        (
            "combine { pipeline { } }",
            "Workload w: A pipeline is inside another node. It must be the whole workload.",
        ),
    ] {
        let root = if root.is_empty() { copy } else { root };
        assert_eq!(refusal("", root), expected, "{root}");
    }
}

#[test]
fn schedules_and_pipelines_are_checked() {
    let loops = "parallel b in dense 3 { copy[b](x = X[b], y = Y[b]) }";
    for (head, root, expected) in [
        (
            "schedule round_robin workers 0 window 1 stall",
            loops,
            "Workload w: The schedule has no worker. It needs at least 1.",
        ),
        (
            "schedule hash (b < 2) workers 2 window 1 stall",
            loops,
            "Workload w, loop b, kernel copy, key of the dispatch: The key is bool and must be an integer.",
        ),
        (
            "schedule round_robin workers 2 window 1 stall priority (b == 1)",
            loops,
            "Workload w, loop b, kernel copy, priority: The priority is bool and must be an integer.",
        ),
        (
            "schedule hash (c) workers 2 window 1 stall",
            loops,
            "Workload w, loop b, kernel copy, key of the dispatch: There is no loop variable c here.",
        ),
        (
            "schedule by (param(5)) workers 2 window 1 stall",
            loops,
            "Workload w, loop b, kernel copy, key of the dispatch: A task has 5 arguments, and none with number 5.",
        ),
    ] {
        assert_eq!(refusal(head, root), expected);
    }
    let pipeline = |channels: &str, processes: &str| {
        let text = format!(
            "workload w {{\n  tensor X : f32[4, 8]\n  {channels}\n  {COPY}\n  do pipeline {{ {processes} }}\n}}"
        );
        Workload::parse(&text).unwrap().check().unwrap_err().to_string()
    };
    let send = "process a produces c { each t in dense 2 { send c scale[t](x = X, s = 1) } }";
    let take = "process b consumes c { consume c as t { scale[t](x = X, s = 1) } }";
    let alone = "process b consumes c { empty }";
    let cases = [
        (pipeline("channel c depth 1", take), "Workload w: No process sends to the channel c."),
        (
            pipeline("channel c depth 1", &format!("{send} {alone}")),
            "Workload w: No process consumes the channel c.",
        ),
        (
            pipeline("channel c depth 1", &format!("{} {take}", send.replace("produces c ", ""))),
            "Workload w, process a, loop t: The process a sends from or to c, and does not declare it.",
        ),
        (
            pipeline("channel c depth 1", &format!("{} {take}", send.replace("[t]", "[]"))),
            "Workload w, process a, loop t: The task that is sent to c has no axis, and its first axis is the token.",
        ),
        (
            pipeline(
                "channel c depth 1",
                &format!("{send} {}", take.replace("process b", "process a")),
            ),
            "Workload w: Two of its processes have the name a. Rename one.",
        ),
        (
            pipeline("channel c depth 1\n  channel c depth 2", &format!("{send} {take}")),
            "Workload w: Two of its channels have the name c. Rename one.",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(
            found.replace("processs", "processes"),
            expected.replace("processs", "processes")
        );
    }
}

/// Each rank has tensors of its own: what a process reads is written on its rank, or comes with a token.
#[test]
fn pipelines_on_ranks_read_what_comes() {
    let sends = |process: &str| {
        format!(
            "process a {process} produces c {{ each t in dense 3 {{ send c copy[t](x = X[t], y = Y[t]) }} }}"
        )
    };
    let takes = |rank: &str, body: &str| {
        format!("process b {rank} consumes c {{ consume c as t {{ {body} }} }}")
    };
    let head = "channel c depth 1";
    let pipeline = |parts: [String; 2]| format!("pipeline {{ {} }}", parts.join(" "));
    let accepted = |root: String| {
        let text = format!(
            "workload w {{ tensor X : f32[3, 4, 8] tensor Y : f32[3, 4, 8] tensor Z : f32[3, 4, 8] {head} {COPY} do {root} }}"
        );
        Workload::parse(&text).unwrap().check().map(|checked| checked.workload().is_on_ranks())
    };
    let read = "copy[t](x = Y[t], y = Z[t])";
    assert_eq!(accepted(pipeline([sends("on 1"), takes("on 2", read)])), Ok(true));
    assert_eq!(accepted(pipeline([sends(""), takes("", read)])), Ok(false));
    let plain = "each t in dense 3 { sequential { copy[t](x = X[t], y = Z[t]) send c copy[t](x = X[t], y = Y[t]) } }";
    let other = format!("process a on 1 produces c {{ {plain} }}");
    let refused = accepted(pipeline([other, takes("", "copy[t](x = Z[t], y = Y[t])")]));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "Workload w: Process b on rank 0 reads the tensor Z, which process a on rank 1 writes in a task that sends no token there. Send one with that task, or put both on one rank."
    );
    let slot = "sequential { slot 1 from Y[t] at (0, 0) copy[t](x = Y[t], y = Z[t]) }";
    let refused = accepted(pipeline([sends("on 1"), takes("", slot)])).unwrap_err().to_string();
    assert!(refused.contains("Process b reads an element of a tensor into a slot"), "{refused}");
    let error = Workload::parse("workload w { do pipeline { process a on 65536 { empty } } }");
    assert!(error.is_err(), "there is no such rank");
}

#[test]
fn names_are_names() {
    let refused = |workload: Workload| workload.check().unwrap_err().to_string();
    assert!(
        refused(Workload::new("a b", TreeNode::Empty))
            .contains("\"a b\" is no name for a workload.")
    );
    let around = Loop::new("1st", Axis::Dense(1));
    let workload = Workload::new("w", TreeNode::ParallelFor(around, Box::new(TreeNode::Empty)));
    assert!(
        refused(workload)
            .starts_with("Workload w, loop 1st: \"1st\" is no name for a loop variable.")
    );
}

#[test]
fn a_tile_unlike_its_view_is_a_warning() {
    let text = format!(
        "workload w {{
  tensor X : f32[3, 2, 8]
  tensor Y : f32[3, 4, 8]
  {COPY}
  do parallel b in dense 3 {{ copy[b](x = X[b], y = Y[b]) }}
}}"
    );
    let checked = Workload::parse(&text).unwrap().check().unwrap();
    let [warning] = checked.warnings() else { panic!("{:?}", checked.warnings()) };
    assert_eq!(warning.path, ", loop b, kernel copy, argument x");
    assert_eq!(
        warning.message,
        "The tile f32[4, 8] is not the view of X, which has 2 x 8 elements."
    );
}

//! Traces as files: what is written is read, what is wrong is said, and a viewer finds what it needs.

use pto_host::timeline::file::{self, FileError};
use pto_host::timeline::{Analysis, Moments, Trace};
use serde_json::Value;

use crate::hand::three_tasks;

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    file::write(trace, &mut bytes).expect("a vector takes everything");
    bytes
}

#[test]
fn what_is_written_is_read() {
    let mut trace = three_tasks();
    trace.tasks[1].at = Moments::default();
    (trace.tasks[1].core, trace.tasks[1].scheduler) = (None, None);
    trace.kernels.insert(9, "a \"quoted\"\nname".to_owned());
    trace.tasks[0].func_id = 9;
    assert_eq!(file::read(&written(&trace)).expect("it is a trace"), trace);
}

#[test]
fn a_viewer_finds_lanes_slices_and_arrows() {
    let json: Value = serde_json::from_slice(&written(&three_tasks())).expect("it is JSON");
    let events = json["traceEvents"].as_array().expect("a list");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let slices = of("X");
    assert_eq!(slices.len(), 3);
    assert_eq!(
        (&slices[2]["name"], &slices[2]["pid"], &slices[2]["tid"]),
        (&"matmul".into(), &1.into(), &0.into())
    );
    assert_eq!((slices[2]["ts"].as_f64(), slices[2]["dur"].as_f64()), (Some(0.16), Some(0.04)));
    let names: Vec<_> = of("M").iter().filter_map(|event| event["args"]["name"].as_str()).collect();
    assert_eq!(
        names,
        ["AICPU", "AIC", "AIV", "counters", "aicpu 0", "aicpu 1", "aic 0", "aiv 0", "aiv 1"]
    );
    let (starts, ends) = (of("s"), of("f"));
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!(starts[0]["id"], ends[0]["id"]);
    // The arrow leaves within the producer's slice and arrives at the consumer's.
    assert_eq!((starts[0]["tid"].as_u64(), starts[0]["ts"].as_f64()), (Some(1), Some(0.119)));
    assert_eq!((ends[0]["tid"].as_u64(), ends[0]["ts"].as_f64()), (Some(0), Some(0.16)));
    assert_eq!(of("i").len(), 9, "add, dispatch and complete of each task");
}

/// A stream waits before what it waits for is done.
#[test]
fn an_arrow_to_a_wait_does_not_go_back_in_time() {
    let mut trace = three_tasks();
    // Task 2 runs from 160 to 200, and task 0 ends in the middle of that.
    trace.tasks[0].at.finished = Some(180);
    let file: Value = serde_json::from_slice(&written(&trace)).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let at = |kind: &str| {
        let arrow = events.iter().find(|event| event["ph"] == kind).unwrap();
        arrow["ts"].as_f64().unwrap()
    };
    assert_eq!((at("s"), at("f")), (0.179, 0.180));
}

fn refusal(bytes: &[u8]) -> String {
    file::read(bytes).expect_err("it is no trace").to_string()
}

/// The trace with a change to its section.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut json: Value = serde_json::from_slice(&written(&three_tasks())).expect("it is JSON");
    change(&mut json["pto"]);
    refusal(json.to_string().as_bytes())
}

#[test]
fn what_is_no_trace_is_refused() {
    assert!(refusal(b"").contains("not a trace"));
    assert!(refusal(b"{\"traceEvents\": [").contains("line 1"));
    let whole = written(&three_tasks());
    assert!(refusal(&whole[..whole.len() / 2]).contains("not a trace"));
    assert!(refusal(b"{\"traceEvents\": []}").contains("no section \"pto\""));
    assert!(refusal(&[0xFF, 0xFE]).contains("not a trace"));
}

#[test]
fn a_trace_of_another_version_is_refused_with_both() {
    let message = changed(|pto| pto["version"] = 1.into());
    assert!(
        message.contains("version 1") && message.contains("reads pto-timeline version 3"),
        "{message}"
    );
    let other = br#"{"pto": {"schema": "pto-timeline", "version": 7, "anything": 1}}"#;
    assert!(matches!(file::read(other), Err(FileError::Version { version: 7, .. })));
}

#[test]
fn a_trace_that_contradicts_itself_is_refused_with_the_position() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 8] = [
        ("0 -> 3 leaves the 3 tasks", |pto| pto["edges"] = vec![0, 3].into()),
        ("a producer and no consumer", |pto| pto["edges"] = vec![0].into()),
        ("task 1: core 3 of 3", |pto| pto["tasks"][1][2] = 3.into()),
        ("task 0: an unknown core kind", |pto| pto["tasks"][0][1] = 2.into()),
        ("task 2: 70000 is no func id", |pto| pto["tasks"][2][0] = 70_000.into()),
        ("\"gpu\" is no core kind", |pto| pto["cores"][0] = "gpu".into()),
        ("\"gpu 1\" is no lane", |pto| pto["lanes"][0]["lane"] = "gpu 1".into()),
        ("task_columns", |pto| pto["task_columns"][3] = "x".into()),
    ];
    for (words, change) in cases {
        let message = changed(change);
        assert!(message.contains(words), "{message}");
    }
    assert!(changed(|pto| pto["tasks"][0] = vec![1, 2].into()).contains("not a trace"));
}

/// Each slice and each arrow for viewers.
fn events(trace: &Trace, kind: &str) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&written(trace)).expect("it is JSON");
    let all = json["traceEvents"].as_array().expect("a list").iter();
    all.filter(|event| event["ph"] == kind).cloned().collect()
}

#[test]
fn names_of_tasks_are_kept_and_shown() {
    let names = vec!["e0".to_owned(), String::new()];
    let named = Trace { task_names: names, ..three_tasks() };
    assert_eq!(file::read(&written(&named)).expect("a trace"), named);
    let slices = events(&named, "X");
    let shown: Vec<_> =
        slices.iter().map(|slice| slice["name"].as_str().expect("a name")).collect();
    assert_eq!(shown, ["e0: add", "add", "matmul"]);
    assert_eq!(
        (&slices[0]["args"]["name"], &slices[0]["args"]["kernel"]),
        (&"e0".into(), &"add".into())
    );
    let analysis = Analysis::of(&named).expect("it ran");
    let text = pto_host::timeline::report::text(&named, &analysis);
    assert_eq!(text.matches("e0: add").count(), 2, "the chain and the waits:\n{text}");
    for page in [
        pto_host::timeline::html::page(&named, &analysis),
        pto_host::timeline::svg::picture(&named, &analysis),
    ] {
        assert!(page.contains("\"e0\"") || page.contains("<title>e0: add</title>"), "{page}");
    }
    let message = changed(|pto| pto["task_names"] = vec!["a"; 4].into());
    assert!(message.contains("4 names of 3 tasks"), "{message}");
}

/// By hand, from the picture of the three tasks: task 1 is skipped at 40 in the second run, and task 2 does not end.
#[test]
fn a_viewer_finds_the_counters() {
    let mut trace = three_tasks();
    let steps = |trace: &Trace, name: &str, unit: &str| -> Vec<(f64, i64)> {
        let all = events(trace, "C").into_iter().filter(|event| event["name"] == name);
        let step = |event: Value| {
            let us = event["ts"].as_f64().expect("a time");
            ((us * 1000.0).round(), event["args"][unit].as_i64().expect("a value"))
        };
        all.map(step).collect()
    };
    let ready = [(0.0, 2), (10.0, 0), (130.0, 1), (150.0, 0)];
    assert_eq!(steps(&trace, "ready", "tasks"), ready);
    let busy = [(20.0, 2), (60.0, 1), (120.0, 0), (160.0, 1), (200.0, 0)];
    assert_eq!(steps(&trace, "busy", "cores"), busy);
    assert_eq!(steps(&trace, "ahead", "tasks"), [(0.0, 3), (20.0, 1), (160.0, 0)]);
    let added = Some(0);
    trace.tasks[1].core = None;
    let skipped = Some(40);
    trace.tasks[1].at =
        Moments { added, ready: added, completed: skipped, skipped, ..Moments::default() };
    (trace.tasks[2].at.finished, trace.tasks[2].at.completed) = (None, None);
    let ready = [(0.0, 2), (10.0, 1), (40.0, 0), (130.0, 1), (150.0, 0)];
    assert_eq!(steps(&trace, "ready", "tasks"), ready);
    let busy = [(20.0, 1), (120.0, 0), (160.0, 1), (210.0, 0)];
    assert_eq!(steps(&trace, "busy", "cores"), busy);
    assert_eq!(steps(&trace, "ahead", "tasks"), [(0.0, 3), (20.0, 2), (40.0, 1), (160.0, 0)]);
}

/// A wait of a stream begins before what it waits for, and its end may be seen first.
#[test]
fn no_arrow_goes_back_in_time() {
    let mut trace = three_tasks();
    let arrow = |trace: &Trace| {
        let at = |kind| events(trace, kind).first().map(|event| event["ts"].as_f64());
        (at("s").flatten(), at("f").flatten())
    };
    for (start, finish, expected) in [
        (10, 125, (Some(0.119), Some(0.120))),
        (10, 120, (Some(0.119), Some(0.119))),
        (10, 70, (Some(0.069), Some(0.069))),
        (5, 15, (None, None)),
    ] {
        (trace.tasks[2].at.started, trace.tasks[2].at.finished) = (Some(start), Some(finish));
        assert_eq!(arrow(&trace), expected, "{start} to {finish}");
    }
}

//! What `pto check EXAMPLE --save FILE` writes runs, and computes what the example computes: every tensor that a task writes is the
//! same to the last bit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::examples::{self, ExampleCase, borrowed};
use crate::pto::{pto, refused};

const HOSTINGS: &[&[&str]] = &[
    &["--hosting=threads", "--aic=8", "--aiv=16", "--aicpu=2"],
    &["--hosting=virtual"],
    &["--hosting=pool"],
];

/// The files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).expect("a file"))
    };
    entries.map(file).collect()
}

pub(crate) fn index(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("index.json")).expect("the index");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The options that give what a folder of inputs holds.
fn inputs(folder: &Path) -> Vec<String> {
    let index = index(folder);
    assert_eq!(index["format"], "pto-inputs");
    let tensors = index["tensors"].as_array().expect("tensors").iter();
    let option = |tensor: &Value| {
        let name = tensor["name"].as_str().expect("tensors of examples have names");
        let file = folder.join(tensor["file"].as_str().expect("a file"));
        format!("--input={name}={}", file.display())
    };
    tensors.map(option).collect()
}

#[test]
fn what_every_example_saves_runs_and_computes_the_same() {
    for case in examples::all() {
        for variant in case.runtimes() {
            saved_and_run(case, variant);
        }
    }
}

fn saved_and_run(case: ExampleCase, variant: &str) {
    let example = case.name();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let text = |name: &str| at(name).to_str().expect("UTF-8").to_owned();
    let (graph, held, own) = (text("graph.jsonl"), text("inputs"), text("own"));
    let (check, run) = (case.small("check"), case.small("run"));
    let save = ["--runtime", variant, "--save", &graph, "--save-inputs", &held];
    pto(&[&borrowed(&check)[..], &save].concat(), 0);
    pto(&[&borrowed(&run)[..], &["--runtime", variant, "--dump", &own]].concat(), 0);
    let own = files(&at("own"));
    // The index, and a file for each tensor that a task writes, outputs among them.
    let least = case.example().outputs().len().max(1);
    assert!(own.len() > least, "{example} {variant}: {:?}", own.keys());
    let given = inputs(&at("inputs"));
    for (number, hosting) in HOSTINGS.iter().enumerate() {
        let dump = text(&number.to_string());
        let mut run = vec!["run", &graph, "--dump", &dump];
        run.extend(given.iter().map(String::as_str));
        run.extend(*hosting);
        let printed = pto(&run, 0).stdout;
        assert!(printed.contains(variant), "{printed}");
        let again = files(&at(&number.to_string()));
        assert!(
            own.keys().eq(again.keys()),
            "{example} {variant}: {:?} {:?}",
            own.keys(),
            again.keys()
        );
        for (name, bytes) in &own {
            assert!(*bytes == again[name], "{example} {variant} {hosting:?}: {name}");
        }
    }
}

#[test]
fn a_line_that_cannot_be_run_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("g.jsonl");
    let graph = path.to_str().expect("UTF-8");
    let header = r#"{"format":"pto-graph","version":1,"variant":"tensormap_and_ringbuffer"}"#;
    let tensors = r#"{"tensor":0,"name":"x","element":"f32","shape":[8]}"#;
    let exp = |id: u32, more: &str| {
        format!(r#"{{"task":{id},"func":3,"kind":"aiv","args":[{{"in":0}},{{"out":0}},8]{more}}}"#)
    };
    let write = |lines: &[&str]| {
        fs::write(&path, [&[header, tensors], lines].concat().join("\n")).expect("a file");
    };
    let element = r#"{"tensor":0,"offset":3,"shape":[1]}"#;
    let set = |value: &str| format!(r#"{{"set":{element}{value}}}"#);
    write(&[&set("")]);
    refused(&["run", graph], 2, &["line 3", "\"value\""]);
    write(&[&exp(0, r#","after":[1]"#), &exp(1, "")]);
    refused(&["run", graph], 2, &["line 3", "task 0 waits for task 1", "not known here"]);
    write(&[&exp(0, r#","publish":"later""#), r#"{"edge":[7,0]}"#, r#"{"publish":0}"#]);
    refused(&["run", graph], 2, &["line 4", "no task 7"]);
    // The runtime refuses the second task's view of a tensor whose scope has ended.
    let alloc = r#"{"alloc":1,"element":"f32","shape":[8]}"#;
    let late = r#"{"task":1,"func":3,"kind":"aiv","args":[{"in":1},{"out":0},8]}"#;
    write(&[r#"{"scope":"derived"}"#, alloc, r#"{"end":"scope"}"#, late]);
    refused(&["run", graph], 3, &["STREAM_STALE_TENSOR", "line 6 of the graph file"]);
    // With a value the set is made: e^2, and the seven others of what was there.
    write(&[&set(r#","value":1073741824"#), &exp(0, "")]);
    let output = format!("--output=x={}", folder.path().join("x.npy").display());
    pto(&["run", graph, &output], 0);
    let bytes = fs::read(folder.path().join("x.npy")).expect("the output");
    let values = &bytes[bytes.len() - 32..];
    let third = f32::from_le_bytes(values[12..16].try_into().expect("four bytes"));
    assert!((third - 2.0_f32.exp()).abs() < 1e-5, "{third}");
}

/// Kernels that wait for each other run where cores run at once.
#[test]
fn kernels_that_meet_are_refused_where_one_core_runs_after_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("g.jsonl");
    let graph = graph.to_str().expect("UTF-8");
    let size = ["--param=tasks=10", "--param=layers=2", "--param=meet=1"];
    pto(&[&["check", "task_shapes", "--save", graph][..], &size].concat(), 0);
    refused(&["run", graph, "--hosting=virtual"], 2, &["wait for each other", "--hosting threads"]);
    pto(&["run", graph, "--hosting=threads"], 0);
}

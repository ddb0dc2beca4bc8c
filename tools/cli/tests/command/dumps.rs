//! `pto run --dump`: every tensor that tasks write, and an index of them.

use std::fs;

use serde_json::Value;

use crate::files::Files;
use crate::pto::{pto, refused};
use crate::saved_runs::index;

/// The entry of a tensor in the index.
fn entry<'v>(index: &'v Value, name: &str) -> &'v Value {
    let tensors = index["tensors"].as_array().expect("tensors");
    tensors.iter().find(|tensor| tensor["name"] == name).expect("a tensor of that name")
}

#[test]
fn intermediate_tensors_of_a_graph_have_names_shapes_and_values() {
    let (files, folder) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let dump = folder.path().join("d");
    let option = dump.to_str().expect("UTF-8");
    files.put("a", &[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    files.put("b", &[3, 1], &[1.0_f32, 0.0, -1.0]);
    files.put("d", &[2, 1], &[10.0_f32, 20.0]);
    let [a, b, d] = ["a", "b", "d"].map(|name| format!("--input={}", files.option(name)));
    let output = pto(&["run", "matmul", &a, &b, &d, "--dump", option], 0).stdout;
    assert!(output.contains("2 tensors, ") && output.contains("index.json says which"), "{output}");
    let index = index(&dump);
    assert_eq!((&index["format"], &index["name"]), (&"pto-dump".into(), &"matmul".into()));
    let ab = entry(&index, "ab");
    assert_eq!((&ab["shape"], &ab["dtype"]), (&serde_json::json!([2, 1]), &"f32".into()));
    assert_eq!((&ab["file"], &ab["place"]), (&"ab.npy".into(), &"host".into()));
    // The kernel that writes it takes it for one row; the example says what it is.
    assert_eq!(entry(&index, "c")["shape"], serde_json::json!([2, 1]));
    fs::copy(dump.join("ab.npy"), files.path("ab")).expect("a file");
    fs::copy(dump.join("c.npy"), files.path("c")).expect("a file");
    assert_eq!(files.get("ab").1, [-2.0, -2.0]);
    assert_eq!(files.get("c").1, [8.0, 18.0]);
}

/// Tensors on the heap are saved as well, although the run uses their memory again.
#[test]
fn tensors_of_the_heap_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("d");
    let option = dump.to_str().expect("UTF-8");
    let size = ["--param=tokens=5", "--param=hidden=32", "--param=experts=4", "--param=seed=2"];
    pto(&[&["run", "moe_layer", "--dump", option][..], &size].concat(), 0);
    let index = index(&dump);
    let of = |origin: &str| {
        let tensors = index["tensors"].as_array().expect("tensors");
        tensors.iter().filter(|tensor| tensor["place"] == origin).count()
    };
    // Logits, the lists, the results, and three tensors of each expert; out, choices, weights, counts and ran.
    assert_eq!((of("heap"), of("host")), (3 + 3 * 4, 5));
    assert_eq!(entry(&index, "choices")["dtype"], "u32");
    assert_eq!(entry(&index, "counts")["shape"], serde_json::json!([4, 16]));
    assert_eq!(index["left_out"], serde_json::json!([]));
}

#[test]
fn a_folder_that_is_not_empty_is_refused_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    fs::write(folder.path().join("old.npy"), "x").expect("a file");
    let long = ["run", "paged_attention", "--param=batch=2000", "--dump"];
    refused(&[&long[..], &[path]].concat(), 2, &["is not empty", "name a new folder"]);
    let file = folder.path().join("old.npy");
    refused(&["run", "matmul", "--dump", file.to_str().expect("UTF-8")], 2, &["is a file"]);
    refused(&["run", "matmul", "--dump", "/proc/none"], 4, &["cannot make the folder"]);
    let new = folder.path().join("new");
    let new = new.to_str().expect("UTF-8");
    refused(
        &["run", "matmul", "--dump", new, "--hosting=virtual", "--no-compute"],
        2,
        &["--no-compute"],
    );
    let inputs = ["check", "examples.jsonl", "--save", "/tmp/x", "--save-inputs", path];
    refused(&inputs, 2, &["is not empty"]);
}

/// Tensors that a record allocates have no memory of their own; the index says so.
#[test]
fn what_cannot_be_dumped_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (graph, dump) = (folder.path().join("g.jsonl"), folder.path().join("d"));
    let lines = [
        r#"{"format":"pto-graph","version":1,"variant":"tensormap_and_ringbuffer"}"#,
        r#"{"tensor":0,"name":"x","element":"f32","shape":[8]}"#,
        r#"{"record":0,"tensors":[{"tensor":1,"element":"f32","shape":[8]}]}"#,
        r#"{"scope":"derived"}"#,
        r#"{"alloc":2,"name":"inner","element":"f32","shape":[8]}"#,
        r#"{"task":0,"func":3,"kind":"aiv","args":[{"in":1},{"out":2},8]}"#,
        r#"{"task":1,"func":3,"kind":"aiv","args":[{"in":2},{"out":1},8]}"#,
        r#"{"end":"scope"}"#,
        r#"{"end":"record"}"#,
        r#"{"replay":0,"tensors":[0]}"#,
    ];
    fs::write(&graph, lines.join("\n")).expect("a file");
    let [graph, option] = [&graph, &dump].map(|path| path.to_str().expect("UTF-8"));
    let output = pto(&["run", graph, "--dump", option], 0).stdout;
    assert!(
        output.contains("1 tensor, ") && output.contains("1 of records are left out"),
        "{output}"
    );
    let index = index(&dump);
    assert_eq!(index["left_out"][0]["name"], "inner");
    assert_eq!(entry(&index, "x")["file"], "x.npy");
}

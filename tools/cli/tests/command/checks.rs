//! `pto check`: examples, graph files, exit codes.

use std::fs;

use serde_json::Value;

use crate::examples::{self, borrowed};
use crate::pto::{pto, refused};

/// Every example at its own size, in every runtime variant that takes it; the variants agree.
#[test]
fn the_examples_are_clean() {
    for case in examples::all().filter(|case| !case.waits()) {
        let mut kernels = None;
        for variant in case.runtimes() {
            let output = format!("{} {variant}", case.name());
            let answer = pto(&["check", case.name(), "--runtime", variant, "--json"], 0);
            let report: Value = serde_json::from_str(&answer.stdout).expect("it is JSON");
            // The variants put the same kernels into different chains.
            let of_variant = &report["kernels"];
            assert!(of_variant.as_u64() >= Some(30), "{output}: {of_variant}");
            assert_eq!(kernels.get_or_insert_with(|| of_variant.clone()), of_variant);
            assert_eq!(report["findings"], Value::Array(vec![]), "{output}");
            assert_eq!(report["source"], "built", "{output}");
        }
    }
    let answer = pto(&["check", "cholesky", "--runtime", "tensormap_and_ringbuffer"], 0);
    for line in [
        "recorded without running it",
        "tasks     536, of 816 kernels",
        "0 stated, 3,314 derived",
        "window needs 1 of 4,096",
        "CLEAN",
    ] {
        assert!(answer.stdout.contains(line), "{}", answer.stdout);
    }
    // More rows of tiles than the program remembers.
    let answer = pto(&["check", "cholesky", "--param", "n=70", "--param", "tile=1"], 0);
    assert!(answer.stdout.contains("CLEAN"), "{}", answer.stdout);
}

/// A program that waits for values of its tasks has to run.
#[test]
fn a_program_that_depends_on_data_is_recorded_while_it_runs() {
    let size = ["--param", "batch=3", "--param", "n=40", "--param", "tile=20"];
    let answer = pto(&[&["check", "newton_solve"][..], &size].concat(), 0);
    for line in ["recorded while it ran", "heap 1 needs", "CLEAN"] {
        assert!(answer.stdout.contains(line), "{}", answer.stdout);
    }
}

/// A workload is expanded, its tasks have the names of its kernels, and no graph file can hold them.
#[test]
fn a_workload_is_checked_and_drawn() {
    let file = |name| format!("{}/../../examples/workloads/{name}", env!("CARGO_MANIFEST_DIR"));
    let matmul = file("matmul.workload");
    let output = pto(&["check", &matmul], 0).stdout;
    for line in ["tiled_matmul\n", "tasks     12", "0 stated, 6 derived", "CLEAN"] {
        assert!(output.contains(line), "{output}");
    }
    let drawn = pto(&["graph", &matmul, "--dot"], 0).stdout;
    assert!(drawn.contains("\"add_product: tile_aic #1\""), "{drawn}");
    refused(&["check", &matmul, "--save", "m.jsonl"], 2, &["'product'", "no plan", ".workload"]);

    let (softmax, ragged) = (file("softmax.workload"), file("ragged_attention.workload"));
    refused(&["check", &softmax], 2, &["'scale' has no default", "--param scale=VALUE"]);
    pto(&["check", &softmax, "--param", "scale=0.5"], 0);
    refused(&["graph", &ragged, "--dot"], 2, &["--input blocks=FILE.npy"]);
}

#[test]
fn what_is_saved_is_checked_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("moe.jsonl");
    let file = file.to_str().expect("UTF-8");
    let example = pto(&["check", "moe_layer", "--save", file, "--json"], 0);
    let saved = pto(&["check", file, "--json"], 0);
    let object = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
    let (mut example, mut saved) = (object(&example.stdout), object(&saved.stdout));
    assert_eq!(saved["source"].take(), "file");
    assert_eq!(example["source"].take(), "built");
    assert_eq!(example, saved);

    // Without the edges that the program states, the tasks race.
    let text = fs::read_to_string(file).expect("it was written");
    let without_edges = |line: &str| {
        let mut line = object(line);
        line.as_object_mut().expect("a line is an object").remove("after");
        format!("{line}\n")
    };
    fs::write(file, text.lines().map(without_edges).collect::<String>()).expect("a file");
    let answer = pto(&["check", file], 1);
    assert!(answer.stdout.contains("error: race: line "), "{}", answer.stdout);
    assert!(answer.stdout.contains("more; --json shows them"), "{}", answer.stdout);
}

/// What every example submits, under every runtime that takes it and in both build modes, is a file that says the same.
#[test]
fn what_every_example_submits_is_a_file_that_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (first, second) = (path("first.jsonl"), path("second.jsonl"));
    let object = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
    for case in examples::all() {
        let target = case.small("check");
        let target = borrowed(&target);
        let ways = case.runtimes().flat_map(|variant| [(variant, "0"), (variant, "1")]);
        // A program that waits for values of its tasks cannot wait for schedulers that have not begun.
        for (variant, mode) in ways.filter(|(_, mode)| !case.waits() || *mode == "1") {
            let output = format!("{} {variant} {mode}", case.name());
            let options = ["--json", "--runtime", variant, "--build-mode", mode, "--save"];
            let made = pto(&[&target[..], &options, &[&first]].concat(), 0);
            let again = ["check", &first, "--json", "--build-mode", mode, "--save", &second];
            let read = pto(&again, 0);
            let (mut made, mut read) = (object(&made.stdout), object(&read.stdout));
            assert_eq!(read["source"].take(), "file", "{output}");
            made["source"].take();
            assert_eq!(made, read, "{output}");
            let text = |path: &str| fs::read_to_string(path).expect("it was written");
            assert!(text(&first) == text(&second), "{output}");
        }
    }
}

#[test]
fn findings_are_told_and_end_with_code_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("broken.jsonl");
    let file = path.to_str().expect("UTF-8");
    let write = |text: &str| fs::write(&path, text).expect("a file");
    write(concat!(
        r#"{"format":"pto-graph","version":1,"name":"broken","variant":"host_build_graph"}"#,
        "\n",
        r#"{"task":0,"func":1,"kind":"aic","after":[1]}"#,
        "\n",
        r#"{"task":1,"func":1,"kind":"aic","after":[0]}"#,
        "\n"
    ));
    let answer = pto(&["check", file, "--own-kernels"], 1);
    assert!(answer.stdout.starts_with("broken\n"), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("error: cycle: line 2: tasks wait for each other: 0 -> 1 -> 0"),
        "{}",
        answer.stdout
    );
    let report: Value =
        serde_json::from_str(&pto(&["check", file, "--json", "--own-kernels"], 1).stdout)
            .expect("JSON");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["findings"][0]["kind"], "cycle");
    assert_eq!(report["findings"][0]["tasks"], serde_json::json!([0, 1]));
    assert_eq!(report["exit_code"], 1);
    // Kernel 1 of the library runs on vector cores, and takes four arguments.
    let output = pto(&["check", file], 1).stdout;
    assert!(
        output.contains("error: kernel: line 2: task 0: func id 1: add_scalar runs on"),
        "{output}"
    );
    refused(&["check", file, "--runtime", "aicpu_build_graph"], 2, &["host_build_graph"]);
    refused(&["check", file, "--param", "n=3"], 2, &["a graph file has none to set"]);
    write(
        "{\"format\":\"pto-graph\",\"version\":1,\"variant\":\"host_build_graph\"}\n{\"task\":0}\n",
    );
    refused(&["check", file], 2, &["broken.jsonl', line 2: missing field `kind`"]);
}

#[test]
fn rings_that_are_too_small_are_told_with_what_suffices() {
    let heap = ["check", "decoder_layer", "--heap-bytes", "64K"];
    let answer = pto(&heap, 1);
    for word in ["STREAM_HEAP_RING", "heap 1", "The program runs with 417792 bytes a heap"] {
        assert!(answer.stdout.contains(word), "{}", answer.stdout);
    }
    pto(
        &["check", "decoder_layer", "--heap-bytes", "417792", "--window", "1", "--arg-words", "50"],
        0,
    );
    let answer = pto(&["check", "decoder_layer", "--arg-words", "49"], 1);
    assert!(answer.stdout.contains("STREAM_ARGS_RING"), "{}", answer.stdout);
    // What the check says is what a run says.
    refused(&["run", "decoder_layer", "--heap-bytes", "64K"], 3, &["STREAM_HEAP_RING"]);
    pto(&["run", "decoder_layer", "--heap-bytes", "417792", "--window", "4"], 0);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    refused(&["check", "paged_atention"], 2, &["did you mean 'paged_attention'?", "no file"]);
    refused(&["check", "nothing.jsonl"], 4, &["'nothing.jsonl'"]);
    refused(&["check", "decoder_layer", "--window", "3"], 2, &["--window", "a power of two"]);
    refused(
        &["check", "decoder_layer", "--runtime", "host_build_graph"],
        2,
        &["submits tasks with tensors"],
    );
    refused(&["check", "cholesky", "--save", "/nowhere/x"], 4, &["/nowhere"]);
}

/// The page about graph files shows one, and what is said of it: both are as they are.
#[test]
fn the_documentation_shows_what_is_said() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| fs::read_to_string(format!("{root}/{path}")).expect("it is there");
    let page = read("docs/reference/graph-files.md");
    assert!(page.contains(&read("examples/graphs/row_sums.jsonl")), "the file");
    let answer = pto(&["check", &format!("{root}/examples/graphs/row_sums.jsonl")], 1);
    assert!(page.contains(&answer.stdout), "{}", answer.stdout);
    let page = read("docs/how-to/check.md");
    let answer = pto(&["check", "decoder_layer"], 0);
    assert!(page.contains(&answer.stdout), "{}", answer.stdout);
}

/// Tasks wait for views. A kernel that touches more than its view is reported by `check` and by `run`, and it is an error where that makes a race.
#[test]
fn views_that_are_smaller_than_what_their_kernels_touch_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("narrow.jsonl");
    let graph = path.to_str().expect("UTF-8");
    let write = |tasks: [&str; 2]| {
        let lines = [
            r#"{"format":"pto-graph","version":1,"name":"narrow","variant":"tensormap_and_ringbuffer"}"#,
            r#"{"tensor":0,"name":"src","element":"f32","shape":[64]}"#,
            r#"{"tensor":1,"name":"out","element":"f32","shape":[64]}"#,
            r#"{"tensor":2,"name":"sum","element":"f32","shape":[1]}"#,
            tasks[0],
            tasks[1],
        ];
        fs::write(&path, lines.join("\n")).expect("a file");
    };
    let says = |output: &str, words: &[&str]| {
        words.iter().for_each(|word| assert!(output.contains(word), "no {word:?} in {output}"));
    };
    let first = r#"{"task":0,"func":1,"kind":"aiv","args":[{"in":0},{"f32":1.0},{"out":{"tensor":1,"shape":[8]}},64]}"#;
    let view = "line 5: task 0: add_scalar: argument 2, out, touches bytes 0 to 256 of tensor 1 'out', and its view is bytes 0 to 32";
    // Both write the same bytes, and no view of them meets another one; as tasks, and as a kernel of a chain.
    let second = r#"{"task":1,"func":1,"kind":"aiv","args":[{"in":0},{"f32":2.0},{"out":{"tensor":1,"offset":8,"shape":[8]}},56]}"#;
    let chain = r#"{"task":1,"kind":"aiv","chain":[{"func":1,"args":[{"in":0},{"f32":2.0},{"out":{"tensor":1,"offset":8,"shape":[8]}},56]}]}"#;
    for second in [second, chain] {
        write([first, second]);
        let output = pto(&["check", graph], 1).stdout;
        says(&output, &["error: race: line 6: ", "bytes 32 to 256", "warning: narrow_view", view]);
        refused(&["run", graph], 2, &["cannot run: ", view, "That makes a race: line 6: "]);
    }
    // The second one reads what the first one writes.
    let reads = r#"{"task":1,"func":5,"kind":"aiv","args":[{"in":{"tensor":1,"offset":8,"shape":[1,8]}},{"out":2},1,56,56]}"#;
    write([first, reads]);
    says(&pto(&["check", graph], 1).stdout, &["error: race: line 6: ", "bytes 32 to 256"]);
    refused(&["run", graph], 2, &["cannot run: ", "That makes a race"]);
    // An edge orders the two: each gets a warning, and runs.
    write([first, &second.replace("56]}", "56],\"after\":[0]}")]);
    let output = pto(&["check", graph], 0).stdout;
    says(
        &output,
        &["CLEAN, 2 warnings", view, "line 6: task 1: add_scalar: argument 2, out, touches"],
    );
    says(&pto(&["run", graph], 0).stderr, &["warning: '", view, "line 6: task 1"]);
    // A view of all that is touched, whatever its form, is right.
    write([
        &first.replace("\"shape\":[8]", "\"shape\":[8,8]"),
        &second.replace("[8]}},56", "[56]}},56"),
    ]);
    says(&pto(&["check", graph], 0).stdout, &["check     CLEAN\n"]);
    assert_eq!(pto(&["run", graph], 0).stderr, "");
}

/// Of a workload, the tile of a kernel that is not its view is reported.
#[test]
fn a_tile_that_is_not_its_view_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (workload, program) = (path("wide.workload"), path("wide.ptop"));
    let text = "workload wide {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[3, 8, 32]
  tensor Y : f32[3, 8, 32]
  kernel copy(x: in f32[8, 64], y: out f32[8, 64]) {
    %0 = load x : f32[8, 64]
    store y, %0
  }
  do parallel i in dense 2 {
    copy[i](x = X[i], y = Y[i])
  }
}
";
    fs::write(&workload, text).expect("a file");
    let view = "loop i, kernel copy, argument y: The tile f32[8, 64] is not the view of Y, which has 8 x 32 elements.";
    let output = pto(&["check", &workload], 0).stdout;
    assert!(output.contains("CLEAN, 2 warnings") && output.contains(view), "{output}");
    for command in [&["run", &workload][..], &["program", "build", &workload, "-o", &program]] {
        let output = pto(command, 0).stderr;
        assert!(output.contains("warning: '") && output.contains(view), "{command:?}: {output}");
    }
}

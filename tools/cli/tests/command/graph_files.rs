//! `pto run` of a graph file: kernels of the library, tensors from NumPy files, results compared with what is expected.

use std::fs;

use serde_json::Value;

use crate::files::Files;
use crate::pto::{answer, command, pto, refused};

const ROW_SUMS: &str = include_str!("../../../../examples/graphs/row_sums.jsonl");

/// The sums of a matrix's rows, each element 0.5 larger; without the mistake that the documentation shows.
fn row_sums(variant: &str) -> String {
    ROW_SUMS.replace("\"offset\": 31", "\"offset\": 32").replace("host_build_graph", variant)
}

fn matrix() -> Vec<f32> {
    (0_u16..64 * 64).map(|i| f32::from(i % 97) / 8.0).collect()
}

#[test]
fn a_graph_file_runs_under_every_runtime_and_hosting() {
    let files = Files::new();
    files.put("matrix", &[64, 64], &matrix());
    let sums: Vec<f32> = matrix().chunks(64).map(|row| row.iter().map(|x| x + 0.5).sum()).collect();
    files.put("sums", &[64], &sums);
    let graph = files.path("g").with_extension("jsonl");
    let graph = graph.to_str().expect("a plain name");
    let (input, expected) = (files.option("matrix"), files.option("sums"));
    let output = format!("sums={}", files.path("out").display());
    for variant in ["host_build_graph", "aicpu_build_graph"] {
        fs::write(graph, row_sums(variant)).expect("a file");
        for way in [
            &["--hosting=pool"][..],
            &["--hosting=threads", "--aic=2", "--aiv=4", "--aicpu=2"],
            &["--hosting=virtual"],
        ] {
            let run = ["run", graph, "--input", &input, "--expect", &expected, "--output", &output];
            let printed = pto(&[&run[..], way].concat(), 0).stdout;
            assert!(printed.contains("PASS") && printed.contains(variant), "{printed}");
            assert_eq!(files.get("out"), (vec![64], sums.clone()), "{variant} {way:?}");
        }
    }
    pto(&["run", graph, "--input", &input, "--expect", &expected, "--aic=0"], 0);
    refused(&["run", graph, "--aiv=0"], 2, &["tasks for AIV cores"]);
    // Edges that a graph states hold under the streaming runtime as well.
    pto(
        &[
            "run",
            graph,
            "--input",
            &input,
            "--expect",
            &expected,
            "--runtime=tensormap_and_ringbuffer",
        ],
        0,
    );
    let twice =
        pto(&["run", graph, "--input", &input, "--expect", &expected, "--predict"], 0).stdout;
    assert!(twice.contains("on profile a2a3, bound by"), "{twice}");
    let none = pto(&["run", graph], 0).stdout;
    assert!(none.contains("nothing says what is right; --expect"), "{none}");
}

#[test]
fn a_graph_file_that_cannot_be_run_is_refused() {
    let files = Files::new();
    let graph = files.path("g").with_extension("jsonl");
    let graph = graph.to_str().expect("a plain name");
    let with = |from: &str, to: &str, words: &[&str]| {
        fs::write(graph, row_sums("host_build_graph").replace(from, to)).expect("a file");
        refused(&["run", graph], 2, words);
    };
    with(
        "\"func\": 5",
        "\"func\": 999",
        &["line 5: task 1 'upper': no kernel has func id 999", "pto info kernels"],
    );
    with("\"kind\": \"aiv\"", "\"kind\": \"aic\"", &["add_scalar runs on aiv cores"]);
    with(", 32, 64, 64]", ", 32, 64]", &["takes 5 arguments (a, out, rows, cols, a_ld)", "has 4"]);
    fs::write(graph, row_sums("host_build_graph")).expect("a file");
    files.put("sums", &[63], &[0.0_f32; 63]);
    let sums = files.option("sums");
    refused(&["run", graph, "--expect", &sums], 2, &["sums", "[63]", "[64]"]);
    refused(
        &["run", graph, "--input", "nothing=x.npy"],
        2,
        &["no input 'nothing'", "matrix, sums"],
    );
    with(
        "[{\"in\": 0}, {\"f32\": 0.5}, {\"out\": 0}, 4096]",
        "[139637976793088, {\"f32\": 0.5}, 139637976793088, 4096]",
        &["line 4: task 0 'shift' has addresses of the process"],
    );
    refused(&["run", &files.path("none").display().to_string()], 4, &["none.npy'"]);

    // What would end the process is refused, and reported by the check too.
    let tile = r#"{"task": 9, "func": 41, "kind": "aiv", "args": [64, 8, 64, 64, 0, 64]}"#;
    fs::write(graph, format!("{}\n{tile}\n", row_sums("host_build_graph"))).expect("a file");
    refused(
        &["run", graph],
        2,
        &["task 9", "tile_aiv executes a tile kernel of a plan", ".workload"],
    );
    let printed = pto(&["check", graph], 1).stdout;
    assert!(printed.contains("kernel: line 8: task 9: tile_aiv executes"), "{printed}");
    let silu = r#"{"task": 9, "func": 34, "kind": "aiv", "args": [64, 64, 64, 64, 8, 8, 8, 8]}"#;
    fs::write(graph, format!("{}\n{silu}\n", row_sums("host_build_graph"))).expect("a file");
    refused(&["run", graph], 2, &["task 9", "is an address, and the file gives a number"]);
}

#[test]
fn outputs_are_compared_with_a_file_within_tolerances() {
    let files = Files::new();
    let values = |last: f32| {
        let mut values = vec![42.0_f32; 128 * 128];
        values[128 * 128 - 1] = last;
        files.put("f", &[128, 128], &values);
    };
    let run = |options: &[&str], code| {
        let option = files.option("f");
        pto(&[&["run", "vector_example", "--expect", &option][..], options].concat(), code).stdout
    };
    values(42.0);
    run(&[], 0);
    values(42.1);
    let printed = run(&[], 1);
    assert!(
        printed.contains("1 of 32,768 values wrong") && printed.contains("f[127, 127]"),
        "{printed}"
    );
    run(&["--atol=0.2"], 0);
    run(&["--rtol=0.01"], 0);
    values(f32::NAN);
    assert!(run(&["--atol=1e9"], 1).contains("expected NaN"));
    refused(&["run", "matmul", "--rtol=0.1"], 2, &["--expect"]);
    refused(&["run", "matmul", "--expect=c=x.npy", "--rtol=-1"], 2, &["--rtol", "not negative"]);
}

/// Every type of elements is compared: what is wrong in one never passes.
#[test]
fn integers_and_doubles_of_a_file_are_compared() {
    let files = Files::new();
    let graph = files.path("g").with_extension("jsonl");
    let text = concat!(
        r#"{"format":"pto-graph","version":1,"variant":"host_build_graph"}"#,
        "\n{\"tensor\":0,\"name\":\"words\",\"element\":\"u64\",\"shape\":[2]}",
        "\n{\"tensor\":1,\"name\":\"reals\",\"element\":\"f64\",\"shape\":[2]}",
        "\n{\"task\":0,\"func\":14,\"kind\":\"aiv\"}\n"
    );
    fs::write(&graph, text).expect("a file");
    let graph = graph.to_str().expect("a plain name");
    files.put("words", &[2], &[u64::MAX, 7]);
    files.put("reals", &[2], &[1.5_f64, -2.5]);
    let (words, reals) = (files.option("words"), files.option("reals"));
    let given = ["run", graph, "--input", &words, "--input", &reals];
    pto(&[&given[..], &["--expect", &words, "--expect", &reals]].concat(), 0);
    files.put("wrong", &[2], &[u64::MAX, 8]);
    let wrong = format!("words={}", files.path("wrong").display());
    let printed = pto(&[&given[..], &["--expect", &wrong]].concat(), 1).stdout;
    assert!(printed.contains("words[1]") && printed.contains("expected 8"), "{printed}");
    files.put("wrong", &[2], &[1.5_f64, -2.6]);
    let wrong = format!("reals={}", files.path("wrong").display());
    pto(&[&given[..], &["--expect", &wrong]].concat(), 1);
    pto(&[&given[..], &["--expect", &wrong, "--atol=0.2"]].concat(), 0);
    refused(
        &[&given[..], &["--expect", &format!("reals={}", files.path("words").display())]].concat(),
        2,
        &["f64"],
    );
}

#[test]
fn a_run_is_predicted_for_a_device() {
    let run = ["run", "paged_attention", "--param=batch=4", "--predict"];
    let printed = pto(&run, 0).stdout;
    assert!(printed.contains("on profile a2a3, bound by the "), "{printed}");
    let changes = ["chain", "kernels faster"];
    assert!(changes.iter().any(|change| printed.contains(change)), "{printed}");
    let value = |args: &[&str]| -> Value {
        serde_json::from_str(&pto(args, 0).stdout).expect("one JSON value")
    };
    let predicted = value(&[&run[..], &["--json"]].concat());
    let virtually = ["run", "paged_attention", "--param=batch=4", "--hosting=virtual", "--json"];
    let machine = value(&virtually);
    assert_eq!(predicted["prediction"]["makespan_ns"], machine["virtual"]["makespan_ns"]);
    let shares = ["builder", "schedulers", "cores", "critical_path", "start_up"];
    let most = shares.map(|share| predicted["prediction"][share].as_f64().expect("a share"));
    let most = most.into_iter().fold(0.0, f64::max);
    let bound = predicted["prediction"]["bound_by"].as_str().expect("a name");
    assert_eq!(predicted["prediction"][bound].as_f64(), Some(most));
    assert!(most > 0.3 && most <= 1.0, "{most}");
    let slow = ["--param=m=512", "--param=k=512", "--aic=1", "--aiv=2", "--aicpu=2", "--json"];
    let cores = value(&[&["run", "matmul", "--predict"][..], &slow].concat());
    assert_eq!(cores["prediction"]["bound_by"], "cores", "{:#}", cores["prediction"]);
}

/// `-` is standard input, whose form is known by how it begins; with or without a byte order mark.
#[test]
fn files_come_from_standard_input_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let timeline = path("run.json");
    pto(&["run", "vector_example", "--param=rows=8", "--trace", &timeline], 0);
    let graph = format!("{examples}/graphs/row_sums.jsonl");
    let workload = format!("{examples}/workloads/matmul.workload");
    let (of_graph, of_workload) = (path("graph.ptop"), path("workload.ptop"));
    for (file, args) in [
        (&graph, &["run"][..]),
        (&graph, &["check"]),
        (&graph, &["graph", "--json"]),
        (&graph, &["program", "build", "-o", &of_graph]),
        (&workload, &["run", "--trace", &path("other.json")]),
        (&workload, &["check"]),
        (&workload, &["graph", "--json"]),
        (&workload, &["program", "build", "-o", &of_workload]),
        (&timeline, &["analyze"]),
        (&timeline, &["view", "--text"]),
    ] {
        let named = answer(&mut command(&[args, &[file]].concat()));
        for mark in ["", "\u{FEFF}"] {
            let piped = path("piped");
            let text = std::fs::read_to_string(file).expect("a text");
            std::fs::write(&piped, format!("{mark}{text}")).expect("it is written");
            let given = std::fs::File::open(&piped).expect("it is there");
            let printed = answer(command(&[args, &["-"]].concat()).stdin(given));
            assert_eq!(printed.code, named.code, "{args:?}: {}", printed.stderr);
            assert!(
                args.len() > 2 || printed.stdout.lines().count() > 3,
                "{args:?}: {}",
                printed.stdout
            );
        }
    }
    refused(&["run", "-"], 2, &["'-'", "expected `workload`"]);
}

/// Results name what was run, so its name has to be text; the file can be piped.
#[test]
fn a_name_that_is_not_utf8_is_refused_with_a_way_out() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"\xff.jsonl");
    let printed = answer(command(&["run", "--json"]).arg(name));
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("is not UTF-8") && printed.stderr.contains("write -"),
        "{}",
        printed.stderr
    );
    assert!(printed.stdout.contains("\"exit_code\": 2"), "{}", printed.stdout);
}

/// What the runtime finds only when the program returns, a run refuses before it begins, with the line.
#[test]
fn what_a_program_lacks_at_its_end_is_refused_with_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.jsonl");
    let path = file.to_str().expect("UTF-8");
    let task = |fields: &str| format!(r#"{{"task": 0, "func": 14, "kind": "aiv"{fields}}}"#);
    let (graph, stream) = ("host_build_graph", "tensormap_and_ringbuffer");
    for (variant, lines, words) in [
        (
            stream,
            vec![r#"{"scope": "manual"}"#.to_owned(), task("")],
            "line 2: the scope that begins here does not end",
        ),
        (stream, vec![task(r#", "publish": "later""#)], "line 2: task 0 is never published"),
        (graph, vec![task(r#", "publish": "later""#)], "line 2: task 0 is never published"),
        (
            graph,
            vec![task(""), r#"{"publish": 0}"#.to_owned()],
            "line 3: task 0 is published already",
        ),
        (graph, vec![task(r#", "after": [7]"#)], "line 2: the edge 7 -> 0 names task 7"),
        (
            graph,
            vec![task(""), r#"{"edge": [0, 9]}"#.to_owned()],
            "line 3: the edge 0 -> 9 names task 9",
        ),
    ] {
        let head = format!(r#"{{"format": "pto-graph", "version": 1, "variant": "{variant}"}}"#);
        std::fs::write(&file, [vec![head], lines].concat().join("\n")).expect("it is written");
        let run = answer(&mut command(&["run", path]));
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
        let check = answer(&mut command(&["check", path]));
        assert_eq!(check.code, Some(1), "{}", check.stdout);
    }
}

/// A run of tasks that wait for each other says which command names their lines.
#[test]
fn a_run_of_a_cycle_says_who_names_the_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cycle.jsonl");
    for variant in ["host_build_graph", "aicpu_build_graph"] {
        let lines = [
            format!(r#"{{"format": "pto-graph", "version": 1, "variant": "{variant}"}}"#),
            r#"{"task": 0, "func": 14, "kind": "aiv", "after": [1]}"#.to_owned(),
            r#"{"task": 1, "func": 14, "kind": "aiv", "after": [0]}"#.to_owned(),
        ];
        fs::write(&file, lines.join("\n")).expect("it is written");
        let path = file.to_str().expect("UTF-8");
        refused(&["run", path, "--stall-budget-ms=200"], 3, &["`pto check` names the lines"]);
        let check = pto(&["check", path], 1).stdout;
        assert!(check.contains("cycle: line 2"), "{check}");
    }
}

/// A task that waits for itself, and one that has no block, are reported as such by a run and by a check.
#[test]
fn impossible_tasks_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.jsonl");
    let path = file.to_str().expect("UTF-8");
    for (field, words) in [
        (r#""after": [0]"#, ["waits for itself", "take the edge out"]),
        (r#""blocks": 0"#, ["has no block", "Ask for one block at least"]),
    ] {
        let lines = [
            r#"{"format": "pto-graph", "version": 1, "variant": "tensormap_and_ringbuffer"}"#,
            r#"{"tensor": 0, "element": "f32", "shape": [64]}"#,
            r#"{"tensor": 1, "element": "f32", "shape": [64]}"#,
            r#"{"task": 0, "func": 1, "kind": "aiv", "args": [{"in": 0}, {"f32": 0.5}, {"out": 1}, 64], FIELD}"#,
        ];
        std::fs::write(&file, lines.join("\n").replace("FIELD", field)).expect("it is written");
        let [run, check] =
            [answer(&mut command(&["run", path])), answer(&mut command(&["check", path]))];
        for (printed, code) in [(&run.stderr, run.code), (&check.stdout, check.code)] {
            assert!(code.is_some_and(|code| code > 0), "{printed}");
            assert!(words.iter().all(|word| printed.contains(word)), "{field}: {printed}");
        }
    }
}

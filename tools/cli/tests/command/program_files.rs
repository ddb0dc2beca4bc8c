//! `pto program` and `pto program query`: files are written, shown, run, compared, and refused.

use std::fs;

use pto_host::workloads::program::seal;

use crate::files::Files;
use crate::own_kernels;
use crate::pto::{pto, refused};
use crate::schema::answers;

const WORKLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads");
const GRAPHS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/graphs");

#[test]
fn a_program_is_built_shown_checked_run_and_compared() {
    let files = Files::new();
    let path =
        |name: &str| files.path(name).with_extension("").to_str().expect("a plain name").to_owned();
    let (softmax, other, system) = (path("softmax.ptop"), path("other.ptop"), path("system.json"));
    let source = format!("{WORKLOADS}/softmax.workload");
    let roles = ["--role", "M=temporary", "--role", "S=temporary"];
    let build = ["program", "build", &source, "-o", &softmax];
    answers("program_build", &[&build[..], &roles].concat());
    let shown = answers("program_inspect", &["program", "inspect", &softmax]);
    assert_eq!(shown["tensors"][1]["role"], "temporary");
    assert_eq!(shown["operations"][1]["name"], "exp");
    answers("query", &["program", "query", "-o", &system]);
    answers("program_check", &["program", "check", &softmax, "--system", &system]);

    // The reference: each row of X, by hand.
    let x: Vec<f32> = (0_u16..28 * 96).map(|i| f32::from(i % 13) / 4.0).collect();
    files.put("X", &[28, 96], &x);
    let softmax_of = |row: &[f32]| {
        let sums: f32 = row.iter().map(|x| (0.5 * (x - 3.0)).exp()).sum();
        row.iter().map(move |x| (0.5 * (x - 3.0)).exp() / sums).collect::<Vec<_>>()
    };
    files.put("Y", &[28, 96], &x.chunks(96).flat_map(softmax_of).collect::<Vec<_>>());
    let (input, expected, saved) = (files.option("X"), files.option("Y"), path("saved"));
    let run = ["program", "run", &softmax, "--param=scale=0.5", "--input", &input, "--rounds=3"];
    let judged = ["--expect", &expected, "--save", &saved];
    let ran = answers("program_run", &[&run[..], &judged].concat());
    assert_eq!((&ran["left_bytes"], &ran["compared"][0]["is_right"]), (&0.into(), &true.into()));
    assert_eq!(ran["counters"]["binding_hits"], 2, "the second and the third run");
    assert!(fs::metadata(format!("{saved}/Y.npy")).is_ok());
    let trace = path("trace.json");
    pto(&[&run[..], &["--trace", &trace]].concat(), 0);
    // A disk that is full loses the file, and not the report.
    let output = pto(&[&run[..], &["--trace", "/dev/full"]].concat(), 4);
    assert!(output.stdout.contains("gives"), "{}", output.stdout);
    assert!(output.stderr.contains("/dev/full"), "{}", output.stderr);
    let unwritten = answers("program_run", &[&run[..], &["--trace", "/dev/full"]].concat());
    assert_eq!((&unwritten["exit_code"], &unwritten["program"]), (&4.into(), &"softmax".into()));
    assert!(unwritten["unwritten"][0].as_str().is_some_and(|output| output.contains("/dev/full")));
    let output = answers("analyze", &["analyze", &trace]);
    let counted = |name: &str| output["run"][name].as_str().map(ToOwned::to_owned);
    assert_eq!(counted("program").as_deref(), Some("softmax"));
    assert_eq!((counted("runs"), counted("binding_hits")), (Some("3".into()), Some("2".into())));
    assert_eq!(counted("copied_to_host_bytes").as_deref(), Some("0"));
    assert!(pto(&["analyze", &trace], 0).stdout.contains("copied_on_device_bytes"));
    let page = path("page.html");
    pto(&["view", &trace, "-o", &page], 0);
    assert!(fs::read_to_string(&page).expect("a page").contains("bounced_bytes"));
    let wrong = ["program", "run", &softmax, "--param=scale=0.7", "--input", &input];
    let output = pto(&[&wrong[..], &["--expect", &expected]].concat(), 1).stdout;
    assert!(output.contains("FAIL") && output.contains("PCC"), "{output}");
    pto(&[&wrong[..], &["--expect", &expected, "--pcc=0.9", "--hosting=virtual"]].concat(), 0);

    pto(&["program", "build", &source, "-o", &other], 0);
    let output = answers("program_diff", &["program", "diff", &softmax, &other]);
    assert_eq!((&output["same"], &output["same_interface"]), (&false.into(), &false.into()));
    answers("program_diff", &["program", "diff", &softmax, &softmax]);
    let small = fs::read_to_string(&system).expect("a file").replace("\"aiv\": 48", "\"aiv\": 0");
    fs::write(&system, small).expect("a file");
    let output = pto(&["program", "check", &softmax, "--system", &system], 1).stdout;
    assert!(
        output.contains("cores") && output.contains("NO") && output.contains("cannot run"),
        "{output}"
    );
}

#[test]
fn a_graph_file_becomes_a_program() {
    let files = Files::new();
    let graph = files.path("sums").with_extension("ptop");
    let graph = graph.to_str().expect("a plain name");
    pto(&["program", "build", &format!("{GRAPHS}/row_sums.jsonl"), "-o", graph], 0);
    let output = pto(&["program", "run", graph, "--json"], 0).stdout;
    assert!(output.contains("\"sums\"") && output.contains("\"matrix\""), "{output}");
}

/// A file of another origin that calls a kernel with what the kernel cannot take.
#[test]
fn a_program_with_a_wrong_call_is_refused_by_every_command() {
    let files = Files::new();
    let path = files.path("wrong").with_extension("ptop");
    let program = path.to_str().expect("a plain name");
    pto(&["program", "build", &format!("{GRAPHS}/row_sums.jsonl"), "-o", program], 0);
    let mut file = fs::read(&path).expect("it was written");
    let count = 4096_u64.to_le_bytes();
    let at = file.windows(8).position(|word| word == count).expect("the elements of the shift");
    file[at..at + 8].copy_from_slice(&4097_u64.to_le_bytes());
    seal(&mut file);
    fs::write(&path, file).expect("writable");
    let says = "task 0 (add_scalar) cannot run: add_scalar: argument 0, a, reaches to byte 16388 of tensor matrix, which has 16384";
    for command in ["check", "run", "inspect"] {
        refused(&["program", command, program], 2, &[says]);
    }
    // A graph file with such a call becomes no program.
    let graph = files.path("wrong").with_extension("jsonl");
    let text = fs::read_to_string(format!("{GRAPHS}/row_sums.jsonl")).expect("an example");
    fs::write(&graph, text.replace("4096]", "4097]")).expect("a file");
    let graph = graph.to_str().expect("a plain name");
    refused(&["program", "build", graph, "-o", program], 2, &["reaches to byte 16388"]);
}

/// A part of the graph is recorded, and replayed on each half of the matrix.
#[test]
fn a_graph_file_with_a_recording_becomes_a_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (source, program) = (path("halves.jsonl"), path("halves.ptop"));
    let lines = [
        r#"{"format": "pto-graph", "version": 1, "name": "halves", "variant": "tensormap_and_ringbuffer"}"#,
        r#"{"tensor": 0, "name": "matrix", "element": "f32", "shape": [64, 64]}"#,
        r#"{"tensor": 1, "name": "sums", "element": "f32", "shape": [64]}"#,
        r#"{"record": 0, "tensors": [{"tensor": 10, "element": "f32", "shape": [32, 64]}, {"tensor": 11, "element": "f32", "shape": [32]}]}"#,
        r#"{"task": 0, "func": 5, "kind": "aiv", "args": [{"in": 10}, {"out": 11}, {"bound": 0}, 64, 64]}"#,
        r#"{"end": "record"}"#,
        r#"{"replay": 0, "tensors": [{"tensor": 0, "shape": [32, 64]}, {"tensor": 1, "shape": [32]}], "scalars": [32]}"#,
        r#"{"replay": 0, "tensors": [{"tensor": 0, "offset": 2048, "shape": [32, 64]}, {"tensor": 1, "offset": 32, "shape": [32]}], "scalars": [32]}"#,
    ];
    fs::write(&source, lines.join("\n") + "\n").expect("a file");
    answers("program_build", &["program", "build", &source, "-o", &program]);
    let files = Files::new();
    let rows = (0_u16..64).flat_map(|row| [f32::from(row); 64]).collect::<Vec<_>>();
    let sums = (0_u16..64).map(|row| 64.0 * f32::from(row)).collect::<Vec<_>>();
    files.put("matrix", &[64, 64], &rows);
    files.put("sums", &[64], &sums);
    let run = ["program", "run", &program, "--input", &files.option("matrix")];
    answers("program_run", &[&run[..], &["--expect", &files.option("sums")]].concat());

    let short = lines.join("\n").replace(r#", "scalars": [32]"#, "");
    fs::write(&source, short + "\n").expect("a file");
    refused(&["program", "build", &source, "-o", &program], 2, &["line 7", "binds 0 words"]);
}

/// A predicate, a priority and blocks reach the device, and are shown.
#[test]
fn a_program_keeps_the_shapes_of_its_tasks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (source, shaped, other) = (path("sums.jsonl"), path("sums.ptop"), path("other.ptop"));
    let lines = [
        r#"{"format": "pto-graph", "version": 1, "name": "sums", "variant": "tensormap_and_ringbuffer"}"#,
        r#"{"tensor": 0, "name": "matrix", "element": "f32", "shape": [64, 64]}"#,
        r#"{"tensor": 1, "name": "sums", "element": "f32", "shape": [64]}"#,
        r#"{"tensor": 2, "name": "wanted", "element": "u32", "shape": [1]}"#,
        r#"{"task": 0, "func": 5, "kind": "aiv", "args": [{"in": 0}, {"out": 1}, 64, 64, 64], "priority": "high", "when": {"element": {"tensor": 2, "shape": [1]}, "is": "==", "value": 1}}"#,
    ];
    fs::write(&source, lines.join("\n") + "\n").expect("a file");
    answers("program_build", &["program", "build", &source, "-o", &shaped]);
    let shown = answers("program_inspect", &["program", "inspect", &shaped]).to_string();
    assert!(shown.contains("priority high") && shown.contains("of wanted == 0x1"), "{shown}");

    let files = Files::new();
    files.put("matrix", &[64, 64], &[1.0_f32; 64 * 64]);
    files.put("sums", &[64], &[64.0_f32; 64]);
    let (matrix, sums) = (files.option("matrix"), files.option("sums"));
    for (wanted, code) in [(1_u32, 0), (0, 1)] {
        files.put("wanted", &[1], &[wanted]);
        let flag = files.option("wanted");
        let inputs = ["--input", &matrix, "--input", &flag, "--expect", &sums];
        for hosting in ["pool", "threads", "virtual"] {
            let run = ["program", "run", &shaped, "--hosting", hosting];
            pto(&[&run[..], &inputs].concat(), code);
        }
    }

    fs::write(&source, lines.join("\n").replace("high", "low") + "\n").expect("a file");
    pto(&["program", "build", &source, "-o", &other], 0);
    let output = answers("program_diff", &["program", "diff", &shaped, &other]);
    assert_eq!(output["same"], false, "{output}");
}

/// `Y[p] = X[row of p]` for each p of a ragged axis.
const RAGGED: &str = "workload spread {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[3, 16]
  tensor Y : f32[6, 16]
  kernel copy(x: in f32[1, 16], y: out f32[1, 16]) {
    %0 = load x : f32[1, 16]
    store y, %0
  }
  do parallel p (row, at) in ragged(rows, lengths) { copy[p](x = X[row], y = Y[p]) }
}
";

/// An array of an axis comes from a file, as an input does.
#[test]
fn a_program_takes_the_arrays_of_its_axes() {
    let (files, folder) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (source, out) = (path("spread.workload"), path("spread.ptop"));
    fs::write(&source, RAGGED).expect("a file");
    pto(&["program", "build", &source, "-o", &out], 0);
    let rows = |of: &[f32]| of.iter().flat_map(|value| [*value; 16]).collect::<Vec<_>>();
    files.put("X", &[3, 16], &rows(&[5.0, 6.0, 7.0]));
    files.put("Y", &[6, 16], &rows(&[5.0, 5.0, 6.0, 7.0, 7.0, 7.0]));
    files.put("lengths", &[3], &[2_i32, 1, 3]);
    let [x, y, lengths] = ["X", "Y", "lengths"].map(|name| files.option(name));
    let run = ["program", "run", &out, "--input", &x, "--param=rows=3"];
    let all = [&run[..], &["--input", &lengths, "--expect", &y]].concat();
    assert!(pto(&all, 0).stdout.contains("PASS"));
    refused(&run, 2, &["the array lengths is not bound"]);
    files.put("lengths", &[3], &[2.0_f32, 1.0, 3.0]);
    refused(&all, 2, &["--input lengths", "type f32", "has i32"]);
}

/// A program that names a builder of the device runs where the device has it.
#[test]
fn a_program_names_a_builder_of_the_device() {
    let (files, folder) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let source =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/programs/vector_example.json");
    let (out, other) = (path("of_builder.ptop"), path("other.json"));
    answers("program_build", &["program", "build", source, "-o", &out]);
    let shown = answers("program_inspect", &["program", "inspect", &out]);
    assert_eq!(
        (&shown["body"], &shown["needs"]["builder"]),
        (&"builder".into(), &"vector_example".into())
    );
    let [a, b]: [Vec<f32>; 2] = [1.0, 2.0].map(|value| vec![value; 1024]);
    files.put("a", &[1024], &a);
    files.put("b", &[1024], &b);
    files.put("out", &[1024], &[20.0_f32; 1024]);
    let [a, b, expect] = ["a", "b", "out"].map(|name| files.option(name));
    for hosting in ["pool", "threads", "virtual"] {
        let run = ["program", "run", &out, "--input", &a, "--input", &b, "--expect", &expect];
        let output = pto(&[&run[..], &["--hosting", hosting]].concat(), 0).stdout;
        assert!(output.contains("PASS"), "{output}");
    }
    assert!(pto(&["program", "check", &out], 0).stdout.contains("builder"));
    let text = fs::read_to_string(source).expect("an example");
    let builds = |from: &str, to: &str, code, words: &[&str]| {
        assert!(text.contains(from), "{from}");
        fs::write(&other, text.replace(from, to)).expect("a file");
        let build = ["program", "build", &other, "-o", &out];
        if code == 0 { drop(pto(&build, 0)) } else { refused(&build, code, words) }
    };
    builds("\"version\": 1", "\"version\": 2", 2, &["version 2", "version 1 is wanted"]);
    builds(
        "aicpu_build_graph",
        "host_build_graph",
        2,
        &["no variant with builders", "aicpu_build_graph"],
    );
    builds("{\"tensor\": \"out\"}", "{\"tensor\": \"up\"}", 2, &["names tensor up"]);
    builds("{\"tensor\": \"out\"}", "{\"tensors\": \"out\"}", 2, &["no description of a builder"]);
    builds("\"element\": \"f32\"", "\"element\": \"f31\"", 2, &["f31", "no element type"]);
    builds("\"builder\": \"vector_example\"", "\"builder\": \"none\"", 0, &[]);
    refused(&["program", "run", &out], 2, &["builder none", "does not have", "vector_example"]);
    pto(&["program", "check", &out], 1);
}

/// The program has its kernels with it: running it does not need the shared object.
#[test]
fn a_program_brings_kernels_of_its_own() {
    let (files, folder) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let object = folder.path().join("kernels.so");
    own_kernels::example(&object);
    let (path, object) = (folder.path().join("own.ptop"), object.to_str().expect("UTF-8"));
    let own = path.to_str().expect("UTF-8");
    let graph = format!("{GRAPHS}/own_kernels.jsonl");
    let build = ["program", "build", &graph, "-o", own];
    answers("program_build", &[&build[..], &["--kernels", object]].concat());
    let workload = format!("{WORKLOADS}/softmax.workload");
    let wrong = ["program", "build", &workload, "-o", own, "--kernels", object];
    refused(&wrong, 2, &["--kernels adds kernels for graph files"]);
    refused(&build, 2, &["func id 100", "--kernels names a shared object"]);
    let twice = [&build[..], &["--kernels", object, "--kernels", object]].concat();
    refused(&twice, 2, &["two objects for the processor"]);
    fs::remove_file(object).expect("it is there");

    let shown = answers("program_inspect", &["program", "inspect", own]);
    let native = &shown["native"];
    assert_eq!(
        (&native["kernels"][0]["name"], &native["kernels"][1]["kind"]),
        (&"scale".into(), &"aic".into())
    );
    assert_eq!(native["objects"][0]["processor"], std::env::consts::ARCH);
    assert!(pto(&["program", "check", own], 0).stdout.contains("native kernels"));
    let row: Vec<f32> = (0_u16..1000).map(f32::from).collect();
    files.put("row", &[1000], &row);
    files.put("mean", &[1], &[999.0_f32]);
    let (input, expect) = (files.option("row"), files.option("mean"));
    for hosting in ["pool", "threads", "virtual"] {
        let run = ["program", "run", own, "--input", &input, "--expect", &expect, "--rounds=2"];
        let output = pto(&[&run[..], &["--hosting", hosting]].concat(), 0).stdout;
        assert!(output.contains("PASS"), "{output}");
    }
    // For another processor: the name is once in the file, with its length in front of it.
    let (here, other) = (std::env::consts::ARCH, "mips_9");
    let mut file = fs::read(&path).expect("it is there");
    let at =
        file.windows(here.len()).rposition(|text| text == here.as_bytes()).expect("it says so");
    file[at..at + 6].copy_from_slice(other.as_bytes());
    seal(&mut file);
    fs::write(&path, file).expect("writable");
    if here.len() == other.len() {
        refused(&["program", "run", own], 2, &["for mips_9, and none for", here]);
        pto(&["program", "check", own], 1);
    }
}

#[test]
fn what_cannot_be_a_program_is_refused() {
    let files = Files::new();
    let path =
        |name: &str| files.path(name).with_extension("").to_str().expect("a plain name").to_owned();
    let source = format!("{WORKLOADS}/softmax.workload");
    let out = path("out.ptop");
    let build = |args: &[&str], words: &[&str]| {
        refused(&[&["program", "build", &source, "-o", &out], args].concat(), 2, words);
    };
    build(&["--layout=X=nz:28x96"], &["Tensor X", "the plan has X f32[28, 96]"]);
    build(&["--layout=X=nz"], &["does not say the extents"]);
    build(&["--role=X=output"], &["no task writes it"]);
    build(&["--place=Q=device"], &["no tensor Q. It has: X, M, S, Y"]);
    refused(&["program", "build", "Cargo.toml"], 2, &["neither a workload"]);
    refused(&["program", "build", "src"], 2, &["is a folder", "pto run src"]);
    pto(&["program", "build", &source, "-o", &out, "--target=a5"], 0);
    refused(
        &["program", "run", &out, "--param=scale=1"],
        2,
        &["target 'a5', and 'a2a3' is wanted"],
    );
    pto(&["program", "check", &out], 1);
    let mut damaged = fs::read(&out).expect("a file");
    damaged[200] ^= 1;
    fs::write(&out, damaged).expect("a file");
    refused(&["program", "inspect", &out], 2, &["is damaged: its checksum is"]);
    refused(&["program", "inspect", &path("none.ptop")], 4, &["none.ptop"]);
}

/// The numbers that a timeline says of a run, without the commas that people read.
fn facts_of(trace: &str) -> impl Fn(&str) -> Option<u64> {
    let run = answers("analyze", &["analyze", trace])["run"].clone();
    move |name| run[name].as_str().and_then(|text| text.replace(',', "").parse().ok())
}

/// Every counter is in the timeline, with the value that follows from the program, and the value of the answer in JSON.
#[test]
fn timelines_have_the_counters_of_the_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (program, trace, page) = (path("x.ptop"), path("run.json"), path("run.html"));
    let source = format!("{WORKLOADS}/softmax.workload");
    let build = ["program", "build", &source, "-o", &program, "--place=X=on-chip"];
    pto(&[&build[..], &["--role=M=temporary", "--role=S=temporary"]].concat(), 0);
    let run = ["program", "run", &program, "--param=scale=0.5", "--rounds=3", "--trace", &trace];
    let output = answers("program_run", &run);
    let counted = facts_of(&trace);
    let [x, y, column] = [28 * 96 * 4, 28 * 96 * 4, 28 * 4];
    for (name, value) in [
        // The words of the one binding.
        ("copied_to_device_bytes", 408),
        ("copied_to_host_bytes", 0),
        ("copied_on_device_bytes", 0),
        // Y, M and S begin as zeros.
        ("filled_bytes", 3 * (y + 2 * column)),
        ("converted_bytes", 0),
        ("conversions", 0),
        // The session has no memory on the chip.
        ("bounced_bytes", 3 * x),
        // Y, M and S of three runs; one block was in the pool before the first.
        ("allocations", 2),
        ("pool_hits", 3 * 3 - 2),
        ("runs", 3),
        ("binding_hits", 2),
        ("launches", 3),
    ] {
        assert_eq!(counted(name), Some(value), "{name}");
        assert_eq!(output["counters"][name], value, "{name}");
    }
    assert_eq!(output["counters"].as_object().map(serde_json::Map::len), Some(12));
    pto(&["view", &trace, "-o", &page], 0);
    let page = fs::read_to_string(&page).expect("a page");
    assert!(page.contains("bounced_bytes") && page.contains("32,256"));

    let trace = path("loop.json");
    let small = ["--param=inner=64", "--param=outer=64", "--param=tile=32", "--param=iterations=6"];
    let differ = ["run", "training_loop", "--param=layouts=differ", "--trace", &trace];
    let output = answers("training_loop", &[&differ[..], &small].concat());
    let counted = facts_of(&trace);
    for (name, value) in [
        ("copied_to_device_bytes", 0),
        ("copied_on_device_bytes", 0),
        ("filled_bytes", 0),
        // In each of five rounds the weights and the gradient, by a program each.
        ("converted_bytes", 5 * 2 * 4 * 64 * 64),
        ("conversions", 5 * 2),
        ("bounced_bytes", 0),
        ("allocations", 0),
        ("runs", 5 * (3 + 2)),
        ("binding_hits", 5 * (3 + 2)),
    ] {
        assert_eq!(counted(&format!("{name} after the first round")), Some(value), "{name}");
        assert_eq!(output["after_it"][name], value, "{name}");
    }
}

#[test]
fn the_training_loop_passes_and_says_what_it_copied() {
    let small = ["--param=inner=64", "--param=outer=64", "--param=tile=32", "--param=iterations=6"];
    let few = ["--aic=4", "--aiv=8", "--param=rate=0.5"];
    let output = answers("training_loop", &[&["run", "training_loop"][..], &small, &few].concat());
    assert_eq!(output["after_it"]["copied_to_host_bytes"], 0);
    let differ = ["run", "training_loop", "--param=layouts=differ"];
    let output = answers("training_loop", &[&differ[..], &small, &few].concat());
    assert_eq!(output["after_it"]["converted_bytes"], 5 * 2 * 4 * 64 * 64);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("loop.json").to_str().expect("UTF-8").to_owned();
    let run = ["run", "training_loop", "--trace", &trace];
    answers("training_loop", &[&run[..], &small, &few].concat());
    let analysed = pto(&["analyze", &trace], 0).stdout;
    assert!(analysed.contains("copied_to_host_bytes after the first round"), "{analysed}");
    refused(&["run", "training_loop", "--param=tile=33"], 2, &["must divide"]);
    let many = ["run", "training_loop", "--aic=1", "--aiv=2", "--aicpu=4"];
    refused(&many, 2, &["run.aicpu_instances", "4 on a device with 1 cluster"]);
}

/// A request that cannot be met is refused before anything runs, and an option that does nothing is not taken.
#[test]
fn the_training_loop_refuses_what_it_cannot_do() {
    let refuses = |option: &str, words: &[&str]| {
        refused(&["run", "training_loop", "--param=iterations=1", option], 2, words);
    };
    refused(&["run", "training_loop", "--aic=1", "--aiv=2", "--aicpu=4"], 2, &["1 cluster"]);
    refuses("--aic=0", &["no AIC core"]);
    refuses("--aiv=0", &["no AIV core"]);
    refuses("--param=batch=99999999999999999", &["batch", "1 to 65536"]);
    refuses("--param=outer=65536", &["too large"]);
    refuses("--param=rate=nan", &["rate", "finite"]);
    refuses("--trace=x.svg", &["'x.svg'", "use .json"]);
    for option in ["--predict", "--gantt", "--rounds=7", "--fanout=locked", "--output=a=x.npy"] {
        refuses(option, &["three programs", "leave --"]);
    }
    let once = ["run", "training_loop", "--param=iterations=1", "--param=inner=64"];
    let small = ["--param=outer=64", "--param=tile=32", "--aic=4", "--aiv=8"];
    let output = answers("training_loop", &[&once[..], &small].concat());
    assert!(output["pcc"]["losses"].is_null(), "one loss has no correlation");
}

#[test]
fn nan_of_a_program_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let graph = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/graphs/row_sums.jsonl");
    let (out, matrix) = (path("sums.ptop"), path("nan.npy"));
    pto(&["program", "build", graph, "-o", &out], 0);
    write_nan(&matrix, [64, 64]);
    let input = format!("matrix={matrix}");
    let text = pto(&["program", "run", &out, "--input", &input], 0).stdout;
    assert!(text.contains("matrix: 4,096 of its values are NaN"), "{text}");
    let output = answers("program_run", &["program", "run", &out, "--input", &input]);
    // A result of NaN that is expected is right, and reported; the other way round it is wrong.
    let (saved, sums) = (path("saved"), path("saved/sums.npy"));
    let run = ["program", "run", &out, "--input", &input];
    pto(&[&run[..], &["--save", &saved]].concat(), 0);
    let expect = format!("sums={sums}");
    let judged = answers("program_run", &[&run[..], &["--expect", &expect]].concat());
    assert_eq!(judged["compared"][0]["nan"], serde_json::json!({ "found": 63, "expected": 63 }));
    let text = pto(&[&run[..], &["--expect", &expect]].concat(), 0).stdout;
    assert!(text.contains("NaN: 63 values of the result, 63 of the file"), "{text}");
    let numbers = pto(&["program", "run", &out, "--expect", &expect], 1).stdout;
    assert!(numbers.contains("FAIL  ") && numbers.contains("63 of 64 values too far"), "{numbers}");
    // The file writes element 31 twice and leaves the last one out, so that `pto check` has something to find.
    assert_eq!(output["outputs"][1]["nan"], 63);
    refused(&["run", &out], 2, &["pto program run"]);
}

/// A fault of a program, of a loop of programs and of a group has the fields that a fault of a run has.
#[test]
fn a_fault_has_its_fields_in_every_command_that_runs_something() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (source, program) = (path("indexed.workload"), path("indexed.ptop"));
    fs::write(&source, INDEXED).expect("a file");
    pto(&["program", "build", &source, "-o", &program], 0);
    let run = ["program", "run", &program, "--param=n=9", "--hosting=virtual"];
    let output = answers("failure", &run);
    assert_eq!((&output["exit_code"], &output["fault"]["name"]), (&3.into(), &"PLAN_INDEX".into()));
    assert!(output["fault"]["remedy"].is_string(), "{output}");
    assert!(
        output["replay"].as_str().is_some_and(|replay| replay.contains("--param=n=9")),
        "{output}"
    );
    let group = ["run", "tp_decoder", "--group=local:2", "--run-budget-ms=1"];
    let untraced = pto(&[&run[..], &["--trace", &path("t.json")]].concat(), 3).stderr;
    assert!(untraced.contains("t.json' was not written"), "{untraced}");
    let small = ["--param=inner=64", "--param=outer=64", "--param=tile=32", "--param=iterations=1"];
    let slow = ["--hosting=virtual", "--kernel-cost=3ms", "--run-budget-ms=1"];
    let training = [&["run", "training_loop"][..], &small, &slow].concat();
    let output = answers("failure", &training);
    assert_eq!(output["trace_hash"].as_str().map(str::len), Some(16), "{output}");
    assert!(output["replay"].as_str().is_some_and(|replay| replay.contains("3ms")), "{output}");
    for run in [&group[..], &training] {
        let output = answers("failure", run);
        assert_eq!(output["exit_code"], 3, "{output}");
        assert_eq!(output["fault"]["name"], "STALL_RUN_BUDGET", "{output}");
        assert!(output["fault"]["instance"].is_u64(), "{output}");
    }
}

/// A workload whose loop leaves its tensor if `n` is more than 4.
const INDEXED: &str = include_str!("../../../../workload/tests/texts/indexed.workload");

/// A request that cannot be met is refused before the program runs.
#[test]
fn what_no_output_can_be_compared_with_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let graph = format!("{GRAPHS}/row_sums.jsonl");
    let (out, wide) = (path("sums.ptop"), path("wide.npy"));
    pto(&["program", "build", &graph, "-o", &out], 0);
    write_nan(&wide, [64, 64]);
    let run = ["program", "run", &out];
    let refuses = |options: &[&str], words: &[&str]| refused(&[&run, options].concat(), 2, words);
    let [none, wrong, input] = ["none", "sums", "matrix"].map(|name| format!("{name}={wide}"));
    refuses(&["--expect", &none], &["no output 'none'", "matrix, sums"]);
    refuses(&["--expect", &wrong], &["f32 [64, 64]", "f32 [64]", "same type and shape"]);
    refuses(&["--input", &input, "--input", &input], &["--input matrix=.. is given twice"]);
    refuses(&["--pcc=0.9"], &["--expect"]);
    refuses(&["--rtol=1"], &["--expect"]);
    refuses(&["--expect", &wrong, "--pcc=2"], &["from 0 to 1"]);
    refuses(&["--save=-"], &["standard output is no folder"]);
    refuses(&["--trace=run.svg"], &["'run.svg'", "use .json"]);
}

/// What NumPy computes with is `f64`: the file of an output of `f32` may have it.
#[test]
fn an_output_is_compared_with_doubles() {
    let (files, folder) = (Files::new(), tempfile::tempdir().expect("a folder"));
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (graph, out) = (path("e.jsonl"), path("e.ptop"));
    let lines = [
        r#"{"format": "pto-graph", "version": 1, "name": "e", "variant": "host_build_graph"}"#,
        r#"{"tensor": 0, "name": "x", "element": "f32", "shape": [4]}"#,
        r#"{"tensor": 1, "name": "y", "element": "f32", "shape": [4]}"#,
        r#"{"task": 0, "func": 3, "kind": "aiv", "args": [{"in": 0}, {"out": 1}, 4]}"#,
    ];
    fs::write(&graph, lines.join("\n")).expect("a file");
    pto(&["program", "build", &graph, "-o", &out], 0);
    files.put("x", &[4], &[0.5_f32; 4]);
    let (input, expect) = (files.option("x"), files.option("y"));
    let runs = [vec!["run", &graph], vec!["program", "run", &out]];
    let with = |code: i32| {
        for run in &runs {
            pto(&[&run[..], &["--input", &input, "--expect", &expect]].concat(), code);
        }
    };
    files.put("y", &[4], &[0.5_f64.exp(); 4]);
    with(0);
    files.put("y", &[4], &[0.5_f64.exp() * (1.0 + 3e-5); 4]);
    with(1);
    files.put("y", &[4], &[1_i32; 4]);
    for run in &runs {
        let words = [&run[..], &["--expect", &expect]].concat();
        refused(&words, 2, &["i32 [4]", "or of f64 for f32"]);
    }
}

/// What `pto program build` writes, every other command reads.
#[test]
fn a_name_that_no_file_holds_is_refused_when_it_is_built() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let text = fs::read_to_string(format!("{GRAPHS}/row_sums.jsonl")).expect("an example");
    let (graph, out) = (path("g.jsonl"), path("g.ptop"));
    fs::write(&graph, text.replace("\"matrix\"", "\"m\\u001b[2J\"")).expect("a file");
    refused(&["program", "build", &graph, "-o", &out], 2, &["control characters"]);
    refused(
        &["program", "build", &format!("{GRAPHS}/row_sums.jsonl"), "-o", &out, "--target="],
        2,
        &["target", "0 bytes"],
    );
    assert!(fs::metadata(&out).is_err(), "nothing was written");
}

/// Writes a NumPy file of `f32` that holds nothing but NaN.
pub(crate) fn write_nan(path: &str, shape: [usize; 2]) {
    let [rows, columns] = shape;
    let head =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let head = format!("{head:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(head.as_bytes());
    bytes.extend((0..rows * columns).flat_map(|_| f32::NAN.to_le_bytes()));
    fs::write(path, bytes).expect("a file");
}

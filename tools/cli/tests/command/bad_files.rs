//! NumPy files that an example cannot take: the message names the file, what was found, what was expected.

use std::fs;
use std::process::Command;

use npyz::Order;
use serde_json::Value;

use crate::files::Files;
use crate::pto::{answer, command, pto, refused};

/// A small attention, so that every input has a size that a test can write by hand.
const SMALL: &[&str] = &[
    "run",
    "paged_attention",
    "--param=batch=2",
    "--param=heads=2",
    "--param=kv_heads=1",
    "--param=head_dim=4",
    "--param=block_size=2",
    "--param=max_context=6",
];

/// A workload with a tensor of this type and extents.
fn with_tensor(tensor: &str) -> String {
    format!(
        "workload large {{
  schedule round_robin workers 1 window 8192 stall
  tensor X : {tensor}
  kernel double(x: inout f32[1, 8]) {{
    %0 = load x : f32[1, 8]
    %1 = add %0, %0 : f32[1, 8]
    store x, %1
  }}
  do parallel i in dense 4 {{ double[i](x = X[i, 0 for 8]) }}
}}"
    )
}

/// Counts without a limit would take hours, or all memory, before anything is said.
#[test]
fn counts_that_no_run_can_have_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name).to_str().expect("UTF-8").to_owned();
        fs::write(&path, text).expect("a file");
        path
    };
    let (tensor, loops) = ("f32[4, 8]", "dense 4294967296 { double[i](x = X[0, 0 for 8]) }");
    let text = with_tensor(tensor).replace("dense 4 { double[i](x = X[i, 0 for 8]) }", loops);
    let workload = file("loops.workload", &text);
    let size = text.replace("dense 4294967296", "dyn n default 4");
    let sized = file("size.workload", &size);
    let limit = "4,294,967,296 times, and 33,554,432 calls are the limit";
    for command in ["run", "check", "graph"] {
        refused(&[command, &workload], 2, &[limit]);
        refused(&[command, &sized, "--param=n=4294967296"], 2, &[limit]);
    }
    let chain = r#"{"format": "pto-graph", "version": 1, "variant": "aicpu_build_graph"}
{"tensor": 0, "element": "f32", "shape": [64]}
{"task": 0, "kind": "aiv", "chain": [{"func": 3, "args": [{"in": 0}, {"out": 0}, 64], "times": 4294967295}]}
"#;
    let chain = file("chain.jsonl", chain);
    let program = folder.path().join("chain.ptop");
    let program = program.to_str().expect("UTF-8");
    let limit = "line 3: chain[0].times: 4,294,967,295 are more than the 16,383 kernels of a chain";
    for command in [&["run"][..], &["check"], &["graph"], &["program", "build", "-o", program]] {
        refused(&[command, &[&chain]].concat(), 2, &[limit]);
    }
    for ring in ["--window=33554432", "--map-entries=2147483648"] {
        let words = ["the rings need ", " GiB of device memory", "the device has 4.00 GiB"];
        refused(&["check", "decoder_layer", ring], 2, &words);
    }
    let chunks = ["check", "decoder_layer", "--edge-chunks=4294967295"];
    refused(&chunks, 2, &["capacity edges", "limit is 4294967295"]);
}

#[test]
fn tensors_that_no_device_has_room_for_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (file, program) = (path("large.workload"), path("large.ptop"));
    for (tensor, size) in [
        ("f32[4000000, 4000]", "59.6 GiB"),
        ("f32[4, 4294967295]", "64.0 GiB"),
        ("f32[2147483648, 8]", "64.0 GiB"),
    ] {
        fs::write(&file, with_tensor(tensor)).expect("a file");
        let needs = format!("the tensors need {size} of device memory");
        for command in ["run", "check", "graph"] {
            refused(&[command, &file], 2, &[&needs, "4.0 GiB are free"]);
        }
        let built = answer(&mut command(&["program", "build", &file, "-o", &program]));
        if built.code == Some(0) {
            refused(&["program", "run", &program], 2, &[&needs, "are free"]);
            pto(&["program", "inspect", &program], 0);
        }
    }
}

fn refuses(files: &Files, inputs: &[&str], words: &[&str]) {
    let options: Vec<_> =
        inputs.iter().map(|name| format!("--input={}", files.option(name))).collect();
    let args: Vec<_> = SMALL.iter().copied().chain(options.iter().map(String::as_str)).collect();
    refused(&args, 2, words);
}

#[test]
fn another_type() {
    let files = Files::new();
    files.put("q", &[2, 2, 4], &[0.0_f64; 16]);
    refuses(&files, &["q"], &["q.npy'", "type f64", "must have f32"]);
    files.put("q", &[2, 2, 4], &[0_i32; 16]);
    refuses(&files, &["q"], &["input 'q'", "i32", "must have f32", "q.npy'"]);
    files.put("context_lens", &[2], &[1_i64; 2]);
    refuses(&files, &["context_lens"], &["context_lens.npy'", "type i64", "must have i32"]);
}

#[test]
fn another_order() {
    let files = Files::new();
    files.put_in(Order::Fortran, "q", &[2, 2, 4], &[0.0_f32; 16]);
    refuses(&files, &["q"], &["q.npy'", "Fortran order", "C order"]);
}

#[test]
fn another_shape() {
    let files = Files::new();
    files.put("q", &[4, 4], &[0.0_f32; 16]);
    refuses(&files, &["q"], &["[4, 4]", "3 extents: [batch, heads, head_dim]", "q.npy'"]);
    files.put("q", &[2, 1, 8], &[0.0_f32; 16]);
    refuses(&files, &["q"], &["[2, 1, 8]", "[batch = 2, heads = 2, head_dim = 4]", "q.npy'"]);
    files.put("k", &[3, 2, 1, 4], &[0.0_f32; 24]);
    files.put("v", &[4, 2, 1, 4], &[0.0_f32; 32]);
    refuses(&files, &["k", "v"], &["'num_blocks'", "'k'", "3", "'v'", "4"]);
    files.put::<f32>("q", &[0, 2, 4], &[]);
    refuses(&files, &["q"], &["[0, 2, 4]", "batch = 2"]);
}

#[test]
fn extents_that_no_parameter_has() {
    let files = Files::new();
    files.put::<f32>("a", &[0, 4], &[]);
    refused(
        &["run", "matmul", "--input", &files.option("a")],
        2,
        &["input 'a'", "'m' 0", "a.npy'"],
    );
}

#[test]
fn less_than_the_header_says_or_more() {
    let files = Files::new();
    files.put("q", &[2, 2, 4], &[0.0_f32; 16]);
    let whole = files.bytes("q");
    files.put_bytes("q", &whole[..whole.len() - 10]);
    refuses(&files, &["q"], &["q.npy'", "cut off", "64 bytes", "there are 54"]);
    files.put_bytes("q", &[&whole[..], &[0; 4]].concat());
    refuses(&files, &["q"], &["q.npy'", "goes on", "there are 68"]);
    files.put_bytes("q", &whole[..20]);
    refuses(&files, &["q"], &["q.npy'", "middle of its header"]);
    files.put_bytes("q", &[]);
    refuses(&files, &["q"], &["q.npy'", "too short"]);
}

#[test]
fn no_numpy_file_at_all() {
    let files = Files::new();
    files.put_bytes("q", b"batch,heads\n1,2\n3,4\n");
    refuses(&files, &["q"], &["q.npy'", "not a NumPy file"]);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n";
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    files.put_bytes("q", &[b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat());
    refuses(&files, &["q"], &["q.npy'", "larger than memory"]);
}

#[test]
fn context_lengths_that_are_none() {
    let files = Files::new();
    for (len, text) in [(0, "is 0"), (-3, "is -3"), (7, "is 7")] {
        files.put("context_lens", &[2], &[6, len]);
        refuses(&files, &["context_lens"], &["context_lens[1]", text, "1 to max_context = 6"]);
    }
}

#[test]
fn blocks_that_the_cache_does_not_have() {
    let files = Files::new();
    files.put("context_lens", &[2], &[3, 6]);
    files.put("k", &[5, 2, 1, 4], &[0.0_f32; 40]);
    for (block, text) in [(5, "is 5"), (-1, "is -1"), (i32::MAX, "is 2147483647")] {
        files.put("block_table", &[2, 3], &[0, 1, 99, 2, 3, block]);
        refuses(
            &files,
            &["context_lens", "k", "block_table"],
            &["block_table[1, 2]", text, "blocks 0 to 4"],
        );
    }
}

#[test]
fn files_that_cannot_be_opened_are_another_kind_of_failure() {
    let files = Files::new();
    let input = files.option("q");
    refused(&["run", "paged_attention", "--input", &input], 4, &["cannot open", "q.npy'"]);
    let output = format!("out={}", files.path("no/such/folder").display());
    refused(&["run", "paged_attention", "--output", &output], 4, &["no folder", "no/such'"]);
    let twice = ["run", "paged_attention", "--input", &input, "--input", &input];
    refused(&twice, 2, &["--input q=..", "twice"]);
}

/// A disk that is full, as a limit of the shell plays it: what was there stays, and the run still reports its result.
#[test]
fn a_file_that_cannot_be_written_leaves_the_old_one_and_the_report() {
    let files = Files::new();
    let pto_path = env!("CARGO_BIN_EXE_pto");
    for (name, option) in [("f.npy", "--output=f="), ("t.json", "--trace=")] {
        let path = files.path("f").with_file_name(name).display().to_string();
        fs::write(&path, b"good").expect("the folder takes it");
        let limited =
            format!("trap '' XFSZ; ulimit -f 4; exec {pto_path} run vector_example {option}{path}");
        let full = answer(Command::new("sh").args(["-c", &limited]));
        assert_eq!(full.code, Some(4), "{}{}", full.stdout, full.stderr);
        assert!(
            full.stdout.contains("PASS") && full.stdout.contains("NOT WRITTEN"),
            "{}",
            full.stdout
        );
        assert!(full.stderr.contains(&format!("cannot write '{path}'")), "{}", full.stderr);
        assert_eq!(fs::read(&path).expect("it is there"), b"good");
        let json = answer(Command::new("sh").args(["-c", &format!("{limited} --json")]));
        let report: Value = serde_json::from_str(&json.stdout).expect("one JSON value");
        assert_eq!(report["exit_code"], 4);
        assert_eq!(report["check"]["passed"], true);
        let error = report["error"].as_str().expect("what standard error says");
        assert_eq!(json.stderr.trim_end(), format!("error: {error}"));
        assert!(error.contains(&format!("cannot write '{path}'")), "{error}");
    }
}

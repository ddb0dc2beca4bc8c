//! Unknown names and bad values: exit code 2, and a message that says what is wrong and what would be right.

use serde_json::Value;

use crate::pto::{BUILD_MODE, answer, command, pto, refused};

#[test]
fn unknown_names_are_answered_with_the_known_and_the_nearest() {
    refused(&["run", "paged_atention"], 2, &["did you mean 'paged_attention'?", "random_dag"]);
    refused(&["run", "x"], 2, &["no example 'x'", "vector_example"]);
    let runtime = ["run", "matmul", "--runtime", "host_build"];
    refused(&runtime, 2, &["--runtime", "did you mean 'host_build_graph'?", "aicpu_build_graph"]);
    refused(&["run", "matmul", "--fanout", "lockfree"], 2, &["did you mean 'lock-free'?"]);
    refused(&["run", "matmul", "--hosting", "cloud"], 2, &["pool", "threads"]);
    refused(&["run", "matmul", "--param", "tile=4"], 2, &["no parameter 'tile'", "tile_m"]);
    refused(
        &["run", "matmul", "--input", "x=a.npy"],
        2,
        &["no input 'x'", "choose one of a, b, d"],
    );
    refused(&["run", "matmul", "--output", "x=a.npy"], 2, &["no output 'x'", "choose one of c"]);
    refused(&["run", "random_dag", "--input", "x=a.npy"], 2, &["there are none"]);
    refused(&["run", "matmul", "--log", "loud"], 2, &["loud", "--log", "debug or trace"]);
    refused(&["info", "kernel"], 2, &["kernels"]);
    refused(&["info", "nothing"], 2, &["limits"]);
    refused(&["rum"], 2, &["'run'"]);
    refused(&["bench", "--peer=taskflow=/dev/null/x"], 2, &["no folder '/dev/null/x'"]);
    // A loop of programs is no graph, and is known nevertheless.
    refused(&["run", "training_lop"], 2, &["did you mean 'training_loop'?"]);
    for command in ["check", "graph"] {
        refused(&[command, "training_loop"], 2, &["three programs", "pto run training_loop"]);
    }
    refused(&["run", "training_loop", "--group=local:2"], 2, &["three programs"]);
    let twice = ["run", "training_loop", "--param=tile=8", "--param=tile=16"];
    refused(&twice, 2, &["--param tile=.. is given twice"]);
    refused(&["run", "training_loop", "--param=tiles=8"], 2, &["did you mean 'tile'?"]);
    refused(&["soak", "--seeds=1", "--journal=here"], 2, &["--journal", "mpirun"]);
}

#[test]
fn values_out_of_range_are_answered_with_the_range() {
    for value in ["0", "1048577", "-1", "many", "1e3", "99999999999999999999999"] {
        let param = format!("m={value}");
        refused(&["run", "matmul", "--param", &param], 2, &["'m'", value, "1 to 1048576"]);
    }
    refused(&["run", "matmul", "--param", "m"], 2, &["--param", "'='"]);
    refused(&["run", "matmul", "--param", "m=1", "--param", "m=2"], 2, &["m", "twice"]);
    refused(&["run", "matmul", "--build-mode", "2"], 2, &["--build-mode", "sequential"]);
    refused(&["run", "matmul", "--rounds", "0"], 2, &["--rounds", "from 1 to 100000"]);
    let seed = ["run", "matmul", "--hosting", "virtual", "--seed", "x"];
    refused(&seed, 2, &["--seed", "a whole number from 0 to"]);
    refused(&["run", "none.jsonl"], 4, &["cannot read 'none.jsonl'"]);
    refused(&["run", "matmul", "--task-budget-ms", "0"], 2, &["--task-budget-ms", "above 0"]);
    refused(&["run", "matmul", "--memory", "4T"], 2, &["--memory", "K, M or G"]);
    refused(&["run", "matmul", "--memory", "0"], 2, &["--memory"]);
    refused(&["run", "matmul", "--pool-threads", "0"], 2, &["--pool-threads"]);
    refused(&["run", "matmul", "--pool-threads", "100000"], 2, &["--pool-threads", "1 to 256"]);
    refused(&["soak", "--threads", "100000"], 2, &["--threads", "1 to 256"]);
    refused(&["run", "matmul", "--rounds", "4000000000"], 2, &["--rounds", "100000"]);
    refused(&["bench", "--device-metg=chain"], 2, &["chain", "tb_fft"]);
    refused(&["bench", "--rounds", "4000000000"], 2, &["--rounds", "10000"]);
    pto(&["run", "vector_example", "--pool-threads", "256"], 0);
    pto(&["soak", "--seeds=10", "--threads", "256"], 0);
    let both = ["run", "matmul", "--hosting", "threads", "--pool-threads", "2"];
    refused(&both, 2, &["--pool-threads belongs to --hosting pool"]);
}

/// What the firmware would refuse as well, before anything runs.
#[test]
fn sizes_of_rings_are_answered_with_what_is_allowed() {
    for command in ["run", "check"] {
        let with = |option: &'static str, value: &'static str, words: &[&str]| {
            refused(&[command, "moe_layer", option, value], 2, &[&[option][..], words].concat());
        };
        with("--window", "3", &["a power of two", "such as 2 or 4"]);
        with("--window", "0", &["from 1 to 33554432"]);
        with("--heap-bytes", "1", &["a multiple of 64 bytes", "the next one is 64"]);
    }
    for command in ["run", "check"] {
        for (option, kind) in [("--aic", "AIC"), ("--aiv", "AIV")] {
            let words = ["'cholesky'", &format!("no {kind} core")];
            refused(&[command, "cholesky", option, "0"], 2, &words);
        }
    }
    refused(&["check", "moe_layer", "--heap-rings", "9"], 2, &["--heap-rings", "1 to 8"]);
    refused(&["check", "moe_layer", "--map-entries", "128"], 2, &["--map-entries", "from 256"]);
    refused(&["check", "moe_layer", "--arg-words", "0"], 2, &["--arg-words", "1 to"]);
}

/// Otherwise one core would wait for another one that does not run, until the budget of the task is over.
#[test]
fn kernels_that_wait_for_each_other_are_refused_where_cores_do_not_run_at_once() {
    let run = ["run", "task_shapes", "--param=meet=1", "--param=layers=4", "--param=tasks=8"];
    for hosting in ["--hosting=pool", "--hosting=virtual"] {
        refused(&[&run[..], &[hosting]].concat(), 2, &["'task_shapes'", "--hosting threads"]);
    }
    let few = ["--aicpu=2", "--aic=2", "--aiv=4", "--param=together=1"];
    pto(&[&run[..], &["--hosting=threads"], &few].concat(), 0);
    pto(&["check", "task_shapes", "--param=meet=1", "--param=layers=2"], 0);
}

/// What an example says that it needs is what its tasks run on.
#[test]
fn examples_need_the_kinds_of_cores_that_they_use() {
    let listed = pto(&["info", "examples", "--json"], 0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("one JSON value");
    for example in listed["examples"].as_array().expect("a list") {
        let name = example["name"].as_str().expect("a name");
        let run = pto(&["run", name, "--hosting=virtual", "--no-compute", "--json"], 0).stdout;
        let run: Value = serde_json::from_str(&run).expect("one JSON value");
        for (kind, option) in [("aic", "--aic=0"), ("aiv", "--aiv=0")] {
            let is_used = run["median"][kind]["parts"].as_u64() > Some(0);
            let with_none = ["run", name, "--hosting=virtual", "--no-compute", option];
            pto(&with_none, if is_used { 2 } else { 0 });
        }
    }
}

#[test]
fn devices_and_runs_beyond_the_limits_are_refused() {
    let cores = ["run", "matmul", "--aic", "64", "--aiv", "65"];
    refused(&cores, 2, &["64 AIC and 65 AIV", "128"]);
    refused(&["run", "matmul", "--aic", "4294967295", "--aiv", "1"], 2, &["128"]);
    refused(&["run", "matmul", "--aic", "0", "--aiv", "0"], 2, &["1 to 128"]);
    refused(&["run", "matmul", "--aicpu", "17"], 2, &["--aicpu", "17"]);
    refused(&["run", "matmul", "--aicpu", "0"], 2, &["--aicpu"]);
    refused(
        &["run", "matmul", "--aicpu", "1"],
        2,
        &["--aicpu 1", "at least one more must schedule"],
    );
    pto(&["run", "vector_example", "--aicpu", "1", "--runtime", "host_build_graph"], 0);
}

#[test]
fn sizes_that_overflow_or_exceed_memory_are_refused_before_anything_runs() {
    let big = ["run", "matmul", "--param=m=1000000", "--param=k=1000000", "--param=tile_m=1000000"];
    refused(&big, 2, &["device memory", "4.0 GiB are free"]);
    refused(&["run", "vector_example", "--memory", "64K"], 2, &["64.0 KiB are free"]);
    let cache = ["run", "paged_attention", "--param", "head_dim=1048576", "--param"];
    let overflow =
        [&cache[..], &["num_blocks=2147483647", "--param", "block_size=1048576"]].concat();
    refused(&overflow, 2, &["more than 16 EiB"]);
    let tiles = ["run", "matmul", "--param", "m=1048576", "--param", "n=1048576"];
    let tiny = [&tiles[..], &["--param", "tile_m=1", "--param", "tile_n=1"]].concat();
    refused(&tiny, 2, &["tasks", "33554432"]);
    let edges = ["run", "random_dag", "--param", "tasks=30000", "--param", "max_predecessors=1000"];
    let dense = [&edges[..], &["--param", "window=1024", "--memory", "32M"]].concat();
    refused(&dense, 2, &["device memory", "32.0 MiB are free"]);
}

#[test]
fn parameters_that_do_not_fit_together_are_named() {
    let heads = ["run", "paged_attention", "--param", "heads=10"];
    refused(&heads, 2, &["heads = 10", "kv_heads = 4"]);
    let blocks = ["run", "paged_attention", "--param", "num_blocks=5"];
    refused(&blocks, 2, &["has 5", "raise num_blocks"]);
    let table = ["run", "paged_attention", "--param", "max_context=2147483647"];
    refused(&table, 2, &["max_context = 2147483647"]);
}

#[test]
fn the_environment_chooses_the_build_mode_and_the_flag_wins() {
    let run = |value: &str, args: &[&str]| {
        let args = [&["run", "vector_example"], args].concat();
        answer(command(&args).env(BUILD_MODE, value))
    };
    let bad = run("fast", &[]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.stderr.contains(BUILD_MODE) && bad.stderr.contains("fast"), "{}", bad.stderr);
    let sequential = run("0", &[]);
    assert_eq!(sequential.code, Some(0));
    assert!(sequential.stdout.contains("aicpu_build_graph, sequential"), "{}", sequential.stdout);
    assert!(run("1", &[]).stdout.contains("aicpu_build_graph, concurrent"));
    assert!(run("0", &["--build-mode", "1"]).stdout.contains("concurrent"));
    assert!(run("fast", &["--build-mode", "sequential"]).stdout.contains("sequential"));
}

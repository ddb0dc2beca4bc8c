//! Unknown names and bad values: exit code 2, and a message that says what is wrong and what would be right.

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
    refused(&["run", "matmul", "--input", "x=a.npy"], 2, &["no input 'x'", "known: a, b, d"]);
    refused(&["run", "matmul", "--output", "x=a.npy"], 2, &["no output 'x'", "known: c"]);
    refused(&["run", "random_dag", "--input", "x=a.npy"], 2, &["there are none"]);
    refused(&["run", "matmul", "--log", "loud"], 2, &["loud", "--log"]);
    refused(&["list", "kernel"], 2, &["kernels"]);
    refused(&["info", "nothing"], 2, &["limits"]);
    refused(&["rum"], 2, &["'run'"]);
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
    refused(&["run", "matmul", "--rounds", "0"], 2, &["--rounds"]);
    refused(&["run", "matmul", "--task-budget-ms", "0"], 2, &["--task-budget-ms", "above 0"]);
    refused(&["run", "matmul", "--gm-bytes", "4T"], 2, &["--gm-bytes", "K, M or G"]);
    refused(&["run", "matmul", "--gm-bytes", "0"], 2, &["--gm-bytes"]);
    refused(&["run", "matmul", "--pool-threads", "0"], 2, &["--pool-threads"]);
    let both = ["run", "matmul", "--hosting", "threads", "--pool-threads", "2"];
    refused(&both, 2, &["--pool-threads belongs to --hosting pool"]);
}

#[test]
fn devices_and_runs_beyond_the_limits_are_refused() {
    let cores = ["run", "matmul", "--aic", "64", "--aiv", "65"];
    refused(&cores, 2, &["64 AIC and 65 AIV", "128"]);
    refused(&["run", "matmul", "--aic", "4294967295", "--aiv", "1"], 2, &["128"]);
    refused(&["run", "matmul", "--aic", "0", "--aiv", "0"], 2, &["1 to 128"]);
    refused(&["run", "matmul", "--aicpu", "17"], 2, &["--aicpu", "17"]);
    refused(&["run", "matmul", "--aicpu", "0"], 2, &["--aicpu"]);
    refused(&["run", "matmul", "--aicpu", "1"], 2, &["--aicpu 1", "at least one more schedules"]);
    pto(&["run", "vector_example", "--aicpu", "1", "--runtime", "host_build_graph"], 0);
}

#[test]
fn sizes_that_overflow_or_exceed_memory_are_refused_before_anything_runs() {
    let big = ["run", "matmul", "--param=m=1000000", "--param=k=1000000", "--param=tile_m=1000000"];
    refused(&big, 2, &["device memory", "4.0 GiB are free"]);
    refused(&["run", "vector_example", "--gm-bytes", "64K"], 2, &["64.0 KiB are free"]);
    let cache = ["run", "paged_attention", "--param", "head_dim=1048576", "--param"];
    let overflow =
        [&cache[..], &["num_blocks=2147483647", "--param", "block_size=1048576"]].concat();
    refused(&overflow, 2, &["more than 16 EiB"]);
    let tiles = ["run", "matmul", "--param", "m=1048576", "--param", "n=1048576"];
    let tiny = [&tiles[..], &["--param", "tile_m=1", "--param", "tile_n=1"]].concat();
    refused(&tiny, 2, &["tasks", "33554432"]);
    let edges = ["run", "random_dag", "--param", "tasks=30000", "--param", "max_predecessors=1000"];
    let dense = [&edges[..], &["--param", "window=1024", "--gm-bytes", "32M"]].concat();
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

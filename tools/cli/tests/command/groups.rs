//! `--group local:N` and `pto bench collectives` in one process: what they say, and what they refuse.

use crate::examples::{all, borrowed};
use crate::program_files::write_nan;
use crate::pto::{pto, refused};
use crate::schema::answers;

#[test]
fn a_program_runs_unchanged_on_one_device_and_on_a_group() {
    let case = all().find(|case| case.name() == "tp_decoder").expect("it is in the table");
    let small = case.small("run");
    pto(&borrowed(&small), 0);
    let group = [&borrowed(&small)[..], &["--group=local:2"]].concat();
    let text = pto(&group, 0).stdout;
    assert!(text.contains("2 ranks in this process: passed"), "{text}");
    assert!(text.contains("rank 1: ") && text.contains(" 0 wrong"), "{text}");
    let digest = |text: &str| text.lines().last().map(str::to_owned);
    let timed = pto(&[&borrowed(&small)[..], &["--group=virtual:2"]].concat(), 0).stdout;
    assert!(timed.contains("2 ranks in virtual time: passed"), "{timed}");
    assert_eq!(digest(&timed), digest(&text), "time changes no bit");
    assert_eq!(digest(&pto(&group, 0).stdout), digest(&text), "the same bits in every run");
}

/// What is before the value of an option.
fn name_of(option: &str) -> &str {
    option.rsplit_once('=').map_or(option, |(name, _)| name)
}

/// Without computation a run follows whose values each element of a collective has.
#[test]
fn a_large_group_is_followed_without_computation() {
    let wide = ["--param=heads=32", "--param=kv_heads=32", "--param=intermediate=96"];
    let case = all().find(|case| case.name() == "tp_decoder").expect("it is in the table");
    let small = case.small("run");
    let is_kept = |option: &&str| wide.iter().all(|wider| name_of(wider) != name_of(option));
    let small: Vec<&str> = borrowed(&small).into_iter().filter(is_kept).collect();
    let run = [&small[..], &wide, &["--group=virtual:32", "--no-compute"]].concat();
    let text = pto(&run, 0).stdout;
    assert!(text.contains("32 ranks in virtual time: passed"), "{text}");
    assert!(text.contains(" 0 without the values of the right ranks"), "{text}");
    assert!(text.contains("nothing was computed"), "{text}");
    let output = answers("group_run", &run);
    let calls = output["contributions"]["calls"].as_u64().expect("a number");
    assert!(calls >= 2 * 32 && output["contributions"]["wrong"] == 0, "{output}");
    assert!(output["digest"].is_null(), "{output}");
}

#[test]
fn what_a_group_cannot_do_is_refused_with_what_to_do() {
    refused(&["run", "matmul", "--group=local:2"], 2, &["one device", "tp_decoder"]);
    refused(&["run", "tp_decoder", "--group=local:3"], 2, &["kv_heads = 8", "3 ranks"]);
    refused(&["run", "tp_decoder", "--group=virtual:2:lan"], 2, &["'lan'", "a3-pod"]);
    refused(&["run", "tp_decoder", "--group=tcp:3"], 2, &["local:RANKS"]);
    for option in ["--gantt", "--device=qemu", "--build-mode=0", "--pool-threads=2", "--no-compute"]
    {
        let name = option.split('=').next().unwrap_or(option);
        refused(&["run", "tp_decoder", "--group=local:2", option], 2, &[name]);
    }
    refused(&["run", "tp_decoder", "--group=mpi"], 2, &["mpirun -n 8"]);
    refused(&["bench", "collectives", "--from=64", "--to=32"], 2, &["--from 64", "--to 32"]);
    refused(&["bench", "collectives", "--collective=gossip"], 2, &["all_reduce"]);
}

#[test]
fn nan_of_a_group_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("nan.npy").to_str().expect("UTF-8").to_owned();
    write_nan(&file, [128, 64]);
    let input = format!("--input=x={file}");
    let run = ["run", "dp_training", "--param=steps=1", "--group=local:2", &input];
    let text = pto(&run, 0).stdout;
    assert!(text.contains("NaN: 4,096 values of the result, 4,096 of the reference"), "{text}");
    assert_eq!(answers("group_run", &run)["ranks_of_this_process"][0]["nan"]["found"], 4096);
}

#[test]
fn every_collective_is_measured_and_checked() {
    for name in ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce"]
    {
        let sizes = ["bench", "collectives", "--group=local:3", "-b=6K", "-e=6K", "--rounds=2"];
        let text = pto(&[&sizes[..], &["--repeats=1", "--collective", name]].concat(), 0).stdout;
        assert!(text.contains("bus GB/s") && text.contains("ok"), "{name}: {text}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.svg").to_str().expect("UTF-8").to_owned();
    let sizes = ["bench", "collectives", "--group=virtual:2", "-b=8K", "-e=16K", "--svg", &file];
    pto(&sizes, 0);
    let picture = std::fs::read_to_string(&file).expect("it was written");
    assert_eq!(picture.matches("<circle").count(), 4, "a time and a bandwidth of two sizes");
    refused(&["bench", "collectives", "--svg", "bench.html"], 2, &["bench.html", "svg"]);
}

/// A pipeline whose processes are on ranks is a workload file like any other, and has the bits of one device in every order of arrivals.
#[test]
fn a_workload_on_ranks_is_run_and_explored() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads");
    let file = |name: &str| format!("{folder}/{name}.workload");
    let folds = file("fold_on_ranks");
    for group in ["--group=local:4", "--group=virtual:4", "--group=virtual:3", "--group=local:1"] {
        let output = pto(&["run", &folds, group, "--aic=1", "--aiv=2"], 0).stdout;
        assert!(output.contains("fold_on_ranks on") && output.contains("passed"), "{output}");
    }
    refused(&["run", &file("two_producers"), "--group=local:2"], 2, &["one device", "on ranks"]);
    let small = file("handed_on");
    let explored = pto(&["run", &small, "--group=virtual:3", "--explore=5000"], 0).stdout;
    assert!(explored.contains("passed in every order of arrivals"), "{explored}");
    let few = pto(&["run", &small, "--group=virtual:3", "--explore=1"], 1).stdout;
    assert!(few.contains("NOT all orders were tried"), "{few}");
    refused(&["run", &small, "--group=local:2", "--explore=9"], 2, &["virtual:N"]);
    let traced = ["run", &small, "--group=virtual:2", "--explore=9", "--trace=x.json"];
    refused(&traced, 2, &["--trace", "one run"]);
}

/// The timeline of a group has a row for each core of each rank, and for its transfers; ranks that wrote a file each are merged.
#[test]
fn timelines_show_ranks_and_transfers_on_one_clock() {
    let case = all().find(|case| case.name() == "tp_decoder").expect("it is in the table");
    let small = case.small("run");
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    for group in ["--group=local:2", "--group=virtual:2"] {
        let written = file("ranks.json");
        let trace = format!("--trace={written}");
        let run = [&borrowed(&small)[..], &[group, "--aic=1", "--aiv=2", &trace]].concat();
        let output = pto(&run, 0).stdout;
        assert!(output.contains("the timeline of all ranks is in"), "{output}");
        let chart = pto(&["view", "--text", &written], 0).stdout;
        assert!(chart.contains("rank 0 aic 0") && chart.contains("transfers"), "{chart}");
        let file = std::fs::read_to_string(&written).expect("it was written");
        for row in ["rank 0 aic 0", "rank 0 transfers 0", "rank 1 aiv 1", "rank 1 transfers 0"] {
            assert!(file.contains(row), "{group}: {row}");
        }
        let analysed = pto(&["analyze", &written], 0).stdout;
        assert!(analysed.contains("transfer") && analysed.contains("reduce"), "{analysed}");
    }
    // As the ranks of an MPI job write them: the same file, cut into its ranks by hand.
    let of_rank = |rank: u32, began_ns: u64| {
        let path = file(&format!("run.{rank}.json"));
        pto(&["run", "matmul", "--aic=1", "--aiv=2", "--aicpu=2", &format!("--trace={path}")], 0);
        let text = std::fs::read_to_string(&path).expect("it was written");
        let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        json["pto"]["rank"] = serde_json::json!({ "number": rank, "began_ns": began_ns });
        std::fs::write(&path, json.to_string()).expect("it can be written");
        path
    };
    let [first, second] = [(0, 1000), (1, 3000)].map(|(rank, began_ns)| of_rank(rank, began_ns));
    let chart = pto(&["view", "--text", &second, &first], 0).stdout;
    assert!(chart.contains("rank 0 aic 0") && chart.contains("rank 1 aic 0"), "{chart}");
    refused(&["view", "--text", &first, &first], 2, &["two of them are of rank 0"]);
}

//! Runs that go through: every example, the summary, JSON, rounds; and the exit codes of those that do not.

use std::io::Read;
use std::process::Stdio;

use pto_examples::host::Program;
use serde_json::Value;

use crate::examples::{self, borrowed};
use crate::files::Files;
use crate::pto::{command, pto, refused};

fn json(args: &[&str], code: i32) -> Value {
    let answer = pto(&[args, &["--json"]].concat(), code);
    serde_json::from_str(&answer.stdout).expect("one JSON value and nothing else")
}

#[test]
fn every_example_passes_in_every_way_to_run_it() {
    for case in examples::all().filter(|case| case.example().program() == Program::Graph) {
        let target = case.small("run");
        for way in [
            &["--runtime=host_build_graph", "--hosting=pool", "--pool-threads=1"][..],
            &["--runtime=aicpu_build_graph", "--build-mode=0", "--fanout=locked"],
            &["--runtime=aicpu_build_graph", "--aicpu=2", "--aic=1", "--aiv=2"],
            &["--runtime=host_build_graph", "--hosting=threads", "--aicpu=1", "--aic=2"],
        ] {
            let answer = pto(&[&borrowed(&target)[..], way].concat(), 0);
            assert!(answer.stdout.contains("PASS"), "{}", answer.stdout);
            assert_eq!(answer.stderr, "", "{target:?} {way:?}");
        }
    }
}

#[test]
fn every_example_with_tensors_passes_in_every_hosting() {
    for case in examples::all().filter(|case| case.example().program() != Program::Graph) {
        let target = case.small("run");
        for way in [
            &["--hosting=pool", "--pool-threads=1"][..],
            &["--hosting=threads", "--aicpu=2", "--aic=2", "--aiv=4", "--fanout=locked"],
            &["--hosting=virtual", "--seed=3"],
            &["--runtime=tensormap_and_ringbuffer", "--window=64"],
        ] {
            let answer = pto(&[&borrowed(&target)[..], way].concat(), 0);
            assert!(answer.stdout.contains("PASS"), "{}", answer.stdout);
            assert!(answer.stdout.contains("tensormap_and_ringbuffer"), "{}", answer.stdout);
            assert_eq!(answer.stderr, "", "{target:?} {way:?}");
        }
    }
}

#[test]
fn a_number_of_a_workload_is_shown_as_it_was_given() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads/softmax.workload");
    let run = ["run", file, "--param", "scale=0.5"];
    let text = pto(&run, 0).stdout;
    assert!(text.contains("scale 0.5"), "{text}");
    assert_eq!(json(&run, 0)["params"]["scale"], 0.5);
}

#[test]
fn an_example_with_tensors_is_for_one_runtime() {
    for runtime in ["host_build_graph", "aicpu_build_graph"] {
        let parts = ["'moe_layer'", runtime, "--runtime tensormap_and_ringbuffer"];
        refused(&["run", "moe_layer", "--runtime", runtime], 2, &parts);
    }
    let sequential = ["run", "newton_solve", "--build-mode=0"];
    refused(&sequential, 2, &["'newton_solve'", "--build-mode 1"]);
}

#[test]
fn input_that_has_no_result_is_named() {
    let files = Files::new();
    files.put("a", &[2, 2], &[1.0, 2.0, 2.0, 1.0_f32]);
    let definite = ["run", "cholesky", "--input", &files.option("a")];
    refused(&definite, 2, &["'a' is not positive definite", "the pivot of row 1"]);
    files.put("a", &[1, 2, 2], &[1.0, 2.0, 2.0, 4.0_f32]);
    let singular = ["run", "newton_solve", "--param=limit=20", "--input", &files.option("a")];
    refused(&singular, 3, &["BUILD_FAILED", "newton_solve: a system is not solved", "'limit'"]);
}

#[test]
fn every_runtime_gives_the_same_numbers() {
    let files = Files::new();
    for case in examples::all().filter(|case| case.example().program() == Program::Graph) {
        let Some(output) = case.example().outputs().first() else { continue };
        let target = case.small("run");
        let values = case.runtimes().map(|runtime| {
            let to = files.option(output.name);
            let given = ["--runtime", runtime, "--param=seed=7", "--output", &to];
            pto(&[&borrowed(&target)[..], &given].concat(), 0);
            files.bytes(output.name)
        });
        let values: Vec<_> = values.collect();
        assert!(values.iter().all(|bytes| *bytes == values[0]), "{}", case.name());
    }
}

#[test]
fn the_summary_says_what_happened() {
    let answer = pto(&["run", "vector_example"], 0);
    for text in ["128 (0 AIC, 128 AIV)", "makespan", "tasks/s", "utilisation", "PASS", "a2a3sim"] {
        assert!(answer.stdout.contains(text), "no {text:?} in\n{}", answer.stdout);
    }
    assert!(answer.stdout.lines().all(|line| line == line.trim_end() && line.len() <= 100));
    let answer = pto(&["run", "vector_example", "--rounds", "5"], 0);
    assert!(answer.stdout.contains("median of 5 rounds"), "{}", answer.stdout);
}

#[test]
fn forty_two_everywhere() {
    let files = Files::new();
    pto(&["run", "vector_example", "--output", &files.option("f")], 0);
    let (shape, values) = files.get("f");
    assert_eq!(shape, [128, 128]);
    assert!(values.iter().all(|value| *value == 42.0));
}

#[test]
fn json_has_the_same_facts() {
    let value = json(&["run", "matmul", "--param=m=100", "--rounds=3"], 0);
    // 2 strips of 8 tiles of 8 products, and a sum for each strip.
    assert_eq!(value["median"]["kernels"], 130);
    assert_eq!(value["median"]["aic"]["parts"], 128);
    // Eight products of a tile are a chain, which its sum waits for.
    assert_eq!(value["median"]["tasks"], 18);
    assert_eq!(value["median"]["edges"], 16);
    assert_eq!(value["rounds"].as_array().unwrap().len(), 3);
    assert_eq!(value["params"]["m"], 100);
    assert_eq!((&value["check"]["passed"], &value["exit_code"]), (&true.into(), &0.into()));
    assert!(value["check"]["largest_error"].as_f64() < value["check"]["tolerance"].as_f64());
    let spread = ["min", "median", "max"].map(|name| value["makespan_ns"][name].as_u64().unwrap());
    assert!(spread.is_sorted() && spread[0] > 0);
}

#[test]
fn a_wrong_result_is_exit_code_1() {
    // The square of 1e30 is no f32, but it is an f64: the reference has it, the kernels do not.
    let files = Files::new();
    files.put("a", &[2, 2], &[0.0, 0.0, 1e30, 0.0_f32]);
    let args = ["run", "vector_example", "--input", &files.option("a")];
    let answer = pto(&args, 1);
    let found = "FAIL, 1 of 4 values wrong";
    assert!(answer.stdout.contains(found), "{}", answer.stdout);
    assert!(answer.stdout.contains("f[1, 0] is inf"), "{}", answer.stdout);
    let value = json(&args, 1);
    assert_eq!((&value["check"]["wrong"], &value["exit_code"]), (&1.into(), &1.into()));
}

/// One cluster has room for one scheduler, so that the usual four instances are too many.
#[test]
fn a_small_device_gets_as_few_instances_as_it_can_use() {
    for (runtime, instances) in [("host_build_graph", 1), ("aicpu_build_graph", 2)] {
        let runtime = format!("--runtime={runtime}");
        let value = json(&["run", "matmul", "--aic=1", "--aiv=1", &runtime], 0);
        assert_eq!(value["device"]["aicpu"], instances, "{runtime}");
    }
}

#[test]
fn a_fault_is_exit_code_3_and_tells_its_name_and_remedy() {
    let few = ["run", "matmul", "--aicpu=16", "--aic=1", "--aiv=2"];
    refused(&few, 3, &["SCHEDULE_NO_CORES", "Use fewer AICPU instances"]);
    let value = json(&few, 3);
    assert_eq!(value["exit_code"], 3);
    assert!(value["error"].as_str().unwrap().contains("SCHEDULE_NO_CORES"));
    assert_eq!(value["fault"]["name"], "SCHEDULE_NO_CORES");
    assert_eq!(value["fault"]["code"], 0x0004_0001);
}

#[test]
fn a_failure_before_the_run_is_json_too() {
    let value = json(&["run", "nothing"], 2);
    assert!(value["error"].as_str().unwrap().contains("no example 'nothing'"));
    let value = json(&["run", "matmul", "--rounds=0"], 2);
    assert_eq!((&value["exit_code"], &value["fault"]), (&2.into(), &Value::Null));
    assert!(value["error"].as_str().unwrap().contains("--rounds"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for args in [&["run", "vector_example"][..], &["info"], &["info", "layouts"]] {
        let mut child =
            command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}: {stderr}");
        assert_eq!(stderr, "", "{args:?}");
    }
}

/// A NaN is counted, wherever it comes from; it neither passes nor fails without a message.
#[test]
fn values_that_are_no_numbers_are_told() {
    let files = Files::new();
    let run = ["run", "matmul", "--param=m=4", "--param=n=4", "--param=k=4", "--input"];
    let small = ["--param=tile_m=2", "--param=tile_n=2", "--param=tile_k=2"];
    let input = files.option("a");
    let with = |values: &[f32; 16]| {
        files.put("a", &[4, 4], values);
        pto(&[&run[..], &[&input], &small].concat(), 0).stdout
    };
    let all = with(&[f32::NAN; 16]);
    for words in ["a: 16 NaN, of 16 values", "none of 16 values is a number", "PASS"] {
        assert!(all.contains(words), "no {words:?} in\n{all}");
    }
    let mut values = [1.0_f32; 16];
    values[5] = f32::NAN;
    let one = with(&values);
    for words in
        ["a: 1 NaN, of 16", "NaN: 4 values of the result, 4 of the reference", "tolerance "]
    {
        assert!(one.contains(words), "no {words:?} in\n{one}");
    }
    assert!(!one.contains("tolerance NaN") && !with(&[1.0; 16]).contains("NaN"), "{one}");
    values[5] = f32::INFINITY;
    assert!(with(&values).contains("a: 1 infinite, of 16"));

    files.put("x", &[64, 64], &[f32::NAN; 64 * 64]);
    let experts = ["run", "moe_layer", "--param=tokens=64", "--param=hidden=64", "--input"];
    let printed = pto(&[&experts[..], &[&files.option("x")]].concat(), 0).stdout;
    assert!(
        printed.contains("NaN: 4,096 values of the result, 4,096 of the reference"),
        "{printed}"
    );
}

#[test]
fn a_benchmark_says_that_its_build_is_not_the_measured_one() {
    let args = ["bench", "--tasks=100", "--rounds=1", "--graph=chain", "--threads=1"];
    let printed = pto(&args, 0).stderr;
    assert!(printed.contains("--profile dist -- bench"), "{printed}");
    let virtual_time = pto(&["bench", "--device-metg=matmul"], 0).stderr;
    assert!(!virtual_time.contains("profile"), "{virtual_time}");
}

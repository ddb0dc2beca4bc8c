//! `--hosting virtual` on the command line: a seed is a run, a failure is a command that fails the same way, bad
//! requests are answered.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::pto::{Answer, answer, command, pto, refused};

/// Runs whose traces are the same on every machine, in this order.
const GOLDEN: &[&[&str]] = &[
    &["random_dag", "--param=tasks=400"],
    &["random_dag", "--param=tasks=400", "--seed=7"],
    &["random_dag", "--param=tasks=400", "--profile=ideal", "--fanout=locked"],
    &["random_dag", "--param=tasks=400", "--profile=a5", "--runtime=host_build_graph"],
    &["paged_attention", "--param=batch=4", "--build-mode=0"],
    &[
        "paged_attention",
        "--param=batch=5",
        "--param=seed=3",
        "--kernel-cost=5us..20us",
        "--no-compute",
    ],
    &["matmul", "--param=m=64", "--param=n=64", "--kernel-cost=3us", "--aicpu=2"],
];

/// So few that each of them gets tasks, whatever the scheduler prefers.
const FEW_CORES: &[&str] = &["--aicpu=2", "--aic=2", "--aiv=4", "--param=tasks=300"];

fn json(args: &[&str], code: i32) -> Value {
    let answer = pto(&[&["run"], args, &["--hosting=virtual", "--json"]].concat(), code);
    serde_json::from_str(&answer.stdout).expect("one JSON value and nothing else")
}

fn hash(args: &[&str]) -> String {
    json(args, 0)["virtual"]["trace_hash"].as_str().expect("a hash").to_owned()
}

/// After a change of firmware or machine: `PTO_BLESS=1 cargo test -p pto-cli --test command golden`.
#[test]
fn traces_are_the_golden_ones() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/trace_hashes.txt");
    let lines = GOLDEN.iter().map(|args| format!("{}  {}\n", hash(args), args.join(" ")));
    let found: String = lines.collect();
    if std::env::var_os("PTO_BLESS").is_some() {
        fs::write(&path, &found).expect("the sources can be written");
    }
    let golden = fs::read_to_string(&path).expect("the file is among the sources");
    assert_eq!(found, golden, "if that is meant, bless it: PTO_BLESS=1");
}

/// A time of a profile is at most 10 ms, and one of an option at most an hour, so that no sum of them overflows; a run with the longest ones ends.
#[test]
fn times_without_end_are_refused_and_the_longest_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("slow.toml");
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim-shim/profiles/ideal.toml");
    let ideal = fs::read_to_string(profile).expect("a profile");
    let run = |args: &[&str]| {
        let file = format!("--profile={}", path.display());
        let words = [&["run", "vector_example", "--hosting=virtual", &file], args].concat();
        answer(&mut command(&words))
    };
    fs::write(&path, ideal.replace("dispatch_ns = 0", "dispatch_ns = 9223372036854775807"))
        .expect("a file");
    let output = run(&[]);
    let words = "'aicpu.dispatch_ns' is 9223372036854775807 ns; a time is at most 10000000 ns";
    assert!(output.code == Some(2) && output.stderr.contains(words), "{}", output.stderr);
    fs::write(&path, ideal.replace("dispatch_ns = 0", "dispatch_ns = 10000000")).expect("a file");
    for args in
        [&[][..], &["--kernel-cost=3600s"], &["--kernel-cost=3600s", "--fault=slow=4294967295"]]
    {
        let output = run(args);
        assert!(output.code.is_some_and(|code| code <= 3), "{args:?}: {}", output.stderr);
    }
    let output = run(&["--kernel-cost=3601s"]);
    assert!(
        output.code == Some(2) && output.stderr.contains("a time is at most 3600s"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_same_seed_and_options_are_the_same_run_traced_or_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = format!("--trace={}", folder.path().join("t.json").display());
    let args = ["random_dag", "--param=tasks=700", "--seed=5"];
    let first = json(&args, 0);
    let again = json(&[&args[..], &[&trace]].concat(), 0);
    for part in ["trace_hash", "makespan_ns", "choices", "waits_ns"] {
        assert_eq!(first["virtual"][part], again["virtual"][part], "{part}");
    }
    assert_ne!(
        hash(&["random_dag", "--param=tasks=700", "--seed=6"]),
        first["virtual"]["trace_hash"]
    );
}

/// What follows `begin` on the line that begins with it.
pub(crate) fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.trim_start().strip_prefix(begin));
    found.unwrap_or_else(|| panic!("no line begins with {begin:?} in\n{text}")).trim()
}

/// Pastes a command into a shell.
pub(crate) fn paste(text: &str, code: i32) -> Answer {
    let mut shell = command(&[]);
    let program = shell.get_program().to_owned();
    assert!(text.contains(program.to_str().expect("a plain path")), "{text}");
    shell = std::process::Command::new("sh");
    let again = answer(shell.args(["-c", text]));
    assert_eq!(again.code, Some(code), "{text}\n{}{}", again.stdout, again.stderr);
    again
}

#[test]
fn a_run_that_faults_prints_a_command_that_faults_the_same_way() {
    let faults =
        ["hang:core=1,task=1", "no-answer:core=2", "corrupt-line:task=40", "builder-fails:task=40"];
    for fault in faults {
        let run = ["run", "random_dag", "--hosting=virtual", "--seed=3", "--fault", fault];
        let args = [&run[..], FEW_CORES].concat();
        let failed = pto(&args, 3);
        assert!(failed.stderr.contains(&format!("Injected: {}", &fault[..4])), "{}", failed.stderr);
        let again = paste(line(&failed.stderr, "To replay it:"), 3);
        // Kernels and arenas stand elsewhere in each process; everything else is the same.
        let plain = |text: &str| -> Vec<String> {
            let lines = text.lines().map(|line| line.split(" at 0x").next().unwrap_or_default());
            lines.map(str::to_owned).collect()
        };
        assert_eq!(plain(&again.stderr), plain(&failed.stderr));
        assert!(!line(&failed.stderr, "Trace hash").is_empty());
    }
}

#[test]
fn a_run_that_violates_prints_a_command_that_violates_the_same_way() {
    let run = ["run", "random_dag", "--hosting=virtual", "--stale-lines"];
    let args = [&run[..], FEW_CORES].concat();
    let failed = pto(&[&args[..], &["--fault=no-flush:core=3,task=3"]].concat(), 1);
    assert!(
        failed.stdout.contains("VIOLATION") && failed.stdout.contains("PASS"),
        "{}",
        failed.stdout
    );
    let again = paste(line(&failed.stdout, "replay"), 1);
    assert_eq!(line(&again.stdout, "VIOLATION"), line(&failed.stdout, "VIOLATION"));
    pto(&args, 0);
}

#[test]
fn random_dag_keeps_its_lines_apart_and_only_with_its_stride() {
    let run = ["run", "random_dag", "--hosting=virtual", "--stale-lines", "--param=tasks=2000"];
    pto(&run, 0);
    let dense = pto(&[&run[..], &["--param=stride=1"]].concat(), 1).stdout;
    assert!(dense.contains("writes a line that another core is writing"), "{dense}");
}

/// A core that hangs is waited for in virtual time: 10 s of it, with a task budget of 1 ms, are soon over.
#[test]
fn budgets_of_different_size_take_no_time() {
    let run = ["run", "random_dag", "--hosting=virtual"];
    let hang = ["--task-budget-ms=1", "--fault=hang:core=1,task=1"];
    let args = [&run[..], &hang, FEW_CORES].concat();
    let failed = pto(&args, 3).stderr;
    assert!(failed.contains("STALL_CORE") && failed.contains("10.0 s of virtual time"), "{failed}");
}

#[test]
fn a_fault_that_does_not_happen_is_said() {
    let run = ["run", "vector_example", "--hosting=virtual", "--fault=hang:task=999"];
    let late = pto(&run, 1).stdout;
    assert!(late.contains("hang:core=0,task=999 did NOT happen"), "{late}");
    assert!(late.contains("PASS") && late.contains("FAIL, the fault did not happen"), "{late}");
    let allowed = pto(&[&run[..], &["--allow-missed-fault"]].concat(), 0).stdout;
    assert!(allowed.contains("did NOT happen") && !allowed.contains("FAIL"), "{allowed}");
    let slow = ["random_dag", "--fault=slow=2:core=1", "--rounds=3"];
    assert_eq!(
        json(&[&slow[..], FEW_CORES].concat(), 0)["virtual"]["fault_missed"],
        false,
        "it happens in the first round"
    );
    let builder = ["vector_example", "--fault=builder-stops:task=999"];
    assert_eq!(json(&builder, 1)["virtual"]["fault_missed"], true);
    refused(&["run", "vector_example", "--allow-missed-fault"], 2, &["--fault"]);
}

/// A model in ONNX with a node `gate`, an operator Relu on four floats.
const RELU: &[u8] = b"\x08\x08\x3a\x2d\x0a\x12\x0a\x01x\x12\x01y\x1a\x04gate\x22\x04Relu\x12\x01m\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04\x62\x03\x0a\x01y\x42\x02\x10\x0d";

#[test]
fn a_fault_of_a_model_names_operator_and_node_and_is_missed_aloud() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("gate.onnx");
    fs::write(&file, RELU).expect("the model");
    let file = file.to_str().expect("a path in UTF-8");
    let run = ["run", file, "--hosting=virtual", "--aicpu=1", "--aic=1", "--aiv=1"];
    let hang = ["--task-budget-ms=1", "--fault=hang:core=1,task=0"];
    let failed = answer(&mut command(&[&run[..], &hang].concat()));
    assert!(failed.stderr.contains("task 0, kernel Relu/gate"), "{}", failed.stderr);
    let late = [&run[..], &["--fault=hang:core=1,task=999"]].concat();
    let missed = pto(&late, 1).stdout;
    assert!(missed.contains("hang:core=1,task=999 did NOT happen; FAIL"), "{missed}");
    let allowed = pto(&[&late[..], &["--allow-missed-fault"]].concat(), 0).stdout;
    assert!(allowed.contains("did NOT happen") && !allowed.contains("FAIL"), "{allowed}");
}

#[test]
fn a_fault_of_a_core_that_does_not_exist_is_refused() {
    let run = ["run", "vector_example", "--hosting=virtual", "--aic=2", "--aiv=3"];
    let beyond = [&run[..], &["--fault=hang:core=5,task=0"]].concat();
    refused(&beyond, 2, &["hang:core=5,task=0", "5 cores", "0 to 4"]);
}

#[test]
fn a_profile_is_a_name_or_a_file() {
    assert_eq!(json(&["vector_example", "--profile=a5"], 0)["device"]["aiv"], 72);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain name").to_owned();
    let a2a3 = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../sim-shim/profiles/a2a3.toml"
    ));
    let a2a3 = a2a3.expect("the profile is among the sources");
    let slower = a2a3
        .replace("cond_load_ns = [95, 105]", "cond_load_ns = 900")
        .replace("aiv = 48", "aiv = 7");
    fs::write(path("slow.toml"), slower).expect("the folder takes it");
    let slow = json(&["vector_example", "--profile", &path("slow.toml")], 0);
    let fast = json(&["vector_example", "--aiv=7"], 0);
    assert_eq!(slow["device"]["aiv"], 7);
    assert!(slow["virtual"]["makespan_ns"].as_u64() > fast["virtual"]["makespan_ns"].as_u64());
    fs::write(path("bad.toml"), "name = \"x\"\n[aicpu]\nstep_nss = 3\n")
        .expect("the folder takes it");
    let run = ["run", "vector_example", "--hosting=virtual", "--profile"];
    refused(&[&run[..], &[&path("bad.toml")]].concat(), 2, &["bad.toml'", "line 3", "step_nss"]);
    refused(
        &[&run[..], &["a2a4"]].concat(),
        2,
        &["no profile and no file 'a2a4'", "a2a3, a5, ideal"],
    );
}

#[test]
fn kernels_cost_what_one_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = folder.path().join("costs.txt");
    fs::write(&table, "add = 40us\ndefault = 1us\n").expect("the folder takes it");
    let table = format!("--kernel-cost=table:{}", table.display());
    let path = |cost: &str| {
        let run = json(&["vector_example", cost], 0);
        run["virtual"]["critical_path_ns"].as_u64().expect("a number")
    };
    assert_eq!(path("--kernel-cost=2us") % 2_000, 0);
    assert!(path(&table) > 40_000 && path("--kernel-cost=model") < 10_000);
    let nothing = json(&["vector_example", "--kernel-cost=2us", "--no-compute"], 0);
    assert!(nothing["check"].is_null());
    fs::write(folder.path().join("costs.txt"), "adds = 40us\n").expect("the folder takes it");
    let run = ["run", "vector_example", "--hosting=virtual"];
    refused(
        &[&run[..], &[&table]].concat(),
        2,
        &["costs.txt", "line 1", "'adds'", "pto info kernels"],
    );
    refused(
        &[&run[..], &["--kernel-cost=quick"]].concat(),
        2,
        &["'quick' is not a cost", "table:FILE"],
    );
    for bare in ["--kernel-cost=5", "--kernel-cost=5us..20", "--kernel-cost=model:5"] {
        refused(&[&run[..], &[bare]].concat(), 2, &["--kernel-cost", "has no unit", "us"]);
    }
    refused(&[&run[..], &["--kernel-cost=table:none"]].concat(), 4, &["cannot read 'none'"]);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let run = ["run", "vector_example"];
    let seed = [&run[..], &["--seed=3"]].concat();
    refused(&seed, 2, &["--seed belongs to --hosting virtual"]);
    refused(
        &[&seed[..], &["--device=qemu"]].concat(),
        2,
        &["--seed belongs to --hosting virtual of the simulator"],
    );
    let threads = [&run[..], &["--hosting=virtual", "--pool-threads=2"]].concat();
    refused(&threads, 2, &["--pool-threads belongs to --hosting pool"]);
    let fault = [&run[..], &["--hosting=virtual", "--fault=hung"]].concat();
    refused(&fault, 2, &["--fault hung: there is no fault 'hung'", "doorbell-lost"]);
}

/// What ended a run is in fields, for programs that read the answer, and in the timeline.
#[test]
fn a_fault_is_told_in_fields_and_marked_in_the_timeline() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain name").to_owned();
    let trace = path("t.json");
    let run = ["random_dag", "--seed=3", "--fault=hang:core=1,task=1", "--trace", &trace];
    let output = json(&[&run[..], FEW_CORES].concat(), 3);
    let fault = &output["fault"];
    assert_eq!((&fault["name"], &fault["code"]), (&"STALL_CORE".into(), &stall_core().into()));
    assert_eq!((&fault["core"], &fault["core_kind"]), (&1.into(), &"aic".into()));
    let task = fault["task"].as_u64().expect("a task");
    assert_eq!(output["trace_hash"].as_str().map(str::len), Some(16));
    assert_eq!(output["trace"]["file"].as_str(), Some(&*trace));
    let again = paste(output["replay"].as_str().expect("a command"), 3);
    let again: Value = serde_json::from_str(&again.stdout).expect("one JSON value");
    assert_eq!(again["trace_hash"], output["trace_hash"]);

    let analysis = pto(&["analyze", &trace], 0).stdout;
    let marked = format!("STALL_CORE on aic 1, task {task} (dag_node");
    assert!(line(&analysis, "FAULT").starts_with(&marked), "{analysis}");
    let value: Value =
        serde_json::from_str(&pto(&["analyze", &trace, "--json"], 0).stdout).expect("JSON");
    assert_eq!(
        (&value["fault"]["name"], &value["fault"]["task"]),
        (&fault["name"], &fault["task"])
    );
    assert!(pto(&["view", &trace, "--text"], 0).stdout.contains(&marked));
    pto(&["view", &trace, "-o", &path("t.svg")], 0);
    let picture = fs::read_to_string(path("t.svg")).expect("it was written");
    assert_eq!(picture.matches("class=\"fault\"").count(), 2, "the core, and the task");
    assert!(picture.contains(&marked));
    pto(&["view", &trace, "-o", &path("t.html")], 0);
    assert!(fs::read_to_string(path("t.html")).expect("it was written").contains(&marked));
}

/// The code that `pto info faults` lists.
fn stall_core() -> u64 {
    let faults = pto(&["info", "faults", "--json"], 0).stdout;
    let faults: Value = serde_json::from_str(&faults).expect("one JSON value");
    let all = faults["faults"].as_array().expect("a list");
    let known = all.iter().find(|fault| fault["name"] == "STALL_CORE").expect("it is there");
    known["code"].as_u64().expect("a number")
}

//! `pto soak`: campaigns pass, do not depend on threads, and a failure is a small graph and a command.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::pto::{command, pto, refused};
use crate::virtual_time::{line, paste};

fn json(args: &[&str], code: i32) -> Value {
    let answer = pto(&[&["soak"], args, &["--json"]].concat(), code);
    serde_json::from_str(&answer.stdout).expect("one JSON value and nothing else")
}

#[test]
fn a_campaign_passes_with_faults_and_without() {
    let one = json(&["--seeds=300", "--seed=1000", "--threads=1"], 0);
    let [with, without] = [0, 1].map(|phase| one["phases"][phase].clone());
    assert_eq!(
        (&with["phase"], &without["phase"]),
        (&"with faults".into(), &"without faults".into())
    );
    assert_eq!((&with["seeds"], &without["runs"]), (&300.into(), &300.into()));
    assert!(with["runs_that_faulted"].as_u64() > Some(30), "{with:#}");
    assert_eq!(without["faults_injected"], 0);
    let three = json(&["--seeds=300", "--seed=1000", "--threads=3"], 0);
    for (phase, hash) in [with, without].iter().map(|phase| &phase["hash"]).enumerate() {
        assert_eq!(&three["phases"][phase]["hash"], hash, "threads do not matter");
    }
    let only = json(&["--seeds=64", "--no-faults", "--tasks=7"], 0);
    assert_eq!(only["phases"].as_array().map(Vec::len), Some(1));
    assert_eq!(only["phases"][0]["tasks"], 64 * 7);
    let text = pto(&["soak", "--seeds=64", "--faults"], 0).stdout;
    assert!(text.contains("with faults") && !text.contains("without faults"), "{text}");
}

#[test]
fn a_seed_is_run_again() {
    let text = pto(&["soak", "--replay=7"], 0).stdout;
    assert!(text.contains("seed 7 with faults: passed") && text.contains("trace hash"), "{text}");
    assert_eq!(text, pto(&["soak", "--replay=7"], 0).stdout);
    assert_eq!(json(&["--replay=7", "--faults"], 0)["scenarios"][0]["passed"], true);
}

/// On a machine whose doorbells take longer than the budget of a task, runs fail without an injected fault.
#[test]
fn a_failure_is_a_small_graph_and_a_command_that_fails_the_same_way() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("late bell.toml");
    let a2a3 = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim-shim/profiles/a2a3.toml");
    let a2a3 = fs::read_to_string(a2a3).expect("the profile is among the sources");
    let late = a2a3.replace("doorbell_ns = 140", "doorbell_ns = [140, 105000]");
    fs::write(&path, late).expect("the folder takes it");
    let profile = format!("--profile={}", path.display());
    let args = ["soak", "--seeds=100", "--no-faults", &profile];
    let failed = pto(&args, 1).stdout;
    // A core that hears too late is missed while the run begins, or when it has work.
    let faults = ["STALL_CORE", "CORE_NO_ANSWER"];
    let fault = faults.into_iter().find(|fault| failed.contains(fault));
    let fault = fault.unwrap_or_else(|| panic!("{failed}"));
    let small: usize =
        line(&failed, "shrunk to").split(' ').next().unwrap_or_default().parse().unwrap();
    assert!(small <= 5, "{failed}");
    let (files, replay) = (folder.path().join("case"), line(&failed, "to replay it:"));
    let again = paste(&format!("{replay} --save '{}'", files.display()), 1).stdout;
    let output = failed.split_once("\nseed ").expect("it names the seed").1;
    let output = output.split("\n  to replay").next().expect("a command");
    assert!(again.contains(output), "{again}\nis not\n{output}");
    let answer = json(&args[1..], 1);
    assert_eq!(answer["phases"][0]["failures"][0]["shrunk_tasks"], small);
    for name in ["whole", "small"] {
        let file = |ending| {
            let path = files.join(format!("no-faults-{name}.{ending}"));
            assert!(again.contains(&format!("written: {}", path.display())), "{again}");
            path.display().to_string()
        };
        let (timeline, graph) = (file("json"), file("jsonl"));
        let traced = fs::read_to_string(&timeline).expect("it was written");
        assert!(traced.contains(fault), "{fault} is not in {timeline}");
        pto(&["run", &graph, "--hosting=virtual", "--aic=5", "--aiv=10"], 0);
        pto(&["graph", &graph, "--json"], 0);
    }
}

#[test]
fn sessions_have_campaigns_of_their_own() {
    let of = |threads| json(&["--sessions", "--seeds=60", "--seed=7", threads], 0);
    let (one, two) = (of("--threads=1"), of("--threads=2"));
    assert_eq!((&one["seeds"], &one["hash"]), (&60.into(), &two["hash"]), "{one:#}");
    assert!(one["streams_told"].as_u64() > Some(10), "{one:#}");
    let (again, text) = (json(&["--sessions", "--replay=7"], 0), || {
        pto(&["soak", "--sessions", "--replay=7"], 0).stdout
    });
    assert!(text().contains(again["hash"].as_str().unwrap()) && text().contains("virtual time"));
}

#[test]
fn bad_requests_are_answered() {
    refused(&["soak", "--sessions", "--faults"], 2, &["cannot be used with"]);
    refused(&["soak", "--seeds=0"], 2, &["--seeds"]);
    refused(&["soak", "--faults", "--no-faults"], 2, &["cannot be used with"]);
    refused(&["soak", "--replay=1", "--seeds=4"], 2, &["cannot be used with"]);
    refused(&["soak", "--seed=18446744073709551615"], 2, &["beyond the last seed"]);
    refused(&["soak", "--save=case"], 2, &["--replay"]);
    refused(&["soak", "--replay=1", "--save=-"], 2, &["name a folder"]);
    refused(&["soak", "--profile=a2a4"], 2, &["no profile and no file 'a2a4'"]);
}

/// What a campaign answers that gets Ctrl-C in its first phase.
fn interrupted(args: &[&str]) -> Value {
    let common = ["soak", "--seeds=100000000", "--tasks=10", "--threads=1", "--json"];
    interrupted_command(&[&common, args].concat())
}

/// What a command answers that gets Ctrl-C.
fn interrupted_command(args: &[&str]) -> Value {
    let mut child = command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    std::thread::sleep(Duration::from_millis(1500));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let status = child.wait().expect("it ends");
    let mut output = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut output).expect("UTF-8");
    assert_eq!(status.code(), Some(130), "{output}");
    serde_json::from_str(&output).expect("one JSON value")
}

/// Every command says that it was interrupted, in the form that was asked for.
#[test]
fn an_interrupted_command_says_so() {
    for args in [
        &["run", "random_dag", "--rounds=100000", "--json"][..],
        &["check", "random_dag", "--param=tasks=5000000", "--json"],
    ] {
        let value = interrupted_command(args);
        assert_eq!(
            (&value["exit_code"], &value["error"]),
            (&130.into(), &"interrupted by Ctrl-C".into())
        );
    }
}

/// Ctrl-C is answered with what has passed, and with the commands that go on after it: those of phases that were not begun, too.
#[test]
fn an_interrupted_campaign_says_what_passed_and_how_to_go_on() {
    for (args, phase, suffix) in [
        (&["--no-faults"][..], "--no-faults", ""),
        (&["--faults"], "--faults", ""),
        (&[], "--faults", " --seed 0 --seeds 100000000 --no-faults --tasks 10"),
    ] {
        let value = interrupted(args);
        let seeds = value["phases"][0]["seeds"].as_u64().expect("a number");
        assert!(seeds > 0, "{value:#}");
        let go_on = value["go_on"].as_str().expect("a command");
        let words = format!("--seed {seeds} --seeds {} {phase} --tasks 10", 100_000_000 - seeds);
        assert!(go_on.contains(&words) && go_on.ends_with(suffix), "{args:?}: {go_on}");
        assert_eq!(go_on.matches(" && ").count(), usize::from(!suffix.is_empty()), "{go_on}");
    }
}

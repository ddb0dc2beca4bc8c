//! `pto list`, `pto info` and `--help`.

use serde_json::Value;

use crate::examples;
use crate::pto::pto;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&pto(&[args, &["--json"]].concat(), 0).stdout).expect("one JSON value")
}

#[test]
fn list_names_everything_that_can_be_run() {
    let all = pto(&["list"], 0).stdout;
    for name in ["paged_attention", "host_build_graph", "a2a3sim", "attention_qk"] {
        assert!(all.contains(name), "no {name} in\n{all}");
    }
    let examples = pto(&["list", "examples"], 0).stdout;
    assert!(examples.contains("context_lens") && examples.contains("tile_k"), "{examples}");
    assert!(all.contains("training_loop") && examples.contains("\ntraining_loop\n"), "{examples}");
    let kernels = pto(&["list", "kernels"], 0).stdout;
    assert_eq!(kernels.lines().count(), pto_aicore_kernels::LIBRARY.len());
    assert!(pto(&["list", "runtimes"], 0).stdout.contains("aicpu_build_graph"));
    assert!(pto(&["list", "devices"], 0).stdout.contains("a2a3sim"));
}

#[test]
fn every_example_that_is_listed_is_found() {
    let answer = json(&["list", "examples"]);
    let listed = answer["examples"].as_array().unwrap().iter();
    let listed: Vec<_> = listed.map(|example| example["name"].as_str().unwrap()).collect();
    let table: Vec<_> = examples::all().map(|case| case.name()).collect();
    assert_eq!(listed, table);
    let params = answer["loops"][0]["params"].as_array().expect("a list").iter();
    let params: Vec<_> = params.map(|param| param["name"].as_str().unwrap()).collect();
    assert_eq!(answer["loops"][0]["name"], "training_loop");
    let unknown = pto(&["run", "training_loop", "--param", "no_such_parameter=1"], 2).stderr;
    assert!(unknown.contains(&params.join(", ")), "{unknown}");
    for name in listed {
        let unknown = pto(&["run", name, "--param", "no_such_parameter=1"], 2);
        assert!(unknown.stderr.contains("no parameter"), "{name}");
    }
}

#[test]
fn info_shows_the_tables_of_the_interface() {
    assert!(pto(&["info"], 0).stdout.contains("layout hash"));
    assert!(pto(&["info", "limits"], 0).stdout.contains("MAX_WORKERS"));
    assert!(pto(&["info", "faults"], 0).stdout.contains("What to do: "));
    assert!(pto(&["info", "layouts"], 0).stdout.contains("RunConfig: 64 bytes, aligned to 8"));
    let info = json(&["info"]);
    for table in ["layouts", "limits", "faults"] {
        assert!(!info[table].as_array().unwrap().is_empty(), "{table}");
    }
}

#[test]
fn help_documents_options_and_exit_codes() {
    let help = pto(&["run", "--help"], 0).stdout;
    for text in [
        "--fanout",
        "--build-mode",
        "PTO_AICPU_BUILD_GRAPH_BUILD_MODE",
        "--gm-bytes",
        "Exit codes:",
    ] {
        assert!(help.contains(text), "no {text} in\n{help}");
    }
    assert!(pto(&["--help"], 0).stdout.contains("Exit codes:"));
    assert!(pto(&["--version"], 0).stdout.starts_with("pto "));
}

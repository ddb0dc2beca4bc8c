//! `pto info` and `--help`.

use serde_json::Value;

use crate::examples;
use crate::pto::pto;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&pto(&[args, &["--json"]].concat(), 0).stdout).expect("one JSON value")
}

#[test]
fn list_names_everything_that_can_be_run() {
    let all = pto(&["info"], 0).stdout;
    for name in ["paged_attention", "host_build_graph", "a2a3sim", "attention_qk"] {
        assert!(all.contains(name), "no {name} in\n{all}");
    }
    let examples = pto(&["info", "examples"], 0).stdout;
    assert!(examples.contains("context_lens") && examples.contains("tile_k"), "{examples}");
    assert!(all.contains("training_loop") && examples.contains("\ntraining_loop\n"), "{examples}");
    let kernels = pto(&["info", "kernels"], 0).stdout;
    assert_eq!(kernels.lines().count(), pto_aicore_kernels::LIBRARY.len());
    assert!(pto(&["info", "runtimes"], 0).stdout.contains("aicpu_build_graph"));
    assert!(pto(&["info", "devices"], 0).stdout.contains("a2a3sim"));
}

#[test]
fn every_example_that_is_listed_is_found() {
    let answer = json(&["info", "examples"]);
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
    for table in ["layouts", "limits", "faults", "examples", "kernels", "exit_codes"] {
        assert!(!info[table].as_array().unwrap().is_empty(), "{table}");
    }
}

/// `--help` leaves out what few need; `pto help COMMAND` has every option, and says more of each.
#[test]
fn the_long_help_has_every_option() {
    let [short, long] = [&["run", "--help"], &["help", "run"]].map(|args| pto(args, 0).stdout);
    for rare in ["--trace-keep", "docs/reference/injected-faults.md"] {
        assert!(long.contains(rare) && !short.contains(rare), "{rare} in\n{short}\n{long}");
    }
}

#[test]
fn an_earlier_name_of_a_command_works_and_says_so() {
    let listed = pto(&["list", "kernels"], 0);
    assert_eq!(listed.stdout, pto(&["info", "kernels"], 0).stdout);
    assert_eq!(listed.stderr, "note: `pto list` is called `pto info` now\n");
}

/// A remedy that names an option names one of the commands that tell it.
#[test]
fn remedies_name_options_that_there_are() {
    let help = ["run", "check"].map(|command| pto(&[command, "--help"], 0).stdout);
    let faults = json(&["info", "faults"])["faults"].take();
    let mut options = 0;
    for fault in faults.as_array().expect("a list") {
        let remedy = fault["remedy"].as_str().expect("a text");
        let words = remedy.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
        for option in words.filter(|word| word.starts_with("--")) {
            options += 1;
            let is_there = |help: &String| help.contains(&format!(" {option} "));
            assert!(help.iter().all(is_there), "{}: {remedy}", fault["name"]);
        }
    }
    assert!(options >= 6, "{options} options are named");
}

/// What a report says of a ring that is too small is what makes the run succeed.
#[test]
fn the_rings_of_a_run_have_the_sizes_that_a_report_asks_for() {
    let small = ["run", "decoder_layer", "--hosting=virtual", "--window=2"];
    let refused = pto(&small, 3).stderr;
    assert!(refused.contains("Raise arg_words (--arg-words)"), "{refused}");
    let needed = refused.split(" suffice").next().and_then(|text| text.split(' ').next_back());
    let words = format!("--arg-words={}", needed.expect("a number"));
    let more = [&small[..], &[&words, "--edge-chunks=16", "--map-entries=16384", "--heap-rings=4"]];
    let report = pto(&more.concat(), 0).stdout;
    assert!(report.contains(&format!("of {} words", needed.expect("a number"))), "{report}");
}

#[test]
fn help_documents_options_and_exit_codes() {
    let help = pto(&["help", "run"], 0).stdout;
    for text in ["--fanout", "--build-mode", "PTO_AICPU_BUILD_GRAPH_BUILD_MODE", "--memory"] {
        assert!(help.contains(text), "no {text} in\n{help}");
    }
    assert!(pto(&["--help"], 0).stdout.contains("pto info exit-codes"));
    assert!(pto(&["info", "exit-codes"], 0).stdout.contains("\n130  Ctrl-C"));
    assert!(pto(&["--version"], 0).stdout.starts_with("pto "));
}

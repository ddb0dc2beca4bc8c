//! Timelines on the command line: traced, analysed, shown; and files that are none.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::pto::{answer, command, pto, refused};

/// A folder, and paths in it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain name").to_owned()
    }

    fn read(&self, name: &str) -> String {
        self.read_of(&self.path(name))
    }

    fn read_of(&self, path: &str) -> String {
        fs::read_to_string(path).expect("the file was written")
    }
}

fn traced(folder: &Folder, options: &[&str]) -> String {
    let trace = folder.path("t.json");
    let run = ["run", "random_dag", "--param=tasks=300", "--trace", &trace];
    let answer = pto(&[&run, options].concat(), 0);
    assert!(answer.stdout.contains("PASS") && answer.stdout.contains(&format!("pto view {trace}")));
    trace
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn the_timeline_of_a_workload_has_its_cycles() {
    let folder = Folder::new();
    let (workload, trace) = (folder.path("copies.workload"), folder.path("t.json"));
    let text = "workload copies {
      tensor X : f32[10, 4]
      tensor Y : f32[10, 4]
      kernel copy(x: in f32[4, 4], y: out f32[4, 4]) {
        %0 = load x : f32[4, 4]
        store y, %0
      }
      do parallel i in dense 3 { copy[i](x = X[i * 4 for 4], y = Y[i * 4 for 4]) }
    }";
    fs::write(&workload, text).expect("the folder is there");
    let answer = pto(&["run", &workload, "--hosting=virtual", "--trace", &trace], 0);
    let lines = answer.stdout.split_once("v9 cycles").expect("the report has them").1;
    let lines: Vec<&str> = lines.lines().map(str::trim).take(2).collect();
    assert_eq!(lines, ["80", "of copy: 32 on whole tiles"]);
    let run = &json(&folder.read("t.json"))["pto"]["run"];
    // Two whole tiles, and one of two rows.
    assert_eq!(run["v9 cycles"], "80", "{run}");
    assert_eq!(run["v9 cycles of copy"], "32 on whole tiles");
}

#[test]
fn a_run_is_traced_and_analysed_in_every_hosting_mode() {
    let hostings =
        ["--hosting=threads", "--pool-threads=1", "--pool-threads=3", "--hosting=virtual"];
    for hosting in hostings {
        for runtime in ["host_build_graph", "aicpu_build_graph"] {
            let folder = Folder::new();
            let runtime = format!("--runtime={runtime}");
            let trace = traced(&folder, &[hosting, "--aic=4", "--aiv=8", &runtime]);
            let text = pto(&["analyze", &trace], 0).stdout;
            assert!(text.contains("scheduler overhead") && !text.contains("INCOMPLETE"), "{text}");
            let analysis = json(&pto(&["analyze", &trace, "--json"], 0).stdout);
            assert_eq!(analysis["analysis"]["tasks_timed"], 300);
            assert_eq!(analysis["analysis"]["events_dropped"], 0);
            assert_eq!(analysis["run"]["parameters"], "tasks=300");
            assert!(analysis["over_bound"].as_f64() >= Some(1.0));
        }
    }
}

#[test]
fn the_file_is_one_that_perfetto_reads() {
    let folder = Folder::new();
    traced(&folder, &["--aic=3", "--aiv=2"]);
    let file = json(&folder.read("t.json"));
    let events = file["traceEvents"].as_array().expect("a list");
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 300);
    assert_eq!(file["pto"]["version"], 3);
    let starts = events.iter().filter(|event| event["ph"] == "s").count();
    assert_eq!(starts * 2, file["pto"]["edges"].as_array().expect("a list").len());
}

#[test]
fn full_rings_are_said_everywhere() {
    let folder = Folder::new();
    for keep in ["oldest", "newest"] {
        let trace = folder.path("t.json");
        let args = [
            "run",
            "random_dag",
            "--param=tasks=500",
            "--trace",
            &trace,
            "--trace-events=64",
            "--trace-keep",
            keep,
        ];
        assert!(pto(&args, 0).stdout.contains("INCOMPLETE"));
        let answer = json(&pto(&[&args[..], &["--json"]].concat(), 0).stdout);
        assert!(answer["trace"]["events_dropped"].as_u64() > Some(100), "{answer:#}");
        assert!(pto(&["analyze", &trace], 0).stdout.contains("events dropped"));
    }
    refused(&["run", "random_dag", "--trace=x", "--trace-events=3"], 2, &["--trace-events"]);
    let whole = traced(&folder, &["--trace-events=64", "--trace-keep=all"]);
    assert!(!pto(&["analyze", &whole], 0).stdout.contains("events dropped"));
}

/// A stream has the window that it has without being traced.
#[test]
fn a_stream_longer_than_its_window_is_traced_as_a_whole() {
    let folder = Folder::new();
    let stream = ["--runtime=tensormap_and_ringbuffer", "--window=32"];
    for hosting in ["--hosting=pool", "--hosting=threads", "--hosting=virtual"] {
        let trace = traced(&folder, &[&stream[..], &[hosting, "--aic=4", "--aiv=8"]].concat());
        let analysis = json(&pto(&["analyze", &trace, "--json"], 0).stdout);
        assert_eq!(analysis["analysis"]["tasks_timed"], 300, "{hosting}");
        assert_eq!(analysis["analysis"]["events_dropped"], 0, "{hosting}");
    }
    let newest = ["--trace-keep=newest", "--trace-events=64"];
    let trace = traced(&folder, &[&stream[..], &newest].concat());
    let file = json(&folder.read("t.json"));
    let known = file["pto"]["tasks"].as_array().map_or(0, Vec::len);
    assert!((1..64).contains(&known), "{known}");
    assert_eq!(file["pto"]["run"]["recorded"], format!("{known} of 300 tasks"));
    assert!(pto(&["analyze", &trace], 0).stdout.contains("events dropped"));
}

#[test]
fn a_run_is_shown_as_page_picture_and_chart() {
    let folder = Folder::new();
    let trace = traced(&folder, &["--aic=3", "--aiv=3"]);
    assert!(pto(&["view", &trace], 0).stdout.contains("t.html"));
    assert!(folder.read("t.html").starts_with("<!DOCTYPE html>"));
    pto(&["view", &trace, "--svg"], 0);
    assert!(folder.read("t.svg").starts_with("<svg"));
    let chart = pto(&["view", &trace, "--text"], 0).stdout;
    assert_eq!(chart.lines().count(), 1 + 6, "{chart}");
    let answer = pto(&["run", "vector_example", "--gantt", "--aic=3", "--aiv=2"], 0);
    assert!(answer.stdout.contains("aiv 1  "), "{}", answer.stdout);
}

/// The second run has half of the cores: its work takes twice as long a core.
#[test]
fn two_runs_are_compared() {
    let folder = Folder::new();
    let small = ["--hosting=virtual", "--aic=3", "--aiv=6"];
    let wide = folder.path("wide.json");
    fs::rename(traced(&folder, &["--hosting=virtual", "--aic=6", "--aiv=12"]), &wide)
        .expect("the folder is its own");
    let trace = traced(&folder, &small);
    let text = pto(&["analyze", &trace, "--against", &wide], 0).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.contains(&format!("against {wide}").as_str()), "{text}");
    assert!(
        lines.iter().any(|line| line.trim_start().starts_with("this run  the other")),
        "{text}"
    );
    let answer = json(&pto(&["analyze", &trace, "--against", &wide, "--json"], 0).stdout);
    assert_eq!(answer["against"], {
        let mut alone = json(&pto(&["analyze", &wide, "--json"], 0).stdout);
        for field in ["exit_code", "error"] {
            alone.as_object_mut().expect("an object").remove(field);
        }
        alone
    });
    let figures = |list: &str, name: &str| {
        let pairs = answer["comparison"][list].as_array().expect("a list");
        let pair = pairs.iter().find(|pair| pair["name"] == name);
        let pair = pair.unwrap_or_else(|| panic!("no {name} in {answer:#}"));
        [pair["run"].as_u64(), pair["against"].as_u64()]
    };
    let [analysis, other] = [&answer["analysis"], &answer["against"]["analysis"]];
    let makespans = [analysis, other].map(|analysis| analysis["makespan_ns"].as_u64());
    assert_eq!(figures("whole_ns", "makespan"), makespans);
    let [small, wide_bound] = figures("whole_ns", "aiv work bound");
    assert!(small > wide_bound, "{answer:#}");
    refused(&["analyze", &trace, "--against", &folder.path("none.json")], 4, &["none.json'"]);
}

#[test]
fn several_runs_are_one_page_and_no_picture() {
    let folder = Folder::new();
    let trace = traced(&folder, &["--aic=3", "--aiv=3"]);
    let second = folder.path("second.json");
    fs::copy(&trace, &second).expect("the folder takes it");
    assert!(pto(&["view", &trace, &second], 0).stdout.contains("t.html"));
    assert!(folder.read("t.html").contains("t.json and second.json: timeline"));
    for form in ["--svg", "--text", "--output=x.svg"] {
        refused(&["view", &trace, &second, form], 2, &["one run"]);
    }
    refused(&["view", &trace, &second, "-o", &second], 2, &["the trace itself"]);
    let five = ["view", &trace, &trace, &trace, &trace, &trace];
    refused(&five, 2, &["a page shows 4 at most"]);
    refused(&["view", &trace, &folder.path("none.json")], 4, &["none.json'"]);
}

#[test]
fn a_run_that_fails_leaves_its_timeline() {
    let folder = Folder::new();
    let trace = folder.path("t.json");
    let args =
        ["run", "random_dag", "--param=tasks=200000", "--run-budget-ms=1", "--trace", &trace];
    let answer = pto(&args, 3);
    assert!(
        answer.stderr.contains(&format!("The timeline up to the fault is in {trace}")),
        "{}",
        answer.stderr
    );
    assert!(json(&folder.read("t.json"))["pto"]["tasks"].as_array().map(Vec::len) > Some(0));
}

#[test]
fn files_that_are_no_traces_are_refused_with_the_reason() {
    let folder = Folder::new();
    let trace = folder.path("t.json");
    let cases = [
        ("", "not a trace"),
        ("{\"traceEvents\": [", "line 1"),
        ("{\"traceEvents\": []}", "no section \"pto\""),
        (r#"{"pto": {"schema": "pto-timeline", "version": 9}}"#, "version 9"),
    ];
    for (content, words) in cases {
        fs::write(&trace, content).expect("the folder takes it");
        for command in ["analyze", "view"] {
            refused(&[command, &trace], 2, &["t.json'", words]);
        }
        let answer = pto(&["analyze", &trace, "--json"], 2);
        assert_eq!(json(&answer.stdout)["exit_code"], 2);
    }
    refused(&["analyze", &folder.path("none.json")], 4, &["cannot read", "none.json'"]);
    assert!(!Path::new(&folder.path("t.html")).exists(), "nothing was written");
}

#[test]
fn files_that_cannot_be_written_are_refused() {
    let folder = Folder::new();
    let nowhere = folder.path("no/such/t.json");
    refused(&["run", "vector_example", "--trace", &nowhere], 4, &["no folder", "no/such'"]);
    refused(&["run", "vector_example", "--trace", &folder.path("")], 4, &["it is a folder"]);
    refused(&["run", "vector_example", "--trace", "-"], 2, &["standard output"]);
    let trace = traced(&folder, &[]);
    let nowhere = folder.path("no/such/t.svg");
    refused(&["view", &trace, "-o", &nowhere], 4, &["no folder", "no/such"]);
    refused(&["view", &trace, "-o", &trace], 2, &["the trace itself"]);
    refused(&["graph", "vector_example", "-o", &nowhere], 4, &["no folder"]);
}

#[test]
fn graphs_as_picture_dot_and_json() {
    let svg = pto(&["graph", "paged_attention", "--param=batch=1", "--param=heads=4"], 0).stdout;
    assert!(svg.starts_with("<svg") && svg.contains("attention_pv"));
    let dot = pto(&["graph", "vector_example", "--dot"], 0).stdout;
    let graph = json(&pto(&["graph", "vector_example", "--json"], 0).stdout);
    let [tasks, edges] =
        ["tasks", "edges"].map(|part| graph[part].as_array().expect("a list").len());
    assert_eq!(dot.matches("[label=").count(), tasks);
    assert_eq!(dot.matches(" -> ").count(), edges);
    let folder = Folder::new();
    pto(&["graph", "vector_example", "-o", &folder.path("g.svg")], 0);
    assert_eq!(folder.read("g.svg"), pto(&["graph", "vector_example"], 0).stdout);
    pto(&["graph", "vector_example", "-o", &folder.path("g.html")], 0);
    assert!(folder.read("g.html").starts_with("<!DOCTYPE html>"));
    assert_eq!(folder.read("g.html"), pto(&["graph", "vector_example", "--html"], 0).stdout);
}

/// What a program with tensors submits, without a run: the derived edges, and what each task is.
#[test]
fn graphs_of_streams_show_shapes() {
    let graph = |args: &[&str]| json(&pto(&[&["graph"], args, &["--json"]].concat(), 0).stdout);
    let with = |graph: &Value, field: &str| -> Vec<Value> {
        let tasks = graph["tasks"].as_array().expect("a list").iter();
        tasks.filter_map(|task| task.get(field).cloned()).collect()
    };
    let decoder = graph(&["decoder_layer"]);
    // Chains are drawn as one task each, and say which kernels they have.
    assert_eq!(decoder["tasks"].as_array().map(Vec::len), Some(134));
    let chains = with(&decoder, "chain");
    let of_links = |chain: &Value| -> u64 {
        let links = chain.as_array().expect("a list").iter();
        links.map(|link| link["times"].as_u64().expect("a number")).sum()
    };
    let in_chains: u64 = chains.iter().map(of_links).sum();
    assert_eq!(134 - chains.len() as u64 + in_chains, 476, "each kernel is in it");
    assert_eq!(with(&decoder, "mix")[0], serde_json::json!(["decode_rotate", "decode_rotate"]));
    let experts = with(&graph(&["moe_layer", "--param=experts=4"]), "when");
    let of_count = |when: &Value| when.as_str().is_some_and(|when| when.ends_with("] != 0"));
    assert!(experts.len() > 20 && experts.iter().all(of_count), "{experts:?}");
    let shapes = graph(&["task_shapes", "--param=layers=2"]);
    assert_eq!(shapes["tasks"].as_array().map(Vec::len), Some(96), "replays are in it");
    assert!(with(&shapes, "start").iter().all(|start| start == "sync"));
    for field in ["mix", "blocks", "start", "priority", "when"] {
        assert!(with(&shapes, field).len() > 10, "{field}");
    }
    let dot = pto(&["graph", "task_shapes", "--param=layers=1", "--dot"], 0).stdout;
    assert!(
        dot.contains(" blocks at once") && dot.contains("style=dashed") && dot.contains("octagon")
    );
    let svg = pto(&["graph", "task_shapes", "--param=layers=1"], 0).stdout;
    assert!(svg.contains("shadow: several blocks"), "{svg}");
    // A program that waits for values, the program with tensors of an example that has a graph, and a file.
    let small = ["--param=batch=1", "--param=n=16", "--param=tile=16"];
    assert!(!graph(&[&["newton_solve"][..], &small].concat())["tasks"][0].is_null());
    let stream = ["--runtime=tensormap_and_ringbuffer", "--param=batch=1"];
    assert!(!graph(&[&["paged_attention"][..], &stream].concat())["edges"][0].is_null());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/graphs/row_sums.jsonl");
    assert_eq!(graph(&[file])["edges"], serde_json::json!([[0, 1], [0, 2]]));
}

/// The page about streams shows a graph as it is.
#[test]
fn the_documented_graph_is_what_is_said() {
    let page = include_str!("../../../../docs/how-to/streaming.md");
    let (_, after) = page.split_once("$ pto graph ").expect("the page shows a graph");
    let (command, shown) = after.split_once('\n').expect("and what it says");
    let shown = shown.split("```").next().unwrap_or_default();
    let args: Vec<_> = std::iter::once("graph").chain(command.split(' ')).collect();
    assert_eq!(pto(&args, 0).stdout, shown);
}

#[test]
fn graphs_that_cannot_be_shown_are_refused() {
    let large = ["graph", "random_dag", "--param=tasks=3001"];
    refused(&large, 2, &["3001 tasks", "too large", "--dot or --json"]);
    pto(&[&large[..], &["--dot"]].concat(), 0);
    pto(&[&large[..], &["--html"]].concat(), 0);
    refused(&["graph", "paged"], 2, &["there is no example", "paged_attention"]);
    refused(&["graph", "matmul", "--param=x=1"], 2, &["'x'"]);
    refused(&["graph", "matmul", "--svg", "--dot"], 2, &["cannot be used with"]);
}

/// What a run in virtual time says of itself is what is read out of its timeline, predicates and parts included.
#[test]
fn a_run_and_its_timeline_name_the_same_overhead() {
    let folder = Folder::new();
    let trace = folder.path("t.json");
    let listed = json(&pto(&["info", "examples", "--json"], 0).stdout);
    for example in listed["examples"].as_array().expect("a list") {
        let name = example["name"].as_str().expect("a name");
        let small: &[&str] = match name {
            "random_dag" => &["--param=tasks=1000"],
            "paged_attention" => &["--param=batch=4"],
            "task_shapes" => &["--param=layers=8"],
            _ => &[],
        };
        let args = ["run", name, "--hosting=virtual", "--json", "--trace", &trace];
        let run = json(&pto(&[&args, small].concat(), 0).stdout);
        let analysis = json(&pto(&["analyze", &trace, "--json"], 0).stdout)["analysis"].take();
        one_measure(name, small, &run, &analysis);
        let known = ["tasks_timed", "tasks_skipped"].map(|part| analysis[part].as_u64());
        let known: u64 = known.into_iter().flatten().sum();
        assert_eq!(Some(known), analysis["tasks"].as_u64(), "{name}");
        let text = pto(&["analyze", &trace], 0).stdout;
        assert!(!text.contains("INCOMPLETE"), "{name}");
        for kind in analysis["kinds"].as_array().expect("a list") {
            let of = kind["kind"].as_str().expect("a name");
            let overhead_ns = run["virtual"][of]["overhead_ns"].as_u64().expect("a number");
            let read = kind["overhead_span_ns"].as_u64().expect("a number");
            let graph = analysis["graph_ns"].as_u64().expect("a number");
            // Where tasks need several cores at once, a timeline counts what no scheduler could have used as well.
            let unfit = run["virtual"][of]["unfit_core_ns"].as_u64().expect("a number");
            // For people the two commands say it in the same words.
            let share = format!("{of} {:.1} %", 100.0 * read as f64 / graph as f64);
            assert!(text.contains(&share), "{name}: no '{share}' in {text}");
            let (low, high) =
                (overhead_ns.saturating_sub(graph / 100), overhead_ns + unfit + graph / 100);
            assert!((low..=high).contains(&read), "{name} {of}: {overhead_ns} ns, read {read} ns");
        }
    }
}

/// Each count and each time has one name and one value, whichever command shows it.
fn one_measure(name: &str, small: &[&str], run: &Value, analysis: &Value) {
    let value_of = |of: &Value, field: &str| {
        of[field].as_u64().unwrap_or_else(|| panic!("{name}: no {field} in {of}"))
    };
    let (round, machine) = (&run["median"], &run["virtual"]);
    for field in ["tasks", "edges", "makespan_ns", "graph_ns"] {
        assert_eq!(value_of(round, field), value_of(analysis, field), "{name}: {field}");
    }
    for field in ["makespan_ns", "graph_ns"] {
        assert_eq!(value_of(round, field), value_of(machine, field), "{name}: {field}");
    }
    assert_eq!(machine["lower_bound_ns"], analysis["bounds"]["largest_ns"], "{name}");
    let mut parts = 0;
    for kind in analysis["kinds"].as_array().expect("a list") {
        let of = kind["kind"].as_str().expect("a name");
        assert_eq!(value_of(&round[of], "busy_ns"), value_of(kind, "busy_ns"), "{name}: {of}");
        for field in ["utilisation", "parts"] {
            assert_eq!(round[of][field], machine[of][field], "{name}: {field} of {of}");
        }
        parts += value_of(&round[of], "parts");
    }
    assert_eq!(parts, value_of(analysis, "parts_run"), "{name}");
    // What the program submits, without a run.
    let of = |command: &str| json(&pto(&[&[command, name, "--json"], small].concat(), 0).stdout);
    let (check, graph) = (of("check"), of("graph"));
    let count = |list: &str| graph[list].as_array().expect("a list").len() as u64;
    let edges = value_of(&check, "stated_edges") + value_of(&check, "derived_edges");
    assert_eq!(
        [value_of(round, "tasks"), value_of(round, "kernels")],
        [value_of(&check, "tasks"), value_of(&check, "kernels")],
        "{name}"
    );
    assert_eq!((value_of(round, "tasks"), edges), (count("tasks"), count("edges")), "{name}");
    // A run derives no edge from a task that has retired by then.
    let derives = value_of(&check, "derived_edges") > 0;
    let run_edges = value_of(round, "edges");
    assert!(run_edges == edges || derives && run_edges < edges, "{name}: {run_edges} of {edges}");
}

/// The program states its edges in a scope that derives none: the timeline has them, and its longest chain is that of the program.
#[test]
fn edges_of_manual_scopes_are_in_timelines_in_every_hosting_mode() {
    let folder = Folder::new();
    let (file, trace) = (folder.path("chain.jsonl"), folder.path("t.json"));
    let mut lines = vec![
        r#"{"format": "pto-graph", "version": 1, "name": "chain", "variant": "tensormap_and_ringbuffer"}"#.to_owned(),
        r#"{"tensor": 0, "name": "x", "element": "f32", "shape": [64]}"#.to_owned(),
        r#"{"tensor": 1, "name": "y", "element": "f32", "shape": [64]}"#.to_owned(),
        r#"{"scope": "manual"}"#.to_owned(),
    ];
    lines.extend((0..9).map(|task| {
        let after = if task == 0 { String::new() } else { format!("{}", task - 1) };
        format!(r#"{{"task": {task}, "func": 1, "kind": "aiv", "args": [{{"in": 0}}, {{"f32": 0.5}}, {{"out": 1}}, 64], "after": [{after}]}}"#)
    }));
    lines.push(r#"{"end": "scope"}"#.to_owned());
    fs::write(&file, lines.join("\n")).expect("the folder takes it");
    for hosting in ["--hosting=virtual", "--pool-threads=1"] {
        let run = json(&pto(&["run", &file, hosting, "--trace", &trace, "--json"], 0).stdout);
        let analysis = json(&pto(&["analyze", &trace, "--json"], 0).stdout)["analysis"].take();
        assert_eq!(
            (&run["median"]["edges"], &analysis["edges"]),
            (&8.into(), &8.into()),
            "{hosting}"
        );
        let path = analysis["critical_path"].as_array().expect("a list");
        assert_eq!(path.len(), 9, "{hosting}: {path:?}");
    }
}

#[test]
fn tasks_that_were_skipped_are_said_to_be() {
    let folder = Folder::new();
    let trace = folder.path("t.json");
    pto(&["run", "moe_layer", "--hosting=virtual", "--trace", &trace], 0);
    let text = pto(&["analyze", &trace], 0).stdout;
    assert!(text.contains("143, 44 skipped by their predicates"), "{text}");
    assert_eq!(json(&folder.read("t.json"))["pto"]["skipped"].as_array().map(Vec::len), Some(44));
    assert!(text.contains("bound by      the critical path, "), "{text}");
    pto(&["view", &trace], 0);
    assert!(folder.read("t.html").contains("\"skipped\":["));
}

/// A file that contradicts itself is refused with the position.
#[test]
fn traces_with_impossible_numbers_are_refused() {
    let folder = Folder::new();
    let whole = json(&folder.read_of(&traced(&folder, &["--hosting=virtual"])));
    let trace = folder.path("wrong.json");
    let with = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut file = whole.clone();
        change(&mut file["pto"]);
        fs::write(&trace, file.to_string()).expect("the folder takes it");
        for command in ["analyze", "view"] {
            refused(&[command, &trace], 2, &[&["contradicts itself"][..], words].concat());
        }
    };
    let (added, started, finished) = (4, 8, 9);
    with(&|pto| pto["instances"] = 0.into(), &["0 AICPU instances"]);
    with(&|pto| pto["cores"] = serde_json::json!([]), &["0 cores"]);
    with(&|pto| pto["end_ns"] = u64::MAX.into(), &["end_ns"]);
    with(&|pto| pto["makespan_ns"] = u64::MAX.into(), &["makespan_ns"]);
    with(&|pto| pto["tasks"][3][added] = (1_u64 << 60).into(), &["task 3", "end_ns"]);
    with(&|pto| pto["tasks"][3][added] = (-7).into(), &["task 3", "-7 ns"]);
    with(
        &|pto| pto["tasks"][3].as_array_mut().expect("a row").swap(started, finished),
        &["task 3", "finished before it is started"],
    );
    with(&|pto| pto["tasks"][3][2] = 99.into(), &["task 3", "core 99 of 72"]);
    with(&|pto| pto["tasks"][3][3] = 99.into(), &["task 3", "AICPU instance 99 of 4"]);
    with(&|pto| pto["skipped"] = serde_json::json!([3]), &["task 3 is skipped"]);
}

#[test]
fn the_name_of_a_file_says_what_is_written() {
    let folder = Folder::new();
    let trace = traced(&folder, &["--aic=3", "--aiv=3"]);
    pto(&["view", &trace, "-o", &folder.path("out.svg")], 0);
    assert!(folder.read("out.svg").starts_with("<svg"));
    assert!(pto(&["view", &trace, "-o", "-"], 0).stdout.starts_with("<!DOCTYPE html>"));
    assert!(pto(&["view", &trace, "--svg", "-o", "-"], 0).stdout.starts_with("<svg"));
    refused(&["view", &trace, "-o", &folder.path("out.png")], 2, &["'", ".png", ".html or .svg"]);
    refused(&["view", &trace, "--svg", "-o", &folder.path("a.html")], 2, &["--svg", ".html"]);
    pto(&["graph", "vector_example", "-o", &folder.path("g.dot")], 0);
    assert!(folder.read("g.dot").starts_with("digraph"));
    assert!(pto(&["graph", "vector_example", "-o", "-"], 0).stdout.starts_with("<svg"));
    refused(&["graph", "vector_example", "-o", &folder.path("g.png")], 2, &[".png", ".svg"]);
    refused(
        &["graph", "matmul", "--dot", "-o", &folder.path("g.svg")],
        2,
        &["leave the option out"],
    );
    assert!(!Path::new("-").exists());
}

/// A file does not get the ending of another form; standard output is no folder.
#[test]
fn no_command_writes_a_file_of_another_form_than_its_name_says() {
    let graph = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/graphs/row_sums.jsonl");
    for (args, ending, right) in [
        (&["run", "matmul", "--trace=x.png"][..], ".png", ".json"),
        (&["run", "matmul", "--output=c=c.png"], ".png", ".npy"),
        (&["check", "matmul", "--save=m.svg"], ".svg", ".jsonl"),
        (&["program", "build", graph, "-o", "x.png"], ".png", ".ptop"),
        (&["program", "query", "-o", "x.html"], ".html", ".json"),
        (&["bench", "--scaling", "--svg=x.png"], ".png", ".svg"),
    ] {
        refused(args, 2, &[ending, &format!("use {right}")]);
    }
    for args in [
        &["run", "matmul", "--dump=-"][..],
        &["check", "matmul", "--save=m.jsonl", "--save-inputs=-"],
        &["man", "-"],
    ] {
        refused(args, 2, &["standard output is no folder", "'./-'"]);
    }
    assert!(!Path::new("-").exists());
}

/// What is in a file may not move a terminal's cursor.
#[test]
fn names_from_files_do_not_reach_the_terminal_raw() {
    let folder = Folder::new();
    let file = folder.path("g.jsonl");
    let header = r#"{"format": "pto-graph", "version": 1, "variant": "host_build_graph", "name": "\u001b[31mred\u009b2J\u202e"}"#;
    let task = r#"{"task": 0, "name": "\u001b[2Jx\u009b2J\u202e", "func": 0, "kind": "aiv", "after": [7]}"#;
    fs::write(&file, format!("{header}\n{task}\n")).expect("the folder takes it");
    let trace = traced(&folder, &["--aic=3", "--aiv=3"]);
    let mut wrong = json(&folder.read_of(&trace));
    wrong["pto"]["run"]["example"] = "a\u{1b}[2J\u{9b}2J\u{202e}b".into();
    wrong["pto"]["kernels"]["3"] = "a\u{1b}[2J\u{9b}2J\u{202e}b".into();
    fs::write(&trace, wrong.to_string()).expect("the folder takes it");
    for args in [
        &["check", &file][..],
        &["check", &file, "--json"],
        &["graph", &file],
        &["graph", &file, "--dot"],
        &["graph", &file, "--json"],
        &["analyze", &trace],
        &["analyze", &trace, "--json"],
        &["view", &trace, "--text"],
        &["run", "matmul", "--runtime=\u{9b}2J\u{1b}[2J\u{202e}"],
        &["run", "matmul", "--json", "--runtime=\u{9b}2J\u{1b}[2J\u{202e}"],
    ] {
        let answer = answer(&mut command(args));
        for text in [answer.stdout, answer.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{args:?}: {text:?}");
        }
    }
}

/// A chain of 200 tasks with names, in a window of 4.
fn named_tasks(folder: &Folder) -> String {
    let mut text = r#"{"format": "pto-graph", "version": 1, "name": "steps", "variant": "tensormap_and_ringbuffer"}
{"tensor": 0, "element": "f32", "shape": [64]}
"#
    .to_owned();
    for task in 0..200 {
        text += &format!(
            "{{\"task\": {task}, \"name\": \"e{task}\", \"func\": 3, \"kind\": \"aiv\", \"args\": [{{\"in\": 0}}, {{\"out\": 0}}, 64]}}\n"
        );
    }
    let file = folder.path("steps.jsonl");
    fs::write(&file, text).expect("a file");
    file
}

#[test]
fn tasks_have_the_names_of_their_graph_file() {
    let folder = Folder::new();
    let (file, trace) = (named_tasks(&folder), folder.path("t.json"));
    let traced = |options: &[&str]| {
        let run = ["run", &file, "--window=4", "--trace", &trace];
        pto(&[&run, options].concat(), 0);
        json(&folder.read("t.json"))
    };
    for (options, kept) in [
        (&["--trace-keep=all"][..], None),
        (&["--trace-keep=newest", "--trace-events=64"], Some(false)),
        (&["--trace-keep=oldest", "--trace-events=64"], Some(true)),
    ] {
        let file = traced(options);
        let count = file["pto"]["tasks"].as_array().expect("tasks").len();
        assert_eq!(count == 200, kept.is_none(), "{options:?}");
        let first = if kept == Some(false) { 200 - count } else { 0 };
        let names: Vec<String> = (first..first + count).map(|task| format!("e{task}")).collect();
        assert_eq!(file["pto"]["task_names"], Value::from(names), "{options:?}");
    }
    let whole = traced(&["--trace-keep=all"]);
    assert_eq!(whole["pto"]["run"]["example"], "steps");
    let slices = whole["traceEvents"].as_array().expect("events").iter();
    let shown: Vec<&Value> = slices.filter(|event| event["ph"] == "X").collect();
    assert_eq!((&shown[7]["name"], &shown[7]["args"]["name"]), (&"e7: exp".into(), &"e7".into()));
    let text = pto(&["analyze", &trace], 0).stdout;
    assert!(text.contains("e199: exp"), "the end of the chain:\n{text}");
    // The run of a fault has them as well.
    let hang = ["--hosting=virtual", "--task-budget-ms=1", "--fault=hang:core=39,task=2"];
    pto(&[&["run", &file, "--window=4", "--trace", &trace][..], &hang].concat(), 3);
    let faulted = json(&folder.read("t.json"));
    assert_eq!(faulted["pto"]["task_names"][2], "e2");
}

#[test]
fn tasks_of_a_workload_have_the_names_of_its_kernels() {
    let folder = Folder::new();
    let workloads = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads");
    let trace = folder.path("t.json");
    for (workload, name) in [("handed_on", "double"), ("short_chains", "squares, 4 times")] {
        let file = format!("{workloads}/{workload}.workload");
        pto(&["run", &file, "--hosting=virtual", "--trace", &trace], 0);
        let file = json(&folder.read("t.json"));
        let names = file["pto"]["task_names"].as_array().expect("names");
        assert_eq!(names.len(), file["pto"]["tasks"].as_array().expect("tasks").len());
        assert!(names.contains(&name.into()), "{names:?}");
        assert_eq!(file["pto"]["run"]["example"], workload);
    }
}

#[test]
fn a_hint_can_be_pasted_into_a_shell() {
    let folder = Folder::new();
    let trace = folder.path("a run.json");
    let text = pto(&["run", "vector_example", "--trace", &trace], 0).stdout;
    assert!(text.contains(&format!("pto view '{trace}'; pto analyze '{trace}'")), "{text}");
}

#[test]
fn a_picture_or_a_page_is_not_printed_on_a_terminal() {
    let printed = |options: &str| {
        let pto = format!("{} graph vector_example {options}", env!("CARGO_BIN_EXE_pto"));
        answer(std::process::Command::new("script").args(["-qec", &pto, "/dev/null"]))
    };
    for (options, file) in [("", "graph.svg"), ("--html", "graph.html")] {
        let refused = printed(options);
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        assert!(refused.stdout.contains(&format!("add -o {file}")), "{}", refused.stdout);
    }
    assert!(printed("-o -").stdout.contains("<svg"));
    assert!(printed("--dot").stdout.contains("digraph"));
}

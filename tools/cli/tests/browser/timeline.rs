//! The page of one run.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::chromium::{self, BrowserWindow};
use crate::page::{Pages, pto, result, text, texts};
use crate::traces::{BY_HAND, LONG, WITH_PARTS};

const DRIVER: &str = include_str!("drive_timeline.js");
const FOLDS: &str = include_str!("drive_folds.js");
const AXIS: &str = include_str!("drive_axis.js");

fn driven(content: &str) -> Value {
    let pages = Pages::new();
    let trace = pages.file("run.json", content);
    result(&pages.driven(&["view", &trace], DRIVER), &BrowserWindow::default())
}

#[test]
fn parts_are_on_the_lanes_of_their_cores() {
    let result = driven(WITH_PARTS);
    let runs = result["runs"].as_array().expect("a list");
    assert_eq!(runs[2..], [2, 2, 2].map(Value::from), "two blocks on each core");
    let tip = text(&result["tip"]);
    assert!(tip.contains("matmul #0, block 1 on aic 0"), "{tip}");
    let selected = text(&result["selected"]);
    assert!(selected.contains("6 in 2 blocks, the last one on aiv 1"), "{selected}");
}

#[test]
fn a_page_made_by_hand_does_what_it_says() {
    let result = driven(BY_HAND);
    assert_eq!(result["title"], "by hand <&>: timeline");
    assert_eq!(result["lanes"], json!(["aicpu 0", "aicpu 1", "aic 0", "aiv 0", "aiv 1"]));
    // The chain is painted in red, and can be left out.
    assert!(result["red"].as_u64() > result["red_without_chain"].as_u64(), "{result:#}");
    assert!(result["zoom"]["span_after"].as_f64() < result["zoom"]["span_before"].as_f64());
    let drift = result["zoom"]["drift"].as_f64().expect("a number");
    assert!(drift.abs() < 0.01, "the wheel keeps the time under the pointer: {drift}");
    assert!(result["pan"].as_f64().expect("a number") > 1.0, "{result:#}");
    let found = json!({ "found": "2 found", "after_enter": "1 of 2", "by_number": [2] });
    assert_eq!(result["search"], found);
    assert_eq!(result["task_under_label"], -1);
    let tip = text(&result["tip"]);
    assert!(
        tip.contains("matmul #2 on aic 0") && tip.contains("ready to dispatched: 20 ns"),
        "{tip}"
    );
    let selected = text(&result["selected"]);
    assert!(selected.contains("#2 matmul") && selected.contains("#0 add"), "{selected}");
    let output = text(&result["clicked_moment"]);
    assert!(output.contains("cores idle") && output.contains("aic 0"), "{output}");
    assert!(
        output.contains("2 coresnothing: it ran no further task"),
        "they share a row: {output}"
    );
    let edge = |name: &str| [0, 1].map(|at| result[name][at].as_u64().expect("a shade"));
    let ([top, bottom], [bar, below]) = (edge("edge"), edge("edge_with_bar"));
    assert!(top == bottom && bar < below, "a bar where lanes are out of sight: {result:#}");
}

/// What each idle core waited for.
#[test]
fn a_moment_says_why_cores_are_idle() {
    let result = driven(BY_HAND);
    let why = |at: &str| {
        let cores = result["moments"][at].as_array().expect("a list").iter();
        cores
            .map(|core| format!("{}: {}", text(&core["core"]), text(&core["why"])))
            .collect::<Vec<_>>()
    };
    assert_eq!(why("5"), ["aic 0: producers", "aiv 0: overhead", "aiv 1: overhead"]);
    assert_eq!(why("15"), ["aic 0: producers", "aiv 0: staged", "aiv 1: staged"]);
    assert_eq!(why("70"), ["aic 0: producers", "aiv 1: nothing"]);
    assert_eq!(why("125"), ["aic 0: polling", "aiv 0: nothing", "aiv 1: nothing"]);
    assert_eq!(why("140")[0], "aic 0: overhead");
}

/// At 5, 15, 70, 125, 140 and 205 ns.
#[test]
fn counters_say_what_is_ready_busy_and_added() {
    let result = driven(BY_HAND);
    let counters = json!({
        "ready": [2, 0, 0, 0, 1, 0],
        "busy": [0, 0, 1, 0, 0, 0],
        "ahead": [3, 3, 1, 1, 1, 0],
    });
    assert_eq!(result["counters"], counters);
    let [with, without] = ["green", "green_without_counters"].map(|of| result[of].as_u64());
    assert!(
        with > without.map(|pixels| pixels + 500),
        "busy cores are painted: {with:?}, {without:?}"
    );
}

#[test]
fn a_range_has_totals_for_each_kernel() {
    let result = driven(BY_HAND);
    let ranged = &result["ranged"];
    assert_eq!(ranged["range"], json!([20, 70]));
    assert_eq!(ranged["title"], "Kernels from 20 ns to 70 ns: 50 ns");
    // Both tasks on the AIV run: one for 50 of its 100 ns, the other for its 40; half of the runs take 40 or less.
    let rows = json!([["add", "2", "90 ns", "100.0 %", "40 ns", "100 ns", "20 ns"]]);
    assert_eq!(ranged["cells"].as_array().expect("rows")[1..], *rows.as_array().expect("rows"));
    let busy = text(&ranged["text"]);
    assert!(busy.contains("aic 0.0 % of 1, aiv 90.0 % of 2"), "{busy}");
    assert!(texts(&ranged["note"]).contains(&"50 ns"), "the ruler says how long it is");
    assert_eq!(result["cleared"], json!([null, "Kernels of the whole run"]));
    assert_eq!(result["shifted"], json!([100, 160]));
    assert_eq!(result["zoomed_to_range"], json!([100, 160]));
}

#[test]
fn the_table_of_kernels_can_be_sorted() {
    let result = driven(BY_HAND);
    let rows = json!([
        ["add", "2", "140 ns", "77.8 %", "40 ns", "100 ns", "20 ns"],
        ["matmul", "1", "40 ns", "22.2 %", "40 ns", "40 ns", "30 ns"],
    ]);
    assert_eq!(result["table"].as_array().expect("rows")[1..], *rows.as_array().expect("rows"));
    let (falling, rising) = (["add", "matmul"], ["matmul", "add"]);
    assert_eq!(result["sorted"], json!([falling, falling, rising]));
}

/// Ticks 50 ns apart, twelve milliseconds from zero: all different, short, and exact.
#[test]
fn the_axis_can_be_read_when_zoomed() {
    let pages = Pages::new();
    let trace = pages.file("long.json", LONG);
    let result = result(&pages.driven(&["view", &trace], AXIS), &BrowserWindow::default());
    let near = &result["near"];
    let ticks = texts(&near["ticks"]);
    assert!(ticks.len() >= 5 && ticks.iter().all(|tick| tick.len() < 9), "{near}");
    let distinct: BTreeSet<_> = ticks.iter().collect();
    assert_eq!(distinct.len(), ticks.len(), "{near}");
    assert_eq!(near["reference"], "from 12.345 ms");
    for (tick, at) in ticks.iter().zip(near["exact"].as_array().expect("a list")) {
        let offset: f64 = tick.trim_end_matches(" ns").parse().expect("nanoseconds with a sign");
        let apart = 12_345_000.0 + offset - at.as_f64().unwrap_or(0.0);
        assert!(apart.abs() < 1e-6, "{tick} at {at}");
    }
    let measured = &result["measured"];
    assert_eq!(measured["reference"], "from 12.345428 ms");
    let ticks = texts(&measured["ticks"]);
    let before = ticks.iter().any(|tick| tick.starts_with('\u{2212}'));
    assert!(ticks.contains(&"+0 ns") && before, "{measured}");
    assert_eq!(
        result["whole"]["reference"],
        Value::Null,
        "the times of the whole run count from its begin"
    );
    assert_eq!(result["cleared"], "from 12.345 ms");
}

/// Cube cores run nothing here: they are one line, which can be opened.
#[test]
fn idle_lanes_are_one_line() {
    let pages = Pages::new();
    let trace = pages.path("run.json");
    let cores = ["--aic", "6", "--aiv", "2", "--aicpu", "2"];
    pto(&[&["run", "vector_example", "--trace", &trace][..], &cores].concat());
    let result = result(&pages.driven(&["view", &trace], DRIVER), &BrowserWindow::default());
    assert_eq!(result["lanes"].as_array().map(Vec::len), Some(2 + 8));
    assert_eq!(result["used"], json!(["aicpu 0", "aicpu 1", "aiv 0", "aiv 1"]));
    assert_eq!(result["rows"], json!([0, 1, 2, 3]));
    assert_eq!(result["found"], result["used"]);
    let used = ["aicpu 0", "aicpu 1", "aiv 0", "aiv 1"];
    let idle: Vec<_> = (0..6).map(|core| format!("aic {core}")).collect();
    let folded = json!([&used[..], &["\u{25b8} 6 idle lanes"]].concat());
    let idle: Vec<_> = idle.iter().map(String::as_str).collect();
    let open = json!([&used[..], &["\u{25be} 6 idle lanes"], &idle[..]].concat());
    assert_eq!(result["lines"], json!([folded, open, folded]));
}

/// 14 ranks with 26 lanes each, of which the first two have a task: a task on each of two lanes of a rank.
fn ranks() -> String {
    let lanes = |rank: u64| {
        let kinds = [("aic", 8), ("aiv", 18)];
        kinds.map(|(kind, count)| (0..count).map(move |core| format!("rank {rank} {kind} {core}")))
    };
    let rows: Vec<String> = (0..14).flat_map(|rank| lanes(rank).into_iter().flatten()).collect();
    let kinds: Vec<_> =
        rows.iter().map(|row| if row.contains("aic") { "aic" } else { "aiv" }).collect();
    let task = |rank: u64, lane: u64| {
        let [at, core] = [1_000 * (rank + 1), 26 * rank + lane];
        json!([1, 1, core, -1, at, at, at, at + 10, at + 20, at + 900, at + 910])
    };
    let tasks: Vec<_> = (0..14).flat_map(|rank| [task(rank, 0), task(rank, 8)]).collect();
    let columns = r#"["func_id", "kind", "core", "scheduler", "added", "published", "ready", "dispatched", "started", "finished", "completed"]"#;
    let columns: Value = serde_json::from_str(columns).expect("JSON");
    json!({ "pto": {
        "schema": "pto-timeline", "version": 3, "run": {}, "end_ns": 20_000, "instances": 0,
        "cores": kinds, "kernels": { "1": "add" }, "lanes": [], "task_columns": columns,
        "tasks": tasks, "part_columns": ["task", "block", "lane", "run"], "parts": [],
        "edges": [], "names": { "kinds": ["cube cores", "vector cores"], "rows": rows },
    } })
    .to_string()
}

/// The lines of the ranks, with the lanes of those that are not folded.
fn lines(is_folded: impl Fn(usize) -> bool) -> Value {
    let of_rank = |rank| match is_folded(rank) {
        true => vec![format!("\u{25b8} rank {rank}: 26 lanes")],
        false => {
            let heading = format!("\u{25be} rank {rank}");
            let lines = [&heading, "aic 0", "aiv 0", "\u{25b8} 24 idle lanes"];
            lines.map(str::to_owned).to_vec()
        }
    };
    (0..14).flat_map(of_rank).collect::<Vec<_>>().into()
}

#[test]
fn ranks_fold_and_many_lanes_scroll() {
    let pages = Pages::new();
    let page = pages.driven(&["view", &pages.file("ranks.json", &ranks())], FOLDS);
    let result = result(&page, &BrowserWindow::default());
    assert_eq!(result["lines"], lines(|_| false));
    assert_eq!(result["idle"], 14 * (1 + 26 + 1), "a line for each lane, and two more a rank");
    let fixed = texts(&result["fixed"][0]);
    let heads = ["time", "ready", "busy", "ahead"];
    assert!(heads.iter().all(|text| fixed.contains(text)) && fixed.len() > 6, "{fixed:?}");
    assert_eq!(result["fixed"][0], result["fixed"][1], "the axis and the counters stay");
    let tops = |name: &str| result["tops"][name].as_f64().unwrap_or(-1.0);
    let [down, wheeled, dragged] = ["down", "wheel_on_names", "dragged"].map(tops);
    assert!(down > 0.0 && wheeled > 0.0 && (0.49..0.51).contains(&dragged), "{result:#}");
    let at_an_end = ["up", "page_up", "home", "end", "pressed"].map(tops);
    assert_eq!(at_an_end, [0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!((result["page"].as_f64(), &result["last"]), (Some(0.9), &json!("aiv 17")));
    assert_eq!((tops("wheel_on_times"), &result["zoomed"]), (wheeled, &json!(true)));
    assert_eq!(result["one"], lines(|rank| rank == 1));
    assert_eq!(result["hidden"], json!([true, -1]));
    assert_eq!((&result["all"], &result["bars"]), (&lines(|_| true), &json!(true)));
    assert_eq!(result["scrolls"], false);
    let folded: Vec<_> = (0..14).map(|rank| format!("0.{rank}")).collect();
    assert!(text(&result["address"]).contains(&format!("folded={}", folded.join(","))));
    assert_eq!((&result["found"], &result["seen"]), (&lines(|rank| rank != 1), &json!(true)));
    assert_eq!(json!([result["folded"], result["unfolded"]]), json!([14, 56]));
    assert_eq!(result["restored"], 14 + 12 * 3 + 24, "two ranks, and the idle lanes of another");
}

#[test]
fn a_page_of_a_real_run_is_painted() {
    let pages = Pages::new();
    let trace = pages.path("run.json");
    pto(&["run", "paged_attention", "--trace", &trace, "--aic", "6", "--aiv", "12"]);
    let page = pages.driven(&["view", &trace], DRIVER);
    let result = result(&page, &BrowserWindow::default());
    assert_eq!(result["lanes"].as_array().map(Vec::len), Some(4 + 18));
    assert!(result["coloured"].as_u64() > Some(2000), "{result:#}");
    the_table_is_that_of_the_analysis(&result, &pto(&["analyze", &trace, "--json"]));
    the_counters_are_those_of_viewers(&result, &fs::read(&trace).expect("a file"));
    let picture = pages.path("page.png");
    chromium::screenshot(&page, picture.as_ref());
    assert!(fs::metadata(&picture).expect("a picture").len() > 20_000);
    let svg = pages.path("run.svg");
    pto(&["view", &trace, "--svg", "-o", &svg]);
    chromium::screenshot(svg.as_ref(), picture.as_ref());
    assert!(fs::metadata(&picture).expect("a picture").len() > 10_000);
}

fn the_counters_are_those_of_viewers(result: &Value, file: &[u8]) {
    let file: Value = serde_json::from_slice(file).expect("it is JSON");
    let events = file["traceEvents"].as_array().expect("a list");
    for (name, unit) in [("ready", "tasks"), ("busy", "cores"), ("ahead", "tasks")] {
        let all = events.iter().filter(|event| event["ph"] == "C" && event["name"] == name);
        let step = |event: &Value| {
            let us = event["ts"].as_f64().expect("a time");
            ((us * 1e3).round(), event["args"][unit].as_u64().expect("a value"))
        };
        let steps: Vec<(f64, u64)> = all.map(step).collect();
        assert!(steps.len() > 20, "{name}: {}", steps.len());
        let shown = serde_json::from_value(result["steps"][name].clone());
        let shown: Vec<(f64, u64)> = shown.expect("pairs of a time and a value");
        assert_eq!(shown, steps, "{name}");
    }
}

fn the_table_is_that_of_the_analysis(result: &Value, analysis: &str) {
    let analysis: Value = serde_json::from_str(analysis).expect("it is JSON");
    let kernels = analysis["analysis"]["kernels"].as_array().expect("a list");
    let expected: Vec<_> = kernels
        .iter()
        .map(|kernel| {
            json!({
                "kernel": kernel["kernel"], "runs": kernel["count"], "total": kernel["total_ns"],
                "median": kernel["median_ns"], "max": kernel["max_ns"],
            })
        })
        .collect();
    assert_eq!(result["kernels"], json!(expected));
}

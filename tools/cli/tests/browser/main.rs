//! The page of `pto view` in a real browser: headless Chromium paints it, and a script uses it as a person would.
//!
//! Where there is no Chromium, the test installs Debian's package; where that cannot be had, it fails and says so.

mod chromium;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// One AIC, two AIV: tasks 0 and 1 on the AIV, task 2 on the AIC behind task 0. Written by hand, from the schema
/// in docs/timeline.md.
const BY_HAND: &str = r#"{"pto": {
    "schema": "pto-timeline", "version": 2, "run": {"example": "by hand <&>"}, "makespan_ns": 210,
    "instances": 2, "cores": ["aic", "aiv", "aiv"], "kernels": {"0": "matmul", "1": "add"},
    "lanes": [{"lane": "aicpu 0", "recorded": 9, "dropped": 0}],
    "task_columns": ["func_id", "kind", "core", "scheduler", "added", "published", "ready", "dispatched",
                     "started", "finished", "completed"],
    "tasks": [[1, 1, 1, 1, 0, 0, 0, 10, 20, 120, 130],
              [1, 1, 2, 1, 0, 0, 0, 10, 20, 60, 130],
              [0, 0, 0, 1, 0, 0, 130, 150, 160, 200, 210]],
    "part_columns": ["task", "block", "lane", "run"], "parts": [],
    "edges": [0, 2]}}"#;

/// The same cores: task 0 has two blocks of a kernel on each core.
const WITH_PARTS: &str = r#"{"pto": {
    "schema": "pto-timeline", "version": 2, "run": {"example": "parts"}, "makespan_ns": 210,
    "instances": 2, "cores": ["aic", "aiv", "aiv"], "kernels": {"0": "matmul", "1": "left", "2": "right"},
    "lanes": [{"lane": "aicpu 0", "recorded": 9, "dropped": 0}],
    "task_columns": ["func_id", "kind", "core", "scheduler", "added", "published", "ready", "dispatched",
                     "started", "finished", "completed"],
    "tasks": [[0, 0, 2, 1, 0, 0, 0, 10, 20, 190, 200]],
    "part_columns": ["task", "block", "lane", "run"],
    "parts": [[0, 0, 0, [0, 0, 0, 1, 0, 0, 0, 10, 20, 90, 95]], [0, 0, 0, [1, 1, 1, 1, 0, 0, 0, 10, 20, 80, 95]],
              [0, 0, 1, [2, 1, 2, 1, 0, 0, 0, 10, 20, 85, 95]], [0, 1, 0, [0, 0, 0, 1, 0, 0, 0, 100, 110, 180, 200]],
              [0, 1, 0, [1, 1, 1, 1, 0, 0, 0, 100, 110, 170, 200]], [0, 1, 1, [2, 1, 2, 1, 0, 0, 0, 100, 110, 190, 200]]],
    "edges": []}}"#;

/// What a person does, and what becomes of it.
const DRIVER: &str = include_str!("driver.js");

fn pto(args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_pto")).args(args).output().expect("pto starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// The page of a trace, with the driver behind its own script.
fn driven(folder: &TempDir, trace: &Path) -> PathBuf {
    let page = folder.path().join("page.html");
    pto(&["view", path_text(trace), "-o", path_text(&page)]);
    let html = fs::read_to_string(&page).expect("the page was written");
    let driven = html.replace("</body>", &format!("<script>{DRIVER}</script></body>"));
    assert_ne!(driven, html);
    fs::write(&page, driven).expect("the folder takes it");
    page
}

fn result(page: &Path) -> Value {
    let dom = chromium::dom(page);
    let (_, rest) =
        dom.split_once("<pre id=\"result\">").unwrap_or_else(|| panic!("no result in\n{dom}"));
    let (text, _) = rest.split_once("</pre>").expect("the element ends");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let value: Value = serde_json::from_str(&text).expect("the driver writes JSON");
    assert_eq!(value["error"], Value::Null, "{value:#}");
    value
}

#[test]
fn parts_are_on_the_lanes_of_their_cores() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("parts.json");
    fs::write(&trace, WITH_PARTS).expect("the folder takes it");
    let result = result(&driven(&folder, &trace));
    let runs = result["runs"].as_array().expect("a list");
    assert_eq!(runs[2..], [2, 2, 2].map(Value::from), "two blocks on each core");
    let tip = result["tip"].as_str().expect("text");
    assert!(tip.contains("matmul #0, block 1 on aic 0"), "{tip}");
    let selected = result["selected"].as_str().expect("text");
    assert!(selected.contains("6 in 2 blocks, the last one on aiv 1"), "{selected}");
}

#[test]
fn a_page_made_by_hand_does_what_it_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("hand.json");
    fs::write(&trace, BY_HAND).expect("the folder takes it");
    let result = result(&driven(&folder, &trace));
    assert_eq!(result["title"], "by hand <&>: timeline");
    assert_eq!(result["requests"], 0, "the page asks nobody");
    assert_eq!(
        result["lanes"],
        serde_json::json!(["aicpu 0", "aicpu 1", "aic 0", "aiv 0", "aiv 1"])
    );
    // The chain is painted in red, and can be left out.
    assert!(result["red"].as_u64() > result["red_without_chain"].as_u64(), "{result:#}");
    assert!(result["zoom"]["span_after"].as_f64() < result["zoom"]["span_before"].as_f64());
    assert!(
        result["zoom"]["drift"].as_f64().expect("a number").abs() < 0.01,
        "the wheel keeps the place"
    );
    assert!(result["pan"].as_f64().expect("a number") > 1.0, "{result:#}");
    assert_eq!(result["search"]["found"], "2 found");
    assert_eq!(result["search"]["after_enter"], "1 of 2");
    assert_eq!(result["search"]["by_number"], serde_json::json!([2]));
    let tip = result["tip"].as_str().expect("text");
    assert!(
        tip.contains("matmul #2 on aic 0") && tip.contains("ready to dispatched: 20 ns"),
        "{tip}"
    );
    let selected = result["selected"].as_str().expect("text");
    assert!(selected.contains("#2 matmul") && selected.contains("#0 add"), "{selected}");
    // What each idle core waited for.
    let why = |at: &str| {
        let cores = result["moments"][at].as_array().expect("a list");
        cores
            .iter()
            .map(|core| {
                format!(
                    "{}: {}",
                    core["core"].as_str().unwrap_or("?"),
                    core["why"].as_str().unwrap_or("?")
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(why("5"), ["aic 0: producers", "aiv 0: overhead", "aiv 1: overhead"]);
    assert_eq!(why("15"), ["aic 0: producers", "aiv 0: staged", "aiv 1: staged"]);
    assert_eq!(why("70"), ["aic 0: producers", "aiv 1: nothing"]);
    assert_eq!(why("125"), ["aic 0: polling", "aiv 0: nothing", "aiv 1: nothing"]);
    assert_eq!(why("140")[0], "aic 0: overhead");
    let told = result["clicked_moment"].as_str().expect("text");
    assert!(told.contains("cores idle") && told.contains("aic 0"), "{told}");
}

#[test]
fn a_page_of_a_real_run_is_painted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("run.json");
    pto(&["run", "paged_attention", "--trace", path_text(&trace), "--aic", "6", "--aiv", "12"]);
    let page = driven(&folder, &trace);
    let result = result(&page);
    assert_eq!(
        (&result["requests"], result["lanes"].as_array().map(Vec::len)),
        (&0.into(), Some(4 + 18))
    );
    assert!(result["coloured"].as_u64() > Some(2000), "{result:#}");
    let picture = folder.path().join("page.png");
    chromium::screenshot(&page, &picture);
    assert!(fs::metadata(&picture).expect("a picture").len() > 20_000);
    pto(&["view", path_text(&trace), "--svg", "-o", path_text(&folder.path().join("run.svg"))]);
    chromium::screenshot(&folder.path().join("run.svg"), &picture);
    assert!(fs::metadata(&picture).expect("a picture").len() > 10_000);
}

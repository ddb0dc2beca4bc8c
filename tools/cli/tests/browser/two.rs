//! The page of several runs.

use serde_json::json;

use crate::chromium::BrowserWindow;
use crate::page::{Pages, result, text};
use crate::traces::BY_HAND;

const DRIVER: &str = include_str!("drive_two.js");

#[test]
fn two_runs_stand_below_each_other() {
    let pages = Pages::new();
    let first = pages.file("first.json", BY_HAND);
    // The task on the AIC runs 20 ns longer.
    let second = pages.file(
        "second.json",
        &BY_HAND.replace("160, 200, 210", "160, 220, 230").replace(": 210", ": 230"),
    );
    let page = pages.driven(&["view", &first, &second], DRIVER);
    let result = result(&page, &BrowserWindow::default());
    assert_eq!(result["title"], "first.json and second.json: timeline");
    assert_eq!(result["panels"], json!([true, true]));
    let headings = result["headings"].to_string();
    assert!(
        headings.contains("first.json: graph 210 ns")
            && headings.contains("second.json: graph 230 ns"),
        "{headings}"
    );
    assert_eq!(result["same_axis"], true);
    let rows = json!([
        ["add", "2\n2", "140 ns\n140 ns", "40 ns\n40 ns", "+0.0 %"],
        ["matmul", "1\n1", "40 ns\n60 ns", "40 ns\n60 ns", "+50.0 %"],
    ]);
    assert_eq!(result["cells"].as_array().expect("rows")[1..], *rows.as_array().expect("rows"));
    let run = text(&result["run"]);
    assert!(run.contains("graph210 ns230 ns") && run.contains("+9.5 %"), "{run}");
    // Each run is compared with its own time: 40 of 210 ns, and 60 of 230 ns.
    let kernels = text(&result["kernels"]);
    let shares = ["first.json: cores busy: aic 19.0 %", "second.json: cores busy: aic 26.1 %"];
    assert!(shares.iter().all(|share| kernels.contains(share)), "{kernels}");
    assert_eq!(result["selected"], json!([2, 2]), "the same task in both");
    let output = text(&result["told"]);
    assert!(
        output.contains("the same task in second.json") && output.contains("in the kernel60 ns"),
        "{output}"
    );
}

/// The kernel of task 2 hangs, and the run ends with a fault at 1,000 ns: the kernel is no run, and its panel says how long it ran.
#[test]
fn a_kernel_that_did_not_finish_is_no_run() {
    let pages = Pages::new();
    let fault = r#""fault": {"code": 393217, "name": "STALL_CORE", "sentence": "Too long.", "remedy": "Look.",
        "core": 0, "task": 2, "instance": 1}, "edges""#;
    let hangs = BY_HAND.replace("160, 200, 210", "160, -1, -1").replace(": 210", ": 1000");
    let first = pages.file("first.json", BY_HAND);
    let second = pages.file("second.json", &hangs.replace(r#""edges""#, fault));
    let page = pages.driven(&["view", &first, &second], DRIVER);
    let result = result(&page, &BrowserWindow::default());
    let cells = result["cells"].as_array().expect("rows");
    let row = json!(["matmul", "1\n-", "40 ns\n-", "40 ns\n-", "-"]);
    assert!(cells.contains(&row), "{cells:?}");
    let output = text(&result["told"]);
    assert!(output.contains("it had run for 840 ns when the run ended"), "{output}");
    let kernels = text(&result["kernels"]);
    assert!(kernels.contains("second.json: cores busy: aic 84.0 %"), "{kernels}");
}

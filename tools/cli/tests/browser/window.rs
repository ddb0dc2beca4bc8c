//! Windows of several widths, light and dark, opened at an address from a link.

use serde_json::{Value, json};

use crate::chromium::BrowserWindow;
use crate::page::{Pages, pto, result, text};
use crate::traces::BY_HAND;

const TIMELINE: &str = include_str!("drive_timeline.js");
const LOOK: &str = include_str!("drive_window.js");

/// The pages of a run and of a graph.
fn commands(pages: &Pages) -> [Vec<String>; 2] {
    let trace = pages.file("run.json", BY_HAND);
    let graph = ["graph", "vector_example", "--html"].map(str::to_owned);
    [vec!["view".to_owned(), trace], graph.into()]
}

/// The page of a run whose kernels have long names, and times of three digits.
fn page_of_a_run(pages: &Pages) -> Vec<String> {
    let trace = pages.path("attention.json");
    let run = ["run", "paged_attention", "--hosting=virtual", "--no-compute", "--param=batch=5"];
    pto(&[&run[..], &["--kernel-cost=5us..20us", "--trace", &trace]].concat());
    vec!["view".to_owned(), trace]
}

fn looked(command: &[String], window: &BrowserWindow<'_>) -> Value {
    let pages = Pages::new();
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    result(&pages.driven(&command, LOOK), window)
}

#[test]
fn a_narrow_window_has_everything_in_one_column() {
    let pages = Pages::new();
    for command in commands(&pages).into_iter().chain([page_of_a_run(&pages)]) {
        let wide = looked(&command, &BrowserWindow::default());
        assert_eq!(wide["aside"], json!({ "below": false, "right": true }), "{command:?}");
        let narrow = looked(&command, &BrowserWindow { width: 390, ..BrowserWindow::default() });
        assert_eq!(
            (&narrow["width"], &narrow["scroll_width"]),
            (&json!(390), &json!(390)),
            "nothing is highlighted"
        );
        assert_eq!(narrow["aside"], json!({ "below": true, "right": false }), "{command:?}");
        assert_eq!((&wide["cut"], &narrow["cut"]), (&json!(false), &json!(false)), "{command:?}");
        let [width, height] = [0, 1].map(|side| narrow["canvas"][side].as_f64().unwrap_or(0.0));
        assert!(width >= 390.0 && height >= 300.0, "{command:?}: {width} x {height}");
    }
}

#[test]
fn dark_is_as_the_system_prefers_and_can_be_switched() {
    let pages = Pages::new();
    let (white, black) = (json!([255, 255, 255]), json!([13, 17, 23]));
    for command in commands(&pages) {
        for dark in [false, true] {
            let seen = looked(&command, &BrowserWindow { dark, ..BrowserWindow::default() });
            let preferred = if dark { &black } else { &white };
            assert_eq!(&seen["theme"]["canvas"], preferred, "{command:?}");
            assert_eq!(
                (&seen["light"]["canvas"], &seen["dark"]["canvas"]),
                (&white, &black),
                "{command:?}"
            );
            assert_eq!(seen["light"]["body"], "rgb(255, 255, 255)", "{command:?}");
            assert_eq!(seen["dark"]["body"], "rgb(13, 17, 23)", "{command:?}");
        }
    }
}

/// What one window wrote into its address, another one shows.
#[test]
fn a_view_is_in_the_address() {
    let pages = Pages::new();
    let [timeline, graph] = commands(&pages);
    let command: Vec<_> = timeline.iter().map(String::as_str).collect();
    let sent = result(&pages.driven(&command, TIMELINE), &BrowserWindow::default());
    let fragment = text(&sent["address"]);
    let seen =
        looked(&timeline, &BrowserWindow { fragment, ..BrowserWindow::default() })["state"].clone();
    let [from, to] = [0, 1].map(|end| seen["stretch"][end].as_f64().unwrap_or(0.0).round());
    assert_eq!(json!([from, to, seen["range"]]), json!([100.0, 160.0, [100, 160]]), "{fragment}");
    let fragment = "#task=0,2&moment=0,137&from=130&search=ad%20&off=chain&sort=runs,rising";
    let seen =
        looked(&timeline, &BrowserWindow { fragment, ..BrowserWindow::default() })["state"].clone();
    let parts =
        ["selected", "moment", "reference", "query", "chain", "whole"].map(|part| &seen[part]);
    assert_eq!(json!(parts), json!([2, 137, 130, "ad ", false, true]));
    assert_eq!(seen["sort"], json!({ "column": "runs", "rising": true }));
    // What makes no sense is as if it was missing.
    let fragment = "#task=7,x&time=1&range=,&moment=9,9&top=a&sort=none&from=";
    let seen =
        looked(&timeline, &BrowserWindow { fragment, ..BrowserWindow::default() })["state"].clone();
    let parts = ["selected", "moment", "range", "whole"].map(|part| &seen[part]);
    assert_eq!(json!(parts), json!([-1, -1, null, true]));
    let fragment = "#at=10,20,0.5&task=1&search=add";
    let seen =
        looked(&graph, &BrowserWindow { fragment, ..BrowserWindow::default() })["state"].clone();
    let parts = ["x", "y", "scale", "selected", "query"].map(|part| &seen[part]);
    assert_eq!(json!(parts), json!([10, 20, 0.5, 1, "add"]));
}

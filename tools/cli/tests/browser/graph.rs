//! The page of a graph.

use serde_json::json;

use crate::chromium::BrowserWindow;
use crate::page::{Pages, pto, result, text, texts};

const DRIVER: &str = include_str!("drive_graph.js");
const ROW_SUMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/graphs/row_sums.jsonl");

#[test]
fn a_small_graph_shows_the_names_of_its_tasks() {
    let pages = Pages::new();
    let result =
        result(&pages.driven(&["graph", ROW_SUMS, "--html"], DRIVER), &BrowserWindow::default());
    let shown = texts(&result["whole"]["texts"]);
    assert!(["shift", "upper", "lower"].iter().all(|name| shown.contains(name)), "{shown:?}");
    let (selected, tip) = (text(&result["selected"]), text(&result["tip"]));
    assert!(selected.contains("lower") && selected.contains("#0 shift"), "{selected}");
    assert!(tip.starts_with("lower\n") && tip.contains("1 producer, 0 consumers"), "{tip}");
    assert_eq!((&result["clicked"], &result["moved"]), (&json!(2), &json!([true, true])));
    let address = text(&result["address"]);
    assert!(address.starts_with("#at=") && address.ends_with("&task=2"), "{address}");
}

/// 400 tasks: seen as a whole they are blocks of colour, and near they have names.
#[test]
fn a_large_graph_shows_more_the_nearer_one_looks() {
    let pages = Pages::new();
    let whole = ["graph", "paged_attention", "--runtime=host_build_graph", "--param=batch=5"];
    let page = pages.driven(&[&whole[..], &["--html"]].concat(), DRIVER);
    let result = result(&page, &BrowserWindow::default());
    let (whole, near) = (&result["whole"], &result["near"]);
    assert_eq!(
        (&result["fits"], &whole["tasks"], &whole["edges"]),
        (&json!(true), &json!(400), &json!(390))
    );
    assert!(result["coloured"].as_u64() > Some(1000), "{result:#}");
    assert_ne!(whole["level"], "names");
    assert_eq!((&near["level"], &result["back"]), (&json!("names"), &whole["level"]));
    assert!(
        near["tasks"].as_u64() < Some(200) && near["tasks"].as_u64() > Some(1),
        "what is seen is painted"
    );
    assert!(texts(&near["texts"]).contains(&"attention_qk"), "{near}");
}

/// More tasks than a picture has.
#[test]
fn a_graph_that_is_too_large_for_a_picture_has_a_page() {
    let pages = Pages::new();
    let command = ["graph", "random_dag", "--param=tasks=5000", "--html"];
    let result = result(&pages.driven(&command, DRIVER), &BrowserWindow::default());
    assert_eq!(
        (&result["whole"]["tasks"], &result["near"]["level"]),
        (&json!(5000), &json!("names"))
    );
}

/// The edges of this graph pass many layers: its picture was 10,928 pixels wide.
#[test]
fn a_picture_is_not_wider_than_it_must_be() {
    let svg = pto(&["graph", "decoder_layer"]);
    let (_, width) = svg.split_once(" width=\"").expect("it has a width");
    let width: u32 =
        width.split('"').next().and_then(|width| width.parse().ok()).expect("a number");
    assert!(width < 3_000, "{width}");
}

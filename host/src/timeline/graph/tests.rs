//! Layouts and texts of small graphs.

use super::layout::GraphLayout;
use super::{Graph, GraphError, GraphTask, MAX_DRAWN_TASKS, page, picture};
use crate::timeline::model::Edge;
use pto_abi::CoreKind;
use pto_graph::{Priority, StartMode};

fn graph(tasks: u32, edges: &[(u32, u32)]) -> Graph {
    let edge = |&(producer, consumer): &(u32, u32)| Edge { producer, consumer };
    let kind = |slot: u32| if slot.is_multiple_of(2) { CoreKind::AIC } else { CoreKind::AIV };
    Graph {
        name: "a \"graph\"".to_owned(),
        tasks: (0..tasks)
            .map(|slot| GraphTask::plain(kind(slot).get().into(), kind(slot)))
            .collect(),
        kernels: [(0, "mat<mul>".to_owned()), (1, "add".to_owned())].into(),
        edges: edges.iter().map(edge).collect(),
    }
}

#[test]
fn a_task_is_below_its_producers() {
    // A diamond, and an edge that skips its middle.
    let layout =
        GraphLayout::of(&graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4)])).unwrap();
    let layers: Vec<_> = layout.tasks.iter().map(|(_, layer)| *layer).collect();
    assert_eq!((layers, layout.layers), (vec![0, 1, 1, 2, 3], 4));
    assert!(
        (layout.columns - 2.1).abs() < 1e-9,
        "two tasks, and an edge that passes: {}",
        layout.columns
    );
    assert_eq!(layout.edges[4].len(), 3, "the long edge passes the middle layer");
    let columns: Vec<_> = layout.edges[4].iter().map(|(column, _)| *column).collect();
    assert!((columns[0] - columns[2]).abs() < 1e-9, "its ends are in the middle: {columns:?}");
}

#[test]
fn crossings_that_need_not_be_are_removed() {
    // Two rows of four, joined crosswise: 0-7, 1-6, 2-5, 3-4.
    let layout = GraphLayout::of(&graph(8, &[(0, 7), (1, 6), (2, 5), (3, 4)])).unwrap();
    for path in &layout.edges {
        assert!((path[0].0 - path[1].0).abs() < 1e-9, "{:?}", layout.edges);
    }
}

#[test]
fn a_picture_has_every_task_and_every_edge() {
    let svg = picture(&graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])).unwrap();
    assert_eq!(svg.matches("<g><title>").count(), 5);
    assert_eq!(svg.matches("marker-end").count(), 5);
    assert!(svg.contains("mat&lt;mul&gt; #0 (aic)") && !svg.contains("mat<mul>"));
    assert!(picture(&graph(0, &[])).unwrap().contains("0 tasks"));
}

#[test]
fn what_cannot_be_drawn_is_refused_with_what_to_do() {
    let tasks = u32::try_from(MAX_DRAWN_TASKS).unwrap();
    assert!(picture(&graph(tasks, &[])).is_ok());
    let refused = picture(&graph(tasks + 1, &[])).unwrap_err();
    assert!(
        refused.to_string().contains("3001 tasks") && refused.to_string().contains("--dot"),
        "{refused}"
    );
    // A long chain, and edges from everybody to its end: each passes many layers.
    let refused = picture(&graph(2000, &to_the_last(2000)));
    assert!(matches!(refused, Err(GraphError::TooLarge { .. })));
    assert_eq!(picture(&graph(2, &[(0, 1), (1, 0)])), Err(GraphError::Cycle(0)));
}

#[test]
fn dot_and_json_hold_everything_and_escape_names() {
    let graph = graph(3, &[(0, 1), (1, 2)]);
    let dot = graph.dot();
    assert!(dot.starts_with("digraph \"a \\\"graph\\\"\" {"), "{dot}");
    assert!(
        dot.contains("t0 [label=\"mat<mul> #0\", shape=box];") && dot.contains("  t1 -> t2;\n")
    );
    let json = graph.json();
    assert_eq!(
        (json["tasks"][1]["kernel"].as_str(), json["tasks"][1]["kind"].as_str()),
        (Some("add"), Some("aiv"))
    );
    assert_eq!(json["edges"], serde_json::json!([[0, 1], [1, 2]]));
}

/// Two plain tasks, and one of every shape between them.
fn shaped() -> Graph {
    let mut graph = graph(3, &[(0, 1), (1, 2)]);
    graph.tasks[1] = GraphTask {
        mix: vec![1, 1],
        blocks: 8,
        start: StartMode::SYNC,
        priority: Priority::URGENT,
        when: Some("tensor 1 'n'[2] > 0".to_owned()),
        ..GraphTask::plain(0, CoreKind::AIC)
    };
    graph
}

#[test]
fn the_shape_of_a_task_is_described() {
    let graph = shaped();
    let dot = graph.dot();
    let label =
        r#"mat<mul> + add + add #1\n8 blocks at once\npriority urgent\nif tensor 1 'n'[2] > 0"#;
    let line = format!("  t1 [label=\"{label}\", shape=octagon, peripheries=2, style=dashed];");
    assert!(dot.lines().any(|found| found == line), "{line} in\n{dot}");
    let json = graph.json();
    let expected = serde_json::json!({
        "kernel": "mat<mul>", "func_id": 0, "kind": "aic", "mix": ["add", "add"], "blocks": 8,
        "start": "sync", "priority": "urgent", "when": "tensor 1 'n'[2] > 0",
    });
    assert_eq!(json["tasks"][1], expected);
    let plain = serde_json::json!({ "kernel": "mat<mul>", "func_id": 0, "kind": "aic" });
    assert_eq!(json["tasks"][0], plain, "and nothing else");
    let svg = picture(&graph).unwrap();
    for part in [
        "mat&lt;mul&gt; + add + add #1 (aic), 8 blocks at once, priority urgent, if tensor 1",
        "stroke-dasharray",
        "opacity=\".45\"",
        "\u{25B2}</text>",
        "strips: kernels on vector cores of its cluster; shadow: several blocks; dashed:",
    ] {
        assert!(svg.contains(part), "{part} in\n{svg}");
    }
    assert_eq!(
        svg.matches("<rect").count(),
        1 + 3 + 3 + 2,
        "paper, tasks, shadow and strips, legend"
    );
    let plain = picture(&self::graph(3, &[])).unwrap();
    assert!(!plain.contains("shadow") && !plain.contains("dash"));
}

#[test]
fn what_starts_at_once_alone_says_so() {
    let mut task = GraphTask::plain(0, CoreKind::AIV);
    assert!(task.is_plain() && task.details().is_empty());
    task.start = StartMode::SYNC;
    assert_eq!(task.details(), ["starts at once"]);
    (task.blocks, task.start, task.priority) = (3, StartMode::SPREAD, Priority::LOW);
    assert_eq!(task.details(), ["3 blocks", "priority low"]);
}

#[test]
fn names_of_tasks_are_shown_everywhere() {
    let mut graph = graph(3, &[(0, 1), (1, 2)]);
    graph.tasks[1].name = Some("the upper <half>".to_owned());
    graph.tasks[2].name = Some("a name of more letters than a task has room for".to_owned());
    let svg = picture(&graph).unwrap();
    assert!(svg.contains(">the upper &lt;half&gt;</text>"), "{svg}");
    assert!(svg.contains("<title>the upper &lt;half&gt;: add #1 (aiv)</title>"), "{svg}");
    assert!(
        svg.contains(">a name of more lett\u{2026}</text>") && svg.contains(">0</text>"),
        "{svg}"
    );
    assert!(graph.dot().contains("[label=\"the upper <half>: add #1\""), "{}", graph.dot());
    assert_eq!(graph.json()["tasks"][1]["name"], "the upper <half>");
    assert!(graph.json()["tasks"][0].get("name").is_none());
    assert!(page(&graph).unwrap().contains("the upper \\u003chalf>"));
}

/// A chain, and an edge from each of its tasks to the last one.
fn to_the_last(tasks: u32) -> Vec<(u32, u32)> {
    let chain = (1..tasks).map(|slot| (slot - 1, slot));
    chain.chain((0..tasks - 2).map(|slot| (slot, tasks - 1))).collect()
}

/// Edges that pass a layer take little room, and those of one producer share it.
#[test]
fn a_picture_is_as_wide_as_its_tasks() {
    let layout = GraphLayout::of(&graph(12, &to_the_last(12))).unwrap();
    assert_eq!(layout.layers, 12);
    assert!((layout.columns - 2.0).abs() < 1e-9, "a task and ten edges: {}", layout.columns);
    let fan: Vec<_> =
        (1..12).map(|slot| (slot - 1, slot)).chain((2..12).map(|slot| (0, slot))).collect();
    let layout = GraphLayout::of(&graph(12, &fan)).unwrap();
    assert!((layout.columns - 1.1).abs() < 1e-9, "a task and one dummy node: {}", layout.columns);
    assert_eq!(layout.edges.last().map(Vec::len), Some(12), "it still passes every layer");
}

#[test]
fn a_page_holds_graphs_that_are_too_large_for_a_picture() {
    let tasks = u32::try_from(MAX_DRAWN_TASKS).unwrap() + 1;
    assert!(page(&graph(tasks, &[])).is_ok());
    let large = graph(2000, &to_the_last(2000));
    let layout = GraphLayout::of_any(&large).unwrap();
    assert!(layout.straight && layout.edges.iter().all(|path| path.len() == 2));
    let page = page(&large).unwrap();
    assert!(page.contains("\"straight\":true") && !page.contains("https://"));
    assert_eq!(super::page(&graph(2, &[(0, 1), (1, 0)])), Err(GraphError::Cycle(0)));
}

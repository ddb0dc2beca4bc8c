//! A graph as an interactive page: of a large one, it shows more the nearer one looks. `view/graph/` holds its parts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::layout::GraphLayout;
use super::{Graph, GraphError};
use crate::timeline::graph::task::GraphTask;
use crate::timeline::svg::COLOURS;

const FRAME: &str = include_str!("../view/graph/page.html");
/// In the order in which they run.
const SCRIPTS: [&str; 4] = [
    include_str!("../view/graph/drawing.js"),
    include_str!("../view/graph/paint.js"),
    include_str!("../view/graph/input.js"),
    include_str!("../view/graph/main.js"),
];

/// What the script reads.
#[derive(Serialize)]
struct GraphData<'a> {
    name: &'a str,
    kernels: &'a BTreeMap<u16, String>,
    colours: &'a [&'static str],
    layers: usize,
    columns: f64,
    straight: bool,
    tasks: Vec<ShownTask<'a>>,
    edges: Vec<ShownEdge>,
}

#[derive(Serialize)]
struct ShownTask<'a> {
    column: f64,
    layer: usize,
    func: u16,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    mix: &'a [u16],
    #[serde(skip_serializing_if = "is_one")]
    blocks: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    perhaps: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<String>,
}

/// Producer, consumer, and the columns that the edge passes between them, a layer each.
#[derive(Serialize)]
struct ShownEdge(u32, u32, Vec<f64>);

/// The page.
///
/// # Errors
/// `Cycle`.
pub fn page(graph: &Graph) -> Result<String, GraphError> {
    let layout = GraphLayout::of_any(graph)?;
    let tasks = layout.tasks.iter().zip(&graph.tasks);
    let edges = graph.edges.iter().zip(&layout.edges);
    let shown = GraphData {
        name: &graph.name,
        kernels: &graph.kernels,
        colours: &COLOURS,
        layers: layout.layers,
        columns: layout.columns,
        straight: layout.straight,
        tasks: tasks.map(|(position, task)| ShownTask::of(*position, task)).collect(),
        edges: edges
            .map(|(edge, path)| ShownEdge(edge.producer, edge.consumer, passed(path)))
            .collect(),
    };
    Ok(crate::timeline::page::page(FRAME, &SCRIPTS, &format!("{}: graph", graph.name), &shown))
}

fn passed(path: &[(f64, usize)]) -> Vec<f64> {
    let between = path.get(1..path.len() - 1).unwrap_or_default();
    between.iter().map(|(column, _)| rounded(*column)).collect()
}

/// To a hundredth of a column: a page has many of them.
fn rounded(column: f64) -> f64 {
    (column * 100.0).round() / 100.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(blocks: &u32) -> bool {
    *blocks == 1
}

impl<'a> ShownTask<'a> {
    fn of((column, layer): (f64, usize), task: &'a GraphTask) -> Self {
        Self {
            column: rounded(column),
            layer,
            func: task.func_id,
            kind: task.kind.name(),
            name: task.name.as_deref(),
            mix: &task.mix,
            blocks: task.blocks,
            perhaps: task.when.is_some(),
            details: task.details(),
        }
    }
}

//! A graph itself, without a run: as SVG (a layered layout), as Graphviz DOT, as JSON.

mod layout;
mod svg;
mod task;

use std::collections::BTreeMap;
use std::fmt::Write;

use pto_abi::CoreKind;

use crate::model::{Edge, Neighbours};

pub use svg::picture;
pub use task::GraphTask;

/// Tasks of a graph that is drawn, at most.
pub const MAX_DRAWN_TASKS: usize = 3_000;
/// Tasks, and places where edges cross a layer, at most.
pub const MAX_DRAWN_PLACES: usize = 60_000;

/// A graph of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// What it is called.
    pub name: String,
    /// The tasks, in the order in which they were added.
    pub tasks: Vec<GraphTask>,
    /// The kernel of each func id.
    pub kernels: BTreeMap<u16, String>,
    /// The edges; both ends are places in `tasks`.
    pub edges: Vec<Edge>,
}

/// Why a graph is not drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Nobody could read it.
    #[error(
        "a graph of {tasks} tasks and {edges} edges is too large to be drawn: up to {MAX_DRAWN_TASKS} tasks are, \
         and {MAX_DRAWN_PLACES} places where edges cross a layer; choose a smaller size with --param, or write it \
         with --dot or --json"
    )]
    TooLarge {
        /// Its tasks.
        tasks: usize,
        /// Its edges.
        edges: usize,
    },
    /// Layers need an order.
    #[error(
        "the graph has a cycle through task {0}: it cannot be drawn in layers, and cannot be run"
    )]
    Cycle(u32),
}

impl Graph {
    pub(crate) fn kernel(&self, func_id: u16) -> String {
        self.kernels.get(&func_id).cloned().unwrap_or_else(|| format!("func {func_id}"))
    }

    /// The producers of each task.
    #[must_use]
    pub fn producers(&self) -> Neighbours {
        let pairs = self.edges.iter().map(|edge| (edge.consumer, edge.producer));
        Neighbours::new(self.tasks.len(), pairs)
    }

    /// The consumers of each task.
    #[must_use]
    pub fn consumers(&self) -> Neighbours {
        let pairs = self.edges.iter().map(|edge| (edge.producer, edge.consumer));
        Neighbours::new(self.tasks.len(), pairs)
    }

    /// For Graphviz.
    #[must_use]
    pub fn dot(&self) -> String {
        // A quoted identifier of DOT: JSON's escapes of quotes and backslashes are its own.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut dot = format!("digraph {} {{\n  rankdir=TB;\n", quoted(&self.name));
        for (slot, task) in self.tasks.iter().enumerate() {
            let (first, more) = self.told(slot, task);
            let label = quoted(&[&[first], &more[..]].concat().join("\n"));
            let shape = match task.kind {
                _ if !task.mix.is_empty() => "octagon",
                CoreKind::AIC => "box",
                _ => "ellipse",
            };
            let several = if task.blocks > 1 { ", peripheries=2" } else { "" };
            let perhaps = if task.when.is_some() { ", style=dashed" } else { "" };
            // Writing to a string does not fail.
            let _ = writeln!(dot, "  t{slot} [label={label}, shape={shape}{several}{perhaps}];");
        }
        for edge in &self.edges {
            let _ = writeln!(dot, "  t{} -> t{};", edge.producer, edge.consumer);
        }
        dot + "}\n"
    }

    /// For programs: name, tasks with kernel, kind and shape, edges as pairs of places.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let edges: Vec<_> = self.edges.iter().map(|edge| [edge.producer, edge.consumer]).collect();
        serde_json::json!({
            "name": self.name,
            "tasks": self.tasks.iter().map(|task| self.task_json(task)).collect::<Vec<_>>(),
            "edges": edges,
        })
    }
}

#[cfg(test)]
mod tests;

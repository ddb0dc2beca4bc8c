//! A graph itself, without a run: as SVG (a layered layout), as an interactive page, as Graphviz DOT, as JSON.
//!
//! Why it is so: `docs/decisions/timelines.md`.

mod layout;
mod page;
mod svg;
mod task;

use std::collections::BTreeMap;
use std::fmt::Write;

use pto_abi::CoreKind;
use pto_graph::{Priority, StartMode};

use crate::timeline::model::{Edge, Neighbours};

pub use page::page;
pub use svg::picture;
pub use task::GraphTask;

/// Tasks of a graph that is drawn, at most.
pub const MAX_DRAWN_TASKS: usize = 3_000;
/// Nodes of a layout, at most: tasks, and points where edges cross a layer.
pub const MAX_DRAWN_NODES: usize = 60_000;

/// A graph of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// What it is called.
    pub name: String,
    /// The tasks, in the order in which they were added.
    pub tasks: Vec<GraphTask>,
    /// The kernel of each func id.
    pub kernels: BTreeMap<u16, String>,
    /// The edges; both ends are indices into `tasks`.
    pub edges: Vec<Edge>,
}

/// Why a graph is not drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The graph is too large to read.
    #[error(
        "a graph of {tasks} tasks and {edges} edges is too large for a picture, which has up to {MAX_DRAWN_TASKS} tasks \
         and {MAX_DRAWN_NODES} points where edges cross a layer; write an interactive page with --html, choose a \
         smaller size with --param, or write it with --dot or --json"
    )]
    TooLarge {
        /// The graph's number of tasks.
        tasks: usize,
        /// The graph's number of edges.
        edges: usize,
    },
    /// Layers need an order.
    #[error(
        "the graph has a cycle through task {0}: it cannot be drawn in layers, and cannot be run"
    )]
    Cycle(u32),
}

impl Graph {
    pub(crate) fn too_large(&self) -> GraphError {
        GraphError::TooLarge { tasks: self.tasks.len(), edges: self.edges.len() }
    }

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
            let (first, more) = self.describe(slot, task);
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

    /// For programs: name, tasks with kernel, kind and shape, edges as pairs of indices.
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

impl Graph {
    /// The name, the kernels and the number of a task, and what else it is; the first line, and the others.
    fn describe(&self, slot: usize, task: &GraphTask) -> (String, Vec<String>) {
        let kernels: Vec<_> =
            [task.func_id].iter().chain(&task.mix).map(|func| self.kernel(*func)).collect();
        let name = task.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let mut details = task.details();
        if !task.chain.is_empty() {
            let times = |(func, times): &(u16, u32)| format!("{times} x {}", self.kernel(*func));
            let links: Vec<_> = task.chain.iter().map(times).collect();
            details.insert(0, format!("chain: {}", links.join(", ")));
        }
        (format!("{name}{} #{slot}", kernels.join(" + ")), details)
    }

    /// A task for programs: kernel and kind, and of its shape what is not plain.
    fn task_json(&self, task: &GraphTask) -> serde_json::Value {
        let mut fields = serde_json::Map::new();
        let mut put = |name: &str, value: serde_json::Value| fields.insert(name.to_owned(), value);
        if let Some(name) = &task.name {
            put("name", serde_json::json!(name));
        }
        put("kernel", serde_json::json!(self.kernel(task.func_id)));
        put("func_id", serde_json::json!(task.func_id));
        put("kind", serde_json::json!(task.kind.name()));
        if !task.mix.is_empty() {
            put("mix", task.mix.iter().map(|func| self.kernel(*func)).collect());
        }
        if !task.chain.is_empty() {
            let link = |(func, times): &(u16, u32)| serde_json::json!({ "kernel": self.kernel(*func), "times": times });
            put("chain", task.chain.iter().map(link).collect());
        }
        if task.blocks != 1 {
            put("blocks", serde_json::json!(task.blocks));
        }
        if task.start != StartMode::SPREAD {
            put("start", serde_json::json!(task.start.name()));
        }
        if task.priority != Priority::NORMAL {
            put("priority", serde_json::json!(task.priority.name()));
        }
        if let Some(when) = &task.when {
            put("when", serde_json::json!(when));
        }
        serde_json::Value::Object(fields)
    }
}

#[cfg(test)]
mod tests;

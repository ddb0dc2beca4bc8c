//! A task of a graph, and how it is told: its kernels, and what it is beyond one kernel on one core.

use pto_abi::CoreKind;
use pto_graph::{Priority, StartMode};
use serde_json::{Map, Value, json};

use super::Graph;

/// A task of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTask {
    /// Which kernel.
    pub func_id: u16,
    /// Which cores it runs on.
    pub kind: CoreKind,
    /// Kernels on vector cores of the same cluster.
    pub mix: Vec<u16>,
    /// How many blocks.
    pub blocks: u32,
    /// How they start.
    pub start: StartMode,
    /// Which of several ready tasks goes first.
    pub priority: Priority,
    /// Its predicate, for people.
    pub when: Option<String>,
}

impl GraphTask {
    /// One kernel on one core.
    #[must_use]
    pub const fn plain(func_id: u16, kind: CoreKind) -> Self {
        let (start, priority) = (StartMode::SPREAD, Priority::NORMAL);
        Self { func_id, kind, mix: Vec::new(), blocks: 1, start, priority, when: None }
    }

    /// Whether it is [`plain`](Self::plain).
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::plain(self.func_id, self.kind)
    }

    /// What it is beyond one kernel on one core, a line each.
    pub(super) fn details(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match (self.blocks, self.start) {
            (1, StartMode::SYNC) if self.mix.is_empty() => lines.push("starts at once".to_owned()),
            (1, _) => {}
            (blocks, StartMode::SYNC) => lines.push(format!("{blocks} blocks at once")),
            (blocks, _) => lines.push(format!("{blocks} blocks")),
        }
        if self.priority != Priority::NORMAL {
            lines.push(format!("priority {}", self.priority));
        }
        lines.extend(self.when.as_ref().map(|when| format!("if {when}")));
        lines
    }
}

impl Graph {
    /// The kernels of a task, its number, and what else it is; the first line, and the others.
    pub(super) fn told(&self, slot: usize, task: &GraphTask) -> (String, Vec<String>) {
        let kernels: Vec<_> =
            [task.func_id].iter().chain(&task.mix).map(|func| self.kernel(*func)).collect();
        (format!("{} #{slot}", kernels.join(" + ")), task.details())
    }

    /// A task for programs: kernel and kind, and of its shape what is not plain.
    pub(super) fn task_json(&self, task: &GraphTask) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("kernel", json!(self.kernel(task.func_id)));
        put("func_id", json!(task.func_id));
        put("kind", json!(task.kind.name()));
        if !task.mix.is_empty() {
            put("mix", task.mix.iter().map(|func| self.kernel(*func)).collect());
        }
        if task.blocks != 1 {
            put("blocks", json!(task.blocks));
        }
        if task.start != StartMode::SPREAD {
            put("start", json!(task.start.name()));
        }
        if task.priority != Priority::NORMAL {
            put("priority", json!(task.priority.name()));
        }
        if let Some(when) = &task.when {
            put("when", json!(when));
        }
        Value::Object(fields)
    }
}

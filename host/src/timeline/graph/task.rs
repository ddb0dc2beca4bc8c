//! A task of a graph, and its description: its kernels, and what it is beyond one kernel on one core.

use pto_abi::CoreKind;
use pto_graph::{Priority, StartMode};
/// A task of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTask {
    /// What its author calls it, if anything.
    pub name: Option<String>,
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
    /// The task's predicate, for people.
    pub when: Option<String>,
    /// The kernels of a chain: func ids, and how often each runs in a row; empty: it is one kernel.
    pub chain: Vec<(u16, u32)>,
}

impl GraphTask {
    /// One kernel on one core.
    #[must_use]
    pub const fn plain(func_id: u16, kind: CoreKind) -> Self {
        let (start, priority) = (StartMode::SPREAD, Priority::NORMAL);
        let mix = Vec::new();
        Self {
            name: None,
            func_id,
            kind,
            mix,
            blocks: 1,
            start,
            priority,
            when: None,
            chain: Vec::new(),
        }
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

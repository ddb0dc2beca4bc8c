//! How tasks go to workers.

use super::expr::Expr;

/// What chooses the worker of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Workers in turn.
    RoundRobin,
    /// The worker `key % workers`: tasks with equal keys meet.
    Affinity(Expr),
    /// The worker `key % workers`.
    Hash(Expr),
    /// The worker `key % workers`, by a function of the task.
    By(Expr),
    /// Idle workers take work; on the `v9` clock the same as in turn.
    WorkSteal,
}

impl Dispatch {
    /// The name in texts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::Affinity(_) => "affinity",
            Self::Hash(_) => "hash",
            Self::By(_) => "by",
            Self::WorkSteal => "work_steal",
        }
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> Option<&Expr> {
        match self {
            Self::Affinity(key) | Self::Hash(key) | Self::By(key) => Some(key),
            Self::RoundRobin | Self::WorkSteal => None,
        }
    }
}

/// What happens when the window is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowMode {
    /// Wait for the task that ends first.
    Stall,
    /// End with an error.
    Abort,
    /// Go on, and count.
    Benchmark,
}

impl WindowMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stall, Self::Abort, Self::Benchmark];

    /// The name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stall => "stall",
            Self::Abort => "abort",
            Self::Benchmark => "benchmark",
        }
    }
}

/// How many tasks may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Tasks; 0: any number.
    pub tasks: u64,
    /// What happens when it is full.
    pub mode: WindowMode,
}

impl Default for Window {
    fn default() -> Self {
        Self { tasks: 8192, mode: WindowMode::Stall }
    }
}

/// How tasks go to workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// What chooses the worker.
    pub dispatch: Dispatch,
    /// How many workers; at least 1.
    pub workers: u64,
    /// How many tasks may be under way.
    pub window: Window,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { dispatch: Dispatch::RoundRobin, workers: 1, window: Window::default() }
    }
}

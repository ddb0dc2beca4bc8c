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
    /// The stream `key % workers`, whose tasks run one after the other.
    Stream(Expr),
    /// Streams in turn.
    Streams,
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
            Self::Stream(_) => "stream",
            Self::Streams => "streams",
        }
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> Option<&Expr> {
        match self {
            Self::Affinity(key) | Self::Hash(key) | Self::By(key) | Self::Stream(key) => Some(key),
            Self::RoundRobin | Self::WorkSteal | Self::Streams => None,
        }
    }

    /// Whether a worker runs its tasks one after the other, however many cores it has.
    #[must_use]
    pub const fn is_in_order(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Streams)
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
pub struct TaskWindow {
    /// Tasks; 0: any number.
    pub tasks: u64,
    /// What happens when it is full.
    pub mode: WindowMode,
}

impl Default for TaskWindow {
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
    pub window: TaskWindow,
    /// Which ready task goes first: the one with the lowest number. Devices have it; the `v9` clock has no ready tasks.
    pub priority: Option<Expr>,
    /// Tasks that are issued together; 0: each at once. Devices have it.
    pub batch: u64,
    /// Tasks that are there before the first one starts; 0: it starts at once. Devices have it.
    pub start: u64,
}

impl Schedule {
    /// What the `v9` clock has no meaning for; `None`: nothing.
    #[must_use]
    pub const fn beyond_v9(&self) -> Option<&'static str> {
        match self {
            Self { priority: Some(_), .. } => Some("priority"),
            Self { batch: 1.., .. } => Some("batch"),
            Self { start: 1.., .. } => Some("start"),
            _ => None,
        }
    }
}

impl Default for Schedule {
    fn default() -> Self {
        let (dispatch, window) = (Dispatch::RoundRobin, TaskWindow::default());
        Self { dispatch, workers: 1, window, priority: None, batch: 0, start: 0 }
    }
}

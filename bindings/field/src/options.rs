//! How a program is run.

use pto_host::RunOptions;

/// Which tasks wait for which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeRule {
    /// Ours: a task also waits for the tasks that read what it writes, and for those that write it.
    #[default]
    Ours,
    /// The field's: a task waits for the tasks that write what it reads. Nothing waits for readers.
    Theirs,
}

/// Sizes of the rings; 0: ours, which are ample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// Tasks that may be alive.
    pub window: u32,
    /// Bytes of each heap.
    pub heap_bytes: u64,
    /// Edges beyond those that are kept with their tasks.
    pub edges: u64,
}

/// The limits of the field's rings. Tasks of open scopes fill its windows; they do not fill ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TheirLimits {
    /// Tasks that each of the four rings holds, and one more.
    pub window: u32,
    /// Edges to one task beyond its first 64.
    pub dep_pool: u32,
}

/// What of a run is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    /// Tasks, edges and scopes.
    pub graph: bool,
    /// When which kernel ran where.
    pub spans: bool,
    /// Arguments: 0 none, 1 those that the program marks, 2 all, 3 all, and the contents of those that it marks.
    pub arguments: u8,
}

impl Keeps {
    /// Whether anything is kept.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::default()
    }
}

/// How a call is run.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// As every run: AICPU instances, budgets, recording.
    pub run: RunOptions,
    /// Sizes of the rings.
    pub rings: Rings,
    /// Which tasks wait for which.
    pub edges: EdgeRule,
    /// Says where the field's runtime would do something else: where the two rules differ, which is a race in the program; what a recorded graph
    /// would keep; what its rings do not hold. Costs a second look at every argument.
    pub compares_rules: bool,
    /// Says which kernels write parts of one line of 64 bytes at the same time. The tensors of a task are compared before and after each
    /// kernel, so that one kernel at a time must run.
    pub finds_shared_lines: bool,
    /// Fails the programs that do not fit these limits of the field; `None`: what fits ours runs.
    pub their_limits: Option<TheirLimits>,
    /// What of the run is kept for files.
    pub keeps: Keeps,
    /// Kernels wait for what is written from outside of the run: by other devices, or by the host. Where one OS thread runs several cores, a run
    /// whose kernels all wait ends at once unless this is set.
    pub waits_for_outside: bool,
    /// Messages of the program that are kept: those up to this level.
    pub log_level: i32,
}

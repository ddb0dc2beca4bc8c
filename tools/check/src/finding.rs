//! What a check found.

use std::fmt;

use serde::Serialize;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Tasks wait for each other.
    Cycle,
    /// An edge names a task that is not there, or not there yet.
    UnknownTask,
    /// A task waits for itself.
    SelfEdge,
    /// A task names a kernel that is not there, or that takes something else.
    Kernel,
    /// The runtime refuses a step.
    Refused,
    /// Two accesses to the same bytes, one of which writes, and no order between them.
    Race,
    /// A ring is too small for the program.
    Ring,
    /// Tensors that the runtime takes for disjoint have bytes in common.
    Alias,
    /// A tensor of the heap is read before anything writes it.
    ReadBeforeWrite,
    /// A tensor of the heap is written, and nothing reads it.
    NeverRead,
    /// A tensor of the heap that no task uses.
    NeverUsed,
    /// A view is smaller than what the kernel touches.
    NarrowView,
}

impl Kind {
    /// Whether the program can still be right.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::Alias
                | Self::ReadBeforeWrite
                | Self::NeverRead
                | Self::NeverUsed
                | Self::NarrowView
        )
    }

    /// Its name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::UnknownTask => "unknown_task",
            Self::SelfEdge => "self_edge",
            Self::Kernel => "kernel",
            Self::Refused => "refused",
            Self::Race => "race",
            Self::Ring => "ring",
            Self::Alias => "alias",
            Self::ReadBeforeWrite => "read_before_write",
            Self::NeverRead => "never_read",
            Self::NeverUsed => "never_used",
            Self::NarrowView => "narrow_view",
        }
    }
}

/// One thing that is wrong, or looks wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// Tasks concerned, by id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<u32>,
    /// Of a race: the argument of each task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<u32>,
    /// The tensor concerned, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<u32>,
    /// Bytes of the tensor that both accesses of a race touch: the first ones, and the byte after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[u64; 2]>,
    /// The fault that a run would end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
    /// The line of the file; 0: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: usize,
    /// What, where, and what to do.
    pub message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(line: &usize) -> bool {
    *line == 0
}

impl Finding {
    /// A task, by its id and its line in the file, gives its kernel what that cannot take.
    #[must_use]
    pub fn of_kernel(task: u32, line: usize, message: impl Into<String>) -> Self {
        Self::new(Kind::Kernel, message).line(line).tasks([task])
    }

    /// A view of a workload that is not what its kernel takes.
    #[must_use]
    pub fn of_view(message: String) -> Self {
        Self::new(Kind::NarrowView, message)
    }

    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            tasks: Vec::new(),
            arguments: Vec::new(),
            tensor: None,
            bytes: None,
            fault: None,
            line: 0,
            message: message.into(),
        }
    }

    pub(crate) fn line(self, line: usize) -> Self {
        Self { line, ..self }
    }

    pub(crate) fn tasks(self, tasks: impl IntoIterator<Item = u32>) -> Self {
        Self { tasks: tasks.into_iter().collect(), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.message)
    }
}

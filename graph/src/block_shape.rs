//! Block shapes: how many cores of which kinds a task takes at once, and which ready task goes first.
//!
//! What else a task may say of itself is in [`TensorTask`](crate::TensorTask).

use pto_abi::closed_set;
use pto_abi::ids::FuncId;
use pto_abi::limits::PRIORITY_LEVELS;

use crate::predicate::Predicate;

closed_set! {
    /// Which ready task goes first: by priority, then by the time at which it became ready.
    pub struct Priority(u8) {
        /// When nothing else wants the core.
        LOW = 0, "low";
        /// What a task has that asks for nothing else.
        NORMAL = 1, "normal";
        /// Before those of normal priority.
        HIGH = 2, "high";
        /// Before all others.
        URGENT = 3, "urgent";
    }
}

const _: () =
    assert!(Priority::ALL.len() == PRIORITY_LEVELS as usize, "the board has a level for each");

closed_set! {
    /// How the blocks of a task start.
    pub struct StartMode(u8) {
        /// Each as a core becomes free for it.
        SPREAD = 0, "spread";
        /// All at once, when there is a free core for each.
        SYNC = 1, "sync";
    }
}

/// What a task is beyond one kernel on one core.
#[derive(Clone, Copy, Debug)]
pub struct BlockShape<'a> {
    vectors: &'a [FuncId],
    when: Option<&'a Predicate<'a>>,
    blocks: u32,
    priority: Priority,
    start: StartMode,
    is_plain: bool,
    is_transfer: bool,
}

impl<'a> BlockShape<'a> {
    /// One kernel on one core, whenever it is ready.
    pub const PLAIN: Self = Self {
        vectors: &[],
        when: None,
        blocks: 1,
        priority: Priority::NORMAL,
        start: StartMode::SPREAD,
        is_plain: true,
        is_transfer: false,
    };

    /// Whether it is [`PLAIN`](Self::PLAIN).
    #[must_use]
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether the transfer engine does it, and no core.
    #[must_use]
    pub const fn is_transfer(&self) -> bool {
        self.is_transfer
    }

    /// Kernels that run on vector cores in addition to the task's own kernel.
    #[must_use]
    pub const fn vectors(&self) -> &'a [FuncId] {
        self.vectors
    }

    /// What it depends on whether the task runs.
    #[must_use]
    pub const fn when(&self) -> Option<&'a Predicate<'a>> {
        self.when
    }

    /// How many blocks.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Which of several ready tasks goes first.
    #[must_use]
    pub const fn priority(&self) -> Priority {
        self.priority
    }

    /// How the blocks start.
    #[must_use]
    pub const fn start(&self) -> StartMode {
        self.start
    }

    /// Lets the transfer engine do the task.
    #[must_use]
    pub(crate) const fn with_transfer(mut self) -> Self {
        self.is_transfer = true;
        self.is_plain = false;
        self
    }

    /// Adds kernels that run on vector cores in addition to the task's own kernel.
    #[must_use]
    #[inline]
    pub(crate) const fn with_vectors(mut self, vectors: &'a [FuncId]) -> Self {
        self.vectors = vectors;
        self.is_plain &= vectors.is_empty();
        self
    }

    /// Sets the number of blocks.
    #[must_use]
    #[inline]
    pub(crate) const fn with_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks;
        self.is_plain &= blocks == 1;
        self
    }

    /// Starts all blocks at once.
    #[must_use]
    #[inline]
    pub(crate) const fn with_sync_start(mut self) -> Self {
        self.start = StartMode::SYNC;
        self.is_plain = false;
        self
    }

    /// Executes the task only if `predicate` is true.
    #[must_use]
    #[inline]
    pub(crate) const fn with_predicate(mut self, predicate: &'a Predicate<'a>) -> Self {
        self.when = Some(predicate);
        self.is_plain = false;
        self
    }

    /// Sets the priority.
    #[must_use]
    #[inline]
    pub(crate) const fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self.is_plain &= priority.get() == Priority::NORMAL.get();
        self
    }
}

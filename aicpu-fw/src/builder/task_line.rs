//! The one writer of a task's line, for all builders.

use pto_abi::TaskId;
use pto_abi::kinds::TaskState;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::{NO_CHUNK, Task, UNPUBLISHED};

/// The block context behind a task's arguments: block number in the low half, how many in the high one.
pub(crate) const BLOCK_0_OF_1: u64 = 1 << 32;

/// What the line of a task is to say.
pub(crate) struct TaskLine {
    pub(crate) func_id: u16,
    /// A `CoreKind`, and `SHAPED`.
    pub(crate) kind: u8,
    pub(crate) args: u8,
    pub(crate) kernel: u64,
    /// Where its arguments stand.
    pub(crate) payload: u32,
    pub(crate) producers: u32,
    /// How many there are already.
    pub(crate) consumers: u32,
    /// Whether its producers release it, without a publish.
    pub(crate) is_published: bool,
}

impl TaskLine {
    /// The line of a task without edges that is to be published.
    #[inline]
    pub(crate) const fn added(
        func_id: u16,
        kind: u8,
        (payload, args): (u32, u8),
        kernel: u64,
    ) -> Self {
        let (producers, consumers, is_published) = (0, 0, false);
        Self { func_id, kind, args, kernel, payload, producers, consumers, is_published }
    }

    /// Writes the line of a task that nobody looks at yet.
    #[inline]
    pub(crate) fn write(self, task: &Task, id: TaskId) {
        let (fanin, state) = match self.is_published {
            true => (self.producers, TaskState::PUBLISHED),
            false => (UNPUBLISHED, TaskState::ADDED),
        };
        task.fanin.store(fanin, Relaxed);
        task.fanout.store(self.consumers, Relaxed);
        task.state.store(state.get(), Relaxed);
        task.func_id.store(self.func_id, Relaxed);
        task.edges_in.store(self.producers, Relaxed);
        task.kernel.store(self.kernel, Relaxed);
        task.payload.store(self.payload, Relaxed);
        task.arg_count.store(self.args, Relaxed);
        task.kind.store(self.kind, Relaxed);
        task.generation.store(id.generation, Relaxed);
        task.last_chunk.store(NO_CHUNK, Relaxed);
    }
}

//! The one writer of a task's line, for all builders.

use pto_abi::TaskId;
use pto_abi::kinds::TaskState;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::{NO_CHUNK, Task, UNPUBLISHED};

/// The block context that follows a task's arguments: block number in the low half, how many in the high one.
pub(crate) const BLOCK_0_OF_1: u64 = 1 << 32;

/// The generation with which a run begins that reuses its slots; each reuse takes the next one. No function of 32 bits keeps all generations of all runs apart. This one, a
/// multiple of the golden ratio, spreads the beginnings: those of two runs that are `d` apart, up to 65,536, are at least `2^29 / d` apart, in both directions. A program that
/// keeps an id for longer than that may take a task of this run for its own. It then waits for that task, and nothing else comes of it: the slot of an id is checked too.
pub(crate) const fn first_generation(run: u32) -> u32 {
    run.wrapping_mul(0x9E37_79B1)
}

/// What the line of a task is to say.
pub(crate) struct TaskLine {
    pub(crate) func_id: u16,
    /// A `CoreKind`, and `SHAPED`.
    pub(crate) kind: u8,
    pub(crate) args: u8,
    pub(crate) kernel: u64,
    /// The index of its first argument word.
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

    /// Writes the line of a task that no scheduler looks at yet.
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::first_generation;

    #[test]
    fn runs_begin_far_apart() {
        let begin = first_generation(u32::MAX - 7);
        for apart in 1..=1 << 16 {
            let other = first_generation((u32::MAX - 7_u32).wrapping_add(apart));
            let distance = other.wrapping_sub(begin).min(begin.wrapping_sub(other));
            assert!(distance >= (1 << 29) / apart, "{apart} runs: {distance}");
        }
    }
}

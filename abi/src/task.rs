//! The hot line of a task, and the chunks that hold a large fanout.
//!
//! ```text
//!   add_task                publish                 stage                  complete
//! NONE ------> ADDED ---------------> PUBLISHED ------------> DISPATCHED ------------> COMPLETED
//!               |  fanin = UNPUBLISHED    |  fanin = producers    |                       |
//!               |                         |  not yet complete     |                fanout |= CLOSED
//!               +-- add_edge(_, this): edges_in += 1              +-- fanin is zero
//! ```
//!
//! Who writes what: the builder writes everything until `publish`; then `fanin` belongs to the
//! completing schedulers, `fanout` and the consumer slots below its count to the builder until the task
//! completes (one builder, one completer), `state` and `core` to the scheduler that has the task.

use crate::kinds::{CoreKind, TaskState};
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, TaskLock};

/// Consumers in the task's own line; further ones go to [`EdgeChunk`]s.
pub const INLINE_CONSUMERS: usize = 5;
/// Consumers in one chunk.
pub const CHUNK_CONSUMERS: usize = 15;
/// In `fanin`: the builder has not published the task.
pub const UNPUBLISHED: u32 = 1 << 31;
/// In `fanout`: the task has completed; an edge from it is satisfied.
pub const CLOSED: u32 = 1 << 31;
/// In `kind`: the task has a block shape, of which its `BlockLine` says more; in streaming runs, and of [`TRANSFER`]s.
pub const SHAPED: u8 = 1 << 1;
/// The kind of a task that no core runs, but the transfer engine: in the line of a task, and in images, commands and recordings instead of a
/// `CoreKind`.
pub const TRANSFER: u8 = SHAPED | CoreKind::AIV.get();
/// No chunk.
pub const NO_CHUNK: u32 = u32::MAX;

shared_struct! {
    /// A task: everything a scheduler touches on the way through, in one 64-byte line. Its arguments
    /// are in the payload region, from word `payload`, followed by one word of block context.
    #[derive(Default)]
    pub struct Task [size = 64, align = 64] {
        /// Producers not yet complete; plus [`UNPUBLISHED`] until the builder publishes.
        0 => fanin: AtomicU32,
        /// Consumers appended; [`CLOSED`] when the task has completed.
        4 => fanout: AtomicU32,
        /// A `TaskState`.
        8 => state: AtomicU8,
        /// Guards `fanout` under the `locked` strategy.
        9 => lock: TaskLock,
        /// Which kernel.
        10 => func_id: AtomicU16,
        /// Producers counted so far; becomes `fanin` when the task is published.
        12 => edges_in: AtomicU32,
        /// GM address of the kernel's code.
        16 => kernel: AtomicU64,
        /// First word of the arguments in the payload region.
        24 => payload: AtomicU32,
        /// How many arguments.
        28 => arg_count: AtomicU8,
        /// A `CoreKind`, and [`SHAPED`].
        29 => kind: AtomicU8,
        /// The worker that the task was dispatched to.
        30 => core: AtomicU16,
        /// The generation of this slot.
        32 => generation: AtomicU32,
        /// First chunk of the fanout beyond the inline consumers, or [`NO_CHUNK`].
        36 => first_chunk: AtomicU32,
        /// Last chunk; the builder's own. A launch of a session has no chunks: here is the time that it may take, in
        /// microseconds, or [`NO_CHUNK`], where it has that of the run.
        40 => last_chunk: AtomicU32,
        /// The first consumers, as slots.
        44 => consumers: [AtomicU32; INLINE_CONSUMERS],
    }
}

/// The words of a task's line in front of its consumers, together with the first of these.
const HEAD_WORDS: usize = 6;

/// The line of a task without edges, as the builder writes it, in a few words: six stores instead of eleven. The lines of many
/// tasks differ only in the position of their arguments.
#[derive(Clone, Copy, Debug)]
pub struct TaskHead([u64; HEAD_WORDS]);

impl TaskHead {
    /// A task of this kernel whose state is `state`, with its arguments at `payload`.
    #[must_use]
    pub const fn new(
        state: TaskState,
        (func_id, kind, kernel): (u16, u8, u64),
        (payload, args): (u32, u8),
        generation: u32,
    ) -> Self {
        let state = state.get() as u64 | (func_id as u64) << 16;
        let args = payload as u64 | (args as u64) << 32 | (kind as u64) << 40;
        Self([UNPUBLISHED as u64, state, kernel, args, generation as u64, NO_CHUNK as u64])
    }

    /// The same with its arguments `words` further on. There are no more than 2^32 words of arguments.
    #[inline(always)]
    pub const fn advance(&mut self, words: u32) {
        self.0[3] = self.0[3].wrapping_add(words as u64);
    }

    /// Writes the line of a task that no other agent looks at yet.
    ///
    /// These words are larger than the fields in them. That is no race: schedulers and cores read the fields after the publish, which is a Release, and the slot is free
    /// again only after the completion, which the builder acquires. Only a post-mortem and a supervisor look at lines of which they know nothing, and they may do so while a
    /// builder writes here. The language defines no such pair of accesses of different sizes. On the machines that run this, x86-64 and AArch64, an aligned access is one access,
    /// so that a field is the old one or the new one, and never torn. What these readers find is reported, and decides nothing.
    #[cfg(not(any(loom, shuttle)))]
    #[inline(always)]
    pub fn write(&self, task: &Task) {
        const { assert!(cfg!(target_endian = "little"), "the first field is in the low bits") };
        // One by one: a loop over six words is not unrolled in an image that is built for size.
        let [release, state, kernel, args, generation, chunk] = self.0;
        let words = crate::gm::leading_words::<_, HEAD_WORDS>(task);
        words[0].store(release, Ordering::Relaxed);
        words[1].store(state, Ordering::Relaxed);
        words[2].store(kernel, Ordering::Relaxed);
        words[3].store(args, Ordering::Relaxed);
        words[4].store(generation, Ordering::Relaxed);
        words[5].store(chunk, Ordering::Relaxed);
    }

    /// Writes the head field by field, for loom and shuttle, whose atomics are larger than their values.
    #[cfg(any(loom, shuttle))]
    pub fn write(&self, task: &Task) {
        let [_, state, kernel, args, generation, _] = self.0;
        let [state, _, low, high, ..] = state.to_le_bytes();
        let [p0, p1, p2, p3, args, kind, ..] = args.to_le_bytes();
        let [g0, g1, g2, g3, ..] = generation.to_le_bytes();
        task.fanin.store(UNPUBLISHED, Ordering::Relaxed);
        task.fanout.store(0, Ordering::Relaxed);
        task.state.store(state, Ordering::Relaxed);
        task.func_id.store(u16::from_le_bytes([low, high]), Ordering::Relaxed);
        task.edges_in.store(0, Ordering::Relaxed);
        task.kernel.store(kernel, Ordering::Relaxed);
        task.payload.store(u32::from_le_bytes([p0, p1, p2, p3]), Ordering::Relaxed);
        task.arg_count.store(args, Ordering::Relaxed);
        task.kind.store(kind, Ordering::Relaxed);
        task.generation.store(u32::from_le_bytes([g0, g1, g2, g3]), Ordering::Relaxed);
        task.last_chunk.store(NO_CHUNK, Ordering::Relaxed);
    }
}

shared_struct! {
    /// Further consumers of a task. `next` and the consumers are valid as far as `Task::fanout` counts.
    #[derive(Default)]
    pub struct EdgeChunk [size = 64, align = 64] {
        /// The next chunk.
        0 => next: AtomicU32,
        /// Consumers, as slots.
        4 => consumers: [AtomicU32; CHUNK_CONSUMERS],
    }
}

/// Chunks that suffice for `edges` edges, wherever they go: the first chunk of a task is taken by its
/// sixth consumer, each further one by fifteen more.
#[must_use]
pub const fn chunks_for(edges: u64) -> u64 {
    edges.div_ceil(INLINE_CONSUMERS as u64 + 1)
}

/// The most edges for which so many chunks are enough.
#[must_use]
pub const fn edges_for(chunks: u64) -> u64 {
    chunks.saturating_mul(INLINE_CONSUMERS as u64 + 1)
}

//! Adding an edge while the producer may complete: the two fanout strategies.
//!
//! ```text
//! builder (one)                                scheduler (the completing one)
//! consumer -> slot `count`
//! commit: count -> count + 1, unless CLOSED    close: CLOSED is set, count is final
//!    |              |                              |
//!    Added          AlreadySatisfied               releases consumers 0 .. count
//! ```
//! Both strategies share the slots: five in the task's own line, then chunks of fifteen, linked forward.
//! They differ in how `commit` and `close` exclude each other: [`Locked`] by the producer's own lock,
//! [`LockFree`] because count and `CLOSED` are one word. There is one builder, so only `close` can come
//! between its load and its exchange.
//!
//! Why it is so: `docs/decisions/fan-out.md`.

use pto_abi::sync::{Ordering, Sharing};
use pto_abi::task::{CHUNK_CONSUMERS, CLOSED, EdgeChunk, INLINE_CONSUMERS, NO_CHUNK, Task};

/// How `commit` and `close` exclude each other.
pub trait FanoutPolicy: 'static {
    /// The name of the strategy, equal to the name in `FanoutStrategy`.
    const NAME: &'static str;

    /// The number of consumers; `None`: closed.
    fn count(task: &Task) -> Option<u32>;

    /// Whether the next consumer fits into the task's own line.
    #[inline]
    fn room_in_line(task: &Task) -> RoomInLine {
        match Self::count(task) {
            Some(count) if count < FIRST_IN_CHUNKS => RoomInLine::Slot(count),
            Some(_) => RoomInLine::Full,
            None => RoomInLine::Closed,
        }
    }

    /// Counts the consumer in slot `count`, which [`count`](Self::count) has just returned; `false`: the task has completed
    /// meanwhile.
    fn commit<S: Sharing>(task: &Task, count: u32) -> bool;

    /// Closes the fanout for good; returns how many consumers are to be released.
    fn close<S: Sharing>(task: &Task) -> u32;
}

/// What the line of a task has for its next consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomInLine {
    /// This slot, which is the number of consumers so far.
    Slot(u32),
    /// The line is full: the next consumer goes to a chunk.
    Full,
    /// The fanout is closed.
    Closed,
}

/// The reference: the producer's own lock guards its fanout.
#[derive(Clone, Copy, Debug)]
pub struct Locked;

impl FanoutPolicy for Locked {
    const NAME: &'static str = "locked";

    #[inline]
    fn count(task: &Task) -> Option<u32> {
        let fanout = task.lock.hold(|| task.fanout.load(Ordering::Relaxed));
        (fanout & CLOSED == 0).then_some(fanout)
    }

    #[inline]
    fn commit<S: Sharing>(task: &Task, count: u32) -> bool {
        task.lock.hold(|| {
            let open = task.fanout.load(Ordering::Relaxed) & CLOSED == 0;
            if open {
                task.fanout.store(count + 1, Ordering::Relaxed);
            }
            open
        })
    }

    #[inline]
    fn close<S: Sharing>(task: &Task) -> u32 {
        task.lock.hold(|| {
            let count = task.fanout.load(Ordering::Relaxed);
            task.fanout.store(count | CLOSED, Ordering::Relaxed);
            count & !CLOSED
        })
    }
}

/// The fast one: count and `CLOSED` are one word.
#[derive(Clone, Copy, Debug)]
pub struct LockFree;

impl FanoutPolicy for LockFree {
    const NAME: &'static str = "lock-free";

    #[inline]
    fn count(task: &Task) -> Option<u32> {
        // Acquire: pairs with the Release half of `close`; a builder that finds the task completed sees what it wrote.
        let fanout = task.fanout.load(Ordering::Acquire);
        (fanout & CLOSED == 0).then_some(fanout)
    }

    #[inline]
    fn room_in_line(task: &Task) -> RoomInLine {
        // Acquire: as in `count`. A closed fanout is a large number.
        match task.fanout.load(Ordering::Acquire) {
            count @ 0..FIRST_IN_CHUNKS => RoomInLine::Slot(count),
            fanout if fanout & CLOSED == 0 => RoomInLine::Full,
            _ => RoomInLine::Closed,
        }
    }

    #[inline]
    fn commit<S: Sharing>(task: &Task, count: u32) -> bool {
        if S::IS_EXCLUSIVE {
            // It has not been closed since it was counted.
            task.fanout.store(count + 1, Ordering::Relaxed);
            return true;
        }
        // Release: pairs with the Acquire half of `close`, which then reads the consumer's slot. On failure
        // the exchange acquires, as in `count`.
        S::compare_exchange_u32(&task.fanout, count, count + 1, Ordering::Release).is_ok()
    }

    #[inline]
    fn close<S: Sharing>(task: &Task) -> u32 {
        // AcqRel: Acquire pairs with the Release exchange in `commit`; Release pairs with the Acquire in
        // `count` and in a failed `commit`.
        S::fetch_or_u32(&task.fanout, CLOSED, Ordering::AcqRel) & !CLOSED
    }
}

/// Where the consumer number `count` of a task is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerSlot {
    /// In the task's own line.
    Inline(usize),
    /// In the last chunk.
    Chunk(usize),
    /// At the start of a chunk that must be linked first.
    NewChunk,
}

/// Where the consumer number `count` of a task is stored.
#[must_use]
#[inline]
pub const fn slot_of_consumer(count: u32) -> ConsumerSlot {
    let count = count as usize;
    if count < INLINE_CONSUMERS {
        return ConsumerSlot::Inline(count);
    }
    match (count - INLINE_CONSUMERS) % CHUNK_CONSUMERS {
        0 => ConsumerSlot::NewChunk,
        at => ConsumerSlot::Chunk(at),
    }
}

/// The number of the first consumer in a chunk.
#[expect(clippy::cast_possible_truncation, reason = "five")]
const FIRST_IN_CHUNKS: u32 = INLINE_CONSUMERS as u32;

/// A walk over the first `count` consumers of a task that is closed (or that no builder appends to meanwhile). It
/// can be laid down and taken up again, which keeps the release of a large fanout in bounded steps.
#[derive(Clone, Copy, Debug, Hash)]
pub struct ConsumerWalk {
    next: u32,
    count: u32,
    chunk: u32,
}

impl ConsumerWalk {
    /// A walk from the first consumer.
    #[must_use]
    #[inline]
    pub const fn new(count: u32) -> Self {
        Self { next: 0, count, chunk: NO_CHUNK }
    }

    /// A walk from the first consumer that is not in the task's own line.
    #[must_use]
    pub const fn beyond_the_line(count: u32) -> Self {
        Self { next: FIRST_IN_CHUNKS, count, chunk: NO_CHUNK }
    }

    /// The next consumer, as a slot.
    #[inline]
    pub fn next(&mut self, task: &Task, chunks: &[EdgeChunk]) -> Option<u32> {
        if self.next >= self.count {
            return None;
        }
        let index = self.next as usize;
        self.next += 1;
        match task.consumers.get(index) {
            Some(consumer) => Some(consumer.load(Ordering::Relaxed)),
            None => self.next_in_chunks(index - INLINE_CONSUMERS, task, chunks),
        }
    }

    fn next_in_chunks(&mut self, index: usize, task: &Task, chunks: &[EdgeChunk]) -> Option<u32> {
        let at = index % CHUNK_CONSUMERS;
        if at == 0 {
            self.chunk = match index {
                0 => task.first_chunk.load(Ordering::Relaxed),
                _ => chunks.get(self.chunk as usize)?.next.load(Ordering::Relaxed),
            };
        }
        let chunk = chunks.get(self.chunk as usize)?;
        chunk.consumers.get(at).map(|consumer| consumer.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{
        ConsumerSlot, ConsumerWalk, FanoutPolicy, LockFree, Locked, RoomInLine, slot_of_consumer,
    };
    use pto_abi::sync::{Concurrent, Exclusive};
    use pto_abi::task::{CHUNK_CONSUMERS, EdgeChunk, INLINE_CONSUMERS, NO_CHUNK, Task};

    fn count_then_close<F: FanoutPolicy>() {
        let task = Task::default();
        assert_eq!(F::count(&task), Some(0));
        assert!(F::commit::<Concurrent>(&task, 0));
        assert!(F::commit::<Exclusive>(&task, 1));
        assert_eq!(F::count(&task), Some(2));
        assert_eq!(F::close::<Concurrent>(&task), 2);
        assert_eq!(F::count(&task), None);
        assert!(!F::commit::<Concurrent>(&task, 2));
        assert_eq!(F::close::<Exclusive>(&task), 2, "closing again changes nothing");
    }

    #[test]
    fn a_closed_fanout_takes_nothing() {
        count_then_close::<Locked>();
        count_then_close::<LockFree>();
    }

    fn room_as_counted<F: FanoutPolicy>() {
        let task = Task::default();
        for count in 0..u32::try_from(INLINE_CONSUMERS).unwrap() {
            assert_eq!(F::room_in_line(&task), RoomInLine::Slot(count));
            assert!(F::commit::<Concurrent>(&task, count));
        }
        assert_eq!(F::room_in_line(&task), RoomInLine::Full);
        F::close::<Concurrent>(&task);
        assert_eq!(F::room_in_line(&task), RoomInLine::Closed);
    }

    #[test]
    fn a_line_has_room_for_a_few() {
        room_as_counted::<Locked>();
        room_as_counted::<LockFree>();
    }

    #[test]
    fn consumers_fill_the_line_then_chunks() {
        let line = u32::try_from(INLINE_CONSUMERS).unwrap();
        let chunk = u32::try_from(CHUNK_CONSUMERS).unwrap();
        assert_eq!(slot_of_consumer(0), ConsumerSlot::Inline(0));
        assert_eq!(slot_of_consumer(line - 1), ConsumerSlot::Inline(INLINE_CONSUMERS - 1));
        assert_eq!(slot_of_consumer(line), ConsumerSlot::NewChunk);
        assert_eq!(slot_of_consumer(line + 1), ConsumerSlot::Chunk(1));
        assert_eq!(slot_of_consumer(line + chunk - 1), ConsumerSlot::Chunk(CHUNK_CONSUMERS - 1));
        assert_eq!(slot_of_consumer(line + chunk), ConsumerSlot::NewChunk);
    }

    #[test]
    fn a_walk_ends_where_a_link_is_broken() {
        let task = Task::default();
        task.first_chunk.store(NO_CHUNK, pto_abi::sync::Ordering::Relaxed);
        let mut walk = ConsumerWalk::new(7);
        let mut seen = 0;
        while walk.next(&task, &[EdgeChunk::default()]).is_some() {
            seen += 1;
        }
        assert_eq!(seen, INLINE_CONSUMERS);
    }
}

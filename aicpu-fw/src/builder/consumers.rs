//! Where a builder puts the consumers of a task: in the task's own line, then in chunks.

use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::{EdgeChunk, NO_CHUNK, Task};

use crate::fanout::{ConsumerSlot, slot_of_consumer};

/// Writes `consumer` as number `count` of the producer's fanout, to be committed. `next_chunk` allocates a chunk; `None`: there
/// is none, and nothing was written.
#[inline]
pub(crate) fn put_consumer(
    chunks: &[EdgeChunk],
    producer: &Task,
    count: u32,
    consumer: u32,
    next_chunk: impl FnOnce() -> Option<u32>,
) -> Option<()> {
    let last = || producer.last_chunk.load(Relaxed);
    let slot = match slot_of_consumer(count) {
        ConsumerSlot::Inline(at) => producer.consumers.get(at),
        ConsumerSlot::Chunk(at) => {
            chunks.get(last() as usize).and_then(|chunk| chunk.consumers.get(at))
        }
        ConsumerSlot::NewChunk => {
            let (index, last) = (next_chunk()?, last());
            match chunks.get(last as usize).filter(|_| last != NO_CHUNK) {
                None => producer.first_chunk.store(index, Relaxed),
                Some(previous) => previous.next.store(index, Relaxed),
            }
            producer.last_chunk.store(index, Relaxed);
            chunks.get(index as usize).and_then(|chunk| chunk.consumers.first())
        }
    };
    slot.map(|slot| slot.store(consumer, Relaxed))
}

/// Whether `consumer` is the last one of the `count` that a task has.
#[inline]
pub(crate) fn is_last_consumer(
    chunks: &[EdgeChunk],
    producer: &Task,
    count: u32,
    consumer: u32,
) -> bool {
    let chunk = || chunks.get(producer.last_chunk.load(Relaxed) as usize);
    let slot = match count.checked_sub(1).map(slot_of_consumer) {
        None => None,
        Some(ConsumerSlot::Inline(at)) => producer.consumers.get(at),
        Some(ConsumerSlot::Chunk(at)) => chunk().and_then(|chunk| chunk.consumers.get(at)),
        Some(ConsumerSlot::NewChunk) => chunk().and_then(|chunk| chunk.consumers.first()),
    };
    slot.is_some_and(|slot| slot.load(Relaxed) == consumer)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{is_last_consumer, put_consumer};
    use crate::fanout::ConsumerWalk;
    use pto_abi::sync::Ordering::Relaxed;
    use pto_abi::task::{EdgeChunk, NO_CHUNK, Task};
    use std::vec::Vec;

    #[test]
    fn consumers_are_found_where_they_were_put() {
        let chunks: Vec<EdgeChunk> = (0..3).map(|_| EdgeChunk::default()).collect();
        let task = Task::default();
        task.last_chunk.store(NO_CHUNK, Relaxed);
        let mut given = 0;
        let mut put = |count: u32| {
            let next = || {
                given += 1;
                (given <= 2).then_some(3 - given)
            };
            put_consumer(&chunks, &task, count, 1000 + count, next)
        };
        for count in 0..35 {
            assert_eq!(put(count), Some(()), "{count}");
            assert!(is_last_consumer(&chunks, &task, count + 1, 1000 + count));
            assert!(!is_last_consumer(&chunks, &task, count, 1000 + count));
        }
        assert_eq!(put(35), None, "a third chunk is not given out");
        let mut walk = ConsumerWalk::new(35);
        let found: Vec<u32> = core::iter::from_fn(|| walk.next(&task, &chunks)).collect();
        assert!(found.into_iter().eq(1000..1035));
    }
}

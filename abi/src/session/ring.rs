//! The ring of a stream's commands: one producer, one consumer, no lock.
//!
//! ```text
//! producer: put      words of the entries (Relaxed), then submitted (Release)
//! consumer: accept   submitted (Acquire), then the head; word: a word of the command
//! consumer: take     taken (Release): the entries are the producer's again
//! producer: room     taken (Acquire)
//! ```
//! Invariants: `taken <= submitted <= taken + entries`; entries between `taken` and `submitted` are the consumer's, the others
//! the producer's; the number of entries is a power of two, so that a position may wrap.

use super::command::{CommandDefect, CommandHead, CommandKind, ENTRY_WORDS, INLINE_WORDS};
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

shared_struct! {
    /// The producer's line of a ring.
    #[derive(Default)]
    pub struct RingProducer [size = 64, align = 64] {
        /// Entries submitted since the stream was made.
        0 => submitted: AtomicU64,
        /// Commands submitted since the stream was made.
        8 => commands: AtomicU64,
        /// Not used; zero.
        16 => reserved: [AtomicU64; 6],
    }
}

shared_struct! {
    /// The consumer's line of a ring, which also says how far the stream is.
    #[derive(Default)]
    pub struct RingConsumer [size = 64, align = 64] {
        /// Entries taken since the stream was made.
        0 => taken: AtomicU64,
        /// Commands that are over, with or without success: all up to this number.
        8 => completed: AtomicU64,
        /// Commands that failed.
        16 => failed: AtomicU64,
        /// The number of the first command that failed since the last reset; zero: none.
        24 => first_failed: AtomicU64,
        /// The fault of that command, where it is one of the table of faults.
        32 => fault: AtomicU32,
        /// 1: the stream has stopped after a failure.
        36 => stopped: AtomicU32,
        /// Not used; zero.
        40 => reserved: [AtomicU64; 3],
    }
}

shared_struct! {
    /// An entry. The first one of a command: head, number, six words. Each further one: eight words.
    #[derive(Default)]
    pub struct CommandEntry [size = 64, align = 64] {
        /// The words.
        0 => words: [AtomicU64; ENTRY_WORDS],
    }
}

shared_struct! {
    /// An event.
    #[derive(Default)]
    pub struct EventLine [size = 64, align = 64] {
        /// The last record that is complete; zero: none.
        0 => completed: AtomicU64,
        /// When, on the clock of the session.
        8 => time_ns: AtomicU64,
        /// Not used; zero.
        16 => reserved: [AtomicU64; 6],
    }
}

impl EventLine {
    /// Everything up to this number is complete, unless more is. A waiter sees what was done before.
    pub fn complete(&self, number: u64) {
        // Release: pairs with the Acquire loads in `StreamPoll::wait`, `StreamPoll::record` and `EventCore::look_at_line`.
        // Not `fetch_max`, which ThreadSanitizer does not see.
        let further = |completed: u64| Some(completed.max(number));
        let _ = self.completed.fetch_update(Ordering::Release, Ordering::Relaxed, further);
    }
}

/// Fewest entries of a ring: the longest command must fit, and a second one.
pub const MIN_RING_ENTRIES: usize = 32;
/// Most entries of a ring.
pub const MAX_RING_ENTRIES: usize = 1 << 20;

/// A ring, as both ends see it.
#[derive(Clone, Copy)]
pub struct CommandRing<'a> {
    producer: &'a RingProducer,
    consumer: &'a RingConsumer,
    entries: &'a [CommandEntry],
}

/// There is no room for a command now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingFull;

impl<'a> CommandRing<'a> {
    /// A ring on these lines. `None`: the number of entries is not a power of two.
    #[must_use]
    pub const fn new(
        producer: &'a RingProducer,
        consumer: &'a RingConsumer,
        entries: &'a [CommandEntry],
    ) -> Option<Self> {
        if !entries.len().is_power_of_two() {
            return None;
        }
        Some(Self { producer, consumer, entries })
    }

    /// The consumer's line.
    #[must_use]
    pub const fn consumer(&self) -> &'a RingConsumer {
        self.consumer
    }

    /// Entries that are free. For the producer.
    #[must_use]
    #[inline]
    pub fn room(&self) -> u64 {
        // Acquire: pairs with the Release store of taken in `take`.
        let taken = self.consumer.taken.load(Ordering::Acquire);
        let submitted = self.producer.submitted.load(Ordering::Relaxed);
        (self.entries.len() as u64).saturating_sub(submitted.wrapping_sub(taken))
    }

    /// How many commands were submitted.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.producer.commands.load(Ordering::Relaxed)
    }

    /// Submits a command; its number. One producer at a time.
    ///
    /// # Errors
    /// `RingFull`: the consumer has to take something first; nothing was written.
    #[inline]
    pub fn put(&self, kind: CommandKind, words: &[u64]) -> Result<u64, RingFull> {
        let number = self.producer.commands.load(Ordering::Relaxed) + 1;
        let head = CommandHead { kind, words: words.len(), number };
        let entries = head.entries();
        if self.room() < entries {
            return Err(RingFull);
        }
        let first = self.producer.submitted.load(Ordering::Relaxed);
        self.set(first, 0, head.word());
        self.set(first, 1, number);
        for (index, &word) in words.iter().enumerate() {
            self.set(first, index + 2, word);
        }
        self.producer.commands.store(number, Ordering::Relaxed);
        // Release: pairs with the Acquire load of submitted in `waiting`; the consumer then sees the words.
        self.producer.submitted.store(first.wrapping_add(entries), Ordering::Release);
        Ok(number)
    }

    /// Entries from `at` on that were submitted. For the consumer.
    #[must_use]
    #[inline]
    pub fn waiting(&self, at: u64) -> u64 {
        // Acquire: pairs with the Release store of submitted in `put`.
        self.producer.submitted.load(Ordering::Acquire).wrapping_sub(at)
    }

    /// The head of the command at position `at`; `None`: nothing was submitted there. For the consumer, which looks ahead of
    /// what it has taken as far as it likes.
    #[must_use]
    #[inline]
    pub fn accept(&self, at: u64) -> Option<Result<CommandHead, CommandDefect>> {
        let submitted = self.waiting(at);
        if submitted == 0 {
            return None;
        }
        let head = CommandHead::accept(self.get(at, 0), self.get(at, 1));
        Some(head.and_then(|head| {
            let entries = head.entries();
            let fits = entries <= submitted;
            fits.then_some(head).ok_or(CommandDefect::Length { entries, submitted })
        }))
    }

    /// The head that was accepted at `at` before, without a look at what the producer writes. For the consumer.
    #[must_use]
    #[inline]
    pub fn accepted(&self, at: u64) -> Option<CommandHead> {
        CommandHead::accept(self.get(at, 0), self.get(at, 1)).ok()
    }

    /// Word `index` of the command that was accepted at `at`.
    #[must_use]
    #[inline]
    pub fn word(&self, at: u64, index: usize) -> u64 {
        self.get(at, index + 2)
    }

    /// How far the consumer has taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.consumer.taken.load(Ordering::Relaxed)
    }

    /// Gives the entries before `to` back to the producer. One consumer.
    #[inline]
    pub fn take(&self, to: u64) {
        // Release: pairs with the Acquire load of taken in `room`; what was read is read.
        self.consumer.taken.store(to, Ordering::Release);
    }

    /// Word `index` of a command counts on from its first entry: 8 words an entry.
    #[inline]
    fn entry_word(&self, at: u64, index: usize) -> Option<&'a AtomicU64> {
        let entry = at.wrapping_add((index / ENTRY_WORDS) as u64) & (self.entries.len() as u64 - 1);
        self.entries.get(usize::try_from(entry).ok()?)?.words.get(index % ENTRY_WORDS)
    }

    #[inline]
    fn set(&self, at: u64, index: usize, word: u64) {
        if let Some(target) = self.entry_word(at, index) {
            target.store(word, Ordering::Relaxed);
        }
    }

    #[inline]
    fn get(&self, at: u64, index: usize) -> u64 {
        self.entry_word(at, index).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

const _: () = assert!(INLINE_WORDS + 2 == ENTRY_WORDS);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{CommandEntry, CommandRing, RingConsumer, RingFull, RingProducer};
    use crate::session::command::{CommandDefect, CommandKind, MAX_COMMAND_WORDS};
    use crate::sync::Ordering;
    use std::vec::Vec;

    fn with_ring(
        entries: usize,
        test: impl FnOnce(CommandRing<'_>, &RingProducer, &[CommandEntry]),
    ) {
        let entries: Vec<_> = (0..entries).map(|_| CommandEntry::default()).collect();
        let (producer, consumer) = (RingProducer::default(), RingConsumer::default());
        test(CommandRing::new(&producer, &consumer, &entries).unwrap(), &producer, &entries);
    }

    #[test]
    fn commands_go_round_the_ring_whole_and_in_order() {
        with_ring(32, |ring, _, _| {
            let mut at = 0;
            for round in 1..200_u64 {
                let length = 3 + (round * 37) % (MAX_COMMAND_WORDS as u64 - 2);
                let words: Vec<u64> = (0..length).map(|index| round * 1000 + index).collect();
                assert_eq!(ring.put(CommandKind::LAUNCH, &words), Ok(round));
                let head = ring.accept(at).unwrap().unwrap();
                assert_eq!((head.kind, head.number), (CommandKind::LAUNCH, round));
                let read: Vec<u64> = (0..head.words).map(|index| ring.word(at, index)).collect();
                assert_eq!(read, words);
                at += head.entries();
                assert!(ring.accept(at).is_none());
                ring.take(at);
            }
        });
    }

    #[test]
    fn a_full_ring_takes_nothing_and_loses_nothing() {
        with_ring(32, |ring, _, _| {
            for _ in 0..32 {
                ring.put(CommandKind::RESET, &[7]).unwrap();
            }
            assert_eq!(ring.put(CommandKind::RESET, &[8]), Err(RingFull));
            assert_eq!((ring.commands(), ring.room()), (32, 0));
            ring.take(1);
            assert_eq!(ring.put(CommandKind::RESET, &[9]), Ok(33));
            assert_eq!(ring.word(32, 0), 9);
        });
    }

    #[test]
    fn what_is_no_command_is_refused() {
        with_ring(32, |ring, producer, entries| {
            ring.put(CommandKind::COPY, &[1, 2, 3]).unwrap();
            entries[0].words[0].store(77, Ordering::Relaxed);
            assert_eq!(ring.accept(0), Some(Err(CommandDefect::Kind { found: 77 })));
            entries[0].words[0].store(1 | 100 << 32, Ordering::Relaxed);
            let defect = CommandDefect::Length { entries: 13, submitted: 1 };
            assert_eq!(ring.accept(0), Some(Err(defect)));
            producer.submitted.store(13, Ordering::Relaxed);
            assert!(ring.accept(0).unwrap().is_ok());
        });
    }

    #[test]
    fn a_ring_has_a_power_of_two_of_entries() {
        let (producer, consumer) = (RingProducer::default(), RingConsumer::default());
        let entries: Vec<_> = (0..3).map(|_| CommandEntry::default()).collect();
        assert!(CommandRing::new(&producer, &consumer, &entries).is_none());
        assert!(CommandRing::new(&producer, &consumer, &[]).is_none());
    }
}

//! Log rings in device memory: one ring per AICPU instance, one writer each, oldest entries overwritten.
//!
//! A message longer than an entry continues in the next one. The reader counts what was overwritten.

use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Bytes of text in one entry.
pub const ENTRY_TEXT_BYTES: usize = 8 * ENTRY_TEXT_WORDS;
const ENTRY_TEXT_WORDS: usize = 14;

shared_struct! {
    /// The writer's end of one ring.
    #[derive(Default)]
    pub struct LogCursor [size = 64, align = 64] {
        /// Entries written since the arena was made.
        0 => written: AtomicU64,
        /// Not used; zero.
        8 => reserved: [AtomicU64; 7],
    }
}

shared_struct! {
    /// One entry.
    #[derive(Default)]
    pub struct LogEntry [size = 128, align = 64] {
        /// The entry's number plus one, low 32 bits; zero while it is written.
        0 => stamp: AtomicU32,
        /// 1 error .. 5 trace, as in the `log` crate.
        4 => level: AtomicU8,
        /// 1 if the message goes on in the next entry.
        5 => continues: AtomicU8,
        /// Bytes of text here.
        6 => text_bytes: AtomicU16,
        /// The instance's clock.
        8 => time_ns: AtomicU64,
        /// UTF-8, little-endian words.
        16 => text: [AtomicU64; ENTRY_TEXT_WORDS],
    }
}

/// One instance's ring.
#[derive(Clone, Copy)]
pub struct LogRing<'a> {
    /// The writer's end.
    pub cursor: &'a LogCursor,
    /// The entries; a power of two is not needed.
    pub entries: &'a [LogEntry],
}

/// One entry, read out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogText {
    /// 1 error .. 5 trace.
    pub level: u8,
    /// Whether the message goes on in the next entry.
    pub continues: bool,
    /// The instance's clock.
    pub time_ns: u64,
    bytes: [u8; ENTRY_TEXT_BYTES],
    text_bytes: usize,
}

impl LogText {
    /// The bytes of the text; a message that continues may be cut inside a character.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.text_bytes).unwrap_or(&self.bytes)
    }
}

impl LogRing<'_> {
    /// Writes `message`, in as many entries as it needs. One writer per ring.
    pub fn write(&self, level: u8, time_ns: u64, message: &str) {
        let mut chunks = message.as_bytes().chunks(ENTRY_TEXT_BYTES).peekable();
        if chunks.peek().is_none() {
            self.write_entry(level, time_ns, &[], false);
        }
        while let Some(chunk) = chunks.next() {
            self.write_entry(level, time_ns, chunk, chunks.peek().is_some());
        }
    }

    fn write_entry(&self, level: u8, time_ns: u64, text: &[u8], continues: bool) {
        let number = self.cursor.written.load(Ordering::Relaxed);
        let Some(entry) = self.entry(number) else { return };
        entry.stamp.store(0, Ordering::Relaxed);
        // Release: a reader that sees any new word below also sees the stamp cleared above; pairs with the
        // Acquire load of the words in `read`.
        entry.level.store(level, Ordering::Release);
        entry.continues.store(u8::from(continues), Ordering::Release);
        // A chunk has at most ENTRY_TEXT_BYTES bytes.
        entry.text_bytes.store(u16::try_from(text.len()).unwrap_or(0), Ordering::Release);
        entry.time_ns.store(time_ns, Ordering::Release);
        for (word, bytes) in entry.text.iter().zip(text.chunks(8)) {
            let mut padded = [0; 8];
            for (to, from) in padded.iter_mut().zip(bytes) {
                *to = *from;
            }
            word.store(u64::from_le_bytes(padded), Ordering::Release);
        }
        // Release: pairs with the Acquire load of stamp in `read`.
        entry.stamp.store(stamp_of(number), Ordering::Release);
        // Release: pairs with the Acquire load of written in `written`.
        self.cursor.written.store(number + 1, Ordering::Release);
    }

    /// How many entries were written.
    #[must_use]
    pub fn written(&self) -> u64 {
        // Acquire: pairs with the Release store of written in `write_entry`.
        self.cursor.written.load(Ordering::Acquire)
    }

    /// Entry `number`, unless it has been overwritten or is being written.
    #[must_use]
    pub fn read(&self, number: u64) -> Option<LogText> {
        let entry = self.entry(number)?;
        // Acquire: pairs with the Release store of stamp in `write_entry`.
        if entry.stamp.load(Ordering::Acquire) != stamp_of(number) {
            return None;
        }
        let mut bytes = [0; ENTRY_TEXT_BYTES];
        // Acquire: pairs with the Release stores in `write_entry`; a torn entry fails the check below.
        for (to, word) in bytes.chunks_mut(8).zip(&entry.text) {
            to.copy_from_slice(&word.load(Ordering::Acquire).to_le_bytes());
        }
        let text = LogText {
            level: entry.level.load(Ordering::Acquire),
            continues: entry.continues.load(Ordering::Acquire) != 0,
            time_ns: entry.time_ns.load(Ordering::Acquire),
            bytes,
            text_bytes: usize::from(entry.text_bytes.load(Ordering::Acquire)),
        };
        (entry.stamp.load(Ordering::Relaxed) == stamp_of(number)).then_some(text)
    }

    fn entry(&self, number: u64) -> Option<&LogEntry> {
        let count = u64::try_from(self.entries.len()).ok().filter(|count| *count > 0)?;
        self.entries.get(usize::try_from(number % count).ok()?)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the stamp is the low half by definition")]
fn stamp_of(number: u64) -> u32 {
    // Never zero: zero says "being written".
    (number as u32).wrapping_add(1).max(1)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{ENTRY_TEXT_BYTES, LogCursor, LogEntry, LogRing};
    use std::{string::String, vec::Vec};

    fn with_ring(entries: usize, test: impl FnOnce(LogRing<'_>)) {
        let entries: Vec<_> = (0..entries).map(|_| LogEntry::default()).collect();
        let cursor = LogCursor::default();
        test(LogRing { cursor: &cursor, entries: &entries });
    }

    #[test]
    fn a_long_message_is_whole() {
        with_ring(8, |ring| {
            let message = "abcdefghij".repeat(25);
            ring.write(3, 42, &message);
            let mut read = String::new();
            for number in 0..ring.written() {
                let entry = ring.read(number).unwrap();
                assert_eq!((entry.level, entry.time_ns), (3, 42));
                assert_eq!(entry.continues, number + 1 < ring.written());
                read.push_str(core::str::from_utf8(entry.bytes()).unwrap());
            }
            assert_eq!(ring.written(), message.len().div_ceil(ENTRY_TEXT_BYTES) as u64);
            assert_eq!(read, message);
        });
    }

    #[test]
    fn the_oldest_entries_are_overwritten_and_known_to_be() {
        with_ring(4, |ring| {
            for number in 0..10 {
                ring.write(1, number, "x");
            }
            assert_eq!(ring.written(), 10);
            assert!((0..6).all(|number| ring.read(number).is_none()));
            assert!((6..10).all(|number| ring.read(number).unwrap().time_ns == number));
            assert!(ring.read(10).is_none());
        });
    }

    #[test]
    fn a_ring_without_entries_takes_nothing() {
        with_ring(0, |ring| {
            ring.write(1, 0, "x");
            assert_eq!(ring.written(), 0);
        });
    }
}

//! The recording buffer of a run, and which part of it holds recordings.
//!
//! Invariants: recordings follow one another from the start up to `front`; their argument words are from the end of
//! the buffer down to `buffer.end()`. Nothing that is kept is written again.

use core::hash::{Hash, Hasher};

use pto_abi::sync::AtomicU64;

use super::buffer::{RecordingBuffer, Totals};

/// See the file.
pub(in crate::stream) struct Recordings<'a> {
    buffer: RecordingBuffer<'a>,
    front: usize,
    /// How many were begun.
    begun: u32,
}

impl<'a> Recordings<'a> {
    /// An empty set of recordings in `words`.
    pub(in crate::stream) const fn new(words: &'a [AtomicU64]) -> Self {
        Self { buffer: RecordingBuffer::new(words), front: 0, begun: 0 }
    }

    /// The words of all recordings.
    pub(in crate::stream) const fn buffer(&self) -> RecordingBuffer<'a> {
        self.buffer
    }

    /// Begins one; returns where it begins, and its number.
    pub(super) const fn begin(&mut self) -> (usize, u32) {
        self.begun += 1;
        (self.front, self.begun)
    }

    /// Keeps the one that ends before `front`, and whose argument words begin at `back`; how many words are in use.
    pub(super) const fn keep(&mut self, front: usize, back: usize) -> u64 {
        self.front = front;
        self.buffer = self.buffer.up_to(back);
        (front + self.buffer.len()).saturating_sub(back) as u64
    }

    /// What the recording says that begins at `start`; `None`: none begins there.
    pub(in crate::stream) fn totals(&self, start: usize) -> Option<Totals> {
        if start < self.front { self.buffer.totals(start) } else { None }
    }

    /// Words before the end of the last recording.
    pub(in crate::stream) const fn front(&self) -> usize {
        self.front
    }

    /// Hashes what is in use. The words are memory of the run.
    pub(in crate::stream) fn hash_state<H: Hasher>(&self, into: &mut H) {
        (self.front, self.begun).hash(into);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::{Recordings, Totals};
    use pto_abi::sync::{AtomicU64, Ordering::Relaxed};
    use std::vec::Vec;

    #[test]
    fn what_is_kept_is_found_and_not_written_again() {
        let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        let mut recordings = Recordings::new(&words);
        assert_eq!(recordings.begin(), (0, 1));
        recordings.buffer().put_totals(0, &Totals { tasks: 3, ..Totals::default() });
        assert!(recordings.totals(0).is_none(), "it has not ended");
        assert_eq!(recordings.keep(20, 50), 20 + 14);
        assert_eq!(recordings.totals(0).map(|totals| totals.tasks), Some(3));
        assert_eq!((recordings.begin(), recordings.front()), ((20, 2), 20));
        recordings.buffer().put(49, 7);
        recordings.buffer().put(50, 7);
        let written = [49, 50].map(|at: usize| words[at].load(Relaxed));
        assert_eq!(written, [7, 0], "those are argument words of the one before");
    }
}

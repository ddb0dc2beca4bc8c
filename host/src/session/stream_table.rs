//! The streams of a session, and their slots on its board.
//!
//! ```text
//! open:   a free slot? -> the stream gets it       all in one step: the caller holds the lock of the table
//!         one is closed? -> wait for `retire`      none is: every slot is in use
//! retire: the slot is free again
//! ```
//! Invariants: no two streams have one slot; there are never more streams than slots.

/// A stream, as the table sees it.
pub(super) trait TableStream: Clone {
    /// The stream's slot on the board.
    fn slot(&self) -> usize;
    /// Whether it takes no more commands: it is removed when its commands are over.
    fn is_closed(&self) -> bool;
}

/// The table.
#[derive(Debug)]
pub(super) struct StreamTable<S> {
    /// Slots on the board.
    slots: usize,
    /// Streams opened so far.
    opened: u32,
    live: Vec<S>,
}

impl<S: TableStream> StreamTable<S> {
    /// A table without streams.
    pub(super) const fn new(slots: usize) -> Self {
        Self { slots, opened: 0, live: Vec::new() }
    }

    /// The open streams.
    pub(super) fn live(&self) -> &[S] {
        &self.live
    }

    /// Whether one of them is closed, so that its slot comes back.
    pub(super) fn is_closing(&self) -> bool {
        self.live.iter().any(TableStream::is_closed)
    }

    /// Opens a stream, which `make` makes of its number and its slot. `Some(None)`: every slot is in use. `None`: not yet, but one of those that have
    /// a slot is closed.
    pub(super) fn open(&mut self, make: impl FnOnce(u32, usize) -> S) -> Option<Option<S>> {
        let Some(slot) = self.free_slot() else {
            return if self.is_closing() { None } else { Some(None) };
        };
        let stream = make(self.opened, slot);
        self.opened += 1;
        self.live.push(stream.clone());
        Some(Some(stream))
    }

    /// Takes streams out. Their slots are free when the caller gives the lock of the table back.
    pub(super) fn retire(&mut self, is_gone: impl Fn(&S) -> bool) -> Vec<S> {
        self.live.extract_if(.., |stream| is_gone(stream)).collect()
    }

    /// The lowest slot that no stream has.
    fn free_slot(&self) -> Option<usize> {
        let mut taken = vec![false; self.slots];
        for stream in &self.live {
            if let Some(slot) = taken.get_mut(stream.slot()) {
                *slot = true;
            }
        }
        taken.iter().position(|is_taken| !is_taken)
    }
}

//! The streams of a session, and who has which place on its board.
//!
//! ```text
//! open:   a free place? -> the stream has it       all in one step: the caller holds the lock of the table
//!         one is closed? -> wait for `retire`      none is: every place is in use
//! retire: the place is free again
//! ```
//! Invariants: no two streams have one place; there are never more streams than places.

/// A stream, as the table sees it.
pub(super) trait Entry: Clone {
    /// Its place on the board.
    fn place(&self) -> usize;
    /// Whether nobody submits to it any more: it goes when its commands are over.
    fn is_closed(&self) -> bool;
}

/// The table.
#[derive(Debug)]
pub(super) struct StreamTable<S> {
    /// Places on the board.
    places: usize,
    /// Streams opened so far.
    opened: u32,
    live: Vec<S>,
}

impl<S: Entry> StreamTable<S> {
    /// Without a stream.
    pub(super) const fn new(places: usize) -> Self {
        Self { places, opened: 0, live: Vec::new() }
    }

    /// The streams that there are.
    pub(super) fn live(&self) -> &[S] {
        &self.live
    }

    /// Whether one of them is closed, so that its place comes back.
    pub(super) fn is_closing(&self) -> bool {
        self.live.iter().any(Entry::is_closed)
    }

    /// Opens a stream, which `make` makes of its number and its place. `Some(None)`: every place is in use. `None`: not yet, but one of those that have
    /// a place is closed.
    pub(super) fn open(&mut self, make: impl FnOnce(u32, usize) -> S) -> Option<Option<S>> {
        let Some(place) = self.free_place() else {
            return if self.is_closing() { None } else { Some(None) };
        };
        let stream = make(self.opened, place);
        self.opened += 1;
        self.live.push(stream.clone());
        Some(Some(stream))
    }

    /// Takes streams out. Their places are free when the caller gives the lock of the table back.
    pub(super) fn retire(&mut self, is_gone: impl Fn(&S) -> bool) -> Vec<S> {
        self.live.extract_if(.., |stream| is_gone(stream)).collect()
    }

    /// The lowest place that no stream has.
    fn free_place(&self) -> Option<usize> {
        let mut taken = vec![false; self.places];
        for stream in &self.live {
            if let Some(place) = taken.get_mut(stream.place()) {
                *place = true;
            }
        }
        taken.iter().position(|is_taken| !is_taken)
    }
}

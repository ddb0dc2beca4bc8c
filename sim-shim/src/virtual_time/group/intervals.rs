//! What is known of parts of the memory: a value for each interval of addresses that has one.

use std::collections::BTreeMap;

use crate::group::ByteRange;

/// Invariant: the intervals do not overlap, and none is empty.
#[derive(Clone, Debug)]
pub(super) struct Intervals<T> {
    /// By the first address: the one after the last, and the value.
    known: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Intervals<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new() }
    }
}

impl<T: Clone + PartialEq> Intervals<T> {
    /// Sets the value of all addresses of the span.
    pub(super) fn set(&mut self, span: ByteRange, value: T) {
        let (start, end) = (span.address, span.address.saturating_add(span.bytes));
        if start == end {
            return;
        }
        // The usual case: the same interval as before.
        if let Some((known_end, known)) = self.known.get_mut(&start)
            && *known_end == end
        {
            *known = value;
            return;
        }
        self.cut(start);
        self.cut(end);
        let inside: Vec<u64> = self.known.range(start..end).map(|(at, _)| *at).collect();
        for at in inside {
            self.known.remove(&at);
        }
        self.known.insert(start, (end, value));
    }

    /// Two intervals instead of one that holds `at` and the address before it.
    fn cut(&mut self, at: u64) {
        let Some((_, (end, value))) = self.known.range_mut(..at).next_back() else { return };
        if *end > at {
            let rest = (*end, value.clone());
            *end = at;
            self.known.insert(at, rest);
        }
    }

    /// Passes the pieces of a span, in order: each with its value, if it has one.
    pub(super) fn pieces<'t>(
        &'t self,
        span: ByteRange,
        mut hand_on: impl FnMut(ByteRange, Option<&'t T>),
    ) {
        let (mut at, end) = (span.address, span.address.saturating_add(span.bytes));
        let first = self.known.range(..=at).next_back().map_or(at, |(start, _)| *start);
        for (start, (known_end, value)) in self.known.range(first..end) {
            if *known_end <= at {
                continue;
            }
            if *start > at {
                hand_on(ByteRange { address: at, bytes: start - at }, None);
                at = *start;
            }
            let to = end.min(*known_end);
            hand_on(ByteRange { address: at, bytes: to - at }, Some(value));
            at = to;
        }
        if at < end {
            hand_on(ByteRange { address: at, bytes: end - at }, None);
        }
    }

    /// The value of an address.
    pub(super) fn at(&self, address: u64) -> Option<&T> {
        let (_, (end, value)) = self.known.range(..=address).next_back()?;
        (*end > address).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;
    use crate::group::ByteRange;

    fn pieces(of: &Intervals<u8>, address: u64, bytes: u64) -> Vec<(u64, u64, Option<u8>)> {
        let mut found = Vec::new();
        of.pieces(ByteRange { address, bytes }, |span, value| {
            found.push((span.address, span.bytes, value.copied()));
        });
        found
    }

    #[test]
    fn what_is_set_last_holds() {
        let mut known = Intervals::default();
        known.set(ByteRange { address: 10, bytes: 10 }, 1);
        known.set(ByteRange { address: 14, bytes: 2 }, 2);
        known.set(ByteRange { address: 18, bytes: 6 }, 3);
        assert_eq!(
            pieces(&known, 8, 20),
            [
                (8, 2, None),
                (10, 4, Some(1)),
                (14, 2, Some(2)),
                (16, 2, Some(1)),
                (18, 6, Some(3)),
                (24, 4, None)
            ]
        );
        assert_eq!(pieces(&known, 15, 2), [(15, 1, Some(2)), (16, 1, Some(1))]);
        assert_eq!((known.at(9), known.at(23), known.at(24)), (None, Some(&3), None));
        known.set(ByteRange { address: 0, bytes: 100 }, 4);
        assert_eq!(pieces(&known, 0, 100), [(0, 100, Some(4))]);
    }
}

//! Whose turn it is in a pipeline: the rule of channels and processes in time, for the expansion of plans and for the `v9` clock of the
//! crate `workload`, which keep tokens and processes in their own ways.
//!
//! The `k`-th send to a channel of depth `d` completes
//!
//! - for `d > 0` when it was begun, or when the token `d` before it was taken, whichever is later;
//! - for `d = 0` when its token is taken: sender and receiver meet.
//!
//! Of the processes that can go on, the one that is furthest back in time goes on; of several the first. So the order of tokens is the same
//! in every run.

/// How many tokens have gone through a channel.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    depth: u64,
    sends: u64,
    takes: u64,
}

impl Traffic {
    /// The traffic of a channel of this depth, before its first token.
    #[must_use]
    pub const fn new(depth: u64) -> Self {
        Self { depth, sends: 0, takes: 0 }
    }

    /// Whether a sender waits until its token is taken.
    #[must_use]
    pub const fn meets(&self) -> bool {
        self.depth == 0
    }

    /// Whether the next token can enter the channel.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.meets() || self.sends.wrapping_sub(self.takes) < self.depth
    }

    /// The token whose slot the next one gets: the next send completes only when that token has been taken. `None`: the slot is new, or
    /// the sender waits for the receiver.
    #[must_use]
    pub const fn follows(&self) -> Option<u64> {
        if self.meets() { None } else { self.sends.checked_sub(self.depth) }
    }

    /// The number of the token that enters next.
    #[must_use]
    pub const fn entering(&self) -> u64 {
        self.sends
    }

    /// The number of the token that is taken next; `None`: the channel is empty.
    #[must_use]
    pub const fn leaving(&self) -> Option<u64> {
        if self.sends == self.takes { None } else { Some(self.takes) }
    }

    /// A token enters.
    pub const fn enter(&mut self) {
        self.sends = self.sends.wrapping_add(1);
    }

    /// A token leaves.
    pub const fn leave(&mut self) {
        self.takes = self.takes.wrapping_add(1);
    }
}

/// The process that goes on, of those that could go on at these times; `None`: they cannot.
pub fn next_of(ready: impl Iterator<Item = Option<u64>>) -> Option<usize> {
    let ready = ready.enumerate().filter_map(|(number, time)| Some((time?, number)));
    ready.min().map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::{Traffic, next_of};

    #[test]
    fn a_channel_has_as_many_places_as_it_is_deep() {
        let mut two = Traffic::new(2);
        two.enter();
        assert!(two.has_room() && two.follows().is_none());
        two.enter();
        assert!(!two.has_room() && two.follows() == Some(0));
        two.leave();
        assert!(two.has_room() && two.leaving() == Some(1) && two.entering() == 2);
    }

    #[test]
    fn without_depth_both_sides_meet() {
        let mut none = Traffic::new(0);
        none.enter();
        assert!(none.meets() && none.has_room() && none.follows().is_none());
    }

    #[test]
    fn the_first_of_those_furthest_back_goes_on() {
        assert_eq!(next_of([Some(3), None, Some(2), Some(2)].into_iter()), Some(2));
        assert_eq!(next_of([None].into_iter()), None);
    }
}

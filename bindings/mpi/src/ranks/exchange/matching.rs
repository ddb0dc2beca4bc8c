//! Which announced message belongs to which receive: both wait here for each other, in order, by rank and tag.

use std::collections::{HashMap, VecDeque};

use crate::ranks::group::ByteRange;

/// A receive that the program has started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(crate) number: u64,
    pub(crate) to: ByteRange,
    pub(crate) stamp: u128,
}

/// A message that its sender has announced.
#[derive(Clone, Debug)]
pub(crate) struct Announced {
    pub(crate) bytes: u64,
    pub(crate) stamp: u128,
    /// The tag of the payload; 0: the contents are here.
    pub(crate) payload: u64,
    pub(crate) contents: Vec<u8>,
}

/// The side that came first waits for the other side.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    posted: HashMap<(u32, u128), VecDeque<Posted>>,
    announced: HashMap<(u32, u128), VecDeque<Announced>>,
}

impl Matching {
    /// A receive has been started: the message that has waited for it, if one has.
    pub(crate) fn post(&mut self, from: u32, tag: u128, posted: Posted) -> Option<Announced> {
        let waiting = self.announced.get_mut(&(from, tag)).and_then(VecDeque::pop_front);
        if waiting.is_none() {
            self.posted.entry((from, tag)).or_default().push_back(posted);
        }
        waiting
    }

    /// A message has been announced: the receive that has waited for it; or the message stays here.
    pub(crate) fn announce(
        &mut self,
        from: u32,
        tag: u128,
        announced: Announced,
    ) -> Option<(Posted, Announced)> {
        match self.posted.get_mut(&(from, tag)).and_then(VecDeque::pop_front) {
            Some(posted) => Some((posted, announced)),
            None => {
                self.announced.entry((from, tag)).or_default().push_back(announced);
                None
            }
        }
    }

    /// A receive that waits for this rank, with its tag.
    pub(crate) fn waits_for(&self, from: u32) -> Option<(u128, Posted)> {
        let mut of = self.posted.iter().filter(|((rank, _), _)| *rank == from);
        of.find_map(|((_, tag), waiting)| Some((*tag, *waiting.front()?)))
    }

    /// The messages that wait for a receive: from whom, with which tag.
    pub(crate) fn unreceived(&self) -> impl Iterator<Item = (u32, u128, &Announced)> {
        let all = self.announced.iter();
        all.filter_map(|((from, tag), waiting)| Some((*from, *tag, waiting.front()?)))
    }

    /// A run begins: nothing waits any more. Returns how many messages were not received.
    pub(crate) fn clear(&mut self) -> usize {
        self.posted.clear();
        self.announced.drain().map(|(_, waiting)| waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Announced, Matching, Posted};
    use crate::ranks::group::ByteRange;

    fn posted(number: u64) -> Posted {
        Posted { number, to: ByteRange { address: 0, bytes: 8 }, stamp: 0 }
    }

    fn announced(payload: u64) -> Announced {
        Announced { bytes: 8, stamp: 0, payload, contents: Vec::new() }
    }

    #[test]
    fn messages_of_a_rank_and_a_tag_keep_their_order() {
        let mut matching = Matching::default();
        assert!(matching.post(1, 7, posted(1)).is_none());
        assert!(matching.post(1, 7, posted(2)).is_none());
        assert!(matching.announce(2, 7, announced(9)).is_none());
        assert!(matching.announce(1, 8, announced(9)).is_none());
        assert_eq!(matching.announce(1, 7, announced(3)).unwrap().0.number, 1);
        assert_eq!(matching.announce(1, 7, announced(5)).unwrap().0.number, 2);
        assert!(matching.waits_for(1).is_none());
        assert!(matching.announce(1, 7, announced(7)).is_none());
        assert!(matching.announce(1, 7, announced(9)).is_none());
        assert_eq!(matching.post(1, 7, posted(3)).unwrap().payload, 7);
        assert_eq!(matching.post(1, 7, posted(4)).unwrap().payload, 9);
        assert_eq!(matching.clear(), 2);
    }
}

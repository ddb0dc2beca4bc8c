//! The words that describe a group to a program. The host appends them to the program's own orchestration words.
//!
//! ```text
//! the program's words | base, bytes of each window | rank, size | ranks a node, part | latency, whether calls repeat | bandwidth | windows, MAGIC
//! ```
//! The last word says that there are such words, and how many windows. A program that is run without a group has none of them.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;

use super::choice::NetworkFigures;

/// Windows of a group, at most.
pub const MAX_WINDOWS: usize = 16;
/// In the upper half of the last word: there are words of a group.
const MAGIC: u64 = 0x4752_4F55 << 32;
/// Words that are not of windows.
const FIXED: usize = 5;

/// Memory of every rank that the other ranks may put to and get from. It has the same number and size everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The window's number, in the order in which windows were made.
    pub id: u32,
    /// Where this rank's part begins.
    pub base: GmAddr,
    /// Size of this rank's part; it is the same everywhere.
    pub bytes: u64,
}

/// The description of a group that a program receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupWords {
    /// This rank.
    pub rank: u32,
    /// How many ranks there are; at least one.
    pub size: u32,
    /// Ranks of a node: ranks `0 .. ranks_per_node` are on the first one, and so on.
    pub ranks_per_node: u32,
    /// What the network can do: collectives choose their algorithm by it.
    pub network: NetworkFigures,
    /// Which part of its launch a program is, where several share one: the collectives of two parts do not meet.
    pub part: u32,
    /// Whether it is one of several runs that count their calls alike: those of a session.
    pub repeats: bool,
    windows: [Window; MAX_WINDOWS],
    window_count: usize,
}

impl GroupWords {
    /// One rank of a group.
    #[must_use]
    pub const fn new(
        (rank, size): (u32, u32),
        ranks_per_node: u32,
        network: NetworkFigures,
    ) -> Self {
        let window = Window { id: 0, base: GmAddr::NULL, bytes: 0 };
        Self {
            rank,
            size,
            ranks_per_node,
            network,
            part: 0,
            repeats: false,
            windows: [window; MAX_WINDOWS],
            window_count: 0,
        }
    }

    /// The same with one more window; `None`: there are [`MAX_WINDOWS`].
    #[must_use]
    pub fn with_window(mut self, base: GmAddr, bytes: u64) -> Option<Self> {
        let id = u32::try_from(self.window_count).ok()?;
        *self.windows.get_mut(self.window_count)? = Window { id, base, bytes };
        self.window_count += 1;
        Some(self)
    }

    /// The windows.
    #[must_use]
    pub fn windows(&self) -> &[Window] {
        self.windows.get(..self.window_count).unwrap_or(&[])
    }

    /// Hands its words to `push`, in their order.
    pub fn encode(&self, mut push: impl FnMut(u64)) {
        for window in self.windows() {
            push(window.base.0);
            push(window.bytes);
        }
        push(u64::from(self.rank) | u64::from(self.size) << 32);
        push(u64::from(self.ranks_per_node) | u64::from(self.part) << 32);
        push(u64::from(self.network.latency_ns) | u64::from(self.repeats) << 32);
        push(self.network.bytes_per_us);
        push(self.window_count as u64 | MAGIC);
    }

    /// How many of these words are the program's own. [`decode`](Self::decode) checks the words after them.
    #[must_use]
    pub fn own_count(words: &[u64]) -> usize {
        match words.last() {
            Some(last) if last >> 32 == MAGIC >> 32 => {
                let windows = usize::try_from(last & 0xFFFF_FFFF).unwrap_or(usize::MAX);
                words.len().saturating_sub(windows.saturating_mul(2).saturating_add(FIXED))
            }
            _ => words.len(),
        }
    }

    /// Decodes the words after a program's own words, and returns how many words are the program's own. Without such words: rank 0 of 1.
    ///
    /// # Errors
    /// `TRANSFER_WORDS`: there are such words, and they cannot be.
    pub fn decode(words: &[u64]) -> Result<(Self, usize), Fault> {
        let alone = Self::new((0, 1), 1, NetworkFigures::DEFAULT);
        let Some((&last, before)) = words.split_last() else { return Ok((alone, 0)) };
        if last >> 32 != MAGIC >> 32 {
            return Ok((alone, words.len()));
        }
        let wrong = Fault::TRANSFER_WORDS;
        let count = usize::try_from(last & 0xFFFF_FFFF).map_err(|_| wrong)?;
        let own = words.len().checked_sub(FIXED + 2 * count.min(MAX_WINDOWS + 1)).ok_or(wrong)?;
        let mut group = before.get(own..).ok_or(wrong)?.iter().copied();
        let mut next = || group.next().ok_or(wrong);
        let mut found = alone;
        for _ in 0..count {
            let (base, bytes) = (next()?, next()?);
            found = found.with_window(GmAddr(base), bytes).ok_or(wrong)?;
        }
        let [ranks, per_node, latency, bytes_per_us] = [next()?, next()?, next()?, next()?];
        let low = |word: u64| (word & 0xFFFF_FFFF) as u32;
        (found.rank, found.size) = (low(ranks), low(ranks >> 32));
        (found.ranks_per_node, found.part) = (low(per_node), low(per_node >> 32));
        found.repeats = latency >> 32 != 0;
        found.network = NetworkFigures { latency_ns: low(latency), bytes_per_us };
        let is_right = found.rank < found.size && found.ranks_per_node > 0 && bytes_per_us > 0;
        if is_right { Ok((found, own)) } else { Err(wrong) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{GroupWords, MAX_WINDOWS};
    use crate::group::NetworkFigures;
    use pto_abi::fault::Fault;
    use pto_abi::ids::GmAddr;
    use std::vec::Vec;

    fn words_of(group: &GroupWords, own: &[u64]) -> Vec<u64> {
        let mut words = own.to_vec();
        group.encode(|word| words.push(word));
        words
    }

    #[test]
    fn a_program_reads_what_the_host_wrote() {
        let mut group = GroupWords::new((3, 8), 4, NetworkFigures::DEFAULT);
        (group.part, group.repeats) = (7, true);
        for window in 0..MAX_WINDOWS as u64 {
            let words = words_of(&group, &[7, 8]);
            assert_eq!(GroupWords::decode(&words), Ok((group, 2)));
            assert_eq!(GroupWords::own_count(&words), 2);
            group = group.with_window(GmAddr(4096 * (window + 1)), 64 + window).unwrap();
        }
        assert_eq!(GroupWords::decode(&words_of(&group, &[])), Ok((group, 0)));
        assert!(group.with_window(GmAddr(64), 64).is_none());
    }

    #[test]
    fn without_a_group_a_program_is_alone() {
        for own in [&[][..], &[5, 6, 7]] {
            let (group, count) = GroupWords::decode(own).unwrap();
            assert_eq!((group.rank, group.size, count), (0, 1, own.len()));
            assert_eq!(GroupWords::own_count(own), own.len());
        }
    }

    #[test]
    fn damaged_words_are_refused() {
        let group = GroupWords::new((1, 2), 1, NetworkFigures::DEFAULT);
        let good = words_of(&group, &[]);
        for (at, word) in [(0, 2 << 32 | 2), (1, 0), (3, 0), (4, good[4] + 1), (4, good[4] + 999)] {
            let mut bad = good.clone();
            bad[at] = word;
            assert_eq!(GroupWords::decode(&bad), Err(Fault::TRANSFER_WORDS), "{at}");
        }
    }
}

//! The words that describe a group in the arguments of a launch (`LaunchArgs::group`).
//!
//! ```text
//! rank, size | ranks a node, part | latency, whether calls repeat | bandwidth | base, bytes of each window
//! ```
//! A launch without a group has none of them.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;

use super::choice::NetworkFigures;

/// Windows of a group, at most.
pub const MAX_WINDOWS: usize = 16;

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

    /// Calls `push` with each of its words, in their order.
    pub fn encode(&self, mut push: impl FnMut(u64)) {
        push(u64::from(self.rank) | u64::from(self.size) << 32);
        push(u64::from(self.ranks_per_node) | u64::from(self.part) << 32);
        push(u64::from(self.network.latency_ns) | u64::from(self.repeats) << 32);
        push(self.network.bytes_per_us);
        for window in self.windows() {
            push(window.base.0);
            push(window.bytes);
        }
    }

    /// Decodes the words of a group. No words: rank 0 of 1.
    ///
    /// # Errors
    /// `TRANSFER_WORDS`: no group has these words.
    pub fn decode(words: &[u64]) -> Result<Self, Fault> {
        let mut group = Self::new((0, 1), 1, NetworkFigures::DEFAULT);
        if words.is_empty() {
            return Ok(group);
        }
        let wrong = Fault::TRANSFER_WORDS;
        let (&[ranks, per_node, latency, bytes_per_us], windows) =
            words.split_first_chunk().ok_or(wrong)?;
        let (windows, rest) = windows.as_chunks();
        for &[base, bytes] in windows {
            group = group.with_window(GmAddr(base), bytes).ok_or(wrong)?;
        }
        let low = |word: u64| (word & 0xFFFF_FFFF) as u32;
        (group.rank, group.size) = (low(ranks), low(ranks >> 32));
        (group.ranks_per_node, group.part) = (low(per_node), low(per_node >> 32));
        group.repeats = latency >> 32 != 0;
        group.network = NetworkFigures { latency_ns: low(latency), bytes_per_us };
        let is_right = group.rank < group.size && group.ranks_per_node > 0 && bytes_per_us > 0;
        if is_right && rest.is_empty() { Ok(group) } else { Err(wrong) }
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

    fn words_of(group: &GroupWords) -> Vec<u64> {
        let mut words = Vec::new();
        group.encode(|word| words.push(word));
        words
    }

    #[test]
    fn a_program_reads_what_the_host_wrote() {
        let mut group = GroupWords::new((3, 8), 4, NetworkFigures::DEFAULT);
        (group.part, group.repeats) = (7, true);
        for window in 0..MAX_WINDOWS as u64 {
            assert_eq!(GroupWords::decode(&words_of(&group)), Ok(group));
            group = group.with_window(GmAddr(4096 * (window + 1)), 64 + window).unwrap();
        }
        assert_eq!(GroupWords::decode(&words_of(&group)), Ok(group));
        assert!(group.with_window(GmAddr(64), 64).is_none());
    }

    #[test]
    fn without_a_group_a_program_is_alone() {
        let group = GroupWords::decode(&[]).unwrap();
        assert_eq!((group.rank, group.size, group.windows()), (0, 1, &[][..]));
    }

    #[test]
    fn damaged_words_are_refused() {
        let group = GroupWords::new((1, 2), 1, NetworkFigures::DEFAULT);
        let good = words_of(&group);
        for (at, word) in [(0, 2 << 32 | 2), (1, 0), (3, 0)] {
            let mut bad = good.clone();
            bad[at] = word;
            assert_eq!(GroupWords::decode(&bad), Err(Fault::TRANSFER_WORDS), "{at}");
        }
        for windows in [1, 3, 2 * MAX_WINDOWS + 2] {
            let mut bad = good.clone();
            bad.extend((0..windows as u64).map(|word| 64 * word));
            assert_eq!(GroupWords::decode(&bad), Err(Fault::TRANSFER_WORDS), "{windows}");
        }
        assert_eq!(GroupWords::decode(&good[..3]), Err(Fault::TRANSFER_WORDS));
    }
}

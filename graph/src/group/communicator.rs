//! Who a rank is, and which ranks it works with.
//!
//! Invariants:
//! - The ranks of a communicator are `first`, `first + stride`, .. of the group, `size` of them; this rank is one of them.
//! - `calls` counts the collective calls. All ranks of a communicator make the same ones in the same order, so that it is the
//!   same number everywhere, and a tag made of it belongs to one call.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;

use super::words::{GroupWords, Window};
use crate::collective::{Collective, CollectiveCall};
use crate::tensor::TensorView;

/// A place in a window of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemotePlace {
    /// The rank, of the communicator.
    pub rank: u32,
    /// The window's number.
    pub window: u32,
    /// Bytes from the window's first one.
    pub offset: u64,
}

/// A signal that follows the bytes of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The slot, below [`SIGNAL_SLOTS`](super::transfer::SIGNAL_SLOTS).
    pub slot: u32,
    /// What is added to it.
    pub value: u64,
}

/// The ranks that a program works with, and which of them it is.
#[derive(Clone, Debug)]
pub struct Communicator {
    pub(super) group: GroupWords,
    own_words: usize,
    first: u32,
    stride: u32,
    size: u32,
    /// Tells the tags of sub-groups apart.
    context: u32,
    pub(super) calls: u32,
}

impl Communicator {
    /// The communicator of all ranks of the group that the run belongs to: `orch_args` are the words that the builder was
    /// given. Without a group it is that of rank 0 of 1.
    ///
    /// # Errors
    /// `TRANSFER_WORDS`: the group's words are damaged.
    pub fn of(orch_args: &[u64]) -> Result<Self, Fault> {
        let (group, own_words) = GroupWords::decode(orch_args)?;
        Ok(Self { group, own_words, first: 0, stride: 1, size: group.size, context: 0, calls: 0 })
    }

    /// The program's own words: those in front of the group's.
    #[must_use]
    pub fn program_args<'w>(&self, orch_args: &'w [u64]) -> &'w [u64] {
        orch_args.get(..self.own_words).unwrap_or(orch_args)
    }

    /// Hands the words of the group to `push`, as a program finds them behind its own.
    pub fn encode(&self, push: impl FnMut(u64)) {
        self.group.encode(push);
    }

    /// This rank.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        // A stride is never zero.
        match (self.group.rank - self.first).checked_div(self.stride) {
            Some(rank) => rank,
            None => 0,
        }
    }

    /// How many ranks there are.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Ranks that follow each other on a node; 1 where the communicator's ranks are not neighbours.
    #[must_use]
    pub fn ranks_per_node(&self) -> u32 {
        let per_node = self.group.ranks_per_node;
        let is_whole = self.stride == 1 && self.first.is_multiple_of(per_node);
        if is_whole { per_node.min(self.size) } else { 1 }
    }

    /// The window with this number.
    ///
    /// # Errors
    /// `TRANSFER_WINDOW`: there is none.
    pub fn window(&self, id: u32) -> Result<Window, Fault> {
        let window = self.group.windows().get(id as usize);
        window.copied().ok_or(Fault::TRANSFER_WINDOW)
    }

    /// The sub-group of the ranks `first`, `first + stride`, .. of this communicator, `count` of them; `None`: this rank is
    /// not one of them. Its tags are its own.
    ///
    /// # Errors
    /// `TRANSFER_RANK`: there are no such ranks.
    pub fn strided(&self, first: u32, stride: u32, count: u32) -> Result<Option<Self>, Fault> {
        let last =
            count.checked_sub(1).and_then(|last| last.checked_mul(stride)?.checked_add(first));
        if stride == 0 || last.is_none_or(|last| last >= self.size) {
            return Err(Fault::TRANSFER_RANK);
        }
        let offset = self.rank().checked_sub(first);
        let place = |at: u32| at.checked_div(stride).filter(|_| at.is_multiple_of(stride));
        let is_in = offset.and_then(place).is_some_and(|place| place < count);
        let context = [first, stride, count]
            .iter()
            .fold(self.context ^ 0x811C_9DC5, |hash, word| (hash ^ word).wrapping_mul(0x0100_0193));
        Ok(is_in.then(|| Self {
            first: self.first + first * self.stride,
            stride: self.stride * stride,
            size: count,
            context,
            calls: 0,
            ..self.clone()
        }))
    }

    /// The rank of the whole group that `rank` is.
    pub(super) fn world_rank(&self, rank: u32) -> Result<u32, Fault> {
        if rank < self.size {
            Ok(self.first + rank * self.stride)
        } else {
            Err(Fault::TRANSFER_RANK)
        }
    }

    /// The tag of a program's own transfer.
    pub(super) fn own_tag(&self, tag: u32) -> u64 {
        u64::from(self.context & 0x7FFF_FFFF) << 32 | u64::from(tag)
    }

    /// The tag of a transfer in the collective call under way. Step and tile tell its transfers between the same two ranks apart:
    /// tiles become ready in any order.
    pub(super) fn call_tag(&self, (step, tile): (u32, u32)) -> u64 {
        let context = self.context ^ self.group.part.wrapping_mul(0x9E37_79B1);
        let context = u64::from(context & 0x7FFF) << 48;
        let call = u64::from(self.calls & 0xFFFF) << 32;
        1 << 63 | context | call | u64::from(step & 0xFFFF) << 16 | u64::from(tile & 0xFFFF)
    }

    /// The collective call under way, for those who watch.
    pub(super) fn told(
        &self,
        collective: Collective,
        result: &TensorView<'_>,
        root: u32,
    ) -> CollectiveCall {
        CollectiveCall {
            collective,
            number: self.calls,
            ranks: (self.first, self.stride, self.size),
            rank: self.rank(),
            root,
            tags: (self.call_tag((0, 0)) >> 32) as u32,
            result: (result.address(), result.elements(), result.element().bytes()),
        }
    }

    /// Bytes of a window from `place` on are there.
    pub(super) fn check_place(&self, place: RemotePlace, bytes: u64) -> Result<(), Fault> {
        let end = place.offset.checked_add(bytes);
        let window = self.window(place.window)?;
        if end.is_some_and(|end| end <= window.bytes) {
            Ok(())
        } else {
            Err(Fault::TRANSFER_WINDOW)
        }
    }
}

impl Window {
    /// The address at this offset of this rank's part.
    #[must_use]
    pub const fn at(&self, offset: u64) -> GmAddr {
        self.base.offset(offset)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Communicator;
    use crate::group::{GroupWords, NetworkFigures};
    use pto_abi::fault::Fault;
    use std::vec::Vec;

    fn member(rank: u32, size: u32, per_node: u32) -> Communicator {
        let mut words = std::vec![11, 12];
        GroupWords::new((rank, size), per_node, NetworkFigures::DEFAULT).encode(|w| words.push(w));
        let comm = Communicator::of(&words).unwrap();
        assert_eq!(comm.program_args(&words), [11, 12]);
        comm
    }

    #[test]
    fn sub_groups_are_ranks_of_their_parents() {
        for rank in 0..12 {
            let all = member(rank, 12, 4);
            let column = all.strided(rank % 4, 4, 3).unwrap().unwrap();
            assert_eq!((column.rank(), column.size()), (rank / 4, 3));
            let ranks: Vec<_> = (0..3).map(|r| column.world_rank(r).unwrap()).collect();
            assert_eq!(ranks, [rank % 4, rank % 4 + 4, rank % 4 + 8]);
            let last = column.strided(1, 1, 2).unwrap();
            assert_eq!(last.map(|two| two.rank()), (rank / 4).checked_sub(1));
            assert!(all.strided((rank + 1) % 4, 4, 3).unwrap().is_none());
            assert_eq!((all.ranks_per_node(), column.ranks_per_node()), (4, 1));
        }
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let all = member(1, 4, 4);
        for (first, stride, count) in [(0, 0, 2), (0, 1, 5), (2, 2, 2), (0, 1, 0), (u32::MAX, 1, 2)]
        {
            assert_eq!(all.strided(first, stride, count).err(), Some(Fault::TRANSFER_RANK));
        }
        assert_eq!(all.world_rank(4), Err(Fault::TRANSFER_RANK));
        assert_eq!(all.window(0), Err(Fault::TRANSFER_WINDOW));
    }

    #[test]
    fn tags_of_calls_and_of_sub_groups_differ() {
        let mut all = member(0, 4, 4);
        let pair = all.strided(0, 1, 2).unwrap().unwrap();
        let before = all.call_tag((1, 0));
        all.calls += 1;
        let [first, second, step] = [(1, 0), (1, 1), (2, 0)].map(|at| all.call_tag(at));
        let mut other = all.clone();
        other.group.part = 1;
        assert_eq!(other.own_tag(1), all.own_tag(1), "sends and receives of two parts meet");
        let apart = [other.call_tag((1, 0)), pair.call_tag((1, 0)), pair.own_tag(1)];
        let tags = [before, first, second, step, apart[0], apart[1], apart[2]];
        for (at, tag) in tags.iter().enumerate() {
            assert!(!tags[..at].contains(tag) && *tag != all.own_tag(1));
        }
    }
}

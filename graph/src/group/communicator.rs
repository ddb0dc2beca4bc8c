//! Who a rank is, and which ranks it works with.
//!
//! Invariants:
//! - The ranks of a communicator are `first`, `first + stride`, .. of the group, `size` of them; this rank is one of them.
//! - `calls` counts the collective calls, and `splits` the sub-groups. All ranks of a communicator make the same ones in the same order, so
//!   that they are the same numbers everywhere.
//! - Nothing is folded or cut in a [tag]: two tags are equal where communicator, call, step and tile are, and a number that has no
//!   room there is `TRANSFER_TAGS`. The runs of a session count their calls anew. They come one after the other in one stream, and sends
//!   and receives with equal tags meet in the order of their starts: so each meets that of its own run.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;
use pto_abi::launch_args::LaunchArgs;

use super::tag;
use super::words::{GroupWords, Window};
use crate::collective::{Collective, CollectiveCall};
use crate::tensor::TensorView;

/// An address in a window of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
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

/// Ranks of a group, at most: the steps of a ring that scatters and then gathers have 16 bits.
const MOST_RANKS: u32 = 1 << 15;
/// Programs of one launch, at most.
const MOST_PARTS: u32 = 1 << 14;
/// The largest number of a call.
const LAST_CALL: u32 = (1 << 31) - 1;
/// The largest number of a sub-group in its communicator, and the bits that it has in a path.
const LAST_SPLIT: u32 = (1 << PATH_BITS) - 1;
const PATH_BITS: u32 = 16;
/// Communicators in one another, at most, without that of all ranks.
const MOST_NESTED: u32 = 3;

/// Which of the communicators with the same path it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// A program's.
    Own = 0,
    /// In a call with two levels: the ranks of a node.
    Within = 1,
    /// In a call with two levels: the ranks with the same index in their nodes.
    Between = 2,
}

/// The ranks that a program works with, and which of them it is. There is no copy of one: it would make calls with the same tags.
#[derive(Debug)]
pub struct Communicator {
    pub(super) group: GroupWords,
    first: u32,
    stride: u32,
    size: u32,
    /// The numbers of the sub-groups on the way to this one, each in the communicator before it; 0 is that of all ranks.
    path: u64,
    level: Level,
    splits: u32,
    calls: u32,
}

impl Communicator {
    /// The communicator of all ranks of the group that the run belongs to, from the arguments of its launch. Without a group it is that of rank 0 of 1. A
    /// program makes one: a second one would make calls with the same tags.
    ///
    /// # Errors
    /// `TRANSFER_WORDS`: the group's words are damaged. `TRANSFER_TAGS`: there are more ranks, or programs of a launch, than tags tell apart.
    pub fn of(args: LaunchArgs<'_>) -> Result<Self, Fault> {
        Self::of_group(GroupWords::decode(args.group)?)
    }

    /// The communicator of all ranks of a group.
    ///
    /// # Errors
    /// `TRANSFER_TAGS`, as [`of`](Self::of).
    pub fn of_group(group: GroupWords) -> Result<Self, Fault> {
        if group.size > MOST_RANKS || group.part >= MOST_PARTS {
            return Err(Fault::TRANSFER_TAGS);
        }
        let (first, stride, size) = (0, 1, group.size);
        let (path, level, splits, calls) = (0, Level::Own, 0, 0);
        Ok(Self { group, first, stride, size, path, level, splits, calls })
    }

    /// The same, of a session: each run of it counts its calls from the beginning, so that calls with one number may differ.
    #[must_use]
    pub fn of_session(mut self) -> Self {
        self.group.repeats = true;
        self
    }

    /// The words of the group, as a launch has them.
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
    /// not one of them. Its tags are its own. All ranks of this communicator make as many of these calls, in the same order, also those that are
    /// not in the sub-group; of one call different ranks may be in different sub-groups.
    ///
    /// # Errors
    /// `TRANSFER_RANK`: there are no such ranks. `TRANSFER_TAGS`: it would be the fourth communicator inside of another, or number 65,536 of this one.
    pub fn strided(&mut self, first: u32, stride: u32, count: u32) -> Result<Option<Self>, Fault> {
        let found = self.ranks(first, stride, count)?;
        let is_deep = self.path >> (PATH_BITS * (MOST_NESTED - 1)) != 0;
        if is_deep || self.splits >= LAST_SPLIT {
            return Err(Fault::TRANSFER_TAGS);
        }
        self.splits += 1;
        let path = self.path << PATH_BITS | u64::from(self.splits);
        Ok(found.map(|found| Self { path, ..found }))
    }

    /// A communicator of the call in two levels that is under way. Two calls of it have their numbers from this call's.
    pub(super) fn level(
        &self,
        level: Level,
        (first, stride, count): (u32, u32, u32),
    ) -> Result<Self, Fault> {
        let found = self.ranks(first, stride, count)?.ok_or(Fault::TRANSFER_RANK)?;
        Ok(Self { level, calls: self.calls << 1, ..found })
    }

    /// One of some ranks of this one, with its path; `None`: this rank is not one of them.
    fn ranks(&self, first: u32, stride: u32, count: u32) -> Result<Option<Self>, Fault> {
        let last =
            count.checked_sub(1).and_then(|last| last.checked_mul(stride)?.checked_add(first));
        if stride == 0 || last.is_none_or(|last| last >= self.size) {
            return Err(Fault::TRANSFER_RANK);
        }
        let offset = self.rank().checked_sub(first);
        let position = |at: u32| at.checked_div(stride).filter(|_| at.is_multiple_of(stride));
        let is_in = offset.and_then(position).is_some_and(|position| position < count);
        // Of one rank alone any distance is good.
        let stride = if count > 1 { stride } else { 1 };
        Ok(is_in.then(|| Self {
            first: self.first + first * self.stride,
            stride: self.stride * stride,
            size: count,
            path: self.path,
            level: self.level,
            group: self.group,
            splits: 0,
            calls: 0,
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

    /// The next collective call begins.
    ///
    /// # Errors
    /// `TRANSFER_TAGS`: it was the last one that there is a number for.
    pub(super) fn begin_call(&mut self) -> Result<(), Fault> {
        if self.calls >= LAST_CALL {
            return Err(Fault::TRANSFER_TAGS);
        }
        self.calls += 1;
        Ok(())
    }

    /// The tag of a program's own transfer. Those of two programs of a launch meet.
    pub(super) fn own_tag(&self, tag: u32) -> u128 {
        tag::of_program(self.path, tag)
    }

    /// What the tags of the call under way have in common. A path has 48 bits, a level two, and a part the 14 that are left.
    fn tag_of_call(&self) -> u128 {
        let level = (self.level as u64) << (PATH_BITS * MOST_NESTED);
        let part = u64::from(self.group.part) << (PATH_BITS * MOST_NESTED + 2);
        tag::of_call(part | level | self.path, self.calls)
    }

    /// The tag of a transfer in the collective call under way. Step and tile tell its transfers between the same two ranks apart:
    /// tiles become ready in any order.
    ///
    /// # Errors
    /// `TRANSFER_TAGS`: a step or a tile has no number.
    pub(super) fn call_tag(&self, (step, tile): (u32, u32)) -> Result<u128, Fault> {
        let word = |number: u32| u16::try_from(number).map_err(|_| Fault::TRANSFER_TAGS);
        Ok(self.tag_of_call() | tag::of_tile(word(step)?, word(tile)?))
    }

    /// The ranks, as a stamp has them ([`tag`]): the first one, the distance to the next one, and how many there are.
    pub(super) const fn ranks_of_group(&self) -> (u32, u32, u32) {
        (self.first, self.stride, self.size)
    }

    /// The collective call under way, for those who watch.
    pub(super) fn call_of(
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
            tags: tag::call(self.tag_of_call()),
            result: (result.address(), result.elements(), result.element().bytes()),
        }
    }

    /// Bytes of a window from `remote` on are there.
    pub(super) fn check_remote(&self, remote: RemoteAddress, bytes: u64) -> Result<(), Fault> {
        let end = remote.offset.checked_add(bytes);
        let window = self.window(remote.window)?;
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
    use super::{Communicator, LAST_CALL, LAST_SPLIT, Level, MOST_NESTED, MOST_PARTS, MOST_RANKS};
    use crate::group::{GroupWords, NetworkFigures, tag};
    use pto_abi::fault::Fault;
    use pto_abi::launch_args::LaunchArgs;
    use std::collections::BTreeMap;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    fn member(rank: u32, size: u32, per_node: u32) -> Communicator {
        let mut group = Vec::new();
        GroupWords::new((rank, size), per_node, NetworkFigures::DEFAULT).encode(|w| group.push(w));
        Communicator::of(LaunchArgs { program: &[11, 12], group: &group }).unwrap()
    }

    #[test]
    fn sub_groups_are_ranks_of_their_parents() {
        for rank in 0..12 {
            let mut all = member(rank, 12, 4);
            let mut column = all.strided(rank % 4, 4, 3).unwrap().unwrap();
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
        let mut all = member(1, 4, 4);
        for (first, stride, count) in [(0, 0, 2), (0, 1, 5), (2, 2, 2), (0, 1, 0), (u32::MAX, 1, 2)]
        {
            assert_eq!(all.strided(first, stride, count).err(), Some(Fault::TRANSFER_RANK));
        }
        assert_eq!(all.world_rank(4), Err(Fault::TRANSFER_RANK));
        assert_eq!(all.window(0), Err(Fault::TRANSFER_WINDOW));
    }

    /// Everything that a program can tell apart by communicators, calls, steps and tiles has a tag of its own, also where only the highest bits differ.
    #[test]
    fn no_two_transfers_have_the_same_tag() {
        let mut tags = BTreeMap::new();
        let mut note = |tag: u128, what: String| {
            if let Some(other) = tags.insert(tag, what.clone()) {
                panic!("{what} has the tag of {other}");
            }
        };
        let mut of = |comm: &mut Communicator, name: &str, has_own: bool| {
            for number in [0, 1, 2, 0xFFFF, 0x1_0000, 0x1_0001, LAST_CALL - 1, LAST_CALL] {
                comm.calls = number;
                for step in [0, 1, 1 << 14, 1 << 15, 0xFFFF] {
                    for tile in [0, 1, 0xFFFF] {
                        let tag = comm.call_tag((step, tile)).unwrap();
                        assert!(tag::is_of_call(tag) && tag::call_number(tag) == number);
                        note(tag, format!("{name}, call {number}, step {step}, tile {tile}"));
                    }
                }
            }
            for tag in [0, 1, 0xFFFF_FFFF].into_iter().filter(|_| has_own) {
                note(comm.own_tag(tag), format!("{name}, own {tag}"));
            }
        };
        for part in [0, 1, 2, 0x7FF, MOST_PARTS - 1] {
            let mut all = member(0, 8, 4);
            all.group.part = part;
            let name = |what: &str| format!("part {part}, {what}");
            of(&mut all, &name("all"), part == 0);
            for level in [Level::Within, Level::Between] {
                let mut inner = all.level(level, (0, 1, 4)).unwrap();
                of(&mut inner, &name(&format!("{level:?}")), false);
            }
            // The same ranks twice, and once more as a group in a group.
            for split in 1..=3 {
                let mut group = all.strided(0, 1, 4).unwrap().unwrap();
                of(&mut group, &name(&format!("group {split}")), part == 0);
                for inner in 1..=2 {
                    let mut pair = group.strided(0, 1, 2).unwrap().unwrap();
                    of(&mut pair, &name(&format!("group {split}.{inner}")), part == 0);
                    let mut one = pair.strided(0, 7, 1).unwrap().unwrap();
                    of(&mut one, &name(&format!("group {split}.{inner}.1")), part == 0);
                }
            }
            all.splits = LAST_SPLIT - 1;
            let mut last = all.strided(0, 1, 4).unwrap().unwrap();
            of(&mut last, &name("the last group"), part == 0);
        }
    }

    #[test]
    fn programs_of_a_launch_meet_in_their_own_transfers_alone() {
        let (first, mut second) = (member(0, 4, 4), member(0, 4, 4));
        second.group.part = 1;
        assert_eq!(first.own_tag(1), second.own_tag(1));
        assert_ne!(first.call_tag((0, 0)), second.call_tag((0, 0)));
    }

    #[test]
    fn a_number_that_has_no_room_in_a_tag_is_refused() {
        let none = Some(Fault::TRANSFER_TAGS);
        let mut all = member(0, 4, 4);
        for at in [(0x1_0000, 0), (0, 0x1_0000)] {
            assert_eq!(all.call_tag(at).err(), none);
        }
        all.splits = LAST_SPLIT;
        assert_eq!(all.strided(0, 1, 2).err(), none);
        all.splits = 0;
        let mut nested = all.strided(0, 1, 4).unwrap().unwrap();
        for _ in 1..MOST_NESTED {
            nested = nested.strided(0, 1, 4).unwrap().unwrap();
        }
        assert_eq!(nested.strided(0, 1, 4).err(), none);
        all.calls = LAST_CALL - 1;
        assert_eq!((all.begin_call(), all.begin_call().err()), (Ok(()), none));
        assert_eq!(all.level(Level::Within, (0, 1, 2)).unwrap().begin_call().err(), none);
        for (ranks, part, is_good) in
            [(MOST_RANKS, MOST_PARTS - 1, true), (MOST_RANKS + 1, 0, false), (4, MOST_PARTS, false)]
        {
            let mut group = GroupWords::new((0, ranks), 1, NetworkFigures::DEFAULT);
            group.part = part;
            assert_eq!(Communicator::of_group(group).err(), none.filter(|_| !is_good));
        }
    }
}

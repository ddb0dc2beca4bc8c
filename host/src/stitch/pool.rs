//! Blocks of device memory that tensors own.
//!
//! ```text
//! take --> Block --drop--> pool of its stream --take, same bytes--> Block
//! ```
//! A block that is given back may still be in use by commands of its stream. Only the same stream gets it again, and the commands of
//! a stream are in order, so that nobody waits for that. What is on the chip has an owner of its own: [`Region`].

use std::collections::{BTreeMap, BTreeSet};

use pto_abi::GmAddr;

use crate::session::StreamId;

/// The blocks that nobody owns.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: BTreeMap<(StreamKey, u64), BTreeSet<u64>>,
}

/// The number of a stream.
type StreamKey = u32;

impl Pool {
    /// A block of this size that the stream gave back: that with the lowest address, so that each round of a loop gets the same blocks,
    /// in whatever order the one before gave them back.
    pub(super) fn take(&mut self, stream: StreamId, bytes: u64) -> Option<GmAddr> {
        self.free.get_mut(&(stream.0, bytes))?.pop_first().map(GmAddr)
    }

    pub(super) fn give(&mut self, stream: StreamId, bytes: u64, address: GmAddr) {
        self.free.entry((stream.0, bytes)).or_default().insert(address.0);
    }

    /// All blocks, which are not in the pool any more.
    pub(super) fn drain(&mut self) -> Vec<GmAddr> {
        std::mem::take(&mut self.free).into_values().flatten().map(GmAddr).collect()
    }
}

/// The bounded fast region of the device: ranges of bytes, first fit. It serves one stream, the first one that asks, because what is given
/// back may still be in use by that stream.
#[derive(Debug, Default)]
pub(super) struct Region {
    base: u64,
    stream: Option<StreamId>,
    /// Free ranges in order: offset, bytes.
    free: Vec<(u64, u64)>,
    /// Ranges that were given back since the stream submitted what it was asked.
    given: Vec<(u64, u64)>,
}

/// A range of the region that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) address: GmAddr,
    /// It has bytes of a block that began elsewhere and that programs use which are not submitted. Within a launch tensors are known by where they
    /// begin, so that nothing would order the two.
    pub(super) is_unordered: bool,
}

/// Blocks on the chip begin at multiples of this.
const ALIGN: u64 = 64;

impl Region {
    pub(super) fn new(base: GmAddr, bytes: u64) -> Self {
        Self { base: base.0, stream: None, free: vec![(0, bytes)], given: Vec::new() }
    }

    /// A range; `None`: no hole is large enough, or the region serves another stream.
    pub(super) fn take(&mut self, stream: StreamId, bytes: u64) -> Option<Taken> {
        (*self.stream.get_or_insert(stream) == stream).then_some(())?;
        let bytes = bytes.next_multiple_of(ALIGN);
        let hole = self.free.iter_mut().find(|(_, free)| *free >= bytes)?;
        let at = hole.0;
        *hole = (hole.0 + bytes, hole.1 - bytes);
        self.free.retain(|(_, free)| *free > 0);
        let has_bytes_of = |(other, length): &(u64, u64)| {
            *other != at && at < other + length && *other < at + bytes
        };
        let is_unordered = self.given.iter().any(has_bytes_of);
        Some(Taken { address: GmAddr(self.base + at), is_unordered })
    }

    /// The stream has submitted what it was asked.
    pub(super) fn submitted(&mut self, stream: StreamId) {
        if self.stream == Some(stream) {
            self.given.clear();
        }
    }

    /// Gives a range back, and joins it with its neighbours.
    pub(super) fn give(&mut self, address: GmAddr, bytes: u64) {
        let range = (address.0 - self.base, bytes.next_multiple_of(ALIGN));
        self.given.push(range);
        self.free.push(range);
        self.free.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(self.free.len());
        for (at, bytes) in self.free.drain(..) {
            match joined.last_mut() {
                Some((before, length)) if *before + *length == at => *length += bytes,
                _ => joined.push((at, bytes)),
            }
        }
        self.free = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::{Pool, Region};
    use crate::session::StreamId;
    use pto_abi::GmAddr;

    #[test]
    fn a_block_goes_back_to_its_own_stream_only() {
        let mut pool = Pool::default();
        pool.give(StreamId(1), 64, GmAddr(0x100));
        assert_eq!(pool.take(StreamId(2), 64), None);
        assert_eq!(pool.take(StreamId(1), 128), None);
        assert_eq!(pool.take(StreamId(1), 64), Some(GmAddr(0x100)));
        assert_eq!(pool.take(StreamId(1), 64), None);
    }

    #[test]
    fn holes_of_the_region_are_joined() {
        let mut region = Region::new(GmAddr(0x1000), 256);
        let blocks =
            [64, 100, 64].map(|bytes| region.take(StreamId(1), bytes).map(|taken| taken.address.0));
        assert_eq!(blocks, [Some(0x1000), Some(0x1040), Some(0x10C0)]);
        assert_eq!(region.take(StreamId(1), 1), None);
        region.give(GmAddr(0x1000), 64);
        region.give(GmAddr(0x10C0), 64);
        assert_eq!(region.take(StreamId(1), 100), None, "two holes of 64 bytes are not one of 128");
        region.give(GmAddr(0x1040), 100);
        assert_eq!(region.take(StreamId(2), 64), None, "it serves the first stream");
        let all = region.take(StreamId(1), 256).unwrap();
        assert_eq!((all.address, all.is_unordered), (GmAddr(0x1000), true));
    }

    #[test]
    fn a_block_with_bytes_of_another_one_is_told_until_that_is_submitted() {
        let mut region = Region::new(GmAddr(0x1000), 256);
        let take = |region: &mut Region, bytes| {
            let taken = region.take(StreamId(1), bytes).unwrap();
            (taken.address.0, taken.is_unordered)
        };
        assert_eq!(take(&mut region, 128), (0x1000, false));
        region.give(GmAddr(0x1000), 128);
        assert_eq!(take(&mut region, 64), (0x1000, false), "it begins where the other one did");
        assert_eq!(take(&mut region, 64), (0x1040, true));
        region.give(GmAddr(0x1040), 64);
        region.submitted(StreamId(2));
        region.submitted(StreamId(1));
        assert_eq!(take(&mut region, 128), (0x1040, false));
    }
}

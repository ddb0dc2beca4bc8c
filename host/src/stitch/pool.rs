//! Blocks of device memory that tensors own.
//!
//! ```text
//! take --> Block --drop--> pool of its stream --take, same bytes--> Block
//!                          the stream is closed --> memory of the device
//! ```
//! A block that is given back may still be in use by commands of its stream. Only the same stream gets it again, and the commands of
//! a stream are in order, so that the stream need not wait for that. Blocks on the chip are in [`Region`].

use std::collections::{BTreeMap, BTreeSet};

use pto_abi::GmAddr;

use crate::session::StreamId;

/// The free blocks, by the streams that are open.
#[derive(Debug, Default)]
pub(super) struct Pool {
    streams: BTreeMap<StreamId, OfStream>,
}

/// The blocks of a stream.
#[derive(Debug, Default)]
struct OfStream {
    /// By their bytes.
    free: BTreeMap<u64, BTreeSet<u64>>,
    /// Runs that are not submitted yet: the session does not know that their blocks are in use.
    unsubmitted: u64,
}

impl OfStream {
    fn drain(&mut self) -> impl Iterator<Item = GmAddr> + use<> {
        std::mem::take(&mut self.free).into_values().flatten().map(GmAddr)
    }
}

impl Pool {
    /// From here on the stream has blocks here.
    pub(super) fn open(&mut self, stream: StreamId) {
        self.streams.entry(stream).or_default();
    }

    /// Nothing is taken for the stream any more: its blocks, which are not in the pool any more.
    pub(super) fn close(&mut self, stream: StreamId) -> Vec<GmAddr> {
        self.streams.remove(&stream).map(|mut of| of.drain().collect()).unwrap_or_default()
    }

    /// A block of this size that the stream gave back: that with the lowest address, so that each round of a loop gets the same blocks,
    /// in whatever order the one before gave them back.
    pub(super) fn take(&mut self, stream: StreamId, bytes: u64) -> Option<GmAddr> {
        self.streams.get_mut(&stream)?.free.get_mut(&bytes)?.pop_first().map(GmAddr)
    }

    /// Takes a block back; `false`: its stream is closed, and no stream would take the block again.
    pub(super) fn give(&mut self, stream: StreamId, bytes: u64, address: GmAddr) -> bool {
        let Some(of) = self.streams.get_mut(&stream) else { return false };
        of.free.entry(bytes).or_default().insert(address.0);
        true
    }

    /// A run of the stream is there that is not submitted yet.
    pub(super) fn hold(&mut self, stream: StreamId) {
        if let Some(of) = self.streams.get_mut(&stream) {
            of.unsubmitted += 1;
        }
    }

    /// Records that this many runs of the stream are submitted.
    pub(super) fn submitted(&mut self, stream: StreamId, runs: u64) {
        if let Some(of) = self.streams.get_mut(&stream) {
            of.unsubmitted -= runs;
        }
    }

    /// The blocks that the session may be given back, which are not in the pool any more.
    pub(super) fn drain(&mut self) -> Vec<GmAddr> {
        let idle = self.streams.values_mut().filter(|of| of.unsubmitted == 0);
        idle.flat_map(OfStream::drain).collect()
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
        pool.open(StreamId(1));
        assert!(pool.give(StreamId(1), 64, GmAddr(0x100)));
        assert_eq!(pool.take(StreamId(2), 64), None);
        assert_eq!(pool.take(StreamId(1), 128), None);
        assert_eq!(pool.take(StreamId(1), 64), Some(GmAddr(0x100)));
        assert_eq!(pool.take(StreamId(1), 64), None);
    }

    #[test]
    fn what_a_closed_stream_had_and_what_no_run_needs_leaves_the_pool() {
        let mut pool = Pool::default();
        let [one, other, gone] = [1, 2, 3].map(StreamId);
        for (stream, address) in [(one, 0x100), (other, 0x200), (gone, 0x300)] {
            pool.open(stream);
            assert!(pool.give(stream, 64, GmAddr(address)));
        }
        assert_eq!(pool.close(gone), [GmAddr(0x300)]);
        assert!(!pool.give(gone, 64, GmAddr(0x300)), "no stream would take it again");
        pool.hold(one);
        assert_eq!(pool.drain(), [GmAddr(0x200)], "a run of the other stream is not submitted");
        pool.submitted(one, 1);
        assert_eq!(pool.drain(), [GmAddr(0x100)]);
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
    fn a_block_with_bytes_of_another_one_is_unordered_until_that_is_submitted() {
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

//! Who owns which bytes of GM. Pure bookkeeping: it touches no memory.
//!
//! Invariants: live blocks and free blocks tile GM without gap or overlap; no two free blocks touch; all
//! blocks start at and span multiples of 64 bytes. A block is taken from the smallest free block that
//! holds it (the lowest among equals), so that every operation is O(log n): address-ordered first fit
//! would have to walk the free blocks.
//!
//! Why it is so: `docs/decisions/device-memory.md`.

use std::collections::{BTreeMap, BTreeSet};

use pto_abi::GmAddr;

use crate::address_state::AddressState;
use crate::error::Error;

/// Alignment and granularity of blocks: a line, so that two blocks never share one (DESIGN.md, section 4).
pub(crate) const ALIGNMENT: u64 = 64;

/// For whom a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A user of the library: the only one whose blocks `free` and copies accept.
    User,
    /// The runtime: its arena.
    Runtime,
    /// The runs that were in progress when a user freed it.
    Runs,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// As asked for; the block spans the next multiple of [`ALIGNMENT`].
    bytes: u64,
    owner: Owner,
    /// A core that did not come back from a run may still write to it: the block is never allocated again.
    is_lost: bool,
}

impl Block {
    const fn span(&self) -> u64 {
        self.bytes.next_multiple_of(ALIGNMENT)
    }
}

/// The blocks of one GM.
#[derive(Debug)]
pub(crate) struct Allocator {
    start: u64,
    end: u64,
    /// Start -> block.
    live: BTreeMap<u64, Block>,
    /// Start -> span.
    free: BTreeMap<u64, u64>,
    /// (span, start) of every free block.
    free_by_span: BTreeSet<(u64, u64)>,
    /// Starts of blocks that were freed and not allocated over since: distinguishes a double free from a
    /// foreign pointer.
    freed: BTreeSet<u64>,
    free_bytes: u64,
    /// Bytes of the blocks of [`Owner::Runs`].
    waiting_bytes: u64,
    /// No byte from here on was ever part of a block.
    untouched: u64,
}

impl Allocator {
    /// All of GM, free. `start` is aligned; a tail of less than [`ALIGNMENT`] bytes is not used.
    pub(crate) fn new(start: GmAddr, bytes: u64) -> Self {
        debug_assert_eq!(start.0 % ALIGNMENT, 0);
        let start = start.0;
        let usable = bytes - bytes % ALIGNMENT;
        let mut allocator = Self {
            start,
            end: start + usable,
            live: BTreeMap::new(),
            free: BTreeMap::new(),
            free_by_span: BTreeSet::new(),
            freed: BTreeSet::new(),
            free_bytes: 0,
            waiting_bytes: 0,
            untouched: start,
        };
        if usable > 0 {
            allocator.insert_free(start, usable);
        }
        allocator
    }

    /// Takes a block.
    pub(crate) fn alloc(&mut self, bytes: u64, owner: Owner) -> Result<GmAddr, Error> {
        if bytes == 0 {
            return Err(Error::ZeroSize);
        }
        let full = Error::OutOfMemory {
            asked: bytes,
            free: self.free_bytes,
            waiting: self.waiting_bytes,
            largest: self.free_by_span.last().map_or(0, |(span, _)| *span),
        };
        let Some(span) = bytes.checked_next_multiple_of(ALIGNMENT) else { return Err(full) };
        let Some(&(held, start)) = self.free_by_span.range((span, 0)..).next() else {
            return Err(full);
        };
        self.remove_free(start, held);
        if held > span {
            self.insert_free(start + span, held - span);
        }
        self.live.insert(start, Block { bytes, owner, is_lost: false });
        self.forget_freed(start, start + span);
        self.untouched = self.untouched.max(start + span);
        Ok(GmAddr(start))
    }

    /// Gives a block back.
    pub(crate) fn free(&mut self, address: GmAddr, owner: Owner) -> Result<(), Error> {
        let span = self.owned(address, owner)?.span();
        self.live.remove(&address.0);
        self.freed.insert(address.0);
        self.coalesce(address.0, span);
        Ok(())
    }

    /// Takes a block from its user and leaves it to the present runs; `false`: it is never free again.
    pub(crate) fn retire(&mut self, address: GmAddr) -> Result<bool, Error> {
        let block = self.owned(address, Owner::User)?;
        block.owner = Owner::Runs;
        let (span, returns) = (block.span(), !block.is_lost);
        self.waiting_bytes += span;
        Ok(returns)
    }

    /// Takes a block from the runs that were on: it is free.
    pub(crate) fn release(&mut self, address: GmAddr) -> Result<(), Error> {
        let span = self.owned(address, Owner::Runs)?.span();
        self.waiting_bytes -= span;
        self.free(address, Owner::Runs)
    }

    /// A core that did not come back may still write to the memory of users: none of it is ever allocated again.
    pub(crate) fn lose_users(&mut self) {
        let users = self.live.values_mut().filter(|block| block.owner != Owner::Runtime);
        users.for_each(|block| block.is_lost = true);
    }

    /// The live block of `owner` that starts at `address`.
    fn owned(&mut self, address: GmAddr, owner: Owner) -> Result<&mut Block, Error> {
        let state = self.state_of(address);
        match self.live.get_mut(&address.0) {
            Some(block) if block.owner == owner => Ok(block),
            Some(block) if block.owner == Owner::Runs => Err(Error::DoubleFree { address }),
            None if self.freed.contains(&address.0) => Err(Error::DoubleFree { address }),
            _ => Err(Error::ForeignPointer { address, state }),
        }
    }

    /// Fails unless `bytes` bytes at `address` lie in one live block of a user.
    pub(crate) fn check_range(&self, address: GmAddr, bytes: u64) -> Result<(), Error> {
        if let Some((start, block)) = self.block_at(address)
            && block.owner == Owner::User
            && address.0.checked_add(bytes).is_some_and(|end| end <= start + block.bytes)
        {
            return Ok(());
        }
        Err(Error::CopyOutOfRange { address, bytes, state: self.state_of(address) })
    }

    /// The live block of a user that `address` lies in.
    pub(crate) fn allocation(&self, address: GmAddr) -> Option<(GmAddr, u64)> {
        let (start, block) = self.block_at(address)?;
        let is_inside = block.owner == Owner::User && address.0 < start + block.bytes;
        is_inside.then_some((GmAddr(start), block.bytes))
    }

    /// Bytes that their users have freed, and that runs still hold.
    pub(crate) const fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Bytes of the live blocks of users.
    pub(crate) fn user_bytes(&self) -> u64 {
        let of_user = self.live.values().filter(|block| block.owner == Owner::User);
        of_user.map(|block| block.bytes).sum()
    }

    /// Bytes that are free, and the largest block among them.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        (self.free_bytes, self.free_by_span.last().map_or(0, |(span, _)| *span))
    }

    /// How many of `bytes` bytes at `address` may have been in use before; the rest is as it was mapped.
    /// Ask before allocating.
    pub(crate) fn untouched(&self) -> GmAddr {
        GmAddr(self.untouched)
    }

    fn state_of(&self, address: GmAddr) -> AddressState {
        if !(self.start..self.end).contains(&address.0) {
            return AddressState::OutsideGm;
        }
        match self.block_at(address) {
            Some((_, Block { owner: Owner::Runtime, .. })) => AddressState::Runtime,
            Some((_, Block { owner: Owner::Runs, .. })) => AddressState::Freed,
            Some((start, block)) => {
                AddressState::Allocation { start: GmAddr(start), bytes: block.bytes }
            }
            None => AddressState::Free,
        }
    }

    /// The live block that spans `address`.
    fn block_at(&self, address: GmAddr) -> Option<(u64, Block)> {
        let (&start, &block) = self.live.range(..=address.0).next_back()?;
        (address.0 - start < block.span()).then_some((start, block))
    }

    fn coalesce(&mut self, mut start: u64, mut span: u64) {
        if let Some((&before, &held)) = self.free.range(..start).next_back()
            && before + held == start
        {
            self.remove_free(before, held);
            start = before;
            span += held;
        }
        if let Some(&held) = self.free.get(&(start + span)) {
            self.remove_free(start + span, held);
            span += held;
        }
        self.insert_free(start, span);
    }

    fn insert_free(&mut self, start: u64, span: u64) {
        self.free.insert(start, span);
        self.free_by_span.insert((span, start));
        self.free_bytes += span;
    }

    fn remove_free(&mut self, start: u64, span: u64) {
        self.free.remove(&start);
        self.free_by_span.remove(&(span, start));
        self.free_bytes -= span;
    }

    fn forget_freed(&mut self, start: u64, end: u64) {
        while let Some(&old) = self.freed.range(start..end).next() {
            self.freed.remove(&old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, Allocator, Owner};
    use crate::address_state::AddressState;
    use crate::error::Error;
    use pto_abi::GmAddr;

    const START: u64 = 0x10_0000;

    fn of(bytes: u64) -> Allocator {
        Allocator::new(GmAddr(START), bytes)
    }

    impl Allocator {
        /// The invariants at the top of the file.
        fn assert_whole(&self) {
            let live = self.live.iter().map(|(start, block)| (*start, block.span(), true));
            let free = self.free.iter().map(|(start, span)| (*start, *span, false));
            let mut blocks: Vec<_> = live.chain(free).collect();
            blocks.sort_unstable();
            let mut at = self.start;
            let mut after_free = false;
            for (start, span, is_live) in blocks {
                assert_eq!((start, start % ALIGNMENT), (at, 0), "gap or overlap");
                assert!(is_live || !after_free, "free blocks touch at {start:#x}");
                after_free = !is_live;
                at += span;
            }
            assert_eq!(at, self.end);
            assert_eq!(self.free_bytes, self.free.values().sum::<u64>());
            assert_eq!(self.free.len(), self.free_by_span.len());
        }
    }

    #[test]
    fn random_use_keeps_the_invariants() {
        let mut allocator = of(1 << 16);
        let mut live: Vec<GmAddr> = Vec::new();
        let mut seed = 1_u64;
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        for _ in 0..rounds {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = seed >> 33;
            if random % 5 < 3 {
                if let Ok(address) = allocator.alloc(1 + random % 3_000, Owner::User) {
                    live.push(address);
                }
            } else if !live.is_empty() {
                let index = usize::try_from(random).unwrap() % live.len();
                let address = live.swap_remove(index);
                allocator.free(address, Owner::User).unwrap();
                assert!(matches!(
                    allocator.free(address, Owner::User),
                    Err(Error::DoubleFree { address: named }) if named == address
                ));
            }
        }
        allocator.assert_whole();
        for address in live {
            allocator.free(address, Owner::User).unwrap();
        }
        allocator.assert_whole();
        assert_eq!(allocator.free_bytes(), (1 << 16, 1 << 16), "everything coalesced");
    }

    #[test]
    fn blocks_are_lines_apart_and_the_best_fit_is_taken() {
        let mut allocator = of(1 << 12);
        let a = allocator.alloc(1, Owner::User).unwrap();
        let b = allocator.alloc(65, Owner::User).unwrap();
        let c = allocator.alloc(64, Owner::User).unwrap();
        assert_eq!([a.0, b.0, c.0], [START, START + 64, START + 192]);
        allocator.free(b, Owner::User).unwrap();
        assert_eq!(allocator.alloc(100, Owner::User).unwrap(), b);
    }

    #[test]
    fn out_of_memory_says_what_there_is() {
        let mut allocator = of(256);
        let a = allocator.alloc(64, Owner::User).unwrap();
        let _b = allocator.alloc(64, Owner::User).unwrap();
        allocator.free(a, Owner::User).unwrap();
        for asked in [129, 1 << 40, u64::MAX] {
            let error = allocator.alloc(asked, Owner::User).unwrap_err();
            let Error::OutOfMemory { asked: named, free: 192, waiting: 0, largest: 128 } = error
            else {
                panic!("{error:?}");
            };
            assert_eq!(named, asked);
        }
        assert!(matches!(allocator.alloc(0, Owner::User), Err(Error::ZeroSize)));
        assert!(matches!(of(63).alloc(1, Owner::User), Err(Error::OutOfMemory { free: 0, .. })));
    }

    fn state_of_refused_free(allocator: &mut Allocator, address: u64) -> AddressState {
        match allocator.free(GmAddr(address), Owner::User) {
            Err(Error::ForeignPointer { address: named, state }) if named.0 == address => state,
            other => panic!("{address:#x}: {other:?}"),
        }
    }

    #[test]
    fn foreign_pointers_are_distinguished_from_double_frees() {
        let mut allocator = of(1024);
        let a = allocator.alloc(100, Owner::User).unwrap();
        let arena = allocator.alloc(64, Owner::Runtime).unwrap();
        assert_eq!(state_of_refused_free(&mut allocator, 64), AddressState::OutsideGm);
        assert_eq!(state_of_refused_free(&mut allocator, START + 1024), AddressState::OutsideGm);
        assert_eq!(state_of_refused_free(&mut allocator, START + 512), AddressState::Free);
        let inside = AddressState::Allocation { start: a, bytes: 100 };
        assert_eq!(state_of_refused_free(&mut allocator, a.0 + 64), inside);
        assert_eq!(state_of_refused_free(&mut allocator, arena.0), AddressState::Runtime);
        allocator.free(a, Owner::User).unwrap();
        assert!(matches!(allocator.free(a, Owner::User), Err(Error::DoubleFree { .. })));
        let over = allocator.alloc(128, Owner::User).unwrap();
        assert_eq!(over, a);
        allocator.free(over, Owner::User).unwrap();
    }

    #[test]
    fn what_runs_hold_is_neither_free_nor_the_users() {
        let mut allocator = of(192);
        let a = allocator.alloc(100, Owner::User).unwrap();
        assert!(allocator.retire(a).unwrap());
        assert!(matches!(allocator.retire(a), Err(Error::DoubleFree { .. })));
        let refused = allocator.check_range(a, 1).unwrap_err();
        assert!(
            matches!(refused, Error::CopyOutOfRange { state: AddressState::Freed, .. }),
            "{refused}"
        );
        let full = allocator.alloc(128, Owner::User).unwrap_err();
        assert!(matches!(full, Error::OutOfMemory { free: 64, waiting: 128, .. }), "{full}");
        allocator.release(a).unwrap();
        assert!(matches!(allocator.retire(a), Err(Error::DoubleFree { .. })));
        assert_eq!(allocator.alloc(128, Owner::User).unwrap(), a);
        allocator.assert_whole();
    }

    #[test]
    fn what_was_lost_stays_with_the_runs() {
        let mut allocator = of(256);
        let before = allocator.alloc(64, Owner::User).unwrap();
        allocator.lose_users();
        let after = allocator.alloc(64, Owner::User).unwrap();
        assert!(!allocator.retire(before).unwrap());
        assert!(allocator.retire(after).unwrap(), "no lost core has its address");
        allocator.assert_whole();
    }

    #[test]
    fn a_copy_stays_in_one_block() {
        let mut allocator = of(1024);
        let a = allocator.alloc(100, Owner::User).unwrap();
        let arena = allocator.alloc(64, Owner::Runtime).unwrap();
        assert_eq!(allocator.allocation(a.offset(99)), Some((a, 100)));
        assert_eq!(
            allocator.allocation(a.offset(100)),
            None,
            "the rest of the line belongs to no allocation"
        );
        assert_eq!(allocator.allocation(arena), None);
        allocator.check_range(a, 100).unwrap();
        allocator.check_range(a.offset(100), 0).unwrap();
        allocator.check_range(a.offset(99), 1).unwrap();
        let bad = [(a.offset(99), 2), (a.offset(1), u64::MAX), (arena, 1), (GmAddr(0), 1)];
        for (address, bytes) in bad {
            let error = allocator.check_range(address, bytes).unwrap_err();
            assert!(matches!(error, Error::CopyOutOfRange { .. }), "{error:?}");
            assert!(error.to_string().contains(&address.to_string()));
        }
    }
}

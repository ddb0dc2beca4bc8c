//! Translates handles and addresses of a record to those of this run.

use std::collections::BTreeMap;

/// Smaller words are numbers, and no handles or addresses.
const LOWEST_ADDRESS: u64 = 1 << 16;
/// Memory for the host is aligned as a page, since some calls take whole pages.
const PAGE: usize = 4096;

/// A piece of memory: its bytes in the record, and where it begins in this run.
#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u64,
    here: u64,
    /// Whether a call returned it; memory that replaces that of the program can be allocated again, and larger.
    is_given: bool,
}

/// The translation.
#[derive(Default)]
pub(crate) struct AddressMap {
    blocks: BTreeMap<u64, Block>,
    /// Memory of the host that replaces that of the program; it lives until the end, since streams may still read it.
    held: Vec<Vec<[u8; PAGE]>>,
}

impl AddressMap {
    /// Maps an address of the record, and the `bytes` from it on, to the address `here`.
    pub(crate) fn put(&mut self, there: u64, bytes: u64, here: u64) {
        self.insert(there, Block { bytes: bytes.max(1), here, is_given: true });
    }

    fn insert(&mut self, there: u64, block: Block) {
        if there < LOWEST_ADDRESS {
            return;
        }
        // What was there before is gone.
        let within: Vec<u64> = self
            .blocks
            .range(there..there.saturating_add(block.bytes))
            .map(|(start, _)| *start)
            .collect();
        for start in within {
            self.blocks.remove(&start);
        }
        self.blocks.insert(there, block);
    }

    /// What a word of the record is now.
    pub(crate) fn word(&self, word: u64) -> u64 {
        self.find(word, 1).unwrap_or(word)
    }

    fn find(&self, word: u64, bytes: u64) -> Option<u64> {
        let (start, block) = self.blocks.range(..=word).next_back()?;
        let (offset, needed) = (word - start, if block.is_given { 1 } else { bytes });
        (offset.saturating_add(needed) <= block.bytes).then(|| block.here.wrapping_add(offset))
    }

    /// Makes room for these addresses, each with this many bytes. Ranges that overlap get one piece of memory.
    pub(crate) fn reserve(
        &mut self,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), String> {
        let is_new =
            |(there, bytes): &(u64, u64)| *there != 0 && self.find(*there, *bytes).is_none();
        let mut ranges: Vec<(u64, u64)> = ranges.filter(is_new).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (there, bytes) in ranges {
            match joined.last_mut() {
                Some((start, length)) if there - *start < *length => {
                    *length = (*length).max((there - *start).saturating_add(bytes));
                }
                _ => joined.push((there, bytes)),
            }
        }
        joined.into_iter().try_for_each(|(there, bytes)| self.address(there, bytes).map(|_| ()))
    }

    /// An address with this many bytes: in a block that is known, or in new memory of the host.
    pub(crate) fn address(&mut self, there: u64, bytes: u64) -> Result<u64, String> {
        if there == 0 {
            return Ok(0);
        }
        if let Some(here) = self.find(there, bytes.max(1)) {
            return Ok(here);
        }
        // Up to a page is in front of the first boundary, and up to another one in front of the address in its page.
        let pages = usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(PAGE).saturating_add(2);
        let mut held: Vec<[u8; PAGE]> = Vec::new();
        held.try_reserve_exact(pages)
            .map_err(|_| format!("there is no memory for {bytes} bytes at {there:#x}"))?;
        held.resize(pages, [0; PAGE]);
        let start = held.as_mut_ptr().expose_provenance();
        // Within its page the address is as it was.
        let offset = usize::try_from(there).unwrap_or(0) % PAGE;
        let here = (start.next_multiple_of(PAGE) + offset) as u64;
        self.held.push(held);
        self.insert(there, Block { bytes: bytes.max(1), here, is_given: false });
        Ok(here)
    }

    /// Bytes of a structure, with its words as they are now.
    pub(crate) fn translated(&self, bytes: &[u8]) -> Vec<u8> {
        let mut here = bytes.to_vec();
        for chunk in here.chunks_exact_mut(8) {
            let word = u64::from_ne_bytes(<[u8; 8]>::try_from(&*chunk).unwrap_or_default());
            chunk.copy_from_slice(&self.word(word).to_ne_bytes());
        }
        here
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressMap, PAGE};

    /// Wherever the memory begins, and wherever in its page the address was.
    #[test]
    fn memory_of_the_host_has_all_its_bytes() {
        let mut addresses = AddressMap::default();
        for number in 0..512_u64 {
            let (there, bytes) = ((1 << 40) + number * 0x10_0000 + number * 8, 6144 + number % 3);
            let here = usize::try_from(addresses.address(there, bytes).unwrap()).unwrap();
            let held = addresses.held.last().unwrap();
            let first = held.as_ptr().addr();
            let end = first + held.len() * PAGE;
            assert!(first <= here && here + usize::try_from(bytes).unwrap() <= end, "{there:#x}");
            assert_eq!(here % PAGE, usize::try_from(there).unwrap() % PAGE);
        }
    }

    #[test]
    fn words_within_a_block_move_with_it() {
        let mut addresses = AddressMap::default();
        addresses.put(0x10_0000, 64, 0x20_0000);
        addresses.put(0x5A00_0000_0008, 0, 0x77);
        assert_eq!(addresses.word(0x10_0000), 0x20_0000);
        assert_eq!(addresses.word(0x10_003F), 0x20_003F);
        assert_eq!(addresses.word(0x10_0040), 0x10_0040);
        assert_eq!(addresses.word(0x5A00_0000_0008), 0x77);
        assert_eq!(addresses.word(7), 7);
        let bytes = [0x10_0004_u64.to_ne_bytes(), 3_u64.to_ne_bytes()].concat();
        assert_eq!(
            addresses.translated(&bytes),
            [0x20_0004_u64.to_ne_bytes(), 3_u64.to_ne_bytes()].concat()
        );
        // New memory has the same offset within its page, and stays.
        let first = addresses.address(0x7F12_3456_7123, 5000).expect("memory");
        assert_eq!(first % 4096, 0x123);
        assert_eq!(addresses.address(0x7F12_3456_7124, 10), Ok(first + 1));
        assert_eq!(addresses.address(0, 10), Ok(0));
    }
}

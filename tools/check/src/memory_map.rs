//! Where the tensors of a program are: addresses for the builder, and *blocks* of memory for the search for races.
//!
//! The runtime takes tensors with different bases for disjoint. Whether they are is looked at here: tensors of the host's
//! whose addresses are known and meet are one block.

use pto_abi::GmAddr;

use crate::program::{Location, Program};

/// Where heaps and tensors without an address are put: above the addresses of processes and devices.
const FAKE: u64 = 1 << 47;
/// Addresses are below, with the heaps.
const END: u64 = 1 << 48;
/// Bytes of all heaps together, where they are as large as any program needs.
pub(crate) const HEAPS: u64 = 1 << 45;
/// Addresses that a file may state are below.
pub(crate) const HIGHEST: u64 = FAKE;
/// Bytes of all tensors without an address together.
pub(crate) const MOST_BYTES: u64 = END - FAKE - HEAPS;

/// Where tensors are.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The base of each tensor; null: it is of the heap, or bound.
    pub(crate) bases: Vec<GmAddr>,
    /// Where the heaps begin.
    pub(crate) heap: GmAddr,
    /// Of each tensor of the host's its block, and its offset in that.
    pub(crate) blocks: Vec<(u32, u64)>,
    /// How many blocks there are.
    pub(crate) count: u32,
    /// Pairs of tensors that meet, although their bases differ.
    pub(crate) aliases: Vec<(usize, usize)>,
}

impl Addresses {
    pub(crate) fn of(program: &Program) -> Self {
        let mut next = FAKE + HEAPS;
        let mut bases = Vec::with_capacity(program.tensors.len());
        for tensor in &program.tensors {
            bases.push(match tensor.location {
                Location::Host(Some(base)) => base,
                Location::Host(None) => {
                    let base = next;
                    // Who reads files sees to it that the sum fits.
                    next = next.saturating_add(tensor.bytes.max(1).next_multiple_of(64));
                    GmAddr(base)
                }
                Location::Heap | Location::Bound(_) => GmAddr::NULL,
            });
        }
        let mut addresses = Self {
            blocks: vec![(u32::MAX, 0); bases.len()],
            bases,
            heap: GmAddr(FAKE),
            count: 0,
            aliases: Vec::new(),
        };
        addresses.make_blocks(program);
        addresses
    }

    fn make_blocks(&mut self, program: &Program) {
        let is_host = |index: &usize| matches!(program.tensors[*index].location, Location::Host(_));
        let mut order: Vec<usize> = (0..self.bases.len()).filter(is_host).collect();
        order.sort_by_key(|index| self.bases[*index]);
        // The block that is being made: where it begins and ends, and the tensor that reaches furthest.
        let mut open: Option<(u64, u64, usize)> = None;
        for index in order {
            let (base, bytes) = (self.bases[index].0, program.tensors[index].bytes);
            let end = base.saturating_add(bytes);
            let (start, reach, furthest) = match open {
                Some((start, reach, furthest)) if base < reach => {
                    if self.bases[furthest].0 != base {
                        self.aliases.push((furthest, index));
                    }
                    (start, reach, furthest)
                }
                _ => {
                    self.count += 1;
                    (base, 0, index)
                }
            };
            self.blocks[index] = (self.count - 1, base - start);
            open = Some(if end > reach { (start, end, index) } else { (start, reach, furthest) });
        }
    }
}

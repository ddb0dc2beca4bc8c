//! Kernels that test shaped tasks rather than compute: each part of a task folds into a cell of its own, so that the cells prove
//! that every part of every block ran once, in order; and parts that start together may wait for each other.

use pto_abi::block::BlockContext;
use pto_abi::sync::{AtomicU64, Ordering};

use crate::args;
use crate::probe::mix;

/// Words of a block: a cell for the cube core, one for each vector core, and where they meet.
pub const BLOCK_WORDS: u64 = 4;
/// Which of them is where they meet: how many have come in the low half, how often all have in the high half.
pub const MEETING: u64 = 3;
/// The word `group` of parts that do not wait for each other.
pub const ALONE: u64 = 0;
/// In the word `group`: the group is that of all blocks. The bits below are how many parts a group has.
pub const ALL_BLOCKS: u64 = 1 << 32;

/// What a cell holds after a part: `cell` before, `index` the number of the cell.
#[must_use]
pub const fn part_value(cell: u64, salt: u64, index: u64, blocks: u32) -> u64 {
    mix(cell ^ mix(salt ^ index ^ (blocks as u64) << 32))
}

/// Folds into the cell of its part; `first` is the cell of the first core of its kind.
///
/// # Safety
/// The [argument contract](crate::args): `cells` has [`BLOCK_WORDS`] words
/// (`u64`) for each block, and no task but this one accesses them now. Where `group` is not [`ALONE`], so many parts run at
/// once: those of the block, or of all blocks.
#[inline]
pub unsafe fn part(cells: u64, salt: u64, group: u64, context: u64, first: u64) {
    let BlockContext { block, blocks, lane } = BlockContext::of(context);
    let own = BLOCK_WORDS * u64::from(block);
    if group != ALONE {
        let of = if group & ALL_BLOCKS == 0 { own } else { 0 };
        // SAFETY: the caller keeps the contract: the word is of this block, or of the first one.
        unsafe { meet(cells, of + MEETING, group & (ALL_BLOCKS - 1)) }
    }
    let index = own + first + u64::from(lane);
    // SAFETY: the caller keeps the contract: the cell is that of this part.
    let cell: u64 = unsafe { args::load(cells, args::size(index)) };
    // SAFETY: the caller keeps the contract.
    unsafe { args::store(cells, args::size(index), part_value(cell, salt, index, blocks)) }
}

/// Waits until `parts` parts have come.
///
/// # Safety
/// The word is mapped, and only the parts that meet access it.
unsafe fn meet(cells: u64, index: u64, parts: u64) {
    let word = core::ptr::with_exposed_provenance_mut::<u64>(args::size(cells + 8 * index));
    // SAFETY: the caller keeps the contract; the word is aligned, and while they meet it is reached by atomics only.
    let word = unsafe { AtomicU64::from_ptr(word) };
    // AcqRel: pairs with itself: the additions are one sequence, so that the last part sees what all others did.
    let before = word.fetch_add(1, Ordering::AcqRel);
    let (round, come) = (before >> 32, before & 0xFFFF_FFFF);
    if come + 1 >= parts {
        // Release: pairs with the Acquire below.
        return word.store((round + 1) << 32, Ordering::Release);
    }
    // Acquire: pairs with the Release above.
    while word.load(Ordering::Acquire) >> 32 == round {
        core::hint::spin_loop();
    }
}

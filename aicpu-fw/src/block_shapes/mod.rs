//! Shaped tasks of the streaming runtime: those that are more than one kernel on one core (`pto_graph::TensorTask`).
//!
//! ```text
//!            publish, or the last producer
//! builder,  ------------------------------> board.rs -------------------> scheduler/blocks.rs --> cores
//! scheduler      predicate: ARRIVALS          lists by priority             claims blocks for
//!                read, then list or skip                                    free cores of its own
//! ```
//! Memory is in the region `stream`, so that other runs have none of it; a task says in one bit of its line that it has a
//! line. Everything that schedulers share is on the board, under one lock that is held for a short time only.

mod board;
mod lanes;
mod list;
#[cfg(not(any(loom, shuttle)))]
mod memory;

use pto_abi::GmAddr;
use pto_abi::gm::GmWindow;
use pto_abi::stream::{BLOCK_WORDS, BlockBoard, BlockLine, HAS_PREDICATE, SYNC_START};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::task::Task;
use pto_graph::{Comparison, ElementType};

pub use board::{Age, Claim, Head};
pub use lanes::{LANE_SETS, Lanes};
pub use list::{GATHERS, LEVEL_LISTS, List, WaitsFor};

/// The memory of shaped tasks.
#[derive(Clone, Copy)]
pub struct BlockShapeMemory<'a> {
    /// Where they wait.
    pub board: &'a BlockBoard,
    /// A line for each slot.
    pub lines: &'a [BlockLine],
    /// Argument words of parts: [`BLOCK_WORDS`] for each worker.
    pub parts: &'a [AtomicU64],
    /// Where these are in GM.
    pub parts_address: GmAddr,
    /// All of GM, for predicates.
    pub gm: GmWindow<'a>,
    /// Blocks that the device can run at once, by [`Lanes`].
    pub room: [u32; LANE_SETS],
}

impl<'a> BlockShapeMemory<'a> {
    /// The line of the task in `slot`.
    #[must_use]
    pub fn line(&self, slot: u32) -> Option<&'a BlockLine> {
        self.lines.get(slot as usize)
    }

    /// Tasks that wait.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.board.count.load(Ordering::Relaxed)
    }

    /// The argument words of the part on a worker, and where they are.
    #[must_use]
    pub fn part_words(&self, worker: u32) -> (&'a [AtomicU64], GmAddr) {
        let start = BLOCK_WORDS.saturating_mul(worker as usize);
        let words = self.parts.get(start..).and_then(|words| words.get(..BLOCK_WORDS));
        (words.unwrap_or(&[]), self.parts_address.offset(8 * start as u64))
    }

    /// Which part of `task` a worker was given last: a [`BlockContext`](pto_abi::block::BlockContext).
    #[must_use]
    pub fn context(&self, worker: u32, task: &Task) -> u64 {
        let (words, _) = self.part_words(worker);
        let context = words.get(usize::from(task.arg_count.load(Ordering::Relaxed)));
        context.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// The element that a predicate is on.
    #[must_use]
    pub fn element(&self, line: &BlockLine) -> (GmAddr, ElementType) {
        let test = line.test.load(Ordering::Relaxed);
        let element = u8::try_from(test >> 8).ok().and_then(|e| ElementType::try_from(e).ok());
        (GmAddr(line.address.load(Ordering::Relaxed)), element.unwrap_or(ElementType::U8))
    }

    /// Whether the predicate of a task is true. The builder has checked that the element can be read.
    #[must_use]
    pub fn predicate_holds(&self, line: &BlockLine) -> bool {
        let (address, element) = self.element(line);
        let [comparison, ..] = line.test.load(Ordering::Relaxed).to_le_bytes();
        let comparison = Comparison::try_from(comparison).unwrap_or(Comparison::EQUAL);
        let found = read_element(&self.gm, address, element.bytes()).unwrap_or(0);
        comparison.holds(element, found, line.value.load(Ordering::Relaxed))
    }
}

/// The lanes of a task.
#[must_use]
pub fn lanes_of(line: &BlockLine) -> Lanes {
    let [lanes, ..] = line.flags.load(Ordering::Relaxed).to_le_bytes();
    Lanes(lanes)
}

/// Whether the task has a predicate.
#[must_use]
pub fn has_predicate(line: &BlockLine) -> bool {
    line.flags.load(Ordering::Relaxed) & HAS_PREDICATE != 0
}

/// Whether all blocks of the task start at once.
#[must_use]
pub fn starts_at_once(line: &BlockLine) -> bool {
    line.flags.load(Ordering::Relaxed) & SYNC_START != 0
}

/// Whether [`read_element`] could read an element there. Nothing is read: a kernel may be writing it.
#[must_use]
pub fn has_element(gm: &GmWindow<'_>, address: GmAddr, bytes: u64) -> bool {
    let align = usize::try_from(bytes).ok().filter(|bytes| [1, 2, 4, 8].contains(bytes));
    let offset = gm.offset_of(address, bytes).zip(align);
    offset.is_some_and(|(at, align)| gm.pointer(at, bytes, align).is_some())
}

/// The element of `bytes` bytes (1, 2, 4 or 8) at `address`; `None`: outside GM, or not aligned.
#[must_use]
pub fn read_element(gm: &GmWindow<'_>, address: GmAddr, bytes: u64) -> Option<u64> {
    let at = gm.offset_of(address, bytes)?;
    match bytes {
        1 => gm.read::<u8>(at).map(u64::from),
        2 => gm.read::<u16>(at).map(u64::from),
        4 => gm.read::<u32>(at).map(u64::from),
        _ => gm.read::<u64>(at),
    }
}

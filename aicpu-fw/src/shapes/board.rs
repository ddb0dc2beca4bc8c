//! The board: lists of shaped tasks by priority, and the gate of tasks whose blocks start at once.
//!
//! ```text
//! post ----> list (level, cube | vector | cluster) --claim--> .. --claim of the last block--> off the list
//! post ----> list (level, sync) --gathering--> at the gate --pledge--> .. --pledge of the last block--> all start
//! post ----> arrivals --take_arrival--> post, or skipped
//! ```
//! A task stays at the head of its list until its last block is claimed, so that blocks go to whoever has free cores, and
//! the order of a list is the order of readiness.
//!
//! **The gate.** One task at a time gathers cores. A pledged core is neither free nor busy: it waits for the others, and
//! no task but the one at the gate ever holds a core that it does not use. So the task gets its cores: each of them is
//! pledged to it, or free, or runs a kernel that ends without anybody's help (decision 0029). Until its first core is pledged a
//! task of higher priority takes its place at the gate; from then on nothing goes before it, so that its cores are idle for as
//! long as the longest kernel under way.

use pto_abi::stream::{ARRIVALS, BlockLine, LIST_COUNT, LISTS_A_LEVEL, ListEnds, NO_TASK};
use pto_abi::sync::{AtomicU32, Ordering};
use pto_graph::Priority;

use super::{Lanes, ShapeMemory};
use crate::mutant::{self, Mutant};

/// A list of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(pub u32);

/// The bit of `BlockBoard::waiting` that says that the task at the gate has cores, and lacks others.
pub const GATHERS: u32 = 1 << LIST_COUNT;
const _: () = assert!(LIST_COUNT < u32::BITS, "the word has a bit for it");

impl List {
    /// Tasks whose predicate has not been read.
    pub const ARRIVALS: Self = Self(ARRIVALS);

    /// Where tasks wait whose blocks start as cores become free.
    #[must_use]
    pub const fn spread(priority: Priority, lanes: Lanes) -> Self {
        let list = match lanes.0 {
            1 => 0,
            2 => 1,
            _ => 2,
        };
        Self(LISTS_A_LEVEL * priority.get() as u32 + list)
    }

    /// Where tasks wait whose blocks start at once.
    #[must_use]
    pub const fn sync(priority: Priority) -> Self {
        Self(LISTS_A_LEVEL * priority.get() as u32 + LISTS_A_LEVEL - 1)
    }

    /// Its bit of `BlockBoard::waiting`.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }

    /// The bits of all lists of a priority.
    #[must_use]
    pub const fn level(priority: Priority) -> u32 {
        ((1 << LISTS_A_LEVEL) - 1) << (LISTS_A_LEVEL * priority.get() as u32)
    }

    fn is_sync(self) -> bool {
        self != Self::ARRIVALS && self.0 % LISTS_A_LEVEL == LISTS_A_LEVEL - 1
    }
}

/// Blocks that a scheduler has taken: `first .. first + count` of the task in `slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The task.
    pub slot: u32,
    /// The first block.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// No block is left.
    pub is_last: bool,
}

/// A word that only the holder of the lock touches.
fn get(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

/// As [`get`].
fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Relaxed);
}

impl<'a> ShapeMemory<'a> {
    /// The lists that may have a task, by their bits: a moment's guess, without the lock.
    #[inline]
    #[must_use]
    pub fn lists(&self) -> u32 {
        // Relaxed: who finds a bit takes the lock before it looks further.
        self.board.waiting.load(Ordering::Relaxed)
    }

    /// Puts a ready task at the end of a list.
    pub fn post(&self, list: List, slot: u32) {
        self.board.lock.hold(|| {
            let Some((ends, record)) = self.ends(list).zip(self.record(slot)) else { return };
            set(&record.next, NO_TASK);
            match self.record(get(&ends.tail)) {
                Some(last) => set(&last.next, slot),
                None => set(&ends.head, slot),
            }
            set(&ends.tail, slot);
            set(&self.board.waiting, get(&self.board.waiting) | list.bit());
            set(&self.board.count, get(&self.board.count) + 1);
        });
    }

    /// The task at the head of a list.
    #[must_use]
    pub fn head(&self, list: List) -> Option<u32> {
        let head = self.board.lock.hold(|| self.ends(list).map(|ends| get(&ends.head)));
        head.filter(|slot| *slot != NO_TASK)
    }

    /// Takes a task whose predicate is to be read.
    #[must_use]
    pub fn take_arrival(&self) -> Option<u32> {
        self.board.lock.hold(|| {
            let slot = get(&self.ends(List::ARRIVALS)?.head);
            self.record(slot)?;
            self.take_head(List::ARRIVALS);
            set(&self.board.count, get(&self.board.count) - 1);
            Some(slot)
        })
    }

    /// Takes up to `count` blocks of the task at the head of a list; `of`: only if it is this one.
    #[must_use]
    pub fn claim(&self, list: List, of: Option<u32>, count: u32) -> Option<Claim> {
        self.board.lock.hold(|| {
            let slot = get(&self.ends(list)?.head);
            let record = self.record(slot)?;
            if of.is_some_and(|of| of != slot) {
                return None;
            }
            let claim = take_blocks(record, slot, count);
            if claim.is_last {
                self.take_head(list);
                set(&self.board.count, get(&self.board.count) - 1);
            }
            Some(claim)
        })
    }

    /// The task of this priority that gathers cores: the one at the gate, or, if nobody is, the next one of its list.
    #[must_use]
    pub fn gathering(&self, priority: Priority) -> Option<u32> {
        let list = List::sync(priority);
        self.board.lock.hold(|| {
            let at_gate = get(&self.board.gathering);
            let slot = get(&self.ends(list)?.head);
            if let Some(record) = self.record(at_gate)
                && !mutant::is(Mutant::GathersForTwo)
            {
                let (of, has_cores) = (get(&record.list), get(&record.next_block) > 0);
                if of == list.0 {
                    return Some(at_gate);
                }
                if of > list.0 || has_cores || self.record(slot).is_none() {
                    return None;
                }
                self.send_back(at_gate, record);
            }
            self.record(slot)?;
            self.take_head(list);
            set(&self.board.gathering, slot);
            // The bit of the list says that there is something to be done for it.
            set(&self.board.waiting, get(&self.board.waiting) | list.bit());
            Some(slot)
        })
    }

    /// The task at the gate, if it has cores.
    #[must_use]
    pub fn gathers(&self) -> Option<u32> {
        self.board.lock.hold(|| {
            let slot = get(&self.board.gathering);
            self.record(slot).filter(|record| get(&record.next_block) > 0).map(|_| slot)
        })
    }

    /// Pledges up to `count` places to the task at the gate; `None`: it is there no more.
    #[must_use]
    pub fn pledge(&self, slot: u32, count: u32) -> Option<Claim> {
        self.board.lock.hold(|| {
            let record = self.record(slot).filter(|_| get(&self.board.gathering) == slot)?;
            let claim = take_blocks(record, slot, count);
            if claim.is_last || mutant::is(Mutant::LeavesTheGateEarly) {
                set(&self.board.gathering, NO_TASK);
                set(&self.board.count, get(&self.board.count) - 1);
                set(&self.board.waiting, get(&self.board.waiting) & !GATHERS);
                self.note_empty(List(get(&record.list)));
            } else {
                set(&self.board.waiting, get(&self.board.waiting) | GATHERS);
            }
            Some(claim)
        })
    }

    /// Blocks of a task that are not taken yet.
    #[must_use]
    pub fn blocks_left(&self, slot: u32) -> u32 {
        let left = |record: &BlockLine| get(&record.blocks).saturating_sub(get(&record.next_block));
        self.board.lock.hold(|| self.record(slot).map_or(0, left))
    }

    fn ends(&self, list: List) -> Option<&'a ListEnds> {
        self.board.lists.get(list.0 as usize)
    }

    /// Puts the task at the gate, which has no core, back to the head of its list.
    fn send_back(&self, at_gate: u32, record: &BlockLine) {
        let Some(ends) = self.ends(List(get(&record.list))) else { return };
        let head = get(&ends.head);
        set(&record.next, head);
        set(&ends.head, at_gate);
        if head == NO_TASK {
            set(&ends.tail, at_gate);
        }
    }

    /// Takes the first task off a list that has one.
    fn take_head(&self, list: List) {
        let Some(ends) = self.ends(list) else { return };
        let next = self.record(get(&ends.head)).map_or(NO_TASK, |record| get(&record.next));
        set(&ends.head, next);
        if next == NO_TASK {
            set(&ends.tail, NO_TASK);
            self.note_empty(list);
        }
    }

    /// Takes back the bit of a list that has no task, and none at the gate.
    fn note_empty(&self, list: List) {
        let is_empty = self.ends(list).is_some_and(|ends| get(&ends.head) == NO_TASK);
        let at_gate = self.record(get(&self.board.gathering)).map(|record| get(&record.list));
        if is_empty && !(list.is_sync() && at_gate == Some(list.0)) {
            set(&self.board.waiting, get(&self.board.waiting) & !list.bit());
        }
    }
}

fn take_blocks(record: &BlockLine, slot: u32, count: u32) -> Claim {
    let (first, blocks) = (get(&record.next_block), get(&record.blocks));
    let count = count.min(blocks.saturating_sub(first));
    let again = u32::from(count > 0 && mutant::is(Mutant::RunsABlockTwice) && first > 1);
    set(&record.next_block, first + count);
    Claim { slot, first: first - again, count, is_last: first + count == blocks }
}

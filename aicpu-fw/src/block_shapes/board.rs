//! The board: lists of shaped tasks by priority, and the gate of tasks whose blocks start at once.
//!
//! ```text
//! post ----> list (level, cube | vector | cluster) --claim--> .. --claim of the last block--> off the list
//! post ----> list (level, sync) --gathering--> at the gate --pledge--> .. --pledge of the last block--> all start
//! post ----> arrivals --take--> post, or skipped
//! post ----> transfers --take (the engine)--> .. --post--> arrived --take--> completed
//! ```
//! A task stays at the head of its list until its last block is claimed, so that blocks go to the schedulers with free cores, and
//! the order of a list is the order of readiness. Between lists and plain tasks an [`Age`] says which became ready first: a task
//! gets it when it is posted, and keeps it as long as it waits.
//!
//! **The gate.** One task at a time gathers cores. A pledged core is neither free nor busy: it waits for the others, and
//! no task but the one at the gate ever holds a core that it does not use. So the task gets its cores: each of them is
//! pledged to it, or free, or runs a kernel that ends without any other agent (docs/decisions/block-shapes.md). Until its first core is pledged a
//! task of higher priority replaces it at the gate; from then on nothing goes before it, so that its cores are idle for as
//! long as the longest kernel under way.

use pto_abi::CoreKind;
use pto_abi::stream::{BlockLine, ListEnds, NO_TASK};
use pto_abi::sync::{AtomicU32, AtomicU64, Ordering};
use pto_graph::Priority;

use super::BlockShapeMemory;
use super::list::{GATHERS, LEVEL_LISTS, List, MORE_PRESSING, WaitsFor};
use crate::mutant::{self, Mutant};

/// When a task became ready, among those on the board and among plain tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// How many tasks had been posted before it.
    pub posted: u64,
    /// How many plain tasks of each kind had been pushed to the ready queue before it: their positions are below this.
    pub plain_before: [u64; CoreKind::COUNT],
}

/// The oldest task of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The task.
    pub slot: u32,
    /// When it became ready.
    pub age: Age,
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

/// As [`get`].
fn get_long(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// As [`get`].
fn set_long(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

fn age_of(line: &BlockLine) -> Age {
    let [aic, aiv] = &line.plain_before;
    Age { posted: get_long(&line.posted), plain_before: [get_long(aic), get_long(aiv)] }
}

fn set_age(line: &BlockLine, age: Age) {
    set_long(&line.posted, age.posted);
    for (word, position) in line.plain_before.iter().zip(age.plain_before) {
        set_long(word, position);
    }
}

/// A task that waits no more has no age: what is left of it makes no difference between two runs.
fn forget_age(line: &BlockLine) {
    set_age(line, Age { posted: 0, plain_before: [0; CoreKind::COUNT] });
}

impl<'a> BlockShapeMemory<'a> {
    /// The lists that may have a task, by their bits: a moment's guess, without the lock.
    #[inline]
    #[must_use]
    pub fn lists(&self) -> u32 {
        // Relaxed: a scheduler that finds a bit takes the lock before it looks further.
        self.board.waiting.load(Ordering::Relaxed)
    }

    /// Whether a task may wait that goes before plain ones which have just become ready; as [`lists`](Self::lists).
    #[inline]
    #[must_use]
    pub fn has_more_pressing(&self) -> bool {
        self.lists() & MORE_PRESSING != 0
    }

    /// Puts a ready task at the end of a list. So many plain tasks of each kind have been pushed to the ready queues before it.
    pub fn post(&self, list: List, slot: u32, plain_before: [u64; CoreKind::COUNT]) {
        self.board.lock.hold(|| {
            let Some((ends, line)) = self.ends(list).zip(self.line(slot)) else { return };
            set(&line.next, NO_TASK);
            let posted = get_long(&self.board.posted);
            set_long(&self.board.posted, posted + 1);
            set_age(line, Age { posted, plain_before });
            match self.line(get(&ends.tail)) {
                Some(last) => set(&last.next, slot),
                None => set(&ends.head, slot),
            }
            set(&ends.tail, slot);
            set(&self.board.waiting, get(&self.board.waiting) | list.bit());
            set(&self.board.count, get(&self.board.count) + 1);
        });
    }

    /// The oldest task of each list of a priority, by [`WaitsFor::index`]. Of those that start at once: the one that would be at
    /// the gate if [`gathering`](Self::gathering) were called.
    #[must_use]
    pub fn heads(&self, priority: Priority) -> [Option<Head>; LEVEL_LISTS] {
        self.board.lock.hold(|| {
            WaitsFor::ALL.map(|waits_for| {
                let list = List::at(priority, waits_for);
                let slot = match waits_for {
                    WaitsFor::AllAtOnce => self.next_to_gather(list)?,
                    _ => get(&self.ends(list)?.head),
                };
                self.line(slot).map(|line| Head { slot, age: age_of(line) })
            })
        })
    }

    /// Takes the oldest task of a list: of those whose predicate is to be read, of transfers, or of transfers that are over.
    #[must_use]
    pub fn take(&self, list: List) -> Option<u32> {
        self.board.lock.hold(|| {
            let slot = get(&self.ends(list)?.head);
            let line = self.line(slot)?;
            forget_age(line);
            self.take_head(list);
            set(&self.board.count, get(&self.board.count) - 1);
            Some(slot)
        })
    }

    /// Takes up to `count` blocks of the task at the head of a list; `of`: only if it is this one.
    #[must_use]
    pub fn claim(&self, list: List, of: Option<u32>, count: u32) -> Option<Claim> {
        self.board.lock.hold(|| {
            let slot = get(&self.ends(list)?.head);
            let line = self.line(slot)?;
            if of.is_some_and(|of| of != slot) {
                return None;
            }
            let claim = take_blocks(line, slot, count);
            if claim.is_last {
                forget_age(line);
                self.take_head(list);
                set(&self.board.count, get(&self.board.count) - 1);
            }
            Some(claim)
        })
    }

    /// The task of this priority that gathers cores: the one at the gate, or, if there is none, the next one of its list.
    #[must_use]
    pub fn gathering(&self, priority: Priority) -> Option<u32> {
        let list = List::sync(priority);
        self.board.lock.hold(|| {
            let slot = self.next_to_gather(list)?;
            let at_gate = get(&self.board.gathering);
            if slot == at_gate {
                return self.line(slot).map(|_| slot);
            }
            self.line(slot)?;
            if let Some(line) = self.line(at_gate)
                && !mutant::is(Mutant::GathersForTwo)
            {
                self.send_back(at_gate, line);
            }
            self.take_head(list);
            set(&self.board.gathering, slot);
            // The bit of the list says that there is something to be done for it.
            set(&self.board.waiting, get(&self.board.waiting) | list.bit());
            Some(slot)
        })
    }

    /// The task that [`gathering`](Self::gathering) would give.
    fn next_to_gather(&self, list: List) -> Option<u32> {
        let at_gate = get(&self.board.gathering);
        let slot = get(&self.ends(list)?.head);
        let Some(line) = self.line(at_gate).filter(|_| !mutant::is(Mutant::GathersForTwo)) else {
            return Some(slot);
        };
        let (of, has_cores) = (get(&line.list), get(&line.next_block) > 0);
        if of == list.0 { Some(at_gate) } else { (of < list.0 && !has_cores).then_some(slot) }
    }

    /// The task at the gate, if it has cores.
    #[must_use]
    pub fn gathers(&self) -> Option<u32> {
        self.board.lock.hold(|| {
            let slot = get(&self.board.gathering);
            self.line(slot).filter(|line| get(&line.next_block) > 0).map(|_| slot)
        })
    }

    /// Pledges cores for up to `count` blocks to the task at the gate; `None`: it is there no more.
    #[must_use]
    pub fn pledge(&self, slot: u32, count: u32) -> Option<Claim> {
        self.board.lock.hold(|| {
            let line = self.line(slot).filter(|_| get(&self.board.gathering) == slot)?;
            let claim = take_blocks(line, slot, count);
            if claim.is_last || mutant::is(Mutant::LeavesTheGateEarly) {
                forget_age(line);
                set(&self.board.gathering, NO_TASK);
                set(&self.board.count, get(&self.board.count) - 1);
                set(&self.board.waiting, get(&self.board.waiting) & !GATHERS);
                self.note_empty(List(get(&line.list)));
            } else {
                set(&self.board.waiting, get(&self.board.waiting) | GATHERS);
            }
            Some(claim)
        })
    }

    /// Blocks of a task that are not taken yet.
    #[must_use]
    pub fn blocks_left(&self, slot: u32) -> u32 {
        let left = |line: &BlockLine| get(&line.blocks).saturating_sub(get(&line.next_block));
        self.board.lock.hold(|| self.line(slot).map_or(0, left))
    }

    fn ends(&self, list: List) -> Option<&'a ListEnds> {
        self.board.lists.get(list.0 as usize)
    }

    /// Puts the task at the gate, which has no core, back to the head of its list.
    fn send_back(&self, at_gate: u32, line: &BlockLine) {
        let Some(ends) = self.ends(List(get(&line.list))) else { return };
        let head = get(&ends.head);
        set(&line.next, head);
        set(&ends.head, at_gate);
        if head == NO_TASK {
            set(&ends.tail, at_gate);
        }
    }

    /// Takes the first task off a list that has one.
    fn take_head(&self, list: List) {
        let Some(ends) = self.ends(list) else { return };
        let next = self.line(get(&ends.head)).map_or(NO_TASK, |line| get(&line.next));
        set(&ends.head, next);
        if next == NO_TASK {
            set(&ends.tail, NO_TASK);
            self.note_empty(list);
        }
    }

    /// Takes back the bit of a list that has no task, and none at the gate.
    fn note_empty(&self, list: List) {
        let is_empty = self.ends(list).is_some_and(|ends| get(&ends.head) == NO_TASK);
        let at_gate = self.line(get(&self.board.gathering)).map(|line| get(&line.list));
        if is_empty && !(list.is_sync() && at_gate == Some(list.0)) {
            set(&self.board.waiting, get(&self.board.waiting) & !list.bit());
        }
    }
}

fn take_blocks(line: &BlockLine, slot: u32, count: u32) -> Claim {
    let (first, blocks) = (get(&line.next_block), get(&line.blocks));
    let count = count.min(blocks.saturating_sub(first));
    let again = u32::from(count > 0 && mutant::is(Mutant::RunsABlockTwice) && first > 1);
    set(&line.next_block, first + count);
    Claim { slot, first: first - again, count, is_last: first + count == blocks }
}

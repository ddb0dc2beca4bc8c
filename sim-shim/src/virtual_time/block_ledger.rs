//! The ledger of tasks with a block shape: how far each part of each block is, and which task waited for which core.
//!
//! Checked here, on every run:
//! - each part of each block is dispatched, started, finished and collected once and in that order, and the task is complete
//!   when all are (*exactly once*);
//! - the parts of a block are on one cluster, and none waited for a core when the first one was dispatched; the same of all
//!   blocks of a task whose blocks start at once (*together*);
//! - a task whose predicate is false does not run, and one whose predicate is true is not skipped (*predicate*);
//! - a core does not go to a task while one of higher priority, or an older one of the same priority, has waited for such a core
//!   since before the step, whether those are plain or have a block shape (*priority*).
//!
//! "Before" is the order in which the machine makes steps: the clocks of two instances may be a step apart. A replay says of all its
//! tasks that they are published, and releases those that wait for nothing one after the other; the others take turns in
//! between. A task waits from its release on.

use std::hash::{Hash, Hasher};

use pto_abi::CoreKind;
use pto_abi::kinds::TaskState;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::Task;
use pto_abi::{
    block::BlockContext,
    stream::{LISTS_A_LEVEL, MAX_LANES},
};
use pto_aicpu_fw::block_shapes::{
    BlockShapeMemory, Lanes, List, has_predicate, lanes_of, starts_at_once,
};
use pto_graph::Priority;

use super::digest::Keyed;
use super::fitting::{WaitingTask, need};
use super::ledger::Invariant;

/// Something that must not be.
pub(super) type Found = (Invariant, &'static str);

/// One part of one block, which runs on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockPart {
    block: u32,
    lane: usize,
}

impl BlockPart {
    /// Encodes the part for a trace event, on a core of `kind`.
    pub(super) fn traced(self, kind: CoreKind) -> u32 {
        let lane = self.lane.saturating_sub(usize::from(kind == CoreKind::AIV));
        let lane = u32::try_from(lane).unwrap_or(0);
        BlockContext { block: self.block, blocks: 0, lane }.part()
    }

    /// The part's block.
    pub(super) const fn block(self) -> u32 {
        self.block
    }

    /// The part's lane.
    pub(super) const fn lane(self) -> usize {
        self.lane
    }
}

/// What a task is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaped {
    pub(super) lanes: Lanes,
    pub(super) blocks: u32,
    starts_at_once: bool,
    list: Option<u32>,
    /// Its turn depends on when its predicate is read, which is not known here.
    has_predicate: bool,
}

impl Shaped {
    pub(super) fn of(shapes: &BlockShapeMemory<'_>, slot: u32) -> Option<Self> {
        let line = shapes.line(slot)?;
        Some(Self {
            lanes: lanes_of(line),
            blocks: line.blocks.load(Relaxed),
            starts_at_once: starts_at_once(line),
            list: List::of(line).map(|list| list.0),
            has_predicate: has_predicate(line),
        })
    }

    /// Parts of all blocks.
    pub(super) fn total(&self) -> u32 {
        self.blocks.saturating_mul(self.lanes.count())
    }

    /// What it waits for when it is ready.
    pub(super) fn waiting(&self, slot: u32) -> WaitingTask {
        let (need, blocks) = (need(self.lanes), self.blocks.into());
        WaitingTask { slot, need, blocks, at_once: self.starts_at_once }
    }

    /// The part that a worker of `kind` with this context has.
    pub(super) fn part(&self, kind: CoreKind, context: u64) -> BlockPart {
        let context = BlockContext::of(context);
        let lane = if kind == CoreKind::AIC { 0 } else { 1 + context.lane as usize };
        BlockPart { block: context.block, lane }
    }
}

/// What a part is the first one of to be dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The first part of its task.
    Task,
    /// The first part of its block.
    Block,
    /// Others of its block were.
    Nothing,
}

/// Whether schedulers can find a task that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// They can.
    Made,
    /// The builder releases it later: see [`BlockLedger::releases`].
    Later,
}

impl Release {
    /// Of a task that is ready by the book: a replay counts its tasks as published before it releases them.
    pub(super) fn of(task: &Task) -> Self {
        if task.state.load(Relaxed) == TaskState::ADDED.get() { Self::Later } else { Self::Made }
    }
}

/// How far a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PartStage {
    Dispatched = 1,
    Started = 2,
    Finished = 3,
    Collected = 4,
}

/// One task of several parts.
#[derive(Default)]
struct Book {
    stages: Keyed<BlockPart, u8>,
    /// How many parts have come to each stage.
    counts: [u32; 5],
    /// For each block: its cluster, and when its first part was dispatched.
    blocks: Keyed<u32, (u32, u64)>,
    first: u64,
    longest_ns: u64,
}

/// Since when a task waits that is not released yet: no step has begun after that.
const NOT_RELEASED: u64 = u64::MAX;

/// A task that waits on a list.
struct Waiter {
    slot: u32,
    list: u32,
    since: u64,
    /// Parts that have no core.
    left: u32,
    is_begun: bool,
}

/// The ledger.
pub(super) struct BlockLedger {
    books: Keyed<u32, Book>,
    waiters: Vec<Waiter>,
    /// Plain tasks that are ready: their slots, the kind of core that they wait for, and since when.
    plain: Vec<(u32, CoreKind, u64)>,
    /// When the task in each slot became ready, if it has a shape.
    ready_ns: Keyed<u32, u64>,
    /// When the latest part of each of them was collected.
    collected_ns: Keyed<u32, u64>,
    /// Counts what happens, over all instances.
    now: u64,
    /// When each worker became free.
    free_since: Vec<u64>,
    /// When each instance began its step.
    steps: Vec<u64>,
    /// Whether a task is ready that is not released.
    has_unreleased: bool,
}

impl BlockLedger {
    pub(super) fn new() -> Self {
        Self {
            books: Keyed::default(),
            waiters: Vec::new(),
            plain: Vec::new(),
            ready_ns: Keyed::default(),
            collected_ns: Keyed::default(),
            now: 0,
            free_since: Vec::new(),
            steps: Vec::new(),
            has_unreleased: false,
        }
    }

    /// Records that an instance begins a step.
    #[inline]
    pub(super) fn begins(&mut self, instance: usize) {
        self.now += 1;
        note(&mut self.steps, instance, self.now);
    }

    /// Records that a worker has become free.
    #[inline]
    pub(super) fn frees(&mut self, worker: usize) {
        self.now += 1;
        note(&mut self.free_since, worker, self.now);
    }

    /// Records that a task with a block shape is ready at `now_ns`.
    pub(super) fn ready(&mut self, slot: u32, shaped: &Shaped, (now_ns, release): (u64, Release)) {
        let since = self.since(release);
        self.ready_ns.insert(slot, now_ns);
        self.collected_ns.remove(&slot);
        if let Some(list) = shaped.list.filter(|_| !shaped.has_predicate) {
            let left = shaped.total();
            self.waiters.push(Waiter { slot, list, since, left, is_begun: false });
        }
    }

    /// A plain task is ready.
    pub(super) fn plain_ready(&mut self, slot: u32, kind: CoreKind, release: Release) {
        let since = self.since(release);
        self.plain.push((slot, kind, since));
    }

    /// Since when a task waits that becomes ready now.
    fn since(&mut self, release: Release) -> u64 {
        self.now += 1;
        match release {
            Release::Made => self.now,
            Release::Later => {
                self.has_unreleased = true;
                NOT_RELEASED
            }
        }
    }

    /// The builder has released a task of a replay: those of which that is so wait from now on.
    pub(super) fn releases(&mut self, is_released: impl Fn(u32) -> bool) {
        if !self.has_unreleased {
            return;
        }
        self.now += 1;
        let now = self.now;
        let blocks = self.waiters.iter_mut().map(|waiter| (waiter.slot, &mut waiter.since));
        let plain = self.plain.iter_mut().map(|(slot, _, since)| (*slot, since));
        let unreleased = blocks.chain(plain).filter(|(_, since)| **since == NOT_RELEASED);
        self.has_unreleased = false;
        for (slot, since) in unreleased {
            if is_released(slot) {
                *since = now;
            } else {
                self.has_unreleased = true;
            }
        }
    }

    /// When the last task with a shape in a slot became ready: none of its parts is dispatched earlier.
    pub(super) fn ready_ns(&self, slot: u32) -> u64 {
        self.ready_ns.get(&slot).copied().unwrap_or(0)
    }

    /// A part of a task is collected at `now_ns`; when the latest one so far was. A sibling that is ahead in virtual time may
    /// have collected one: who collects the last part sees that then.
    pub(super) fn collected(&mut self, slot: u32, now_ns: u64) -> u64 {
        let latest_ns = self.collected_ns.entry(slot).or_default();
        *latest_ns = now_ns.max(*latest_ns);
        *latest_ns
    }

    /// A worker of `kind` is given `slot` by `instance`: whether another task should have had the core.
    pub(super) fn takes_core(
        &mut self,
        slot: u32,
        shaped: Option<&Shaped>,
        kind: CoreKind,
        instance: usize,
    ) -> Option<Found> {
        self.now += 1;
        let step = self.steps.get(instance).copied().unwrap_or(0);
        let level = |list: u32| list / LISTS_A_LEVEL;
        let own = self.waiters.iter().find(|waiter| waiter.slot == slot);
        let own_plain = self.plain.iter().find(|(plain, ..)| *plain == slot);
        // Of one with a predicate it is not known here since when it waits: no task counts as older.
        let own_since = own.map(|own| own.since).or(own_plain.map(|(.., since)| *since));
        let own_since = own_since.unwrap_or(0);
        let normal = u32::from(Priority::NORMAL.get());
        let own_level = shaped.and_then(|shaped| shaped.list).map_or(normal, level);
        let of_kind =
            Priority::ALL.iter().map(|priority| List::spread(*priority, Lanes::one(kind)));
        let of_kind: Vec<u32> = of_kind.map(|list| list.0).collect();
        let blocks = self.waiters.iter().filter(|waiter| of_kind.contains(&waiter.list));
        let blocks = blocks.map(|waiter| (waiter.slot, level(waiter.list), waiter.since, false));
        let plain = self.plain.iter().filter(|(_, other, _)| *other == kind);
        let plain = plain.map(|(slot, _, since)| (*slot, normal, *since, true));
        let waiting = blocks.chain(plain).filter(|(other, ..)| *other != slot);
        // A plain task may go straight to a core before older plain ones, in the step that has made it ready.
        let is_new = own_plain.is_some() && own_since > step;
        let mut found = None;
        // A task that has started to gather cores goes first.
        let gathers = shaped.is_some_and(|shaped| shaped.starts_at_once);
        for (_, level, since, is_plain) in waiting.filter(|waits| waits.2 < step && !gathers) {
            if level > own_level {
                found = Some((Invariant::Priority, "goes before a task of higher priority"));
            } else if level == own_level && since < own_since && !(is_new && is_plain) {
                found = found.or(Some((Invariant::Priority, "goes before an older task")));
            }
        }
        self.plain.retain(|(plain, ..)| *plain != slot);
        if let Some(waiter) = self.waiters.iter_mut().find(|waiter| waiter.slot == slot) {
            waiter.left = waiter.left.saturating_sub(1);
            waiter.is_begun = true;
        }
        self.waiters.retain(|waiter| waiter.left > 0);
        found
    }

    /// A part goes to a worker. What it is the first one of, and what is wrong.
    pub(super) fn dispatched(
        &mut self,
        slot: u32,
        shaped: &Shaped,
        part: BlockPart,
        (worker, cluster): (usize, u32),
    ) -> (First, Vec<Found>) {
        let now = self.now;
        let book = self.books.entry(slot).or_default();
        let is_first = book.counts[PartStage::Dispatched as usize] == 0;
        if is_first {
            book.first = now;
        }
        let mut found = Vec::new();
        if part.block >= shaped.blocks || part.lane >= MAX_LANES || !shaped.lanes.has(part.lane) {
            found.push((Invariant::ExactlyOnce, "a part that the task does not have"));
        }
        found.extend(book.advance(part, PartStage::Dispatched));
        let first = match (is_first, book.blocks.contains_key(&part.block)) {
            (true, _) => First::Task,
            (false, false) => First::Block,
            (false, true) => First::Nothing,
        };
        let (of_block, since) = *book.blocks.entry(part.block).or_insert((cluster, now));
        if of_block != cluster {
            found.push((Invariant::Together, "parts of one block on two clusters"));
        }
        let since = if shaped.starts_at_once { book.first } else { since };
        if self.free_since.get(worker).is_some_and(|free| *free > since) {
            found
                .push((Invariant::Together, "a part waited for its core while others had started"));
        }
        (first, found)
    }

    /// A part is further. Whether it is the first and whether it is the last one to come there, and what is wrong.
    pub(super) fn advanced(
        &mut self,
        slot: u32,
        shaped: &Shaped,
        part: BlockPart,
        stage: PartStage,
    ) -> (bool, bool, Option<Found>) {
        let book = self.books.entry(slot).or_default();
        let found = book.advance(part, stage);
        let count = book.counts[stage as usize];
        let is_last = count == shaped.total();
        if is_last && stage == PartStage::Collected {
            self.books.remove(&slot);
        }
        (count == 1, is_last, found)
    }

    /// The longest kernel of a task so far, with this one.
    pub(super) fn longest_ns(&mut self, slot: u32, cost_ns: u64) -> u64 {
        let book = self.books.entry(slot).or_default();
        book.longest_ns = book.longest_ns.max(cost_ns);
        book.longest_ns
    }

    /// Hashes the book. Moments count by their order only; steps that have begun are over between two steps.
    pub(super) fn hash_state(&self, into: &mut impl Hasher) {
        // Whether a task is not released shows in the moment since which it waits.
        let Self { books, waiters, plain, ready_ns, collected_ns, free_since, .. } = self;
        for times in [ready_ns, collected_ns] {
            let mut times: Vec<_> = times.iter().collect();
            times.sort_unstable();
            times.hash(into);
        }
        let mut books: Vec<_> = books.iter().collect();
        books.sort_unstable_by_key(|(slot, _)| **slot);
        let of_book = |(_, book): &(&u32, &Book)| {
            let blocks = book.blocks.values().map(|(_, since)| *since);
            blocks.chain([book.first]).collect::<Vec<_>>()
        };
        let mut moments: Vec<u64> = books.iter().flat_map(of_book).collect();
        moments.extend(free_since.iter().chain(waiters.iter().map(|waiter| &waiter.since)));
        moments.extend(plain.iter().map(|(.., since)| since));
        moments.sort_unstable();
        moments.dedup();
        let rank = |moment: &u64| moments.binary_search(moment);
        for (slot, book) in books {
            let Book { stages, counts, blocks, first, longest_ns } = book;
            (slot, counts, rank(first), longest_ns).hash(into);
            let mut stages: Vec<_> =
                stages.iter().map(|(part, stage)| (part.block, part.lane, *stage)).collect();
            stages.sort_unstable();
            let block =
                |(block, (cluster, since)): (&u32, &(u32, u64))| (*block, *cluster, rank(since));
            let mut blocks: Vec<_> = blocks.iter().map(block).collect();
            blocks.sort_unstable();
            (stages, blocks).hash(into);
        }
        for Waiter { slot, list, since, left, is_begun } in waiters {
            (slot, list, rank(since), left, is_begun).hash(into);
        }
        for (slot, kind, since) in plain {
            (slot, kind, rank(since)).hash(into);
        }
        free_since.iter().for_each(|since| rank(since).hash(into));
    }

    /// Whether every task has all of its parts back, and none waits.
    pub(super) fn is_over(&self) -> bool {
        self.books.is_empty() && self.waiters.is_empty()
    }
}

/// Notes `now` at an index.
#[inline]
fn note(at: &mut Vec<u64>, index: usize, now: u64) {
    if index >= at.len() {
        at.resize(index + 1, 0);
    }
    at[index] = now;
}

impl Book {
    fn advance(&mut self, part: BlockPart, stage: PartStage) -> Option<Found> {
        let reached = self.stages.entry(part).or_default();
        let is_next = *reached + 1 == stage as u8;
        *reached = stage as u8;
        self.counts[stage as usize] += u32::from(is_next);
        let what = match stage {
            PartStage::Dispatched => "a part is dispatched twice",
            PartStage::Started => "a part is started twice",
            PartStage::Finished => "a part is finished twice",
            PartStage::Collected => "a part is collected twice",
        };
        (!is_next).then_some((Invariant::ExactlyOnce, what))
    }
}

/// Whether a task is of several parts, by its line and its block line.
pub(super) fn is_shaped(task: &Task) -> bool {
    task.kind.load(Relaxed) & pto_abi::task::SHAPED != 0
}

/// What a worker is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    /// A task without a shape.
    Plain,
    /// The first part of a block of a task with a shape.
    Block,
    /// A further part of one.
    Part,
}

#[cfg(test)]
mod tests {
    use super::{BlockLedger, BlockPart, First, PartStage, Release, Shaped};
    use crate::virtual_time::ledger::Invariant;
    use pto_abi::CoreKind;
    use pto_aicpu_fw::block_shapes::{Lanes, List};
    use pto_graph::Priority;

    const RELEASED: (u64, Release) = (0, Release::Made);

    fn mix(blocks: u32) -> Shaped {
        Shaped { lanes: Lanes(7), blocks, starts_at_once: false, list: None, has_predicate: false }
    }

    fn waits(priority: Priority) -> Shaped {
        let list = Some(List::spread(priority, Lanes(2)).0);
        Shaped { lanes: Lanes(2), blocks: 1, list, ..mix(1) }
    }

    const fn part(block: u32, lane: usize) -> BlockPart {
        BlockPart { block, lane }
    }

    #[test]
    fn a_block_comes_through_once_and_together() {
        let (mut ledger, shaped) = (BlockLedger::new(), mix(2));
        for block in 0..2 {
            for lane in 0..3 {
                let found = ledger.dispatched(5, &shaped, part(block, lane), (lane, 0));
                let first = [First::Task, First::Block][block as usize];
                assert_eq!(found, (if lane == 0 { first } else { First::Nothing }, vec![]));
            }
        }
        for stage in [PartStage::Started, PartStage::Finished, PartStage::Collected] {
            for number in 0..6 {
                let part = part(number / 3, number as usize % 3);
                let (is_first, is_last, found) = ledger.advanced(5, &shaped, part, stage);
                assert_eq!((is_first, is_last, found), (number == 0, number == 5, None));
            }
        }
        assert!(ledger.is_over());
    }

    #[test]
    fn each_rule_can_be_violated() {
        let rules = |found: Vec<super::Found>| found.iter().map(|f| f.0).collect::<Vec<_>>();
        let (mut ledger, shaped) = (BlockLedger::new(), mix(1));
        ledger.dispatched(5, &shaped, part(0, 0), (0, 0));
        let (_, twice) = ledger.dispatched(5, &shaped, part(0, 0), (0, 0));
        assert_eq!(rules(twice), [Invariant::ExactlyOnce]);
        let (_, foreign) = ledger.dispatched(5, &shaped, part(1, 0), (0, 0));
        assert_eq!(rules(foreign), [Invariant::ExactlyOnce]);
        let (_, elsewhere) = ledger.dispatched(5, &shaped, part(0, 1), (4, 1));
        assert_eq!(rules(elsewhere), [Invariant::Together]);
        ledger.frees(2);
        let (_, late) = ledger.dispatched(5, &shaped, part(0, 2), (2, 0));
        assert_eq!(rules(late), [Invariant::Together]);
        assert!(!ledger.is_over());
    }

    #[test]
    fn an_older_task_of_another_kind_goes_first() {
        let mut ledger = BlockLedger::new();
        let normal = waits(Priority::NORMAL);
        ledger.plain_ready(1, CoreKind::AIV, Release::Made);
        ledger.ready(2, &normal, RELEASED);
        ledger.plain_ready(3, CoreKind::AIV, Release::Made);
        ledger.begins(0);
        let rule = |found: Option<super::Found>| found.map(|found| found.1);
        let older = Some("goes before an older task");
        assert_eq!(
            rule(ledger.takes_core(2, Some(&normal), CoreKind::AIV, 0)),
            older,
            "1 is older"
        );
        ledger.ready(2, &normal, RELEASED);
        ledger.plain_ready(4, CoreKind::AIV, Release::Made);
        ledger.begins(0);
        assert_eq!(ledger.takes_core(1, None, CoreKind::AIV, 0), None);
        assert_eq!(ledger.takes_core(3, None, CoreKind::AIV, 0), None);
        assert_eq!(rule(ledger.takes_core(4, None, CoreKind::AIV, 0)), older, "2 is older");
        ledger.plain_ready(5, CoreKind::AIV, Release::Made);
        assert_eq!(rule(ledger.takes_core(5, None, CoreKind::AIV, 0)), older, "new, and 2 waits");
        assert_eq!(ledger.takes_core(2, Some(&normal), CoreKind::AIV, 0), None);
        ledger.plain_ready(6, CoreKind::AIV, Release::Made);
        ledger.begins(0);
        ledger.plain_ready(7, CoreKind::AIV, Release::Made);
        assert_eq!(ledger.takes_core(7, None, CoreKind::AIV, 0), None, "its step made it ready");
        ledger.plain_ready(8, CoreKind::AIV, Release::Made);
        ledger.begins(0);
        assert_eq!(rule(ledger.takes_core(8, None, CoreKind::AIV, 0)), older, "6 is older");
    }

    /// Task 1 and task 2 are tasks of a replay. Until they are released no task passes them; then every younger task does.
    #[test]
    fn a_task_waits_from_its_release_on() {
        let (mut ledger, high) = (BlockLedger::new(), waits(Priority::HIGH));
        ledger.plain_ready(1, CoreKind::AIV, Release::Later);
        ledger.ready(2, &high, (0, Release::Later));
        ledger.begins(0);
        assert_eq!(ledger.takes_core(9, None, CoreKind::AIV, 0), None, "none is released");
        ledger.releases(|slot| slot == 2);
        assert_eq!(ledger.takes_core(9, None, CoreKind::AIV, 0), None, "in this step only");
        ledger.begins(0);
        let higher = Some((Invariant::Priority, "goes before a task of higher priority"));
        assert_eq!(ledger.takes_core(9, None, CoreKind::AIV, 0), higher);
        assert_eq!(ledger.takes_core(2, Some(&high), CoreKind::AIV, 0), None);
        ledger.plain_ready(3, CoreKind::AIV, Release::Made);
        ledger.releases(|slot| slot == 1);
        ledger.begins(0);
        let older = Some((Invariant::Priority, "goes before an older task"));
        assert_eq!(ledger.takes_core(1, None, CoreKind::AIV, 0), older, "3 is older");
    }

    #[test]
    fn who_has_waited_since_before_the_step_goes_first() {
        let mut ledger = BlockLedger::new();
        let (high, low) = (waits(Priority::HIGH), waits(Priority::LOW));
        let normal = None;
        ledger.ready(1, &high, RELEASED);
        ledger.begins(3);
        ledger.ready(2, &high, RELEASED);
        assert_eq!(
            ledger.takes_core(9, normal, CoreKind::AIV, 3).map(|f| f.0),
            Some(Invariant::Priority)
        );
        assert_eq!(ledger.takes_core(9, normal, CoreKind::AIC, 3), None, "another kind");
        assert_eq!(ledger.takes_core(1, Some(&high), CoreKind::AIV, 3), None);
        assert_eq!(ledger.takes_core(9, normal, CoreKind::AIV, 3), None, "since this step only");
        ledger.ready(4, &low, RELEASED);
        ledger.ready(5, &high, RELEASED);
        ledger.begins(3);
        assert!(ledger.takes_core(5, Some(&high), CoreKind::AIV, 3).is_some(), "2 is older");
        assert_eq!(ledger.takes_core(2, Some(&high), CoreKind::AIV, 3), None);
        assert_eq!(ledger.takes_core(4, Some(&low), CoreKind::AIV, 3), None);
    }
}

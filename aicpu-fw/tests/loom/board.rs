//! The board of shaped tasks: a builder posts, two schedulers take. Every block is taken once, the scheduler that takes it sees what was written
//! for its task, no block is left, and two tasks that need all cores never have one each.

use std::marker::PhantomData;

use loom::cell::UnsafeCell;
use loom::thread::yield_now;
use pto_abi::GmAddr;
use pto_abi::gm::GmWindow;
use pto_abi::stream::{BlockBoard, BlockLine, NO_TASK};
use pto_abi::sync::{AtomicU32, Concurrent, Ordering::Relaxed, Sharing};
use pto_aicpu_fw::block_shapes::{BlockShapeMemory, Lanes, List};
use pto_graph::Priority;

use crate::{WEAK_TASKS, Weak, explore, spawn};

const TASKS: usize = 2;
/// Of each task.
const BLOCKS: u32 = 2;
/// Every thread polls, so that they meet at every step without preemptions; with two a model takes minutes.
const PREEMPTIONS: usize = 1;
const VECTORS: List = List::spread(Priority::NORMAL, Lanes(2));
const TOGETHER: List = List::sync(Priority::NORMAL);

/// What may be wrong with the board.
trait Variant: Send + Sync + 'static {
    /// The builder posts a task, or a scheduler one whose predicate it has read.
    fn post(shapes: &BlockShapeMemory<'_>, list: List, slot: u32) {
        shapes.post(list, slot, [0, 0]);
    }

    /// A scheduler has pledged its core to the task at the gate.
    fn pledged(_: &BlockShapeMemory<'_>) {}
}

struct AsItIs;

impl Variant for AsItIs {}

/// Wrong on purpose: the lock is not held.
struct WithoutTheLock;

impl Variant for WithoutTheLock {
    fn post(shapes: &BlockShapeMemory<'_>, list: List, slot: u32) {
        link(shapes, list, slot);
        mark(shapes, list);
    }
}

/// Wrong on purpose: the task is in its list before the bit says so, and another scheduler has the lock between.
struct BitBehindTheLock;

impl Variant for BitBehindTheLock {
    fn post(shapes: &BlockShapeMemory<'_>, list: List, slot: u32) {
        shapes.board.lock.hold(|| link(shapes, list, slot));
        mark(shapes, list);
    }
}

/// Wrong on purpose: the next task comes to the gate while the one before lacks cores.
struct LeavesTheGate;

impl Variant for LeavesTheGate {
    fn pledged(shapes: &BlockShapeMemory<'_>) {
        shapes.board.lock.hold(|| shapes.board.gathering.store(NO_TASK, Relaxed));
    }
}

/// The first half of [`BlockShapeMemory::post`].
fn link(shapes: &BlockShapeMemory<'_>, list: List, slot: u32) {
    let ends = &shapes.board.lists[list.0 as usize];
    shapes.lines[slot as usize].next.store(NO_TASK, Relaxed);
    match shapes.line(ends.tail.load(Relaxed)) {
        Some(last) => last.next.store(slot, Relaxed),
        None => ends.head.store(slot, Relaxed),
    }
    ends.tail.store(slot, Relaxed);
    shapes.board.count.store(shapes.board.count.load(Relaxed) + 1, Relaxed);
}

/// The second half.
fn mark(shapes: &BlockShapeMemory<'_>, list: List) {
    let waiting = shapes.board.waiting.load(Relaxed);
    shapes.board.waiting.store(waiting | list.bit(), Relaxed);
}

/// Something that is no atomic: loom finds accesses that nothing puts in order.
#[derive(Default)]
struct Witness(UnsafeCell<u64>);

// SAFETY: loom checks every access.
unsafe impl Sync for Witness {}

struct BoardScenario<V> {
    board: BlockBoard,
    lines: Vec<BlockLine>,
    /// Represent the lines and arguments of the tasks: written by the builder, read by the scheduler that has taken a block.
    tasks: [Witness; TASKS],
    /// How often each block was taken, and blocks that were not.
    taken: [[AtomicU32; BLOCKS as usize]; TASKS],
    left: AtomicU32,
    variant: PhantomData<V>,
}

impl<V: Variant> BoardScenario<V> {
    fn new() -> Self {
        let board = BlockBoard::default();
        board.reset();
        Self {
            board,
            lines: (0..TASKS).map(|_| BlockLine::default()).collect(),
            tasks: Default::default(),
            taken: Default::default(),
            left: AtomicU32::new(BLOCKS * u32::try_from(TASKS).unwrap()),
            variant: PhantomData,
        }
    }

    fn shapes(&self) -> BlockShapeMemory<'_> {
        // SAFETY: there is nothing in it.
        let gm = unsafe { GmWindow::from_raw(core::ptr::null_mut(), 0, GmAddr(0)) };
        BlockShapeMemory {
            board: &self.board,
            lines: &self.lines,
            parts: &[],
            parts_address: GmAddr::NULL,
            gm,
            room: [BLOCKS; 8],
        }
    }

    /// What a builder does: a task and its line, then the board.
    fn submit(&self, slot: u32, list: List, first: List) {
        self.tasks[slot as usize].0.with_mut(|_| ());
        let line = &self.lines[slot as usize];
        line.blocks.store(BLOCKS, Relaxed);
        line.next_block.store(0, Relaxed);
        line.list.store(list.0, Relaxed);
        V::post(&self.shapes(), first, slot);
    }

    /// A block goes to a core.
    fn take(&self, slot: u32, block: u32) {
        self.tasks[slot as usize].0.with(|_| ());
        self.taken[slot as usize][block as usize].fetch_add(1, Relaxed);
        self.left.fetch_sub(1, Relaxed);
    }

    fn is_over(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    fn check(&self) {
        let counts = self.taken.iter().flatten().map(|count| count.load(Relaxed));
        assert!(counts.into_iter().all(|count| count == 1), "a block was taken twice");
        assert_eq!((self.shapes().lists(), self.shapes().waiting()), (0, 0), "something is left");
    }
}

/// A scheduler that has cores for every block. The second task has a predicate, which holds.
fn spread<V: Variant>(run: &BoardScenario<V>) {
    let shapes = run.shapes();
    while !run.is_over() {
        if shapes.lists() & List::ARRIVALS.bit() != 0
            && let Some(slot) = shapes.take(List::ARRIVALS)
        {
            V::post(&shapes, VECTORS, slot);
        }
        let is_there = shapes.lists() & VECTORS.bit() != 0;
        match is_there.then(|| shapes.claim(VECTORS, None, 1)).flatten() {
            Some(claim) => run.take(claim.slot, claim.first),
            None => yield_now(),
        }
    }
}

fn blocks_spread<V: Variant>() {
    explore(PREEMPTIONS, BoardScenario::<V>::new, |run| {
        let schedulers = [0, 1].map(|_| spawn(move || spread(run)));
        run.submit(0, VECTORS, VECTORS);
        run.submit(1, VECTORS, List::ARRIVALS);
        schedulers.into_iter().for_each(|scheduler| scheduler.join().unwrap());
        run.check();
    });
}

/// A scheduler with one core; every task needs two.
fn gather<V: Variant>(run: &BoardScenario<V>) {
    let shapes = run.shapes();
    let mut pledged = None;
    while !run.is_over() {
        match pledged {
            Some((slot, block)) if shapes.blocks_left(slot) == 0 => {
                run.take(slot, block);
                pledged = None;
                continue;
            }
            None if shapes.lists() & TOGETHER.bit() != 0 => {
                let at_gate = shapes.gathering(Priority::NORMAL);
                if let Some(claim) = at_gate.and_then(|slot| shapes.pledge(slot, 1)) {
                    V::pledged(&shapes);
                    pledged = Some((claim.slot, claim.first));
                    continue;
                }
            }
            _ => {}
        }
        yield_now();
    }
}

fn blocks_together<V: Variant>() {
    explore(PREEMPTIONS, BoardScenario::<V>::new, |run| {
        let schedulers = [0, 1].map(|_| spawn(move || gather(run)));
        run.submit(0, TOGETHER, TOGETHER);
        run.submit(1, TOGETHER, TOGETHER);
        schedulers.into_iter().for_each(|scheduler| scheduler.join().unwrap());
        run.check();
    });
}

/// Two parts of a task on the cores of two schedulers: who counts the last one sees what the other one wrote.
fn parts_finish<S: Sharing>() {
    let setup = || (BlockLine::default(), [Witness::default(), Witness::default()]);
    explore(3, setup, |(line, results)| {
        line.parts_left.store(2, Relaxed);
        let finish = move |part: usize| {
            results[part].0.with_mut(|_| ());
            // As `Flow::part_finished` does.
            let order = pto_abi::sync::Ordering::AcqRel;
            if S::fetch_sub_u32(&line.parts_left, 1, order) == 1 {
                results.iter().for_each(|result| result.0.with(|_| ()));
            }
        };
        let other = spawn(move || finish(1));
        finish(0);
        other.join().unwrap();
    });
}

#[test]
fn blocks_are_taken_once() {
    blocks_spread::<AsItIs>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_post_without_the_lock_is_found() {
    blocks_spread::<WithoutTheLock>();
}

#[test]
#[should_panic]
fn a_bit_set_without_the_lock_is_found() {
    blocks_spread::<BitBehindTheLock>();
}

#[test]
fn the_gate_lets_one_task_gather() {
    blocks_together::<AsItIs>();
}

#[test]
#[should_panic]
fn a_gate_that_is_left_early_is_found() {
    blocks_together::<LeavesTheGate>();
}

#[test]
fn the_last_part_sees_the_others() {
    parts_finish::<Concurrent>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_weak_count_of_parts_is_found() {
    parts_finish::<Weak<WEAK_TASKS>>();
}

//! Wrong variants of the firmware, to show that the checkers can fail. Only a build with `--cfg pto_mutants` can
//! choose one; in every other build [`is`] is `false` at compile time, and nothing of this is in the binary.
//!
//! `RUSTFLAGS='--cfg pto_mutants' cargo test -p pto-aicpu-fw --test firmware mutants` (a step of `cargo xtask test`, in a
//! target folder of its own).
//!
//! Why it is so: `docs/decisions/testing.md`.

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[cfg_attr(
    not(pto_mutants),
    expect(dead_code, unreachable_pub, reason = "chosen in builds of mutants only")
)]
pub enum Mutant {
    /// No mutation.
    None,
    /// A completed task releases its first consumer twice.
    ReleasesTwice,
    /// A completed task does not release its last consumer.
    DropsAnEdge,
    /// A completed task is not marked as such.
    ForgetsTheState,
    /// Tasks are counted down when they are dispatched.
    CountsTooEarly,
    /// The run ends when it is built, whatever is outstanding.
    EndsWithTheBuild,
    /// What no own core takes is kept.
    Hoards,
    /// A second dispatch is given while a sibling has a free core.
    PendsDespiteFreeCores,
    /// A core gets a second dispatch, however long its kernel runs.
    PendsAfterLongKernels,
    /// The newer of two dispatches counts as finished first.
    TakesTheSecondForTheFirst,
    /// The second dispatch is not followed when the first one has finished.
    ForgetsTheSecond,
    /// What was staged is not committed: no barrier, no doorbells.
    ForgetsToCommit,
    /// A core is looked at only when its task is due, never for lack of other work, and none is ever due.
    NeverLooks,
    /// A task is ready when it is published, whatever its producers do.
    PublishesAsReady,
    /// Published tasks are not counted as outstanding.
    NeverRaises,
    /// The loader counts one producer less of tasks with several.
    LoadsAnEdgeTooFew,
    /// A graph runs again, and its tasks are counted down as the run before has left them.
    LeavesTasksCountedDown,
    /// The doorbell of a task that was staged ahead is written when one of its producers has completed, whatever the others do.
    RingsTooEarly,
    /// The doorbell is written for a dispatch that was staged ahead, although another one has replaced it.
    RingsWhatWasReplaced,
    /// The queue loses the last of several ids.
    QueueLoses,
    /// The queue gives the ids, and keeps them.
    QueueRepeats,
    /// The watchdog does not see that a core takes too long.
    IgnoresSlowCores,
    /// The watchdog makes one number of what a core runs: different parts of tasks have the same one.
    FoldsWhatRuns,
    /// The watchdog takes a slow kernel for a stall.
    TakesWorkForAStall,
    /// Tasks of low priority go first.
    IgnoresPriority,
    /// A task runs whether its predicate is true or not.
    IgnoresPredicates,
    /// The consumers of a task that does not run are never released.
    SkipsTheConsumersToo,
    /// A task of several parts is complete one part early.
    ForgetsAPart,
    /// A claim gives the last block of the claim before once more.
    RunsABlockTwice,
    /// Blocks start while others of the same task have no core yet.
    StartsBeforeAllAreThere,
    /// Two tasks gather cores at once.
    GathersForTwo,
    /// A task leaves the gate when its first block has a core.
    LeavesTheGateEarly,
    /// A task that has cores, and lacks others, waits for its turn by priority.
    GathersInItsTurn,
    /// Tasks with a block shape go before plain ones of the same priority, however long those have waited.
    LetsPlainTasksWait,
    /// A scheduler that has pledged cores does not look whether all are there when nothing else waits.
    ForgetsWhatItPledged,
    /// What reads a tensor is not noted: later tasks write it meanwhile.
    ForgetsReaders,
    /// A task of a range does not wait for the last of several producers.
    RangeForgetsAnEdge,
    /// A task of a range is published one producer early.
    RangePublishesEarly,
    /// The last task of a range on tensors gets the edges of the one before.
    RangeTakesTheWrongTile,
    /// The last task of a range on tensors gets the words of the one before.
    RangeRepeatsItsEnd,
    /// Tensors of a heap are given up when their scope is closed, whatever its tasks do.
    ReusesTheHeapEarly,
}

#[cfg(pto_mutants)]
static CHOSEN: pto_abi::sync::AtomicU32 = pto_abi::sync::AtomicU32::new(0);

/// Makes the firmware wrong in this way, in the whole process, until the next call.
#[cfg(pto_mutants)]
pub fn choose(mutant: Mutant) {
    CHOSEN.store(mutant as u32, pto_abi::sync::Ordering::Relaxed);
}

/// Whether the firmware is to be wrong in this way.
#[cfg(pto_mutants)]
#[inline]
pub(crate) fn is(mutant: Mutant) -> bool {
    CHOSEN.load(pto_abi::sync::Ordering::Relaxed) == mutant as u32
}

/// Whether the firmware is to be wrong in this way: no.
#[cfg(not(pto_mutants))]
#[inline(always)]
pub(crate) const fn is(_: Mutant) -> bool {
    false
}

//! Flags between the cores of a task: a kernel raises a flag for other cores, and waits until one is raised for its own.
//!
//! Each core has a count for each flag. A wait takes one, and sleeps while there is none. Who gets one is said by the mode of the call
//! that raises it, as on the device:
//!
//! | mode | raised by | for |
//! |---|---|---|
//! | 0 | every core of a kind in the task | each of them |
//! | 1 | both vector cores of a block | both |
//! | 2 | the cube core of a block, or all its vector cores | its vector cores, or the cube core |
//! | 4 | the cube core of a block, or one of its vector cores | one of its vector cores, or the cube core |
//!
//! Mode 4 is that of a5, whose flags are others than those of a2a3. On the cube core they have numbers from 16 on for the second vector core.
//!
//! Invariant: a count in `given` is for one core, and is there until that core takes it.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a core waits for a flag.
const FLAG_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a core that waits looks whether the run has failed meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// A core of a task: the task, its block, and which of the block's cores: AIC, AIV 0, AIV 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskCore {
    pub(crate) task: u64,
    pub(crate) block: u32,
    pub(crate) slot: u8,
}

/// How many blocks a task has, and which cores each block uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchShape {
    /// Blocks of the task.
    pub(crate) blocks: u32,
    /// Which cores each block has.
    pub(crate) has: [bool; 3],
}

impl LaunchShape {
    /// Cores of the task.
    pub(crate) fn cores(&self) -> usize {
        self.blocks as usize * self.has.iter().filter(|has| **has).count()
    }

    /// The cores of one block, of a kind.
    fn of_block(self, task: u64, block: u32, slots: &[u8]) -> impl Iterator<Item = TaskCore> {
        let held = slots.iter().copied();
        held.filter(move |slot| self.has.get(usize::from(*slot)) == Some(&true))
            .map(move |slot| TaskCore { task, block, slot })
    }
}

const CUBE: &[u8] = &[0];
const VECTORS: &[u8] = &[1, 2];

/// Modes of the device, as the header passes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagMode {
    /// All cores of a kind in the task.
    Task,
    /// The vector cores of a block.
    Vectors,
    /// Both kinds of a block.
    Block,
    /// The cube core of a block and one of its vector cores.
    Pair,
}

/// Flags of mode 4 are numbered after those of the other modes.
const PAIRS: u32 = 64;
/// A flag of mode 4 that is about the second vector core.
const SECOND: u32 = 16;

impl FlagMode {
    pub(crate) const fn of(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Task),
            1 => Some(Self::Vectors),
            2 => Some(Self::Block),
            4 => Some(Self::Pair),
            _ => None,
        }
    }
}

/// Raised flags of a core that the others of its group have not raised yet, and flags that were raised for it.
#[derive(Default)]
struct Counts {
    raised: BTreeMap<(TaskCore, u32), u32>,
    given: BTreeMap<(TaskCore, u32), u32>,
}

/// See the file.
#[derive(Default)]
pub(crate) struct Flags {
    counts: Mutex<Counts>,
    changed: Condvar,
}

impl Flags {
    /// A core raises a flag.
    pub(crate) fn raise(&self, core: TaskCore, launch: LaunchShape, mode: FlagMode, flag: u32) {
        let is_cube = core.slot == 0;
        let own = if is_cube { CUBE } else { VECTORS };
        let in_block = |slots: &[u8]| launch.of_block(core.task, core.block, slots).collect();
        let in_task = |slots: &[u8]| {
            let blocks = 0..launch.blocks;
            blocks.flat_map(|block| launch.of_block(core.task, block, slots)).collect()
        };
        let (slots, flag): (&[u8], u32) = match (mode, core.slot) {
            (FlagMode::Pair, 0) if flag < SECOND => (&[1], PAIRS + flag),
            (FlagMode::Pair, 0) => (&[2], PAIRS + flag - SECOND),
            (FlagMode::Pair, 1) => (CUBE, PAIRS + flag),
            (FlagMode::Pair, _) => (CUBE, PAIRS + SECOND + flag),
            _ => (own, flag),
        };
        let (from, to): (Vec<TaskCore>, Vec<TaskCore>) = match mode {
            FlagMode::Pair => (vec![core], in_block(slots)),
            FlagMode::Task => (in_task(own), in_task(own)),
            FlagMode::Vectors => (in_block(VECTORS), in_block(VECTORS)),
            FlagMode::Block => (in_block(own), in_block(if is_cube { VECTORS } else { CUBE })),
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.raised.entry((core, flag)).or_default() += 1;
        let have_all = from.iter().all(|core| counts.raised.contains_key(&(*core, flag)));
        if !have_all {
            return;
        }
        for core in from {
            take(&mut counts.raised, (core, flag));
        }
        for core in to {
            *counts.given.entry((core, flag)).or_default() += 1;
        }
        self.changed.notify_all();
    }

    /// A core waits for a flag; whether it came. `is_over` says that the run has failed.
    pub(crate) fn wait(&self, core: TaskCore, flag: u32, is_over: impl Fn() -> bool) -> bool {
        let since = Instant::now();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if take(&mut counts.given, (core, flag)) {
                return true;
            }
            if is_over() || since.elapsed() > FLAG_TIMEOUT {
                return false;
            }
            let slept = self.changed.wait_timeout(counts, LOOK);
            counts = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// All cores of a block have returned: what was raised for them and not taken goes.
    pub(crate) fn forget(&self, task: u64, block: u32) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Counts { raised, given } = &mut *counts;
        for all in [raised, given] {
            all.retain(|(core, _), _| (core.task, core.block) != (task, block));
        }
    }
}

/// Takes one of a count; whether there was one.
fn take(counts: &mut BTreeMap<(TaskCore, u32), u32>, key: (TaskCore, u32)) -> bool {
    let Some(count) = counts.get_mut(&key) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(&key);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{FlagMode, Flags, LaunchShape, TaskCore};

    const LAUNCH: LaunchShape = LaunchShape { blocks: 2, has: [true, true, true] };

    const fn core(block: u32, slot: u8) -> TaskCore {
        TaskCore { task: 7, block, slot }
    }

    /// Which of the cores have the flag, in the order of blocks and slots.
    fn have(flags: &Flags, flag: u32) -> [bool; 6] {
        let all = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
        all.map(|(block, slot)| flags.wait(core(block, slot), flag, || true))
    }

    #[test]
    fn a_mode_says_who_gets_the_flag() {
        let flags = Flags::default();
        flags.raise(core(1, 0), LAUNCH, FlagMode::Block, 3);
        assert_eq!(have(&flags, 3), [false, false, false, false, true, true]);
        assert_eq!(have(&flags, 3), [false; 6], "a wait takes it");
        flags.raise(core(0, 1), LAUNCH, FlagMode::Block, 3);
        assert_eq!(have(&flags, 3), [false; 6], "the other vector core has not raised it");
        flags.raise(core(0, 2), LAUNCH, FlagMode::Block, 3);
        assert_eq!(have(&flags, 3), [true, false, false, false, false, false]);
        flags.raise(core(0, 1), LAUNCH, FlagMode::Vectors, 4);
        flags.raise(core(0, 2), LAUNCH, FlagMode::Vectors, 4);
        assert_eq!(have(&flags, 4), [false, true, true, false, false, false]);
        for (block, slot) in [(0, 1), (0, 2), (1, 1)] {
            flags.raise(core(block, slot), LAUNCH, FlagMode::Task, 5);
            assert_eq!(have(&flags, 5), [false; 6]);
        }
        flags.raise(core(1, 2), LAUNCH, FlagMode::Task, 5);
        assert_eq!(have(&flags, 5), [false, true, true, false, true, true]);
    }

    #[test]
    fn flags_of_a_pair_are_for_one_core() {
        let flags = Flags::default();
        flags.raise(core(0, 0), LAUNCH, FlagMode::Pair, 3);
        assert_eq!(have(&flags, 67), [false, true, false, false, false, false]);
        flags.raise(core(0, 0), LAUNCH, FlagMode::Pair, 19);
        assert_eq!(have(&flags, 67), [false, false, true, false, false, false]);
        flags.raise(core(1, 2), LAUNCH, FlagMode::Pair, 3);
        assert_eq!(have(&flags, 67), [false; 6]);
        assert_eq!(have(&flags, 64 + 19), [false, false, false, true, false, false]);
        flags.raise(core(1, 1), LAUNCH, FlagMode::Pair, 3);
        assert_eq!(have(&flags, 67), [false, false, false, true, false, false]);
        assert_eq!(have(&flags, 3), [false; 6], "flags of a2a3 are others");
    }

    #[test]
    fn what_a_block_leaves_goes_with_it() {
        let flags = Flags::default();
        flags.raise(core(1, 0), LAUNCH, FlagMode::Block, 3);
        flags.raise(core(0, 0), LAUNCH, FlagMode::Block, 3);
        flags.forget(7, 1);
        assert_eq!(have(&flags, 3), [false, true, true, false, false, false]);
    }
}

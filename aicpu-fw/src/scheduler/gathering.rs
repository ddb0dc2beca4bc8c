//! The cores that one scheduler has pledged to the task at the gate, whose blocks start at once (docs/decisions/block-shapes.md).
//!
//! ```text
//! pledge --> .. --> pledge of the last block, here or at a sibling --> take_pledge until none is left: all start
//! ```
//! Invariants:
//! - All pledges are to one task. A pledged core is neither free nor busy, and stays so until its block starts.
//! - Nothing is pledged exactly while `task` is none; but while `take_pledge` is called until nothing is left.

use heapless::Vec;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::stream::NO_TASK;

use super::clusters::ClusterCores;

/// The cores that wait for a block to start.
#[derive(Clone, Copy, Hash)]
pub(super) struct Pledge {
    pub(super) lane_cores: ClusterCores,
    pub(super) block: u32,
}

/// See the module.
#[derive(Hash)]
pub(super) struct Gathering {
    task: u32,
    pledges: Vec<Pledge, MAX_WORKERS>,
    /// The task that has gathered in this step before its turn.
    went_on: u32,
}

impl Gathering {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self { task: NO_TASK, pledges: Vec::new(), went_on: NO_TASK }
    }

    /// Whether nothing is pledged.
    pub(super) const fn is_idle(&self) -> bool {
        self.task == NO_TASK
    }

    /// The task that has pledged cores.
    pub(super) const fn task(&self) -> u32 {
        self.task
    }

    /// Whether cores are pledged to this task.
    pub(super) const fn is_for(&self, slot: u32) -> bool {
        self.task == slot
    }

    /// Pledges the cores of one block, which were free.
    pub(super) fn pledge(&mut self, slot: u32, pledge: Pledge) {
        self.task = slot;
        // A core is pledged once, so there is room.
        self.pledges.push(pledge).unwrap_or_default();
    }

    /// All blocks of the task can start: takes their cores, one block after the other.
    pub(super) fn take_pledge(&mut self) -> Option<Pledge> {
        self.task = NO_TASK;
        self.pledges.pop()
    }

    /// This task has its turn before all others in this step; none has.
    pub(super) fn go_first(&mut self, slot: Option<u32>) {
        self.went_on = slot.unwrap_or(NO_TASK);
    }

    /// Whether this task has had its turn in this step already.
    pub(super) const fn went_first(&self, slot: u32) -> bool {
        self.went_on == slot
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Gathering, Pledge};

    #[test]
    fn all_pledges_are_to_one_task_until_they_are_taken() {
        let mut gathering = Gathering::new();
        assert!(gathering.is_idle() && gathering.take_pledge().is_none());
        for block in 0..3 {
            gathering.pledge(7, Pledge { lane_cores: [block; 3], block: block.into() });
        }
        assert!(gathering.is_for(7) && !gathering.is_for(8) && gathering.task() == 7);
        let mut blocks = [false; 3];
        while let Some(Pledge { lane_cores, block }) = gathering.take_pledge() {
            assert_eq!(u32::from(lane_cores[0]), block, "the cores of this block");
            blocks[block as usize] = true;
        }
        assert!(blocks == [true; 3] && gathering.is_idle());
    }

    #[test]
    fn a_task_goes_first_for_one_step() {
        let mut gathering = Gathering::new();
        gathering.go_first(Some(7));
        assert!(gathering.went_first(7) && !gathering.went_first(8));
        gathering.go_first(None);
        assert!(!gathering.went_first(7));
    }
}

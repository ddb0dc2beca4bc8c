//! The lists on which tasks with a block shape wait: four for each priority, one of tasks whose predicate has not been read, one of
//! transfers for the transfer engine, and one of those that it has finished.
//! The words are on the [board](super::board).

use pto_abi::CoreKind;
use pto_abi::stream::{
    ARRIVALS, ARRIVED, BlockLine, LIST_COUNT, LISTS_A_LEVEL, NO_LIST, TRANSFERS,
};
use pto_abi::sync::Ordering;
use pto_graph::Priority;

use super::lanes::Lanes;

/// A list of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(pub u32);

/// The bit of `BlockBoard::waiting` that says that the task at the gate has cores, and lacks others.
pub const GATHERS: u32 = 1 << LIST_COUNT;
const _: () = assert!(LIST_COUNT < u32::BITS, "the word has a bit for it");

/// The lists whose tasks go before plain ones that have just become ready; and the task that has cores and lacks others.
pub(super) const MORE_PRESSING: u32 = List::level(Priority::URGENT)
    | List::level(Priority::HIGH)
    | List::level(Priority::NORMAL)
    | GATHERS;

/// Lists of each priority.
pub const LEVEL_LISTS: usize = LISTS_A_LEVEL as usize;

/// What the tasks of a list wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A core of this kind for each block, as one becomes free.
    Core(CoreKind),
    /// Several cores of one cluster for each block, as they become free.
    Cluster,
    /// Cores for all blocks at once.
    AllAtOnce,
}

impl WaitsFor {
    /// In the order of the lists.
    pub const ALL: [Self; LEVEL_LISTS] =
        [Self::Core(CoreKind::AIC), Self::Core(CoreKind::AIV), Self::Cluster, Self::AllAtOnce];

    /// Its index among the lists of a priority.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Core(kind) => kind.index(),
            Self::Cluster => 2,
            Self::AllAtOnce => 3,
        }
    }
}

impl List {
    /// Tasks whose predicate has not been read.
    pub const ARRIVALS: Self = Self(ARRIVALS);
    /// Transfers that the transfer engine has not taken.
    pub const TRANSFERS: Self = Self(TRANSFERS);
    /// Transfers that are over, and that no scheduler has completed.
    pub const ARRIVED: Self = Self(ARRIVED);

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

    /// Where tasks of this priority wait for this.
    #[must_use]
    pub const fn at(priority: Priority, waits_for: WaitsFor) -> Self {
        let list = match waits_for {
            WaitsFor::Core(CoreKind::AIC) => 0,
            WaitsFor::Core(_) => 1,
            WaitsFor::Cluster => 2,
            WaitsFor::AllAtOnce => 3,
        };
        Self(LISTS_A_LEVEL * priority.get() as u32 + list)
    }

    /// The list's bit of `BlockBoard::waiting`.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }

    /// The bits of all lists of a priority.
    #[must_use]
    pub const fn level(priority: Priority) -> u32 {
        ((1 << LISTS_A_LEVEL) - 1) << (LISTS_A_LEVEL * priority.get() as u32)
    }

    pub(super) fn is_sync(self) -> bool {
        self.0 < ARRIVALS && self.0 % LISTS_A_LEVEL == LISTS_A_LEVEL - 1
    }

    /// The list that a task waits on; `None`: it goes to the ready queue of its kind.
    #[must_use]
    pub fn of(line: &BlockLine) -> Option<Self> {
        let list = line.list.load(Ordering::Relaxed);
        (list != NO_LIST).then_some(Self(list))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{ARRIVALS, GATHERS, LEVEL_LISTS, List, WaitsFor};
    use crate::block_shapes::Lanes;
    use pto_abi::CoreKind;
    use pto_graph::Priority;

    /// What the builder writes in a task's line and what a scheduler looks for is one list.
    #[test]
    fn builder_and_scheduler_mean_the_same_lists() {
        for &priority in Priority::ALL {
            for &kind in CoreKind::ALL {
                let one = List::spread(priority, Lanes::one(kind));
                assert_eq!(one, List::at(priority, WaitsFor::Core(kind)));
            }
            for lanes in [3, 5, 6, 7] {
                let several = List::spread(priority, Lanes(lanes));
                assert_eq!(several, List::at(priority, WaitsFor::Cluster));
            }
            assert_eq!(List::sync(priority), List::at(priority, WaitsFor::AllAtOnce));
        }
    }

    /// Every list has a bit of its own, within those of its priority.
    #[test]
    fn no_two_lists_share_a_bit() {
        let apart = [List::ARRIVALS, List::TRANSFERS, List::ARRIVED];
        let mut seen = apart.iter().fold(GATHERS, |seen, list| seen | list.bit());
        assert_eq!(seen.count_ones(), 4);
        for &priority in Priority::ALL {
            let lists = WaitsFor::ALL.map(|waits_for| List::at(priority, waits_for));
            for (at, list) in lists.into_iter().enumerate() {
                assert_eq!(WaitsFor::ALL[at].index(), at);
                assert_eq!(list.is_sync(), at == LEVEL_LISTS - 1);
                assert_eq!(seen & list.bit(), 0);
                assert_eq!(List::level(priority) & list.bit(), list.bit());
                seen |= list.bit();
            }
            assert_eq!(List::level(priority).count_ones(), 4);
        }
        assert!(apart.iter().all(|list| !list.is_sync()) && List::ARRIVALS.0 == ARRIVALS);
    }
}

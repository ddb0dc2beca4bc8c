//! What could start: which of a device's idle cores the ready tasks could have at one moment.
//!
//! A block *fits* if the idle cores of one cluster are enough for all of its kernels; tasks whose blocks start at once fit if
//! all of their blocks do, side by side. What waits is placed one after another: tasks that start at once, then blocks
//! of several cores, the older ones first, then single cores. A block takes the cluster with the fewest idle cores that has
//! enough, so that whole ones are left for those that need them.

use pto_abi::CoreKind;
use pto_aicpu_fw::block_shapes::Lanes;

/// Cores by kind.
pub(super) type Cores = [u64; CoreKind::COUNT];

const AIC: usize = CoreKind::AIC.index();
const AIV: usize = CoreKind::AIV.index();

/// The cores that a block with these kernels needs, all in one cluster.
pub(super) fn need(lanes: Lanes) -> Cores {
    let vectors = u64::from(lanes.has(1)) + u64::from(lanes.has(2));
    let mut need = [0; CoreKind::COUNT];
    (need[AIC], need[AIV]) = (u64::from(lanes.has(0)), vectors);
    need
}

/// A task that needs several cores at once, and has blocks that were not dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitingTask {
    pub(super) slot: u32,
    /// Cores of one block.
    pub(super) need: Cores,
    pub(super) blocks: u64,
    /// All of them start together: none has been dispatched.
    pub(super) at_once: bool,
}

/// What came of placing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fit {
    /// Idle cores that something could have.
    pub(super) taken: Cores,
    /// Idle cores that are left, and that something needs which does not fit.
    pub(super) unfit: Cores,
}

/// Places what waits on the idle cores of each cluster; `singles`: blocks of one core, by kind.
pub(super) fn fit(mut idle: Vec<Cores>, waiters: &[WaitingTask], singles: Cores) -> Fit {
    let mut placed = Fit::default();
    let mut lacking = Cores::default();
    let (together, spread): (Vec<WaitingTask>, Vec<_>) =
        waiters.iter().copied().partition(|waiting| waiting.at_once);
    for WaitingTask { need, blocks, at_once, .. } in together.into_iter().chain(spread) {
        let places = idle.iter().map(|cores| places_in(*cores, need)).sum::<u64>();
        let count = if at_once && places < blocks { 0 } else { places.min(blocks) };
        (0..count).for_each(|_| take(&mut idle, need));
        for kind in 0..CoreKind::COUNT {
            placed.taken[kind] += count * need[kind];
            lacking[kind] += (blocks - count) * need[kind];
        }
    }
    for kind in 0..CoreKind::COUNT {
        let left: u64 = idle.iter().map(|cores| cores[kind]).sum();
        let single = left.min(singles[kind]);
        placed.taken[kind] += single;
        placed.unfit[kind] = (left - single).min(lacking[kind]);
    }
    placed
}

/// Blocks that the idle cores of a cluster are enough for.
fn places_in(idle: Cores, need: Cores) -> u64 {
    let kinds = (0..CoreKind::COUNT).filter(|kind| need[*kind] > 0);
    kinds.map(|kind| idle[kind] / need[kind]).min().unwrap_or(0)
}

/// Takes the cores of a block that fits.
fn take(idle: &mut [Cores], need: Cores) {
    let able = idle.iter_mut().filter(|cores| places_in(**cores, need) > 0);
    if let Some(cores) = able.min_by_key(|cores| cores.iter().sum::<u64>()) {
        (0..CoreKind::COUNT).for_each(|kind| cores[kind] -= need[kind]);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, Fit, WaitingTask, fit, need};
    use pto_aicpu_fw::block_shapes::Lanes;

    fn spread(lanes: u8, blocks: u64) -> WaitingTask {
        WaitingTask { slot: 0, need: need(Lanes(lanes)), blocks, at_once: false }
    }

    fn at_once(lanes: u8, blocks: u64) -> WaitingTask {
        WaitingTask { at_once: true, ..spread(lanes, blocks) }
    }

    fn placed(idle: &[Cores], waiters: &[WaitingTask], singles: Cores) -> (Cores, Cores) {
        let Fit { taken, unfit } = fit(idle.to_vec(), waiters, singles);
        (taken, unfit)
    }

    #[test]
    fn a_block_needs_its_cores_in_one_cluster() {
        // As many cores of each kind, and nowhere all three.
        let apart: &[Cores] = &[[1, 1], [0, 2], [1, 0]];
        assert_eq!(placed(apart, &[spread(7, 1)], [0, 0]), ([0, 0], [1, 2]));
        assert_eq!(placed(apart, &[spread(3, 1)], [0, 0]), ([1, 1], [0, 0]), "either vector core");
        assert_eq!(placed(apart, &[spread(6, 1)], [0, 0]), ([0, 2], [0, 0]));
        assert_eq!(placed(&[[1, 2]], &[spread(7, 1)], [0, 0]), ([1, 2], [0, 0]));
        assert_eq!(placed(apart, &[spread(7, 1)], [1, 1]), ([1, 1], [1, 2]), "others fit");
    }

    #[test]
    fn as_many_blocks_as_there_are_places() {
        let whole: &[Cores] = &[[1, 2], [1, 2], [0, 2]];
        assert_eq!(placed(whole, &[spread(7, 5)], [0, 0]), ([2, 4], [0, 2]));
        assert_eq!(placed(whole, &[spread(7, 1)], [0, 9]), ([1, 6], [0, 0]));
        assert_eq!(placed(whole, &[], [9, 1]), ([2, 1], [0, 0]));
    }

    #[test]
    fn all_blocks_together_or_none() {
        let idle: &[Cores] = &[[1, 2], [0, 1]];
        assert_eq!(placed(idle, &[at_once(2, 3)], [0, 0]), ([0, 3], [0, 0]));
        assert_eq!(placed(idle, &[at_once(2, 4)], [0, 0]), ([0, 0], [0, 3]));
        assert_eq!(placed(idle, &[at_once(2, 4)], [0, 2]), ([0, 2], [0, 1]), "others go by");
        assert_eq!(placed(idle, &[at_once(7, 2)], [0, 0]), ([0, 0], [1, 3]));
        // Two that fit alone and not side by side: the first one does.
        let both = [at_once(2, 2), at_once(2, 3)];
        assert_eq!(placed(idle, &both, [0, 0]), ([0, 2], [0, 1]));
    }

    #[test]
    fn whole_clusters_are_left_for_those_that_need_them() {
        let idle: &[Cores] = &[[1, 2], [0, 2], [1, 1]];
        let waiters = [spread(6, 1), spread(3, 1), spread(7, 1)];
        assert_eq!(placed(idle, &waiters, [0, 0]), ([2, 5], [0, 0]));
        assert_eq!(placed(idle, &[at_once(2, 3), spread(7, 1)], [0, 0]), ([1, 5], [0, 0]));
    }
}

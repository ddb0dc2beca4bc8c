//! The clusters of one scheduler: where a block finds its cores, and which cluster is kept for the next one.
//!
//! Everything here decides, and changes no core. Invariants:
//! - A block gets a core for each lane that was asked for, all of one cluster; or, for one lane, any core of its kind.
//! - No cluster is held of which a core is missing, pledged, or held already.

use heapless::Vec;
#[cfg(not(any(loom, shuttle)))]
use pto_abi::CoreKind;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::stream::MAX_LANES;

use crate::block_shapes::Lanes;
use crate::cores::CoreSet;

/// No core, no cluster.
const NONE: u8 = u8::MAX;

/// Cores by lane: of a cluster its cube core and its vector cores, of a block the core for each of its kernels.
pub(super) type ClusterCores = [u8; MAX_LANES];

/// The cores for these lanes; [`NONE`] for a lane that has no core.
pub(super) fn members(lane_cores: ClusterCores, lanes: Lanes) -> impl Iterator<Item = u8> {
    (0..MAX_LANES).filter(move |lane| lanes.has(*lane)).map(move |lane| lane_cores[lane])
}

/// See the module.
#[derive(Hash)]
pub(super) struct Clusters {
    clusters: Vec<ClusterCores, MAX_WORKERS>,
    /// The cluster that was held last.
    filling: u8,
}

impl Clusters {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self { clusters: Vec::new(), filling: NONE }
    }

    /// Learns the cluster of each worker.
    #[cfg(not(any(loom, shuttle)))]
    pub(super) fn form(&mut self, cores: &CoreSet, cluster_of: impl Fn(u32) -> Option<u32>) {
        let mut numbers: Vec<u32, MAX_WORKERS> = Vec::new();
        for core in 0..cores.len() {
            let Some(number) = cluster_of(cores.worker(core)) else { continue };
            let known = numbers.iter().position(|known| *known == number);
            let at = known.unwrap_or(numbers.len());
            if known.is_none() {
                // There are no more clusters than workers.
                numbers.push(number).unwrap_or_default();
                self.clusters.push([NONE; MAX_LANES]).unwrap_or_default();
            }
            let lanes = match cores.kind(core) {
                CoreKind::AIC => 0..1,
                _ => 1..MAX_LANES,
            };
            let cluster =
                self.clusters.get_mut(at).and_then(|lane_cores| lane_cores.get_mut(lanes));
            let empty =
                cluster.and_then(|lane_cores| lane_cores.iter_mut().find(|core| **core == NONE));
            if let Some(lane) = empty {
                *lane = u8::try_from(core).unwrap_or(NONE);
            }
        }
    }

    /// A free core or a cluster of free cores for a block.
    #[must_use]
    pub(super) fn free_cores(&self, cores: &CoreSet, lanes: Lanes) -> Option<ClusterCores> {
        let Some(kind) = lanes.single() else { return self.free_cluster(cores, lanes) };
        let core = u8::try_from(cores.free_core(kind)?).unwrap_or(NONE);
        // Of one lane.
        Some([core; MAX_LANES])
    }

    /// Cores for these lanes in one cluster that are all free.
    fn free_cluster(&self, cores: &CoreSet, lanes: Lanes) -> Option<ClusterCores> {
        let is_free = |core: u8| cores.is_free(core.into());
        let clusters = self.clusters.iter().map(|cluster| assign_lanes(cores, *cluster, lanes));
        clusters.into_iter().find(|lane_cores| members(*lane_cores, lanes).all(is_free))
    }

    /// The cluster whose free cores are to be kept from tasks of lower rank: the one with the most free cores, so that it is
    /// whole soonest; of equal ones the one that was held last. Its number, and its cores for these lanes.
    #[must_use]
    pub(super) fn choose_to_hold(
        &self,
        cores: &CoreSet,
        lanes: Lanes,
    ) -> Option<(usize, ClusterCores)> {
        let score = |(number, cluster): (usize, &ClusterCores)| {
            let mut free = 0;
            let lane_cores = assign_lanes(cores, *cluster, lanes);
            for core in members(lane_cores, lanes).map(usize::from) {
                if cores.is_free(core) {
                    free += 1;
                } else if !cores.is_busy(core) {
                    // There is none, or it is pledged, or held for another task.
                    return None;
                }
            }
            let is_filling = usize::from(self.filling) == number;
            Some((2 * free + u32::from(is_filling), number, lane_cores))
        };
        let scored = self.clusters.iter().enumerate().filter_map(score);
        let best = scored.max_by_key(|(score, ..)| *score);
        best.filter(|(score, ..)| *score > 1).map(|(_, number, lane_cores)| (number, lane_cores))
    }

    /// This cluster is held now.
    pub(super) fn note_held(&mut self, cluster: usize) {
        self.filling = u8::try_from(cluster).unwrap_or(NONE);
    }
}

/// The cores of a cluster that a block with these lanes gets. One vector kernel goes to either vector core: to the first
/// one, unless only the second one is free, or only that one will be.
fn assign_lanes(cores: &CoreSet, mut lane_cores: ClusterCores, lanes: Lanes) -> ClusterCores {
    if lanes.has(1) && !lanes.has(2) {
        let [_, first, second] = lane_cores.map(usize::from);
        let will_be = |core| cores.is_free(core) || cores.is_busy(core);
        let is_second = cores.is_free(second) && !cores.is_free(first);
        if is_second || will_be(second) && !will_be(first) {
            lane_cores[1] = lane_cores[2];
        }
    }
    lane_cores
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Clusters, members};
    use crate::block_shapes::Lanes;
    use crate::cores::CoreSet;
    use pto_abi::CoreKind;

    const CLUSTERS: u32 = 3;

    /// Three clusters: cores 0, 3 and 6 are cube cores, the two after each are its vector cores.
    fn device() -> (CoreSet, Clusters) {
        let (mut cores, mut clusters) = (CoreSet::new(), Clusters::new());
        for worker in 0..3 * CLUSTERS {
            let kind = if worker % 3 == 0 { CoreKind::AIC } else { CoreKind::AIV };
            cores.add(worker, kind).unwrap();
        }
        clusters.form(&cores, |worker| Some(worker / 3));
        (cores, clusters)
    }

    /// Thousands of states of the cores: what is free, busy, and set apart.
    #[test]
    fn chosen_cores_are_free_and_a_held_cluster_can_be_whole() {
        let mut seed = 1_u64;
        let states = if cfg!(miri) { 20 } else { 20_000 };
        for _ in 0..states {
            let (mut cores, mut clusters) = device();
            for core in 0..3 * CLUSTERS as usize {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                match seed >> 61 {
                    0..3 => {}
                    3..6 => {
                        cores.set_apart(core);
                        cores.assign(core, 1);
                    }
                    _ => cores.set_apart(core),
                }
            }
            clusters.note_held((seed >> 40) as usize % 3);
            for lanes in (1..8).map(Lanes) {
                let is_free = |core: u8| cores.is_free(core.into());
                let chosen = clusters.free_cores(&cores, lanes);
                if let Some(chosen) = chosen {
                    assert!(members(chosen, lanes).all(is_free));
                    let first = members(chosen, lanes).next().unwrap() / 3;
                    assert!(members(chosen, lanes).all(|core| core / 3 == first), "one cluster");
                }
                if lanes.single().is_some() {
                    continue;
                }
                let free_in =
                    |lane_cores| members(lane_cores, lanes).filter(|core| is_free(*core)).count();
                if let Some((cluster, held)) = clusters.choose_to_hold(&cores, lanes) {
                    assert!(members(held, lanes).all(|core| usize::from(core) / 3 == cluster));
                    let will_be = |core: u8| is_free(core) || cores.is_busy(core.into());
                    assert!(
                        members(held, lanes).all(will_be),
                        "it waits for no other task's pledge"
                    );
                    assert!(free_in(held) > 0, "there is something to hold");
                }
                if let Some(chosen) = chosen {
                    let held = clusters.choose_to_hold(&cores, lanes).map(|(_, held)| held);
                    assert_eq!(held.map(free_in), Some(free_in(chosen)), "a whole one is the best");
                }
            }
        }
    }
}

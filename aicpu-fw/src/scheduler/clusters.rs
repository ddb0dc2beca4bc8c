//! The clusters of one scheduler: where a block finds its cores, and which cluster is kept for the next one.
//!
//! Everything here decides, and changes no core. Invariants:
//! - A place has a core for each lane that was asked for, all of one cluster; or, for one lane, any core of its kind.
//! - No cluster is held of which a core is missing, pledged, or held already.

use heapless::Vec;
#[cfg(not(any(loom, shuttle)))]
use pto_abi::CoreKind;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::stream::MAX_LANES;

use crate::block_shapes::Lanes;
use crate::cores::Cores;

/// No core, no cluster.
const NONE: u8 = u8::MAX;

/// Cores by lane: of a cluster its cube core and its vector cores, of a block the core for each of its kernels.
pub(super) type ClusterCores = [u8; MAX_LANES];

/// The cores of a place for these lanes; [`NONE`] for a lane that it has no core for.
pub(super) fn members(place: ClusterCores, lanes: Lanes) -> impl Iterator<Item = u8> {
    (0..MAX_LANES).filter(move |lane| lanes.has(*lane)).map(move |lane| place[lane])
}

/// See the module.
#[derive(Hash)]
pub(super) struct Clusters {
    places: Vec<ClusterCores, MAX_WORKERS>,
    /// The cluster that was held last.
    filling: u8,
}

impl Clusters {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), filling: NONE }
    }

    /// Learns which cores stand together: the cluster of each worker.
    #[cfg(not(any(loom, shuttle)))]
    pub(super) fn form(&mut self, cores: &Cores, cluster_of: impl Fn(u32) -> Option<u32>) {
        let mut numbers: Vec<u32, MAX_WORKERS> = Vec::new();
        for core in 0..cores.len() {
            let Some(number) = cluster_of(cores.worker(core)) else { continue };
            let known = numbers.iter().position(|known| *known == number);
            let at = known.unwrap_or(numbers.len());
            if known.is_none() {
                // There are no more clusters than workers.
                numbers.push(number).unwrap_or_default();
                self.places.push([NONE; MAX_LANES]).unwrap_or_default();
            }
            let lanes = match cores.kind(core) {
                CoreKind::AIC => 0..1,
                _ => 1..MAX_LANES,
            };
            let cluster = self.places.get_mut(at).and_then(|place| place.get_mut(lanes));
            let place = cluster.and_then(|place| place.iter_mut().find(|core| **core == NONE));
            if let Some(place) = place {
                *place = u8::try_from(core).unwrap_or(NONE);
            }
        }
    }

    /// A free core or a cluster of free cores for a block.
    #[must_use]
    pub(super) fn free_place(&self, cores: &Cores, lanes: Lanes) -> Option<ClusterCores> {
        let Some(kind) = lanes.single() else { return self.free_cluster(cores, lanes) };
        let core = u8::try_from(cores.free_core(kind)?).unwrap_or(NONE);
        // Of one lane.
        Some([core; MAX_LANES])
    }

    /// Cores for these lanes in one cluster that are all free.
    fn free_cluster(&self, cores: &Cores, lanes: Lanes) -> Option<ClusterCores> {
        let is_free = |core: u8| cores.is_free(core.into());
        let places = self.places.iter().map(|place| place_in(cores, *place, lanes));
        places.into_iter().find(|place| members(*place, lanes).all(is_free))
    }

    /// The cluster whose free cores are to be kept from tasks of lower rank: the one with the most free cores, so that it is
    /// whole soonest; of equal ones the one that was held last. Its number, and its cores for these lanes.
    #[must_use]
    pub(super) fn choose_to_hold(
        &self,
        cores: &Cores,
        lanes: Lanes,
    ) -> Option<(usize, ClusterCores)> {
        let score = |(cluster, place): (usize, &ClusterCores)| {
            let mut free = 0;
            let place = place_in(cores, *place, lanes);
            for core in members(place, lanes).map(usize::from) {
                if cores.is_free(core) {
                    free += 1;
                } else if !cores.is_busy(core) {
                    // There is none, or it is pledged, or held for another task.
                    return None;
                }
            }
            let is_filling = usize::from(self.filling) == cluster;
            Some((2 * free + u32::from(is_filling), cluster, place))
        };
        let scored = self.places.iter().enumerate().filter_map(score);
        let best = scored.max_by_key(|(score, ..)| *score);
        best.filter(|(score, ..)| *score > 1).map(|(_, cluster, place)| (cluster, place))
    }

    /// This cluster is held now.
    pub(super) fn note_held(&mut self, cluster: usize) {
        self.filling = u8::try_from(cluster).unwrap_or(NONE);
    }
}

/// The cores of a cluster that a block with these lanes gets. One vector kernel goes to either vector core: to the first
/// one, unless only the second one is free, or only that one will be.
fn place_in(cores: &Cores, mut place: ClusterCores, lanes: Lanes) -> ClusterCores {
    if lanes.has(1) && !lanes.has(2) {
        let [_, first, second] = place.map(usize::from);
        let will_be = |core| cores.is_free(core) || cores.is_busy(core);
        let is_second = cores.is_free(second) && !cores.is_free(first);
        if is_second || will_be(second) && !will_be(first) {
            place[1] = place[2];
        }
    }
    place
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Clusters, members};
    use crate::block_shapes::Lanes;
    use crate::cores::Cores;
    use pto_abi::CoreKind;

    const CLUSTERS: u32 = 3;

    /// Three clusters: cores 0, 3 and 6 are cube cores, the two behind each are its vector cores.
    fn device() -> (Cores, Clusters) {
        let (mut cores, mut clusters) = (Cores::new(), Clusters::new());
        for worker in 0..3 * CLUSTERS {
            let kind = if worker % 3 == 0 { CoreKind::AIC } else { CoreKind::AIV };
            cores.add(worker, kind).unwrap();
        }
        clusters.form(&cores, |worker| Some(worker / 3));
        (cores, clusters)
    }

    /// Thousands of states of the cores: what is free, busy, and set apart.
    #[test]
    fn a_place_is_free_and_a_held_cluster_can_be_whole() {
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
                let place = clusters.free_place(&cores, lanes);
                if let Some(place) = place {
                    assert!(members(place, lanes).all(is_free));
                    let first = members(place, lanes).next().unwrap() / 3;
                    assert!(members(place, lanes).all(|core| core / 3 == first), "one cluster");
                }
                if lanes.single().is_some() {
                    continue;
                }
                let free_in = |place| members(place, lanes).filter(|core| is_free(*core)).count();
                if let Some((cluster, held)) = clusters.choose_to_hold(&cores, lanes) {
                    assert!(members(held, lanes).all(|core| usize::from(core) / 3 == cluster));
                    let will_be = |core: u8| is_free(core) || cores.is_busy(core.into());
                    assert!(members(held, lanes).all(will_be), "it waits for nobody's pledge");
                    assert!(free_in(held) > 0, "there is something to hold");
                }
                if let Some(place) = place {
                    let held = clusters.choose_to_hold(&cores, lanes).map(|(_, held)| held);
                    assert_eq!(held.map(free_in), Some(free_in(place)), "a whole one is the best");
                }
            }
        }
    }
}

//! How the workers of a device are divided among schedulers: contiguous runs of clusters, as even as they
//! go, clusters kept together. A pure function of the worker table, so that every instance computes the same.

use heapless::Vec;
use pto_abi::limits::MAX_WORKERS;
use pto_abi::runtime::WorkerEntry;
use pto_abi::{CoreKind, Fault};

use crate::blame::Blame;

/// A worker table that has been checked. Holding it proves: at least one worker; kinds are known; clusters
/// are numbered from 0 without gaps and hold at most 1 AIC and 2 AIV.
#[derive(Clone, Debug)]
pub struct WorkerTable {
    kinds: Vec<CoreKind, MAX_WORKERS>,
    clusters: Vec<u32, MAX_WORKERS>,
    cluster_count: u32,
}

impl WorkerTable {
    /// Checks the entries.
    ///
    /// # Errors
    /// `RUNTIME_WORKER_COUNT` or `RUNTIME_WORKER_ENTRY`; the detail holds the worker and what it says.
    pub fn check(entries: impl Iterator<Item = WorkerEntry>) -> Result<Self, Blame> {
        let mut table = Self { kinds: Vec::new(), clusters: Vec::new(), cluster_count: 0 };
        let mut members = [[0_u8; CoreKind::COUNT]; MAX_WORKERS];
        for (worker, entry) in (0_u32..).zip(entries) {
            let wrong = |found: u32| {
                Blame::of(Fault::RUNTIME_WORKER_ENTRY).worker(worker).detail(found.into(), 0)
            };
            let kind = u8::try_from(entry.kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
            let kind = kind.ok_or(wrong(entry.kind))?;
            let cluster = members.get_mut(entry.cluster as usize).ok_or(wrong(entry.cluster))?;
            let member = &mut cluster[kind.index()];
            *member += 1;
            if *member > cluster_limit(kind) {
                return Err(wrong(entry.cluster));
            }
            let full =
                |_| Blame::of(Fault::RUNTIME_WORKER_COUNT).detail(u64::from(worker) + 1, 128);
            table.kinds.push(kind).map_err(full)?;
            table.clusters.push(entry.cluster).map_err(|_| full(kind))?;
            table.cluster_count = table.cluster_count.max(entry.cluster + 1);
        }
        table.check_clusters(&members)
    }

    fn check_clusters(self, members: &[[u8; CoreKind::COUNT]]) -> Result<Self, Blame> {
        if self.kinds.is_empty() {
            return Err(Blame::of(Fault::RUNTIME_WORKER_COUNT));
        }
        let used = members.iter().take(self.cluster_count as usize);
        for (cluster, member) in (0_u64..).zip(used) {
            if member.iter().all(|count| *count == 0) {
                return Err(Blame::of(Fault::RUNTIME_WORKER_ENTRY).detail(cluster, 0));
            }
        }
        Ok(self)
    }

    /// How many workers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Never: a checked table has a worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kind of a worker.
    #[must_use]
    pub fn kind(&self, worker: u32) -> Option<CoreKind> {
        self.kinds.get(worker as usize).copied()
    }

    /// The cluster of a worker.
    #[must_use]
    pub fn cluster(&self, worker: u32) -> Option<u32> {
        self.clusters.get(worker as usize).copied()
    }

    /// How many clusters have how many AIC, and how many AIV.
    #[must_use]
    pub fn tally(&self) -> ClusterTally {
        let mut members = [[0_usize; CoreKind::COUNT]; MAX_WORKERS];
        for (kind, cluster) in self.kinds.iter().zip(&self.clusters) {
            if let Some(members) = members.get_mut(*cluster as usize) {
                members[kind.index()] += 1;
            }
        }
        let mut tally = ClusterTally::default();
        for [aic, aiv] in members.iter().take(self.cluster_count as usize) {
            let clusters = tally.0.get_mut(*aic).and_then(|row| row.get_mut(*aiv));
            // A checked table has no larger ones.
            clusters.into_iter().for_each(|clusters| *clusters += 1);
        }
        tally
    }

    /// How many workers of `kind`.
    #[must_use]
    pub fn count(&self, kind: CoreKind) -> usize {
        self.kinds.iter().filter(|other| **other == kind).count()
    }

    /// How many clusters.
    #[must_use]
    pub const fn cluster_count(&self) -> u32 {
        self.cluster_count
    }

    /// The workers of scheduler `scheduler` out of `schedulers`, in ascending order.
    pub fn share(&self, scheduler: u32, schedulers: u32) -> impl Iterator<Item = u32> + '_ {
        let bound = |n: u32| {
            let clusters = u64::from(self.cluster_count) * u64::from(n);
            u32::try_from(clusters / u64::from(schedulers.max(1))).unwrap_or(u32::MAX)
        };
        let range = bound(scheduler)..bound(scheduler + 1);
        let workers = (0_u32..).zip(&self.clusters);
        workers.filter(move |(_, cluster)| range.contains(cluster)).map(|(worker, _)| worker)
    }
}

/// Cores of each kind in a cluster.
const MOST_AIC: u8 = 1;
const MOST_AIV: u8 = 2;

const fn cluster_limit(kind: CoreKind) -> u8 {
    match kind {
        CoreKind::AIC => MOST_AIC,
        _ => MOST_AIV,
    }
}

/// Clusters by the AIC and the AIV that they have.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterTally([[u32; MOST_AIV as usize + 1]; MOST_AIC as usize + 1]);

impl ClusterTally {
    /// How many clusters have at least `cores` cores of each kind.
    #[must_use]
    pub fn with(&self, cores: [usize; CoreKind::COUNT]) -> u32 {
        let [aic, aiv] = cores;
        let rows = self.0.get(aic..).unwrap_or(&[]);
        rows.iter().flat_map(|row| row.get(aiv..).unwrap_or(&[])).sum()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;
    use super::WorkerTable;
    use pto_abi::runtime::WorkerEntry;
    use pto_abi::{CoreKind, Fault};
    use std::{vec, vec::Vec};

    fn die(aic: u32, aiv: u32) -> Vec<WorkerEntry> {
        let aic = (0..aic).map(|i| WorkerEntry { kind: 0, cluster: i });
        aic.chain((0..aiv).map(|i| WorkerEntry { kind: 1, cluster: i / 2 })).collect()
    }

    #[test]
    fn every_worker_has_one_scheduler_and_clusters_stay_together() {
        for (aic, aiv) in [(24, 48), (3, 6), (1, 2), (5, 5), (0, 9), (7, 0), (24, 49), (3, 20)] {
            let entries = die(aic, aiv);
            let table = WorkerTable::check(entries.iter().copied()).unwrap();
            for schedulers in 1..=16 {
                let shares: Vec<Vec<u32>> =
                    (0..schedulers).map(|s| table.share(s, schedulers).collect()).collect();
                let mut all: Vec<u32> = shares.concat();
                all.sort_unstable();
                assert_eq!(all, (0..aic + aiv).collect::<Vec<_>>());
                let owner = |cluster: u32| {
                    let holds = |share: &&Vec<u32>| {
                        share.iter().any(|w| entries[*w as usize].cluster == cluster)
                    };
                    shares.iter().filter(holds).count()
                };
                assert!((0..table.cluster_count()).all(|cluster| owner(cluster) == 1));
                let clusters_of = |share: &Vec<u32>| {
                    let mut of: Vec<_> =
                        share.iter().map(|w| entries[*w as usize].cluster).collect();
                    of.sort_unstable();
                    of.dedup();
                    of.len()
                };
                let sizes: Vec<usize> = shares.iter().map(clusters_of).collect();
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn a_wrong_table_is_refused_with_the_worker() {
        let fault = |entries: Vec<WorkerEntry>| {
            let blame = WorkerTable::check(entries.into_iter()).unwrap_err();
            (blame.fault, blame.worker)
        };
        let entry = |kind, cluster| WorkerEntry { kind, cluster };
        let wrong = Fault::RUNTIME_WORKER_ENTRY;
        assert_eq!(fault(vec![]).0, Fault::RUNTIME_WORKER_COUNT);
        assert_eq!(fault(vec![entry(0, 0), entry(2, 0)]), (wrong, 1));
        assert_eq!(fault(vec![entry(0, 0), entry(0, 0)]), (wrong, 1));
        assert_eq!(fault(vec![entry(1, 0), entry(1, 0), entry(1, 0)]), (wrong, 2));
        assert_eq!(fault(vec![entry(0, 128)]), (wrong, 0));
        assert_eq!(fault(vec![entry(0, 1)]).0, wrong, "cluster 0 is empty");
        let many: Vec<_> = (0..129).map(|i| entry(1, i / 2)).collect();
        assert_eq!(fault(many).0, Fault::RUNTIME_WORKER_COUNT);
    }

    #[test]
    fn counts_by_kind() {
        let table = WorkerTable::check(die(3, 7).into_iter()).unwrap();
        assert_eq!((table.count(CoreKind::AIC), table.count(CoreKind::AIV)), (3, 7));
        assert_eq!((table.kind(2), table.kind(3)), (Some(CoreKind::AIC), Some(CoreKind::AIV)));
        let clusters =
            [[1, 0], [1, 2], [0, 2], [0, 1], [2, 0]].map(|cores| table.tally().with(cores));
        assert_eq!(clusters, [3, 3, 3, 4, 0]);
        assert_eq!(
            (table.cluster(2), table.cluster(9), table.cluster(10)),
            (Some(2), Some(3), None)
        );
    }
}

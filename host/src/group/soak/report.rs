//! What came of a campaign over groups.

use std::fmt;

/// What came of seeds. Independent of the number of threads, unless a failure or the caller ended the campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoakReport {
    /// Seeds that were tried.
    pub seeds: u64,
    /// Runs of groups.
    pub runs: u64,
    /// Transfers of all ranks.
    pub transfers: u64,
    /// Seeds whose trouble happened.
    pub injected: u64,
    /// Runs that ended with a failure, as was expected of them.
    pub faulted: u64,
    /// Virtual nanoseconds of the runs that ended well.
    pub virtual_ns: u64,
    /// A hash of all events: the same seeds have the same hash.
    pub hash: u64,
    /// Seeds that failed, in ascending order.
    pub failures: Vec<FailedSeed>,
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// The group, the calls, and the trouble.
    pub setting: String,
    /// What was wrong.
    pub what: String,
}

impl fmt::Display for FailedSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}\n  {}", self.seed, self.what, self.setting)
    }
}

impl SoakReport {
    pub(super) fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.runs += other.runs;
        self.transfers += other.transfers;
        self.injected += other.injected;
        self.faulted += other.faulted;
        self.virtual_ns += other.virtual_ns;
        self.hash ^= other.hash;
        self.failures.extend(other.failures);
    }
}

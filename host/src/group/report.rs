//! What a group reports of a run.

use std::time::Duration;

use crate::report::RunReport;
use pto_sim_shim::virtual_time::group::ContributionReport;

/// What a rank has transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Transfers that were started.
    pub transfers: u64,
    /// Bytes of sends and puts.
    pub bytes_given: u64,
    /// Bytes of receives and gets.
    pub bytes_got: u64,
}

/// One rank's part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RankReport {
    /// The rank.
    pub rank: u32,
    /// The run of its device.
    pub run: RunReport,
    /// What it has transferred.
    pub transfers: TransferCounts,
}

/// A run that succeeded on all ranks; of the ranks of this process.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupReport {
    /// By rank.
    pub ranks: Vec<RankReport>,
    /// Whose values collectives have left where, of a run in virtual time that follows that.
    pub contributions: Option<ContributionReport>,
}

impl GroupReport {
    /// That of the rank which took longest.
    #[must_use]
    pub fn makespan(&self) -> Duration {
        self.ranks.iter().map(|rank| rank.run.makespan).max().unwrap_or_default()
    }

    /// Tasks of all ranks together.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.run.tasks).sum()
    }

    /// What all ranks have transferred.
    #[must_use]
    pub fn transfers(&self) -> TransferCounts {
        self.ranks.iter().fold(TransferCounts::default(), |sum, rank| TransferCounts {
            transfers: sum.transfers + rank.transfers.transfers,
            bytes_given: sum.bytes_given + rank.transfers.bytes_given,
            bytes_got: sum.bytes_got + rank.transfers.bytes_got,
        })
    }
}

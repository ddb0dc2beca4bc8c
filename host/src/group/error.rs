//! Why a group cannot do something: which rank, where, what, and what to do.

use std::fmt;

use pto_sim_shim::group::TransferError;

use crate::error::Error;
use crate::session::SessionError;

/// The failure of one rank.
#[derive(Debug)]
pub struct RankFailure {
    /// The rank.
    pub rank: u32,
    /// Where it runs.
    pub host: String,
    /// What its device says.
    pub error: Error,
    /// Why a transfer failed, if that was it.
    pub transfer: Option<TransferError>,
}

impl RankFailure {
    /// How near it is to the cause: 0 for what is no transfer's failure, 3 for what only follows from another rank's.
    fn distance(&self) -> u8 {
        match (&self.transfer, &self.error) {
            (Some(TransferError::PeerFailed { .. }), _) => 4,
            (Some(TransferError::Ended { .. }), _) => 3,
            (Some(_), _) => 1,
            (None, Error::Fault { fault, .. }) if *fault == pto_abi::Fault::TRANSFER_STALL => 2,
            (None, _) => 0,
        }
    }
}

impl fmt::Display for RankFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} on {}: ", self.rank, self.host)?;
        match &self.transfer {
            Some(transfer) => transfer.fmt(f),
            None => self.error.fmt(f),
        }
    }
}

/// An error of a group.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A group has 1 to 384 ranks.
    #[error("a group of {size} ranks: it has 1 to {most}")]
    Size {
        /// Ranks asked for.
        size: u32,
        /// The most there are.
        most: u32,
    },

    /// The device of a rank cannot do what was asked for.
    #[error("rank {rank}: {source}")]
    Rank {
        /// The rank.
        rank: u32,
        /// What its device says.
        source: Error,
    },

    /// There are as many windows as a group has.
    #[error("a group has at most {most} windows: put several tensors into one")]
    Windows {
        /// How many.
        most: usize,
    },

    /// Orders of arrivals are chosen in virtual time only.
    #[error(
        "the group is not in virtual time, which alone can choose the order in which transfers arrive: open it with Group::open_virtual"
    )]
    NotVirtual,

    /// A window is not there, or a range is not in it.
    #[error(
        "{bytes} bytes from offset {offset} on are not in window {window}: compare them with the size that it was made with"
    )]
    Window {
        /// The window's number.
        window: u32,
        /// Where.
        offset: u64,
        /// How many bytes.
        bytes: u64,
    },

    /// The transport between the ranks fails.
    #[error("{0}")]
    Transport(#[from] TransferError),

    /// The ranks do not run the same work.
    #[error(
        "ranks {ranks:?} do not run what rank {own} runs: start all ranks with the same program and the same number of arguments"
    )]
    Disagree {
        /// The ranks that differ from this one.
        ranks: Vec<u32>,
        /// This rank.
        own: u32,
    },

    /// A session of a rank cannot be opened, or closed.
    #[error("rank {rank}: {source}")]
    Session {
        /// The rank.
        rank: u32,
        /// What its session says.
        source: SessionError,
    },

    /// A program still has a session that is to be closed.
    #[error(
        "the session of rank {rank} is still in use: drop what was opened on it before it is closed"
    )]
    InUse {
        /// The rank.
        rank: u32,
    },

    /// As many graphs are run as there are members.
    #[error(
        "{given} graphs were given to {members} ranks of this process: give one for each, by rank"
    )]
    Graphs {
        /// Graphs.
        given: usize,
        /// Members of this process.
        members: usize,
    },

    /// The process gets no further thread.
    #[error("no thread for the transfers can be started ({0}): raise the limit of the process")]
    Thread(std::io::Error),

    /// The run has failed on some ranks.
    #[error("{}", summary(.failures))]
    Failed {
        /// What they say; the one that is nearest to the cause is first.
        failures: Vec<RankFailure>,
    },
}

crate::debug_as_display::debug_as_display!(GroupError);

impl GroupError {
    /// The error for failures of these ranks.
    pub(super) fn failed(mut failures: Vec<RankFailure>) -> Self {
        failures.sort_by_key(|failure| (failure.distance(), failure.rank));
        Self::Failed { failures }
    }
}

fn summary(failures: &[RankFailure]) -> String {
    let Some((first, others)) = failures.split_first() else { return String::new() };
    let ranks: Vec<_> = others.iter().map(|failure| failure.rank.to_string()).collect();
    if ranks.is_empty() {
        return first.to_string();
    }
    let noun = if ranks.len() == 1 { "Rank" } else { "Ranks" };
    format!("{first}. {noun} {} ended with it", ranks.join(", "))
}

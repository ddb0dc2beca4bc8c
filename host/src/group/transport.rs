//! What moves bytes between ranks: the interface that an engine drives.

use std::time::Duration;

use pto_sim_shim::group::{ByteRange, Transfer, TransferError};

/// The number of a rank, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankLocation {
    /// The rank.
    pub rank: u32,
    /// How many ranks there are.
    pub size: u32,
    /// The host that it runs on, for people.
    pub host: String,
    /// Ranks of a node: ranks `0 .. ranks_per_node` are on the first one, and so on.
    pub ranks_per_node: u32,
}

/// A transfer that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number that it was started with; `None`: the run of this rank cannot go on, whatever is under way.
    pub number: Option<u64>,
    /// How it ended.
    pub result: Result<(), TransferError>,
}

/// The connection of one rank to the others. One engine at a time calls it.
///
/// - Sends and receives meet by the pair of ranks, the run and the tag, in the order in which they are started. Bytes and stamps of
///   both sides must be equal; if not, both sides fail with [`TransferError::Mismatch`].
/// - A send without bytes is a token: it is over at once, whether or not the other side has come.
/// - A signal adds to a slot of the other rank; a put with a slot does so after its bytes are there. A wait is over when the slot of
///   this rank has at least the value. Slots are zero when a run begins.
/// - The spans of a transfer stay mapped while the member lives. The edges of the task order every access that conflicts with the transfer.
pub trait Transport: Send + Sync {
    /// Where this rank is.
    fn location(&self) -> RankLocation;

    /// Collective. This rank's part of window `id`, the next one; the others may put to it and get from it from now on.
    ///
    /// # Errors
    /// The others do not make a window of this size.
    fn map(&self, id: u32, memory: ByteRange) -> Result<(), TransferError>;

    /// A run begins on this rank. Every rank numbers its runs alike, from 1 on.
    ///
    /// # Errors
    /// The transport is gone.
    fn begin(&self, run: u64) -> Result<(), TransferError>;

    /// Starts a transfer, and does not wait. `number` identifies it in this run. `transfer.bytes` are exact: counts have been
    /// read.
    ///
    /// # Errors
    /// It cannot be, or the other side does not agree.
    fn start(&self, number: u64, transfer: &Transfer) -> Result<(), TransferError>;

    /// Makes progress on everything under way, without waiting, and appends what is over. After a rank has failed, every rank that
    /// has transfers under way gets a completion without a number.
    fn poll(&self, over: &mut Vec<Completion>);

    /// Two ranks whose transfers of one collective call do not agree, if that is known here and they have met none. Asked before [`end`](Self::end), of a
    /// run that has failed.
    fn disagreement(&self) -> Option<TransferError> {
        None
    }

    /// The run of this rank is over; what is under way is forgotten. `cause`: the run has failed, and the other ranks are to report this cause.
    fn end(&self, cause: Option<&str>);

    /// Collective; waits up to `budget`. Every rank gives a word, and gets those of all, by rank.
    ///
    /// # Errors
    /// [`TransferError::Absent`]: it names a rank that does not come.
    fn meet(&self, word: u64, budget: Duration) -> Result<Vec<u64>, TransferError>;
}

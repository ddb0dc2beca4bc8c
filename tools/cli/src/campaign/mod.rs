//! A campaign that the ranks of an MPI job share: each tries its part of the seeds, and one of them reports what all have found.
//!
//! ```text
//! ranks.rs    what is left -> turns -> this rank's turns -> what came of them, of all ranks
//!    |-- journal.rs   what was tried already: a file for each rank, with a line for each turn
//!    |-- span.rs      ranges of seeds, without those that were tried
//!    '-- report.rs    the table of all ranks
//! ```
//! `commands.rs` has the commands that a campaign names, of ranks or of one process.
//!
//! Invariants:
//! - A turn is written to the journal when it is over, in one line. So a rank that dies loses the turn that it was at, and nothing else.
//! - All ranks have read the journal before one of them writes to it. So they agree about what is left.

mod commands;
mod journal;
mod ranks;
mod report;
mod span;
mod tally;

pub(crate) use commands::Commands;
pub(crate) use ranks::{GoOn, RankJob, SharedPhase};
pub(crate) use report::{Kind, share};
pub(crate) use tally::Tally;

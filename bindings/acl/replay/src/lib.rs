//! Makes the calls of a record again, on whatever library is loaded under the name `libascendcl.so`.
//!
//! ```text
//! record    the calls of a program, each with what it was given, what it read and what it gave (pto_acl_interface::Call)
//! plan      which memory and which functions they need; what no replay can do is refused before the first call
//! play      a thread for each thread of the record; a call begins when all calls are over that were over when it began
//! ```
//! Handles and addresses differ from run to run. A word that was a handle, or an address within a block, becomes that of this run.

mod library;
mod places;
mod play;

pub use play::{Difference, Failure, Outcome, replay};

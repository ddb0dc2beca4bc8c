//! Groups of simulated devices: what happens to a transfer between the board of one device and that of another.
//!
//! ```text
//! board --RunPort--> an engine --Transfer--> TransferMatcher: which send meets which receive --Move--> bytes, signals, completions
//!                       |-- of the host, for devices in this process or elsewhere (pto_host::group)
//!                       '-- of the machine in virtual time, with a model of the network (virtual_time/group)
//! ```
//! [`TransferMatcher`] decides, and moves nothing; its callers move bytes, at once or at a virtual time.

mod calls;
mod error;
mod exchange;
mod port;
mod span;

pub use crate::clock::now_ns;
pub use calls::CallLog;
pub use error::{TransferError, TransferSide, transfer_words};
pub use exchange::{Move, TransferId, TransferMatcher};
pub use port::{RunPort, TransferEngine};
pub use pto_aicpu_fw::transfers::Posted;
pub use pto_graph::group::{Transfer, TransferKind};
pub use span::ByteRange;

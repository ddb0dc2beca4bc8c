//! Groups of devices, as a program sees them: its rank, transfers to and from other ranks, collectives.
//!
//! ```text
//! Communicator --- put, get, send, receive, signal, wait ---> TensorTask (a transfer) --> the transfer engine of the device
//!      |-- broadcast, reduce, all_reduce, ... ------------------> graphs of transfers and of reduction kernels
//!      '-- strided ---------------------------------------------> the communicator of a sub-group
//! ```
//! A transfer is a task like any other: its edges follow from its tensors. A kernel starts as soon as the tile that it reads has
//! come, and a transfer as soon as the tile that it sends has been computed. Every rank runs the same program, and makes the same
//! collective calls in the same order. Run outside of a group, a program finds itself as rank 0 of 1.
//!
//! Where to look: [`transfer`] the words of a transfer; [`words`] what the host tells a program of its group; `communicator.rs` and
//! `calls.rs` the calls; `collective/` the collectives, `choice.rs` which algorithm is taken.
//!
//! Why it is so: `docs/decisions/transfers.md`.

mod calls;
mod choice;
mod collective;
mod communicator;
mod exchange;
mod kernel;
pub mod tag;
mod tiles;
pub mod transfer;
pub mod words;

pub use crate::collective::{Collective, CollectiveCall, Holds};
pub use crate::exchange::{Crossing, Exchange, ExchangeKind};
pub use crate::reduction::Reduction;
pub use choice::{Algorithm, Choice, NetworkFigures, Options, Order, TILE_BYTES};
pub use communicator::{Communicator, RemoteAddress, Signal};
pub use kernel::{REDUCE, TRANSFER, part_stride};
pub use transfer::{Transfer, TransferKind};
pub use words::{GroupWords, Window};

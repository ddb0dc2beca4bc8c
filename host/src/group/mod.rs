//! Groups: devices with ranks that run one program together, and move tensors between each other.
//!
//! ```text
//! Group --- RankDevice: a Device, its windows ------- MemberEngine --start, poll--> dyn Transport
//!   |                                                  ^                           |-- local: devices of this process
//!   |-- run: one thread a member                       |                           '-- any other one: processes, hosts
//!   '-- Progress: one thread that gives every engine its turns
//! ```
//! A program is written once, with a [`Communicator`](pto_graph::group::Communicator): the same function runs on one device, on
//! several of this process ([`Group::open_local`]), and on devices of several processes ([`Group::join`] with their transport).
//!
//! ```
//! use pto_host::graph::group::{Communicator, Options, Reduction};
//! use pto_host::graph::{BuildError, ElementType, StreamBuilder, TensorView, builder_set};
//! use pto_host::group::{Group, GroupOptions, GroupWork};
//! use pto_host::{DeviceOptions, RunOptions};
//!
//! fn total<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
//!     let mut comm = Communicator::of(stream.launch_args())?;
//!     let window = comm.window(0)?;
//!     let values = TensorView::dense(window.base, ElementType::F32, &[4]);
//!     comm.all_reduce(stream, &values, Reduction::SUM, &Options::default())?;
//!     Ok(())
//! }
//! builder_set! { struct Programs {} stream { "total" => total } }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = DeviceOptions { aic: 3, aiv: 6, gm_bytes: 512 << 20, ..GroupOptions::default().device };
//! let mut group = Group::open_local(4, &GroupOptions { device, ..GroupOptions::default() }, Programs)?;
//! let window = group.window(16)?;
//! for member in group.members() {
//!     member.write(window, 0, &[member.rank() as f32; 4])?;
//! }
//! group.run(&GroupWork { builder: "total", args: &|_| vec![] }, &RunOptions::default())?;
//! for member in group.members() {
//!     assert_eq!(member.read::<f32>(window, 0, 4)?, [0.0 + 1.0 + 2.0 + 3.0; 4]);
//! }
//! # Ok(())
//! # }
//! ```

mod activity;
mod engine;
mod error;
mod explore;
#[cfg(test)]
mod explored;
mod local;
mod member;
#[cfg(test)]
mod pipelines;
#[cfg(test)]
mod plans;
mod progress;
mod ranks;
mod report;
mod sessions;
mod small;
pub mod soak;
#[cfg(test)]
mod submitters;
mod target;
#[cfg(test)]
mod tests;
mod transport;
mod virtual_transport;

pub use error::{GroupError, RankFailure};
pub use explore::GroupExploration;
pub use member::RankDevice;
pub use pto_sim_shim::group::now_ns as clock_ns;
pub use pto_sim_shim::group::{
    ByteRange, CallLog, Move, Transfer, TransferError, TransferId, TransferKind, TransferMatcher,
    TransferSide, transfer_words,
};
pub use pto_sim_shim::virtual_time::group::{
    ContributionReport, NetFaults, NetworkProfile, WrongContribution,
};
pub use ranks::{Group, GroupOptions, GroupWork};
pub use report::{GroupReport, RankReport, TransferCounts};
pub use sessions::{GroupSessions, MemberSession};
pub use target::{GroupTarget, UnknownTarget};
pub use transport::{Completion, RankLocation, Transport};

//! Groups in virtual time: the machines of several devices, and a network between them, as one deterministic machine.
//!
//! ```text
//! machine of rank 0 --\                                      /-- profile.rs  tiers, latencies, bandwidths
//! machine of rank 1 ----> VirtualNet: one runs at a time ---<--- links.rs    when bytes arrive: ports that are shared
//! machine of rank n --/     member.rs: its side in a machine \-- TransferMatcher  which send meets which receive
//!                                                            |-- contributions.rs  whose values an element has, where nothing is computed
//!                                                            '-- deliveries.rs     in a search: which transfer arrives next
//! ```
//! Each machine is a coroutine, because a builder program may be on its stack, and one of them runs at a time, on one thread (carrier.rs): the one
//! whose next event is earliest. It may go on up to the *horizon*: the earliest event of the others, plus the shortest time in which
//! a transfer has an effect elsewhere. A transfer that it starts meanwhile brings the horizon nearer: the rank that gets it can answer. So no
//! effect comes too late, and the same seeds give the same run.
//!
//! Why it is so: `docs/decisions/groups-in-virtual-time.md`.

mod carrier;
mod contributions;
mod coroutine;
mod deliveries;
mod intervals;
mod links;
mod member;
mod net;
mod profile;

pub(super) use carrier::{Locals, Machine};
pub use contributions::{ContributionReport, WrongContribution};
pub(super) use contributions::{Reduced, Submitted};
pub(super) use coroutine::Stack;
pub(super) use member::GroupMember;
pub use member::NetEndpoint;
pub use net::{NetFaults, NetSearch, VirtualNet};
pub use profile::{NetworkProfile, Tier};

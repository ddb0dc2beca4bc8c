//! Sessions: a device that stays up and takes commands from streams.
//!
//! ```text
//! Device::session -> Session                             open.rs
//!   the streams that there are, and their places          shared.rs, stream_table.rs
//!   stream()  -> Stream: launch, run, copy, fill, call, record, wait, ..      stream.rs, stream_core.rs
//!   event()   -> Event, a Future                         event.rs
//!   command ring of each stream, in GM                   lines.rs, pto_abi::session
//!   Service: step() takes ready commands out of the rings              service.rs, lane.rs, choice.rs, circles.rs
//!     code and values of the user on these threads            guarded.rs, serving.rs
//!     Hands: crews for cores, copies, functions; or the caller's own   hands.rs, crew.rs, performer.rs
//!       launches of all streams -> the resident firmware, which reads the rings           resident.rs
//!       on a device whose memory only copies reach: what goes there, what comes back      exchange.rs
//!   campaigns of all that, in virtual time              soak
//! ```
//! `docs/sessions.md` says what it is for. Who writes what is said at the top of `stream_core.rs`.

mod bell;
mod byte_place;
mod capture;
mod captured;
pub(crate) mod choice;
mod circles;
mod clock;
mod copies;
mod copy_times;
mod crew;
mod error;
mod event;
mod exchange;
mod guarded;
mod hands;
mod holds;
mod host_buffer;
mod ids;
mod in_flight;
mod kept;
mod lane;
mod lines;
mod mark;
mod notify;
mod open;
mod options;
mod others;
mod owned_work;
mod owner;
mod performer;
mod recorded;
mod reduction;
mod replay;
mod resident;
mod running;
mod seat;
mod service;
mod serving;
mod shared;
#[cfg(feature = "sim")]
pub mod soak;
mod stream;
mod stream_core;
mod stream_table;
mod submitted;
mod wait_limits;
mod work;

pub(crate) use capture::RecordedTask;
pub use capture::Recording;
pub use error::{Cause, CommandFailure, SessionError};
pub use event::{Event, EventFuture};
pub use host_buffer::HostBuffer;
pub use ids::{EventId, StreamId};
pub use mark::StreamMark;
pub use notify::Notify;
pub(crate) use open::Reclaimer;
pub use options::{Drive, LAST_PRIORITY, OnFailure, SessionOptions, StreamOptions};
pub use others::Others;
pub use owned_work::{OwnedWork, RunTicket};
pub use owner::Session;
pub use pto_abi::limits::MAX_STREAMS;
pub use pto_abi::session::{CommandKind, ValueTest};
pub use reduction::Reduction;
pub use stream::{MAX_LAUNCH_BLOCKS, Stream};
pub use submitted::Submitted;

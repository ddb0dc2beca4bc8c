//! Sessions: a device that stays up and takes commands from streams.
//!
//! ```text
//! Device::session -> Session                             open.rs
//!   the open streams, and their slots on the board        session_core.rs, stream_table.rs
//!   stream()  -> Stream: launch, run, copy, fill, call, record, wait, ..      stream.rs, stream_core.rs
//!   event()   -> Event, a Future                         event.rs
//!   command ring of each stream, in GM                   lines.rs, pto_abi::session
//!   Service: step() takes ready commands out of the rings              service.rs, stream_state.rs, choice.rs, wait_cycles.rs
//!     code and values of the user on these threads            guarded.rs, serving.rs
//!     Executors: thread pools for cores, copies, functions; or the calling thread   executors.rs, thread_pool.rs, job_runner.rs
//!       launches of all streams -> the resident firmware, which reads the rings           resident.rs
//!       on a device without shared memory: what is copied there and back      memory_sync.rs
//!   campaigns of all that, in virtual time              soak
//! ```
//! `docs/how-to/sessions.md` says what it is for. Who writes what is said at the top of `stream_core.rs`.

mod bell;
mod byte_window;
mod capture;
mod captured;
pub(crate) mod choice;
mod clock;
mod command_object;
mod copies;
mod copy_times;
mod deferred_frees;
mod error;
mod event;
mod executors;
mod guarded;
mod host_buffer;
mod ids;
mod in_flight;
mod job_runner;
mod lines;
mod mark;
mod memory_sync;
mod monitor;
mod notify;
mod open;
mod options;
mod others;
mod owned_work;
mod owner;
mod recorded;
mod reduction;
mod replay;
mod resident;
mod running;
mod service;
mod serving;
mod session_core;
#[cfg(feature = "sim")]
pub mod soak;
mod stream;
mod stream_core;
mod stream_state;
mod stream_table;
mod submitted;
mod thread_pool;
mod wait_cycles;
mod wait_limits;
mod work;

pub(crate) use capture::RecordedTask;
pub use capture::Recording;
pub use error::{CommandFailure, FailureCause, SessionError};
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

//! What a session shares: a ring of commands per stream, and a line per event.
//!
//! ```text
//! host: CommandRing::put ----> RingProducer.submitted          event: EventLine.completed, .time_ns
//!                              [ CommandEntry; a power of two ]
//!       RingConsumer.taken <-- service: CommandRing::accept, word, take
//! ```
//! A stream has one ring, with one producer (the host's stream) and one consumer at a time: the resident firmware, or the service of
//! the host. Each of them writes one line of the ring. [`command`] says what an entry holds, [`ring`] how entries get through,
//! [`board`] which of the two consumers has a stream.
//!
//! Why it is so: `docs/decisions/sessions.md`.

pub mod board;
pub mod command;
#[cfg(not(any(loom, shuttle)))]
pub mod recording;
pub mod ring;

#[cfg(not(any(loom, shuttle)))]
pub use board::SessionBoard;
pub use board::{LaneLine, LaunchNote, SessionNews, SessionOrders, StreamLine};
pub use command::{CommandDefect, CommandHead, CommandKind, ValueTest};
#[cfg(not(any(loom, shuttle)))]
pub use recording::{RecordedLaunches, RecordedNode};
pub use ring::{CommandEntry, CommandRing, EventLine, RingConsumer, RingProducer};

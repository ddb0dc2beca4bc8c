//! What a session shares: a ring of commands per stream, and a line per event.
//!
//! ```text
//! host: CommandRing::put ----> RingProducer.submitted          event: EventLine.completed, .time_ns
//!                              [ CommandEntry; a power of two ]
//!       RingConsumer.taken <-- service: CommandRing::accept, word, take
//! ```
//! A stream has one ring, with one producer (the host's stream) and one consumer (the service of the session). Each of them
//! writes one line of the ring. [`command`] says what stands in an entry, [`ring`] how entries get through.

pub mod command;
pub mod ring;

pub use command::{CommandDefect, CommandHead, CommandKind, ValueTest};
pub use ring::{CommandEntry, CommandRing, EventLine, RingConsumer, RingProducer};

//! What can go wrong in a session. A command that fails leaves a [`CommandFailure`] in its stream; the next synchronise
//! reports it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pto_abi::Fault;
use pto_abi::limits::MAX_STREAMS;
use pto_abi::session::{CommandDefect, CommandKind};

use super::ids::{EventId, StreamId};
use crate::error::Error;

/// An error of a session.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The device refuses the call; nothing was submitted.
    #[error(transparent)]
    Device(Arc<Error>),

    /// A command failed. Its failure is reported once.
    #[error(transparent)]
    Failed(Arc<CommandFailure>),

    /// The stream has stopped because a command failed; nothing was submitted.
    #[error("{stream} has stopped and takes no commands; reset the session. The cause: {cause}")]
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The command that stopped it.
        cause: Arc<CommandFailure>,
    },

    /// The commands that were waited for were dropped.
    #[error("{stream} was aborted: commands that had not begun were dropped; submit them again")]
    Aborted {
        /// The stream.
        stream: StreamId,
    },

    /// The time is over.
    #[error("{stream} is not done after {waited:?}: {state}; wait longer, or abort the stream")]
    TimedOut {
        /// The stream.
        stream: StreamId,
        /// The limit of the wait.
        waited: Duration,
        /// What the stream does.
        state: String,
    },

    /// The caller has ended the wait; the commands go on.
    #[error("the wait for {stream} was ended by its caller; wait again, or abort the stream")]
    Interrupted {
        /// The stream.
        stream: StreamId,
    },

    /// The time is over.
    #[error(
        "{event} is not complete after {waited:?}; wait longer, or look at the stream that records it"
    )]
    EventTimedOut {
        /// The event.
        event: EventId,
        /// How long was waited.
        waited: Duration,
    },

    /// Nothing can happen any more unless the caller submits something, and the caller waits.
    #[error(
        "nothing in the session can go on: {state}; submit what is missing before you wait, or abort the stream"
    )]
    Stuck {
        /// Which streams wait for what.
        state: String,
    },

    /// The ring of a stream was full for too long.
    #[error(
        "the ring of {stream} was full for {waited:?}: {state}; open the session with more ring_entries, or submit what \
         the stream waits for from another thread"
    )]
    RingFull {
        /// The stream.
        stream: StreamId,
        /// How long room was waited for.
        waited: Duration,
        /// What the stream does.
        state: String,
    },

    /// The session has ended.
    #[error("the session has ended; open another one on the device")]
    Ended,

    /// An event or a stream of another session.
    #[error("{what} belongs to another session; use one of this session")]
    OtherSession {
        /// What was given.
        what: String,
    },

    /// One stream more than a session has.
    #[error(
        "a session has at most {MAX_STREAMS} streams, and all are in use; drop streams that are not needed"
    )]
    TooManyStreams,

    /// An option that cannot be.
    #[error("{option} is {found}; use {allowed}")]
    Option {
        /// The option.
        option: &'static str,
        /// What was given.
        found: String,
        /// What it can be.
        allowed: &'static str,
    },

    /// An argument that cannot be.
    #[error("{what}: {found}; use {allowed}")]
    Argument {
        /// The call and its argument.
        what: &'static str,
        /// What was given.
        found: String,
        /// What it can be.
        allowed: &'static str,
    },

    /// A thread of the session cannot be had.
    #[error("no thread could be started for {what} ({cause}); end other threads of this process")]
    Thread {
        /// What the thread is for.
        what: &'static str,
        /// What the operating system says.
        cause: Arc<std::io::Error>,
    },

    /// A call that a stream does not take while it is captured, or only then.
    #[error("{stream}: {call} {why}")]
    Capture {
        /// The stream.
        stream: StreamId,
        /// The call.
        call: &'static str,
        /// Why not, and what to do.
        why: &'static str,
    },
}

crate::debug_as_display::debug_as_display!(SessionError);

impl SessionError {
    /// The fault of the interface's table that this is, where it is one.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Device(error) => error.fault(),
            Self::Failed(failure) | Self::Stopped { cause: failure, .. } => failure.fault(),
            _ => None,
        }
    }
}

impl From<Error> for SessionError {
    fn from(error: Error) -> Self {
        Self::Device(Arc::new(error))
    }
}

/// A command that failed: which one, and why.
#[derive(Clone, Debug)]
pub struct CommandFailure {
    /// The command's stream.
    pub stream: StreamId,
    /// Its number in the stream; the first command of a stream is number 1.
    pub command: u64,
    /// What it asked for; `None`: the ring held something that is no command.
    pub kind: Option<CommandKind>,
    /// Why it failed.
    pub cause: FailureCause,
}

/// Why a command failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FailureCause {
    /// Its run ended with a fault, whose post-mortem is in the error, or was not started.
    Device(Arc<Error>),
    /// It was on a core when a command of another stream ended their common run with a fault. What it has written is undefined.
    Interrupted(Arc<Error>),
    /// Streams wait for each other; the text is the cycle of waits.
    Deadlock(String),
    /// It is a wait, and lasted for longer than `StreamOptions::wait_budget`.
    TimedOut(Duration),
    /// A function of the host panicked; the text is its message.
    HostFunction(String),
    /// An entry of the ring is no command.
    Defect(CommandDefect),
    /// Memory that the command names is not in GM any more.
    Memory(String),
}

impl CommandFailure {
    /// The fault of the interface's table that this is, where it is one.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        match &self.cause {
            FailureCause::Device(error) | FailureCause::Interrupted(error) => error.fault(),
            _ => None,
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, command, kind, cause } = self;
        let kind = kind.map_or("of an unknown kind", CommandKind::name);
        write!(f, "command {command} of {stream} ({kind}) failed: {cause}")
    }
}

impl std::error::Error for CommandFailure {}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::Interrupted(error) => {
                write!(f, "the command was on a core when another command failed: {error}")
            }
            Self::Deadlock(cycle) => write!(
                f,
                "streams wait for each other: {cycle}; submit one of the records before the wait that it is for"
            ),
            Self::TimedOut(budget) => write!(
                f,
                "the wait was not met within {budget:?}; look at the stream that should meet it, or give the stream a longer wait_budget"
            ),
            Self::HostFunction(message) => {
                write!(f, "the function of the host panicked: {message}")
            }
            Self::Defect(defect) => write!(f, "the ring does not hold a command: {defect}"),
            Self::Memory(what) => f.write_str(what),
        }
    }
}

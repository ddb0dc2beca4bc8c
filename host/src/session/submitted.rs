//! What became of a call that submits a command.

/// What a call that submits has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It has submitted a command with this number; the first command of a stream is number 1.
    Command(u64),
    /// Its stream is captured: the call is part of the recording, and nothing is done.
    Captured,
}

impl Submitted {
    /// The number of the command, as a failure names it; `None`: there is none.
    #[must_use]
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Command(number) => Some(number),
            Self::Captured => None,
        }
    }
}

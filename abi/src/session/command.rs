//! What a command says: its kind, its number, its words. The words of each kind are in the table of [`CommandKind`].

use core::fmt;

use crate::closed_set;
use crate::limits::MAX_ARGS;

closed_set! {
    /// What a stream is asked to do. In brackets: the words of the command.
    pub struct CommandKind(u32) {
        /// Launch a kernel, or start a transfer: [func id, core kind or `TRANSFER`, blocks, arguments..].
        LAUNCH = 1, "launch";
        /// Run a graph or a builder program, which the host keeps under the command's number. It has no words.
        RUN = 2, "run";
        /// Copy from the host, from memory that the host keeps under the command's number: [target, bytes].
        COPY_IN = 3, "copy to the device";
        /// Copy to the host, to memory that the host keeps under the command's number: [source, bytes].
        COPY_OUT = 4, "copy from the device";
        /// Copy on the device: [source, target, bytes].
        COPY = 5, "copy on the device";
        /// Fill: [target, bytes, the eight bytes that are repeated there].
        FILL = 6, "fill";
        /// Complete a record of an event: [address of its line, record].
        RECORD = 7, "record";
        /// Wait until a record of an event is complete: [address of its line, record].
        WAIT = 8, "wait";
        /// Reset an event. Its word is the address of its line.
        RESET = 9, "reset";
        /// Write a word of GM: [address, value].
        WRITE_VALUE = 10, "write value";
        /// Wait for a word of GM: [address, value, a `ValueTest`].
        WAIT_VALUE = 11, "wait for value";
        /// Call a function of the host, which the host keeps under the command's number. It has no words.
        CALL = 12, "call the host";
        /// Wait until every stream has come to this barrier. Its word is the barrier.
        BARRIER = 13, "barrier";
        /// Launch a recording, which is in GM as `recording` says: [address, words].
        REPLAY = 14, "launch a recording";
        /// Reduce on the device: [source, target, bytes, element type and reduction].
        REDUCE = 15, "reduce";
    }
}

closed_set! {
    /// When a word that a stream waits for is as it should be.
    pub struct ValueTest(u32) {
        /// The word is at least the value, both with a sign.
        AT_LEAST = 0, "at least";
        /// The word is the value.
        EQUAL = 1, "equal";
        /// The word and the value have a bit in common.
        AND = 2, "and";
        /// Some bit is set in neither the word nor the value.
        NOR = 3, "nor";
    }
}

impl ValueTest {
    /// Whether `word` is as a wait for `value` wants it.
    #[must_use]
    pub const fn is_met(self, word: u64, value: u64) -> bool {
        match self {
            Self::AT_LEAST => word.cast_signed() >= value.cast_signed(),
            Self::EQUAL => word == value,
            Self::AND => word & value != 0,
            _ => !(word | value) != 0,
        }
    }
}

/// Words of a launch before its arguments.
pub const LAUNCH_WORDS: usize = 3;
/// The most words that a command has: a launch with all its arguments.
pub const MAX_COMMAND_WORDS: usize = LAUNCH_WORDS + MAX_ARGS;
/// Words of an entry.
pub const ENTRY_WORDS: usize = 8;
/// Words of a command in its first entry, after head and number.
pub const INLINE_WORDS: usize = ENTRY_WORDS - 2;

impl CommandKind {
    /// Fewest and most words of a command of this kind.
    #[must_use]
    pub const fn words(self) -> (usize, usize) {
        match self {
            Self::LAUNCH => (LAUNCH_WORDS, MAX_COMMAND_WORDS),
            Self::RUN | Self::CALL => (0, 0),
            Self::RESET | Self::BARRIER => (1, 1),
            Self::COPY | Self::FILL | Self::WAIT_VALUE => (3, 3),
            Self::REDUCE => (4, 4),
            _ => (2, 2),
        }
    }
}

/// The head of a command that has been accepted: its kind is known, and it has as many words as commands of this kind have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandHead {
    /// What it asks for.
    pub kind: CommandKind,
    /// How many words it has.
    pub words: usize,
    /// The command's number in its stream; the first one is 1.
    pub number: u64,
}

impl CommandHead {
    /// The entries that a command of this many words takes.
    #[must_use]
    pub const fn entries_of(words: usize) -> u64 {
        1 + words.saturating_sub(INLINE_WORDS).div_ceil(ENTRY_WORDS) as u64
    }

    /// The entries that it takes.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        Self::entries_of(self.words)
    }

    /// Kind and word count in one word.
    #[must_use]
    pub const fn word(&self) -> u64 {
        self.kind.get() as u64 | (self.words as u64) << 32
    }

    /// What a head says, if it can be.
    ///
    /// # Errors
    /// An unknown kind; a number of words that no command of the kind has.
    pub fn accept(word: u64, number: u64) -> Result<Self, CommandDefect> {
        let [low, high] = [word & 0xFFFF_FFFF, word >> 32];
        let kind = u32::try_from(low).ok().and_then(|kind| CommandKind::try_from(kind).ok());
        let kind = kind.ok_or(CommandDefect::Kind { found: low })?;
        let (fewest, most) = kind.words();
        match usize::try_from(high) {
            Ok(words) if (fewest..=most).contains(&words) => Ok(Self { kind, words, number }),
            _ => Err(CommandDefect::Words { kind, found: high }),
        }
    }
}

/// Why the service does not take an entry of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandDefect {
    /// The kind of the command does not exist.
    Kind {
        /// The value found.
        found: u64,
    },
    /// No command of the kind has so many words.
    Words {
        /// The kind.
        kind: CommandKind,
        /// How many it says.
        found: u64,
    },
    /// The command says that it is longer than what was submitted.
    Length {
        /// Entries that it takes.
        entries: u64,
        /// Entries submitted.
        submitted: u64,
    },
}

impl fmt::Display for CommandDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { found } => write!(f, "there is no command of kind {found}"),
            Self::Words { kind, found } => {
                let (fewest, most) = kind.words();
                write!(
                    f,
                    "a command \"{kind}\" has {fewest} to {most} words, and this one says {found}"
                )
            }
            Self::Length { entries, submitted } => {
                write!(f, "a command takes {entries} entries, and {submitted} were submitted")
            }
        }
    }
}

impl core::error::Error for CommandDefect {}

#[cfg(test)]
mod tests {
    use super::{CommandDefect, CommandHead, CommandKind, MAX_COMMAND_WORDS, ValueTest};

    #[test]
    fn a_head_goes_through_its_word() {
        for &kind in CommandKind::ALL {
            let (fewest, most) = kind.words();
            for words in [fewest, most] {
                let head = CommandHead { kind, words, number: 7 };
                assert_eq!(CommandHead::accept(head.word(), 7), Ok(head));
            }
            let long = CommandHead { kind, words: most + 1, number: 7 }.word();
            let defect = CommandDefect::Words { kind, found: most as u64 + 1 };
            assert_eq!(CommandHead::accept(long, 7), Err(defect));
        }
        assert_eq!(CommandHead::accept(99, 1), Err(CommandDefect::Kind { found: 99 }));
        assert_eq!(CommandHead::accept(0, 1), Err(CommandDefect::Kind { found: 0 }));
    }

    #[test]
    fn a_command_takes_the_entries_that_its_words_need() {
        let entries = [0, 6, 7, 14, 15, MAX_COMMAND_WORDS].map(CommandHead::entries_of);
        assert_eq!(entries, [1, 1, 2, 2, 3, 17]);
    }

    #[test]
    fn values_are_compared_with_a_sign() {
        assert!(ValueTest::AT_LEAST.is_met(0, (-1_i64).cast_unsigned()));
        assert!(!ValueTest::AT_LEAST.is_met((-1_i64).cast_unsigned(), 0));
        assert!(ValueTest::EQUAL.is_met(5, 5) && !ValueTest::EQUAL.is_met(5, 6));
        assert!(ValueTest::AND.is_met(6, 2) && !ValueTest::AND.is_met(4, 2));
        assert!(ValueTest::NOR.is_met(1, 2) && !ValueTest::NOR.is_met(u64::MAX, 0));
    }
}

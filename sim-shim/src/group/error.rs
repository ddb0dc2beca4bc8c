//! Why a transfer fails: which ranks, what, and what to do.

use std::fmt;
use std::time::Duration;

use pto_graph::ElementType;
use pto_graph::group::transfer::PIPELINE_STAMP;
use pto_graph::group::{Algorithm, Collective, Reduction};

/// One side of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The rank.
    pub rank: u32,
    /// Its bytes.
    pub bytes: u64,
    /// What it says of itself, see [`stamp_words`].
    pub stamp: u64,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} has {} bytes of {}", self.rank, self.bytes, stamp_words(self.stamp))
    }
}

/// What a stamp says, in words: that of a collective, or of a program's own transfer.
#[must_use]
pub fn stamp_words(stamp: u64) -> String {
    let [what, element, ..] = stamp.to_le_bytes();
    let algorithm = Algorithm::try_from(element >> 4 & 0x7).ok();
    let element = ElementType::try_from(element & 0xF).map_or("unknown", ElementType::name);
    if stamp & 0xFFFF == PIPELINE_STAMP {
        return format!(
            "a pipeline with the print {:08x}, which is of its plan, its sizes and its numbers",
            stamp >> 32
        );
    }
    if stamp & 1 << 15 == 0 {
        let [own, ..] = stamp.to_le_bytes();
        let own = ElementType::try_from(own).map_or("unknown", ElementType::name);
        return format!("a {own} transfer of the program's own");
    }
    let collective = Collective::try_from(what & 0xF).map_or("unknown", Collective::name);
    let reduction = Reduction::try_from(what >> 4).map_or("", Reduction::name);
    let (elements, call) = (stamp >> 16 & 0xFFFF_FFFF, stamp >> 48);
    let space = if reduction.is_empty() { "" } else { " " };
    let way = algorithm.filter(|algorithm| *algorithm != Algorithm::AUTO);
    let way = way.map_or_else(String::new, |way| format!(" ({})", way.name()));
    format!("collective call {call}: {collective}{space}{reduction}{way} of {elements} {element}")
}

/// Why a transfer fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransferError {
    /// The two sides of a transfer do not agree.
    Mismatch {
        /// The side that came first.
        first: Side,
        /// The other side.
        second: Side,
        /// Their tag.
        tag: u64,
    },
    /// A rank has ended its run, and what another one waits for cannot come any more.
    Ended {
        /// Who waits.
        waits: u32,
        /// Who has ended.
        ended: u32,
        /// What is waited for.
        what: String,
    },
    /// The words of a transfer cannot be: a window, a place, a slot, a count or a tensor that is not there.
    Refused {
        /// Who asked for it.
        rank: u32,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Another rank's run has failed.
    PeerFailed {
        /// That rank.
        rank: u32,
        /// Where it runs.
        host: String,
        /// What it says.
        cause: String,
    },
    /// A rank does not come.
    Absent {
        /// That rank.
        rank: u32,
        /// Where it should run.
        host: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The network has lost a transfer, and has told so.
    Lost {
        /// From this rank.
        from: u32,
        /// To that one.
        to: u32,
        /// What was lost.
        what: String,
    },
    /// The transport cannot do this.
    Unsupported {
        /// What, and what to do instead.
        what: String,
    },
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { first, second, tag } => write!(
                f,
                "the two sides of a transfer (tag {tag:#x}) do not agree: {first}; {second}. All ranks make the same \
                 calls, in the same order, with tensors of the same size: compare the two ranks"
            ),
            Self::Ended { waits, ended, what } => write!(
                f,
                "rank {waits} waits for {what}, and rank {ended} has ended its run without it. All ranks make the same \
                 calls in the same order: compare the two ranks"
            ),
            Self::Refused { rank, why } => write!(f, "a transfer of rank {rank} is refused: {why}"),
            Self::PeerFailed { rank, host, cause } => write!(
                f,
                "rank {rank} on {host} has failed ({cause}). The report of that rank says more"
            ),
            Self::Absent { rank, host, waited } => write!(
                f,
                "rank {rank} on {host} has not come within {waited:?}. Look whether it runs, or raise the budget"
            ),
            Self::Lost { from, to, what } => write!(
                f,
                "the network has lost {what} from rank {from} to rank {to}. Run again, or look at the link between them"
            ),
            Self::Unsupported { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for TransferError {}

#[cfg(test)]
mod tests {
    use super::{Side, TransferError};

    #[test]
    fn a_mismatch_names_both_ranks_and_what_they_do() {
        // all_reduce, max, f16, ring, 100 elements, call 3; and a program's own transfer of i32.
        let stamp = 2 | 1 << 4 | 1 << 8 | 2 << 12 | 1 << 15 | 100 << 16 | 3 << 48;
        let first = Side { rank: 1, bytes: 200, stamp };
        let second = Side { rank: 5, bytes: 64, stamp: 7 };
        let text = TransferError::Mismatch { first, second, tag: 9 }.to_string();
        for part in [
            "rank 1 has 200 bytes of collective call 3: all_reduce max (ring) of 100 f16",
            "rank 5",
            "i32",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

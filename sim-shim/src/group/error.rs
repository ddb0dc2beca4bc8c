//! Why a transfer fails: which ranks, what, and what to do.

use std::fmt;
use std::time::Duration;

use pto_graph::ElementType;
use pto_graph::group::tag::stamp::{self, Called};
use pto_graph::group::{Algorithm, Collective, tag};

/// One side of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSide {
    /// The rank.
    pub rank: u32,
    /// The transfer's bytes.
    pub bytes: u64,
    /// What it says of itself, see [`transfer_words`].
    pub stamp: u128,
}

impl TransferSide {
    /// Whether the two are in one call, as one of them says by the ranks of its communicator, and call different things. Sub-groups without a rank in
    /// common have the same tags.
    #[must_use]
    pub fn disagrees_with(&self, other: &Self) -> bool {
        self.stamp != other.stamp
            && self.rank != other.rank
            && (self.names(other.rank) || other.names(self.rank))
    }

    /// Whether a rank is in its communicator.
    fn names(&self, rank: u32) -> bool {
        let Some(called) = Called::of(self.stamp) else { return true };
        let [first, stride, size] = called.ranks.map(u32::from);
        let distance = rank.checked_sub(first);
        distance.is_some_and(|far| far.is_multiple_of(stride) && far < stride * size)
    }
}

/// What tag and stamp say, in words: the collective call that a transfer belongs to, or that it is a program's own.
#[must_use]
pub fn transfer_words(tag: u128, stamp: u128) -> String {
    if let Some(called) = Called::of(stamp) {
        return format!("collective call {}: {}", tag::call_number(tag), called_words(&called));
    }
    if stamp & 0xFFFF == stamp::PIPELINE {
        return format!(
            "a pipeline with the print {:08x}, which is of its plan, its sizes and its numbers",
            stamp >> 32
        );
    }
    let element = u8::try_from(stamp).ok().and_then(|code| ElementType::try_from(code).ok());
    let element = element.map_or("unknown", ElementType::name);
    let whose = if tag::is_of_call(tag) { "a pipeline" } else { "the program's own" };
    format!("a {element} transfer of {whose}")
}

fn called_words(called: &Called) -> String {
    let Called { collective, reduction, algorithm, element, elements, root, .. } = *called;
    let mut words = collective.name().to_owned();
    if let Some(reduction) = reduction {
        words += &format!(" {}", reduction.name());
    }
    if algorithm != Algorithm::AUTO {
        words += &format!(" ({})", algorithm.name());
    }
    if collective == Collective::BARRIER {
        return words;
    }
    words += &format!(" of {elements} {}", element.name());
    match collective {
        Collective::BROADCAST => words + &format!(" from rank {root}"),
        Collective::REDUCE => words + &format!(" to rank {root}"),
        _ => words,
    }
}

/// What both sides do, in the words of each. Where only the ranks that take part differ, these.
fn sides_words(tag: u128, [first, second]: [&TransferSide; 2]) -> String {
    let called = [first, second].map(|side| Called::of(side.stamp));
    let [Some(a), Some(b)] = called else { return two(tag, [first, second], |_| String::new()) };
    let differ = a.ranks != b.ranks;
    two(tag, [first, second], |side| {
        let ranks = Called::of(side.stamp).map(|called| called.ranks).filter(|_| differ);
        ranks.map_or_else(String::new, |[first, stride, size]| match size {
            1 => format!(" in a group of rank {first} alone"),
            _ => format!(" in a group of {size} ranks from {first} on in steps of {stride}"),
        })
    })
}

fn two(tag: u128, sides: [&TransferSide; 2], ranks: impl Fn(&TransferSide) -> String) -> String {
    sides
        .map(|side| {
            let (what, ranks) = (transfer_words(tag, side.stamp), ranks(side));
            format!("rank {} has {} bytes of {what}{ranks}", side.rank, side.bytes)
        })
        .join("; ")
}

/// Why a transfer fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransferError {
    /// The two sides of a transfer do not agree.
    Mismatch {
        /// The side that came first.
        first: TransferSide,
        /// The other side.
        second: TransferSide,
        /// Their tag.
        tag: u128,
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
    /// The words of a transfer are invalid: a window, an offset, a slot, a count or a tensor that is not there.
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
    /// The network has lost a transfer, and has reported it.
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
                "two ranks do not agree: {}. All ranks make the same calls, in the same order, with the same root, and with \
                 tensors of the same size and type: compare the two ranks",
                sides_words(*tag, [first, second])
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
    use super::{Called, TransferError, TransferSide, stamp};
    use pto_graph::ElementType;
    use pto_graph::group::{Algorithm, Collective, Reduction};

    fn called() -> Called {
        Called {
            collective: Collective::ALL_REDUCE,
            reduction: Some(Reduction::MAX),
            algorithm: Algorithm::RING,
            element: ElementType::F16,
            elements: u32::MAX,
            root: 0,
            ranks: [0, 1, 8],
            repeats: false,
        }
    }

    /// The tag of a transfer of call 70,000.
    const CALL: u128 = 1 << 63 | 70_000 << 32 | 9;

    #[test]
    fn a_mismatch_names_both_ranks_and_what_they_do() {
        let first = TransferSide { rank: 1, bytes: 200, stamp: called().stamp() };
        let second = TransferSide { rank: 5, bytes: 64, stamp: 7 };
        let text = TransferError::Mismatch { first, second, tag: CALL }.to_string();
        for part in [
            "rank 1 has 200 bytes of collective call 70000: all_reduce max (ring) of 4294967295 f16;",
            "rank 5 has 64 bytes of a i32 transfer",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn roots_and_ranks_that_differ_are_told() {
        let (collective, reduction) = (Collective::BROADCAST, None);
        let broadcast = |root, ranks| {
            let called = Called { collective, reduction, root, ranks, ..called() };
            TransferSide { rank: root.into(), bytes: 8, stamp: called.stamp() }
        };
        let text = |first, second| TransferError::Mismatch { first, second, tag: CALL }.to_string();
        let roots = text(broadcast(0, [0, 1, 8]), broadcast(3, [0, 1, 8]));
        assert!(
            roots.contains("f16 from rank 0; rank 3") && roots.contains("f16 from rank 3. "),
            "{roots}"
        );
        let ranks = text(broadcast(0, [0, 1, 8]), broadcast(2, [2, 4, 2]));
        assert!(ranks.contains("in a group of 8 ranks from 0 on in steps of 1;"), "{ranks}");
        assert!(ranks.contains("in a group of 2 ranks from 2 on in steps of 4. "), "{ranks}");
    }

    #[test]
    fn a_stamp_says_all_of_a_call() {
        let other = Called { root: u16::MAX, ranks: [u16::MAX; 3], repeats: true, ..called() };
        for called in [called(), other, Called { reduction: None, ..called() }] {
            assert_eq!(Called::of(called.stamp()), Some(called));
        }
        assert_eq!((Called::of(7), Called::of(stamp::PIPELINE | 9 << 32)), (None, None));
    }
}

//! The parts of a launch of the program [`BUILDER`](super::BUILDER): what its orchestration words say.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;

/// What one part of a launch submits. It is four words, and a launch has one part or several, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchPart {
    /// The tasks of a plan.
    Plan {
        /// Where the plan is.
        plan: GmAddr,
        /// Words of 32 bits of the plan.
        words: u32,
        /// Where its [bindings](super::layout::binding) are.
        bindings: GmAddr,
        /// Words of 64 bits of the bindings.
        binding_words: u64,
    },
    /// The tasks of a [list](crate::task_list) at this address.
    TaskList(GmAddr),
    /// The tasks of another builder of the device, whose words are at this address. Simulated devices alone run these.
    Builder(GmAddr),
}

/// The first word of a part in its low half; the words of a plan are in the high half.
mod kind {
    pub(super) const PLAN: u64 = 1;
    pub(super) const TASK_LIST: u64 = 2;
    pub(super) const BUILDER: u64 = 3;
}

impl LaunchPart {
    /// Words of a part.
    pub const WORDS: usize = 4;
    /// Parts that one launch has at most; fewer if it has words of a group.
    pub const MOST: usize = pto_abi::limits::MAX_ORCH_ARGS / Self::WORDS;

    /// Its words.
    #[must_use]
    pub const fn words(&self) -> [u64; Self::WORDS] {
        match *self {
            Self::Plan { plan, words, bindings, binding_words } => {
                [kind::PLAN | (words as u64) << 32, plan.0, bindings.0, binding_words]
            }
            Self::TaskList(list) => [kind::TASK_LIST, list.0, 0, 0],
            Self::Builder(words) => [kind::BUILDER, words.0, 0, 0],
        }
    }

    /// The part of these words.
    ///
    /// # Errors
    /// `BUILD_ORCH_ARGS`: no part has such words.
    pub fn of(words: [u64; Self::WORDS]) -> Result<Self, Fault> {
        let [head, at, bindings, binding_words] = words;
        match (head & 0xFFFF_FFFF, (head >> 32) as u32) {
            (kind::PLAN, words) => {
                let (plan, bindings) = (GmAddr(at), GmAddr(bindings));
                Ok(Self::Plan { plan, words, bindings, binding_words })
            }
            (kind::TASK_LIST, 0) => Ok(Self::TaskList(GmAddr(at))),
            (kind::BUILDER, 0) => Ok(Self::Builder(GmAddr(at))),
            _ => Err(Fault::BUILD_ORCH_ARGS),
        }
    }

    /// The part with this number of a launch with these orchestration words; `None`: it has fewer parts.
    ///
    /// # Errors
    /// `BUILD_ORCH_ARGS`: the words are not those of parts.
    pub fn at(orch_args: &[u64], number: usize) -> Result<Option<Self>, Fault> {
        let (parts, []) = orch_args.as_chunks() else { return Err(Fault::BUILD_ORCH_ARGS) };
        parts.get(number).map(|words| Self::of(*words)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::LaunchPart;
    use pto_abi::fault::Fault;
    use pto_abi::ids::GmAddr;

    #[test]
    fn parts_are_read_as_they_were_written() {
        let plan = LaunchPart::Plan {
            plan: GmAddr(64),
            words: u32::MAX,
            bindings: GmAddr(u64::MAX),
            binding_words: 9,
        };
        let parts = [plan, LaunchPart::TaskList(GmAddr(128)), LaunchPart::Builder(GmAddr(192))];
        let words = parts.map(|part| part.words());
        for (number, part) in parts.into_iter().enumerate() {
            assert_eq!(LaunchPart::at(words.as_flattened(), number), Ok(Some(part)));
        }
        assert_eq!(LaunchPart::at(words.as_flattened(), 3), Ok(None));
    }

    #[test]
    fn other_words_are_refused() {
        for words in [&[0, 64, 0, 0][..], &[4, 64, 0, 0], &[1 << 32 | 2, 64, 0, 0], &[2, 64, 0]] {
            assert_eq!(LaunchPart::at(words, 0), Err(Fault::BUILD_ORCH_ARGS), "{words:?}");
        }
    }
}

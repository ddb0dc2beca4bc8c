//! Tags, by which sends and receives meet, and stamps, in which both sides of a transfer must agree.
//!
//! | bits of a tag | what |
//! |---|---|
//! | 0 to 15, 16 to 31 | of a collective call: tile and step; of a program's own transfer: its tag |
//! | 32 to 62 | the number of the call |
//! | 63 | whether it is of a call |
//! | 64 to 127 | the communicator: the path to it, its level, and of a call the part of the launch |
//!
//! | bits of a stamp | what |
//! |---|---|
//! | 0 to 3, 4 to 7, 8 to 11, 12 to 14 | the collective, the reduction, the element type, the algorithm |
//! | 15 | whether it is of a collective |
//! | 16 to 47 | elements of the tensor |
//! | 48 to 63 | the root |
//! | 64 to 79, 80 to 95, 96 to 111 | the ranks: the first one, the distance to the next one, how many there are |
//! | 112 | whether calls with this number come again: in a session each run counts its own |
//!
//! The stamp of a program's own transfer is its element type. That of the transfer by which two ranks compare their pipelines is
//! [`PIPELINE`](stamp::PIPELINE), with a number of the pipeline above it.

/// Whether it is of a call.
const OF_CALL: u128 = 1 << 63;

/// The tag of a program's own transfer, of a communicator.
pub(super) const fn of_program(communicator: u64, tag: u32) -> u128 {
    (communicator as u128) << 64 | tag as u128
}

/// What the tags of a call have in common. Calls are below 2^31.
pub(super) const fn of_call(communicator: u64, number: u32) -> u128 {
    (communicator as u128) << 64 | OF_CALL | (number as u128) << 32
}

/// The transfer in a call.
pub(super) const fn of_tile(step: u16, tile: u16) -> u128 {
    (step as u128) << 16 | tile as u128
}

/// Whether a tag is one of a collective call.
#[must_use]
pub const fn is_of_call(tag: u128) -> bool {
    tag & OF_CALL != 0
}

/// The call of a tag: all transfers of a call have the same. Sub-groups that one call of `strided` gives to different ranks share theirs; they have no two
/// ranks in common that could meet.
#[must_use]
pub const fn call(tag: u128) -> u128 {
    tag >> 32
}

/// The number of the call, in its communicator.
#[must_use]
pub const fn call_number(tag: u128) -> u32 {
    (tag >> 32 & 0x7FFF_FFFF) as u32
}

/// Stamps.
pub mod stamp {
    use crate::collective::Collective;
    use crate::element::ElementType;
    use crate::group::choice::Algorithm;
    use crate::reduction::Reduction;

    /// The tag of the transfer by which two ranks compare their pipelines.
    pub const PIPELINE: u128 = 1 << 14;
    const OF_COLLECTIVE: u128 = 1 << 15;
    const REPEATS: u128 = 1 << 112;

    /// What a rank calls.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Called {
        /// The collective.
        pub collective: Collective,
        /// How elements are put together, where it reduces.
        pub reduction: Option<Reduction>,
        /// The algorithm.
        pub algorithm: Algorithm,
        /// The tensor's element type.
        pub element: ElementType,
        /// The tensor's number of elements.
        pub elements: u32,
        /// The rank, of the communicator, that the others give to or get from; 0 where there is none.
        pub root: u16,
        /// The ranks of the communicator: the first one, the distance to the next one, how many there are.
        pub ranks: [u16; 3],
        /// Whether calls with its number come again.
        pub repeats: bool,
    }

    impl Called {
        /// The call's stamp.
        #[must_use]
        pub fn stamp(&self) -> u128 {
            let how = self.reduction.map_or(0xF, Reduction::get);
            let [first, stride, size] = self.ranks.map(u128::from);
            u128::from(self.collective.get())
                | u128::from(how) << 4
                | u128::from(self.element.get()) << 8
                | u128::from(self.algorithm.get()) << 12
                | OF_COLLECTIVE
                | u128::from(self.elements) << 16
                | u128::from(self.root) << 48
                | first << 64
                | stride << 80
                | size << 96
                | if self.repeats { REPEATS } else { 0 }
        }

        /// What a stamp says; `None`: it is not of a collective.
        #[must_use]
        pub fn of(stamp: u128) -> Option<Self> {
            if stamp & OF_COLLECTIVE == 0 {
                return None;
            }
            let [what, kind, ..] = stamp.to_le_bytes();
            let word = |at: u32| (stamp >> at & 0xFFFF) as u16;
            Some(Self {
                collective: Collective::try_from(what & 0xF).ok()?,
                reduction: Reduction::try_from(what >> 4).ok(),
                algorithm: Algorithm::try_from(kind >> 4 & 0x7).ok()?,
                element: ElementType::try_from(kind & 0xF).ok()?,
                elements: (stamp >> 16 & 0xFFFF_FFFF) as u32,
                root: word(48),
                ranks: [word(64), word(80), word(96)],
                repeats: stamp & REPEATS != 0,
            })
        }
    }

    /// Whether all transfers of a call have this stamp, at all ranks, and no other call of its number comes in the run.
    #[must_use]
    pub const fn is_one_of_its_call(stamp: u128) -> bool {
        stamp & (PIPELINE | OF_COLLECTIVE) != 0 && stamp & REPEATS == 0
    }
}

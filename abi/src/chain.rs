//! The words of a chain: kernels that one core runs one after another in one dispatch.
//!
//! A chain is a task whose line names [`CHAIN_KERNEL`] instead of a kernel's code, and whose payload holds, instead of
//! one kernel's arguments, the links below. A builder writes them, a core reads them; schedulers see a task like any other.
//!
//! ```text
//! header    version in bits 63..56, links in 55..32, words of the whole chain in 31..0
//! a link    code       GM address of the kernel
//!           shape      func id in bits 63..48, arguments in 47..40, variations in 39..32, times in 30..0; bit 31: the kernels of the next
//!                      link take turns with these
//!           arguments  those of its first kernel
//!           variations argument in bits 62..56, its turns in 55..40; by steps: the step in 39..0, signed; by a column: bit 63 is set
//!           columns    of each variation by a column, in their order: the argument in each of its turns
//! turns     in bits 15..14 which they are: 0 each turn of the link, 1 every so many, 2 within so many; how many in 13..0
//! ```
//! Links that take turns are a group, of which each turn runs one kernel of each link: `a b a b a b` are two links that run three
//! times each. Invariants: a chain has at least one link, a link runs at least once, and the links of a group equally often; no link has more
//! than [`MAX_CHAIN_ARGS`] arguments. A reader trusts only the header's version, and stays within its words whatever they say.
//!
//! Why it is so: `docs/decisions/chains.md`.

use crate::block::BlockContext;
use crate::ids::GmAddr;

/// What a chain's line names as its kernel. There is no code at this address.
pub const CHAIN_KERNEL: GmAddr = GmAddr(1);
/// The format of the words.
pub const CHAIN_VERSION: u8 = 3;
/// Arguments of a kernel in a chain: a core holds this many, and the block context, while it runs one.
pub const MAX_CHAIN_ARGS: usize = 31;
/// What a core holds of one kernel of a chain: its arguments, and the word of block context that follows them.
pub type ChainWords = [u64; MAX_CHAIN_ARGS + 1];
/// Kernels of one chain: trace events hold their numbers together with func ids.
pub const MAX_CHAIN_KERNELS: u32 = (1 << 14) - 1;

/// Words of a header.
const HEADER_WORDS: usize = 1;
/// Words of a link before its arguments.
const LINK_WORDS: usize = 2;
const COLUMN: u64 = 1 << 63;
/// In the times of a link: the next one takes turns with it.
pub const WITH_NEXT: u32 = 1 << 31;
const STEP_BITS: u32 = 40;
const ARG_AT: u32 = 56;

/// The largest distance of steps, in either direction.
pub const MAX_CHAIN_STEP: i64 = (1 << (STEP_BITS - 1)) - 1;

/// The first word of a chain of this many links, in this many words.
#[must_use]
pub const fn header(links: u32, words: u32) -> u64 {
    (CHAIN_VERSION as u64) << 56 | (links as u64 & 0xFF_FFFF) << 32 | words as u64
}

/// The second word of a link.
#[must_use]
pub const fn shape(func_id: u16, args: u8, variations: u8, times: u32) -> u64 {
    (func_id as u64) << 48 | (args as u64) << 40 | (variations as u64) << 32 | times as u64
}

/// The second word of a link with which the next one takes turns.
#[must_use]
pub const fn shape_with_next(shape: u64) -> u64 {
    shape | WITH_NEXT as u64
}

/// The turns of a variation, as it counts those of its link. Two variations of one argument, one that goes on with every `n` turns and one that begins anew
/// with them, are two nested loops of which the inner one has `n` turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns(u16);

impl Turns {
    /// Each turn of the link.
    pub const EACH: Self = Self(0);
    const EVERY: u16 = 1 << 14;
    const WITHIN: u16 = 2 << 14;
    /// No turns of a chain.
    pub const WRONG: Self = Self(3 << 14);

    /// One for every so many turns of the link, of which there are at most [`MAX_CHAIN_KERNELS`].
    #[must_use]
    pub const fn every(turns: u32) -> Self {
        Self::of_kind(Self::EVERY, turns)
    }

    /// So many turns, which begin anew when they are over; at most [`MAX_CHAIN_KERNELS`].
    #[must_use]
    pub const fn within(turns: u32) -> Self {
        Self::of_kind(Self::WITHIN, turns)
    }

    #[expect(clippy::cast_possible_truncation, reason = "MAX_CHAIN_KERNELS has 14 bits")]
    const fn of_kind(kind: u16, turns: u32) -> Self {
        if turns == 0 || turns > MAX_CHAIN_KERNELS {
            Self::WRONG
        } else {
            Self(kind | turns as u16)
        }
    }

    /// Whether a chain can have such turns.
    #[must_use]
    #[inline]
    pub const fn is_right(self) -> bool {
        self.0 == 0 || self.0 < Self::WRONG.0 && self.number() > 0
    }

    const fn number(self) -> u32 {
        (self.0 & ((1 << 14) - 1)) as u32
    }

    /// Of every so many turns, or of so many.
    #[must_use]
    pub const fn parts(self) -> (Option<u32>, Option<u32>) {
        match self.0 & Self::WRONG.0 {
            Self::EVERY => (Some(self.number()), None),
            Self::WITHIN => (None, Some(self.number())),
            _ => (None, None),
        }
    }

    /// Which one this turn of the link is.
    #[must_use]
    #[inline]
    pub const fn turn(self, turn: u32) -> u32 {
        if self.0 == 0 { turn } else { self.turn_in_part(turn) }
    }

    #[inline(never)]
    const fn turn_in_part(self, turn: u32) -> u32 {
        let found = match self.parts() {
            (Some(turns), _) => turn.checked_div(turns),
            (_, Some(turns)) => turn.checked_rem(turns),
            _ => Some(turn),
        };
        match found {
            Some(found) => found,
            None => turn,
        }
    }

    /// How many there are in a link that has so many.
    #[must_use]
    #[inline]
    pub const fn count(self, times: u32) -> u32 {
        if self.0 == 0 { times } else { self.count_of_parts(times) }
    }

    #[inline(never)]
    const fn count_of_parts(self, times: u32) -> u32 {
        let found = match self.parts() {
            // As `div_ceil`, which can panic.
            (Some(turns), _) => times.saturating_add(turns.saturating_sub(1)).checked_div(turns),
            (_, turns) => turns,
        };
        match found {
            Some(found) => found,
            None => times,
        }
    }

    #[inline]
    const fn word(self) -> u64 {
        (self.0 as u64) << STEP_BITS
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "these bits are what is wanted")]
    const fn of_word(word: u64) -> Self {
        Self((word >> STEP_BITS) as u16)
    }
}

/// The word of an argument that grows by `step` from each of these turns to the next. The step is at most [`MAX_CHAIN_STEP`].
#[must_use]
pub const fn by_steps(arg: u8, turns: Turns, step: i64) -> u64 {
    (arg as u64 & 0x7F) << ARG_AT | turns.word() | step.cast_unsigned() & ((1 << STEP_BITS) - 1)
}

/// The word of an argument that is in a column, with a word for each of these turns.
#[must_use]
pub const fn by_column(arg: u8, turns: Turns) -> u64 {
    COLUMN | (arg as u64 & 0x7F) << ARG_AT | turns.word()
}

/// What the second word of a link says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHead {
    /// Which kernel.
    pub func_id: u16,
    /// The link's arguments.
    pub args: u8,
    /// How many variations follow the arguments.
    pub variations: u8,
    /// How often it runs.
    pub times: u32,
    /// Whether the next link takes turns with it.
    pub is_with_next: bool,
}

/// What the second word of a link says.
#[must_use]
pub const fn of_shape(shape: u64) -> LinkHead {
    let [times, high] = halves(shape);
    let [variations, args, func_low, func_high] = high.to_le_bytes();
    LinkHead {
        func_id: u16::from_le_bytes([func_low, func_high]),
        args,
        variations,
        times: times & !WITH_NEXT,
        is_with_next: times & WITH_NEXT != 0,
    }
}

/// Which argument the word of a variation is about, its turns, and its step, if it varies by steps.
#[must_use]
#[inline]
pub const fn of_variation(word: u64) -> (u8, Turns, Option<i64>) {
    let [.., arg] = (word & !COLUMN).to_le_bytes();
    (arg, Turns::of_word(word), if word & COLUMN == 0 { Some(step_of(word)) } else { None })
}

/// The step in the word of a variation by steps.
#[inline]
const fn step_of(word: u64) -> i64 {
    (word << (64 - STEP_BITS)).cast_signed() >> (64 - STEP_BITS)
}

/// The word of a variation, in these turns.
#[must_use]
#[inline]
pub const fn with_turns(word: u64, turns: Turns) -> u64 {
    word & !(0xFFFF << STEP_BITS) | turns.word()
}

/// Words of a chain's header.
#[must_use]
pub const fn header_words() -> usize {
    HEADER_WORDS
}

/// Words of a link with this many arguments and variations, and so many words in columns.
#[must_use]
pub const fn link_words(args: usize, variations: usize, columns: usize) -> usize {
    LINK_WORDS + args + variations + columns
}

/// One kernel of a chain: what a core calls next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainKernel {
    /// The kernel's number in the chain, from 0 on.
    pub number: u32,
    /// Which kernel.
    pub func_id: u16,
    /// GM address of its code.
    pub kernel: u64,
    /// How many arguments it has.
    pub args: usize,
}

/// Reads a chain, kernel by kernel. `word` gives the word at an index of the payload.
#[derive(Clone, Copy, Debug)]
pub struct ChainReader<R> {
    word: R,
    /// Words of the chain.
    end: usize,
    /// Links that have not been begun.
    links: u32,
    /// Where the link under way begins.
    at: usize,
    /// How often its kernel has been given out, and is to be.
    turn: u32,
    times: u32,
    /// What is [`with_next`](Self::with_next) of the link under way, or of the one before it.
    in_group: bool,
    /// Where the group of the link under way begins, and the links that had not been begun there.
    group: (usize, u32),
    number: u32,
}

impl<R: Fn(usize) -> u64> ChainReader<R> {
    /// A reader at the first kernel; of a chain in another format, one that has none.
    #[inline]
    pub fn new(word: R) -> Self {
        let header = word(0);
        let is_known = header >> 56 == CHAIN_VERSION as u64;
        let [low, high] = halves(header);
        let links = if is_known { high & 0xFF_FFFF } else { 0 };
        let (end, group) = (low as usize, (HEADER_WORDS, links));
        let (at, turn, times, in_group, number) = (0, 0, 0, false, 0);
        let mut reader = Self { word, end, links, at, turn, times, in_group, group, number };
        reader.begin(HEADER_WORDS);
        reader
    }

    /// Goes to the link that begins at `at`, if there is one, which is the first of its group.
    #[inline]
    fn begin(&mut self, at: usize) {
        (self.turn, self.group) = (0, (at, self.links));
        self.enter(at);
        self.in_group = self.with_next();
    }

    /// Goes to the link that begins at `at`, if there is one, in this turn.
    #[inline]
    fn enter(&mut self, at: usize) {
        (self.at, self.times) = (at, 0);
        if self.links > 0 && at + LINK_WORDS <= self.end {
            self.links -= 1;
            self.times = halves((self.word)(at + 1))[0] & !WITH_NEXT;
        }
    }

    /// Whether the next link takes turns with the one under way.
    #[inline]
    fn with_next(&self) -> bool {
        self.times > 0 && halves((self.word)(self.at + 1))[0] & WITH_NEXT != 0
    }

    /// The kernel of a link in a group was given out: goes to the next one of the group, of this turn or of the next. `next` is where the next link
    /// begins.
    #[inline(never)]
    fn take_turns(&mut self, next: usize) {
        if self.with_next() && self.links > 0 {
            return self.enter(next);
        }
        self.turn += 1;
        if self.turn == self.times {
            return self.begin(next);
        }
        let (first, links) = self.group;
        self.links = links;
        self.enter(first);
    }

    /// The next kernel; its arguments and its block context are written to `args`.
    #[inline]
    pub fn next(&mut self, args: &mut ChainWords) -> Option<ChainKernel> {
        if self.turn >= self.times {
            return None;
        }
        let (code, shape) = ((self.word)(self.at), (self.word)(self.at + 1));
        let [_, high] = halves(shape);
        let [variations, count, func_low, func_high] = high.to_le_bytes();
        let func_id = u16::from_le_bytes([func_low, func_high]);
        let (count, variations) = (usize::from(count).min(MAX_CHAIN_ARGS), usize::from(variations));
        let first = self.at + LINK_WORDS;
        let column = first + count + variations;
        if column > self.end {
            return None;
        }
        for (index, arg) in args.iter_mut().enumerate().take(count) {
            *arg = (self.word)(first + index);
        }
        let columns = self.vary(args, first + count, variations, column);
        args[count] = BlockContext::ONLY.word();
        let kernel = ChainKernel { number: self.number, func_id, kernel: code, args: count };
        self.number += 1;
        if self.in_group {
            self.take_turns(column + columns);
            return Some(kernel);
        }
        self.turn += 1;
        if self.turn == self.times {
            self.begin(column + columns);
        }
        Some(kernel)
    }

    /// Changes the arguments that vary; how many words all columns have.
    #[inline]
    fn vary(&self, args: &mut ChainWords, first: usize, variations: usize, column: usize) -> usize {
        let mut columns = 0;
        for variation in first..first + variations {
            let word = (self.word)(variation);
            let [.., arg] = (word & !COLUMN).to_le_bytes();
            let Some(arg) = args.get_mut(usize::from(arg)) else { continue };
            let turns = Turns::of_word(word);
            let turn = turns.turn(self.turn);
            if word & COLUMN == 0 {
                let moved = step_of(word).wrapping_mul(turn.into()).cast_unsigned();
                *arg = arg.wrapping_add(moved);
            } else {
                let at = column + columns + turn as usize;
                *arg = if at < self.end { (self.word)(at) } else { 0 };
                columns += turns.count(self.times) as usize;
            }
        }
        columns
    }
}

/// The low and the high half of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// In an event of a core: which kernel of a chain it is about; zero for a task of one kernel.
#[must_use]
#[inline]
pub const fn event_extra(kernel: &ChainKernel) -> u32 {
    (kernel.number + 1) << 10 | kernel.func_id as u32 & 0x3FF
}

/// The number and the func id in the extra of an event, if it is about a kernel of a chain.
#[must_use]
pub const fn of_event(extra: u32) -> Option<(u32, u16)> {
    match (extra >> 10).checked_sub(1) {
        Some(number) => {
            let [low, high, ..] = (extra & 0x3FF).to_le_bytes();
            Some((number, u16::from_le_bytes([low, high])))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ChainKernel, ChainReader, LinkHead, MAX_CHAIN_ARGS, MAX_CHAIN_KERNELS, MAX_CHAIN_STEP,
        Turns, by_column, by_steps, event_extra, header, header_words, link_words, of_event,
        of_shape, of_variation, shape, shape_with_next,
    };

    /// What a reader finds in these words.
    fn read(words: &[u64]) -> ([(ChainKernel, [u64; 2]); 4], usize) {
        let nothing = ChainKernel { number: 0, func_id: 0, kernel: 0, args: 0 };
        let mut found = [(nothing, [0; 2]); 4];
        let mut reader = ChainReader::new(|at| words.get(at).copied().unwrap_or(0));
        let (mut args, mut count) = ([0; MAX_CHAIN_ARGS + 1], 0);
        while let Some(kernel) = reader.next(&mut args) {
            if let Some(found) = found.get_mut(count) {
                *found = (kernel, [args[0], args[1]]);
            }
            count += 1;
        }
        (found, count)
    }

    const TWO_LINKS: [u64; 12] = [
        header(2, 12),
        0x100,
        shape(7, 2, 2, 3),
        1000,
        0,
        by_steps(0, Turns::EACH, -8),
        by_column(1, Turns::EACH),
        5,
        17,
        3,
        0x200,
        shape(9, 0, 0, 1),
    ];

    #[test]
    fn kernels_come_in_order_with_their_own_arguments() {
        let (found, count) = read(&TWO_LINKS);
        let args: [_; 3] = core::array::from_fn(|at| found[at].1);
        assert_eq!((count, args), (4, [[1000, 5], [992, 17], [984, 3]]));
        let last = ChainKernel { number: 3, func_id: 9, kernel: 0x200, args: 0 };
        assert_eq!((found[3].0, found[1].0.func_id, found[1].0.number), (last, 7, 1));
        let words = header_words() + link_words(2, 2, 3) + link_words(0, 0, 0);
        assert_eq!(words, TWO_LINKS.len());
    }

    #[test]
    fn words_of_a_link_say_what_was_put_in() {
        let (func_id, args, variations, times) = (0x3FF, 31, 7, 16_383);
        let said = LinkHead { func_id, args, variations, times, is_with_next: false };
        let word = shape(func_id, args, variations, times);
        assert_eq!(of_shape(word), said);
        let with_next = LinkHead { is_with_next: true, ..said };
        assert_eq!(of_shape(shape_with_next(word)), with_next);
        let turns = [Turns::EACH, Turns::every(3), Turns::within(MAX_CHAIN_KERNELS)];
        for (step, turns) in
            [0, 1, -1, MAX_CHAIN_STEP, -MAX_CHAIN_STEP].into_iter().zip(turns.into_iter().cycle())
        {
            assert_eq!(of_variation(by_steps(30, turns, step)), (30, turns, Some(step)));
        }
        for turns in turns {
            assert_eq!(of_variation(by_column(30, turns)), (30, turns, None));
        }
    }

    #[test]
    fn turns_are_those_of_nested_loops() {
        let (outer, inner) = (Turns::every(3), Turns::within(3));
        let seen: [_; 7] = core::array::from_fn(|turn| {
            let turn = u32::try_from(turn).unwrap();
            [Turns::EACH, outer, inner].map(|turns| turns.turn(turn))
        });
        assert_eq!(seen[..4], [[0, 0, 0], [1, 0, 1], [2, 0, 2], [3, 1, 0]]);
        assert_eq!(seen[4..], [[4, 1, 1], [5, 1, 2], [6, 2, 0]]);
        assert_eq!([Turns::EACH, outer, inner].map(|turns| turns.count(7)), [7, 3, 3]);
        assert_eq!([outer, inner].map(Turns::parts), [(Some(3), None), (None, Some(3))]);
        assert!([Turns::EACH, outer, inner].iter().all(|turns| turns.is_right()));
        let far = MAX_CHAIN_KERNELS + 1;
        for wrong in [Turns::every(0), Turns::within(0), Turns::every(far), Turns::within(far)] {
            assert!(!wrong.is_right(), "{wrong:?}");
        }
    }

    #[test]
    fn arguments_vary_in_nested_loops() {
        // Two rows of two: the first argument by a column of rows and by steps within each, the second by a column that begins anew.
        let words = [
            header(2, 15),
            0x100,
            shape(7, 2, 3, 4),
            0,
            0,
            by_column(0, Turns::every(2)),
            by_steps(0, Turns::within(2), 8),
            by_column(1, Turns::within(2)),
            1000,
            2000,
            5,
            6,
            0x200,
            shape(9, 1, 0, 1),
            77,
        ];
        let (found, count) = read(&words);
        assert_eq!(found.map(|(_, args)| args), [[1000, 5], [1008, 6], [2000, 5], [2008, 6]]);
        assert_eq!(count, 5, "the next link follows the columns");
        let mut lost = words;
        lost[6] &= !(0x3FFF << 40);
        assert_eq!(read(&lost).0[3].1[0], 2000 + 3 * 8, "no turns at all are each turn");
    }

    #[test]
    fn links_take_turns() {
        let words = [
            header(3, 14),
            0x100,
            shape_with_next(shape(7, 1, 1, 2)),
            1000,
            by_steps(0, Turns::EACH, -8),
            0x200,
            shape(9, 1, 1, 2),
            40,
            by_column(0, Turns::EACH),
            50,
            60,
            0x300,
            shape(5, 1, 0, 1),
            77,
        ];
        let (found, count) = read(&words);
        // Four are read here; the fifth comes after them.
        let given = found.map(|(kernel, args)| (kernel.number, kernel.func_id, args[0]));
        assert_eq!(given, [(0, 7, 1000), (1, 9, 50), (2, 7, 992), (3, 9, 60)]);
        assert_eq!(count, 5);
        let mut alone = words;
        (alone[0], alone[6]) = (header(2, 11), shape_with_next(alone[6]));
        assert_eq!(read(&alone[..11]).1, 4, "there is no link to take turns with");
        let mut unequal = words;
        unequal[6] = shape(9, 1, 1, 9);
        assert!(read(&unequal).1 <= 2 + 9, "links of a group that run unequally often end");
    }

    #[test]
    fn a_reader_stays_within_the_chain_and_in_its_format() {
        assert_eq!(read(&[header(2, 12) ^ 1 << 56]).1, 0, "another version");
        assert_eq!(read(&[header(1, 2), 0x100]).1, 0, "a link that is cut off");
        let mut cut = TWO_LINKS;
        cut[0] = header(2, 8);
        assert_eq!(read(&cut).1, 3, "the second link is outside");
        cut[2] = shape(7, 2, 200, 3);
        assert_eq!(read(&cut).1, 0, "more variations than words");
    }

    #[test]
    fn steps_of_either_sign_and_the_numbers_of_events_come_back() {
        for step in [MAX_CHAIN_STEP, -MAX_CHAIN_STEP, -1, 0] {
            let words =
                [header(1, 4), 0x100, shape(1, 1, 1, 2), 100, by_steps(0, Turns::EACH, step)];
            let words = [words[0] + 1, words[1], words[2], words[3], words[4]];
            let (found, count) = read(&words);
            assert_eq!((count, found[1].1[0]), (2, 100_u64.wrapping_add_signed(step)));
        }
        let kernel = ChainKernel { number: 16_382, func_id: 1023, kernel: 0, args: 0 };
        assert_eq!(of_event(event_extra(&kernel)), Some((16_382, 1023)));
        assert_eq!(of_event(0), None);
        assert!(event_extra(&kernel) <= crate::trace::MAX_EXTRA);
    }
}

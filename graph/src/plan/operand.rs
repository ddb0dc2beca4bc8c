//! What a parameter of a tile kernel gets in one call, and the arguments of the task that it becomes.

use super::layout::param;
use super::stop::Stop;
use super::task;
use super::tile::{Tile, View};
use crate::tensor_task::Arg;

/// The arguments of a task.
pub(super) type Args<'a> = heapless::Vec<Arg<'a>, { task::WORDS }>;

/// An operand of a call that may go on where another call was.
pub(super) trait Next {
    /// What moves from call to call: the first element of a tile, or a word.
    fn position(&self) -> u64;

    /// Whether only the position differs: a tile of the same tensor of which as much counts, and which stays in its dimensions; or a word.
    fn is_like(&self, given: &Given) -> bool;
}

/// How far each operand moves from one call to the next: a tile by elements, a word by that number.
pub(super) type Steps = heapless::Vec<i64, { super::layout::limits::PARAMS }>;

/// What a parameter gets, as the plan says it.
#[derive(Clone, Copy)]
pub(super) enum Operand<'t> {
    View(View<'t>),
    Word(u64),
}

impl Next for Operand<'_> {
    #[inline]
    fn position(&self) -> u64 {
        match self {
            Self::View(view) => view.first(),
            Self::Word(word) => *word,
        }
    }

    #[inline]
    fn is_like(&self, given: &Given) -> bool {
        match (given, self) {
            (Given::Tile(_, tile), Self::View(view)) => {
                tile.sides == view.sides() && view.is_regular()
            }
            (Given::Word(_), Self::Word(_)) => true,
            _ => false,
        }
    }
}

impl Operand<'_> {
    /// Whether a chain can have it: a tile stays in its dimensions.
    pub(super) fn is_regular(&self) -> bool {
        match self {
            Self::View(view) => view.is_regular(),
            Self::Word(_) => true,
        }
    }

    /// The argument, with the region of a tile.
    #[inline]
    pub(super) fn resolve(&self) -> Result<Given, Stop> {
        Ok(match self {
            Self::View(view) => Given::Tile(view.param.role, view.tile()?),
            Self::Word(word) => Given::Word(*word),
        })
    }
}

/// What a parameter gets, as a task says it.
#[derive(Clone, Copy)]
pub(super) enum Given {
    /// A tile, and what the kernel does with it: one of [`param`]'s.
    Tile(u32, Tile),
    Word(u64),
}

impl Next for Given {
    #[inline]
    fn position(&self) -> u64 {
        match self {
            Self::Tile(_, tile) => tile.first,
            Self::Word(word) => *word,
        }
    }

    /// The caller has checked that it stays in its dimensions.
    #[inline]
    fn is_like(&self, given: &Given) -> bool {
        match (given, self) {
            (Self::Tile(_, before), Self::Tile(_, tile)) => before.sides == tile.sides,
            (Self::Word(_), Self::Word(_)) => true,
            _ => false,
        }
    }
}

impl Given {
    /// How many of its arguments vary at most.
    pub(super) const fn varying(&self) -> usize {
        match self {
            Self::Tile(..) => 2,
            Self::Word(_) => 1,
        }
    }

    /// Bytes of an element of a tile; of a word, 1: it moves by what it says.
    pub(super) const fn element_bytes(&self) -> u64 {
        match self {
            Self::Tile(_, tile) => tile.region.element().bytes(),
            Self::Word(_) => 1,
        }
    }

    /// How many arguments of the task it is.
    pub(super) const fn args(&self) -> usize {
        match self {
            Self::Tile(..) => task::TENSOR_WORDS,
            Self::Word(_) => 1,
        }
    }

    /// Moves the operand to `place`: the tile to this element, or the word to this value.
    #[inline]
    pub(super) fn move_to(&mut self, position: u64) {
        match self {
            Self::Tile(_, tile) => tile.move_to(position),
            Self::Word(word) => *word = position,
        }
    }

    /// Whether the kernel writes it.
    pub(super) const fn is_written(&self) -> bool {
        matches!(self, Self::Tile(role, _) if *role != param::IN)
    }

    /// Appends its arguments.
    #[inline]
    fn push<'a, const N: usize>(&'a self, args: &mut heapless::Vec<Arg<'a>, N>) {
        // There is room for as many as a kernel has.
        let _ = match self {
            Self::Tile(role, tile) => args.extend_from_slice(&[
                access(*role, tile),
                Arg::Scalar(tile.first),
                Arg::Scalar(tile.sides),
            ]),
            Self::Word(word) => args.extend_from_slice(&[Arg::Scalar(*word)]),
        };
    }
}

/// Appends the arguments of a task to `args`: they are large, and would be copied on the way back.
#[inline]
pub(super) fn fill<'a, const N: usize>(
    args: &mut heapless::Vec<Arg<'a>, N>,
    head: &[u64; task::PARAMS],
    given: impl Iterator<Item = &'a Given>,
) {
    // There is room for the head, and for as many as a kernel has.
    let _ = args.extend_from_slice(&head.map(Arg::Scalar));
    given.for_each(|given| given.push(args));
}

/// What the task does with a tile.
const fn access(role: u32, tile: &Tile) -> Arg<'_> {
    let region = &tile.region;
    match role {
        _ if !tile.is_touched => Arg::NoDep(region),
        param::IN => Arg::In(region),
        param::OUT => Arg::Out(region),
        _ => Arg::InOut(region),
    }
}

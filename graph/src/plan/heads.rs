//! The beginnings of nodes that have other nodes inside, for both ways to go through a plan: `expand.rs`, which goes down into a node, and
//! `pipeline.rs`, which can stop at each.

use super::axis::Elements;
use super::cursor::Cursor;
use super::expression::eval;
use super::layout::axis;
use super::stop::Stop;
use super::walk::Walk;
use crate::stream::StreamBuilder;

/// A loop, and what it has not gone through yet.
pub(super) struct Loop {
    /// The loop's node.
    pub(super) at: usize,
    /// The loop's first variable, and how many it has.
    pub(super) first: u32,
    count: u32,
    pub(super) is_in_order: bool,
    pub(super) elements: Elements,
    /// Words of its body.
    pub(super) body_words: u32,
}

impl Loop {
    /// The loop whose code has been read. The cursor goes to its body.
    pub(super) fn read<G: StreamBuilder>(
        cursor: &mut Cursor<'_>,
        walk: &mut Walk<'_, G>,
        (at, operand): (usize, u32),
    ) -> Result<Self, Stop> {
        let [first, count, kind, _] = operand.to_le_bytes().map(u32::from);
        let body_words = cursor.word();
        let elements = Elements::new(kind & !axis::IN_ORDER, cursor, walk, at)?;
        let is_in_order = kind & axis::IN_ORDER != 0;
        Ok(Self { at, first, count, is_in_order, elements, body_words })
    }

    /// The next turn: its variables get their values. `false`: the loop has ended.
    #[inline]
    pub(super) fn turn<G: StreamBuilder>(&mut self, walk: &mut Walk<'_, G>) -> Result<bool, Stop> {
        let Some(element) = self.elements.next(walk, self.at)? else { return Ok(false) };
        walk.turn(self.at)?;
        for (var, value) in (self.first..self.first + self.count).zip(element) {
            walk.values.set_var(var, value);
        }
        walk.vars = self.first + self.count;
        Ok(true)
    }
}

/// One of two nodes, of which the first has so many words; their code has been read. The cursor goes to the one that is chosen. The word
/// past both.
pub(super) fn choose<G: StreamBuilder>(
    cursor: &mut Cursor<'_>,
    walk: &Walk<'_, G>,
    first: u32,
) -> Result<usize, Stop> {
    let second = cursor.word();
    let is_first = eval(cursor, &walk.values)? != 0;
    let mut end = *cursor;
    end.skip(first);
    if !is_first {
        *cursor = end;
    }
    end.skip(second);
    Ok(end.at())
}

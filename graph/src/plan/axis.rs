//! The elements of an axis, one after the other. Lengths, beginnings and indices are read when they are reached.

use pto_abi::fault::Fault;

use super::bindings::Array;
use super::cursor::Cursor;
use super::layout::axis;
use super::stop::Stop;
use super::walk::Walk;
use crate::stream::StreamBuilder;

/// The elements that are left.
pub(super) enum Elements {
    Dense { next: u64, end: u64 },
    Ragged(Ragged),
    Sparse(Sparse),
}

/// `row` counts the rows that have begun.
pub(super) struct Ragged {
    /// The number of the array.
    lengths: u32,
    rows: u64,
    row: u64,
    inner: i64,
    length: i64,
    flat: i64,
}

/// `row` counts the rows that have begun.
pub(super) struct Sparse {
    /// The numbers of the arrays.
    begins: u32,
    indices: u32,
    rows: u64,
    row: u64,
    position: u64,
    end: u64,
}

/// The value, the row and the position of an element.
pub(super) type Element = [i64; 3];

impl Elements {
    /// The axis that is at the cursor, when it is reached. `at` is its loop.
    pub(super) fn new<G: StreamBuilder>(
        kind: u32,
        cursor: &mut Cursor<'_>,
        walk: &mut Walk<'_, G>,
        at: usize,
    ) -> Result<Self, Stop> {
        Ok(match kind {
            axis::DENSE => Self::Dense { next: 0, end: cursor.wide() },
            axis::DYNAMIC => Self::Dense { next: 0, end: walk.values.symbol(cursor.word()) },
            axis::RAGGED => {
                let (rows, lengths) = (walk.values.symbol(cursor.word()), cursor.word());
                holds(&walk.bindings.array(lengths), rows, at)?;
                Self::Ragged(Ragged { lengths, rows, row: 0, inner: 0, length: 0, flat: 0 })
            }
            _ => {
                let (rows, begins) = (walk.values.symbol(cursor.word()), cursor.word());
                let indices = cursor.word();
                holds(&walk.bindings.array(begins), rows.saturating_add(1), at)?;
                let position = begin(walk, begins, (0, 0), at)?;
                Self::Sparse(Sparse { begins, indices, rows, row: 0, position, end: position })
            }
        })
    }

    /// How many elements there are, or rows where the elements are counted as they are reached.
    pub(super) const fn rows(&self) -> u64 {
        match self {
            Self::Dense { end, .. } => *end,
            Self::Ragged(Ragged { rows, .. }) | Self::Sparse(Sparse { rows, .. }) => *rows,
        }
    }

    /// How many elements follow that are known already, each one more than the one before.
    pub(super) const fn known(&self) -> u64 {
        match self {
            Self::Dense { next, end } => end.saturating_sub(*next),
            Self::Ragged(_) | Self::Sparse(_) => 0,
        }
    }

    /// Leaves out so many of the [known](Self::known) elements.
    pub(super) const fn skip(&mut self, count: u64) {
        if let Self::Dense { next, .. } = self {
            *next = next.saturating_add(count);
        }
    }

    /// The next element; `None`: there are no more.
    #[inline]
    pub(super) fn next<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        at: usize,
    ) -> Result<Option<Element>, Stop> {
        match self {
            Self::Dense { next, end } if *next < *end => {
                let value = next.cast_signed();
                *next += 1;
                Ok(Some([value, 0, 0]))
            }
            Self::Dense { .. } => Ok(None),
            Self::Ragged(ragged) => ragged.next(walk, at),
            Self::Sparse(sparse) => sparse.next(walk, at),
        }
    }
}

impl Ragged {
    fn next<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        at: usize,
    ) -> Result<Option<Element>, Stop> {
        while self.inner >= self.length {
            if self.row >= self.rows {
                return Ok(None);
            }
            walk.turn(at)?;
            let length = walk.element(self.lengths, self.row, at)?;
            if length < 0 {
                return Err(wrong_element(length, self.row, at));
            }
            (self.length, self.inner) = (length.into(), 0);
            self.row += 1;
        }
        let element = [self.flat, self.row.wrapping_sub(1).cast_signed(), self.inner];
        self.inner += 1;
        self.flat = self.flat.wrapping_add(1);
        Ok(Some(element))
    }
}

impl Sparse {
    fn next<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        at: usize,
    ) -> Result<Option<Element>, Stop> {
        while self.position >= self.end {
            if self.row >= self.rows {
                return Ok(None);
            }
            walk.turn(at)?;
            self.row += 1;
            self.end = begin(walk, self.begins, (self.row, self.end), at)?;
        }
        let value = walk.element(self.indices, self.position, at)?;
        let element =
            [value.into(), self.row.wrapping_sub(1).cast_signed(), self.position.cast_signed()];
        self.position += 1;
        Ok(Some(element))
    }
}

/// Where a row begins: at the earliest where the row before it does.
fn begin<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    begins: u32,
    (row, before): (u64, u64),
    at: usize,
) -> Result<u64, Stop> {
    let found = walk.element(begins, row, at)?;
    let begin = u64::try_from(found).ok().filter(|begin| *begin >= before);
    begin.ok_or_else(|| wrong_element(found, row, at))
}

fn wrong_element(found: i32, number: u64, at: usize) -> Stop {
    Stop::new(Fault::PLAN_ELEMENT, at).detail(i64::from(found).cast_unsigned(), number)
}

fn holds(array: &Array, needed: u64, at: usize) -> Result<(), Stop> {
    if array.length >= needed {
        return Ok(());
    }
    Err(Stop::new(Fault::PLAN_ARRAY, at).detail(array.length, needed))
}

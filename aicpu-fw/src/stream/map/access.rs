//! Accesses to tensors: what the tensor map looks up and notes.

use pto_abi::limits::MAX_RANK;
use pto_graph::TensorView;

use super::super::region::{Dim, HALF, Region, tile};
use super::divisor::Divisor;

/// Whether an access changes the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// It only reads.
    Read,
    /// It writes, and may read as well.
    Write,
}

/// One access of one task.
#[derive(Clone, Copy, Debug)]
pub struct TensorAccess<'r> {
    /// The tensor.
    pub(super) base: u64,
    /// What it does.
    pub(super) kind: AccessKind,
    /// The first byte, and one past the last one.
    pub(in crate::stream) low: u64,
    pub(super) high: u64,
    /// [`Region::rows`]; `MANY`: the region has none.
    pub(super) rows: u64,
    region: Option<&'r Region>,
}

/// In `rows`: more than one stride, or larger ones.
pub(super) const MANY: u64 = u64::MAX;

impl<'r> TensorAccess<'r> {
    /// Entries that it takes at most.
    pub const MAX_ENTRIES: u64 = 2;

    /// An access to a region of the tensor at `base`.
    #[must_use]
    pub fn new(base: u64, kind: AccessKind, region: &'r Region) -> Self {
        let rows = region.rows().unwrap_or(MANY);
        Self { base, kind, low: region.low, high: region.high, rows, region: Some(region) }
    }

    /// An access to a view; `None`: its region has to be worked out for [`new`](Self::new).
    #[inline]
    #[must_use]
    pub fn simple(view: &TensorView<'_>, kind: AccessKind) -> Option<Self> {
        let (base, low) = (view.base().0, view.offset_bytes());
        let (high, rows) = if view.is_dense() {
            (low + view.span_bytes(), 0)
        } else {
            let (reach, rows) = tile(view)?;
            (low + reach, rows)
        };
        Some(Self { base, kind, low, high, rows, region: None })
    }

    /// As [`simple`](Self::simple), of a view without a defect and of what follows it at distances of `step` bytes, `times` in all: the
    /// same as to the region of [`TensorView::repeated`]. `None`: that region has to be worked out, or is not in the tensor.
    #[inline(always)]
    #[must_use]
    pub fn repeated(
        view: &TensorView<'_>,
        kind: AccessKind,
        (step, times): (i64, u32),
    ) -> Option<Self> {
        let first = Self::simple(view, kind)?;
        if step == 0 || times <= 1 {
            return Some(first);
        }
        let distance = step.unsigned_abs();
        let reach = distance.checked_mul(u64::from(times) - 1)?;
        let (low, high) = if step < 0 {
            (first.low.checked_sub(reach)?, first.high)
        } else {
            (first.low, first.high.checked_add(reach)?)
        };
        let is_whole = distance.checked_rem(view.element().bytes()) == Some(0);
        let is_within = high <= view.tensor_bytes() && view.shape().len() < MAX_RANK;
        let rows = first.rows_up_to(distance, reach)?;
        (is_whole && is_within).then_some(Self { low, high, rows, ..first })
    }

    /// The rows of this access, which has one stride at most, and of those that follow at this distance until they are `reach` further.
    fn rows_up_to(&self, distance: u64, reach: u64) -> Option<u64> {
        let Some(stride) = self.stride() else {
            let run = self.reach();
            let rows = if distance <= run { 0 } else { distance << 32 | run };
            return (run.max(distance) <= HALF || rows == 0).then_some(rows);
        };
        let run = self.rows & HALF;
        if distance.checked_rem(stride) == Some(0) && distance <= self.reach() - run + stride {
            // More rows of the same kind.
            return Some(self.rows);
        }
        // Wider ones, or one run if they touch; else there are two strides.
        let wide = run + reach;
        (distance <= run).then_some(if wide < stride { stride << 32 | wide } else { 0 })
    }

    /// An access to a region that keeps nothing of it; `None`: the region has more than one stride, or larger ones.
    pub(in crate::stream) fn of_rows(
        base: u64,
        kind: AccessKind,
        region: &Region,
    ) -> Option<TensorAccess<'static>> {
        let rows = region.rows()?;
        Some(TensorAccess { base, kind, low: region.low, high: region.high, rows, region: None })
    }

    /// The same, so many bytes further on; of an access that keeps nothing of a region.
    #[inline]
    pub(in crate::stream) const fn moved(self, bytes: u64) -> Self {
        let (low, high) = (self.low.wrapping_add(bytes), self.high.wrapping_add(bytes));
        Self { low, high, ..self }
    }

    /// Whether both write one tensor.
    pub(in crate::stream) fn writes_with(&self, other: &Self) -> bool {
        self.kind == AccessKind::Write && other.kind == AccessKind::Write && self.base == other.base
    }

    /// Bytes from its first one to one past its last one.
    pub(in crate::stream) const fn reach(&self) -> u64 {
        self.high.wrapping_sub(self.low)
    }

    /// Whether it is to as many rows as another one, as long and as far apart, of the same tensor, and does the same.
    pub(in crate::stream) fn has_same_shape(&self, other: &Self) -> bool {
        (self.base, self.kind, self.rows) == (other.base, other.kind, other.rows)
            && self.high.wrapping_sub(self.low) == other.high.wrapping_sub(other.low)
    }

    /// Whether it does the same to the same rows.
    pub(in crate::stream) fn is_same(&self, other: &Self) -> bool {
        self.low == other.low && self.has_same_shape(other)
    }

    /// The same rows and those between them, at this distance; those of the last one begin at `last`.
    pub(in crate::stream) fn denser(self, distance: u64, last: u64) -> Self {
        let (run, high) = (self.rows & HALF, self.high.wrapping_add(last.wrapping_sub(self.low)));
        let rows = if run < distance { distance << 32 | run } else { 0 };
        Self { high, rows, ..self }
    }

    /// An access to all bytes from `low` up to `high`.
    #[must_use]
    pub const fn run(base: u64, kind: AccessKind, low: u64, high: u64) -> Self {
        Self { base, kind, low, high, rows: 0, region: None }
    }

    #[inline]
    pub(super) const fn is_run(&self) -> bool {
        self.rows == 0
    }

    /// Bytes from one row to the next; `None`: it has no rows, or none that one word describes.
    #[inline]
    pub(in crate::stream) const fn stride(&self) -> Option<u64> {
        if self.rows == 0 || self.rows == MANY { None } else { Some(self.rows >> 32) }
    }

    /// The bytes of a row, how far apart the rows are and how many there are, where one word describes that.
    #[inline]
    pub(super) fn even_rows(&self) -> Option<(u64, Dim)> {
        let (stride, run) = (self.stride()?, self.rows & HALF);
        let more = self.reach().wrapping_sub(run).checked_div(stride)?;
        let count = u32::try_from(more + 1).ok()?;
        Some((run, Dim { stride, count }))
    }

    /// Rows and bytes of each, where they are `pitch` apart; `None`: they are not.
    #[inline]
    pub(super) fn rows_of(&self, pitch: Divisor) -> Option<(u64, u64)> {
        match (self.rows, self.rows >> 32) {
            (0, _) => Some((1, self.high - self.low)),
            // Strides of 2^32 and more are not among the rows, and make no grid.
            (rows, stride) if stride == pitch.get() && rows != MANY => {
                let run = rows & HALF;
                Some((pitch.divide(self.high - self.low - run).0 + 1, run))
            }
            _ => None,
        }
    }

    /// The bytes.
    pub(in crate::stream) fn region(&self) -> Region {
        match self.region {
            Some(region) => *region,
            None => Region::of_rows(self.low, self.high, self.rows),
        }
    }
}

/// Whether what an access covers is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hide {
    /// The task that looks waits for everything that it finds.
    Covered,
    /// It does not.
    Nothing,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{AccessKind, TensorAccess};
    use crate::stream::region::Region;
    use pto_abi::GmAddr;
    use pto_graph::{ElementType, TensorView};

    /// Steps of 2 bytes and more, forwards and backwards, of parts in the middle of a matrix.
    #[test]
    fn what_is_repeated_is_the_region_of_the_repeated_view() {
        let matrix = TensorView::dense(GmAddr(0x1000), ElementType::F16, &[24, 12]);
        let (mut found, mut refused) = (0, 0);
        for (height, width) in [(1, 12), (3, 12), (1, 4), (3, 4), (2, 1), (4, 11)] {
            let part = matrix.slice(0, 10, height).slice(1, 12 - width, width);
            for step in -150..150 {
                for times in 1..5 {
                    let view = part.repeated(step, times).unwrap();
                    let kind = AccessKind::Write;
                    let Some(access) = TensorAccess::repeated(&part, kind, (step, times)) else {
                        refused += 1;
                        continue;
                    };
                    let context = (height, width, step, times);
                    assert_eq!(view.defect(), None, "{context:?}");
                    let region = Region::of(&view);
                    let expected = TensorAccess::of_rows(0x1000, kind, &region)
                        .map(|all| all.is_same(&access));
                    assert_eq!(expected, Some(true), "{context:?}");
                    assert_eq!(access.region(), region, "{context:?}");
                    found += 1;
                }
            }
        }
        assert!(found > 500 && refused > 500, "{found} {refused}");
    }
}

//! Accesses: what the tensor map is asked, and told.

use pto_graph::TensorView;

use super::super::region::{HALF, Region, tile};
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
pub struct Access<'r> {
    /// The tensor.
    pub(super) base: u64,
    /// What it does.
    pub(super) kind: AccessKind,
    /// The first byte, and the one behind the last one.
    pub(in crate::stream) low: u64,
    pub(super) high: u64,
    /// [`Region::rows`]; `MANY`: the region has none.
    pub(super) rows: u64,
    region: Option<&'r Region>,
}

/// In `rows`: more than one stride, or larger ones.
pub(super) const MANY: u64 = u64::MAX;

impl<'r> Access<'r> {
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

    /// An access to a region that keeps nothing of it; `None`: the region has more than one stride, or larger ones.
    pub(in crate::stream) fn of_rows(
        base: u64,
        kind: AccessKind,
        region: &Region,
    ) -> Option<Access<'static>> {
        let rows = region.rows()?;
        Some(Access { base, kind, low: region.low, high: region.high, rows, region: None })
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

    /// Bytes from its first one to behind its last one.
    pub(in crate::stream) const fn reach(&self) -> u64 {
        self.high.wrapping_sub(self.low)
    }

    /// Whether it is to as many rows as another one, as long and as far apart, of the same tensor, and does the same.
    pub(in crate::stream) fn is_beside(&self, other: &Self) -> bool {
        (self.base, self.kind, self.rows) == (other.base, other.kind, other.rows)
            && self.high.wrapping_sub(self.low) == other.high.wrapping_sub(other.low)
    }

    /// Whether it does the same to the same rows.
    pub(in crate::stream) fn is_same(&self, other: &Self) -> bool {
        self.low == other.low && self.is_beside(other)
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

    /// Bytes from one row to the next; `None`: it has no rows, or none that are told by one word.
    #[inline]
    pub(in crate::stream) const fn stride(&self) -> Option<u64> {
        if self.rows == 0 || self.rows == MANY { None } else { Some(self.rows >> 32) }
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

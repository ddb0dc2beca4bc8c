//! The bytes that a view touches, in a normal form that is cheap to compare.
//!
//! A region is a run of bytes, repeated in up to five dimensions. Normal form: dimensions of one element are dropped,
//! runs that touch are merged, and so are dimensions that continue each other; strides ascend. Two views that touch the
//! same bytes mostly get the same normal form, and a view that is dense gets no dimension at all.

use pto_abi::limits::MAX_RANK;
use pto_graph::TensorView;

/// A dimension: bytes from one repetition to the next, and how many there are (at least 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dim {
    /// Bytes from one repetition to the next.
    pub stride: u64,
    /// Repetitions.
    pub count: u32,
}

/// The low half of a word.
pub(super) const HALF: u64 = 0xFFFF_FFFF;

/// The bytes of a tensor that an access touches, from the tensor's first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first byte.
    pub low: u64,
    /// One past the last byte.
    pub high: u64,
    /// Contiguous bytes.
    pub run: u64,
    dims: [Dim; MAX_RANK],
    rank: u8,
}

impl Region {
    /// The region of a view without a defect.
    #[must_use]
    #[inline]
    pub fn of(view: &TensorView<'_>) -> Self {
        let low = view.offset_bytes();
        if view.is_dense() {
            Self::run(low, low + view.span_bytes())
        } else {
            Self::strided(low, view)
        }
    }

    /// One run of bytes.
    #[must_use]
    #[inline]
    pub fn run(low: u64, high: u64) -> Self {
        Self { low, high, run: high - low, dims: [Dim::default(); MAX_RANK], rank: 0 }
    }

    /// What says, with both ends, which bytes these are, in one word: contiguous bytes, and in the high half
    /// the bytes from one run to the next; zero: it is one run. `None`: it has more than one stride, or larger ones.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> Option<u64> {
        match (self.rank, self.dims[0].stride) {
            (0, _) => Some(0),
            (1, stride) if stride <= HALF && self.run <= HALF => Some(stride << 32 | self.run),
            _ => None,
        }
    }

    /// The region of [`rows`](Self::rows).
    #[must_use]
    pub fn of_rows(low: u64, high: u64, rows: u64) -> Self {
        let (stride, run) = (rows >> 32, rows & HALF);
        let more = (high - low).wrapping_sub(run).checked_div(stride);
        let Some(count) = more.and_then(|more| u32::try_from(more + 1).ok()) else {
            return Self::run(low, high);
        };
        let mut dims = [Dim::default(); MAX_RANK];
        dims[0] = Dim { stride, count };
        Self { low, high, run, dims, rank: 1 }
    }

    /// The region from byte `low` up to `high`, in dense runs of `run` bytes, repeated as `given` says: at most
    /// [`MAX_RANK`] dimensions, strides ascending.
    #[must_use]
    pub fn from_parts(low: u64, high: u64, run: u64, given: &[Dim]) -> Self {
        let mut dims = [Dim::default(); MAX_RANK];
        for (dim, given) in dims.iter_mut().zip(given) {
            *dim = *given;
        }
        Self { low, high, run, dims, rank: u8::try_from(given.len().min(MAX_RANK)).unwrap_or(0) }
    }

    /// Returns the region moved by `bytes`.
    #[must_use]
    #[inline]
    pub const fn moved(mut self, bytes: u64) -> Self {
        self.low = self.low.wrapping_add(bytes);
        self.high = self.high.wrapping_add(bytes);
        self
    }

    /// The dimensions, strides ascending.
    #[must_use]
    #[inline]
    pub fn dims(&self) -> &[Dim] {
        self.dims.get(..usize::from(self.rank)).unwrap_or(&[])
    }

    /// Whether it is one run.
    #[must_use]
    #[inline]
    pub const fn is_run(&self) -> bool {
        self.rank == 0
    }

    /// Whether every byte of `other` is one of this region's, as far as the derivation of edges makes use of it: this
    /// region is one run around the other one, or both have the same normal form.
    #[must_use]
    #[inline]
    pub fn covers(&self, other: &Self) -> bool {
        if self.is_run() {
            return self.low <= other.low && other.high <= self.high;
        }
        self == other
    }

    fn strided(low: u64, view: &TensorView<'_>) -> Self {
        let size = view.element().bytes();
        let mut rows = Dims { run: size, dims: [Dim::default(); MAX_RANK], rank: 0 };
        // The innermost one first: most views have strides that descend, and no dimension makes room for another one then.
        for (extent, stride) in view.shape().iter().zip(view.strides()).rev() {
            if *extent > 1 && *stride > 0 {
                rows.insert(Dim { stride: stride.wrapping_mul(size), count: *extent });
            }
        }
        rows.merge();
        let Dims { run, dims, rank } = rows;
        let reach = |dim: &Dim| dim.stride.wrapping_mul(u64::from(dim.count - 1));
        let last = dims.iter().take(rank).map(reach).fold(0, u64::wrapping_add);
        let high = low.wrapping_add(last).wrapping_add(run);
        // At most MAX_RANK.
        Self { low, high, run, dims, rank: rank.to_le_bytes()[0] }
    }
}

/// The dimensions of a region while they are found: those from `rank` on are zero.
struct Dims {
    run: u64,
    dims: [Dim; MAX_RANK],
    rank: usize,
}

impl Dims {
    /// Puts a dimension where its stride belongs.
    #[inline(always)]
    fn insert(&mut self, dim: Dim) {
        let mut at = self.rank;
        while let Some(before) =
            at.checked_sub(1).filter(|b| self.dims[*b % MAX_RANK].stride > dim.stride)
        {
            self.dims[at % MAX_RANK] = self.dims[before % MAX_RANK];
            at = before;
        }
        self.dims[at % MAX_RANK] = dim;
        self.rank += 1;
    }

    /// Merges runs that touch, and dimensions that continue each other, from the innermost one.
    #[inline(always)]
    fn merge(&mut self) {
        let rank = core::mem::take(&mut self.rank);
        for at in 0..rank {
            // The merged dimensions come before it, or replace it.
            let dim = core::mem::take(&mut self.dims[at % MAX_RANK]);
            let last = self.rank.checked_sub(1);
            match last.and_then(|last| self.dims.get_mut(last)) {
                None if dim.stride <= self.run => self.run += dim.stride * u64::from(dim.count - 1),
                Some(last) if last.continues(dim) => {
                    let times = dim.stride.checked_div(last.stride).unwrap_or(0);
                    let more = times * u64::from(dim.count - 1);
                    match u32::try_from(u64::from(last.count) + more) {
                        Ok(count) => last.count = count,
                        Err(_) => self.push(dim),
                    }
                }
                _ => self.push(dim),
            }
        }
    }

    fn push(&mut self, dim: Dim) {
        if let Some(entry) = self.dims.get_mut(self.rank) {
            *entry = dim;
            self.rank += 1;
        }
    }
}

/// The tile of a matrix that a view is: bytes from its first one to one past the last one, and [`Region::rows`]. `None`: it
/// is something else.
#[inline]
pub(super) fn tile(view: &TensorView<'_>) -> Option<(u64, u64)> {
    let (&[rows, columns], &[stride, 1]) = (view.shape(), view.strides()) else {
        return None;
    };
    let size = view.element().bytes();
    let (run, stride) = (u64::from(columns) * size, stride * size);
    let fits = rows > 1 && run < stride && stride <= HALF;
    fits.then(|| (stride * (u64::from(rows) - 1) + run, stride << 32 | run))
}

/// A region that is one run, or runs at one distance: the first byte, one past the last one, and the bytes of each run.
pub(super) type Rows = (u64, u64, u64);

/// Whether two regions, whose hulls have a byte in common, have one themselves. Their runs have the same distance; where both have one, at any.
#[inline]
pub(super) fn rows_meet(one: Rows, other: Rows, stride: u64) -> bool {
    let reach = |(low, high, run): Rows| high.wrapping_sub(low).wrapping_sub(run);
    // With the runs of the other one counted from its last: of all sums of a run's beginning in the one and in the other, those that meet lie
    // between `last - other.run - one.run + 2` and `last`. The sums are multiples of the stride, up to the reach of both.
    let last = other.1.wrapping_sub(1).wrapping_sub(one.0);
    let below = last.wrapping_sub(last.checked_rem(stride).unwrap_or(0));
    let nearest = below.min(reach(one).wrapping_add(reach(other)));
    last.wrapping_add(2) <= nearest.wrapping_add(one.2).wrapping_add(other.2)
}

impl Dim {
    /// Whether repeating this dimension as `outer` says is the same as making it longer.
    fn continues(self, outer: Self) -> bool {
        let times = outer.stride.checked_div(self.stride).unwrap_or(u64::MAX);
        outer.stride.is_multiple_of(self.stride) && times <= u64::from(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dim, Region};
    use pto_abi::GmAddr;
    use pto_graph::{ElementType, RawView, TensorView};

    fn view(shape: &[u32], strides: &[u64]) -> Region {
        let raw = RawView {
            base: GmAddr(0),
            bytes: 1 << 20,
            element: ElementType::F32.get(),
            offset: 5,
            shape,
            strides,
        };
        Region::of(&TensorView::alleged(&raw))
    }

    #[test]
    fn contiguous_bytes_are_one_run() {
        for (shape, strides) in [
            (&[3, 4][..], &[4, 1][..]),
            (&[4, 3], &[1, 4]),
            (&[1, 12, 1], &[99, 1, 7]),
            (&[5, 12], &[0, 1]),
            (&[3, 2, 2], &[4, 1, 2]),
            (&[6, 7], &[1, 1]),
        ] {
            let region = view(shape, strides);
            assert_eq!(
                (region.low, region.high, region.run),
                (20, 68, 48),
                "{shape:?} {strides:?}"
            );
            assert!(region.is_run());
        }
    }

    #[test]
    fn a_tile_has_one_dimension_and_a_tile_of_full_width_none() {
        let tile = view(&[3, 4], &[10, 1]);
        assert_eq!((tile.run, tile.dims()), (16, &[Dim { stride: 40, count: 3 }][..]));
        assert_eq!(tile.high, 20 + 80 + 16);
        let two = view(&[2, 3, 4], &[30, 10, 1]);
        assert_eq!(
            two.dims(),
            &[Dim { stride: 40, count: 6 }],
            "the outer one continues the inner one"
        );
        let apart = view(&[2, 3, 4], &[40, 10, 1]);
        assert_eq!(apart.dims().len(), 2);
    }

    #[test]
    fn covering_is_a_run_around_it_or_the_same_form() {
        let (all, tile) = (view(&[60], &[1]), view(&[3, 4], &[10, 1]));
        assert!(all.covers(&tile) && !tile.covers(&all));
        assert!(tile.covers(&view(&[4, 3], &[1, 10])));
        assert!(!tile.covers(&view(&[3, 3], &[10, 1])));
    }
}

//! The tile that a view is: its first element, how much of it counts, and the region of the tensor that a task with it touches.
//!
//! Invariant: everything about a view is known when it has been read, so that a call can join a [run](super::grain) without a region.

use pto_abi::fault::Fault;

use super::accept::ParamEntry;
use super::bindings::Bindings;
use super::cursor::Cursor;
use super::expression::eval_signed;
use super::layout::{NO_DIMENSION, index, limits};
use super::stop::Stop;
use super::task::{Sides, pack_sides};
use super::values::Values;
use crate::tensor::{RawView, TensorView};

/// A tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    /// What the task touches; the whole tensor where nothing of the tile counts.
    pub(super) region: TensorView<'static>,
    /// Whether anything of the tile counts.
    pub(super) is_touched: bool,
    /// Its first element, counted from the first one of the tensor's memory.
    pub(super) first: u64,
    /// See [`pack_sides`].
    pub(super) sides: u64,
}

impl Tile {
    /// The tile has moved to another first element, in its dimensions as before.
    #[inline]
    pub(super) fn move_to(&mut self, first: u64) {
        self.region = self.region.moved_by(first.wrapping_sub(self.first).cast_signed());
        self.first = first;
    }
}

/// A view that was read: where its tile is. The region that the tile touches is worked out where it is needed.
#[derive(Clone, Copy)]
pub(super) struct View<'t> {
    pub(super) param: ParamEntry,
    /// Where it is in the plan.
    at: usize,
    number: u8,
    whole: &'t TensorView<'static>,
    /// The first index of each dimension.
    starts: [i64; limits::RANK],
    /// The dimensions of which it selects a single index.
    is_point: [bool; limits::RANK],
    /// Rows and columns that count.
    counted: [u16; 2],
    dims: [u32; 2],
}

/// Reads the view at the cursor, which moves past it.
#[inline]
pub(super) fn view<'w>(
    (bindings, values): (&'w Bindings, &Values),
    cursor: &mut Cursor<'_>,
    param: ParamEntry,
) -> Result<View<'w>, Stop> {
    let at = cursor.at();
    let [number, count, row, col] = cursor.word().to_le_bytes();
    let whole = bindings.tensor(number.into()).ok_or(Stop::new(Fault::PLAN_NAME, at))?;
    let (starts, is_point) = ([0; limits::RANK], [false; limits::RANK]);
    let (counted, dims) = (param.tile, [row, col].map(u32::from));
    let mut view = View { param, at, number, whole, starts, is_point, counted, dims };
    for dim in 0..usize::from(count) {
        view.index(values, cursor, dim)?;
    }
    Ok(view)
}

impl View<'_> {
    fn extent(&self, dim: usize) -> u32 {
        self.whole.shape().get(dim).copied().unwrap_or(0)
    }

    /// An index of a dimension.
    #[inline]
    fn index(&mut self, values: &Values, cursor: &mut Cursor<'_>, dim: usize) -> Result<(), Stop> {
        let at = cursor.at();
        let is_range = cursor.word() == index::RANGE;
        let start = eval_signed(cursor, values)?;
        let length = if is_range { eval_signed(cursor, values)? } else { 1 };
        let extent = i64::from(self.extent(dim));
        // An empty range may begin at the end of the dimension.
        let last = if length > 0 { extent.saturating_sub(1) } else { extent };
        if !(0..=last).contains(&start) {
            let wrong = Stop::new(Fault::PLAN_INDEX, at);
            return Err(wrong.detail(start.cast_unsigned(), extent.cast_unsigned()));
        }
        if let Some(slot) = self.starts.get_mut(dim) {
            *slot = start;
        }
        if is_range {
            self.range(u32::try_from(dim).unwrap_or(NO_DIMENSION), (start, length));
        } else if let Some(is_point) = self.is_point.get_mut(dim) {
            *is_point = true;
        }
        Ok(())
    }

    /// What counts of a side: what the range has, as far as it is in the tensor.
    fn range(&mut self, dim: u32, (start, length): (i64, i64)) {
        let left = i64::from(self.extent(dim as usize)).saturating_sub(start);
        let sides = self.dims.iter().zip(&mut self.counted).zip(self.param.tile);
        for ((side, counted), most) in sides {
            if *side == dim {
                let count = length.min(left).clamp(0, most.into());
                *counted = u16::try_from(count).unwrap_or(0);
            }
        }
    }

    fn start(&self, dim: u32) -> i64 {
        self.starts.get(dim as usize).copied().unwrap_or(0)
    }

    /// The tile's first element. Every index is in its dimension, or nothing counts.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        let products = self.starts.iter().zip(self.whole.strides());
        products.fold(self.whole.offset(), |sum: u64, (start, stride)| {
            sum.wrapping_add(start.cast_unsigned().wrapping_mul(*stride))
        })
    }

    /// See [`pack_sides`].
    #[inline]
    pub(super) fn sides(&self) -> u64 {
        let dims = self.dims.map(|dim| u8::try_from(dim).ok().filter(|_| dim != NO_DIMENSION));
        pack_sides(Sides { tensor: self.number, extents: self.counted, dims })
    }

    /// Whether anything of the tile counts.
    #[inline]
    fn is_touched(&self) -> bool {
        !self.counted.contains(&0)
    }

    /// Whether something of the tile counts, and it stays in its dimensions: its region begins with its first element then, and is as large as its
    /// [sides](Self::sides) say.
    #[inline]
    pub(super) fn is_regular(&self) -> bool {
        self.is_touched() && self.spans().all(|span| span.is_some())
    }

    /// Of each side that the tile has: its dimension, where the access begins, and how long it is; `None`: it leaves its dimension.
    #[inline]
    fn spans(&self) -> impl Iterator<Item = Option<(usize, u32, u32)>> {
        let sides = self.dims.into_iter().zip(self.counted).zip(self.param.reach);
        let sides = sides.filter(|((dim, _), _)| *dim != NO_DIMENSION);
        sides.map(|((dim, counted), reach)| {
            let (start, length) = (self.start(dim), u32::from(counted) + u32::from(reach));
            let end = start.saturating_add(length.into());
            let first = u32::try_from(start).ok();
            let first = first.filter(|_| end <= i64::from(self.extent(dim as usize)))?;
            Some((dim as usize, first, length))
        })
    }

    /// The tile, with its region.
    pub(super) fn tile(&self) -> Result<Tile, Stop> {
        let is_touched = self.is_touched();
        let region = if is_touched { self.region()? } else { *self.whole };
        Ok(Tile { region, is_touched, first: self.first(), sides: self.sides() })
    }

    /// What a task with it touches.
    fn region(&self) -> Result<TensorView<'static>, Stop> {
        let mut region = *self.whole;
        let points = (0_usize..).zip(self.is_point).zip(self.starts);
        for ((dim, _), start) in points.filter(|((_, is_point), _)| *is_point) {
            region = region.slice(dim, u32::try_from(start).unwrap_or(u32::MAX), 1);
        }
        for span in self.spans() {
            let Some((dim, first, length)) = span else { return self.leave() };
            region = region.slice(dim, first, length);
        }
        Ok(region)
    }

    /// The tile leaves its dimensions: that is allowed as long as it stays in the tensor.
    #[cold]
    #[inline(never)]
    fn leave(&self) -> Result<TensorView<'static>, Stop> {
        let (mut shape, mut strides) = ([1; 2], [1; 2]);
        let sides = self.dims.iter().zip(self.counted).zip(self.param.reach);
        for (((dim, counted), reach), (extent, stride)) in
            sides.zip(shape.iter_mut().zip(&mut strides))
        {
            if *dim != NO_DIMENSION {
                *extent = u32::from(counted) + u32::from(reach);
                *stride = self.whole.strides().get(*dim as usize).copied().unwrap_or(0);
            }
        }
        let region = TensorView::alleged(&RawView {
            base: self.whole.base(),
            bytes: self.whole.tensor_bytes(),
            element: self.whole.element().get(),
            offset: self.first(),
            shape: &shape,
            strides: &strides,
        });
        match region.defect() {
            None => Ok(region),
            // The kernel decides which elements it touches, and its core checks each of them.
            Some(_) if self.param.is_loose => Ok(*self.whole),
            Some(_) => {
                let elements = self.whole.elements();
                Err(Stop::new(Fault::PLAN_TILE, self.at).detail(self.first(), elements))
            }
        }
    }
}

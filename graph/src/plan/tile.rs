//! The tile that a view is: its first element, how much of it counts, and the region of the tensor that a task with it touches.

use pto_abi::fault::Fault;

use super::accept::ParamEntry;
use super::cursor::Cursor;
use super::expression::eval_signed;
use super::layout::{NO_DIMENSION, index, limits};
use super::stop::Stop;
use super::task::{Sides, pack_sides};
use super::walk::Walk;
use crate::stream::StreamBuilder;
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

/// A view as far as it was read.
struct Reader<'t> {
    whole: &'t TensorView<'static>,
    region: TensorView<'static>,
    /// The first place of each dimension.
    starts: [i64; limits::RANK],
    /// Rows and columns that count.
    counted: [u16; 2],
    dims: [u32; 2],
}

/// The tile of the view at the cursor.
#[inline]
pub(super) fn tile<G: StreamBuilder>(
    walk: &Walk<'_, G>,
    cursor: &mut Cursor<'_>,
    param: &ParamEntry,
) -> Result<Tile, Stop> {
    let at = cursor.at();
    let [number, count, row, col] = cursor.word().to_le_bytes();
    let whole = walk.bindings.tensor(number.into()).ok_or(Stop::new(Fault::PLAN_NAME, at))?;
    let (starts, dims) = ([0; limits::RANK], [row, col].map(u32::from));
    let mut reader = Reader { whole, region: *whole, starts, counted: param.tile, dims };
    for dim in 0..usize::from(count) {
        reader.index(walk, cursor, (dim, param))?;
    }
    let first = reader.first();
    let is_touched = !reader.counted.contains(&0);
    let is_inside = is_touched && reader.slice_sides(param);
    if is_touched && !is_inside {
        reader.leave(param, at)?;
    }
    let dims = [row, col].map(|dim| (u32::from(dim) != NO_DIMENSION).then_some(dim));
    let sides = pack_sides(Sides { tensor: number, extents: reader.counted, dims });
    let region = if is_touched { reader.region } else { *whole };
    Ok(Tile { region, is_touched, first, sides })
}

impl Reader<'_> {
    fn extent(&self, dim: usize) -> u32 {
        self.whole.shape().get(dim).copied().unwrap_or(0)
    }

    /// An index of a dimension.
    #[inline]
    fn index<G: StreamBuilder>(
        &mut self,
        walk: &Walk<'_, G>,
        cursor: &mut Cursor<'_>,
        (dim, param): (usize, &ParamEntry),
    ) -> Result<(), Stop> {
        let at = cursor.at();
        let kind = cursor.word();
        let start = eval_signed(cursor, &walk.values)?;
        let extent = self.extent(dim);
        let is_inside = start >= 0 && (kind == index::RANGE || start < i64::from(extent));
        if !is_inside {
            return Err(
                Stop::new(Fault::PLAN_INDEX, at).detail(start.cast_unsigned(), extent.into())
            );
        }
        if let Some(place) = self.starts.get_mut(dim) {
            *place = start;
        }
        if kind == index::RANGE {
            let length = eval_signed(cursor, &walk.values)?;
            self.range(u32::try_from(dim).unwrap_or(NO_DIMENSION), (start, length), param);
        } else {
            self.region = self.region.slice(dim, u32::try_from(start).unwrap_or(u32::MAX), 1);
        }
        Ok(())
    }

    /// What counts of a side: what the range has, as far as it is in the tensor.
    fn range(&mut self, dim: u32, (start, length): (i64, i64), param: &ParamEntry) {
        let left = i64::from(self.extent(dim as usize)).saturating_sub(start);
        let sides = self.dims.iter().zip(&mut self.counted).zip(param.tile);
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
    fn first(&self) -> u64 {
        let products = self.starts.iter().zip(self.whole.strides());
        products.fold(self.whole.offset(), |sum: u64, (start, stride)| {
            sum.wrapping_add(start.cast_unsigned().wrapping_mul(*stride))
        })
    }

    /// The sides of the tile in its region; false where it leaves its dimensions.
    #[inline]
    fn slice_sides(&mut self, param: &ParamEntry) -> bool {
        for ((dim, counted), reach) in self.dims.into_iter().zip(self.counted).zip(param.reach) {
            if dim == NO_DIMENSION {
                continue;
            }
            let (start, length) = (self.start(dim), u32::from(counted) + u32::from(reach));
            let Ok(first) = u32::try_from(start) else { return false };
            if start.saturating_add(length.into()) > i64::from(self.extent(dim as usize)) {
                return false;
            }
            self.region = self.region.slice(dim as usize, first, length);
        }
        true
    }

    /// The tile leaves its dimensions: that is allowed as long as it stays in the tensor.
    #[cold]
    #[inline(never)]
    fn leave(&mut self, param: &ParamEntry, at: usize) -> Result<(), Stop> {
        let (mut shape, mut strides) = ([1; 2], [1; 2]);
        let sides = self.dims.iter().zip(self.counted).zip(param.reach);
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
        self.region = match region.defect() {
            None => region,
            // The kernel decides which elements it touches, and its core checks each of them.
            Some(_) if param.is_loose => *self.whole,
            Some(_) => {
                let elements = self.whole.elements();
                return Err(Stop::new(Fault::PLAN_TILE, at).detail(self.first(), elements));
            }
        };
        Ok(())
    }
}

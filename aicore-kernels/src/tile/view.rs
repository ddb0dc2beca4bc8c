//! Views of tensors in GM: the tensor's memory, the first element of the tile, strides, and how much of the tile counts.

use core::cell::Cell;
use core::mem;

use super::dtype::{DType, with_type};
use super::element::Element;
use super::fault::FaultCause;
#[cfg(target_arch = "x86_64")]
use super::lines::Lines;

/// A tile of a tensor. Every access is checked against the memory of the whole tensor.
#[derive(Clone, Copy, Debug)]
pub struct TileView<'a> {
    tensor: &'a [Cell<u8>],
    first: i64,
    strides: [i64; 2],
    extents: [u16; 2],
}

impl<'a> TileView<'a> {
    /// A view of `tensor`, from element `first` on, with strides in elements. `extents` are the rows and columns that count:
    /// at most those of the kernel's tile.
    #[must_use]
    pub const fn new(
        tensor: &'a [Cell<u8>],
        first: i64,
        strides: [i64; 2],
        extents: [u16; 2],
    ) -> Self {
        Self { tensor, first, strides, extents }
    }

    /// The rows and columns that count.
    #[must_use]
    pub const fn extents(&self) -> [u16; 2] {
        self.extents
    }

    /// The strides of rows and columns, in elements.
    #[must_use]
    pub const fn strides(&self) -> [i64; 2] {
        self.strides
    }

    /// The address of the first element, for machine code that does not go through this view.
    ///
    /// # Errors
    /// An element of the tile is not in the tensor.
    pub fn address(&self, dtype: DType) -> Result<usize, FaultCause> {
        with_type!(dtype, T => {
            let index = isize::try_from(self.elements::<T>([0, 0])?.first).unwrap_or(0);
            let start = self.tensor.as_ptr().expose_provenance();
            Ok(start.wrapping_add_signed(index.wrapping_mul(size_of::<T>().cast_signed())))
        })
    }

    /// The first element as an unsigned integer: floats truncate and saturate, signed integers keep their bits.
    ///
    /// # Errors
    /// It is not in the tensor.
    pub fn first_as_u64(&self, dtype: DType) -> Result<u64, FaultCause> {
        with_type!(dtype, T => Ok(self.unchecked::<T>([0, 0])?.get([0, 0])?.get().cast()))
    }

    /// This view from an offset on, as elements, all of which are in the tensor.
    pub(super) fn elements<T: Element>(
        &self,
        offset: [u16; 2],
    ) -> Result<TileElements<'a, T>, FaultCause> {
        let found = self.unchecked(offset)?;
        found.check()?;
        Ok(found)
    }

    /// This view from an offset on, as elements, each of which is checked when it is taken.
    pub(super) fn unchecked<T: Element>(
        &self,
        offset: [u16; 2],
    ) -> Result<TileElements<'a, T>, FaultCause> {
        let cells = typed::<T>(self.tensor).ok_or(FaultCause::Misaligned)?;
        let [row, col] = offset.map(i128::from);
        let [down, right] = self.strides;
        let first = i128::from(self.first) + row * i128::from(down) + col * i128::from(right);
        Ok(TileElements { cells, first, strides: self.strides, extents: self.extents })
    }
}

/// The whole elements of a tensor's memory; `None` if it is not aligned to them.
fn typed<T: Element>(bytes: &[Cell<u8>]) -> Option<&[Cell<T>]> {
    let address = bytes.as_ptr().addr();
    if !address.is_multiple_of(align_of::<T>()) {
        return None;
    }
    let elements = bytes.len() / size_of::<T>();
    // SAFETY: the memory is aligned, as was just seen, and as long; every pattern of bits is an element, and cells of bytes may
    // be written as cells of elements.
    Some(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast::<Cell<T>>(), elements) })
}

/// Rows and columns that are turned over at once.
const SQUARE: usize = 8;

/// The elements of a view.
#[derive(Clone, Copy)]
pub(super) struct TileElements<'a, T> {
    cells: &'a [Cell<T>],
    first: i128,
    strides: [i64; 2],
    extents: [u16; 2],
}

impl<'a, T: Element> TileElements<'a, T> {
    /// Whether all corners are in the tensor, and therefore all elements.
    fn check(&self) -> Result<(), FaultCause> {
        let [rows, cols] = self.extents.map(u32::from);
        let (Some(last_row), Some(last_col)) = (rows.checked_sub(1), cols.checked_sub(1)) else {
            return Ok(());
        };
        let corners = [[0, 0], [0, last_col], [last_row, 0], [last_row, last_col]];
        if corners.iter().all(|corner| self.holds(*corner)) {
            Ok(())
        } else {
            Err(self.first_outside())
        }
    }

    fn index(&self, [row, col]: [u32; 2]) -> i128 {
        let [down, right] = self.strides.map(i128::from);
        self.first + i128::from(row) * down + i128::from(col) * right
    }

    fn holds(&self, at: [u32; 2]) -> bool {
        usize::try_from(self.index(at)).is_ok_and(|index| index < self.cells.len())
    }

    /// One element.
    pub(super) fn get(&self, at: [u16; 2]) -> Result<&'a Cell<T>, FaultCause> {
        let at = at.map(u32::from);
        let index = usize::try_from(self.index(at)).ok();
        index.and_then(|index| self.cells.get(index)).ok_or_else(|| self.outside(at))
    }

    /// The first element in reading order that is not in the tensor.
    fn first_outside(&self) -> FaultCause {
        let [rows, cols] = self.extents.map(u32::from);
        let mut all = (0..rows).flat_map(|row| (0..cols).map(move |col| [row, col]));
        self.outside(all.find(|at| !self.holds(*at)).unwrap_or_default())
    }

    fn outside(&self, at: [u32; 2]) -> FaultCause {
        let index = self.index(at);
        let element = i64::try_from(index).unwrap_or(if index < 0 { i64::MIN } else { i64::MAX });
        FaultCause::OutOfTensor { at, element, elements: self.cells.len() }
    }

    /// A row whose elements are contiguous.
    fn contiguous(&self, row: u32) -> Option<&'a [Cell<T>]> {
        let start = usize::try_from(self.index([row, 0])).ok()?;
        let is_dense = self.strides[1] == 1 || self.extents[1] == 1;
        let end = start.checked_add(usize::from(self.extents[1]))?;
        self.cells.get(start..end).filter(|_| is_dense)
    }

    /// The elements of a row, at any stride.
    fn scattered(&self, row: u32) -> impl Iterator<Item = &'a Cell<T>> + use<'a, T> {
        // All elements are inside, as `check` has seen: no sum here leaves the range.
        let start = usize::try_from(self.index([row, 0])).unwrap_or(usize::MAX);
        let step = isize::try_from(self.strides[1]).unwrap_or(0);
        let cells = self.cells;
        (0..self.extents[1])
            .map_while(move |col| cells.get(start.wrapping_add_signed(step * col as isize)))
    }

    /// A column whose elements are contiguous.
    fn column(&self, col: u32) -> Option<&'a [Cell<T>]> {
        let start = usize::try_from(self.index([0, col])).ok()?;
        let end = start.checked_add(usize::from(self.extents[0]))?;
        self.cells.get(start..end)
    }

    /// Copies a tile that is seen by columns, in squares: as many columns as a square has are read side by side.
    fn read_columns(&self, tile: &mut [T], pitch: usize) {
        let cols = u32::from(self.extents[1]);
        for first in (0..cols).step_by(SQUARE) {
            let mut number = first..;
            let columns: [&[Cell<T>]; SQUARE] = [(); SQUARE].map(|()| {
                let col = number.next().unwrap_or(cols);
                self.column(col).filter(|_| col < cols).unwrap_or(&[])
            });
            let count = SQUARE.min((cols - first) as usize);
            let rows = usize::from(self.extents[0]);
            let squares = tile
                .chunks_mut(pitch.saturating_mul(SQUARE).max(SQUARE))
                .zip((0..rows).step_by(SQUARE));
            for (lines, row) in squares {
                let square: [[T; SQUARE]; SQUARE] = columns.map(|column| {
                    let from = column.get(row..).unwrap_or(&[]);
                    match from.first_chunk::<SQUARE>() {
                        Some(from) => core::array::from_fn(|r| from[r].get()),
                        None => {
                            core::array::from_fn(|r| from.get(r).map_or(T::default(), Cell::get))
                        }
                    }
                });
                let there = SQUARE.min(rows - row);
                for (r, line) in lines.chunks_mut(pitch.max(1)).take(there).enumerate() {
                    // A square has as many rows: nothing here may panic.
                    let of_row = |column: &[T; SQUARE]| column.get(r).copied().unwrap_or_default();
                    let line = line.get_mut(first as usize..).unwrap_or(&mut []);
                    if let Some(line) = line.first_chunk_mut::<SQUARE>().filter(|_| count == SQUARE)
                    {
                        *line = square.map(|column| of_row(&column));
                    } else {
                        for (to, column) in line.iter_mut().zip(&square).take(count) {
                            *to = of_row(column);
                        }
                    }
                }
            }
        }
    }

    /// Copies to a tile whose rows are `pitch` elements apart.
    #[inline]
    pub(super) fn read(&self, tile: &mut [T], pitch: usize) {
        let cols = usize::from(self.extents[1]);
        if self.strides[0] == 1 && self.strides[1] != 1 && self.extents[0] > 1 && cols > 1 {
            self.read_columns(tile, pitch);
            return;
        }
        for (row, to) in (0..u32::from(self.extents[0])).zip(tile.chunks_mut(pitch.max(1))) {
            let to = to.get_mut(..cols).unwrap_or(&mut []);
            if let Some(from) = self.contiguous(row) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.get());
            } else {
                to.iter_mut().zip(self.scattered(row)).for_each(|(to, from)| *to = from.get());
            }
        }
    }

    /// Copies from a tile whose rows are `pitch` elements apart.
    #[inline]
    pub(super) fn write(&self, tile: &[T], pitch: usize) {
        for (row, from) in (0..u32::from(self.extents[0])).zip(tile.chunks(pitch.max(1))) {
            if let Some(to) = self.contiguous(row) {
                to.iter().zip(from).for_each(|(to, from)| to.set(*from));
            } else {
                self.scattered(row).zip(from).for_each(|(to, from)| to.set(*from));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<'a> TileElements<'a, f32> {
    /// Their rows in the tensor, if these are laid out as in a tile with rows of `pitch` elements, or if there are `deep` of them.
    pub(super) fn lines(&self, pitch: usize, deep: usize) -> Option<Lines<'a>> {
        let cells = self.cells.get(usize::try_from(self.first).ok()?..)?;
        let [down, right] = self.strides;
        let (extents, down) = (self.extents.map(usize::from), usize::try_from(down).ok()?);
        if right != 1 || down != pitch && extents[0] < deep {
            return None;
        }
        Lines::of_cells(cells, down, extents)
    }
}

/// The memory of a slice as that of a tensor.
#[must_use]
pub fn tensor_of<T: bytemuck::Pod>(elements: &mut [T]) -> &[Cell<u8>] {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(elements);
    let cells = Cell::from_mut(bytes).as_slice_of_cells();
    debug_assert_eq!(cells.len(), mem::size_of_val(cells));
    cells
}

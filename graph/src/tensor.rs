//! Views on tensors: what a task of the streaming runtime reads and writes.
//!
//! A tensor is a range of GM, known by its base address; a view is a strided part of it. Tensors with different bases
//! are taken for disjoint. The operations on views never fail: what does not fit makes the view defective, and
//! the task that uses it is refused with a fault that names the argument.

use core::marker::PhantomData;

use pto_abi::ids::GmAddr;
use pto_abi::limits::MAX_RANK;

use crate::element::ElementType;

/// Bytes of a tensor, at most; sums of a few offsets then fit 63 bits.
pub const MAX_TENSOR_BYTES: u64 = 1 << 58;

/// Why a view cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewDefect {
    /// More than [`MAX_RANK`] dimensions, or a dimension that is not there.
    Rank,
    /// An element of it is outside the tensor, or it has none.
    Range,
    /// The element type is not in the closed set.
    Element,
}

/// Which allocation of the heap a view belongs to: scope depth and serial number of the scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapTag {
    /// Depth of the scope; counted from 1, so that 0 says that the memory is not of the heap.
    pub depth: u32,
    /// Serial number of the scope in its run.
    pub serial: u64,
}

/// A bit that marks the addresses of a recording's tensors, which do not exist yet. Addresses of GM do not have this bit.
pub const PLACEHOLDER: u64 = 0b11 << 62;
/// The depth in the tag of a tensor that a recording leaves open; its serial number is that of the recording.
pub const RECORDED_DEPTH: u32 = u32::MAX;

/// Bytes of a row of [all bytes of a tensor](TensorView::all_bytes), at most.
const MOST_ROW_BYTES: u64 = 1 << 31;

/// A view as another language or a file states it; nothing is proved of it.
#[derive(Clone, Copy, Debug)]
pub struct RawView<'a> {
    /// First byte of the tensor.
    pub base: GmAddr,
    /// Size of the tensor in bytes.
    pub bytes: u64,
    /// An [`ElementType`].
    pub element: u8,
    /// Elements from the tensor's first one to the view's first one.
    pub offset: u64,
    /// Extents.
    pub shape: &'a [u32],
    /// Distances in elements, one for each extent.
    pub strides: &'a [u64],
}

/// A strided part of a tensor, usable within the scope `'s` (`'static`: memory that is not of the heap).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorView<'s> {
    base: GmAddr,
    bytes: u64,
    /// In elements.
    offset: u64,
    /// Bytes of a dense view.
    span: u64,
    strides: [u64; MAX_RANK],
    shape: [u32; MAX_RANK],
    rank: u8,
    element: ElementType,
    dense: bool,
    defect: Option<ViewDefect>,
    heap: HeapTag,
    scope: PhantomData<&'s ()>,
}

impl Default for TensorView<'_> {
    /// One byte at the null address.
    fn default() -> Self {
        Self::dense(GmAddr::NULL, ElementType::U8, &[])
    }
}

impl<'s> TensorView<'s> {
    /// A whole tensor of the host's, in row-major order.
    #[must_use]
    #[inline]
    pub fn dense(base: GmAddr, element: ElementType, shape: &[u32]) -> Self {
        Self::of_heap(base, element, shape, HeapTag::default())
    }

    /// A whole tensor that the heap holds. For implementations of `StreamBuilder`.
    #[must_use]
    #[inline]
    pub fn of_heap(base: GmAddr, element: ElementType, shape: &[u32], heap: HeapTag) -> Self {
        let mut view = Self {
            base,
            bytes: 0,
            offset: 0,
            span: 0,
            strides: [0; MAX_RANK],
            shape: [0; MAX_RANK],
            rank: u8::try_from(shape.len()).unwrap_or(u8::MAX),
            element,
            dense: true,
            defect: None,
            heap,
            scope: PhantomData,
        };
        let (mut bytes, mut fits) = (element.bytes(), true);
        let mut elements = 1_u64;
        for (at, extent) in shape.iter().enumerate().take(MAX_RANK).rev() {
            view.shape[at % MAX_RANK] = *extent;
            view.strides[at % MAX_RANK] = elements;
            elements = elements.wrapping_mul(u64::from(*extent));
            let (product, overflows) = bytes.overflowing_mul(u64::from(*extent));
            fits &= !overflows;
            bytes = product;
        }
        if shape.len() > MAX_RANK {
            (view.rank, view.defect) = (0, Some(ViewDefect::Rank));
        } else if fits && (1..=MAX_TENSOR_BYTES).contains(&bytes) {
            (view.bytes, view.span) = (bytes, bytes);
        } else {
            view.defect = Some(ViewDefect::Range);
        }
        view
    }

    /// All bytes of a tensor.
    #[must_use]
    pub fn all_bytes(base: GmAddr, bytes: u64) -> Self {
        // An extent has 32 bits. Rows may overlap: what counts is which bytes they have.
        let rows = bytes.div_ceil(MOST_ROW_BYTES).max(1);
        let step = bytes / rows;
        let width = bytes - (rows - 1) * step;
        let [rows, width] = [rows, width].map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
        let (shape, strides): (&[u32], &[u64]) = match rows {
            1 => (&[width], &[1]),
            _ => (&[rows, width], &[step, 1]),
        };
        let element = ElementType::U8.get();
        Self::alleged(&RawView { base, bytes, element, offset: 0, shape, strides })
    }

    /// A view as it is stated; whether it can be used is checked where it is used.
    #[must_use]
    pub fn alleged(raw: &RawView<'_>) -> Self {
        let element = ElementType::try_from(raw.element);
        let mut view = Self::dense(raw.base, element.unwrap_or(ElementType::U8), raw.shape);
        view.bytes = raw.bytes;
        if element.is_err() {
            view.defect = Some(ViewDefect::Element);
        } else if raw.shape.len() > MAX_RANK || raw.strides.len() != raw.shape.len() {
            view.defect = Some(ViewDefect::Rank);
        } else {
            view.defect = None;
            view.offset = raw.offset;
            for (stride, given) in view.strides.iter_mut().zip(raw.strides) {
                *stride = *given;
            }
            view.check();
            view.dense = view.defect.is_none() && view.is_in_order();
            view.span = view.elements().wrapping_mul(view.element.bytes());
        }
        view
    }

    /// The view as one of this allocation of the heap; whether that is alive is checked where the view is used.
    #[must_use]
    pub const fn tagged(self, heap: HeapTag) -> Self {
        Self { heap, ..self }
    }

    /// Whether the elements are contiguous, with the last dimension innermost.
    fn is_in_order(&self) -> bool {
        let mut inner = 1;
        self.shape().iter().zip(self.strides()).rev().all(|(extent, stride)| {
            let is_next = *extent == 1 || *stride == inner;
            inner *= u64::from(*extent);
            is_next
        })
    }

    /// `len` elements of dimension `dim`, from `start`.
    #[must_use]
    #[inline]
    pub fn slice(mut self, dim: usize, start: u32, len: u32) -> Self {
        let Some((stride, extent)) = self.dim(dim) else { return self.defective(ViewDefect::Rank) };
        if u64::from(start) + u64::from(len) > u64::from(extent) || len == 0 {
            return self.defective(ViewDefect::Range);
        }
        if len != extent {
            self.dense &= self.is_outermost(dim);
            // What is dense and has nothing outside of the dimension is `extent` times what one step of it holds.
            self.span = u64::from(len).wrapping_mul(stride).wrapping_mul(self.element.bytes());
        }
        self.offset += u64::from(start) * stride;
        self.shape[dim % MAX_RANK] = len;
        self
    }

    /// Every `step`-th element of dimension `dim`, from the first one.
    #[must_use]
    pub fn step(mut self, dim: usize, step: u32) -> Self {
        let Some((stride, extent)) = self.dim(dim) else { return self.defective(ViewDefect::Rank) };
        if step == 0 {
            return self.defective(ViewDefect::Range);
        }
        self.dense &= step == 1;
        self.shape[dim % MAX_RANK] = extent.div_ceil(step);
        self.strides[dim % MAX_RANK] = stride.saturating_mul(u64::from(step));
        self
    }

    /// The dimensions `a` and `b` exchanged.
    #[must_use]
    pub fn transpose(mut self, a: usize, b: usize) -> Self {
        if self.dim(a).is_none() || self.dim(b).is_none() {
            return self.defective(ViewDefect::Rank);
        }
        self.shape.swap(a, b);
        self.strides.swap(a, b);
        self.dense &= a == b;
        self
    }

    /// The same part of the tensor, from the element at `address` on.
    #[must_use]
    pub fn moved_to(mut self, address: GmAddr) -> Self {
        let (offset, size) = (address.0.wrapping_sub(self.base.0), self.element.bytes());
        if !offset.is_multiple_of(size) {
            return self.defective(ViewDefect::Range);
        }
        self.offset = offset.checked_div(size).unwrap_or(0);
        self.check();
        self
    }

    /// The same part of the tensor, so many elements further. Whether it is still in the tensor is the caller's business.
    #[must_use]
    #[inline]
    pub(crate) const fn moved_by(mut self, elements: i64) -> Self {
        self.offset = self.offset.wrapping_add(elements.cast_unsigned());
        self
    }

    /// This part and those that follow at distances of `step` bytes, `times` in all: one more dimension, the outermost one.
    /// `None`: there are as many dimensions as there may be.
    #[must_use]
    pub fn repeated(mut self, step: i64, times: u32) -> Option<Self> {
        self.repeat(step, times).then_some(self)
    }

    /// [`repeated`](Self::repeated), in place; `false`: there are as many dimensions as there may be.
    pub(crate) fn repeat(&mut self, step: i64, times: u32) -> bool {
        if times <= 1 || step == 0 {
            return true;
        }
        if usize::from(self.rank) >= MAX_RANK {
            return false;
        }
        let (distance, size) = (step.unsigned_abs(), self.element.bytes());
        let stride = distance.checked_div(size).unwrap_or(0);
        let back = if step < 0 { stride.checked_mul(u64::from(times) - 1) } else { Some(0) };
        let offset = back.and_then(|back| self.offset.checked_sub(back));
        let Some(offset) = offset.filter(|_| distance.is_multiple_of(size)) else {
            *self = self.defective(ViewDefect::Range);
            return true;
        };
        self.offset = offset;
        // A fixed size: a rotation of as many elements goes through each of them.
        self.shape.copy_within(..MAX_RANK - 1, 1);
        self.strides.copy_within(..MAX_RANK - 1, 1);
        (self.shape[0], self.strides[0]) = (times, stride);
        self.rank += 1;
        self.check();
        self.dense = self.defect.is_none() && self.is_in_order();
        self.span = self.elements().wrapping_mul(size);
        true
    }

    /// Where the view's first element is.
    #[must_use]
    #[inline]
    pub const fn address(&self) -> GmAddr {
        self.base.offset(self.offset.wrapping_mul(self.element.bytes()))
    }

    /// Where the tensor begins: what it is known by.
    #[must_use]
    #[inline]
    pub const fn base(&self) -> GmAddr {
        self.base
    }

    /// Size of the tensor in bytes.
    #[must_use]
    #[inline]
    pub const fn tensor_bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes from the tensor's first one to the view's first one.
    #[must_use]
    #[inline]
    pub const fn offset_bytes(&self) -> u64 {
        self.offset.wrapping_mul(self.element.bytes())
    }

    /// Elements from the tensor's first one to the view's first one.
    #[must_use]
    #[inline]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The type of its elements.
    #[must_use]
    #[inline]
    pub const fn element(&self) -> ElementType {
        self.element
    }

    /// Extents.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &[u32] {
        self.shape.get(..usize::from(self.rank)).unwrap_or(&[])
    }

    /// Distances in elements.
    #[must_use]
    #[inline]
    pub fn strides(&self) -> &[u64] {
        self.strides.get(..usize::from(self.rank)).unwrap_or(&[])
    }

    /// Whether the elements are known to be contiguous in row-major order.
    #[must_use]
    #[inline]
    pub const fn is_dense(&self) -> bool {
        self.dense
    }

    /// Bytes of the view, where it [is dense](Self::is_dense).
    #[must_use]
    #[inline]
    pub const fn span_bytes(&self) -> u64 {
        self.span
    }

    /// How many elements it has.
    #[must_use]
    #[inline]
    pub fn elements(&self) -> u64 {
        self.shape().iter().fold(1, |count, extent| count.wrapping_mul(u64::from(*extent)))
    }

    /// Why it cannot be used; `None`: it can.
    #[must_use]
    #[inline]
    pub const fn defect(&self) -> Option<ViewDefect> {
        self.defect
    }

    /// The allocation that it belongs to; depth 0: none.
    #[must_use]
    #[inline]
    pub const fn heap(&self) -> HeapTag {
        self.heap
    }

    /// The address of one element; `None`: there is none with this index.
    #[must_use]
    pub fn element_address(&self, index: &[u32]) -> Option<GmAddr> {
        if index.len() != usize::from(self.rank) || self.defect.is_some() {
            return None;
        }
        let mut at = self.offset;
        for ((index, extent), stride) in index.iter().zip(self.shape()).zip(self.strides()) {
            if index >= extent {
                return None;
            }
            at += u64::from(*index) * stride;
        }
        Some(self.base.offset(at * self.element.bytes()))
    }

    /// Forgets the scope that it belongs to. A use beyond it is then a fault (`STREAM_STALE_TENSOR`), not a
    /// compile error.
    #[must_use]
    pub const fn detach(self) -> TensorView<'static> {
        TensorView { scope: PhantomData, ..self }
    }

    /// The same view of a tensor that is bound when recording number `serial` is replayed: its binding number `index`.
    #[must_use]
    pub fn placeholder(&self, index: usize, serial: u32) -> TensorView<'static> {
        let reach = |(extent, stride): (&u32, &u64)| u64::from(extent.saturating_sub(1)) * stride;
        let last: u64 = self.shape().iter().zip(self.strides()).map(reach).sum();
        let base = GmAddr(PLACEHOLDER | u64::from(serial & 0xFFF) << 48 | (index as u64) << 8);
        let heap = HeapTag { depth: RECORDED_DEPTH, serial: serial.into() };
        let bytes = (last + 1) * self.element.bytes();
        TensorView { base, bytes, offset: 0, heap, scope: PhantomData, ..*self }
    }

    #[cold]
    pub(crate) const fn defective(mut self, defect: ViewDefect) -> Self {
        if self.defect.is_none() {
            self.defect = Some(defect);
        }
        self
    }

    #[inline]
    fn dim(&self, dim: usize) -> Option<(u64, u32)> {
        Some((*self.strides().get(dim)?, *self.shape().get(dim)?))
    }

    /// Whether all dimensions outside of `dim` have one element.
    #[inline]
    fn is_outermost(&self, dim: usize) -> bool {
        self.shape().iter().take(dim).all(|extent| *extent == 1)
    }

    /// Every element lies in the tensor.
    fn check(&mut self) {
        let mut last = Some(self.offset);
        for (extent, stride) in self.shape().iter().zip(self.strides()) {
            let reach = u64::from(*extent).checked_sub(1).and_then(|n| n.checked_mul(*stride));
            last = last.zip(reach).and_then(|(last, reach)| last.checked_add(reach));
        }
        let end = last.and_then(|last| last.checked_add(1)?.checked_mul(self.element.bytes()));
        if self.bytes > MAX_TENSOR_BYTES || end.is_none_or(|end| end > self.bytes) {
            self.defect = Some(ViewDefect::Range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RawView, TensorView, ViewDefect};
    use crate::element::ElementType;
    use pto_abi::ids::GmAddr;

    fn matrix() -> TensorView<'static> {
        TensorView::dense(GmAddr(0x1000), ElementType::F32, &[4, 6])
    }

    #[test]
    fn a_tile_is_a_strided_part() {
        let tile = matrix().slice(0, 1, 2).slice(1, 3, 2);
        assert_eq!(
            (tile.address(), tile.shape(), tile.strides()),
            (GmAddr(0x1000 + 36), &[2, 2][..], &[6, 1][..])
        );
        assert!(!tile.is_dense() && tile.defect().is_none());
        assert_eq!(tile.element_address(&[1, 1]), Some(GmAddr(0x1000 + 4 * 16)));
        assert_eq!(tile.element_address(&[2, 0]), None);
        assert_eq!(tile.step(1, 2).shape(), &[2, 1]);
        assert_eq!(tile.transpose(0, 1).strides(), &[1, 6]);
    }

    #[test]
    fn rows_of_a_dense_tensor_are_dense() {
        assert!(matrix().slice(0, 1, 2).is_dense());
        assert!(matrix().slice(0, 1, 1).slice(1, 2, 3).is_dense());
        assert!(!matrix().slice(1, 0, 3).is_dense());
        assert!(matrix().slice(1, 0, 6).is_dense());
    }

    #[test]
    fn a_view_that_does_not_fit_is_defective() {
        let defects = [
            matrix().slice(0, 3, 2).defect(),
            matrix().slice(0, 3, 0).defect(),
            matrix().slice(2, 0, 1).defect(),
            matrix().step(0, 0).defect(),
            TensorView::dense(GmAddr(0), ElementType::U8, &[1; 6]).defect(),
            TensorView::dense(GmAddr(0), ElementType::U8, &[3, 0]).defect(),
            TensorView::dense(GmAddr(0), ElementType::U64, &[u32::MAX; 3]).defect(),
        ];
        let (rank, range) = (Some(ViewDefect::Rank), Some(ViewDefect::Range));
        assert_eq!(defects, [range, range, rank, range, rank, range, range]);
    }

    #[test]
    fn a_stated_view_is_checked() {
        let raw = RawView {
            base: GmAddr(0x40),
            bytes: 64,
            element: 0,
            offset: 1,
            shape: &[3, 5],
            strides: &[5, 1],
        };
        let view = TensorView::alleged(&raw);
        assert!(view.defect().is_none() && view.is_dense());
        assert!(!TensorView::alleged(&RawView { shape: &[3, 4], ..raw }).is_dense());
        assert_eq!(
            TensorView::alleged(&RawView { offset: 2, ..raw }).defect(),
            Some(ViewDefect::Range)
        );
        assert_eq!(
            TensorView::alleged(&RawView { element: 99, ..raw }).defect(),
            Some(ViewDefect::Element)
        );
        let few = RawView { strides: &[1], ..raw };
        assert_eq!(TensorView::alleged(&few).defect(), Some(ViewDefect::Rank));
        let far = RawView { strides: &[u64::MAX, 1], ..raw };
        assert_eq!(TensorView::alleged(&far).defect(), Some(ViewDefect::Range));
    }
}

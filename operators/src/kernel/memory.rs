//! The tensors of a task, as its kernel sees them.

use std::marker::PhantomData;

use crate::element::Element;
use crate::tensor::TensorType;

/// A dense input. Its bytes are aligned for its elements, and are as many as the type says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct In<'a> {
    pub(crate) ty: &'a TensorType,
    pub(crate) bytes: &'a [u8],
}

impl<'a> In<'a> {
    /// The elements; `T` is their type, or one with the same bytes.
    pub(crate) fn elements<T: Element>(&self) -> &'a [T] {
        bytemuck::cast_slice(self.bytes)
    }
}

/// A dense output, of which several tasks write different parts at the same time.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    pub(crate) ty: &'a TensorType,
    first: *mut u8,
    bytes: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Out<'a> {
    /// All of a tensor.
    pub(crate) fn of(ty: &'a TensorType, memory: &'a mut [u8]) -> Self {
        Self { ty, first: memory.as_mut_ptr(), bytes: memory.len(), memory: PhantomData }
    }

    /// A tensor in the memory of a device.
    ///
    /// # Safety
    /// So many bytes from `first` on are mapped as long as `'a`, and are aligned for the elements; who has this output reaches, by [`elements`](Self::elements), no element that
    /// another one reads or writes meanwhile.
    pub(crate) const unsafe fn shared(ty: &'a TensorType, first: *mut u8, bytes: usize) -> Self {
        Self { ty, first, bytes, memory: PhantomData }
    }

    /// So many elements from `start` on.
    ///
    /// # Panics
    /// They are not in the tensor.
    pub(crate) fn elements<T: Element>(&mut self, start: usize, count: usize) -> &mut [T] {
        let size = size_of::<T>();
        let is_inside = start
            .checked_add(count)
            .and_then(|end| end.checked_mul(size))
            .is_some_and(|end| end <= self.bytes);
        assert!(is_inside, "elements {start} to {} of {}", start.saturating_add(count), self.ty);
        if count == 0 {
            return &mut [];
        }
        let first = self.first.wrapping_add(start * size);
        assert!(first.addr().is_multiple_of(align_of::<T>()), "elements are aligned");
        // SAFETY: the elements are inside of memory that is mapped and aligned; nobody else has them, because this output is borrowed mutably, and no other task
        // reaches them: that is the contract of `of` (exclusive memory) and of `shared`. Every bit pattern is an element.
        unsafe { std::slice::from_raw_parts_mut(first.cast::<T>(), count) }
    }

    /// All elements.
    pub(crate) fn all<T: Element>(&mut self) -> &mut [T] {
        let count = self.bytes / size_of::<T>();
        self.elements(0, count)
    }
}

//! The descriptor of a tensor, as orchestrations submit it and kernels receive it.

use core::ops::Range;

use pto_graph::ElementType;

/// Dimensions of a tensor.
pub const MAX_DIMS: usize = 5;
/// The id of no task.
pub const NO_TASK: u64 = u64::MAX;

/// A strided view of a buffer, as orchestrations submit it and kernels receive it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct ChipTensor {
    /// First byte of the buffer.
    pub address: u64,
    /// Bytes of the buffer.
    pub bytes: u64,
    /// The task that made it; [`NO_TASK`]: an external tensor.
    pub owner: u64,
    /// Elements from the buffer's first one to the view's first one.
    pub start_offset: u64,
    /// The program's own number.
    pub version: i32,
    /// Dimensions.
    pub ndims: u32,
    /// A [`dtype`](element_of).
    pub dtype: u8,
    /// 1: no edges but the one from the task that made it.
    pub manual_dep: u8,
    /// 1: the elements are contiguous.
    pub is_contiguous: u8,
    /// 0 host, 1 device.
    pub address_space: u8,
    /// Extents.
    pub shapes: [u32; MAX_DIMS],
    /// Elements from the first one to the one after the last.
    pub extent: u64,
    /// Distances in elements.
    pub strides: [u32; MAX_DIMS],
    /// Nothing.
    pub reserved: [u32; 9],
}

impl ChipTensor {
    /// A dense external tensor.
    #[must_use]
    pub fn dense(address: u64, dtype: u8, shape: &[u32]) -> Self {
        let mut tensor = Self {
            address,
            bytes: 0,
            owner: NO_TASK,
            start_offset: 0,
            version: 0,
            ndims: u32::try_from(shape.len()).unwrap_or(u32::MAX),
            dtype,
            manual_dep: 0,
            is_contiguous: 1,
            address_space: 0,
            shapes: [0; MAX_DIMS],
            extent: 1,
            strides: [0; MAX_DIMS],
            reserved: [0; 9],
        };
        for (at, extent) in shape.iter().enumerate().take(MAX_DIMS).rev() {
            tensor.shapes[at] = *extent;
            tensor.strides[at] = u32::try_from(tensor.extent).unwrap_or(u32::MAX);
            tensor.extent = tensor.extent.saturating_mul((*extent).into());
        }
        let element = element_of(dtype).map_or(0, ElementType::bytes);
        tensor.bytes = tensor.extent.saturating_mul(element);
        tensor
    }

    /// The tensor's dimensions; `None`: more than there can be.
    #[must_use]
    pub fn shape(&self) -> Option<&[u32]> {
        self.shapes.get(..usize::try_from(self.ndims).ok()?)
    }

    /// Elements of its buffer, from the view's first one to the one after its last; `None`: it has no elements, more dimensions than there can be, or
    /// reaches further than 64 bits count.
    #[must_use]
    pub fn reach(&self) -> Option<Range<u64>> {
        let mut last = self.start_offset;
        for (extent, stride) in self.shape()?.iter().zip(self.strides) {
            last = last.checked_add(u64::from(extent.checked_sub(1)?) * u64::from(stride))?;
        }
        Some(self.start_offset..last.checked_add(1)?)
    }

    /// One element, as a tensor; `None`: it is not in the tensor, or not in its buffer.
    #[must_use]
    pub fn element(&self, indices: &[u32]) -> Option<Self> {
        let shape = self.shape().filter(|shape| shape.len() == indices.len())?;
        let mut one = *self;
        for ((at, extent), stride) in indices.iter().zip(shape).zip(self.strides) {
            let distance = u64::from(*at) * u64::from(stride);
            one.start_offset = one.start_offset.checked_add(distance).filter(|_| at < extent)?;
        }
        (one.ndims, one.shapes[0], one.strides[0]) = (1, 1, 1);
        (one.extent, one.is_contiguous) = (1, 0);
        let end = one.reach()?.end.checked_mul(element_of(self.dtype)?.bytes())?;
        (end <= self.bytes).then_some(one)
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape().is_some_and(|shape| shape.contains(&0))
    }
}

/// The element type of a number of their list; `None`: it has none.
#[must_use]
pub fn element_of(dtype: u8) -> Option<ElementType> {
    const TYPES: [ElementType; 15] = [
        ElementType::F32,
        ElementType::F16,
        ElementType::I32,
        ElementType::I16,
        ElementType::I8,
        ElementType::U8,
        ElementType::BF16,
        ElementType::I64,
        ElementType::U64,
        ElementType::U16,
        ElementType::U32,
        ElementType::U8,
        ElementType::U8,
        ElementType::U8,
        ElementType::U8,
    ];
    TYPES.get(usize::from(dtype)).copied()
}

const _: () = assert!(size_of::<ChipTensor>() == 128);
const _: () = assert!(core::mem::offset_of!(ChipTensor, extent) == 64);
const _: () = assert!(core::mem::offset_of!(ChipTensor, strides) == 72);

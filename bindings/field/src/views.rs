//! Tensors of the field as views of the engine.

use pto_host::abi::GmAddr;
use pto_host::graph::{ElementType, RawView, TensorView};

use crate::wire::{ChipTensor, MAX_DIMS};

/// The view that a tensor is.
#[inline]
pub(crate) fn view(
    tensor: &ChipTensor,
    shape: &[u32],
    element: ElementType,
) -> TensorView<'static> {
    let base = GmAddr(tensor.address);
    if tensor.is_contiguous == 1 && tensor.start_offset == 0 {
        let view = TensorView::dense(base, element, shape);
        if view.tensor_bytes() == tensor.bytes {
            return view;
        }
    }
    let mut strides = [0; MAX_DIMS];
    for (to, from) in strides.iter_mut().zip(&tensor.strides) {
        *to = u64::from(*from);
    }
    TensorView::alleged(&RawView {
        base,
        bytes: tensor.bytes,
        element: element.get(),
        offset: tensor.start_offset,
        shape,
        strides: strides.get(..shape.len()).unwrap_or(&[]),
    })
}

/// The whole buffer of a tensor, as bytes.
pub(crate) fn whole(tensor: &ChipTensor) -> TensorView<'static> {
    let (base, most) = (GmAddr(tensor.address), u64::from(u32::MAX));
    let rows = tensor.bytes.div_ceil(most).max(1);
    // Rows that together are the buffer: a dimension has 32 bits.
    let (rows, row) = if rows == 1 { (1, tensor.bytes) } else { (tensor.bytes >> 31, 1 << 31) };
    let shape = [rows, row].map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
    TensorView::dense(base, ElementType::U8, &shape)
}

/// The element type by which a scheduler compares an element of this size: signed.
pub(crate) fn signed(element: ElementType) -> ElementType {
    match element.bytes() {
        1 => ElementType::I8,
        2 => ElementType::I16,
        4 => ElementType::I32,
        _ => ElementType::I64,
    }
}

#[cfg(test)]
mod tests {
    use super::{view, whole};
    use crate::wire::ChipTensor;
    use pto_host::graph::ElementType;

    #[test]
    fn a_part_is_a_strided_view() {
        let mut tensor = ChipTensor::dense(0x4000, 0, &[8, 16]);
        assert!(view(&tensor, &[8, 16], ElementType::F32).is_dense());
        (tensor.start_offset, tensor.shapes[0], tensor.shapes[1]) = (2 * 16 + 4, 3, 4);
        tensor.is_contiguous = 0;
        let part = view(&tensor, &[3, 4], ElementType::F32);
        assert_eq!((part.defect(), part.address().0), (None, 0x4000 + 4 * 36));
        assert_eq!(part.strides(), [16, 1]);
        tensor.start_offset = 7 * 16;
        assert!(view(&tensor, &[3, 4], ElementType::F32).defect().is_some());
        assert_eq!(whole(&tensor).tensor_bytes(), 8 * 16 * 4);
    }
}

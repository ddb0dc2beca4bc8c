//! The kernels that collectives ask for, by their func ids in the kernel library, and the call of the one that reduces.

use pto_abi::fault::Fault;
use pto_abi::ids::{FuncId, TaskId};
use pto_abi::kinds::CoreKind;

use crate::reduction::Reduction;
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;
use crate::tensor_task::{Arg, TensorTask};

/// The library's name for what the transfer engine does. It is in the library so that reports can name it.
pub const TRANSFER: FuncId = FuncId(42);
/// The library's kernel that reduces a tensor and parts of as many elements, of any element type.
pub const REDUCE: FuncId = FuncId(43);

/// The largest number of parts that one kernel reduces. It bounds how much of the heap is in use at once.
pub(super) const MOST_PARTS: u32 = 16;
/// Bytes that one core reduces, at least, where several share a tile: 2 us.
const BLOCK_BYTES: u64 = 64 << 10;
/// Cores that share a tile, at most. With 8 a tile of the usual size is reduced in the time that it takes on the wire.
const MOST_BLOCKS: u64 = 8;
/// Elements of a block are a multiple of this, so that no two cores write to the same line.
const ALIGNED: u64 = 64;

/// Elements from one part to the next, of parts with this many elements each: no two of them share a line.
#[must_use]
pub const fn part_stride(elements: u64) -> u64 {
    elements.next_multiple_of(ALIGNED)
}

/// Elements of each block, of a tensor with this many elements of this many bytes that is reduced with this many parts.
const fn elements_of_block(elements: u64, element_bytes: u64, parts: u64) -> u64 {
    let blocks = elements * element_bytes * (parts + 1) / 2 / BLOCK_BYTES;
    match blocks {
        0 | 1 => elements,
        _ if blocks > MOST_BLOCKS => elements.div_ceil(MOST_BLOCKS).next_multiple_of(ALIGNED),
        _ => elements.div_ceil(blocks).next_multiple_of(ALIGNED),
    }
}

/// How many blocks reduce a tensor of this many bytes and so many parts side by side.
pub(super) const fn blocks_of(bytes: u64, parts: u64) -> u64 {
    let each = elements_of_block(bytes, 1, parts);
    if each == 0 { 1 } else { bytes.div_ceil(each) }
}

/// Parts that a kernel reduces one after the other with a tensor, which is an operand between them: the tensor comes after the first
/// `place` parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'v, 's> {
    pub(super) view: &'v TensorView<'s>,
    pub(super) count: u32,
    pub(super) position: u32,
}

/// Submits `out = parts[0] op .. op a op .. op parts[count - 1]`; `out` may be `a`, or apart from all. A large tensor is reduced by several
/// cores.
pub(super) fn reduce<G: StreamBuilder>(
    stream: &mut G,
    (a, parts, out): (&TensorView<'_>, Parts<'_, '_>, &TensorView<'_>),
    reduction: Reduction,
) -> Result<TaskId, Fault> {
    let (elements, element) = (out.elements(), a.element());
    let each = elements_of_block(elements, element.bytes(), parts.count.into());
    let how = u64::from(element.get()) | u64::from(reduction.get()) << 8 | elements << 16;
    let which = u64::from(parts.count) | u64::from(parts.position) << 32;
    let in_place = a.address() == out.address();
    let (first, last) =
        if in_place { (Arg::InOut(a), Arg::NoDep(out)) } else { (Arg::In(a), Arg::Out(out)) };
    let words = [each, how, which].map(Arg::Scalar);
    let args = [first, Arg::In(parts.view), last, words[0], words[1], words[2]];
    let task = TensorTask::new(REDUCE, CoreKind::AIV, &args);
    // A tensor has below 2^32 elements, so that there are at most MOST_BLOCKS blocks.
    let blocks = u32::try_from(elements.div_ceil(each.max(1))).unwrap_or(1);
    stream.submit_tensors(&if blocks > 1 { task.blocks(blocks) } else { task })
}

#[cfg(test)]
mod tests {
    use super::{MOST_BLOCKS, blocks_of, elements_of_block};

    #[test]
    fn blocks_cover_every_element_once() {
        for elements in [0, 1, 63, 16_384, 16_385, 32_768, 40_000, 131_072, 4_000_000_000] {
            for parts in [1, 2, 16] {
                let each = elements_of_block(elements, 4, parts);
                let blocks = elements.div_ceil(each.max(1));
                assert!(blocks <= MOST_BLOCKS && each * blocks >= elements, "{elements}: {each}");
            }
        }
        let blocks = |bytes| blocks_of(bytes, 1);
        assert_eq!([100, 64 << 10, 128 << 10, 512 << 10].map(blocks), [1, 1, 2, 8]);
        assert_eq!([blocks_of(64 << 10, 7), blocks_of(8 << 10, 15)], [4, 1]);
    }
}

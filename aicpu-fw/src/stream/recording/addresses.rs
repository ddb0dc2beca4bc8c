//! The addresses that tensors have while a recording is made, and what they are counted from.
//!
//! A bound tensor and a tensor of the recording's own heap have no memory yet: their addresses are placeholders, which no other
//! tensor has. The tensor map keeps a tensor of the host's under an address of its own for each recording, so that it
//! does not conflict with tasks outside of the recording.

use pto_abi::GmAddr;
use pto_graph::{PLACEHOLDER, TensorView};

use super::buffer::{HEAP, LITERAL, TENSORS};

/// In the base of a tensor of the recording's heap.
const OF_HEAP: u64 = PLACEHOLDER | 1 << 61;
/// In the base under which the map keeps a tensor of the host's while a recording is made.
const OF_HOST: u64 = 1 << 63;
/// Bits of an address of GM.
const ADDRESS: u64 = (1 << 48) - 1;

/// The address of a tensor on the heap of recording `serial`, `offset` bytes from its start.
pub(super) const fn on_heap(serial: u32, offset: u64) -> GmAddr {
    GmAddr(OF_HEAP | mark(serial) | offset & ADDRESS)
}

const fn mark(serial: u32) -> u64 {
    ((serial & 0xFFF) as u64) << 48
}

/// What the address of a tensor is counted from: an index of bases.
pub(in crate::stream) fn base_of(view: &TensorView<'_>) -> u8 {
    match view.base().0 {
        base if base & PLACEHOLDER != PLACEHOLDER => LITERAL,
        base if base & OF_HEAP == OF_HEAP => HEAP,
        base => TENSORS + (base >> 8).to_le_bytes()[0],
    }
}

/// What the address of a view is counted from, and where it is from there.
pub(super) fn offset_from_base(view: &TensorView<'_>) -> (u8, u64) {
    match base_of(view) {
        LITERAL => (LITERAL, view.address().0),
        HEAP => (HEAP, (view.base().0 & ADDRESS).wrapping_add(view.offset_bytes())),
        bound => (bound, view.offset_bytes()),
    }
}

/// The address under which the map gets to see a tensor in recording `serial`.
pub(super) fn seen_base(serial: u32, view: &TensorView<'_>) -> u64 {
    let base = view.base().0;
    match base_of(view) {
        LITERAL => OF_HOST | mark(serial) | base & ADDRESS,
        _ => base,
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{HEAP, LITERAL, base_of, offset_from_base, on_heap, seen_base};
    use pto_abi::GmAddr;
    use pto_graph::{ElementType, TensorView};

    #[test]
    fn a_tensor_of_the_heap_is_counted_from_its_start() {
        let view = TensorView::dense(on_heap(0x1234, 640), ElementType::U8, &[16]);
        assert_eq!((base_of(&view), offset_from_base(&view)), (HEAP, (HEAP, 640)));
        assert_eq!(seen_base(0x1234, &view), view.base().0);
    }

    #[test]
    fn a_tensor_of_the_host_is_seen_apart_from_that_of_the_run() {
        let view = TensorView::dense(GmAddr(0x8000_1000), ElementType::U8, &[16]);
        assert_eq!((base_of(&view), offset_from_base(&view)), (LITERAL, (LITERAL, 0x8000_1000)));
        let seen = [1, 2].map(|serial| seen_base(serial, &view));
        assert!(seen[0] != seen[1] && !seen.contains(&0x8000_1000));
    }
}

//! Tensors of collectives, cut: into a part for each rank, and into tiles.

use pto_abi::fault::Fault;

use crate::collective::part_bound;
use crate::tensor::{RawView, TensorView};

/// The elements of a dense view in one dimension.
pub(super) fn flat<'s>(view: &TensorView<'s>) -> Result<TensorView<'s>, Fault> {
    let elements = u32::try_from(view.elements()).map_err(|_| Fault::TRANSFER_TENSOR)?;
    if !view.is_dense() || view.defect().is_some() {
        return Err(Fault::TRANSFER_TENSOR);
    }
    let raw = RawView {
        base: view.base(),
        bytes: view.tensor_bytes(),
        element: view.element().get(),
        offset: view.offset(),
        shape: &[elements],
        strides: &[1],
    };
    Ok(TensorView::alleged(&raw).tagged(view.heap()))
}

/// The elements of a flat view from `start` to `end`; `None`: there are none.
pub(super) fn range<'s>(view: &TensorView<'s>, start: u64, end: u64) -> Option<TensorView<'s>> {
    let length = u32::try_from(end.checked_sub(start)?).ok().filter(|length| *length > 0)?;
    Some(view.slice(0, u32::try_from(start).ok()?, length))
}

/// The parts `from .. to` of a flat view that is divided among `size` ranks; `None`: they have no elements.
pub(super) fn parts<'s>(
    view: &TensorView<'s>,
    (from, to): (u32, u32),
    size: u32,
) -> Option<TensorView<'s>> {
    let elements = view.elements();
    range(view, part_bound(elements, from, size), part_bound(elements, to, size))
}

/// Tiles of a view, at most: a tag has 16 bits for their numbers.
const MOST_TILES: u64 = 1 << 16;

/// How many tiles of this many bytes a flat view has, as even as they go; larger ones where there would be too many.
pub(super) fn tiles_of(view: &TensorView<'_>, tile_bytes: u64) -> u32 {
    let bytes = view.elements() * view.element().bytes();
    let count = bytes.div_ceil(tile_bytes.max(1)).min(MOST_TILES);
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// One of these tiles; `None`: there are fewer.
pub(super) fn tile<'s>(view: &TensorView<'s>, tile_bytes: u64, at: u32) -> Option<TensorView<'s>> {
    let count = tiles_of(view, tile_bytes);
    if at < count { parts(view, (at, at + 1), count) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{flat, parts, tile, tiles_of};
    use crate::{ElementType, TensorView};
    use pto_abi::fault::Fault;
    use pto_abi::ids::GmAddr;

    #[test]
    fn parts_and_tiles_cover_every_element_once() {
        for elements in [1, 2, 7, 64, 1000] {
            let view = TensorView::dense(GmAddr(0x1000), ElementType::F16, &[elements]);
            for size in [1, 2, 3, 8, 13] {
                let mut next = 0x1000;
                for rank in 0..size {
                    let Some(part) = parts(&view, (rank, rank + 1), size) else { continue };
                    for at in 0..tiles_of(&part, 32) {
                        let tile = tile(&part, 32, at).unwrap();
                        assert_eq!(tile.address().0, next);
                        assert!(tile.elements() <= 16);
                        next += 2 * tile.elements();
                    }
                    assert!(tile(&part, 32, tiles_of(&part, 32)).is_none());
                }
                assert_eq!(next, 0x1000 + 2 * u64::from(elements));
            }
        }
    }

    #[test]
    fn a_view_is_flat_where_it_is_dense() {
        let view = TensorView::dense(GmAddr(0x1000), ElementType::F32, &[4, 6]);
        let rows = flat(&view.slice(0, 1, 2)).unwrap();
        assert_eq!((rows.shape(), rows.address().0), (&[12][..], 0x1000 + 24));
        assert_eq!(flat(&view.slice(1, 1, 2)).err(), Some(Fault::TRANSFER_TENSOR));
    }
}

//! Loads and stores: between a view of a tensor and a tile.

use super::element::Element;
use super::fault::FaultCause;
use super::view::TileView;

/// A tile, and how far its rows are apart.
pub(super) struct Tile<'a, T> {
    pub(super) elements: &'a mut [T],
    pub(super) pitch: usize,
}

/// Reads a tile.
pub(super) fn load<T: Element>(
    tile: Tile<T>,
    view: &TileView,
    offset: [u16; 2],
    mask: Option<&[u8]>,
) -> Result<(), FaultCause> {
    match mask {
        None => view.elements::<T>(offset)?.read(tile.elements, tile.pitch),
        Some(mask) => {
            let elements = view.unchecked::<T>(offset)?;
            tile.elements.fill(T::default());
            for (at, index) in masked(mask, tile.pitch, view.extents()) {
                let cell = elements.get(at)?;
                if let Some(to) = tile.elements.get_mut(index) {
                    *to = cell.get();
                }
            }
        }
    }
    Ok(())
}

/// Writes a tile.
pub(super) fn store<T: Element>(
    (tile, pitch): (&[T], usize),
    view: &TileView,
    offset: [u16; 2],
    mask: Option<&[u8]>,
) -> Result<(), FaultCause> {
    let Some(mask) = mask else {
        view.elements::<T>(offset)?.write(tile, pitch);
        return Ok(());
    };
    let elements = view.unchecked::<T>(offset)?;
    // A store that faults writes nothing.
    for (at, _) in masked(mask, pitch, view.extents()) {
        elements.get(at)?;
    }
    for (at, index) in masked(mask, pitch, view.extents()) {
        if let Some(from) = tile.get(index) {
            elements.get(at)?.set(*from);
        }
    }
    Ok(())
}

/// Where the mask is not zero: row and column, and the index in the tile.
fn masked(
    mask: &[u8],
    pitch: usize,
    [rows, cols]: [u16; 2],
) -> impl Iterator<Item = ([u16; 2], usize)> {
    let all = (0..rows).flat_map(move |row| (0..cols).map(move |col| [row, col]));
    all.filter_map(move |[row, col]| {
        let index = usize::from(row) * pitch + usize::from(col);
        mask.get(index).is_some_and(|mask| *mask != 0).then_some(([row, col], index))
    })
}

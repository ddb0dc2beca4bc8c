//! Tile kernels as bytes: the machine accepts or refuses them, and what it accepts runs on tensors that end where the tile does, or a few
//! elements before. Nothing panics, nothing outside a tensor changes, and every fault has a sentence.

use std::cell::Cell;

use pto_host::workloads::tile::view::tensor_of;
use pto_host::workloads::tile::{Call, Interpreter, Kernel, TileType, TileView};

/// Words around the memory of a tensor.
const GUARD: usize = 8;
/// What a word there holds.
const UNTOUCHED: u64 = 0x5A5A_5A5A_5A5A_5A5A;
/// Kernels whose frame or tensors are larger are accepted and not run.
const MOST_WORDS: usize = 1 << 16;

/// Reads the bytes as a kernel, and runs it.
pub(super) fn run(bytes: &[u8]) {
    let kernel = match Kernel::accept(bytes) {
        Ok(kernel) => kernel,
        Err(error) => return assert!(error.to_string().ends_with('.'), "no sentence: {error}"),
    };
    let tiles: Vec<TileType> =
        kernel.params().iter().filter_map(|param| param.tensor().map(|(_, tile)| tile)).collect();
    let words = |tile: &TileType| (tile.elements() * tile.dtype.bytes()).div_ceil(8);
    let all = tiles.iter().map(words).fold(kernel.scratch_words(), usize::saturating_add);
    if all > MOST_WORDS {
        return;
    }
    // Whole tensors, and ones that are short by up to seven elements: of the bytes, so that a finding comes again.
    let short = usize::from(bytes.last().copied().unwrap_or(0) % 8);
    for missing in [0, short] {
        run_on(&kernel, &tiles, missing);
    }
}

fn run_on(kernel: &Kernel, tiles: &[TileType], missing: usize) {
    let inside = |tile: &TileType| tile.elements().saturating_sub(missing) * tile.dtype.bytes();
    let mut memories: Vec<Vec<u64>> =
        tiles.iter().map(|tile| vec![UNTOUCHED; inside(tile).div_ceil(8) + 2 * GUARD]).collect();
    let views: Vec<TileView<'_>> = memories
        .iter_mut()
        .zip(tiles)
        .map(|(memory, tile)| {
            let cells: &[Cell<u8>] = tensor_of(memory);
            let begin = 8 * GUARD;
            let part = cells.get(begin..begin + inside(tile)).unwrap_or(&[]);
            TileView::new(part, 0, [i64::from(tile.cols), 1], [tile.rows, tile.cols])
        })
        .collect();
    let scalars = vec![3; kernel.params().len() - tiles.len()];
    let call = Call { tensors: &views, scalars: &scalars };
    let mut scratch = vec![0; kernel.scratch_words()];
    if let Err(fault) = Interpreter::new().run(kernel, &call, &mut scratch) {
        assert!(!fault.to_string().is_empty());
    }
    drop(views);
    for (memory, tile) in memories.iter().zip(tiles) {
        let bytes: &[u8] = bytemuck::cast_slice(memory);
        let (before, rest) = bytes.split_at(8 * GUARD);
        let after = rest.get(inside(tile)..).unwrap_or(&[]);
        let is_untouched = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0x5A);
        assert!(is_untouched(before) && is_untouched(after), "a kernel wrote outside its tensor");
    }
}

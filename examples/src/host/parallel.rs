//! References on all processors, so that checking a run does not take longer than running it.

use std::thread;
use std::vec::Vec;

/// Fills `results` by calling `row` with its index and its part, `width` items each, on all processors.
///
/// # Panics
/// `width` is zero, or `row` panics.
pub fn rows<T: Send>(results: &mut [T], width: usize, row: impl Fn(usize, &mut [T]) + Sync) {
    let count = results.len().div_ceil(width);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let each = count.div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = results.chunks_mut(each * width).enumerate().collect();
        for (part, items) in parts {
            let row = &row;
            scope.spawn(move || {
                for (index, items) in items.chunks_mut(width).enumerate() {
                    row(part * each + index, items);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::rows;
    use std::vec;

    #[test]
    fn every_row_is_computed_once() {
        for count in [0, 1, 2, 3, 7, 64] {
            let mut results = vec![0; count * 3];
            rows(&mut results, 3, |row, items| items.iter_mut().for_each(|item| *item += row + 1));
            assert!(results.iter().enumerate().all(|(i, item)| *item == i / 3 + 1), "{count}");
        }
    }
}

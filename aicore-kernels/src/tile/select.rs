//! Columns taken apart and put together, and shapes made larger.

use super::element::Element;
use super::elementwise::Grid;

/// Every second column, from `first` on.
pub(super) fn slice<T: Element>(out: &mut [T], x: &[T], grid: Grid, out_grid: Grid, first: usize) {
    for (out, x) in out_grid.rows_of_mut(out).zip(grid.rows_of(x)) {
        for (out, x) in out.iter_mut().zip(x.iter().skip(first).step_by(2)) {
            *out = *x;
        }
    }
}

/// Columns of `a` and `b` in turn.
pub(super) fn interleave<T: Element>(
    out: &mut [T],
    (a, b): (&[T], &[T]),
    grid: Grid,
    out_grid: Grid,
) {
    let operands = grid.rows_of(a).zip(grid.rows_of(b));
    for (out, (a, b)) in out_grid.rows_of_mut(out).zip(operands) {
        for (out, (a, b)) in out.as_chunks_mut::<2>().0.iter_mut().zip(a.iter().zip(b)) {
            *out = [*a, *b];
        }
    }
}

/// Repeats what has one row or one column.
pub(super) fn broadcast<T: Element>(out: &mut [T], x: &[T], grid: Grid, out_grid: Grid) {
    for (number, out) in out_grid.rows_of_mut(out).enumerate() {
        let row = if grid.rows == 1 { 0 } else { number };
        let from = grid.rows_of(x).nth(row).unwrap_or(&[]);
        match from {
            [single] => out.fill(*single),
            _ => out.iter_mut().zip(from).for_each(|(out, x)| *out = *x),
        }
    }
}

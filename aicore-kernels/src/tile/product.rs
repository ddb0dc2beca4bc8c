//! Matrix products.
//!
//! The right operand is packed in panels of [`COLS`] columns, the left one in strips of [`ROWS`] rows, both in the type of the
//! sums: `f64` for floats, in which a product of two `f32` is exact, so that a sum is rounded as a whole and does not depend
//! on whether the machine fuses multiplication and addition. A block of [`ROWS`] by [`COLS`] sums stays in registers.

use super::arithmetic::{Number, Sum};
use super::element::Element;
use super::elementwise::Grid;
use super::operands::{LARGEST, Operands, SumOf, finish};
use super::reduce::summand;
use super::wide::Wide;

/// Rows of a block of sums.
const ROWS: usize = 4;
/// Columns of a block of sums: with [`ROWS`], eight of the sixteen registers of AVX2 hold sums of `f64`.
const COLS: usize = 8;
const _: () = assert!(ROWS <= LARGEST[0] && COLS <= LARGEST[1]);

/// `out = a b`, plus `acc` if there is one.
pub(super) fn product<T: Element, S: Element>(wide: Wide, operands: Operands<T, S>)
where
    S::Wide: Number,
{
    wide.run(|| {
        let Operands { out, a: (a, a_grid), b: (b, b_grid), acc, out_pitch, work } = operands;
        let depth = a_grid.cols;
        let strips_len = depth * a_grid.rows.next_multiple_of(ROWS);
        let work: &mut [SumOf<S>] = bytemuck::cast_slice_mut(work);
        let Some((strips, rest)) = work.split_at_mut_checked(strips_len) else { return };
        let Some(panel) = rest.get_mut(..depth * COLS) else { return };
        pack_left::<T, S>(strips, a, a_grid);
        let panel = panel.as_chunks_mut::<COLS>().0;
        for col in (0..b_grid.cols).step_by(COLS) {
            pack_right::<T, S>(panel, b, b_grid, col);
            let cols = COLS.min(b_grid.cols - col);
            for row in (0..a_grid.rows).step_by(ROWS) {
                // Where nothing counts of the depth, the strip is empty and the sums are zero.
                let strip = strips.get(row * depth..(row + ROWS) * depth).unwrap_or(&[]);
                let sums = block(strip.as_chunks::<ROWS>().0, panel);
                let rows = ROWS.min(a_grid.rows - row);
                for (r, sums) in sums.iter().enumerate().take(rows) {
                    let at = (row + r) * out_pitch + col;
                    finish::<S, COLS>(out, acc, at..at + cols, sums);
                }
            }
        }
    });
}

/// Strips of rows, element `p` of every row of a strip side by side; rows that are not there are zero.
#[inline(always)]
fn pack_left<T: Element, S: Element>(strips: &mut [SumOf<S>], a: &[T], grid: Grid) {
    // Never zero, also where a product wraps: the compiler sees that nothing here panics.
    let strip = grid.cols.wrapping_mul(ROWS).max(1);
    for (strip, row) in strips.chunks_exact_mut(strip).zip((0..grid.rows).step_by(ROWS)) {
        for r in 0..ROWS {
            let start = (row + r) * grid.pitch;
            let is_there = row + r < grid.rows;
            let from = a.get(start..start + grid.cols).filter(|_| is_there).unwrap_or(&[]);
            for (p, to) in strip.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
                to[r] = from.get(p).map_or(SumOf::<S>::default(), |x| summand::<T, S>(*x));
            }
        }
    }
}

/// Columns `col ..` of every row; columns that are not there are zero.
#[inline(always)]
fn pack_right<T: Element, S: Element>(
    panel: &mut [[SumOf<S>; COLS]],
    b: &[T],
    grid: Grid,
    col: usize,
) {
    for (to, from) in panel.iter_mut().zip(grid.rows_of(b)) {
        let from = from.get(col..).unwrap_or(&[]);
        if let Some(from) = from.first_chunk::<COLS>() {
            for (to, x) in to.iter_mut().zip(from) {
                *to = summand::<T, S>(*x);
            }
        } else {
            *to = [SumOf::<S>::default(); COLS];
            for (to, x) in to.iter_mut().zip(from) {
                *to = summand::<T, S>(*x);
            }
        }
    }
}

/// The sums of one block.
// Not inlined, so that the sums leave as whole rows; see `matmul::tile` of the kernel library.
#[inline(always)]
fn block<A: Sum>(strip: &[[A; ROWS]], panel: &[[A; COLS]]) -> [[A; COLS]; ROWS] {
    let mut sums = [[A::default(); COLS]; ROWS];
    for (a, b) in strip.iter().zip(panel) {
        for (sums, a) in sums.iter_mut().zip(a) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = sum.plus(a.times(*b));
            }
        }
    }
    sums
}

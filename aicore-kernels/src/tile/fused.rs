//! Matrix products of floats with fused multiply-adds, on x86-64.
//!
//! The product of two numbers of at most 24 bits is exact in `f64`, so that a fused multiply-add gives the bits of a multiplication
//! and an addition: these blocks only take less time than those of `product.rs`. The left operand stands row by row, the right one
//! in panels of as many columns as a block has; a block of sums stays in registers.

use core::arch::x86_64::{
    __m256d, __m512d, _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_set1_pd,
    _mm256_setzero_pd, _mm256_storeu_pd, _mm512_cvtps_pd, _mm512_fmadd_pd, _mm512_loadu_pd,
    _mm512_set1_pd, _mm512_setzero_pd, _mm512_storeu_pd,
};

use super::dtype::DType;
use super::element::Element;
use super::elementwise::Grid;
use super::operands::{LARGEST, Operands, SumOf, finish};
use super::reduce::summand;
use super::wide::Wide;

/// A function that gives the sums of a block: of rows, one after the other, with the panel.
type Block<const R: usize, const C: usize> = fn(&[f64], &[[f64; C]]) -> [[f64; C]; R];

/// A function that gives the sums of one block, whose right operand is used once and therefore widened where it stands: the elements of `f32`
/// from the first column on, how far their rows are apart, the depth, and how many rows of the left operand count. `None`: that is not for it.
type Narrow<const R: usize, const C: usize> =
    fn(&[f64], &[f32], [usize; 3]) -> Option<[[f64; C]; R]>;

/// Whether this machine has blocks for products whose sums become elements of `S`.
pub(super) fn fits<S: Element>(wide: Wide) -> bool {
    wide != Wide::Target && S::DTYPE == DType::F32
}

/// `out = a b`, plus `acc` if there is one, where the product [`fits`]. Of AVX-512 sixteen of 32 registers hold sums, of AVX2 eight of
/// sixteen.
pub(super) fn product<T: Element, S: Element>(wide: Wide, operands: Operands<T, S>) {
    match wide {
        Wide::Target => {}
        Wide::Avx2 => wide.run(
            #[inline(always)]
            || blocks::<T, S, 4, 8>(operands, block_256, |_, _, _| None),
        ),
        Wide::Avx512 => wide.run_widest(
            #[inline(always)]
            || blocks::<T, S, 8, 16>(operands, block_512, narrow_512),
        ),
    }
}

#[inline(always)]
fn blocks<T: Element, S: Element, const R: usize, const C: usize>(
    operands: Operands<T, S>,
    block: Block<R, C>,
    narrow: Narrow<R, C>,
) {
    const { assert!(R <= LARGEST[0] && C <= LARGEST[1]) };
    let Operands { out, a: (a, a_grid), b: (b, b_grid), acc, out_pitch, work } = operands;
    let depth = a_grid.cols;
    let rows_len = depth * a_grid.rows.next_multiple_of(R);
    let work: &mut [SumOf<S>] = bytemuck::cast_slice_mut(work);
    let Some((rows, rest)) = work.split_at_mut_checked(rows_len) else { return };
    let Some(panel) = rest.get_mut(..depth * C) else { return };
    widen::<T, S>(rows, a, a_grid);
    let rows: &[f64] = bytemuck::cast_slice(rows);
    let panel = panel.as_chunks_mut::<C>().0;
    let is_narrow = T::DTYPE == DType::F32 && a_grid.rows <= R && b_grid.rows == depth;
    let singles: Option<&[f32]> = if is_narrow { bytemuck::try_cast_slice(b).ok() } else { None };
    for col in (0..b_grid.cols).step_by(C) {
        let cols = C.min(b_grid.cols - col);
        let singles = singles.and_then(|b| b.get(col..)).filter(|_| cols == C);
        if let Some(sums) =
            singles.and_then(|b| narrow(rows, b, [b_grid.pitch, depth, a_grid.rows]))
        {
            let sums: &[[SumOf<S>; C]; R] = bytemuck::cast_ref(&sums);
            for (r, sums) in sums.iter().enumerate().take(a_grid.rows) {
                let at = r * out_pitch + col;
                finish::<S, C>(out, acc, at..at + cols, sums);
            }
            continue;
        }
        pack::<T, S, C>(panel, b, b_grid, col);
        let panel: &[[f64; C]] = bytemuck::cast_slice(panel);
        for row in (0..a_grid.rows).step_by(R) {
            // Where nothing counts of the depth, the rows are empty and the sums are zero.
            let sums = block(rows.get(row * depth..(row + R) * depth).unwrap_or(&[]), panel);
            let sums: &[[SumOf<S>; C]; R] = bytemuck::cast_ref(&sums);
            for (r, sums) in sums.iter().enumerate().take(R.min(a_grid.rows - row)) {
                let at = (row + r) * out_pitch + col;
                finish::<S, C>(out, acc, at..at + cols, sums);
            }
        }
    }
}

/// The rows of the left operand; those that are not there are zero.
#[inline(always)]
fn widen<T: Element, S: Element>(rows: &mut [SumOf<S>], a: &[T], grid: Grid) {
    let (there, beyond) = rows.split_at_mut(grid.cols * grid.rows);
    for (to, from) in there.chunks_exact_mut(grid.cols.max(1)).zip(grid.rows_of(a)) {
        for (to, x) in to.iter_mut().zip(from) {
            *to = summand::<T, S>(*x);
        }
    }
    beyond.fill(SumOf::<S>::default());
}

/// Columns `col ..` of every row; columns that are not there are zero.
#[inline(always)]
fn pack<T: Element, S: Element, const C: usize>(
    panel: &mut [[SumOf<S>; C]],
    b: &[T],
    grid: Grid,
    col: usize,
) {
    for (to, from) in panel.iter_mut().zip(grid.rows_of(b)) {
        let from = from.get(col..).unwrap_or(&[]);
        if let Some(from) = from.first_chunk::<C>() {
            for (to, x) in to.iter_mut().zip(from) {
                *to = summand::<T, S>(*x);
            }
        } else {
            *to = [SumOf::<S>::default(); C];
            for (to, x) in to.iter_mut().zip(from) {
                *to = summand::<T, S>(*x);
            }
        }
    }
}

/// Declares a block of `$rows` rows and of `$vectors` vectors of `$lanes` columns.
macro_rules! block {
    ($name:ident, $inner:ident, $features:literal, $vector:ident, $lanes:literal, $rows:literal x $vectors:literal,
     $zero:ident, $load:ident, $all:ident, $fused:ident, $store:ident) => {
        fn $name(
            rows: &[f64],
            panel: &[[f64; $lanes * $vectors]],
        ) -> [[f64; $lanes * $vectors]; $rows] {
            if rows.len() < $rows * panel.len() {
                return [[0.0; $lanes * $vectors]; $rows];
            }
            // SAFETY: `Wide` says that the machine has the instructions; there is a row of the panel's depth for each of the block.
            unsafe { $inner(rows, panel) }
        }

        /// # Safety
        /// There are as many elements of `rows` as the block has rows, times the depth of the panel.
        #[target_feature(enable = $features)]
        unsafe fn $inner(
            rows: &[f64],
            panel: &[[f64; $lanes * $vectors]],
        ) -> [[f64; $lanes * $vectors]; $rows] {
            let depth = panel.len();
            let mut sums: [[$vector; $vectors]; $rows] = [[$zero(); $vectors]; $rows];
            for (p, b) in panel.iter().enumerate() {
                let mut columns = [$zero(); $vectors];
                for (columns, b) in columns.iter_mut().zip(b.as_chunks::<$lanes>().0) {
                    // SAFETY: the chunk has so many elements.
                    *columns = unsafe { $load(b.as_ptr()) };
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: `r` is below the rows and `p` below the depth, and the caller promises the elements.
                    let a = $all(unsafe { *rows.get_unchecked(r * depth + p) });
                    for (sum, b) in sums.iter_mut().zip(columns) {
                        *sum = $fused(a, b, *sum);
                    }
                }
            }
            let mut found = [[0.0; $lanes * $vectors]; $rows];
            for (found, sums) in found.iter_mut().zip(sums) {
                for (found, sum) in found.as_chunks_mut::<$lanes>().0.iter_mut().zip(sums) {
                    // SAFETY: the chunk has so many elements.
                    unsafe { $store(found.as_mut_ptr(), sum) }
                }
            }
            found
        }
    };
}

block!(block_512, block_512_inner, "avx512f", __m512d, 8, 8 x 2,
    _mm512_setzero_pd, _mm512_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_storeu_pd);
block!(block_256, block_256_inner, "avx2,fma", __m256d, 4, 4 x 2,
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_storeu_pd);

/// See [`Narrow`].
fn narrow_512(
    rows: &[f64],
    b: &[f32],
    [pitch, depth, count]: [usize; 3],
) -> Option<[[f64; 16]; 8]> {
    let reach = depth.checked_sub(1)?.checked_mul(pitch)?.checked_add(16)?;
    if b.len() < reach || rows.len() < 8 * depth {
        return None;
    }
    let mut found = [[0.0; 16]; 8];
    if let Some(found) = found.first_chunk_mut::<4>().filter(|_| count <= 4) {
        // SAFETY: `Wide` says that the machine has the instructions; both operands are as long as was seen.
        *found = unsafe { narrow_512_inner(rows, b, [pitch, depth]) };
    } else {
        // SAFETY: as above.
        found = unsafe { narrow_512_inner(rows, b, [pitch, depth]) };
    }
    Some(found)
}

/// # Safety
/// `rows` has `R` times as many elements as the depth; `b` has sixteen from every multiple of the pitch on, as many as the depth.
#[target_feature(enable = "avx512f")]
unsafe fn narrow_512_inner<const R: usize>(
    rows: &[f64],
    b: &[f32],
    [pitch, depth]: [usize; 2],
) -> [[f64; 16]; R] {
    let mut sums = [[_mm512_setzero_pd(); 2]; R];
    for p in 0..depth {
        let mut columns = [_mm512_setzero_pd(); 2];
        for (half, columns) in columns.iter_mut().enumerate() {
            // SAFETY: the caller promises sixteen elements from here on.
            let from = unsafe { b.as_ptr().add(p * pitch + 8 * half) };
            // SAFETY: eight of them.
            *columns = _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(from) });
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `r` is below `R` and `p` below the depth.
            let a = _mm512_set1_pd(unsafe { *rows.get_unchecked(r * depth + p) });
            for (sum, b) in sums.iter_mut().zip(columns) {
                *sum = _mm512_fmadd_pd(a, b, *sum);
            }
        }
    }
    let mut found = [[0.0; 16]; R];
    for (found, sums) in found.iter_mut().zip(sums) {
        for (found, sum) in found.as_chunks_mut::<8>().0.iter_mut().zip(sums) {
            // SAFETY: the chunk has so many elements.
            unsafe { _mm512_storeu_pd(found.as_mut_ptr(), sum) }
        }
    }
    found
}

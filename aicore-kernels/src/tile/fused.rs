//! Matrix products of floats with fused multiply-adds, on x86-64.
//!
//! The product of two numbers of at most 24 bits is exact in `f64`, so that a fused multiply-add gives the bits of a multiplication
//! and an addition: these blocks only take less time than those of `product.rs`. The left operand is stored row by row, the right one
//! in panels of as many columns as a block has, or where it is; a block of sums stays in registers, until it is rounded.

use core::arch::x86_64::{
    __m256d, __m512d, _MM_HINT_T1, _mm_loadu_ps, _mm_prefetch, _mm_storeu_ps, _mm256_add_pd,
    _mm256_cvtpd_ps, _mm256_cvtps_pd, _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_loadu_ps,
    _mm256_set1_pd, _mm256_setzero_pd, _mm256_storeu_ps, _mm512_add_pd, _mm512_cvtpd_ps,
    _mm512_cvtps_pd, _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_set1_pd, _mm512_setzero_pd,
    _mm512_storeu_pd,
};

use super::dtype::DType;
use super::element::Element;
use super::elementwise::Grid;
use super::lines::Lines;
use super::operands::{LARGEST, Operands};
use super::wide::Wide;

/// Where the sums of a block go, rounded: rows that are `pitch` apart.
struct Out<'o> {
    elements: &'o mut [f32],
    pitch: usize,
    /// They are added to this, which is laid out like `elements`.
    acc: Option<&'o [f32]>,
}

impl Out<'_> {
    /// Whether there is room for this many rows and columns.
    fn has(&self, [rows, cols]: [usize; 2]) -> bool {
        let needed = rows.saturating_sub(1).saturating_mul(self.pitch).saturating_add(cols);
        self.elements.len() >= needed && self.acc.is_none_or(|acc| acc.len() >= needed)
    }
}

/// A function that makes a block: of rows, one after the other, with the panel.
type Block<const C: usize> = fn(&[f64], &[[f64; C]], Out<'_>);

/// Makes products of few rows, whose right operand is used once and therefore widened in place: from the rows of the left operand, and how many
/// of them count. It has the memory of a panel. How many columns it has made, from the first one on.
type Narrow<const C: usize> =
    fn(&mut Out<'_>, (&[f64], usize), &Lines<'_>, &mut [[f64; C]]) -> usize;

/// Whether this machine has blocks for products whose sums become elements of `S`.
pub(super) fn fits<S: Element>(wide: Wide) -> bool {
    wide != Wide::Target && S::DTYPE == DType::F32
}

/// Whether products with [few rows](LARGEST) read the right operand in place.
pub(super) fn reads_in_place(wide: Wide) -> bool {
    wide == Wide::Avx512
}

/// Rows of the smaller of the blocks whose right operand is read in place.
const FEW: usize = 4;
/// Rows of the right operand that such a block goes down before the next columns have their turn: all of a row come into a cache together.
const PIECE: usize = 32;
/// From this many rows on, a right operand is read in place however far its rows are apart: of fewer, too many would be waited for.
pub(super) const DEEP: usize = 4 * PIECE;

/// `out = a b`, plus `acc` if there is one, where the product [`fits`]. Of AVX-512 sixteen of 32 registers hold sums, of AVX2 eight of
/// sixteen. `lines`: the right operand, where it is not among the operands.
pub(super) fn product<T: Element, S: Element>(
    wide: Wide,
    operands: Operands<'_, T, S>,
    lines: Option<Lines<'_>>,
) {
    let Operands { out, a, b, acc, out_pitch: pitch, work } = operands;
    // Sums that fit are elements of this type.
    let Ok(elements) = bytemuck::try_cast_slice_mut::<S, f32>(out) else { return };
    let acc = acc.and_then(|acc| bytemuck::try_cast_slice::<S, f32>(acc).ok());
    let out = Out { elements, pitch, acc };
    let work: &mut [f64] = bytemuck::cast_slice_mut(work);
    let singles: Option<&[f32]> =
        if T::DTYPE == DType::F32 { bytemuck::try_cast_slice(b.0).ok() } else { None };
    let lines = lines.or_else(|| Lines::of(singles?, b.1));
    match wide {
        Wide::Target => {}
        Wide::Avx2 => wide.run(
            #[inline(always)]
            || blocks::<T, 4, 8>((out, work), a, (b, lines), (block_256, |_, _, _, _| 0)),
        ),
        Wide::Avx512 => wide.run_widest(
            #[inline(always)]
            || blocks::<T, 8, 16>((out, work), a, (b, lines), (block_512, narrow_512)),
        ),
    }
}

#[inline(always)]
fn blocks<T: Element, const R: usize, const C: usize>(
    (mut out, work): (Out<'_>, &mut [f64]),
    (a, a_grid): (&[T], Grid),
    ((b, b_grid), lines): ((&[T], Grid), Option<Lines<'_>>),
    (block, narrow): (Block<C>, Narrow<C>),
) {
    const { assert!(R <= LARGEST[0] && C <= LARGEST[1]) };
    let depth = a_grid.cols;
    let rows_len = depth * a_grid.rows.next_multiple_of(R);
    let Some((rows, rest)) = work.split_at_mut_checked(rows_len) else { return };
    let Some(panel) = rest.get_mut(..depth * C) else { return };
    widen(rows, a, a_grid);
    let rows = &*rows;
    let panel = panel.as_chunks_mut::<C>().0;
    let is_narrow = a_grid.rows <= R && b_grid.rows == depth;
    let first = lines
        .as_ref()
        .filter(|_| is_narrow)
        .map_or(0, |lines| narrow(&mut out, (rows, a_grid.rows), lines, panel));
    for col in (first..b_grid.cols).step_by(C) {
        let cols = C.min(b_grid.cols - col);
        match &lines {
            Some(lines) => pack_lines(panel, lines, [b_grid.rows, col]),
            None => pack(panel, b, b_grid, col),
        }
        for row in (0..a_grid.rows).step_by(R) {
            // Where nothing counts of the depth, the rows are empty and the sums are zero.
            let rows = rows.get(row * depth..(row + R) * depth).unwrap_or(&[]);
            let there = [R.min(a_grid.rows - row), cols];
            write_block::<R, C>(&mut out, [row, col], there, |out| block(rows, panel, out));
        }
    }
}

/// Makes a block where it belongs; or, if less of it counts than it has, in a copy, of which it takes what counts.
#[inline(always)]
fn write_block<const R: usize, const C: usize>(
    out: &mut Out<'_>,
    [row, col]: [usize; 2],
    [rows, cols]: [usize; 2],
    make: impl FnOnce(Out<'_>),
) {
    let (pitch, start) = (out.pitch, row * out.pitch + col);
    let Some(elements) = out.elements.get_mut(start..) else { return };
    let acc = out.acc.map(|acc| acc.get(start..).unwrap_or(&[]));
    if rows == R && cols == C {
        make(Out { elements, pitch, acc });
        return;
    }
    let (mut block, mut added) = ([[0.0; C]; R], [[0.0; C]; R]);
    let lines = acc.unwrap_or(&[]).chunks(pitch.max(1));
    for (to, from) in added.iter_mut().zip(lines).take(rows) {
        to.iter_mut().zip(from).take(cols).for_each(|(to, from)| *to = *from);
    }
    let acc = acc.map(|_| added.as_flattened());
    make(Out { elements: block.as_flattened_mut(), pitch: C, acc });
    for (to, from) in elements.chunks_mut(pitch.max(1)).zip(&block).take(rows) {
        to.iter_mut().zip(from).take(cols).for_each(|(to, from)| *to = *from);
    }
}

/// The rows of the left operand; those that are not there are zero.
#[inline(always)]
fn widen<T: Element>(rows: &mut [f64], a: &[T], grid: Grid) {
    let (there, beyond) = rows.split_at_mut(grid.cols * grid.rows);
    for (to, from) in there.chunks_exact_mut(grid.cols.max(1)).zip(grid.rows_of(a)) {
        for (to, x) in to.iter_mut().zip(from) {
            *to = single(*x);
        }
    }
    beyond.fill(0.0);
}

/// An element as a summand.
#[inline(always)]
fn single<T: Element>(x: T) -> f64 {
    f64::from(x.cast::<f32>())
}

/// Columns `col ..` of every row; columns that are not there are zero.
#[inline(always)]
fn pack<T: Element, const C: usize>(panel: &mut [[f64; C]], b: &[T], grid: Grid, col: usize) {
    for (to, from) in panel.iter_mut().zip(grid.rows_of(b)) {
        let from = from.get(col..).unwrap_or(&[]);
        if let Some(from) = from.first_chunk::<C>() {
            for (to, x) in to.iter_mut().zip(from) {
                *to = single(*x);
            }
        } else {
            *to = [0.0; C];
            for (to, x) in to.iter_mut().zip(from) {
                *to = single(*x);
            }
        }
    }
}

/// Packs `rows` lines into a panel, as [`pack`] does with rows.
#[inline(always)]
fn pack_lines<const C: usize>(panel: &mut [[f64; C]], lines: &Lines<'_>, [rows, col]: [usize; 2]) {
    for (number, to) in panel.iter_mut().enumerate().take(rows) {
        *to = lines.part::<C>(number, col).map(f64::from);
    }
}

/// Declares a block of `$rows` rows and of `$vectors` vectors of `$lanes` columns.
macro_rules! block {
    ($name:ident, $inner:ident, $finish:ident, $features:literal, $vector:ident, $lanes:literal, $rows:literal x $vectors:literal,
     $zero:ident, $load:ident, $all:ident, $fused:ident, [$add:ident, $widen:ident, $load_32:ident, $round:ident, $store_32:ident]) => {
        fn $name(rows: &[f64], panel: &[[f64; $lanes * $vectors]], out: Out<'_>) {
            if !out.has([$rows, $lanes * $vectors]) {
                return;
            }
            // Where there are fewer rows, nothing counts of the depth.
            let panel = if rows.len() < $rows * panel.len() { &[] } else { panel };
            // SAFETY: `Wide` says that the machine has the instructions; there is a row of the panel's depth for each of the block, and room for
            // what is written.
            unsafe { $inner(rows, panel, out) }
        }

        /// # Safety
        /// There are as many elements of `rows` as the block has rows, times the depth of the panel; `out` has as many rows and columns.
        #[target_feature(enable = $features)]
        unsafe fn $inner(rows: &[f64], panel: &[[f64; $lanes * $vectors]], out: Out<'_>) {
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
            // SAFETY: the caller promises the rows and columns.
            unsafe { $finish(&sums, out) }
        }

        /// Rounds sums to where they belong.
        ///
        /// # Safety
        /// `out` has as many rows and columns as there are sums.
        #[target_feature(enable = $features)]
        #[inline]
        unsafe fn $finish<const R: usize>(sums: &[[$vector; $vectors]; R], out: Out<'_>) {
            for (r, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    let at = r * out.pitch + v * $lanes;
                    let sum = match out.acc {
                        // SAFETY: the caller promises the rows and columns of `acc`.
                        Some(acc) => $add($widen(unsafe { $load_32(acc.as_ptr().add(at)) }), *sum),
                        None => *sum,
                    };
                    // SAFETY: and those of `out`.
                    unsafe { $store_32(out.elements.as_mut_ptr().add(at), $round(sum)) }
                }
            }
        }
    };
}

block!(block_512, block_512_inner, finish_512, "avx512f", __m512d, 8, 8 x 2,
    _mm512_setzero_pd, _mm512_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd,
    [_mm512_add_pd, _mm512_cvtps_pd, _mm256_loadu_ps, _mm512_cvtpd_ps, _mm256_storeu_ps]);
block!(block_256, block_256_inner, finish_256, "avx2,fma", __m256d, 4, 4 x 2,
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_fmadd_pd,
    [_mm256_add_pd, _mm256_cvtps_pd, _mm_loadu_ps, _mm256_cvtpd_ps, _mm_storeu_ps]);

/// See [`Narrow`].
fn narrow_512(
    out: &mut Out<'_>,
    (rows, count): (&[f64], usize),
    lines: &Lines<'_>,
    memory: &mut [[f64; 16]],
) -> usize {
    if count <= FEW {
        columns_512::<FEW>(out, (rows, count), lines, memory)
    } else {
        columns_512::<8>(out, (rows, count), lines, memory)
    }
}

/// Whole blocks of columns with `R` rows; the sums are in `memory`, which may have room for some blocks only.
fn columns_512<const R: usize>(
    out: &mut Out<'_>,
    (rows, count): (&[f64], usize),
    lines: &Lines<'_>,
    memory: &mut [[f64; 16]],
) -> usize {
    let (memory, _) = memory.as_chunks_mut::<R>();
    let (mut col, depth) = (0, lines.rows());
    if depth == 0 || memory.is_empty() || rows.len() < R * depth {
        return 0;
    }
    while lines.have(col, 16) {
        let blocks = memory.len().min((lines.cols() - col) / 16);
        let sums = memory.get_mut(..blocks).unwrap_or_default();
        // SAFETY: `Wide` says that the machine has the instructions; both operands are as long as was seen.
        unsafe { columns_512_inner::<R>(rows, (lines, col), sums) };
        for sums in sums {
            write_block::<R, 16>(out, [0, col], [count, 16], |out| round_512(sums, out));
            col += 16;
        }
    }
    col
}

/// Goes down the lines in pieces, through all blocks of columns in each, while the next piece comes into a cache: the lines may be far apart in memory.
///
/// # Safety
/// `rows` has `R` times as many elements as there are lines; from the column on these have sixteen for each of the sums, of which there are some.
#[target_feature(enable = "avx512f")]
unsafe fn columns_512_inner<const R: usize>(
    rows: &[f64],
    (lines, col): (&Lines<'_>, usize),
    sums: &mut [[[f64; 16]; R]],
) {
    let (depth, blocks) = (lines.rows(), sums.len());
    for first in (0..depth).step_by(PIECE) {
        let end = depth.min(first + PIECE);
        let (mut ahead, mut ahead_block) = (end, 0);
        for (block, sums) in sums.iter_mut().enumerate() {
            let col_of_block = col + 16 * block;
            let mut found = [[_mm512_setzero_pd(); 2]; R];
            if first > 0 {
                for (found, sums) in found.iter_mut().zip(&*sums) {
                    for (found, sums) in found.iter_mut().zip(sums.as_chunks::<8>().0) {
                        // SAFETY: the chunk has eight elements.
                        *found = unsafe { _mm512_loadu_pd(sums.as_ptr()) };
                    }
                }
            }
            for p in first..end {
                _mm_prefetch::<_MM_HINT_T1>(
                    lines.pointer(ahead.min(depth - 1), col + 16 * ahead_block).cast(),
                );
                ahead_block += 1;
                if ahead_block == blocks {
                    (ahead, ahead_block) = (ahead + 1, 0);
                }
                let mut columns = [_mm512_setzero_pd(); 2];
                for (half, columns) in columns.iter_mut().enumerate() {
                    let from = lines.pointer(p, col_of_block + 8 * half);
                    // SAFETY: the caller promises sixteen elements; these are eight of them.
                    *columns = _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(from) });
                }
                for (r, sums) in found.iter_mut().enumerate() {
                    // SAFETY: `r` is below `R` and `p` below the depth.
                    let a = _mm512_set1_pd(unsafe { *rows.get_unchecked(r * depth + p) });
                    for (sum, b) in sums.iter_mut().zip(columns) {
                        *sum = _mm512_fmadd_pd(a, b, *sum);
                    }
                }
            }
            for (sums, found) in sums.iter_mut().zip(found) {
                for (sums, found) in sums.as_chunks_mut::<8>().0.iter_mut().zip(found) {
                    // SAFETY: the chunk has eight elements.
                    unsafe { _mm512_storeu_pd(sums.as_mut_ptr(), found) }
                }
            }
        }
    }
}

/// Rounds sums to where they belong.
fn round_512<const R: usize>(sums: &[[f64; 16]; R], out: Out<'_>) {
    if out.has([R, 16]) {
        // SAFETY: `Wide` says that the machine has the instructions; there is room, as was just seen.
        unsafe { round_512_inner(sums, out) }
    }
}

/// # Safety
/// `out` has `R` rows and sixteen columns.
#[target_feature(enable = "avx512f")]
unsafe fn round_512_inner<const R: usize>(sums: &[[f64; 16]; R], out: Out<'_>) {
    let mut found = [[_mm512_setzero_pd(); 2]; R];
    for (found, sums) in found.iter_mut().zip(sums) {
        for (found, sums) in found.iter_mut().zip(sums.as_chunks::<8>().0) {
            // SAFETY: the chunk has eight elements.
            *found = unsafe { _mm512_loadu_pd(sums.as_ptr()) };
        }
    }
    // SAFETY: the caller promises the rows and columns.
    unsafe { finish_512(&found, out) }
}

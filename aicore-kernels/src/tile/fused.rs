//! Matrix products of floats with fused multiply-adds, on x86-64.
//!
//! The product of two numbers of at most 24 bits is exact in `f64`, so that a fused multiply-add gives the bits of a multiplication
//! and an addition: these blocks only take less time than those of `product.rs`. The left operand stands row by row, the right one
//! in panels of as many columns as a block has, or where it is; a block of sums stays in registers, until it is rounded.

use core::arch::x86_64::{
    __m256d, __m512d, _mm_loadu_ps, _mm_storeu_ps, _mm256_add_pd, _mm256_cvtpd_ps, _mm256_cvtps_pd,
    _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_set1_pd, _mm256_setzero_pd,
    _mm256_storeu_ps, _mm512_add_pd, _mm512_cvtpd_ps, _mm512_cvtps_pd, _mm512_fmadd_pd,
    _mm512_loadu_pd, _mm512_set1_pd, _mm512_setzero_pd,
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
    /// They are added to this, which stands as `elements` do.
    acc: Option<&'o [f32]>,
}

impl Out<'_> {
    /// Whether there is room for so many rows and columns.
    fn has(&self, [rows, cols]: [usize; 2]) -> bool {
        let needed = rows.saturating_sub(1).saturating_mul(self.pitch).saturating_add(cols);
        self.elements.len() >= needed && self.acc.is_none_or(|acc| acc.len() >= needed)
    }
}

/// A function that makes a block: of rows, one after the other, with the panel.
type Block<const C: usize> = fn(&[f64], &[[f64; C]], Out<'_>);

/// A function that makes a block of few rows, whose right operand is used once and therefore widened where it stands, from a column on. `false`: that is
/// not for it.
type Narrow = fn(&[f64], (&Lines<'_>, usize), Out<'_>) -> bool;

/// Whether this machine has blocks for products whose sums become elements of `S`.
pub(super) fn fits<S: Element>(wide: Wide) -> bool {
    wide != Wide::Target && S::DTYPE == DType::F32
}

/// Whether products with [few rows](LARGEST) read the right operand where it stands.
pub(super) fn reads_in_place(wide: Wide) -> bool {
    wide == Wide::Avx512
}

/// Rows of the smaller of the blocks whose right operand is read where it stands.
const FEW: usize = 4;

/// `out = a b`, plus `acc` if there is one, where the product [`fits`]. Of AVX-512 sixteen of 32 registers hold sums, of AVX2 eight of
/// sixteen. `lines`: the right operand, where it does not stand among the operands.
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
            || blocks::<T, 4, 8>((out, work), a, (b, lines), (block_256, [|_, _, _| false; 2])),
        ),
        Wide::Avx512 => wide.run_widest(
            #[inline(always)]
            || {
                let narrow: [Narrow; 2] = [narrow_512::<FEW>, narrow_512::<8>];
                blocks::<T, 8, 16>((out, work), a, (b, lines), (block_512, narrow));
            },
        ),
    }
}

#[inline(always)]
fn blocks<T: Element, const R: usize, const C: usize>(
    (mut out, work): (Out<'_>, &mut [f64]),
    (a, a_grid): (&[T], Grid),
    ((b, b_grid), lines): ((&[T], Grid), Option<Lines<'_>>),
    (block, [few, narrow]): (Block<C>, [Narrow; 2]),
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
    let narrow_lines = lines.as_ref().filter(|_| is_narrow);
    for col in (0..b_grid.cols).step_by(C) {
        let cols = C.min(b_grid.cols - col);
        let is_made = narrow_lines.filter(|_| cols == C).is_some_and(|lines| {
            let (at, there) = ([0, col], [a_grid.rows, C]);
            if a_grid.rows <= FEW {
                place::<FEW, C>(&mut out, at, there, |out| few(rows, (lines, col), out))
            } else {
                place::<R, C>(&mut out, at, there, |out| narrow(rows, (lines, col), out))
            }
        });
        if is_made {
            continue;
        }
        match &lines {
            Some(lines) => pack_lines(panel, lines, [b_grid.rows, col]),
            None => pack(panel, b, b_grid, col),
        }
        for row in (0..a_grid.rows).step_by(R) {
            // Where nothing counts of the depth, the rows are empty and the sums are zero.
            let rows = rows.get(row * depth..(row + R) * depth).unwrap_or(&[]);
            let there = [R.min(a_grid.rows - row), cols];
            place::<R, C>(&mut out, [row, col], there, |out| {
                block(rows, panel, out);
                true
            });
        }
    }
}

/// Makes a block where it belongs; or, if less of it counts than it has, beside, and copies what counts. Whether it was made.
#[inline(always)]
fn place<const R: usize, const C: usize>(
    out: &mut Out<'_>,
    [row, col]: [usize; 2],
    [rows, cols]: [usize; 2],
    make: impl FnOnce(Out<'_>) -> bool,
) -> bool {
    let (pitch, start) = (out.pitch, row * out.pitch + col);
    let Some(elements) = out.elements.get_mut(start..) else { return false };
    let acc = out.acc.map(|acc| acc.get(start..).unwrap_or(&[]));
    if rows == R && cols == C {
        return make(Out { elements, pitch, acc });
    }
    let (mut beside, mut added) = ([[0.0; C]; R], [[0.0; C]; R]);
    let lines = acc.unwrap_or(&[]).chunks(pitch.max(1));
    for (to, from) in added.iter_mut().zip(lines).take(rows) {
        to.iter_mut().zip(from).take(cols).for_each(|(to, from)| *to = *from);
    }
    let added = acc.map(|_| added.as_flattened());
    if !make(Out { elements: beside.as_flattened_mut(), pitch: C, acc: added }) {
        return false;
    }
    for (to, from) in elements.chunks_mut(pitch.max(1)).zip(&beside).take(rows) {
        to.iter_mut().zip(from).take(cols).for_each(|(to, from)| *to = *from);
    }
    true
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

/// The same of lines; there are so many.
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
fn narrow_512<const R: usize>(
    rows: &[f64],
    (lines, col): (&Lines<'_>, usize),
    out: Out<'_>,
) -> bool {
    if rows.len() < R * lines.rows() || !lines.have(col, 16) || !out.has([R, 16]) {
        return false;
    }
    // SAFETY: `Wide` says that the machine has the instructions; both operands are as long as was seen, and there is room for what is written.
    unsafe { narrow_512_inner::<R>(rows, (lines, col), out) }
    true
}

/// # Safety
/// `rows` has `R` times as many elements as there are lines; these have sixteen elements from the column on; `out` has `R` rows and sixteen columns.
#[target_feature(enable = "avx512f")]
unsafe fn narrow_512_inner<const R: usize>(
    rows: &[f64],
    (lines, col): (&Lines<'_>, usize),
    out: Out<'_>,
) {
    let depth = lines.rows();
    let mut sums = [[_mm512_setzero_pd(); 2]; R];
    for p in 0..depth {
        let mut columns = [_mm512_setzero_pd(); 2];
        for (half, columns) in columns.iter_mut().enumerate() {
            // SAFETY: the caller promises sixteen elements from here on; these are eight of them.
            *columns =
                _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(lines.pointer(p, col + 8 * half)) });
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `r` is below `R` and `p` below the depth.
            let a = _mm512_set1_pd(unsafe { *rows.get_unchecked(r * depth + p) });
            for (sum, b) in sums.iter_mut().zip(columns) {
                *sum = _mm512_fmadd_pd(a, b, *sum);
            }
        }
    }
    // SAFETY: the caller promises the rows and columns.
    unsafe { finish_512(&sums, out) }
}

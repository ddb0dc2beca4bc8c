//! Reductions of rows and columns.
//!
//! A row is added in [`LANES`] sums, element `i` to sum `i % LANES`, and the sums as a balanced tree; a column from the top to
//! the bottom. Floats are added in double precision and rounded once.

use super::arithmetic::{Number, Sum};
use super::element::Element;
use super::elementwise::Grid;
use super::op::Reduce;
use super::wide::Wide;

/// Sums of a row that grow side by side.
const LANES: usize = 8;
/// Columns that are reduced together, so that their sums stay in registers and the rows are read in order. With fewer, the sums of one row wait
/// for those of the row before.
const COLUMNS: usize = 64;
/// Columns that are reduced together where fewer are left.
const FEW_COLUMNS: usize = 16;

/// What elements of `S` are added in.
type SumOf<S> = <<S as Element>::Wide as Number>::Sum;

/// An element, as a sum of one.
#[inline(always)]
pub(super) fn summand<T: Element, S: Element>(x: T) -> SumOf<S> {
    x.cast::<S>().widen().into_sum()
}

/// A sum, rounded.
#[inline(always)]
pub(super) fn total<S: Element>(sum: SumOf<S>) -> S {
    S::narrow(S::Wide::from_sum(sum))
}

/// A reduction of elements `T` to elements `S`, which [`DType::sum`](super::DType::sum) or
/// [`DType::maximum`](super::DType::maximum) gives.
pub(super) fn reduce<T: Element, S: Element>(
    wide: Wide,
    function: Reduce,
    (out, x): (&mut [S], &[T]),
    grid: Grid,
) {
    wide.run(|| match function {
        Reduce::RowSum => rows(out, x, grid, |row| total(row_sum::<T, S>(row))),
        Reduce::RowMean => {
            rows(out, x, grid, |row| {
                let terms = row.iter().map(|x| summand::<T, S>(*x));
                total(row_sum::<T, S>(row).mean(terms, row.len()))
            });
        }
        Reduce::RowMax => rows(out, x, grid, |row| largest(row).cast()),
        Reduce::ColSum => cols(
            out,
            x,
            grid,
            SumOf::<S>::default(),
            |sum: SumOf<S>, x: T| sum.plus(summand::<T, S>(x)),
            total::<S>,
        ),
        Reduce::ColMax => cols(
            out,
            x,
            grid,
            lowest::<T>(),
            |most: T::Wide, x: T| most.larger(x.widen()),
            |most| T::narrow(most).cast::<S>(),
        ),
    });
}

#[inline(always)]
fn rows<T, S>(out: &mut [S], x: &[T], grid: Grid, f: impl Fn(&[T]) -> S) {
    for (out, row) in out.iter_mut().zip(grid.rows_of(x)) {
        *out = f(row);
    }
}

#[inline(always)]
fn row_sum<T: Element, S: Element>(row: &[T]) -> SumOf<S> {
    let (groups, tail) = row.as_chunks::<LANES>();
    let mut sums = [SumOf::<S>::default(); LANES];
    for group in groups {
        for (sum, x) in sums.iter_mut().zip(group) {
            *sum = sum.plus(summand::<T, S>(*x));
        }
    }
    for (sum, x) in sums.iter_mut().zip(tail) {
        *sum = sum.plus(summand::<T, S>(*x));
    }
    let [a, b, c, d, e, g, h, i] = sums;
    a.plus(e).plus(c.plus(h)).plus(b.plus(g).plus(d.plus(i)))
}

/// What is not larger than any element: minus infinity, or the smallest integer. It is the maximum of nothing.
#[inline(always)]
fn lowest<T: Element>() -> T::Wide {
    T::from_f64(f64::NEG_INFINITY).widen()
}

/// The largest element; NaN if one is.
#[inline(always)]
fn largest<T: Element>(row: &[T]) -> T {
    let first = lowest::<T>();
    let (groups, tail) = row.as_chunks::<LANES>();
    let mut lanes = [first; LANES];
    for group in groups {
        for (lane, x) in lanes.iter_mut().zip(group) {
            *lane = lane.larger(x.widen());
        }
    }
    let tail = tail.iter().fold(first, |most, x| most.larger(x.widen()));
    T::narrow(lanes.into_iter().fold(tail, T::Wide::larger))
}

/// Reduces columns, some at a time.
#[inline(always)]
fn cols<T: Copy, S, A: Copy>(
    out: &mut [S],
    x: &[T],
    grid: Grid,
    start: A,
    step: impl Fn(A, T) -> A + Copy,
    finish: impl Fn(A) -> S + Copy,
) {
    let width = grid.cols.min(out.len());
    let (blocks, rest) = out.get_mut(..width).unwrap_or(&mut []).as_chunks_mut::<COLUMNS>();
    let first = blocks.len() * COLUMNS;
    for (out, at) in blocks.iter_mut().zip((0..).step_by(COLUMNS)) {
        block::<COLUMNS, _, _, _>(out, (x, grid, at), start, step, finish);
    }
    for (out, at) in rest.chunks_mut(FEW_COLUMNS).zip((first..).step_by(FEW_COLUMNS)) {
        block::<FEW_COLUMNS, _, _, _>(out, (x, grid, at), start, step, finish);
    }
}

/// Reduces up to `N` columns, from the column `at` on.
#[inline(always)]
fn block<const N: usize, T: Copy, S, A: Copy>(
    out: &mut [S],
    (x, grid, at): (&[T], Grid, usize),
    start: A,
    step: impl Fn(A, T) -> A,
    finish: impl Fn(A) -> S,
) {
    let mut sums = [start; N];
    for row in grid.rows_of(x) {
        let part = row.get(at..).unwrap_or(&[]);
        match part.first_chunk::<N>() {
            // As many as there are sums: they stay in registers.
            Some(part) => sums.iter_mut().zip(part).for_each(|(sum, x)| *sum = step(*sum, *x)),
            None => sums.iter_mut().zip(part).for_each(|(sum, x)| *sum = step(*sum, *x)),
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = finish(sum);
    }
}

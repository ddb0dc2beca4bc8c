//! What `cholesky` should give: the factorisation row by row, as the definition has it, in `f64`; how far a factor in `f32` may be
//! from it; and the product of a factor with its transpose.

use std::vec;
use std::vec::Vec;

use crate::host::check::{Expected, UNIT_ROUNDOFF};
use crate::host::parallel;

/// Steps of the power iterations that estimate the condition of the matrix. More change its first digit no longer.
const STEPS: usize = 20;

/// The factor, its upper triangle zero; or the first row, from 0, whose pivot is not above zero.
///
/// # Errors
/// The matrix is not positive definite.
pub fn factor(a: &[f32], n: usize) -> Result<Vec<f64>, usize> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        let (above, row) = l.split_at_mut(i * n);
        for (j, solved) in above.chunks(n).enumerate() {
            row[j] = (f64::from(a[i * n + j]) - dot(&row[..j], &solved[..j])) / solved[j];
        }
        let pivot = f64::from(a[i * n + i]) - dot(&row[..i], &row[..i]);
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(i);
        }
        row[i] = pivot.sqrt();
    }
    Ok(l)
}

/// The factor as it may be found. A computed factor is the exact one of a matrix that is off by at most `n` roundings, in any
/// order (Higham, "Accuracy and Stability", theorem 10.3); the factor then moves by as much times the condition of the matrix
/// (theorem 10.8). Roundings of this number add up like their root (Higham and Mary 2019); four of these.
#[must_use]
pub fn expected(l: &[f64], n: usize) -> Vec<Expected> {
    let off = 4.0 * (n as f64).sqrt() * UNIT_ROUNDOFF * condition(l, n);
    let rows = l.chunks(n).flat_map(|row| {
        let norm = dot(row, row).sqrt();
        row.iter().map(move |value| Expected { value: *value, tolerance: off * norm })
    });
    rows.enumerate().map(|(at, element)| lower(at, n, element)).collect()
}

/// `l @ l^T`, the lower triangle, and by how much `a` may differ from it: `n + 3` roundings (theorem 10.3, any order).
#[must_use]
pub fn product(l: &[f32], n: usize) -> Vec<Expected> {
    let wide: Vec<f64> = l.iter().map(|value| f64::from(*value)).collect();
    let norms: Vec<f64> = wide.chunks(n).map(|row| dot(row, row).sqrt()).collect();
    let bound = (n as f64 + 3.0) * UNIT_ROUNDOFF;
    let mut product = vec![Expected::default(); n * n];
    parallel::rows(&mut product, n, |i, row| {
        for (j, element) in row.iter_mut().enumerate().take(i + 1) {
            element.value = dot(&wide[i * n..][..j + 1], &wide[j * n..][..j + 1]);
            element.tolerance = bound * norms[i] * norms[j];
        }
    });
    product
}

/// Nothing is expected above the diagonal but zero.
fn lower(at: usize, n: usize, element: Expected) -> Expected {
    if at % n > at / n { Expected::default() } else { element }
}

/// The largest eigenvalue of `l @ l^T` over the smallest, by power iteration, there and back.
fn condition(l: &[f64], n: usize) -> f64 {
    let largest = power(n, |x| times(l, n, &transposed_times(l, n, x)));
    let smallest = power(n, |x| transposed_solve(l, n, &solve(l, n, x)));
    largest * smallest
}

fn power(n: usize, step: impl Fn(&[f64]) -> Vec<f64>) -> f64 {
    // Not orthogonal to any eigenvector that one would think of.
    let mut x: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64 * 1.7).sin()).collect();
    let mut growth = 1.0;
    for _ in 0..STEPS {
        let norm = dot(&x, &x).sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
        x = step(&x);
        growth = dot(&x, &x).sqrt();
    }
    growth
}

fn times(l: &[f64], n: usize, x: &[f64]) -> Vec<f64> {
    l.chunks(n).map(|row| dot(row, x)).collect()
}

fn transposed_times(l: &[f64], n: usize, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; n];
    for (row, x) in l.chunks(n).zip(x) {
        y.iter_mut().zip(row).for_each(|(y, l)| *y += l * x);
    }
    y
}

/// `l^-1 x`.
fn solve(l: &[f64], n: usize, x: &[f64]) -> Vec<f64> {
    let mut y: Vec<f64> = Vec::with_capacity(n);
    for (i, row) in l.chunks(n).enumerate() {
        y.push((x[i] - dot(&row[..i], &y)) / row[i]);
    }
    y
}

/// `l^-T x`.
fn transposed_solve(l: &[f64], n: usize, x: &[f64]) -> Vec<f64> {
    let mut y = x.to_vec();
    for (i, row) in l.chunks(n).enumerate().rev() {
        y[i] /= row[i];
        let solved = y[i];
        y[..i].iter_mut().zip(row).for_each(|(y, l)| *y -= l * solved);
    }
    y
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

//! What `newton_solve` should give: the solution by Gauss' elimination, and how often Newton's iteration, in `f64`, is repeated.

use std::vec;
use std::vec::Vec;

use crate::host::check::{Expected, UNIT_ROUNDOFF};

/// One system.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// `[n, n]`.
    pub a: &'a [f32],
    /// `[n, columns]`.
    pub b: &'a [f32],
    /// Equations.
    pub n: usize,
    /// Right-hand sides.
    pub columns: usize,
}

/// What should come out for one system.
#[derive(Clone, Debug)]
pub struct Solution {
    /// `[n, columns]`.
    pub out: Vec<Expected>,
    /// How often the stage may be repeated, at least and at most.
    pub iterations: (i32, i32),
}

impl Solution {
    /// The solution; `None`: the matrix has no inverse, or the iteration does not converge within the limit.
    ///
    /// What is computed is `x` with `|1 - a @ x| <= tolerance`, or as much more as the rounding of that residual can hide. Its
    /// product with `b` differs from the solution by `a^-1 @ (1 - a @ x) @ b`: a row of `a^-1`, times the residual, times a
    /// column of `b`; and by the roundings of the product.
    #[must_use]
    pub fn of(system: &System<'_>, tolerance: f64, limit: u64) -> Option<Self> {
        let (n, columns) = (system.n, system.columns);
        let a: Vec<f64> = system.a.iter().map(|a| f64::from(*a)).collect();
        let b: Vec<f64> = system.b.iter().map(|b| f64::from(*b)).collect();
        let inverse = eliminated(&a, &unit(n), n)?;
        let solution = product(&inverse, &b, n, columns);
        let magnitudes = |matrix: &[f64]| matrix.iter().map(|x| x.abs()).collect::<Vec<_>>();
        let hidden = norm(&product(&magnitudes(&a), &magnitudes(&inverse), n, n));
        let hidden = (n as f64 + 3.0) * UNIT_ROUNDOFF * hidden;
        let row_norms: Vec<f64> = inverse.chunks(n).map(norm).collect();
        let column_norm = |column: usize| {
            norm(&b.iter().skip(column).step_by(columns).copied().collect::<Vec<_>>())
        };
        let column_norms: Vec<f64> = (0..columns).map(column_norm).collect();
        let off = tolerance + hidden + (n as f64 + 3.0) * UNIT_ROUNDOFF;
        let out = solution.iter().enumerate().map(|(at, value)| Expected {
            value: *value,
            tolerance: off * row_norms[at / columns] * column_norms[at % columns],
        });
        let iterations = iterations(&a, n, tolerance, hidden, limit)?;
        Some(Self { out: out.collect(), iterations })
    }
}

/// The first iteration after which the residual may be found to be small enough, and the first after which it must be.
fn iterations(a: &[f64], n: usize, tolerance: f64, hidden: f64, limit: u64) -> Option<(i32, i32)> {
    let rows = a.chunks(n).map(|row| row.iter().map(|x| x.abs()).sum::<f64>());
    let columns = (0..n).map(|j| a.iter().skip(j).step_by(n).map(|x| x.abs()).sum::<f64>());
    let scale = rows.fold(0.0, f64::max) * columns.fold(0.0, f64::max);
    let mut x: Vec<f64> = (0..n * n).map(|at| a[at % n * n + at / n] / scale).collect();
    let mut first = None;
    for iteration in 0..=i32::try_from(limit).ok()?.saturating_add(1) {
        let p = product(a, &x, n, n);
        let e: Vec<f64> = unit(n).iter().zip(&p).map(|(unit, p)| unit - p).collect();
        let residual = norm(&e);
        if residual <= tolerance + hidden {
            first = first.or(Some(iteration));
        }
        // Below what roundings hide the iteration goes no further, and its end is not known.
        if residual <= (tolerance - hidden).max(0.0) {
            return first.map(|first| (first, iteration));
        }
        let step = product(&x, &e, n, n);
        x.iter_mut().zip(step).for_each(|(x, step)| *x += step);
    }
    None
}

/// `a^-1 @ b` for square matrices, with partial pivoting; `None`: a pivot is zero.
fn eliminated(a: &[f64], b: &[f64], n: usize) -> Option<Vec<f64>> {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    for column in 0..n {
        let largest =
            |x: &usize, y: &usize| a[x * n + column].abs().total_cmp(&a[y * n + column].abs());
        let pivot = (column..n).max_by(largest)?;
        if a[pivot * n + column] == 0.0 || a[pivot * n + column].is_nan() {
            return None;
        }
        for k in 0..n {
            a.swap(column * n + k, pivot * n + k);
            b.swap(column * n + k, pivot * n + k);
        }
        let scale = 1.0 / a[column * n + column];
        for k in 0..n {
            a[column * n + k] *= scale;
            b[column * n + k] *= scale;
        }
        let (a_row, b_row) = (a[column * n..][..n].to_vec(), b[column * n..][..n].to_vec());
        for row in (0..n).filter(|row| *row != column) {
            let factor = a[row * n + column];
            for k in 0..n {
                a[row * n + k] -= factor * a_row[k];
                b[row * n + k] -= factor * b_row[k];
            }
        }
    }
    Some(b)
}

/// `[n, n] @ [n, columns]`.
fn product(a: &[f64], b: &[f64], n: usize, columns: usize) -> Vec<f64> {
    let mut c = vec![0.0; n * columns];
    for (a, c) in a.chunks(n).zip(c.chunks_mut(columns)) {
        for (a, b) in a.iter().zip(b.chunks(columns)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
    c
}

fn unit(n: usize) -> Vec<f64> {
    (0..n * n).map(|at| if at / n == at % n { 1.0 } else { 0.0 }).collect()
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::{Solution, System};

    #[test]
    fn by_hand() {
        // 2x = 6; 4y = 2: the start is a^T / 16, its residual 1 - a^2 / 16 = (3/4, 0), which squares in each step.
        let system = System { a: &[2.0, 0.0, 0.0, 4.0], b: &[6.0, 2.0], n: 2, columns: 1 };
        let solution = Solution::of(&system, 0.05, 40).unwrap();
        let [x, y] = [solution.out[0], solution.out[1]];
        assert!((x.value - 3.0).abs() < 1e-12 && (y.value - 0.5).abs() < 1e-12);
        // 0.75^8 = 0.1, 0.75^16 = 0.01.
        assert_eq!(solution.iterations, (4, 4));
        assert!(Solution::of(&system, 0.05, 2).is_none());
        let singular = System { a: &[1.0, 2.0, 2.0, 4.0], ..system };
        assert!(Solution::of(&singular, 0.05, 40).is_none());
    }
}

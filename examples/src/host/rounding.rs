//! References of long computations in `f32`: numbers in `f64` that know how large the error of their `f32` counterpart may be.
//!
//! Worst cases of single roundings, added up through a chain of products with a thousand terms each, say nothing: they come to
//! more than the result. Here roundings are taken for independent, so that their variances add up (Higham and Mary, "A New
//! Approach to Probabilistic Rounding Error Analysis", 2019), and a result may be off by `DEVIATIONS` standard deviations. A
//! sum is taken in whichever order is worst.

use std::vec;
use std::vec::Vec;

use core::ops::{Add, Div, Mul};

use crate::host::check::{Expected, UNIT_ROUNDOFF};

/// Standard deviations that an element may be off.
const DEVIATIONS: f64 = 8.0;
/// The variance of one rounding of 1, as if each was the largest.
const UNIT: f64 = UNIT_ROUNDOFF * UNIT_ROUNDOFF;
/// Roundings of the kernels' exponential.
const EXP_ROUNDINGS: f64 = 2.0;

/// A number, and the variance of the error of what is computed in `f32` instead of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounded {
    /// The number.
    pub value: f64,
    /// The variance of the error.
    pub variance: f64,
}

impl Rounded {
    /// An input: no error.
    #[must_use]
    pub fn exact(value: f32) -> Self {
        Self { value: value.into(), variance: 0.0 }
    }

    /// The result of an operation on operands whose errors are in `variance`, rounded `times` times.
    fn of(value: f64, variance: f64, times: f64) -> Self {
        Self { value, variance: variance + times * times * UNIT * value * value }
    }

    /// A number that is rounded once.
    #[must_use]
    pub fn once(value: f64) -> Self {
        Self::of(value, 0.0, 1.0)
    }

    /// The same, rounded `times` times more.
    #[must_use]
    pub fn rounded(self, times: f64) -> Self {
        Self::of(self.value, self.variance, times)
    }

    /// `e^self`.
    #[must_use]
    pub fn exp(self) -> Self {
        let value = self.value.exp();
        Self::of(value, value * value * self.variance, EXP_ROUNDINGS)
    }

    /// The square root.
    #[must_use]
    pub fn sqrt(self) -> Self {
        Self::of(self.value.sqrt(), self.variance / (4.0 * self.value), 1.0)
    }

    /// As an element of a result.
    #[must_use]
    pub fn expected(self) -> Expected {
        Expected { value: self.value, tolerance: DEVIATIONS * self.variance.sqrt() }
    }
}

impl Add for Rounded {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::of(self.value + other.value, self.variance + other.variance, 1.0)
    }
}

impl Mul for Rounded {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        Self::of(a * b, b * b * self.variance + a * a * other.variance, 1.0)
    }
}

impl Div for Rounded {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let (value, b) = (self.value / other.value, other.value);
        Self::of(value, (self.variance + value * value * other.variance) / (b * b), 1.0)
    }
}

/// The sum of many numbers, in any order: each addition rounds a part of the sum, which is at most as large as all of it, or as
/// the root of the sum of squares.
pub fn sum(terms: impl IntoIterator<Item = Rounded>) -> Rounded {
    let (mut value, mut variance, mut squares, mut count) = (0.0, 0.0, 0.0, 0.0);
    for term in terms {
        value += term.value;
        variance += term.variance;
        squares += term.value * term.value;
        count += 1.0;
    }
    Rounded { value, variance: variance + count * UNIT * (squares + value * value) }
}

/// `x @ w` for one row `x`, with a matrix of inputs of `cols` columns.
#[must_use]
pub fn project(x: &[Rounded], w: &[f32], cols: usize) -> Vec<Rounded> {
    let (mut values, mut variances) = (vec![0.0; cols], vec![0.0; cols]);
    let mut squares = vec![0.0; cols];
    for (x, w) in x.iter().zip(w.chunks(cols)) {
        for (((value, variance), square), w) in
            values.iter_mut().zip(&mut variances).zip(&mut squares).zip(w)
        {
            let w = f64::from(*w);
            let product = x.value * w;
            *value += product;
            *variance += w * w * x.variance;
            *square += product * product;
        }
    }
    // Each product is rounded, and each addition.
    let count = x.len() as f64;
    let each = values.into_iter().zip(variances).zip(squares);
    each.map(|((value, variance), squares)| Rounded {
        value,
        variance: variance + UNIT * (squares + count * (squares + value * value)),
    })
    .collect()
}

/// `weight * x / sqrt(mean(x^2) + epsilon)`.
#[must_use]
pub fn rms_norm(x: &[Rounded], weight: &[f32], epsilon: f32) -> Vec<Rounded> {
    let squares = sum(x.iter().map(|x| *x * *x));
    let count = Rounded { value: x.len() as f64, variance: 0.0 };
    let root = (squares / count + Rounded::exact(epsilon)).sqrt();
    x.iter().zip(weight).map(|(x, weight)| *x / root * Rounded::exact(*weight)).collect()
}

/// `gate / (1 + e^-gate) * up`.
#[must_use]
pub fn silu_mul(gate: Rounded, up: Rounded) -> Rounded {
    let minus = Rounded { value: -gate.value, variance: gate.variance };
    gate / (Rounded::exact(1.0) + minus.exp()) * up
}

#[cfg(test)]
mod tests {
    use super::{Rounded, project, rms_norm, silu_mul, sum};

    #[test]
    fn values_are_those_of_the_operations() {
        let (a, b) = (Rounded::exact(3.0), Rounded::exact(4.0));
        assert_eq!(((a + b).value, (a * b).value, (a / b).value), (7.0, 12.0, 0.75));
        assert_eq!(((b).sqrt().value, sum([a, b, b]).value), (2.0, 11.0));
        assert!((a.exp().value - 3.0_f64.exp()).abs() < 1e-12);
        let row = project(&[a, b], &[1.0, 2.0, 3.0, 4.0], 2);
        assert_eq!((row[0].value, row[1].value), (15.0, 22.0));
        // The mean of the squares is 12.5.
        let normed = rms_norm(&[a, b], &[1.0, 2.0], 0.0);
        assert!((normed[1].value - 8.0 / 12.5_f64.sqrt()).abs() < 1e-12);
        assert!((silu_mul(a, b).value - 12.0 / (1.0 + (-3.0_f64).exp())).abs() < 1e-12);
    }

    /// The error of a sum in `f32`, measured, against its deviation.
    #[test]
    fn a_sum_is_off_by_less_than_it_may() {
        let terms = || (0..10_000_u32).map(|i| ((i * 7919) % 1000) as f32 / 999.0 - 0.3);
        let exact = sum(terms().map(Rounded::exact)).expected();
        let found: f32 = terms().sum();
        let error = (f64::from(found) - exact.value).abs();
        assert!(error > 0.0 && error < exact.tolerance, "{error} {}", exact.tolerance);
        assert!(exact.tolerance < 1e-3 * exact.value);
    }
}

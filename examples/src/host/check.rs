//! The comparison of a result with its reference.
//!
//! The reference states a tolerance for every element, a bound of the rounding errors that `f32` arithmetic in
//! any order can make there. The element that comes closest to its bound, or exceeds it most, is reported.

use std::string::String;
use std::vec::Vec;
use std::{fmt, format, vec};

/// Half the distance from 1 to the next `f32`: the relative error of one rounding.
pub const UNIT_ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;

/// What an element should be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// The value, in `f64`.
    pub value: f64,
    /// By how much an element may differ.
    pub tolerance: f64,
}

/// Where an error is.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The tensor.
    pub tensor: &'static str,
    /// The element.
    pub index: Vec<u64>,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tensor, index, found, expected } = self;
        write!(f, "{tensor}{index:?} is {found}, expected {expected}")
    }
}

/// What the comparison found.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Elements compared.
    pub checked: u64,
    /// Elements that differ by more than they may.
    pub wrong: u64,
    /// The error of the element that is closest to its tolerance, or exceeds it most. For an exact comparison
    /// the number of wrong elements.
    pub largest_error: f64,
    /// What that element may differ by; zero: the comparison is exact.
    pub tolerance: f64,
    /// That element; `None`: there is no error at all.
    pub place: Option<Place>,
}

impl Verdict {
    /// Whether everything is as it should be.
    #[must_use]
    pub const fn passed(&self) -> bool {
        self.wrong == 0
    }

    /// The verdict on what both looked at: the place is that of the one that is closer to its tolerance, or exceeds it more.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (checked, wrong) = (self.checked + other.checked, self.wrong + other.wrong);
        let worse = if other.ratio() > self.ratio() { other } else { self };
        Self { checked, wrong, ..worse }
    }

    fn ratio(&self) -> f64 {
        ratio_of(self.largest_error, self.tolerance)
    }
}

/// An error in tolerances; infinite where none is admitted, or the error is infinite, whatever the tolerance.
fn ratio_of(error: f64, tolerance: f64) -> f64 {
    let ratio = match error {
        0.0 => 0.0,
        _ if tolerance > 0.0 => error / tolerance,
        _ => f64::INFINITY,
    };
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// Compares `found` with `expected`, both of the given shape.
///
/// Infinities and NaN are right where the reference has them, and wrong elsewhere.
#[must_use]
pub fn compare(
    tensor: &'static str,
    shape: &[u64],
    found: &[f32],
    expected: &[Expected],
) -> Verdict {
    let mut worst = Worst { ratio: -1.0, at: 0, error: 0.0, expected: Expected::default() };
    let mut wrong = found.len().abs_diff(expected.len()) as u64;
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = error_of(f64::from(*found), expected.value);
        let ratio = ratio_of(error, expected.tolerance);
        wrong += u64::from(ratio > 1.0);
        if ratio > worst.ratio {
            worst = Worst { ratio, at, error, expected: *expected };
        }
    }
    let Worst { at, error, expected: worst, .. } = worst;
    let place = (error != 0.0).then(|| Place {
        tensor,
        index: index_of(at as u64, shape),
        found: format!("{}", found[at]),
        expected: format!("{}", worst.value),
    });
    let (largest_error, tolerance) = (error, worst.tolerance);
    Verdict { checked: expected.len() as u64, wrong, largest_error, tolerance, place }
}

/// Compares numbers that must be within their bounds, both included; the first that is not is the place.
#[must_use]
pub fn compare_counts(tensor: &'static str, found: &[i32], bounds: &[(i32, i32)]) -> Verdict {
    let mut wrong = found.len().abs_diff(bounds.len()) as u64;
    let mut place = None;
    for (at, (found, (low, high))) in (0..).zip(found.iter().zip(bounds)) {
        if low <= found && found <= high {
            continue;
        }
        wrong += 1;
        place.get_or_insert_with(|| Place {
            tensor,
            index: vec![at],
            found: format!("{found}"),
            expected: if low == high { format!("{low}") } else { format!("{low} to {high}") },
        });
    }
    let (checked, largest_error) = (bounds.len() as u64, wrong as f64);
    Verdict { checked, wrong, largest_error, tolerance: 0.0, place }
}

/// The element that comes closest to its tolerance, or exceeds it most.
struct Worst {
    ratio: f64,
    at: usize,
    error: f64,
    expected: Expected,
}

fn error_of(found: f64, expected: f64) -> f64 {
    if found == expected || (found.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let error = (found - expected).abs();
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The index of element `at` in a tensor of this shape.
fn index_of(at: u64, shape: &[u64]) -> Vec<u64> {
    let mut rest = at;
    let mut index: Vec<_> = shape
        .iter()
        .rev()
        .map(|extent| {
            let extent = (*extent).max(1);
            let part = rest % extent;
            rest /= extent;
            part
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::{Expected, compare, compare_counts};
    use std::string::ToString;

    fn expected(value: f64) -> Expected {
        Expected { value, tolerance: 0.5 }
    }

    #[test]
    fn the_worst_element_is_named() {
        let reference = [1.0, 2.0, 3.0, 4.0].map(expected);
        let verdict = compare("out", &[2, 2], &[1.0, 2.25, 3.75, 4.0], &reference);
        assert_eq!((verdict.checked, verdict.wrong, verdict.passed()), (4, 1, false));
        assert_eq!((verdict.largest_error, verdict.tolerance), (0.75, 0.5));
        assert_eq!(verdict.place.unwrap().to_string(), "out[1, 0] is 3.75, expected 3");
    }

    #[test]
    fn an_exact_result_has_no_place_but_a_tolerance() {
        let verdict = compare("out", &[2], &[1.0, 2.0], &[1.0, 2.0].map(expected));
        assert!(verdict.passed() && verdict.place.is_none());
        assert_eq!((verdict.largest_error, verdict.tolerance), (0.0, 0.5));
    }

    #[test]
    fn what_is_not_finite_is_right_only_where_the_reference_says_so() {
        let of = |found: f32, value: f64| {
            compare("x", &[1], &[found], &[Expected { value, tolerance: 1e30 }]).passed()
        };
        assert!(of(f32::NAN, f64::NAN) && of(f32::INFINITY, f64::INFINITY));
        assert!(!of(f32::NAN, 1.0) && !of(1.0, f64::NAN) && !of(f32::INFINITY, 1.0));
        assert!(!of(f32::INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn a_tolerance_that_is_not_a_number_admits_only_what_is_equal() {
        let strict = Expected { value: 1.0, tolerance: f64::NAN };
        assert!(compare("x", &[1], &[1.0], &[strict]).passed());
        assert!(!compare("x", &[1], &[1.5], &[strict]).passed());
    }

    #[test]
    fn counts_have_bounds() {
        assert!(compare_counts("n", &[3, 4], &[(3, 3), (3, 5)]).passed());
        let verdict = compare_counts("n", &[3, 6, 9], &[(3, 3), (3, 5), (1, 1)]);
        assert_eq!((verdict.checked, verdict.wrong, verdict.tolerance), (3, 2, 0.0));
        assert_eq!(verdict.place.unwrap().to_string(), "n[1] is 6, expected 3 to 5");
        assert!(!compare_counts("n", &[], &[(0, 0)]).passed());
    }

    #[test]
    fn of_two_verdicts_the_worse_one_says_where() {
        let good = compare("a", &[1], &[1.25], &[expected(1.0)]);
        let wrong = compare("b", &[2], &[1.0, 2.75], &[1.0, 2.0].map(expected));
        for both in [good.clone().and(wrong.clone()), wrong.and(good)] {
            assert_eq!((both.checked, both.wrong, both.largest_error), (3, 1, 0.75));
            assert_eq!(both.place.unwrap().tensor, "b");
        }
    }

    #[test]
    fn a_missing_element_is_wrong() {
        assert!(!compare("x", &[2], &[1.0], &[expected(1.0), expected(2.0)]).passed());
    }
}

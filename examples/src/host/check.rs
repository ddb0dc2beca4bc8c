//! The comparison of a result with its reference.
//!
//! The reference states a tolerance for every element, a bound of the rounding errors that `f32` arithmetic in
//! any order can make there. The element that comes closest to its bound, or exceeds it most, is reported.
//! NaN is right where the reference has it; how many there are is counted, so that none passes in silence. Outputs are
//! [`UNWRITTEN`] before a run: an element that is left so is wrong, whatever the reference has.

use std::string::String;
use std::vec::Vec;
use std::{fmt, format, vec};

/// Half the distance from 1 to the next `f32`: the relative error of one rounding.
pub const UNIT_ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;

/// What elements are before a run: a NaN that no kernel makes, for its low bits are not zero.
pub const UNWRITTEN: f32 = f32::from_bits(0x7FC0_5EED);

/// What an element should be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// The value, in `f64`.
    pub value: f64,
    /// By how much an element may differ.
    pub tolerance: f64,
}

/// An element of a tensor with an error.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementPosition {
    /// The tensor.
    pub tensor: &'static str,
    /// The element.
    pub index: Vec<u64>,
    /// The value that was found.
    pub found: String,
    /// What should.
    pub expected: String,
}

impl fmt::Display for ElementPosition {
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
    pub position: Option<ElementPosition>,
    /// Elements that are NaN.
    pub nans: Nans,
}

/// How many elements are NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nans {
    /// In the result.
    pub found: u64,
    /// In the reference.
    pub expected: u64,
}

impl Verdict {
    /// Whether everything is as it should be.
    #[must_use]
    pub const fn passed(&self) -> bool {
        self.wrong == 0
    }

    /// The verdict of an exact comparison, with the first wrong element.
    #[must_use]
    pub fn exact(checked: u64, wrong: u64, position: Option<ElementPosition>) -> Self {
        let (largest_error, tolerance, nans) = (wrong as f64, 0.0, Nans::default());
        Self { checked, wrong, largest_error, tolerance, position, nans }
    }

    /// The verdict on what both looked at: the position is that of the one that is closer to its tolerance, or exceeds it more.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (checked, wrong) = (self.checked + other.checked, self.wrong + other.wrong);
        let nans = Nans {
            found: self.nans.found + other.nans.found,
            expected: self.nans.expected + other.nans.expected,
        };
        let worse = if other.ratio() > self.ratio() { other } else { self };
        Self { checked, wrong, nans, ..worse }
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
    let mut nans = Nans::default();
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        nans.found += u64::from(found.is_nan());
        nans.expected += u64::from(expected.value.is_nan());
        let error = match is_unwritten(*found) {
            true => f64::INFINITY,
            // There is nothing to measure.
            false if found.is_nan() && expected.value.is_nan() => continue,
            false => error_of(f64::from(*found), expected.value),
        };
        let ratio = ratio_of(error, expected.tolerance);
        wrong += u64::from(ratio > 1.0);
        if ratio > worst.ratio {
            worst = Worst { ratio, at, error, expected: *expected };
        }
    }
    let Worst { at, error, expected: worst, .. } = worst;
    let position = (error != 0.0).then(|| ElementPosition {
        tensor,
        index: index_of(at as u64, shape),
        found: match is_unwritten(found[at]) {
            true => "not written".into(),
            false => format!("{}", found[at]),
        },
        expected: format!("{}", worst.value),
    });
    let (largest_error, tolerance) = (error, worst.tolerance);
    Verdict { checked: expected.len() as u64, wrong, largest_error, tolerance, position, nans }
}

/// Compares numbers that must be within their bounds, both included; the position is that of the first one that is not.
#[must_use]
pub fn compare_counts(tensor: &'static str, found: &[i32], bounds: &[(i32, i32)]) -> Verdict {
    let mut wrong = found.len().abs_diff(bounds.len()) as u64;
    let mut position = None;
    for (at, (found, (low, high))) in (0..).zip(found.iter().zip(bounds)) {
        if low <= found && found <= high {
            continue;
        }
        wrong += 1;
        position.get_or_insert_with(|| ElementPosition {
            tensor,
            index: vec![at],
            found: format!("{found}"),
            expected: if low == high { format!("{low}") } else { format!("{low} to {high}") },
        });
    }
    Verdict::exact(bounds.len() as u64, wrong, position)
}

/// The element that comes closest to its tolerance, or exceeds it most.
struct Worst {
    ratio: f64,
    at: usize,
    error: f64,
    expected: Expected,
}

/// Whether no kernel has written the element.
const fn is_unwritten(found: f32) -> bool {
    found.to_bits() == UNWRITTEN.to_bits()
}

fn error_of(found: f64, expected: f64) -> f64 {
    if found == expected {
        return 0.0;
    }
    let error = (found - expected).abs();
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The index of element `at` in a tensor of this shape.
pub(crate) fn index_of(at: u64, shape: &[u64]) -> Vec<u64> {
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
    use super::{Expected, Nans, UNWRITTEN, compare, compare_counts};
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
        assert_eq!(verdict.position.unwrap().to_string(), "out[1, 0] is 3.75, expected 3");
    }

    #[test]
    fn an_exact_result_has_no_place_but_a_tolerance() {
        let verdict = compare("out", &[2], &[1.0, 2.0], &[1.0, 2.0].map(expected));
        assert!(verdict.passed() && verdict.position.is_none());
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
    fn what_is_not_a_number_is_counted_and_does_not_hide_the_others() {
        let nan = Expected { value: f64::NAN, tolerance: f64::NAN };
        let both = [nan, expected(2.0), nan];
        let verdict = compare("out", &[3], &[f32::NAN, 2.25, f32::NAN], &both);
        assert_eq!((verdict.passed(), verdict.nans), (true, Nans { found: 2, expected: 2 }));
        assert_eq!((verdict.largest_error, verdict.tolerance), (0.25, 0.5));
        let verdict = compare("out", &[2], &[f32::NAN; 2], &[nan; 2]);
        assert_eq!((verdict.passed(), verdict.largest_error, verdict.tolerance), (true, 0.0, 0.0));
        let twice = verdict.clone().and(verdict);
        assert_eq!(twice.nans, Nans { found: 4, expected: 4 });
    }

    #[test]
    fn what_was_not_written_is_wrong_also_where_the_reference_is_no_number() {
        let nan = Expected { value: f64::NAN, tolerance: f64::NAN };
        let verdict = compare("out", &[2], &[f32::NAN, UNWRITTEN], &[nan; 2]);
        assert_eq!(verdict.wrong, 1);
        assert_eq!(verdict.position.unwrap().to_string(), "out[1] is not written, expected NaN");
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
        assert_eq!(verdict.position.unwrap().to_string(), "n[1] is 6, expected 3 to 5");
        assert!(!compare_counts("n", &[], &[(0, 0)]).passed());
    }

    #[test]
    fn of_two_verdicts_the_worse_one_says_where() {
        let good = compare("a", &[1], &[1.25], &[expected(1.0)]);
        let wrong = compare("b", &[2], &[1.0, 2.75], &[1.0, 2.0].map(expected));
        for both in [good.clone().and(wrong.clone()), wrong.and(good)] {
            assert_eq!((both.checked, both.wrong, both.largest_error), (3, 1, 0.75));
            assert_eq!(both.position.unwrap().tensor, "b");
        }
    }

    #[test]
    fn a_missing_element_is_wrong() {
        assert!(!compare("x", &[2], &[1.0], &[expected(1.0), expected(2.0)]).passed());
    }
}

//! `--expect`: outputs compared with tensors that a user gives, as NumPy's `allclose` compares them.

use std::path::PathBuf;

use pto_examples::host::check::{Expected, Nans, compare};
use pto_examples::host::{
    self, DType, ElementPosition, ElementVec, Example, Prepared, Tensor, Verdict,
};

use crate::args::RunArgs;
use crate::errors::Failure;
use crate::npy;

/// What outputs should be.
pub(crate) struct Golden {
    tensors: Vec<(&'static str, PathBuf, Tensor)>,
    rtol: f64,
    atol: f64,
}

impl Golden {
    /// Reads the files; an output that the example does not have is refused.
    pub(crate) fn read(example: &dyn Example, args: &RunArgs) -> Result<Self, Failure> {
        let read = |(name, path): &(String, PathBuf)| {
            let spec = example.outputs().iter().find(|spec| spec.name == name);
            let known = || example.outputs().iter().map(|spec| spec.name);
            let spec = spec.ok_or_else(|| host::Error::unknown("output", name, known()))?;
            Ok((spec.name, path.clone(), npy::read(path)?))
        };
        let tensors = args.expect.iter().map(read).collect::<Result<_, Failure>>()?;
        Ok(Self { tensors, rtol: args.rtol, atol: args.atol })
    }

    /// Nothing runs for a file that no output can be compared with.
    pub(crate) fn check(&self, prepared: &Prepared) -> Result<(), Failure> {
        if self.tensors.is_empty() {
            return Ok(());
        }
        let outputs = prepared.outputs()?;
        for (name, path, expected) in &self.tensors {
            let Some((_, found)) = outputs.iter().find(|(output, _)| output == name) else {
                continue;
            };
            if !can_judge(expected, found.dtype(), found.shape()) {
                return Err(Failure::usage(format!(
                    "--expect {name}: '{}' has {} {:?}, and the output has {} {:?}; give a file of the same type and shape, or of f64 for f32",
                    path.display(),
                    expected.dtype(),
                    expected.shape(),
                    found.dtype(),
                    found.shape()
                )));
            }
        }
        Ok(())
    }

    /// Compares the outputs of the last run; `None`: there is nothing to compare with.
    pub(crate) fn judge(&self, prepared: &Prepared) -> Result<Option<Verdict>, Failure> {
        if self.tensors.is_empty() {
            return Ok(None);
        }
        let outputs = prepared.outputs()?;
        let mut all: Option<Verdict> = None;
        for (name, _, expected) in &self.tensors {
            let Some((_, found)) = outputs.iter().find(|(output, _)| output == name) else {
                continue;
            };
            let verdict = self.verdict(name, found, expected);
            all = Some(match all {
                Some(before) => before.and(verdict),
                None => verdict,
            });
        }
        Ok(all)
    }

    fn verdict(&self, name: &'static str, found: &Tensor, expected: &Tensor) -> Verdict {
        let bound = |value: f64| self.atol + self.rtol * value.abs();
        let shape = expected.shape();
        /// Floats as NumPy's `allclose` compares them, and integers, which are the same or wrong.
        macro_rules! compared {
            ($($integer:ident)*) => {
                match (found.elements(), expected.elements()) {
                    (ElementVec::F32(found), ElementVec::F32(values)) => {
                        let expected = |value: &f32| {
                            let value = f64::from(*value);
                            Expected { value, tolerance: bound(value) }
                        };
                        let bounds: Vec<_> = values.iter().map(expected).collect();
                        compare(name, shape, found, &bounds)
                    }
                    (ElementVec::F32(found), ElementVec::F64(values)) => {
                        let expected = |value: &f64| Expected { value: *value, tolerance: bound(*value) };
                        let bounds: Vec<_> = values.iter().map(expected).collect();
                        compare(name, shape, found, &bounds)
                    }
                    (ElementVec::F64(found), ElementVec::F64(values)) => {
                        doubles(name, found, values, bound)
                    }
                    $((ElementVec::$integer(found), ElementVec::$integer(values)) => {
                        differences(name, found, values, |found, value| found == value)
                    })*
                    // Files of another type were refused.
                    _ => Verdict::exact(1, 1, None),
                }
            };
        }
        compared! { I8 U8 I16 U16 I32 U32 I64 U64 }
    }
}

/// Whether a file can be compared with an output: it has the same extents, and the same type or `f64` for `f32`.
fn can_judge(file: &Tensor, dtype: DType, shape: &[u64]) -> bool {
    let is_wider = (file.dtype(), dtype) == (DType::F64, DType::F32);
    file.shape() == shape && (is_wider || file.dtype() == dtype)
}

/// As floats of 32 bits are compared: NaN is right where the file has it, and counted.
fn doubles(
    name: &'static str,
    found: &[f64],
    expected: &[f64],
    bound: impl Fn(f64) -> f64,
) -> Verdict {
    let verdict = differences(name, found, expected, |found, value| {
        let both_nan = found.is_nan() && value.is_nan();
        // An infinite error is too large, whatever the tolerance: that of an infinite value is infinite as well.
        let error = (found - value).abs();
        both_nan || found == value || (error.is_finite() && error <= bound(*value))
    });
    let count = |values: &[f64]| values.iter().filter(|value| value.is_nan()).count() as u64;
    Verdict { nans: Nans { found: count(found), expected: count(expected) }, ..verdict }
}

/// Each element is as it should be, or wrong.
fn differences<T: std::fmt::Display>(
    name: &'static str,
    found: &[T],
    expected: &[T],
    is_right: impl Fn(&T, &T) -> bool,
) -> Verdict {
    let pairs = (0_u64..).zip(found.iter().zip(expected));
    let mut wrong = pairs.filter(|(_, (found, expected))| !is_right(found, expected)).peekable();
    let position = wrong.peek().map(|(at, (found, expected))| ElementPosition {
        tensor: name,
        index: vec![*at],
        found: found.to_string(),
        expected: expected.to_string(),
    });
    Verdict::exact(expected.len() as u64, wrong.count() as u64, position)
}

#[cfg(test)]
mod tests {
    use super::{Nans, doubles};

    #[test]
    fn nan_of_doubles_is_right_where_the_file_has_it_and_counted() {
        let nan = f64::NAN;
        let of = |found: &[f64], expected: &[f64]| doubles("x", found, expected, |_| 0.5);
        let both = of(&[1.0, nan], &[1.25, nan]);
        assert_eq!((both.wrong, both.nans), (0, Nans { found: 1, expected: 1 }));
        let infinite = doubles("x", &[1.0], &[f64::INFINITY], |value| 1e-8 + 1e-5 * value.abs());
        assert_eq!(infinite.wrong, 1);
        let one = of(&[1.0, nan], &[2.0, 1.0]);
        assert_eq!((one.wrong, one.nans), (2, Nans { found: 1, expected: 0 }));
    }
}

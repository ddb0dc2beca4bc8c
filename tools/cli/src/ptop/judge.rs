//! Compares an output with the values of a NumPy file.

use pto_examples::host::{Elements, Tensor as FileTensor};
use pto_host::stitch::HostTensor;

use super::file_tensor::file_tensor;
use crate::args::ProgramRunArgs;
use crate::errors::Failure;

/// How an output compares with what it should be.
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) elements: usize,
    /// Elements that are too far away.
    pub(super) wrong: usize,
    pub(super) largest_error: f64,
    pub(super) pcc: f64,
    pub(super) is_right: bool,
}

/// Compares.
pub(super) fn judge(
    name: &str,
    found: &HostTensor,
    expected: &FileTensor,
    args: &ProgramRunArgs,
) -> Result<Judged, Failure> {
    let none = || {
        Failure::usage(format!(
            "--expect {name}: elements of type {} are not in NumPy files",
            found.dtype()
        ))
    };
    let found = file_tensor(found).ok_or_else(none)?;
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        return Err(Failure::usage(format!(
            "--expect {name}: the file has {} {:?}, and the output has {} {:?}",
            expected.dtype(),
            expected.shape(),
            found.dtype(),
            found.shape()
        )));
    }
    let (found, expected) = (numbers(&found), numbers(expected));
    let errors = found.iter().zip(&expected).map(|(found, expected)| distance(*found, *expected));
    let is_wrong = |(error, expected): &(f64, &f64)| {
        // Nothing is near to what is not a number.
        let is_near = *error <= args.atol + args.rtol * expected.abs();
        !is_near
    };
    let wrong = errors.clone().zip(&expected).filter(is_wrong).count();
    let largest_error = errors.fold(0.0, f64::max);
    let pcc = correlation(&found, &expected);
    let is_right = args.pcc.map_or(wrong == 0, |least| pcc >= least);
    Ok(Judged { name: name.to_owned(), elements: found.len(), wrong, largest_error, pcc, is_right })
}

/// How far apart two numbers are. Infinities of the same sign are the same number.
fn distance(found: f64, expected: f64) -> f64 {
    if found.total_cmp(&expected).is_eq() { 0.0 } else { (found - expected).abs() }
}

/// The elements as numbers; whole ones beyond 2^53 lose their last digits.
fn numbers(tensor: &FileTensor) -> Vec<f64> {
    macro_rules! each {
        ($($variant:ident)*) => {
            match tensor.elements() {
                $(Elements::$variant(values) => values.iter().map(|value| *value as f64).collect(),)*
            }
        };
    }
    each! { F32 I32 U32 F64 I64 U64 I16 U16 I8 U8 }
}

/// The Pearson correlation; of values that are all the same, 1 where both are the same.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    if a == b {
        return 1.0;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        ab += (a - mean_a) * (b - mean_b);
        aa += (a - mean_a) * (a - mean_a);
        bb += (b - mean_b) * (b - mean_b);
    }
    ab / (aa * bb).sqrt()
}

#[cfg(test)]
mod tests {
    use super::correlation;

    #[test]
    fn the_correlation_is_pearsons() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert!((correlation(&[5.0, 5.0], &[5.0, 5.0]) - 1.0).abs() < 1e-12);
        assert!(correlation(&[5.0, 5.0], &[5.0, 6.0]).is_nan());
    }
}

//! Compares an output with the values of a NumPy file.

use pto_examples::host::check::Nans;
use pto_examples::host::{DType as FileType, ElementVec, Tensor as FileTensor};
use pto_host::stitch::HostTensor;
use pto_host::workloads::program::{Program, Role, TensorDescription};
use pto_host::workloads::tile::DType;

use super::file_tensor::file_tensor;
use crate::args::ProgramRunArgs;
use crate::errors::Failure;

/// How far an output may be from what it should be.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
    /// The least Pearson correlation, which is compared instead.
    pub(crate) pcc: Option<f64>,
}

impl Tolerance {
    pub(super) const fn of(args: &ProgramRunArgs) -> Self {
        Self { rtol: args.rtol, atol: args.atol, pcc: args.pcc }
    }
}

/// How an output compares with what it should be.
pub(crate) struct Judged {
    pub(super) name: String,
    pub(super) elements: usize,
    /// Elements that are too far away.
    pub(super) wrong: usize,
    pub(super) largest_error: f64,
    pub(super) pcc: f64,
    /// Elements that are NaN, in the result and in the file.
    pub(super) nans: Nans,
    pub(crate) is_right: bool,
}

/// Nothing runs for a file that no output can be compared with.
pub(super) fn check(program: &Program, files: &[(String, FileTensor)]) -> Result<(), Failure> {
    let is_given =
        |tensor: &&TensorDescription| matches!(tensor.role, Role::Output | Role::Updated);
    let outputs: Vec<_> = program.tensors().iter().filter(is_given).collect();
    for (name, file) in files {
        let Some(output) = outputs.iter().find(|output| output.name == *name) else {
            let known: Vec<_> = outputs.iter().map(|output| output.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "--expect {name}: the program has no output '{name}'; its outputs are {}",
                known.join(", ")
            )));
        };
        let same = file.dtype().name() == output.dtype.name();
        let wider = (file.dtype(), output.dtype) == (FileType::F64, DType::F32);
        if file.shape() != &*output.shape || !(same || wider) {
            return Err(Failure::usage(format!(
                "--expect {name}: the file has {} {:?}, and the output has {} {:?}; give a file of the same type and shape, or of f64 for f32",
                file.dtype(),
                file.shape(),
                output.dtype,
                output.shape
            )));
        }
    }
    Ok(())
}

/// Compares an output with a file that [`check`] has let through.
pub(super) fn judge(
    name: &str,
    found: &HostTensor,
    expected: &FileTensor,
    tolerance: Tolerance,
) -> Result<Judged, Failure> {
    let found = file_tensor(found).ok_or_else(|| {
        Failure::usage(format!(
            "--expect {name}: elements of type {} are not in NumPy files",
            found.dtype()
        ))
    })?;
    Ok(compared(name, (&numbers(&found), &numbers(expected)), tolerance))
}

/// Compares numbers. NaN is right where both have it, and counted, so that none passes in silence.
pub(crate) fn compared(
    name: &str,
    (found, expected): (&[f64], &[f64]),
    tolerance: Tolerance,
) -> Judged {
    let count = |values: &[f64]| values.iter().filter(|value| value.is_nan()).count() as u64;
    let nans = Nans { found: count(found), expected: count(expected) };
    let pairs = found.iter().copied().zip(expected.iter().copied());
    let pairs: Vec<_> = pairs.filter(|(a, b)| !(a.is_nan() && b.is_nan())).collect();
    let errors = pairs.iter().map(|(found, expected)| distance(*found, *expected));
    let is_wrong = |(error, (_, expected)): &(f64, &(f64, f64))| {
        // An infinite error is too large, whatever the tolerance: that of an infinite value is infinite as well.
        let is_near =
            error.is_finite() && *error <= tolerance.atol + tolerance.rtol * expected.abs();
        !(is_near || *error == 0.0)
    };
    let wrong = errors.clone().zip(&pairs).filter(is_wrong).count();
    let largest_error = errors.fold(0.0, f64::max);
    let pcc = correlation(&pairs);
    Judged {
        name: name.to_owned(),
        elements: found.len(),
        wrong,
        largest_error,
        pcc,
        nans,
        is_right: tolerance.pcc.map_or(wrong == 0, |least| pcc >= least),
    }
}

/// How far apart two numbers are. Infinities of the same sign are the same number, and nothing is near to what is not a number.
fn distance(found: f64, expected: f64) -> f64 {
    if found == expected {
        return 0.0;
    }
    let distance = (found - expected).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// The elements as numbers; whole ones beyond 2^53 lose their last digits.
fn numbers(tensor: &FileTensor) -> Vec<f64> {
    macro_rules! each {
        ($($variant:ident)*) => {
            match tensor.elements() {
                $(ElementVec::$variant(values) => values.iter().map(|value| *value as f64).collect(),)*
            }
        };
    }
    each! { F32 I32 U32 F64 I64 U64 I16 U16 I8 U8 }
}

/// The Pearson correlation of pairs; 1 where both of each pair are the same.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    if pairs.iter().all(|(a, b)| a == b) {
        return 1.0;
    }
    let mean = |sum: f64| sum / pairs.len() as f64;
    let mean_a = mean(pairs.iter().map(|(a, _)| a).sum());
    let mean_b = mean(pairs.iter().map(|(_, b)| b).sum());
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in pairs {
        ab += (a - mean_a) * (b - mean_b);
        aa += (a - mean_a) * (a - mean_a);
        bb += (b - mean_b) * (b - mean_b);
    }
    ab / (aa * bb).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{Tolerance, compared, correlation};
    use crate::args::{Cli, Command, ProgramCommand, ProgramRunArgs};
    use clap::Parser;
    use pto_examples::host::check::Nans;

    #[test]
    fn the_correlation_is_pearsons() {
        assert!((correlation(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]) + 1.0).abs() < 1e-12);
        assert!((correlation(&[(5.0, 5.0), (5.0, 5.0)]) - 1.0).abs() < 1e-12);
        assert!(correlation(&[(5.0, 5.0), (5.0, 6.0)]).is_nan());
    }

    fn args(options: &[&str]) -> Box<ProgramRunArgs> {
        let words = [&["pto", "program", "run", "x.ptop", "--expect", "Y=y.npy"], options].concat();
        match Cli::try_parse_from(words).expect("options that there are").command {
            Command::Program(program) => match program.command {
                ProgramCommand::Run(args) => args,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nan_is_right_where_both_have_it_and_always_counted() {
        // Two NaN of different bits.
        let [nan, other] = [f64::NAN, -f64::NAN];
        let of = |found: &[f64], expected: &[f64], options: &[&str]| {
            let judged = compared("Y", (found, expected), Tolerance::of(&args(options)));
            (judged.is_right, judged.wrong, judged.largest_error, judged.nans)
        };
        let both = Nans { found: 1, expected: 1 };
        assert_eq!(of(&[1.0, nan], &[1.0, other], &[]), (true, 0, 0.0, both));
        assert_eq!(of(&[1.0, nan, 2.0], &[1.0, other, 2.0], &["--pcc=1"]), (true, 0, 0.0, both));
        let one = Nans { found: 1, expected: 0 };
        assert_eq!(of(&[1.0, nan], &[1.0, 2.0], &[]), (false, 1, f64::INFINITY, one));
        assert_eq!(of(&[1.0, nan], &[1.0, 2.0], &["--pcc=0"]), (false, 1, f64::INFINITY, one));
        let infinite = [f64::INFINITY; 2];
        assert_eq!(of(&infinite, &infinite, &[]), (true, 0, 0.0, Nans::default()));
        assert_eq!(of(&[1.0; 2], &infinite, &[]), (false, 2, f64::INFINITY, Nans::default()));
    }
}

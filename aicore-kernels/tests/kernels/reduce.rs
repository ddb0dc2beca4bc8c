//! `row_max`: exact. `row_sum`: within `gamma(cols / 8 + 4)` of the sum of magnitudes.

use crate::support::{GuardedMatrix, LENGTHS, XorShift64, assert_close, call, gamma};

fn reduce(kernel: &str, a: &mut GuardedMatrix) -> GuardedMatrix {
    let mut out = GuardedMatrix::unset((1, a.rows), 0);
    let shape = [a.rows as u64, a.cols as u64, a.stride()];
    call(kernel, &[a.address(), out.address(), shape[0], shape[1], shape[2]]);
    out.assert_guards();
    out
}

fn operands(limit: f64) -> impl Iterator<Item = GuardedMatrix> {
    let mut rng = XorShift64::new(4);
    let shapes = [0, 1, 2, 5].into_iter().flat_map(|rows| LENGTHS.map(|cols| (rows, cols)));
    shapes
        .flat_map(|shape| [(shape, 0), (shape, 3)])
        .map(move |(shape, gap)| GuardedMatrix::random(shape, gap, limit, &mut rng))
}

#[test]
fn row_max_is_exact() {
    for mut a in operands(1e6) {
        let out = reduce("row_max", &mut a);
        for row in 0..a.rows {
            let expected = a.row(row).iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(out.at(0, row), expected, "{} x {}", a.rows, a.cols);
        }
    }
}

#[test]
fn row_max_finds_the_maximum_and_a_nan_in_every_position() {
    for cols in [1, 7, 17, 33] {
        for at in 0..cols {
            let mut a =
                GuardedMatrix::new((2, cols), 1, |_, col| if col == at { -1.0 } else { -2.0 });
            assert_eq!(reduce("row_max", &mut a).row(0), [-1.0, -1.0]);
            let nan_in = |row, col| if (row, col) == (0, at) { f32::NAN } else { 3.0 };
            let out = reduce("row_max", &mut GuardedMatrix::new((2, cols), 1, nan_in));
            assert!(out.at(0, 0).is_nan(), "a NaN at {at} of {cols} disappeared");
            assert_eq!(out.at(0, 1), 3.0);
        }
    }
}

#[test]
fn row_max_of_infinities() {
    let mut a = GuardedMatrix::new((2, 9), 0, |row, _| [f32::NEG_INFINITY, f32::INFINITY][row]);
    assert_eq!(reduce("row_max", &mut a).row(0), [f32::NEG_INFINITY, f32::INFINITY]);
}

#[test]
fn row_sum_is_within_its_bound() {
    for mut a in operands(1e3) {
        let out = reduce("row_sum", &mut a);
        for row in 0..a.rows {
            let sum: f64 = a.row(row).iter().map(|&a| f64::from(a)).sum();
            let magnitude: f64 = a.row(row).iter().map(|&a| f64::from(a).abs()).sum();
            let tolerance = gamma(a.cols / 8 + 4) * magnitude;
            assert_close(out.at(0, row), sum, tolerance, || format!("{} x {}", a.rows, a.cols));
        }
    }
}

#[test]
fn row_sum_counts_every_element_once() {
    for cols in LENGTHS {
        // Distinct powers of two would overflow; distinct integers suffice and are exact.
        let mut a = GuardedMatrix::new((3, cols), 2, |row, col| {
            f32::from(u16::try_from(row * 100 + col).unwrap())
        });
        let out = reduce("row_sum", &mut a);
        for row in 0..3 {
            assert_eq!(
                f64::from(out.at(0, row)),
                (0..cols).map(|col| (row * 100 + col) as f64).sum()
            );
        }
    }
}

#[test]
fn a_stride_of_zero_repeats_the_row() {
    let mut a = GuardedMatrix::vector(&[1.0, 2.0, 3.0]);
    let mut out = GuardedMatrix::unset((1, 4), 0);
    call("row_sum", &[a.address(), out.address(), 4, 3, 0]);
    assert_eq!(out.row(0), [6.0; 4]);
}

//! The tile kernels of Cholesky's factorisation: each against its definition, with Higham's bounds (chapter 10).

use crate::support::{GuardedMatrix, XorShift64, assert_close, call, gamma};

const SIZES: [usize; 7] = [0, 1, 2, 5, 8, 17, 40];

/// `g @ g^T + n * 1`: definite; the upper triangle is NaN.
fn definite(n: usize, gap: usize, rng: &mut XorShift64) -> GuardedMatrix {
    let g = GuardedMatrix::random((n, n), 0, 1.0, rng);
    let element = |i: usize, j: usize| {
        let sum: f64 = (0..n).map(|k| g.f64_at(i, k) * g.f64_at(j, k)).sum();
        sum + if i == j { n as f64 } else { 0.0 }
    };
    GuardedMatrix::new((n, n), gap, |i, j| {
        if j > i { f32::NAN } else { crate::support::round(element(i, j)) }
    })
}

fn potrf(a: &mut GuardedMatrix, first_row: u64) -> u32 {
    let mut status = u32::MAX;
    let address = (&raw mut status).expose_provenance() as u64;
    let (n, ld) = (a.rows as u64, a.stride());
    call("cholesky_potrf", &[a.address(), address, n, ld, first_row]);
    a.assert_guards();
    status
}

/// A lower triangular factor, of a definite matrix; NaN above the diagonal.
fn factor(n: usize, gap: usize, rng: &mut XorShift64) -> GuardedMatrix {
    let mut l = definite(n, gap, rng);
    assert_eq!(potrf(&mut l, 0), 0);
    l
}

#[test]
fn potrf_gives_back_the_matrix() {
    let mut rng = XorShift64::new(31);
    for n in SIZES {
        let a = definite(n, 3, &mut rng);
        let mut l = a.clone();
        assert_eq!(potrf(&mut l, 7), 0, "{n}");
        for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let product = |k: usize| l.f64_at(i, k) * l.f64_at(j, k);
            let (sum, magnitude) =
                (0..=j).fold((0.0, 0.0), |(s, m), k| (s + product(k), m + product(k).abs()));
            let what = || format!("{n}: {i}, {j}");
            assert_close(a.at(i, j), sum, gamma(n + 2) * magnitude, what);
        }
        let is_above = |i: usize| (i + 1..n).all(|j| l.at(i, j).is_nan());
        assert!((0..n).all(is_above), "wrote above the diagonal");
    }
}

#[test]
fn potrf_names_the_first_row_that_is_not_definite() {
    let mut rng = XorShift64::new(32);
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        for row in [0, 3, 8] {
            let mut a = definite(9, 0, &mut rng);
            a = GuardedMatrix::new(
                (9, 9),
                0,
                |i, j| if i == j && i == row { bad } else { a.at(i, j) },
            );
            assert_eq!(potrf(&mut a, 100), 101 + u32::try_from(row).unwrap(), "{bad} in row {row}");
        }
    }
}

#[test]
fn trsm_solves_from_the_right() {
    let mut rng = XorShift64::new(33);
    for (rows, n) in SIZES.into_iter().flat_map(|rows| SIZES.map(|n| (rows, n))) {
        let mut l = factor(n, 1, &mut rng);
        let a = GuardedMatrix::random((rows, n), 2, 2.0, &mut rng);
        let mut x = a.clone();
        let shape = [rows as u64, n as u64, l.stride(), x.stride()];
        call("cholesky_trsm", &[l.address(), x.address(), shape[0], shape[1], shape[2], shape[3]]);
        x.assert_guards();
        for (r, j) in (0..rows).flat_map(|r| (0..n).map(move |j| (r, j))) {
            let product = |k: usize| x.f64_at(r, k) * l.f64_at(j, k);
            let (sum, magnitude) =
                (0..=j).fold((0.0, 0.0), |(s, m), k| (s + product(k), m + product(k).abs()));
            assert_close(a.at(r, j), sum, gamma(n + 1) * magnitude, || {
                format!("{rows} x {n}: {r}, {j}")
            });
        }
    }
}

#[test]
fn gemm_and_syrk_subtract_a_product() {
    let mut rng = XorShift64::new(34);
    for (m, n, k) in [(0, 3, 2), (1, 1, 1), (5, 7, 0), (8, 8, 8), (13, 6, 33), (40, 17, 9)] {
        let mut a = GuardedMatrix::random((m, k), 1, 2.0, &mut rng);
        let mut b = GuardedMatrix::random((n, k), 2, 2.0, &mut rng);
        let before = GuardedMatrix::random((m, n), 3, 2.0, &mut rng);
        let mut c = before.clone();
        let shape = [m as u64, n as u64, k as u64];
        let (a_ld, b_ld, c_ld) = (a.stride(), b.stride(), c.stride());
        let (x, y, z) = (a.address(), b.address(), c.address());
        call("cholesky_gemm", &[x, y, z, shape[0], shape[1], shape[2], a_ld, b_ld, c_ld]);
        c.assert_guards();
        let all = (0..m).flat_map(|i| (0..n).map(move |j| (i, j)));
        all.for_each(|at| subtracted(&before, &a, &b, &c, at));

        let before = GuardedMatrix::random((m, m), 3, 2.0, &mut rng);
        let mut c = before.clone();
        let c_ld = c.stride();
        call("cholesky_syrk", &[a.address(), c.address(), shape[0], shape[2], a_ld, c_ld]);
        c.assert_guards();
        for (i, j) in (0..m).flat_map(|i| (0..m).map(move |j| (i, j))) {
            if j > i {
                assert_eq!(c.at(i, j).to_bits(), before.at(i, j).to_bits(), "above: {i}, {j}");
            } else {
                subtracted(&before, &a, &a, &c, (i, j));
            }
        }
    }
}

/// `c = before - a @ b^T` in one element.
#[track_caller]
fn subtracted(
    before: &GuardedMatrix,
    a: &GuardedMatrix,
    b: &GuardedMatrix,
    c: &GuardedMatrix,
    (i, j): (usize, usize),
) {
    let product = |k: usize| a.f64_at(i, k) * b.f64_at(j, k);
    let exact = before.f64_at(i, j) - (0..a.cols).map(product).sum::<f64>();
    let magnitude = before.f64_at(i, j).abs() + (0..a.cols).map(|k| product(k).abs()).sum::<f64>();
    assert_close(c.at(i, j), exact, gamma(a.cols + 2) * magnitude, || format!("{i}, {j}"));
}

//! `newton_start` and `newton_residual`, against their definitions.

use crate::support::{GuardedMatrix, XorShift64, assert_close, call, gamma};

#[test]
fn the_start_is_the_scaled_transpose() {
    let mut rng = XorShift64::new(41);
    for n in [0, 1, 3, 8, 21] {
        let mut a = GuardedMatrix::random((n, n), 2, 5.0, &mut rng);
        let mut x = GuardedMatrix::unset((n, n), 1);
        let shape = [n as u64, a.stride(), x.stride()];
        call("newton_start", &[a.address(), x.address(), shape[0], shape[1], shape[2]]);
        x.assert_guards();
        let rows = (0..n).map(|i| (0..n).map(|j| a.f64_at(i, j).abs()).sum::<f64>());
        let cols = (0..n).map(|j| (0..n).map(|i| a.f64_at(i, j).abs()).sum::<f64>());
        let scale = rows.fold(0.0, f64::max) * cols.fold(0.0, f64::max);
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let exact = a.f64_at(j, i) / scale;
            let tolerance = gamma(2 * n + 4) * exact.abs();
            assert_close(x.at(i, j), exact, tolerance, || format!("{n}: {i}, {j}"));
        }
    }
}

#[test]
fn a_residual_knows_where_the_diagonal_is() {
    let mut rng = XorShift64::new(42);
    // A tile of a larger matrix, from (row, col).
    for (row, col, rows, cols) in [(0, 0, 5, 5), (0, 3, 9, 4), (8, 2, 3, 17), (4, 9, 3, 3)] {
        let mut p = GuardedMatrix::random((rows, cols), 1, 2.0, &mut rng);
        let mut e = GuardedMatrix::unset((rows, cols), 2);
        let mut sum = GuardedMatrix::unset((1, 1), 0);
        let diagonal = (row as u64).wrapping_sub(col as u64);
        let shape = [rows as u64, cols as u64, diagonal, p.stride(), e.stride()];
        let (from, to, total) = (p.address(), e.address(), sum.address());
        let [rows_word, cols_word, diagonal, p_ld, e_ld] = shape;
        call("newton_residual", &[from, to, total, rows_word, cols_word, diagonal, p_ld, e_ld]);
        e.assert_guards();
        let mut squares = 0.0;
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            let unit = if row + i == col + j { 1.0 } else { 0.0 };
            let exact = unit - p.f64_at(i, j);
            assert_close(e.at(i, j), exact, gamma(1) * exact.abs(), || format!("{i}, {j}"));
            squares += exact * exact;
        }
        let tolerance = gamma(rows * cols + 4) * squares;
        assert_close(sum.at(0, 0), squares, tolerance, || "the sum".to_owned());
        let in_place = p.clone();
        let mut in_place = in_place;
        let at = in_place.address();
        call("newton_residual", &[at, at, total, rows_word, cols_word, diagonal, p_ld, p_ld]);
        assert!((0..rows).all(|i| in_place.row(i) == e.row(i)), "in place");
    }
}

#[test]
fn a_norm_adds_one_element_of_each_line() {
    for n in [0, 1, 5, 40] {
        let mut squares = GuardedMatrix::new((n, 1), 15, |line, _| line as f32 + 0.5);
        let mut sum = GuardedMatrix::unset((1, 1), 0);
        call("newton_norm", &[squares.address(), sum.address(), n as u64, 16]);
        let n = n as f32;
        assert_eq!(sum.at(0, 0), n * n / 2.0);
    }
}

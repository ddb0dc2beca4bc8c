//! `copy`, `rms_norm`, `rope`, `silu_mul`, against their definitions.

use pto_abi::block::BlockContext;
use pto_aicore_kernels::args::scalar_word;

use crate::support::{
    GuardedMatrix, LENGTHS, TINY, U, XorShift64, assert_close, call, call_with, gamma,
};

fn operands(limit: f64) -> impl Iterator<Item = GuardedMatrix> {
    let mut rng = XorShift64::new(51);
    let shapes = [0, 1, 3].into_iter().flat_map(|rows| LENGTHS.map(|cols| (rows, cols)));
    shapes.map(move |shape| GuardedMatrix::random(shape, (shape.0 + shape.1) % 3, limit, &mut rng))
}

fn elements(of: &GuardedMatrix) -> impl Iterator<Item = (usize, usize)> + use<> {
    let (rows, cols) = (of.rows, of.cols);
    (0..rows).flat_map(move |r| (0..cols).map(move |c| (r, c)))
}

#[test]
fn copy_copies() {
    for mut a in operands(9.0) {
        let mut out = GuardedMatrix::unset((a.rows, a.cols), 2);
        let shape = [a.rows as u64, a.cols as u64, a.stride(), out.stride()];
        call("copy", &[a.address(), out.address(), shape[0], shape[1], shape[2], shape[3]]);
        out.assert_guards();
        assert!((0..a.rows).all(|r| a.row(r) == out.row(r)));
    }
}

#[test]
fn rms_norm_is_within_its_bound_also_in_place() {
    for mut x in operands(3.0) {
        let mut weight = GuardedMatrix::random((1, x.cols), 0, 2.0, &mut XorShift64::new(52));
        let mut out = GuardedMatrix::unset((x.rows, x.cols), 3);
        let shape = [x.rows as u64, x.cols as u64];
        let (x_ld, out_ld, epsilon) = (x.stride(), out.stride(), scalar_word(1e-3));
        let words = [x.address(), weight.address(), out.address(), shape[0], shape[1]];
        let [from, by, to, rows, cols] = words;
        call("rms_norm", &[from, by, to, rows, cols, x_ld, out_ld, epsilon]);
        out.assert_guards();
        for (r, c) in elements(&x) {
            let squares: f64 = x.row(r).iter().map(|x| f64::from(*x).powi(2)).sum();
            let root = (squares / x.cols as f64 + f64::from(1e-3_f32)).sqrt();
            let exact = x.f64_at(r, c) / root * weight.f64_at(0, c);
            let tolerance = gamma(x.cols / 8 + 10) * exact.abs() + TINY;
            assert_close(out.at(r, c), exact, tolerance, || format!("{r}, {c}"));
        }
        let mut in_place = x.clone();
        let at = in_place.address();
        call("rms_norm", &[at, by, at, rows, cols, x_ld, x_ld, epsilon]);
        assert!((0..x.rows).all(|r| in_place.row(r) == out.row(r)), "in place");
    }
}

#[test]
fn rope_rotates_pairs() {
    for mut x in operands(3.0).filter(|x| x.cols % 2 == 0) {
        let half = x.cols / 2;
        let angle = |i: usize| 0.3 + 1.7 * i as f64;
        let mut cos =
            GuardedMatrix::new((1, half), 0, |_, i| crate::support::round(angle(i).cos()));
        let mut sin =
            GuardedMatrix::new((1, half), 0, |_, i| crate::support::round(angle(i).sin()));
        let mut out = GuardedMatrix::unset((x.rows, x.cols), 1);
        let (x_ld, out_ld) = (x.stride(), out.stride());
        let (rows, dim) = (x.rows as u64, x.cols as u64);
        let [from, c, s, to] = [x.address(), cos.address(), sin.address(), out.address()];
        call("rope", &[from, c, s, to, rows, dim, x_ld, out_ld]);
        out.assert_guards();
        for (r, i) in elements(&x) {
            let plane = i % half;
            let (low, high) = (x.f64_at(r, plane), x.f64_at(r, plane + half));
            let (c, s) = (cos.f64_at(0, plane), sin.f64_at(0, plane));
            let exact = if i < half { low * c - high * s } else { high * c + low * s };
            let tolerance = gamma(2) * (low.abs() + high.abs()) + TINY;
            assert_close(out.at(r, i), exact, tolerance, || format!("{r}, {i}"));
        }
        let mut in_place = x.clone();
        let at = in_place.address();
        call("rope", &[at, c, s, at, rows, dim, x_ld, x_ld]);
        assert!((0..x.rows).all(|r| in_place.row(r) == out.row(r)), "in place");
    }
}

#[test]
fn silu_mul_is_within_its_bound() {
    for mut gate in operands(20.0) {
        let mut up =
            GuardedMatrix::random((gate.rows, gate.cols), 2, 3.0, &mut XorShift64::new(53));
        let mut out = GuardedMatrix::unset((gate.rows, gate.cols), 1);
        let (rows, cols) = (gate.rows as u64, gate.cols as u64);
        let strides = [gate.stride(), up.stride(), out.stride()];
        let [g, u, o] = [gate.address(), up.address(), out.address()];
        call("silu_mul", &[g, u, o, rows, cols, strides[0], strides[1], strides[2]]);
        out.assert_guards();
        for (r, c) in elements(&gate) {
            let g = gate.f64_at(r, c);
            let exact = g / (1.0 + (-g).exp()) * up.f64_at(r, c);
            // exp: 2 roundings; sum, quotient, product.
            assert_close(out.at(r, c), exact, 6.0 * U * exact.abs() + TINY, || format!("{r}, {c}"));
        }
    }
}

#[test]
fn silu_of_what_is_far_from_zero() {
    let (inf, largest) = (f32::INFINITY, f32::MAX);
    let mut gate = GuardedMatrix::vector(&[
        -inf,
        -largest,
        -1e4,
        -200.0,
        0.0,
        200.0,
        1e4,
        largest,
        inf,
        f32::NAN,
    ]);
    let mut up = GuardedMatrix::vector(&[1.0; 10]);
    let mut out = GuardedMatrix::unset((1, 10), 0);
    call("silu_mul", &[gate.address(), up.address(), out.address(), 1, 10, 10, 10, 10]);
    assert_eq!(out.row(0)[..9], [0.0, 0.0, 0.0, 0.0, 0.0, 200.0, 1e4, largest, inf]);
    assert!(out.at(0, 9).is_nan());
}

#[test]
fn rms_norm_of_elements_whose_squares_overflow() {
    let (inf, largest) = (f32::INFINITY, f32::MAX);
    for (elements, exact) in [
        ([largest; 9], [1.0; 9]),
        (
            [2e19, -2e19, 2e19, -2e19, 2e19, -2e19, 2e19, -2e19, 2e19],
            [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0],
        ),
        (
            [3e30, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ),
    ] {
        let (mut x, mut weight) =
            (GuardedMatrix::vector(&elements), GuardedMatrix::vector(&[1.0; 9]));
        let mut out = GuardedMatrix::unset((1, 9), 0);
        let epsilon = scalar_word(1e-5);
        let [from, by, to] = [x.address(), weight.address(), out.address()];
        call("rms_norm", &[from, by, to, 1, 9, 9, 9, epsilon]);
        for (found, exact) in out.row(0).iter().zip(exact) {
            assert!((found - exact).abs() <= 1e-6 * exact.abs(), "{elements:?}: {found}");
        }
    }
    let (mut x, mut weight) =
        (GuardedMatrix::vector(&[inf, 1.0]), GuardedMatrix::vector(&[1.0; 2]));
    let mut out = GuardedMatrix::unset((1, 2), 0);
    let [from, by, to] = [x.address(), weight.address(), out.address()];
    call("rms_norm", &[from, by, to, 1, 2, 2, 2, scalar_word(0.0)]);
    assert!(out.at(0, 0).is_nan() && out.at(0, 1) == 0.0);
}

/// One task of three cores: each has its part of the arguments, and the bits of the kernels for the parts alone.
#[test]
fn the_parts_of_a_decoding_task() {
    let mut rng = XorShift64::new(54);
    let (rows, dim, inner, group) = (3, 8, 20, 2);
    let heads = group + 2;
    let mut a = GuardedMatrix::random((rows, inner), 1, 2.0, &mut rng);
    let mut b = GuardedMatrix::random((inner, dim), 2, 2.0, &mut rng);
    // Queries, a key and a value of each row, side by side.
    let before = GuardedMatrix::random((rows, heads * dim), 0, 2.0, &mut rng);
    let mut angles = GuardedMatrix::random((5, dim), 0, 1.0, &mut rng);
    let positions = [4_u32, 1, 5];
    let run = |kernel: &str,
               lane: u32,
               a: &mut GuardedMatrix,
               b: &mut GuardedMatrix,
               angles: &mut GuardedMatrix| {
        let mut qkv = before.clone();
        let at = |head: usize| 4 * (head * dim) as u64;
        let (q, ld) = (qkv.address(), qkv.stride());
        let table = positions.as_ptr().expose_provenance() as u64;
        let operands = [a.address(), b.address(), q + at(group + 1), q, q + at(group), table];
        let sizes = [rows, dim, inner, group].map(|size| size as u64);
        let strides = [a.stride(), b.stride(), ld];
        let words = [&operands[..], &[angles.address()], &sizes, &strides].concat();
        call_with(kernel, &words, BlockContext { lane, ..BlockContext::ONLY }.word());
        qkv.assert_guards();
        qkv
    };
    let value = run("decode_value", 0, &mut a, &mut b, &mut angles);
    let mut product = GuardedMatrix::unset((rows, dim), 0);
    let (a_ld, b_ld, to) = (a.stride(), b.stride(), product.address());
    let sizes = [rows, dim, inner].map(|size| size as u64);
    let [m, n, k] = sizes;
    call("matmul", &[a.address(), b.address(), to, m, n, k, a_ld, b_ld, n]);
    for row in 0..rows {
        let (heads_before, last) = before.row(row).split_at((group + 1) * dim);
        assert_eq!(value.row(row)[..heads_before.len()], *heads_before, "wrote other heads");
        assert_eq!(value.row(row)[heads_before.len()..], *product.row(row));
        assert_eq!(last.len(), dim);
    }
    for (lane, own) in [(0, 0..group * dim), (1, group * dim..(group + 1) * dim)] {
        let rotated = run("decode_rotate", lane, &mut a, &mut b, &mut angles);
        for (row, position) in positions.iter().enumerate() {
            let mut expected = before.clone();
            let first = expected.address() + 4 * (row * heads * dim + own.start) as u64;
            let cos = angles.address() + 4 * u64::from(position - 1) * dim as u64;
            let (heads, sin) = ((own.len() / dim) as u64, cos + 2 * dim as u64);
            call("rope", &[first, cos, sin, first, heads, n, n, n]);
            assert_eq!(rotated.row(row), expected.row(row), "lane {lane}, row {row}");
        }
    }
}

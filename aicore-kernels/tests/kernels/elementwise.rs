//! add, `add_scalar`, mul: exact. exp: within 0.992 ulp.

use pto_aicore_kernels::args::scalar_word;
use pto_aicore_kernels::exp::exp;

use crate::support::{GuardedMatrix, LENGTHS, XorShift64, call, round};

/// Runs `kernel` on `a`, `b` into a fresh output, and in place on each of the inputs.
fn check_binary(kernel: &str, exact: impl Fn(f64, f64) -> f64) {
    let mut rng = XorShift64::new(1);
    for n in LENGTHS {
        let a = GuardedMatrix::random((1, n), 0, 1e3, &mut rng);
        let b = GuardedMatrix::random((1, n), 0, 1e3, &mut rng);
        // Rounding to f64 and then to f32 equals rounding once, for one addition or product.
        let expected =
            GuardedMatrix::new((1, n), 0, |_, i| round(exact(a.f64_at(0, i), b.f64_at(0, i))));
        let (mut x, mut y, mut out) = (a.clone(), b.clone(), GuardedMatrix::unset((1, n), 0));
        call(kernel, &[x.address(), y.address(), out.address(), n as u64]);
        assert_eq!(out.bits(), expected.bits(), "{kernel} {n}");
        call(kernel, &[x.address(), y.address(), x.address(), n as u64]);
        assert_eq!(x.bits(), expected.bits(), "{kernel} {n} into a");
        let mut x = a.clone();
        call(kernel, &[x.address(), y.address(), y.address(), n as u64]);
        assert_eq!(y.bits(), expected.bits(), "{kernel} {n} into b");
        assert_eq!(x.bits(), a.bits(), "{kernel} {n} wrote an input");
    }
}

#[test]
fn add_is_exact_also_in_place() {
    check_binary("add", |a, b| a + b);
}

#[test]
fn mul_is_exact_also_in_place() {
    check_binary("mul", |a, b| a * b);
}

#[test]
fn add_scalar_is_exact_also_in_place() {
    let mut rng = XorShift64::new(2);
    for n in LENGTHS {
        let mut a = GuardedMatrix::random((1, n), 0, 1e3, &mut rng);
        let scalar = rng.within(10.0);
        let sum = |i| round(a.f64_at(0, i) + f64::from(scalar));
        let expected = GuardedMatrix::new((1, n), 0, |_, i| sum(i));
        let mut out = GuardedMatrix::unset((1, n), 0);
        // The high half of a scalar word means nothing.
        let word = scalar_word(scalar) | 0xdead_beef << 32;
        call("add_scalar", &[a.address(), word, out.address(), n as u64]);
        assert_eq!(out.bits(), expected.bits(), "{n}");
        call("add_scalar", &[a.address(), word, a.address(), n as u64]);
        assert_eq!(a.bits(), expected.bits(), "{n} in place");
    }
}

#[test]
fn operands_of_no_elements_may_have_any_address() {
    for address in [0, 1, u64::MAX] {
        call("add", &[address, address, address, 0]);
        call("exp", &[address, address, 0]);
        call("row_sum", &[address, address, 0, 5, 5]);
        call("matmul", &[address, address, address, 0, 0, 3, 3, 3, 3]);
    }
}

/// The error of `exp(x)` in units of the last place of the true result.
fn exp_error_ulp(x: f32) -> f64 {
    let exact = f64::from(x).exp();
    let exponent = exact.log2().floor().max(-126.0);
    (f64::from(exp(x)) - exact).abs() / (exponent - 23.0).exp2()
}

#[test]
fn exp_is_within_one_ulp() {
    // Every 509th float of each sign up to the limits; all floats were measured once: 0.9903 and
    // 0.7504.
    let limits = [88.722_84_f32, -103.972_08_f32];
    for limit in limits {
        let sign = limit.to_bits() & (1 << 31);
        for bits in (0..=limit.abs().to_bits()).step_by(509) {
            let x = f32::from_bits(bits | sign);
            let bound = if exp(x) < f32::MIN_POSITIVE { 0.751 } else { 0.991 };
            let error = exp_error_ulp(x);
            assert!(error <= bound, "exp({x:e}) is wrong by {error} ulp");
        }
    }
    assert!(exp_error_ulp(70.4031) > 0.98, "the worst case is no longer the worst case");
}

#[test]
fn exp_at_the_edges() {
    let cases = [
        (0.0, 1.0),
        (-0.0, 1.0),
        (f32::INFINITY, f32::INFINITY),
        (f32::NEG_INFINITY, 0.0),
        (f32::MAX, f32::INFINITY),
        (f32::MIN, 0.0),
        (88.722_84, f32::INFINITY), // the first that overflows
        (-103.972_084, 0.0),        // the first that rounds to zero
        (-104.5, 0.0),
        (f32::MIN_POSITIVE, 1.0),
    ];
    for (x, expected) in cases {
        assert_eq!(exp(x).to_bits(), expected.to_bits(), "exp({x:e}) = {:e}", exp(x));
    }
    assert!(exp(88.722_83).is_finite());
    assert!(exp(-103.972) > 0.0);
    for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(u32::MAX)] {
        assert!(exp(nan).is_nan());
    }
}

#[test]
fn exp_kernel_is_the_function_in_every_lane() {
    let mut rng = XorShift64::new(3);
    for n in LENGTHS {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 100.0, -200.0];
        let special = |i: usize| (i % 7 == 6).then_some(special[i / 7 % special.len()]);
        let mut a =
            GuardedMatrix::new((1, n), 0, |_, i| special(i).unwrap_or_else(|| rng.within(90.0)));
        let mut out = GuardedMatrix::unset((1, n), 0);
        call("exp", &[a.address(), out.address(), n as u64]);
        out.assert_guards();
        for (a, out) in a.row(0).iter().zip(out.row(0)) {
            let same = exp(*a).to_bits() == out.to_bits();
            assert!(same || exp(*a).is_nan() && out.is_nan(), "exp({a}) is not {out}");
        }
        call("exp", &[a.address(), a.address(), n as u64]);
        let same =
            |(a, out): (&f32, &f32)| a.to_bits() == out.to_bits() || a.is_nan() && out.is_nan();
        assert!(a.row(0).iter().zip(out.row(0)).all(same), "in place, {n}");
    }
}

//! The square root: correctly rounded, which is checked for every mantissa.

use pto_aicore_kernels::sqrt::sqrt;

use crate::support::round;

#[track_caller]
fn check(x: f32) {
    let expected = round(f64::from(x).sqrt());
    assert_eq!(sqrt(x).to_bits(), expected.to_bits(), "sqrt({x:e})");
}

#[test]
fn every_mantissa_is_correctly_rounded() {
    // Two exponents: one even, one odd. Others differ by powers of four, which are exact.
    for bits in 1.0_f32.to_bits()..=4.0_f32.to_bits() {
        check(f32::from_bits(bits));
    }
}

#[test]
fn every_exponent_and_what_is_special() {
    for exponent in 0..255_u32 {
        for mantissa in [0, 1, 2, 0x40_0000, 0x7f_fffe, 0x7f_ffff] {
            check(f32::from_bits(exponent << 23 | mantissa));
        }
    }
    check(f32::INFINITY);
    assert_eq!(sqrt(-0.0).to_bits(), (-0.0_f32).to_bits());
    for x in [-1.0, -f32::MIN_POSITIVE, f32::NEG_INFINITY, f32::NAN] {
        assert!(sqrt(x).is_nan(), "{x}");
    }
}

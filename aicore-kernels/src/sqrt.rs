//! The square root, correctly rounded, without a mathematics library: Heron's iteration in `f64`.

/// Half of the exponent's bias, in place: halving the bits of a number halves its exponent, and this mends the bias.
const HALF_BIAS: u64 = 0x1FF8 << 48;
/// The first guess is off by less than 7 %; each step squares the error and halves it: 2.5e-3, 3.1e-6, 4.8e-12, below `f64`.
const STEPS: usize = 4;

/// The square root of `x`, rounded to the nearest `f32`.
///
/// `sqrt(0.0) = 0.0`, `sqrt(-0.0) = -0.0`, `sqrt(inf) = inf`; NaN of NaN and of anything below zero.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
pub fn sqrt(x: f32) -> f32 {
    if x == 0.0 || x == f32::INFINITY {
        return x;
    }
    let is_positive = x > 0.0;
    if !is_positive {
        return f32::NAN;
    }
    // Every `f32` above zero is a normal `f64`.
    let x = f64::from(x);
    let mut root = f64::from_bits((x.to_bits() >> 1) + HALF_BIAS);
    for _ in 0..STEPS {
        root = 0.5 * (root + x / root);
    }
    // The root of an `f32` is never close to the middle of two: at least 2^-51 of it, and this is off by 2^-52.
    root as f32
}

//! Transcendental functions in double precision, without branches, so that loops over them become vector instructions.
//!
//! `exp`, `tanh`: reduction by multiples of `ln 2` (Cody and Waite) and a Taylor polynomial. `ln`: the series of the inverse
//! hyperbolic tangent. `sin`, `cos`: reduction by multiples of a quarter turn in three parts, and for large arguments with
//! the bits of `2 / pi` (Payne and Hanek). The errors are measured in `tests/tile/math.rs`.

/// `1.5 * 2^52`: adding it rounds to an integer, which is then in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// `ln 2` in two parts; the product of the first with any exponent is exact.
const LN2_HI: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LO: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
/// `1 / 13!, 1 / 12!, .. 1 / 3!, 1 / 2`.
const EXP: [f64; 12] = {
    let mut coefficients = [0.0; 12];
    let mut factorial = 1.0;
    let mut n = 2;
    while n <= 13 {
        factorial *= n as f64;
        coefficients[13 - n] = 1.0 / factorial;
        n += 1;
    }
    coefficients
};

/// `e^x = 2^n (1 + p)`: `n` and `p`.
#[inline(always)]
fn exp_parts(x: f64) -> (i64, f64) {
    let shifted = x * core::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HI) - n * LN2_LO;
    let mut poly = EXP[0];
    for coefficient in &EXP[1..] {
        poly = poly * r + coefficient;
    }
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed();
    (n, poly * (r * r) + r)
}

/// `2^n` for a normal result.
#[inline(always)]
fn power_of_two(n: i64) -> f64 {
    f64::from_bits(n.wrapping_add(1023).cast_unsigned() << 52)
}

/// The nearest of `low ..= high`; NaN stays NaN.
#[inline(always)]
fn clamp(x: f64, low: f64, high: f64) -> f64 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

/// `e^x`: overflow gives infinity, underflow is gradual.
#[inline(always)]
#[must_use]
pub fn exp(x: f64) -> f64 {
    let (n, p) = exp_parts(clamp(x, -750.0, 715.0));
    // Neither factor of `2^n` overflows.
    let half = n >> 1;
    (p + 1.0) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// The hyperbolic tangent: `e^2x - 1` over `e^2x + 1`, where the difference is computed without loss.
#[inline(always)]
#[must_use]
pub fn tanh(x: f64) -> f64 {
    let (n, p) = exp_parts(2.0 * clamp(x, -22.0, 22.0));
    let scale = power_of_two(n);
    let minus_one = scale * p + (scale - 1.0);
    let result = minus_one / (minus_one + 2.0);
    // Keeps the sign of zero.
    if x == 0.0 { x } else { result }
}

/// [`tanh`] for a result that is rounded to an `f32`: its error is below `2^-33` of the result.
#[inline(always)]
#[must_use]
pub fn tanh_for_f32(x: f64) -> f64 {
    /// `2^2 / 2!, 2^3 / 3!, .. 2^9 / 9!`: `(e^2r - 1 - 2r) / r^2` by powers of `r`. What follows adds less than `2^-35` of the result.
    const POLY: [f64; 8] = {
        let mut coefficients = [0.0; 8];
        let (mut term, mut n) = (2.0, 2);
        while n <= 9 {
            term *= 2.0 / n as f64;
            coefficients[n - 2] = term;
            n += 1;
        }
        coefficients
    };
    /// Beyond, the result is less than `2^-36` away from 1.
    const END: f64 = 13.0;
    let magnitude = x.abs();
    let magnitude = if magnitude > END { END } else { magnitude };
    // `e^2x = 2^n e^2r`. Where `n` is not 0, what `r` loses in one step is small against 1.
    let shifted = magnitude * (2.0 * core::f64::consts::LOG2_E) + ROUND;
    let r = magnitude - (shifted - ROUND) * (0.5 * core::f64::consts::LN_2);
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    // In pairs: a core computes those side by side.
    let [a, b, c, d, e, f, g, h] = POLY;
    let r2 = r * r;
    let low = (d * r + c) * r2 + (b * r + a);
    let high = (h * r + g) * r2 + (f * r + e);
    let p = (high * (r2 * r2) + low) * r2 + (r + r);
    let minus_one = scale * p + (scale - 1.0);
    let result = minus_one / (minus_one + 2.0);
    f64::from_bits(result.to_bits() | x.to_bits() & 1 << 63)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
#[must_use]
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// `x sigmoid(x)`; 0 at minus infinity.
#[inline(always)]
#[must_use]
pub fn silu(x: f64) -> f64 {
    let result = x / (1.0 + exp(-x));
    if x == f64::NEG_INFINITY { -0.0 } else { result }
}

/// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, computed as `x sigmoid(2 ..)`.
#[inline(always)]
#[must_use]
pub fn gelu(x: f64) -> f64 {
    /// `2 sqrt(2 / pi)`.
    const SLOPE: f64 = 1.595_769_121_605_730_7;
    let inner = SLOPE * (x + 0.044_715 * x * x * x);
    let result = x / (1.0 + exp(-inner));
    if x == f64::NEG_INFINITY { -0.0 } else { result }
}

/// The natural logarithm: minus infinity at zero, NaN below.
#[inline(always)]
#[must_use]
pub fn ln(x: f64) -> f64 {
    ln_by::<0>(x)
}

/// [`ln`] for a result that is rounded to an `f32`: its error is below `2^-33` of the result.
#[inline(always)]
#[must_use]
pub fn ln_for_f32(x: f64) -> f64 {
    /// The first coefficient left out adds less than `2^-34` of the result.
    const BEYOND_F32: usize = 5;
    ln_by::<BEYOND_F32>(x)
}

#[inline(always)]
fn ln_by<const SKIPPED: usize>(x: f64) -> f64 {
    /// `2 / 21, 2 / 19, .. 2 / 3`.
    const SERIES: [f64; 10] = {
        let mut coefficients = [0.0; 10];
        let mut n = 0;
        while n < 10 {
            coefficients[n] = 2.0 / (21 - 2 * n) as f64;
            n += 1;
        }
        coefficients
    };
    /// `2^54`: makes subnormal numbers normal.
    const LIFT: f64 = 18_014_398_509_481_984.0;
    let is_subnormal = x < f64::MIN_POSITIVE;
    let lifted = if is_subnormal { x * LIFT } else { x };
    let lift = if is_subnormal { 54.0 } else { 0.0 };
    // `x = 2^e m`, and `m` is between the roots of 1/2 and 2.
    let offset = lifted.to_bits().wrapping_sub(0x3FE6_A09E_667F_3BCD);
    let e = offset.cast_signed() >> 52;
    let m = f64::from_bits(lifted.to_bits().wrapping_sub(e.cast_unsigned() << 52));
    // An integer of a few bits, as a float, without an instruction that has no vector form.
    let e = f64::from_bits(ROUND.to_bits().wrapping_add(e.cast_unsigned())) - ROUND - lift;
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut series = SERIES[SKIPPED];
    for coefficient in &SERIES[SKIPPED + 1..] {
        series = series * z + coefficient;
    }
    // `2 s = f - s f`, of which the first term is exact.
    let result = e * LN2_HI + (f - (s * (f - series * z) - e * LN2_LO));
    let result = if x == f64::INFINITY { x } else { result };
    let result = if x == 0.0 { f64::NEG_INFINITY } else { result };
    let is_number = x >= 0.0;
    if is_number { result } else { f64::NAN }
}

/// Beyond this magnitude the sine and cosine take `large_turn`.
pub const LARGE: f64 = 1_048_576.0;
/// A quarter turn in four parts: three of 33 bits, whose products with the count are exact, and the rest.
const QUARTER: [f64; 4] = [
    f64::from_bits(0x3FF9_21FB_5440_0000),
    f64::from_bits(0x3DD0_B461_1A60_0000),
    f64::from_bits(0x3BA3_198A_2E00_0000),
    f64::from_bits(0x397B_839A_2520_49C1),
];

/// `x` as a count of quarter turns (its last two bits) and a rest of at most an eighth turn, for `|x| <=` [`LARGE`].
#[inline(always)]
fn turn(x: f64) -> (u64, f64) {
    let shifted = x * core::f64::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let rest = ((x - n * QUARTER[0]) - n * QUARTER[1]) - n * QUARTER[2];
    (shifted.to_bits(), rest - n * QUARTER[3])
}

/// The sine and cosine of at most an eighth turn.
#[inline(always)]
fn eighth(r: f64) -> (f64, f64) {
    /// `1 / 17!, -1 / 15!, .. -1 / 3!`.
    const SIN: [f64; 8] = taylor(17);
    /// `-1 / 18!, 1 / 16!, .. 1 / 4!`.
    const COS: [f64; 8] = taylor(18);
    let z = r * r;
    let (mut sin, mut cos) = (SIN[0], COS[0]);
    for coefficient in &SIN[1..] {
        sin = sin * z + coefficient;
    }
    for coefficient in &COS[1..] {
        cos = cos * z + coefficient;
    }
    let half = 0.5 * z;
    let one = 1.0 - half;
    // What rounding took from `1 - z / 2` is added again.
    let cos = one + (((1.0 - one) - half) + z * z * cos);
    (r + r * z * sin, cos)
}

/// Eight coefficients of the Taylor series of the sine or cosine, from `1 / first!` down by twos, with their signs.
const fn taylor(first: u64) -> [f64; 8] {
    let mut coefficients = [0.0; 8];
    let mut at = 0;
    while at < 8 {
        let n = first - 2 * at as u64;
        let mut factorial = 1.0;
        let mut k = 2;
        while k <= n {
            factorial *= k as f64;
            k += 1;
        }
        let sign = if (n / 2).is_multiple_of(2) { 1.0 } else { -1.0 };
        coefficients[at] = sign / factorial;
        at += 1;
    }
    coefficients
}

/// The sine of a number of quarter turns and a rest.
#[inline(always)]
fn sine_of((quarters, rest): (u64, f64)) -> f64 {
    let (sin, cos) = eighth(rest);
    let value = if quarters & 1 == 0 { sin } else { cos };
    f64::from_bits(value.to_bits() ^ ((quarters & 2) << 62))
}

/// The sine of `|x| <=` [`LARGE`]; of others anything.
#[inline(always)]
#[must_use]
pub fn sin_small(x: f64) -> f64 {
    let result = sine_of(turn(x));
    // Keeps the sign of zero.
    if x == 0.0 { x } else { result }
}

/// The cosine of `|x| <=` [`LARGE`]; of others anything.
#[inline(always)]
#[must_use]
pub fn cos_small(x: f64) -> f64 {
    let (quarters, rest) = turn(x);
    sine_of((quarters.wrapping_add(1), rest))
}

/// The sine of any number.
#[must_use]
pub fn sin_large(x: f64) -> f64 {
    let magnitude = sine_of(large_turn(x.abs()));
    if x < 0.0 { -magnitude } else { magnitude }
}

/// The cosine of any number.
#[must_use]
pub fn cos_large(x: f64) -> f64 {
    let (quarters, rest) = large_turn(x.abs());
    sine_of((quarters.wrapping_add(1), rest))
}

/// `2 / pi`, the bits after the point.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// As [`turn`], for `x >= 1`: the integer mantissa times the bits of `2 / pi` that matter, modulo 4. NaN for what is not finite.
fn large_turn(x: f64) -> (u64, f64) {
    /// `2^128`.
    const UNIT: f64 = f64::from_bits((1023 + 128) << 52);
    if !x.is_finite() {
        return (0, f64::NAN);
    }
    let bits = x.to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
    // `x = mantissa 2^exponent`.
    let exponent = (bits >> 52).cast_signed() - 1075;
    // Bits of `2 / pi` above this one give multiples of four quarter turns.
    let skipped = exponent - 2;
    let window = |at: i64| -> u64 {
        let bit = skipped + at;
        let (word, shift) = (bit.div_euclid(64), bit.rem_euclid(64));
        let word_at = |word: i64| {
            usize::try_from(word).ok().and_then(|word| TWO_OVER_PI.get(word)).copied().unwrap_or(0)
        };
        let high = word_at(word) << shift;
        if shift == 0 { high } else { high | word_at(word + 1) >> (64 - shift) }
    };
    // The product of the mantissa with 192 bits, modulo 2^192: two bits of quarters, 190 of the fraction.
    let wide = |a: u64| u128::from(a) * u128::from(mantissa);
    let (high, middle, low) = (wide(window(0)), wide(window(64)), wide(window(128)));
    let top = (high << 64).wrapping_add(middle).wrapping_add(low >> 64);
    // `top` holds the upper 128 bits modulo 2^128: two bits of quarters, then the fraction.
    let fraction = (top << 2).cast_signed();
    // A fraction above a half becomes the next quarter and a negative rest.
    let quarters = top.wrapping_add(1 << 125) >> 126;
    let rest = fraction as f64 * (core::f64::consts::FRAC_PI_2 / UNIT);
    (quarters as u64, rest)
}

/// The square root, correctly rounded.
#[inline(always)]
#[must_use]
pub fn sqrt(x: f64) -> f64 {
    // SAFETY: every machine of this architecture has the instruction: SSE2 belongs to x86-64, NEON to the targets of the
    // device.
    unsafe { hardware_sqrt(x) }
}

#[inline]
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
fn hardware_sqrt(x: f64) -> f64 {
    use core::arch::x86_64::{_mm_cvtsd_f64, _mm_set_sd, _mm_sqrt_sd};
    let operand = _mm_set_sd(x);
    _mm_cvtsd_f64(_mm_sqrt_sd(operand, operand))
}

#[inline]
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn hardware_sqrt(x: f64) -> f64 {
    use core::arch::aarch64::{vdup_n_f64, vget_lane_f64, vsqrt_f64};
    vget_lane_f64::<0>(vsqrt_f64(vdup_n_f64(x)))
}

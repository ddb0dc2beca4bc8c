//! The functions of elementwise operators, over slices of the four types in which they are computed: `f32`, `f64`, `i64`, `u64`.
//!
//! `f32` also serves halves: a sum, difference, product, quotient or root of two halves in `f32`, rounded once more, is the correctly rounded one. Other
//! functions of floats are computed in `f64`. Integers of fewer than 64 bits are computed in `i64` and wrapped afterwards.

use std::f64::consts::FRAC_1_SQRT_2;

use pto_aicore_kernels::tile::math;

use crate::operator::{Activation, Binary, Unary};

/// Applies a function to each element.
#[inline(always)]
fn map<A: Copy, B>(a: &[A], out: &mut [B], function: impl Fn(A) -> B) {
    for (out, a) in out.iter_mut().zip(a) {
        *out = function(*a);
    }
}

/// Applies a function to pairs of elements.
#[inline(always)]
fn map2<A: Copy, B: Copy, C>(a: &[A], b: &[B], out: &mut [C], function: impl Fn(A, B) -> C) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = function(*a, *b);
    }
}

/// A unary function of floats in `f64`.
pub(crate) fn unary(function: Unary, x: f64) -> f64 {
    match function {
        Unary::Identity => x,
        Unary::Abs => x.abs(),
        Unary::Neg => -x,
        Unary::Sign => {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x
            }
        }
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Trunc => x.trunc(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Reciprocal => 1.0 / x,
        Unary::Square => x * x,
        Unary::Exp => math::exp(x),
        Unary::Exp2 => x.exp2(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => math::ln(x),
        Unary::Log2 => x.log2(),
        Unary::Log10 => x.log10(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Tanh => math::tanh(x),
        Unary::Asinh => x.asinh(),
        Unary::Acosh => acosh(x),
        Unary::Atanh => x.atanh(),
        Unary::Erf => erf(x),
        Unary::Sigmoid => math::sigmoid(x),
        Unary::Relu => {
            if x < 0.0 {
                0.0
            } else {
                x
            }
        }
        Unary::Softplus => softplus(x),
        Unary::Softsign => {
            if x.is_infinite() {
                x.signum()
            } else {
                x / (1.0 + x.abs())
            }
        }
        Unary::Gelu => {
            if x == f64::NEG_INFINITY {
                0.0
            } else {
                0.5 * x * erfc(-x * FRAC_1_SQRT_2)
            }
        }
        Unary::GeluTanh => math::gelu(x),
        Unary::HardSwish => {
            if x == f64::NEG_INFINITY {
                0.0
            } else {
                x * (x / 6.0 + 0.5).clamp(0.0, 1.0)
            }
        }
        Unary::Mish => {
            if x == f64::NEG_INFINITY {
                0.0
            } else {
                x * math::tanh(softplus(x))
            }
        }
        Unary::Not | Unary::BitwiseNot | Unary::IsNaN => f64::NAN,
    }
}

fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { x.acosh() }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p() + if x.is_nan() { x } else { 0.0 }
}

/// The error function, to a few units in the last place.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() < 2.0 { series(x) } else { (1.0 - tail(x.abs())).copysign(x) }
}

/// 1 - `erf(x)`, without loss for large x.
pub(crate) fn erfc(x: f64) -> f64 {
    match x {
        x if x.is_nan() => x,
        x if x < 1.0 => 1.0 - erf(x),
        x if x < 2.0 => tail(x),
        x => tail(x),
    }
}

/// `erf` near 0: 2 / sqrt(pi) e^(-x^2) (x + 2/3 x^3 + 4/15 x^5 + ..), all terms of one sign.
fn series(x: f64) -> f64 {
    let square = x * x;
    let (mut term, mut sum) = (x, x);
    for n in 1..80 {
        term *= 2.0 * square / f64::from(2 * n + 1);
        sum += term;
        if term.abs() < sum.abs() * 1e-17 {
            break;
        }
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-square).exp() * sum
}

/// `erfc` from 1 on, by its continued fraction from the inside outwards.
fn tail(x: f64) -> f64 {
    if x > 27.3 {
        return 0.0;
    }
    let depth = if x < 2.0 { 140 } else { 60 };
    let mut fraction = x;
    for n in (1..=depth).rev() {
        fraction = x + 0.5 * f64::from(n) / fraction;
    }
    // e^(-x^2), with the square in two parts, because its rounding error is multiplied by e^.
    let high = f64::from_bits(x.to_bits() & !0x07FF_FFFF);
    let exponential = (-high * high).exp() * (-(x - high) * (x + high)).exp();
    exponential / fraction * (0.5 * std::f64::consts::FRAC_2_SQRT_PI)
}

/// An activation of floats in `f64`.
pub(crate) fn activation(function: &Activation, x: f64) -> f64 {
    match *function {
        Activation::LeakyRelu { alpha } => {
            if x < 0.0 {
                alpha * x
            } else {
                x
            }
        }
        Activation::Elu { alpha } => {
            if x < 0.0 {
                alpha * x.exp_m1()
            } else {
                x
            }
        }
        Activation::Selu { alpha, gamma } => {
            if x > 0.0 {
                gamma * x
            } else {
                gamma * alpha * x.exp_m1()
            }
        }
        Activation::Celu { alpha } => {
            if x > 0.0 {
                x
            } else {
                alpha * (x / alpha).exp_m1()
            }
        }
        Activation::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
        Activation::ThresholdedRelu { alpha } => {
            if x > alpha || x.is_nan() {
                x
            } else {
                0.0
            }
        }
        Activation::Shrink { bias, lambda } => {
            if x < -lambda {
                x + bias
            } else if x > lambda {
                x - bias
            } else if x.is_nan() {
                x
            } else {
                0.0
            }
        }
        Activation::Swish { alpha } => {
            if alpha * x == f64::NEG_INFINITY {
                0.0
            } else {
                x * math::sigmoid(alpha * x)
            }
        }
        Activation::Clamp { low, high } => clip(x, low, high),
        Activation::Affine { alpha, beta } => alpha * x + beta,
        Activation::IsInf { .. } => f64::NAN,
    }
}

/// NaN stays NaN; of limits that cross the upper one wins.
#[inline(always)]
pub(crate) fn clip<T: PartialOrd + Copy>(x: T, low: T, high: T) -> T {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// Declares the functions for a float.
macro_rules! float {
    ($name:ident, $F:ident) => {
        pub(crate) mod $name {
            use pto_aicore_kernels::tile::math;

            use crate::kernel::function::{clip, map, map2};
            use crate::operator::{Activation, Binary, Unary};

            #[inline(always)]
            fn rounded(x: f64) -> $F {
                crate::element::Element::from_f64(x)
            }

            /// A unary function that gives floats.
            pub(crate) fn unary(function: Unary, a: &[$F], out: &mut [$F]) {
                match function {
                    Unary::Identity => map(a, out, |x| x),
                    Unary::Abs => map(a, out, |x| x.abs()),
                    Unary::Neg => map(a, out, |x| -x),
                    Unary::Sqrt => map(a, out, |x| x.sqrt()),
                    Unary::Reciprocal => map(a, out, |x| 1.0 / x),
                    Unary::Square => map(a, out, |x| x * x),
                    Unary::Relu => map(a, out, |x| if x < 0.0 { 0.0 } else { x }),
                    Unary::Exp => map(a, out, |x| rounded(math::exp(f64::from(x)))),
                    Unary::Exp2 => map(a, out, |x| rounded(f64::from(x).exp2())),
                    Unary::Log => map(a, out, |x| rounded(math::ln(f64::from(x)))),
                    Unary::Tanh => map(a, out, |x| rounded(math::tanh(f64::from(x)))),
                    Unary::Sigmoid => map(a, out, |x| rounded(math::sigmoid(f64::from(x)))),
                    Unary::GeluTanh => map(a, out, |x| rounded(math::gelu(f64::from(x)))),
                    Unary::Rsqrt => map(a, out, |x| rounded(1.0 / f64::from(x).sqrt())),
                    Unary::Floor => map(a, out, |x| x.floor()),
                    Unary::Ceil => map(a, out, |x| x.ceil()),
                    Unary::HardSwish => map(a, out, |x| {
                        let x = f64::from(x);
                        let gate = clip(x / 6.0 + 0.5, 0.0, 1.0);
                        rounded(if gate == 0.0 { 0.0 * clip(x, -1.0, 1.0) } else { x * gate })
                    }),
                    other => map(a, out, |x| {
                        rounded(crate::kernel::function::unary(other, f64::from(x)))
                    }),
                }
            }

            /// An activation that gives floats.
            pub(crate) fn activation(function: &Activation, a: &[$F], out: &mut [$F]) {
                match *function {
                    Activation::Clamp { low, high } => {
                        map(a, out, |x| rounded(clip(f64::from(x), low, high)));
                    }
                    Activation::HardSigmoid { alpha, beta } => {
                        map(a, out, |x| rounded(clip(alpha * f64::from(x) + beta, 0.0, 1.0)));
                    }
                    Activation::LeakyRelu { alpha } => {
                        map(a, out, |x| if x < 0.0 { rounded(alpha * f64::from(x)) } else { x });
                    }
                    Activation::Affine { alpha, beta } => {
                        map(a, out, |x| rounded(alpha * f64::from(x) + beta));
                    }
                    _ => map(a, out, |x| {
                        rounded(crate::kernel::function::activation(function, f64::from(x)))
                    }),
                }
            }

            /// A binary function that gives floats.
            pub(crate) fn binary(function: Binary, a: &[$F], b: &[$F], out: &mut [$F]) {
                match function {
                    Binary::Add => map2(a, b, out, |a, b| a + b),
                    Binary::Sub => map2(a, b, out, |a, b| a - b),
                    Binary::Mul => map2(a, b, out, |a, b| a * b),
                    Binary::Div => map2(a, b, out, |a, b| a / b),
                    Binary::Max => map2(a, b, out, |a, b| if a > b || a.is_nan() { a } else { b }),
                    Binary::Min => map2(a, b, out, |a, b| if a < b || a.is_nan() { a } else { b }),
                    Binary::PRelu => map2(a, b, out, |a, b| if a < 0.0 { a * b } else { a }),
                    Binary::Fmod => map2(a, b, out, |a, b| a % b),
                    Binary::Mod => map2(a, b, out, |a, b| {
                        let rest = a % b;
                        if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
                    }),
                    Binary::Atan2 => {
                        map2(a, b, out, |a, b| rounded(f64::from(a).atan2(f64::from(b))))
                    }
                    _ => out.fill($F::NAN),
                }
            }

            /// a to the power b.
            pub(crate) fn power(a: &[$F], b: &[f64], out: &mut [$F]) {
                if b.iter().all(|b| *b == 2.0) {
                    return map(a, out, |x| x * x);
                }
                if b.iter().all(|b| *b == 3.0) {
                    return map(a, out, |x| {
                        let x = f64::from(x);
                        rounded(x * x * x)
                    });
                }
                map2(a, b, out, |a, b| rounded(f64::from(a).powf(b)));
            }

            /// A comparison: 1 or 0.
            pub(crate) fn compare(function: Binary, a: &[$F], b: &[$F], out: &mut [i64]) {
                crate::kernel::function::compare(function, a, b, out);
            }
        }
    };
}

float!(single, f32);
float!(double, f64);

/// A comparison: 1 or 0.
fn compare<T: PartialOrd + Copy>(function: Binary, a: &[T], b: &[T], out: &mut [i64]) {
    match function {
        Binary::Equal => map2(a, b, out, |a, b| i64::from(a == b)),
        Binary::NotEqual => map2(a, b, out, |a, b| i64::from(a != b)),
        Binary::Less => map2(a, b, out, |a, b| i64::from(a < b)),
        Binary::LessOrEqual => map2(a, b, out, |a, b| i64::from(a <= b)),
        Binary::Greater => map2(a, b, out, |a, b| i64::from(a > b)),
        Binary::GreaterOrEqual => map2(a, b, out, |a, b| i64::from(a >= b)),
        _ => out.fill(0),
    }
}

/// Declares the functions for integers; `$bits` is the number of bits of the type that the elements stand for.
macro_rules! integer {
    ($name:ident, $I:ident, |$x:ident| $abs:expr, $sign:expr, $is_negative:expr) => {
        pub(crate) mod $name {
            use crate::kernel::function::{map, map2};
            use crate::operator::{Binary, Unary};

            #[inline(always)]
            const fn is_negative($x: $I) -> bool {
                $is_negative
            }

            /// A unary function.
            pub(crate) fn unary(function: Unary, a: &[$I], out: &mut [$I]) {
                match function {
                    Unary::Abs => map(a, out, |$x: $I| $abs),
                    Unary::Sign => map(a, out, |$x: $I| $sign),
                    Unary::Neg => map(a, out, |x| x.wrapping_neg()),
                    Unary::Square => map(a, out, |x| x.wrapping_mul(x)),
                    Unary::Relu => map(a, out, |x| x.max(0)),
                    Unary::BitwiseNot => map(a, out, |x| !x),
                    Unary::Not => map(a, out, |x| $I::from(x == 0)),
                    _ => map(a, out, |x| x),
                }
            }

            /// A binary function; shifts know the number of bits.
            pub(crate) fn binary(
                (function, bits): (Binary, u32),
                a: &[$I],
                b: &[$I],
                out: &mut [$I],
            ) {
                let shift = |b: $I| u32::try_from(b).ok().filter(|b| *b < bits);
                match function {
                    Binary::Add => map2(a, b, out, |a, b| a.wrapping_add(b)),
                    Binary::Sub => map2(a, b, out, |a, b| a.wrapping_sub(b)),
                    Binary::Mul => map2(a, b, out, |a, b| a.wrapping_mul(b)),
                    Binary::Div => {
                        map2(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) })
                    }
                    Binary::Fmod => {
                        map2(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) })
                    }
                    Binary::Mod => map2(a, b, out, |a, b| {
                        let rest = if b == 0 { 0 } else { a.wrapping_rem(b) };
                        if rest != 0 && is_negative(rest) != is_negative(b) {
                            rest.wrapping_add(b)
                        } else {
                            rest
                        }
                    }),
                    Binary::Max => map2(a, b, out, |a, b| a.max(b)),
                    Binary::Min => map2(a, b, out, |a, b| a.min(b)),
                    Binary::PRelu => {
                        map2(a, b, out, |a, b| if is_negative(a) { a.wrapping_mul(b) } else { a })
                    }
                    Binary::BitwiseAnd | Binary::And => map2(a, b, out, |a, b| a & b),
                    Binary::BitwiseOr | Binary::Or => map2(a, b, out, |a, b| a | b),
                    Binary::BitwiseXor | Binary::Xor => map2(a, b, out, |a, b| a ^ b),
                    Binary::ShiftLeft => map2(a, b, out, |a, b| shift(b).map_or(0, |b| a << b)),
                    // The sign moves in: where no bit of the number is left, it is all there is.
                    Binary::ShiftRight => map2(a, b, out, |a, b| {
                        let sign = if is_negative(a) { !0 } else { 0 };
                        shift(b).map_or(sign, |b| a >> b)
                    }),
                    _ => out.fill(0),
                }
            }

            /// a to the power of an integer: of a negative one towards zero.
            pub(crate) fn power(a: &[$I], b: &[i64], out: &mut [$I]) {
                map2(a, b, out, |a: $I, b| match u64::try_from(b) {
                    Ok(mut rest) => {
                        let (mut base, mut power): ($I, $I) = (a, 1);
                        while rest > 0 {
                            if rest % 2 == 1 {
                                power = power.wrapping_mul(base);
                            }
                            base = base.wrapping_mul(base);
                            rest /= 2;
                        }
                        power
                    }
                    Err(_) if a == 1 => 1,
                    Err(_) if is_negative(a) && a.wrapping_add(1) == 0 => {
                        if b % 2 == 0 {
                            1
                        } else {
                            a
                        }
                    }
                    Err(_) => 0,
                });
            }

            /// A comparison: 1 or 0.
            pub(crate) fn compare(function: Binary, a: &[$I], b: &[$I], out: &mut [i64]) {
                crate::kernel::function::compare(function, a, b, out);
            }
        }
    };
}

integer!(signed, i64, |x| x.wrapping_abs(), x.signum(), x < 0);
integer!(unsigned, u64, |x| x, x.min(1), {
    let _ = x;
    false
});

//! What elements are computed in: integers that wrap, `f32`, `f64`.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a function in double precision is rounded once; parts of a mean fit"
)]

use super::math;

/// A type of computation.
pub trait Number: Copy + PartialOrd + Default {
    /// What sums are kept in while they grow: `f64` for floats, so that they are rounded once.
    type Sum: Sum;
    /// As a sum of one.
    fn into_sum(self) -> Self::Sum;
    /// Rounds once.
    fn from_sum(sum: Self::Sum) -> Self;
    /// `a + b`.
    fn add(self, b: Self) -> Self;
    /// `a - b`.
    fn sub(self, b: Self) -> Self;
    /// `a * b`.
    fn mul(self, b: Self) -> Self;
    /// `a / b`; of integers towards zero. Zero for a divisor of zero, which the machine has refused before.
    fn div(self, b: Self) -> Self;
    /// The larger one; NaN if one is.
    fn larger(self, b: Self) -> Self;
    /// The smaller one; NaN if one is.
    fn smaller(self, b: Self) -> Self;
    /// `-a`.
    fn negated(self) -> Self;
    /// `|a|`.
    fn magnitude(self) -> Self;
    /// Whether dividing by this has no result.
    fn divides_nothing(self) -> bool;
}

/// What sums are kept in.
pub trait Sum: Copy + Default + bytemuck::Pod {
    /// `a + b`; integers wrap.
    fn plus(self, b: Self) -> Self;
    /// `a * b`: exact for factors that were `f32`; integers wrap.
    fn times(self, b: Self) -> Self;
    /// The mean of `count` terms, of which this is the sum. It does not overflow where the sum does; of integers towards zero, and 0 for a count of 0 or
    /// one that the type does not have.
    fn mean(self, terms: impl Iterator<Item = Self>, count: usize) -> Self;
}

impl Sum for f64 {
    #[inline(always)]
    fn plus(self, b: Self) -> Self {
        self + b
    }
    #[inline(always)]
    fn times(self, b: Self) -> Self {
        self * b
    }
    #[inline(always)]
    fn mean(self, terms: impl Iterator<Item = Self>, count: usize) -> Self {
        /// `2^64`: far more than a row has elements, so that sums of what is divided by it do not overflow.
        const SCALE: f64 = f64::from_bits((1023 + 64) << 52);
        let mean = self / count as Self;
        if mean.is_finite() {
            return mean;
        }
        let mean = terms.fold(0.0, |sum, x| sum + x / SCALE) / count as Self;
        // Roundings of the sum may lead beyond the largest number; a term that is infinite makes the mean so.
        if mean.is_finite() { (mean * SCALE).clamp(Self::MIN, Self::MAX) } else { mean }
    }
}

/// A type of computation with fractions.
pub(super) trait Real: Number {
    /// Whether it has no more bits than an `f32`.
    const IS_SHORT: bool = size_of::<Self>() <= size_of::<f32>();
    /// Through double precision, rounded once.
    fn through_f64(self, f: impl Fn(f64) -> f64) -> Self;
    /// `e^x`.
    #[inline(always)]
    fn exp(self) -> Self {
        self.through_f64(math::exp)
    }
    /// `1 / sqrt(x)`.
    #[inline(always)]
    fn rsqrt(self) -> Self {
        self.through_f64(|x| 1.0 / math::sqrt(x))
    }
    /// The natural logarithm.
    #[inline(always)]
    fn ln(self) -> Self {
        self.through_f64(|x| if Self::IS_SHORT { math::ln_for_f32(x) } else { math::ln(x) })
    }
    /// The square root.
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.through_f64(math::sqrt)
    }
    /// The hyperbolic tangent.
    #[inline(always)]
    fn tanh(self) -> Self {
        self.through_f64(|x| if Self::IS_SHORT { math::tanh_for_f32(x) } else { math::tanh(x) })
    }
    /// `1 / (1 + e^-x)`.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        self.through_f64(math::sigmoid)
    }
    /// `x / (1 + e^-x)`.
    #[inline(always)]
    fn silu(self) -> Self {
        self.through_f64(math::silu)
    }
    /// The approximation by `tanh`.
    #[inline(always)]
    fn gelu(self) -> Self {
        self.through_f64(math::gelu)
    }
}

/// Declares an integer type.
macro_rules! integer {
    ($type:ty, $magnitude:expr, $is_negative:expr) => {
        impl Sum for $type {
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn mean(self, terms: impl Iterator<Item = Self>, count: usize) -> Self {
                let Some(count) = Self::try_from(count).ok().filter(|count| *count != 0) else {
                    return 0;
                };
                // The sum is `count * whole + rest`, and neither part overflows.
                let (mut whole, mut rest) = (0 as Self, 0_i64);
                for x in terms {
                    whole = whole.wrapping_add(x.checked_div(count).unwrap_or(0));
                    rest = rest.wrapping_add(x.checked_rem(count).unwrap_or(0) as i64);
                }
                let divisor = count as i64;
                whole = whole.wrapping_add(rest.checked_div(divisor).unwrap_or(0) as Self);
                let rest = rest.checked_rem(divisor).unwrap_or(0);
                // Towards zero: a rest of the other sign makes the magnitude smaller.
                if whole > 0 && rest < 0 {
                    whole.wrapping_sub(1)
                } else if ($is_negative)(whole) && rest > 0 {
                    whole.wrapping_add(1)
                } else {
                    whole
                }
            }
        }

        impl Number for $type {
            type Sum = Self;
            #[inline(always)]
            fn into_sum(self) -> Self {
                self
            }
            #[inline(always)]
            fn from_sum(sum: Self) -> Self {
                sum
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn larger(self, b: Self) -> Self {
                if b > self { b } else { self }
            }
            #[inline(always)]
            fn smaller(self, b: Self) -> Self {
                if b < self { b } else { self }
            }
            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                ($magnitude)(self)
            }
            #[inline(always)]
            fn divides_nothing(self) -> bool {
                self == 0
            }
        }
    };
    ($($signed:ident)*; $($unsigned:ident)*) => {
        $(integer!($signed, $signed::wrapping_abs, $signed::is_negative);)*
        $(integer!($unsigned, |x: $unsigned| x, |_: $unsigned| false);)*
    };
}

integer!(i8 i16 i32 i64; u8 u16 u32 u64);

/// Declares a float type.
macro_rules! float {
    ($type:ident) => {
        impl Number for $type {
            type Sum = f64;
            #[inline(always)]
            fn into_sum(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_sum(sum: f64) -> Self {
                sum as Self
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self - b
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self * b
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            fn larger(self, b: Self) -> Self {
                if b > self || b.is_nan() { b } else { self }
            }
            #[inline(always)]
            fn smaller(self, b: Self) -> Self {
                if b < self || b.is_nan() { b } else { self }
            }
            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn divides_nothing(self) -> bool {
                false
            }
        }

        impl Real for $type {
            #[inline(always)]
            fn through_f64(self, f: impl Fn(f64) -> f64) -> Self {
                f(self as f64) as Self
            }
        }
    };
}

float!(f32);
float!(f64);

//! What elements are computed in: integers that wrap, `f32`, `f64`.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a function in double precision is rounded once"
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
    /// `a / count`; integers towards zero, and 0 for a count of 0 or one that the type does not have.
    fn over(self, count: usize) -> Self;
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
    fn over(self, count: usize) -> Self {
        self / count as Self
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
    ($type:ty, $magnitude:expr) => {
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
            fn over(self, count: usize) -> Self {
                Self::try_from(count).ok().and_then(|count| self.checked_div(count)).unwrap_or(0)
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
        $(integer!($signed, $signed::wrapping_abs);)*
        $(integer!($unsigned, |x: $unsigned| x);)*
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

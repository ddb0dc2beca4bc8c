//! Elements: their bytes, and how they are converted.

use half::{bf16, f16};

use crate::dtype::DType;

mod sealed {
    pub trait Sealed {}
}

/// True or false, in a byte of 1 or 0; every other byte is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Boolean(pub u8);

/// A type of elements.
pub trait Element:
    bytemuck::Pod + Send + Sync + PartialEq + std::fmt::Debug + sealed::Sealed
{
    /// Its name.
    const DTYPE: DType;
    /// The element in so many bytes; the rest of them is not looked at. Zero, where there are fewer.
    fn from_slice(bytes: &[u8]) -> Self;
    /// The bytes.
    fn to_bytes(self) -> impl Iterator<Item = u8>;
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
    /// The nearest element to a number; integers towards zero and saturating, NaN becomes 0. Of `bool` everything but 0 is true.
    fn from_f64(value: f64) -> Self;
    /// As an integer of 128 bits, which holds each; floats towards zero, NaN becomes 0.
    fn to_i128(self) -> i128;
    /// Of an integer; integers keep the lower bits, floats are the nearest ones.
    fn from_i128(value: i128) -> Self;
}

macro_rules! elements {
    ($($T:ty, $DType:ident, |$x:ident| $to_f64:expr, |$y:ident| $from_f64:expr, |$i:ident| $to_int:expr, |$j:ident| $from_int:expr;)*) => {
        $(
            impl sealed::Sealed for $T {}
            impl Element for $T {
                const DTYPE: DType = DType::$DType;
                fn from_slice(bytes: &[u8]) -> Self {
                    bytes.first_chunk().map_or_else(|| Self::from_ne_bytes([0; size_of::<Self>()]), |bytes| Self::from_ne_bytes(*bytes))
                }
                fn to_bytes(self) -> impl Iterator<Item = u8> {
                    self.to_ne_bytes().into_iter()
                }
                #[inline(always)]
                fn to_f64(self) -> f64 {
                    let $x = self;
                    $to_f64
                }
                #[inline(always)]
                fn from_f64($y: f64) -> Self {
                    $from_f64
                }
                #[inline(always)]
                fn to_i128(self) -> i128 {
                    let $i = self;
                    $to_int
                }
                #[inline(always)]
                fn from_i128($j: i128) -> Self {
                    $from_int
                }
            }
        )*
    };
}

impl Boolean {
    const fn from_ne_bytes(bytes: [u8; 1]) -> Self {
        Self(bytes[0])
    }
    const fn to_ne_bytes(self) -> [u8; 1] {
        [self.0]
    }
    /// Whether it is true.
    #[must_use]
    pub const fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Boolean {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "conversions between elements round and drop bits as documented"
)]
mod conversions {
    use super::{Boolean, DType, Element, bf16, f16, odd, sealed};

    elements! {
        Boolean, Bool, |x| f64::from(u8::from(x.is_true())), |y| Self(u8::from(y != 0.0)), |i| i128::from(i.is_true()), |j| Self(u8::from(j != 0));
        f16, F16, |x| f64::from(x.to_f32()), |y| Self::from_f32(odd(y)), |i| f64::from(i) as i128, |j| Self::from_f32(odd(j as f64));
        bf16, BF16, |x| f64::from(x.to_f32()), |y| Self::from_f32(odd(y)), |i| f64::from(i) as i128, |j| Self::from_f32(odd(j as f64));
        f32, F32, |x| f64::from(x), |y| y as Self, |i| i as i128, |j| j as Self;
        f64, F64, |x| x, |y| y, |i| i as i128, |j| j as Self;
        i8, I8, |x| f64::from(x), |y| y as Self, |i| i128::from(i), |j| j as Self;
        i16, I16, |x| f64::from(x), |y| y as Self, |i| i128::from(i), |j| j as Self;
        i32, I32, |x| f64::from(x), |y| y as Self, |i| i128::from(i), |j| j as Self;
        i64, I64, |x| x as f64, |y| y as Self, |i| i128::from(i), |j| j as Self;
        u8, U8, |x| f64::from(x), |y| y as Self, |i| i128::from(i), |j| j as Self;
        u16, U16, |x| f64::from(x), |y| y as Self, |i| i128::from(i), |j| j as Self;
        u32, U32, |x| f64::from(x), |y| y as Self, |i| i128::from(i), |j| j as Self;
        u64, U64, |x| x as f64, |y| y as Self, |i| i128::from(i), |j| j as Self;
    }
}

/// An `f32` that rounds to the same half as this number: where it is not exact, its last bit is one.
#[expect(clippy::cast_possible_truncation, reason = "rounding is the purpose")]
pub(crate) fn odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || !near.is_finite() || near.to_bits() & 1 == 1 {
        return near;
    }
    let away = value.abs() > f64::from(near.abs());
    let bits = near.to_bits();
    f32::from_bits(if away {
        bits + 1
    } else if bits << 1 == 0 {
        bits
    } else {
        bits - 1
    })
}

/// Names the element type `$T` that `$dtype` stands for, in `$body`.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::Bool => {
                type $T = $crate::element::Boolean;
                $body
            }
            $crate::dtype::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::dtype::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::dtype::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::dtype::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::dtype::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::dtype::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::dtype::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::dtype::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::dtype::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::dtype::DType::U64 => {
                type $T = u64;
                $body
            }
        }
    };
}
pub(crate) use with_type;

/// An element as an integer of 64 bits; `None`: it does not fit, or is no number there.
pub(crate) fn integer(dtype: DType, bytes: &[u8]) -> Option<i64> {
    with_type!(dtype, T => i64::try_from(T::from_slice(bytes).to_i128()).ok())
}

/// The nearest `f64` of an element.
pub(crate) fn double(dtype: DType, bytes: &[u8]) -> f64 {
    with_type!(dtype, T => T::from_slice(bytes).to_f64())
}

/// An element as an integer of 128 bits.
pub(crate) fn wide(dtype: DType, bytes: &[u8]) -> i128 {
    with_type!(dtype, T => T::from_slice(bytes).to_i128())
}

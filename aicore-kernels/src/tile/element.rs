//! Elements of tiles: the twelve types, the type that each computes in, and conversions between them.
//!
//! The conversions of half precision have no branches, so that a loop over them becomes vector instructions. They agree with
//! the crate `half` on every input (`tests/tile/element.rs`).
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the documentation of `cast` says what becomes of what does not fit"
)]

use bytemuck::Pod;
pub use half::{bf16, f16};

pub use super::arithmetic::Number;
use super::dtype::{DType, with_type};

/// An element type.
pub trait Element: Pod + Default + PartialEq {
    /// Its code.
    const DTYPE: DType;
    /// What it is computed in: `f32` for half precision, itself for all others.
    type Wide: Number;
    /// Converts to the type of computation.
    fn widen(self) -> Self::Wide;
    /// From the type of computation; floats are rounded to nearest even.
    fn narrow(wide: Self::Wide) -> Self;
    /// Rounds.
    fn from_f32(value: f32) -> Self;
    /// Rounds once.
    fn from_f64(value: f64) -> Self;
    /// Integers wrap, floats round.
    fn from_i64(value: i64) -> Self;
    /// Integers wrap, floats round.
    fn from_u64(value: u64) -> Self;
    /// To another type: floats round to nearest even, floats to integers truncate and saturate, integers wrap.
    fn cast<T: Element>(self) -> T;
    /// The element whose bits these are.
    fn from_bits(bits: u64) -> Self;
    /// The bits, zeros above them.
    fn bits(self) -> u64;
}

/// The bits of a number as an element of a type, converted as [`Element::cast`] does.
#[must_use]
pub fn bits_of<T: Element>(dtype: DType, value: T) -> u64 {
    match dtype {
        DType::F16 => value.cast::<f16>().bits(),
        DType::BF16 => value.cast::<bf16>().bits(),
        DType::F32 => value.cast::<f32>().bits(),
        DType::F64 => value.cast::<f64>().bits(),
        DType::I8 => value.cast::<i8>().bits(),
        DType::I16 => value.cast::<i16>().bits(),
        DType::I32 => value.cast::<i32>().bits(),
        DType::I64 => value.cast::<i64>().bits(),
        DType::U8 => value.cast::<u8>().bits(),
        DType::U16 => value.cast::<u16>().bits(),
        DType::U32 => value.cast::<u32>().bits(),
        DType::U64 => value.cast::<u64>().bits(),
    }
}

/// The bits of an element of type `to` that an element of type `from` with these bits becomes, converted as [`Element::cast`] does.
#[must_use]
pub fn bits_as(from: DType, bits: u64, to: DType) -> u64 {
    with_type!(from, T => bits_of(to, <T as Element>::from_bits(bits)))
}

/// What `as` does for every primitive number: the type computes in itself, and comes from each of these types.
macro_rules! primitive {
    ($code:ident) => {
        const DTYPE: DType = DType::$code;
        type Wide = Self;
        #[inline(always)]
        fn widen(self) -> Self {
            self
        }
        #[inline(always)]
        fn narrow(wide: Self) -> Self {
            wide
        }
        #[inline(always)]
        fn from_f32(value: f32) -> Self {
            value as Self
        }
        #[inline(always)]
        fn from_f64(value: f64) -> Self {
            value as Self
        }
        #[inline(always)]
        fn from_i64(value: i64) -> Self {
            value as Self
        }
        #[inline(always)]
        fn from_u64(value: u64) -> Self {
            value as Self
        }
    };
}

/// Declares an integer type.
macro_rules! integer {
    ($type:ty, $code:ident, $from:ident, $through:ty) => {
        impl Element for $type {
            primitive!($code);
            #[inline(always)]
            fn cast<T: Element>(self) -> T {
                T::$from(self as $through)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                let bytes = size_of::<Self>() * 8;
                (self as u64) & (u64::MAX >> (64 - bytes))
            }
        }
    };
}

integer!(i8, I8, from_i64, i64);
integer!(i16, I16, from_i64, i64);
integer!(i32, I32, from_i64, i64);
integer!(i64, I64, from_i64, i64);
integer!(u8, U8, from_u64, u64);
integer!(u16, U16, from_u64, u64);
integer!(u32, U32, from_u64, u64);
integer!(u64, U64, from_u64, u64);

/// Declares single or double precision.
macro_rules! float {
    ($type:ty, $code:ident, $from:ident, $bits:ty) => {
        impl Element for $type {
            primitive!($code);
            #[inline(always)]
            fn cast<T: Element>(self) -> T {
                T::$from(self)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$type>::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
        }
    };
}

float!(f32, F32, from_f32, u32);
float!(f64, F64, from_f64, u64);

/// Declares a type of half precision.
macro_rules! half_float {
    ($type:ty, $code:ident, $widen:ident, $narrow:ident) => {
        impl Element for $type {
            const DTYPE: DType = DType::$code;
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                $widen(self.to_bits())
            }
            #[inline(always)]
            fn narrow(wide: f32) -> Self {
                Self::from_bits($narrow(wide))
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                Self::narrow(value)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                Self::from_bits($narrow(round_to_odd(value)))
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                let value = if value.unsigned_abs() < LONG { value } else { short_i64(value) };
                // Not `Self::from_f64`, which is a function of `half` that ignores the lower bits of the fraction.
                <Self as Element>::from_f64(value as f64)
            }
            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                let value = if value < LONG { value } else { short_u64(value) };
                <Self as Element>::from_f64(value as f64)
            }
            #[inline(always)]
            fn cast<T: Element>(self) -> T {
                T::from_f32(self.widen())
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$type>::from_bits(bits as u16)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
        }
    };
}

half_float!(f16, F16, f16_to_f32, f32_to_f16);
half_float!(bf16, BF16, bf16_to_f32, f32_to_bf16);

/// From this magnitude on, an integer may have more bits than an `f64`, and its lowest ones count as one.
const LONG: u64 = 1 << 53;
/// The bits that count as one: what is left has 53 bits.
const LOWEST: u64 = (1 << 11) - 1;

/// An integer of at least [`LONG`] that is exact as an `f64`, and that rounds to fewer bits as `value` does: its lowest bits are kept as one odd bit.
#[inline(always)]
const fn short_u64(value: u64) -> u64 {
    let odd = if value & LOWEST == 0 { 0 } else { LOWEST + 1 };
    value & !LOWEST | odd
}

/// As [`short_u64`], also for integers below zero.
#[inline(always)]
const fn short_i64(value: i64) -> i64 {
    short_u64(value.cast_unsigned()).cast_signed()
}

/// An `f32` from which rounding to fewer bits gives what rounding `value` itself would give: what does not fit is kept as an
/// odd last bit.
#[inline(always)]
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let exact = f64::from(nearest);
    let bits = nearest.to_bits();
    let is_even = bits & 1 == 0;
    if exact == value || value.is_nan() || nearest.is_infinite() || !is_even {
        return nearest;
    }
    // The neighbour on the other side of `value` is odd.
    let is_beyond = exact.abs() > value.abs();
    f32::from_bits(if is_beyond { bits - 1 } else { bits + 1 })
}

/// Half precision to single: exact.
#[inline(always)]
fn f16_to_f32(half: u16) -> f32 {
    /// `2^112`: the difference of the biases, as a factor, which also makes subnormal numbers normal.
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    let half = u32::from(half);
    let sign = (half & 0x8000) << 16;
    let magnitude = (half & 0x7FFF) << 13;
    let finite = (f32::from_bits(magnitude) * REBIAS).to_bits();
    // Infinity and NaN keep their mantissa; a NaN becomes a quiet one.
    let is_nan = half & 0x7FFF > 0x7C00;
    let quiet = if is_nan { 0x0040_0000 } else { 0 };
    let special = magnitude | 0x7F80_0000 | quiet;
    let bits = if half & 0x7C00 == 0x7C00 { special } else { finite };
    f32::from_bits(bits | sign)
}

/// Single precision to half, to nearest even.
#[inline(always)]
fn f32_to_f16(single: f32) -> u16 {
    /// The first magnitude that has no finite half: `2^16`.
    const OVERFLOWS: u32 = (127 + 16) << 23;
    /// The smallest normal half: `2^-14`.
    const NORMAL: u32 = (127 - 14) << 23;
    /// A number whose last bit is worth the last bit of a subnormal half: `2^-1`.
    const SUBNORMAL: u32 = (127 - 1) << 23;
    let bits = single.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7FFF_FFFF;
    let payload = ((magnitude >> 13) & 0x01FF) | 0x7E00;
    let special = if magnitude > 0x7F80_0000 { payload } else { 0x7C00 };
    let sum = f32::from_bits(magnitude) + f32::from_bits(SUBNORMAL);
    let subnormal = sum.to_bits().wrapping_sub(SUBNORMAL);
    let odd = (magnitude >> 13) & 1;
    let rebiased = magnitude.wrapping_sub((127 - 15) << 23);
    let normal = rebiased.wrapping_add(0x0FFF).wrapping_add(odd) >> 13;
    let finite = if magnitude < NORMAL { subnormal } else { normal };
    (sign | if magnitude >= OVERFLOWS { special } else { finite }) as u16
}

/// The upper half of a single to a single: exact.
#[inline(always)]
fn bf16_to_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// Single precision to its upper half, to nearest even.
#[inline(always)]
fn f32_to_bf16(single: f32) -> u16 {
    let bits = single.to_bits();
    let odd = (bits >> 16) & 1;
    let rounded = bits.wrapping_add(0x7FFF).wrapping_add(odd) >> 16;
    let quiet = (bits >> 16) | 0x0040;
    let is_nan = bits & 0x7FFF_FFFF > 0x7F80_0000;
    (if is_nan { quiet } else { rounded }) as u16
}

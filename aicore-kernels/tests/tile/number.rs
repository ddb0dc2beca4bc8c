//! Numbers of the references: what an element means, and how a result is rounded, without conversions of the machine, of `half` or
//! of the language: with these, a fault of the machine would be one of the reference.

use std::cmp::Ordering;

use pto_aicore_kernels::tile::DType;

/// What an element means.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Number {
    Float(f64),
    Integer(i128),
}

pub(crate) use Number::{Float, Integer};

/// The layout of a float type: bits of the fraction, and of the exponent.
#[derive(Clone, Copy)]
struct Format {
    fraction: u32,
    exponent: u32,
}

impl Format {
    const fn of(dtype: DType) -> Self {
        let (fraction, exponent) = match dtype {
            DType::F16 => (10, 5),
            DType::BF16 => (7, 8),
            DType::F32 => (23, 8),
            _ => (52, 11),
        };
        Self { fraction, exponent }
    }

    /// The exponent of the smallest normal number.
    const fn least(self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }

    /// The bits of infinity.
    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// A finite number: its sign, and its magnitude as a mantissa times a power of two.
    fn parts(self, bits: u64) -> (bool, u128, i32) {
        let field = bits >> self.fraction & ((1 << self.exponent) - 1);
        let fraction = u128::from(bits & ((1 << self.fraction) - 1));
        let implicit = u128::from(field > 0) << self.fraction;
        let exponent = self.least() + field.max(1) as i32 - 1 - self.fraction as i32;
        (bits >> (self.fraction + self.exponent) & 1 == 1, fraction + implicit, exponent)
    }

    /// What the bits of a float of at most 32 bits mean.
    fn value(self, bits: u64) -> f64 {
        let (is_negative, mantissa, exponent) = self.parts(bits);
        let magnitude = bits & ((1 << (self.fraction + self.exponent)) - 1);
        let value = match magnitude.cmp(&self.infinity()) {
            Ordering::Less => mantissa as f64 * 2f64.powi(exponent),
            Ordering::Equal => f64::INFINITY,
            Ordering::Greater => f64::NAN,
        };
        if is_negative { -value } else { value }
    }

    /// The float nearest to `mantissa 2^exponent`, of two the one with an even last bit, by arithmetic of integers.
    fn nearest(self, (is_negative, mantissa, exponent): (bool, u128, i32)) -> u64 {
        let sign = u64::from(is_negative) << (self.fraction + self.exponent);
        if mantissa == 0 {
            return sign;
        }
        let top = mantissa.ilog2() as i32 + exponent;
        let scale = top.max(self.least());
        // What the last bit of the result is worth, as bits of the mantissa.
        let dropped = scale - self.fraction as i32 - exponent;
        let kept = if dropped <= 0 {
            mantissa << dropped.unsigned_abs()
        } else if dropped > 127 {
            0
        } else {
            let (kept, half) = (mantissa >> dropped, 1_u128 << (dropped - 1));
            let rest = mantissa - (kept << dropped);
            kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
        };
        let bits = ((scale - self.least()) as u64) << self.fraction;
        sign | (bits + kept as u64).min(self.infinity())
    }
}

/// What the bits of an element mean.
pub(crate) fn read(dtype: DType, bytes: &[u8]) -> Number {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match dtype {
        DType::F64 => Float(f64::from_bits(bits)),
        DType::F16 | DType::BF16 | DType::F32 => Float(Format::of(dtype).value(bits)),
        DType::I8 => Integer(i128::from(bits as i8)),
        DType::I16 => Integer(i128::from(bits as i16)),
        DType::I32 => Integer(i128::from(bits as i32)),
        DType::I64 => Integer(i128::from(bits as i64)),
        _ => Integer(i128::from(bits)),
    }
}

/// The bits of a number as an element: floats rounded once, integers wrapped, floats as integers truncated and saturated.
pub(crate) fn bits(dtype: DType, number: Number) -> u64 {
    let width = 8 * dtype.bytes() as u32;
    let bits = match number {
        Float(x) if dtype.is_float() => {
            let format = Format::of(dtype);
            let sign = u64::from(x.is_sign_negative()) << (width - 1);
            if x.is_nan() {
                format.infinity() + 1
            } else if x.is_infinite() {
                sign | format.infinity()
            } else {
                format.nearest(Format::of(DType::F64).parts(x.to_bits()))
            }
        }
        Float(x) => {
            let (low, high) = match (dtype.is_unsigned(), 1_i128 << (width - 1)) {
                (true, half) => (0, 2 * half - 1),
                (false, half) => (-half, half - 1),
            };
            truncated(x).clamp(low, high) as u64
        }
        Integer(x) if dtype.is_float() => Format::of(dtype).nearest((x < 0, x.unsigned_abs(), 0)),
        Integer(x) => x as u64,
    };
    bits & (u64::MAX >> (64 - width))
}

/// Towards zero; 0 for NaN. Beyond `2^100`, which no element type has, only the sign is right.
fn truncated(x: f64) -> i128 {
    if x.is_nan() {
        return 0;
    }
    let (is_negative, mantissa, exponent) = Format::of(DType::F64).parts(x.to_bits());
    let magnitude = match exponent {
        ..-127 => 0,
        -127..0 => mantissa >> exponent.unsigned_abs(),
        _ => mantissa << exponent.min(70),
    } as i128;
    if is_negative { -magnitude } else { magnitude }
}

/// The bytes of a number as an element, as [`bits`].
pub(crate) fn write(dtype: DType, number: Number) -> Vec<u8> {
    bits(dtype, number).to_le_bytes()[..dtype.bytes()].to_vec()
}

/// Whether two elements are the same: NaN is NaN, zeros by sign.
pub(crate) fn is_same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |bytes| matches!(read(dtype, bytes), Float(x) if x.is_nan());
    a == b || (is_nan(a) && is_nan(b))
}

/// The distance of a result from the exact value, in units of the last place of the element type.
pub(crate) fn ulps(dtype: DType, found: f64, exact: f64) -> f64 {
    if found == exact || (found.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    let (digits, least) = match dtype {
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        DType::F32 => (23, -126),
        _ => (52, -1022),
    };
    let exponent = exact.abs().log2().floor().max(f64::from(least));
    (found - exact).abs() / 2f64.powi(exponent as i32) * 2f64.powi(digits)
}

/// A generator of numbers that repeats with its seed.
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// Between -1 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / 2f64.powi(52) - 1.0
    }

    /// An element: ordinary numbers mostly, with the extreme ones among them.
    pub(crate) fn element(&mut self, dtype: DType) -> Vec<u8> {
        let special = self.below(8) == 0;
        if !dtype.is_float() {
            let bits = if special { self.bits() } else { self.bits() % 19 };
            return bits
                .wrapping_sub(if special || dtype.is_unsigned() { 0 } else { 9 })
                .to_le_bytes()[..dtype.bytes()]
                .to_vec();
        }
        if special {
            return self.bits().to_le_bytes()[..dtype.bytes()].to_vec();
        }
        let few = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5];
        let value = if self.below(16) == 0 { few[self.below(8)] } else { self.unit() * 8.0 };
        write(dtype, Float(value))
    }

    pub(crate) fn elements(&mut self, dtype: DType, count: usize) -> Vec<u8> {
        (0..count).flat_map(|_| self.element(dtype)).collect()
    }
}

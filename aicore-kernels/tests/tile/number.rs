//! Numbers of the references: what an element means, and how a result is rounded, without the machine's own conversions.

use half::{bf16, f16};
use pto_aicore_kernels::tile::DType;

/// What an element means.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Number {
    Float(f64),
    Integer(i128),
}

pub(crate) use Number::{Float, Integer};

/// What the bits of an element mean.
pub(crate) fn read(dtype: DType, bytes: &[u8]) -> Number {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match dtype {
        DType::F16 => Float(f16::from_bits(bits as u16).to_f64()),
        DType::BF16 => Float(bf16::from_bits(bits as u16).to_f64()),
        DType::F32 => Float(f64::from(f32::from_bits(bits as u32))),
        DType::F64 => Float(f64::from_bits(bits)),
        DType::I8 => Integer(i128::from(bits as i8)),
        DType::I16 => Integer(i128::from(bits as i16)),
        DType::I32 => Integer(i128::from(bits as i32)),
        DType::I64 => Integer(i128::from(bits as i64)),
        _ => Integer(i128::from(bits)),
    }
}

/// The bytes of a number as an element: floats rounded once, integers wrapped, floats as integers truncated and saturated.
pub(crate) fn write(dtype: DType, number: Number) -> Vec<u8> {
    let bits = match (number, dtype) {
        (Float(x), DType::F16) => u64::from(nearest_f16(x).to_bits()),
        (Float(x), DType::BF16) => u64::from(nearest_bf16(x).to_bits()),
        (Float(x), DType::F32) => u64::from((x as f32).to_bits()),
        (Float(x), DType::F64) => x.to_bits(),
        (Float(x), DType::I8) => x as i8 as u64,
        (Float(x), DType::I16) => x as i16 as u64,
        (Float(x), DType::I32) => x as i32 as u64,
        (Float(x), DType::I64) => x as i64 as u64,
        (Float(x), DType::U8) => x as u8 as u64,
        (Float(x), DType::U16) => x as u16 as u64,
        (Float(x), DType::U32) => x as u32 as u64,
        (Float(x), DType::U64) => x as u64,
        (Integer(x), DType::F64) => (x as f64).to_bits(),
        (Integer(x), DType::F32) => u64::from((x as f32).to_bits()),
        (Integer(x), _) if dtype.is_float() => return write(dtype, Float(x as f64)),
        (Integer(x), _) => x as u64,
    };
    bits.to_le_bytes()[..dtype.bytes()].to_vec()
}

/// Of the neighbours of a first guess the one that is nearest, of two the one with an even last bit. (`half` 2.7 does not look
/// at the lower 32 bits of a double.)
fn nearest(x: f64, guess: u16, value: impl Fn(u16) -> f64) -> u16 {
    if !x.is_finite() || value(guess).is_infinite() {
        return guess;
    }
    let near = [guess, guess.wrapping_sub(1), guess.wrapping_add(1)];
    let near = near.into_iter().filter(|bits| value(*bits).is_finite());
    let distance = |bits: &u16| (value(*bits) - x).abs();
    near.min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))).unwrap()
}

/// The nearest half.
pub(crate) fn nearest_f16(x: f64) -> f16 {
    f16::from_bits(nearest(x, f16::from_f64(x).to_bits(), |bits| f16::from_bits(bits).to_f64()))
}

/// The nearest `bf16`.
pub(crate) fn nearest_bf16(x: f64) -> bf16 {
    bf16::from_bits(nearest(x, bf16::from_f64(x).to_bits(), |bits| bf16::from_bits(bits).to_f64()))
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
pub(crate) struct Random(pub(crate) u64);

impl Random {
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

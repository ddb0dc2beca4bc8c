//! Elements of data types, half-precision numbers, and reductions of them.

/// A data type whose elements have whole bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Float,
    Half,
    Brain,
    Signed(usize),
    Unsigned(usize),
    Other(usize),
}

impl Element {
    /// The type with this number of the interface.
    pub(crate) fn of(number: i32) -> Option<Self> {
        Some(match number {
            0 => Self::Float,
            1 => Self::Half,
            2 => Self::Signed(1),
            3 => Self::Signed(4),
            4 => Self::Unsigned(1),
            6 => Self::Signed(2),
            7 => Self::Unsigned(2),
            8 => Self::Unsigned(4),
            9 => Self::Signed(8),
            10 => Self::Unsigned(8),
            11 | 16 => Self::Other(8),
            12 | 34..=37 => Self::Other(1),
            17 => Self::Other(16),
            27 => Self::Brain,
            33 => Self::Other(4),
            _ => return None,
        })
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Float => 4,
            Self::Half | Self::Brain => 2,
            Self::Signed(bytes) | Self::Unsigned(bytes) | Self::Other(bytes) => bytes,
        }
    }

    /// Whether a reduction takes it.
    pub(crate) fn reduces(self) -> bool {
        matches!(self, Self::Float | Self::Half | Self::Brain | Self::Signed(1 | 2 | 4))
    }

    /// Reduces `bytes` bytes at `from` into those at `to`: 10 sum, 11 maximum, 12 minimum.
    pub(crate) fn reduce(self, to: usize, from: usize, bytes: usize, kind: u32) {
        for offset in (0..bytes).step_by(self.bytes()) {
            let [left, right] = [to, from].map(|base| self.load(base + offset));
            let value = match kind {
                10 => left + right,
                11 => larger(left, right),
                _ => smaller(left, right),
            };
            self.store(to + offset, value);
        }
    }

    /// An element as a number: each of the types that reduce is exact in a double.
    fn load(self, address: usize) -> f64 {
        match self {
            Self::Float => f32::from_bits(read::<u32>(address)).into(),
            Self::Half => widen(read::<u16>(address)).into(),
            Self::Brain => f32::from_bits(u32::from(read::<u16>(address)) << 16).into(),
            Self::Signed(1) => read::<i8>(address).into(),
            Self::Signed(2) => read::<i16>(address).into(),
            _ => read::<i32>(address).into(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the types have as many bits; sums of integers wrap as the device's do"
    )]
    fn store(self, address: usize, value: f64) {
        match self {
            Self::Float => write(address, (value as f32).to_bits()),
            Self::Half => write(address, narrow(value as f32)),
            Self::Brain => {
                let bits = (value as f32).to_bits();
                let even = bits >> 16 & 1;
                write(address, (bits.wrapping_add(0x7FFF + even) >> 16) as u16);
            }
            Self::Signed(1) => write(address, value as i64 as i8),
            Self::Signed(2) => write(address, value as i64 as i16),
            _ => write(address, value as i64 as i32),
        }
    }
}

/// The larger one; NaN if one is, as in every maximum of the runtime.
fn larger(left: f64, right: f64) -> f64 {
    if right > left || right.is_nan() { right } else { left }
}

/// The smaller one; NaN if one is.
fn smaller(left: f64, right: f64) -> f64 {
    if right < left || right.is_nan() { right } else { left }
}

fn read<T: Copy>(address: usize) -> T {
    let pointer = std::ptr::with_exposed_provenance::<T>(address);
    // SAFETY: the caller has looked up that a live block of a device has these bytes.
    unsafe { pointer.read_unaligned() }
}

fn write<T>(address: usize, value: T) {
    let pointer = std::ptr::with_exposed_provenance_mut::<T>(address);
    // SAFETY: as for `read`.
    unsafe { pointer.write_unaligned(value) };
}

/// Half precision as single precision.
pub(crate) fn widen(half: u16) -> f32 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f32::from(half & 0x3FF);
    match half >> 10 & 0x1F {
        0 => sign * fraction * 2.0_f32.powi(-24),
        0x1F if fraction == 0.0 => sign * f32::INFINITY,
        0x1F => f32::NAN,
        exponent => sign * (1.0 + fraction / 1024.0) * 2.0_f32.powi(i32::from(exponent) - 15),
    }
}

/// Single precision as half precision, rounded to the nearest, ties to even.
pub(crate) fn narrow(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7FFF_FFFF;
    if magnitude > 0x7F80_0000 {
        return sign | 0x7E00;
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7C00;
    }
    let rounded = if magnitude < 0x3880_0000 {
        // Below the normal numbers: adding 0.5 leaves the fraction, rounded, in the low bits.
        let shifted = f32::from_bits(magnitude) + 0.5;
        shifted.to_bits() - 0.5_f32.to_bits()
    } else {
        let odd = magnitude >> 13 & 1;
        (magnitude - 0x3800_0000 + 0xFFF + odd) >> 13
    };
    #[expect(clippy::cast_possible_truncation, reason = "it has 15 bits")]
    let low = rounded as u16;
    sign | low
}

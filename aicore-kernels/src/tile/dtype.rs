//! Element types of tiles and tensors.

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
}

impl DType {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 12] = [
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
    ];

    /// The type with this code in the byte form.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The code in the byte form.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The name in texts and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
        }
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Whether this is a floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Whether this is an unsigned integer type.
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// The type in which elements of this type are added up: half precision in `f32`, small integers in 32 bits.
    #[must_use]
    pub const fn sum(self) -> Self {
        match self {
            Self::F16 | Self::BF16 | Self::F32 => Self::F32,
            Self::I8 | Self::I16 | Self::I32 => Self::I32,
            Self::U8 | Self::U16 | Self::U32 => Self::U32,
            Self::F64 | Self::I64 | Self::U64 => self,
        }
    }

    /// The type of the largest element of a row or column. Half precision becomes `f32`, as in a sum.
    #[must_use]
    pub const fn maximum(self) -> Self {
        if self.is_float() { self.sum() } else { self }
    }
}

impl core::fmt::Display for DType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// Names the element type of `$dtype` as `$T` in `$body`.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = half::f16;
                $body
            }
            DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::U16 => {
                type $T = u16;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
        }
    };
}

/// Names an element type `$T` and the type `$S` of its sums.
macro_rules! with_sum {
    ($dtype:expr, $T:ident, $S:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = half::f16;
                type $S = f32;
                $body
            }
            DType::BF16 => {
                type $T = half::bf16;
                type $S = f32;
                $body
            }
            DType::F32 => {
                type $T = f32;
                type $S = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                type $S = f64;
                $body
            }
            DType::I8 => {
                type $T = i8;
                type $S = i32;
                $body
            }
            DType::I16 => {
                type $T = i16;
                type $S = i32;
                $body
            }
            DType::I32 => {
                type $T = i32;
                type $S = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                type $S = i64;
                $body
            }
            DType::U8 => {
                type $T = u8;
                type $S = u32;
                $body
            }
            DType::U16 => {
                type $T = u16;
                type $S = u32;
                $body
            }
            DType::U32 => {
                type $T = u32;
                type $S = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                type $S = u64;
                $body
            }
        }
    };
}

pub(super) use {with_sum, with_type};

//! The types of tensors' elements.

use pto_abi::closed_set;

closed_set! {
    /// The type of a tensor's elements.
    pub struct ElementType(u8) {
        /// IEEE 754, 32 bits.
        F32 = 0, "f32";
        /// IEEE 754, 16 bits.
        F16 = 1, "f16";
        /// The upper half of an `f32`.
        BF16 = 2, "bf16";
        /// Signed, 8 bits.
        I8 = 3, "i8";
        /// Unsigned, 8 bits.
        U8 = 4, "u8";
        /// Signed, 16 bits.
        I16 = 5, "i16";
        /// Unsigned, 16 bits.
        U16 = 6, "u16";
        /// Signed, 32 bits.
        I32 = 7, "i32";
        /// Unsigned, 32 bits.
        U32 = 8, "u32";
        /// Signed, 64 bits.
        I64 = 9, "i64";
        /// Unsigned, 64 bits.
        U64 = 10, "u64";
        /// IEEE 754, 64 bits.
        F64 = 11, "f64";
    }
}

impl ElementType {
    /// Size of an element in bytes.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            Self::I64 | Self::U64 | Self::F64 => 8,
            _ => 4,
        }
    }
}

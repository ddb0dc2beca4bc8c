//! Element types of the tensors that operators take: those of tile kernels, and `bool`.

use pto_aicore_kernels::tile;

use crate::words::words;

words! {
    /// An element type. All but [`Bool`](Self::Bool) are those of tile kernels and program files.
    #[derive(Copy, Eq, Hash, PartialOrd, Ord)]
    pub enum DType {
        /// True or false, in a byte of 1 or 0. A program file has it as `u8`.
        Bool,
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
}

impl DType {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Bool,
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

    /// The type of a tensor of a program file that holds such elements.
    #[must_use]
    pub const fn stored(self) -> tile::DType {
        match self {
            Self::Bool | Self::U8 => tile::DType::U8,
            Self::F16 => tile::DType::F16,
            Self::BF16 => tile::DType::BF16,
            Self::F32 => tile::DType::F32,
            Self::F64 => tile::DType::F64,
            Self::I8 => tile::DType::I8,
            Self::I16 => tile::DType::I16,
            Self::I32 => tile::DType::I32,
            Self::I64 => tile::DType::I64,
            Self::U16 => tile::DType::U16,
            Self::U32 => tile::DType::U32,
            Self::U64 => tile::DType::U64,
        }
    }

    /// The name in texts and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            other => other.stored().name(),
        }
    }

    /// The type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.stored().bytes()
    }

    /// Whether this is a floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        self.stored().is_float()
    }

    /// Whether this is an integer type; `bool` is none.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool)
    }

    /// Whether this is an unsigned integer type.
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        self.is_integer() && self.stored().is_unsigned()
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

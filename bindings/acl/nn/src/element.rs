//! Element types by their numbers in the interface, and which type two of them have in common.

use pto_operators::DType;

/// An element type of a tensor or a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementType {
    /// One that operators of the project take.
    Real(DType),
    /// Two `f32`: real and imaginary part.
    Complex64,
    /// Two `f64`.
    Complex128,
}

pub(crate) const BOOL: ElementType = ElementType::Real(DType::Bool);
pub(crate) const F32: ElementType = ElementType::Real(DType::F32);
pub(crate) const F64: ElementType = ElementType::Real(DType::F64);
pub(crate) const I64: ElementType = ElementType::Real(DType::I64);

/// The numbers of `aclDataType`.
const NUMBERS: [(i32, ElementType); 15] = [
    (0, ElementType::Real(DType::F32)),
    (1, ElementType::Real(DType::F16)),
    (2, ElementType::Real(DType::I8)),
    (3, ElementType::Real(DType::I32)),
    (4, ElementType::Real(DType::U8)),
    (6, ElementType::Real(DType::I16)),
    (7, ElementType::Real(DType::U16)),
    (8, ElementType::Real(DType::U32)),
    (9, ElementType::Real(DType::I64)),
    (10, ElementType::Real(DType::U64)),
    (11, ElementType::Real(DType::F64)),
    (12, ElementType::Real(DType::Bool)),
    (16, ElementType::Complex64),
    (17, ElementType::Complex128),
    (27, ElementType::Real(DType::BF16)),
];

impl ElementType {
    /// The type with this number; `None`: there is none that operators take.
    pub(crate) fn of(number: i32) -> Option<Self> {
        NUMBERS.iter().find(|(known, _)| *known == number).map(|(_, element)| *element)
    }

    /// Its number.
    pub(crate) fn number(self) -> i32 {
        NUMBERS.iter().find(|(_, element)| *element == self).map_or(-1, |(number, _)| *number)
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Real(dtype) => dtype.bytes(),
            Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Real(dtype) => dtype.name(),
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
        }
    }

    pub(crate) const fn is_complex(self) -> bool {
        matches!(self, Self::Complex64 | Self::Complex128)
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::Real(dtype) if dtype.is_float())
    }

    /// The type of the parts of a complex number; the type itself for others.
    pub(crate) const fn part(self) -> Self {
        match self {
            Self::Complex64 => F32,
            Self::Complex128 => F64,
            real @ Self::Real(_) => real,
        }
    }

    /// Bool, integer, float, complex.
    pub(crate) const fn category(self) -> u8 {
        match self {
            Self::Real(DType::Bool) => 0,
            Self::Real(dtype) if dtype.is_integer() => 1,
            Self::Real(_) => 2,
            Self::Complex64 | Self::Complex128 => 3,
        }
    }

    /// The type that two tensors are computed in.
    pub(crate) fn promoted(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        let (low, high) =
            if self.category() <= other.category() { (self, other) } else { (other, self) };
        match (low, high) {
            (_, Self::Complex128) | (Self::Complex128, _) => Self::Complex128,
            (Self::Real(DType::F64), Self::Complex64) => Self::Complex128,
            (_, Self::Complex64) => Self::Complex64,
            (Self::Real(a), Self::Real(b)) if low.category() < high.category() => {
                // A float takes integers as they are, as the interface says.
                let _ = a;
                Self::Real(b)
            }
            (Self::Real(a), Self::Real(b)) if a.is_float() => Self::Real(match (a, b) {
                (DType::F64, _) | (_, DType::F64) => DType::F64,
                _ => DType::F32,
            }),
            (Self::Real(a), Self::Real(b)) => Self::Real(integers(a, b)),
            (Self::Complex64, Self::Real(_)) => Self::Complex64,
        }
    }
}

/// The smallest integer type that holds both; `f64` for `u64` and a signed one, as NumPy.
fn integers(a: DType, b: DType) -> DType {
    let (small, large) = if a.bytes() <= b.bytes() { (a, b) } else { (b, a) };
    if small.is_unsigned() == large.is_unsigned()
        || (!large.is_unsigned() && small.bytes() < large.bytes())
    {
        return large;
    }
    match large.bytes().max(small.bytes()) {
        1 => DType::I16,
        2 => DType::I32,
        4 => DType::I64,
        _ => DType::F64,
    }
}

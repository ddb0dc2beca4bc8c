//! Reductions on the device: each element of the target becomes what it is together with the one of the source.

use pto_aicore_kernels::tile::DType;
use pto_aicore_kernels::tile::element::{Element, Number, bf16, f16};

/// How two elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum. Half precision is added in `f32` and rounded; integers wrap.
    Sum,
    /// The larger one; not a number if one is that.
    Max,
    /// The smaller one; not a number if one is that.
    Min,
}

impl Reduction {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Sum, Self::Max, Self::Min];

    /// The reduction's name, in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// Element type and reduction in a word of a command.
    pub(super) const fn word(self, dtype: DType) -> u64 {
        dtype.code() as u64 | (self as u64) << 8
    }

    /// What a word of a command says.
    pub(super) fn of_word(word: u64) -> Option<(Self, DType)> {
        let [dtype, reduction, rest @ ..] = word.to_le_bytes();
        let known = Self::ALL.get(usize::from(reduction)).copied().filter(|_| rest == [0; 6]);
        known.zip(DType::from_code(dtype))
    }

    /// Reduces the elements of `from` into those of `to`, as many whole ones as both hold.
    pub(super) fn apply(self, dtype: DType, to: &mut [u8], from: &[u8]) {
        match dtype {
            DType::F16 => self.elements::<f16>(to, from),
            DType::BF16 => self.elements::<bf16>(to, from),
            DType::F32 => self.elements::<f32>(to, from),
            DType::F64 => self.elements::<f64>(to, from),
            DType::I8 => self.elements::<i8>(to, from),
            DType::I16 => self.elements::<i16>(to, from),
            DType::I32 => self.elements::<i32>(to, from),
            DType::I64 => self.elements::<i64>(to, from),
            DType::U8 => self.elements::<u8>(to, from),
            DType::U16 => self.elements::<u16>(to, from),
            DType::U32 => self.elements::<u32>(to, from),
            DType::U64 => self.elements::<u64>(to, from),
        }
    }

    fn elements<T: Element>(self, to: &mut [u8], from: &[u8]) {
        let bytes = size_of::<T>();
        for (to, from) in to.chunks_exact_mut(bytes).zip(from.chunks_exact(bytes)) {
            let one = bytemuck::pod_read_unaligned::<T>(to).widen();
            let other = bytemuck::pod_read_unaligned::<T>(from).widen();
            let reduced = match self {
                Self::Sum => one.add(other),
                Self::Max => one.larger(other),
                Self::Min => one.smaller(other),
            };
            to.copy_from_slice(bytemuck::bytes_of(&T::narrow(reduced)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reduction;
    use pto_aicore_kernels::tile::DType;

    #[test]
    fn words_are_read_again() {
        for dtype in DType::ALL {
            for reduction in Reduction::ALL {
                assert_eq!(Reduction::of_word(reduction.word(dtype)), Some((reduction, dtype)));
            }
        }
        assert_eq!(Reduction::of_word(3 << 8), None);
        assert_eq!(Reduction::of_word(12), None);
        assert_eq!(Reduction::of_word(1 << 16), None);
    }

    /// In either of the two operands.
    #[test]
    fn not_a_number_stays_in_a_maximum_and_in_a_minimum() {
        let (to, from) = ([f32::NAN, 1.0, f32::NAN, 2.0], [1.0, f32::NAN, f32::NAN, 3.0]);
        for (reduction, last) in [(Reduction::Max, 3.0), (Reduction::Min, 2.0)] {
            let mut reduced = to.map(f32::to_le_bytes).concat();
            reduction.apply(DType::F32, &mut reduced, &from.map(f32::to_le_bytes).concat());
            let element = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
            let reduced: Vec<f32> = reduced.chunks_exact(4).map(element).collect();
            assert!(reduced[..3].iter().all(|element| element.is_nan()), "{reduced:?}");
            assert_eq!(reduced[3], last);
        }
    }

    #[test]
    fn elements_are_reduced_as_their_type_says() {
        let reduced = |reduction: Reduction, dtype, to: &[u8], from: &[u8]| {
            let mut to = to.to_vec();
            reduction.apply(dtype, &mut to, from);
            to
        };
        assert_eq!(reduced(Reduction::Sum, DType::U8, &[250, 1], &[10, 2]), [4, 3]);
        assert_eq!(reduced(Reduction::Max, DType::I8, &[250, 1], &[10, 2]), [10, 2]);
        assert_eq!(reduced(Reduction::Min, DType::U8, &[250, 1], &[10, 2]), [10, 1]);
        // 1.5 + 2.25 in half precision.
        assert_eq!(
            reduced(
                Reduction::Sum,
                DType::F16,
                &0x3E00_u16.to_le_bytes(),
                &0x4080_u16.to_le_bytes()
            ),
            0x4380_u16.to_le_bytes()
        );
    }
}

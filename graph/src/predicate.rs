//! Predicates: what decides whether a task runs.

use pto_abi::closed_set;

use crate::element::ElementType;
use crate::tensor::TensorView;
use pto_abi::limits::MAX_RANK;

closed_set! {
    /// How a predicate compares an element with its value.
    pub struct Comparison(u8) {
        /// The element is the value.
        EQUAL = 0, "==";
        /// The element is not the value.
        NOT_EQUAL = 1, "!=";
        /// The element is less.
        LESS = 2, "<";
        /// The element is less, or the value.
        LESS_EQUAL = 3, "<=";
        /// The element is greater.
        GREATER = 4, ">";
        /// The element is greater, or the value.
        GREATER_EQUAL = 5, ">=";
    }
}

impl Comparison {
    /// Whether `found` compares so with `value`; both are in the low bits, as elements of this type. As IEEE 754 has
    /// it, a NaN is not equal to anything, and neither less nor greater; the zeros are equal.
    #[must_use]
    pub fn holds(self, element: ElementType, found: u64, value: u64) -> bool {
        let (Some(found), Some(value)) = (ordered(element, found), ordered(element, value)) else {
            return self == Self::NOT_EQUAL;
        };
        match self {
            Self::EQUAL => found == value,
            Self::LESS => found < value,
            Self::LESS_EQUAL => found <= value,
            Self::GREATER => found > value,
            Self::GREATER_EQUAL => found >= value,
            _ => found != value,
        }
    }
}

/// A number in the order of the elements; `None`: not a number.
fn ordered(element: ElementType, bits: u64) -> Option<i64> {
    let unused = 64 - 8 * u32::try_from(element.bytes()).unwrap_or(8);
    let float = |exponent: u32| {
        // Sign and magnitude, at the top of the word.
        let word = bits << unused;
        let magnitude = word << 1 >> 1;
        let infinity = (1_u64 << exponent) - 1;
        if magnitude > infinity << (63 - exponent) {
            return None;
        }
        let magnitude = magnitude.cast_signed();
        Some(if word >> 63 == 1 { -magnitude } else { magnitude })
    };
    match element {
        ElementType::F16 => float(5),
        ElementType::F32 | ElementType::BF16 => float(8),
        ElementType::F64 => float(11),
        ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => {
            Some((bits << unused).cast_signed() >> unused)
        }
        _ => Some((bits << unused >> unused ^ 1 << 63).cast_signed()),
    }
}

/// What decides whether a task runs: one element of a tensor, compared with a value when the task becomes ready.
///
/// The element is read by the task: it waits for those that write it, and they for it. Tasks may share a predicate; each
/// reads it for itself.
#[derive(Clone, Copy, Debug)]
pub struct Predicate<'a> {
    element: TensorView<'a>,
    comparison: Comparison,
    value: u64,
}

impl<'a> Predicate<'a> {
    /// The element of `view` at `index`, compared with `value`, which is in the low bits of the word as
    /// [`get`](crate::StreamBuilder::get) gives it.
    #[must_use]
    pub fn new(view: &TensorView<'a>, index: &[u32], comparison: Comparison, value: u64) -> Self {
        let mut element = *view;
        if index.len() != view.shape().len() {
            // There is no such dimension: the view becomes defective.
            element = element.slice(MAX_RANK, 0, 1);
        }
        for (dim, at) in index.iter().enumerate() {
            element = element.slice(dim, *at, 1);
        }
        Self { element, comparison, value }
    }

    /// The element, as a view of its own.
    #[must_use]
    pub const fn element(&self) -> &TensorView<'a> {
        &self.element
    }

    /// How it is compared.
    #[must_use]
    pub const fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// The value to compare with.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Predicate};
    use crate::element::ElementType;
    use crate::tensor::{TensorView, ViewDefect};
    use pto_abi::ids::GmAddr;

    #[test]
    fn numbers_compare_as_their_types_do() {
        let less = |element, a: u64, b: u64| Comparison::LESS.holds(element, a, b);
        assert!(less(ElementType::U8, 0x7F, 0xFF) && less(ElementType::I8, 0xFF, 0x7F));
        assert!(less(ElementType::U64, 1, u64::MAX) && less(ElementType::I64, u64::MAX, 1));
        assert!(less(ElementType::I32, 0x8000_0000, 0) && !less(ElementType::U32, 0x8000_0000, 0));
        for (a, b) in [(-2.0_f32, -1.0_f32), (-1.0, 0.0), (0.5, f32::INFINITY), (-3.0, 4.0)] {
            assert!(less(ElementType::F32, a.to_bits().into(), b.to_bits().into()), "{a} {b}");
            assert!(!less(ElementType::F32, b.to_bits().into(), a.to_bits().into()), "{b} {a}");
        }
        let (small, large) = ((-1.5_f64).to_bits(), 1e300_f64.to_bits());
        assert!(less(ElementType::F64, small, large));
        // -2.0 and 1.0 as f16, and as bf16.
        assert!(less(ElementType::F16, 0xC000, 0x3C00) && less(ElementType::BF16, 0xC000, 0x3F80));
    }

    #[test]
    fn zeros_are_equal_and_nans_are_not() {
        let (zero, minus) = (0.0_f32.to_bits().into(), (-0.0_f32).to_bits().into());
        assert!(Comparison::EQUAL.holds(ElementType::F32, zero, minus));
        let nan = f32::NAN.to_bits().into();
        let held = |other| {
            let holds = |c: &&Comparison| c.holds(ElementType::F32, nan, other);
            Comparison::ALL.iter().filter(holds).count()
        };
        assert_eq!((held(nan), held(zero)), (1, 1), "not equal, and nothing else");
    }

    #[test]
    fn every_comparison_is_what_its_name_says() {
        let table = |found| {
            let holds = |c: &Comparison| c.holds(ElementType::I32, found, 5);
            [0, 1, 2, 3, 4, 5].map(|n| holds(&Comparison::ALL[n]))
        };
        assert_eq!(table(5), [true, false, false, true, false, true]);
        assert_eq!(table(4), [false, true, true, true, false, false]);
        assert_eq!(table(6), [false, true, false, false, true, true]);
    }

    #[test]
    fn a_predicate_is_on_one_element() {
        let flags = TensorView::dense(GmAddr(0x1000), ElementType::U32, &[4, 8]);
        let predicate = Predicate::new(&flags, &[2, 3], Comparison::NOT_EQUAL, 0);
        let element = predicate.element();
        assert_eq!((element.address(), element.elements()), (GmAddr(0x1000 + 4 * 19), 1));
        let defect =
            |index: &[u32]| Predicate::new(&flags, index, Comparison::EQUAL, 0).element().defect();
        assert_eq!(defect(&[2]), Some(ViewDefect::Rank));
        assert_eq!(defect(&[2, 8]), Some(ViewDefect::Range));
    }
}

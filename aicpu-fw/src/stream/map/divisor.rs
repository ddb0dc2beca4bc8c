//! Division by a number that many others are divided by.
//!
//! Invariant: `magic` is 2^64 divided by the number, rounded up, or zero where that does not help. With it, a number below
//! 2^32 is divided by one multiplication.

use core::num::NonZeroU64;

/// A number that others are divided by often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divisor {
    by: NonZeroU64,
    /// 2^64 divided by it, rounded up; 0: that does not help.
    magic: u64,
}

impl Divisor {
    pub(super) fn new(by: u64) -> Option<Self> {
        let by = NonZeroU64::new(by)?;
        let is_useful = by.get() > 1 && by.get() < 1 << 32;
        Some(Self { by, magic: if is_useful { u64::MAX / by + 1 } else { 0 } })
    }

    /// A divisor from the words that hold it; `None`: they hold none.
    #[inline]
    pub(super) fn from_words([by, magic]: [u64; 2]) -> Option<Self> {
        Some(Self { by: NonZeroU64::new(by)?, magic })
    }

    /// The words that hold it.
    pub(super) const fn words(self) -> [u64; 2] {
        [self.by.get(), self.magic]
    }

    /// The divisor itself.
    #[inline]
    pub(super) const fn get(self) -> u64 {
        self.by.get()
    }

    /// Quotient and rest.
    #[inline]
    pub(super) fn divide(self, number: u64) -> (u64, u64) {
        // What is rounded up is below `by`, so that for numbers below 2^32 the error is below 1 / 2^64 * 2^32 * 2^32.
        let quotient = if self.magic != 0 && number < 1 << 32 {
            let wide = u128::from(number) * u128::from(self.magic);
            u64::try_from(wide >> 64).unwrap_or(u64::MAX)
        } else {
            number / self.by
        };
        (quotient, number - quotient * self.by.get())
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;

    #[test]
    fn a_quotient_by_multiplication_is_the_quotient() {
        assert_eq!(Divisor::new(0), None);
        for by in [1, 2, 3, 7, 64, 1000, 4097, 0xFFFF_FFFF, 1 << 32, (1 << 40) + 1] {
            let divisor = Divisor::new(by).unwrap();
            assert_eq!((Divisor::from_words(divisor.words()), divisor.get()), (Some(divisor), by));
            for near in [0, 1, by - 1, by, by + 1, 5 * by + 3, 0xFFFF_FFFF, 1 << 32, 1 << 50] {
                assert_eq!(divisor.divide(near), (near / by, near % by), "{near} by {by}");
            }
        }
    }
}

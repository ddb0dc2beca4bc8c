//! A number of things, as sentences say it.

use core::fmt;

/// `1 task`, `2 tasks`: for nouns whose plural has an `s` more.
///
/// ```
/// use pto_abi::counted::Counted;
/// assert_eq!(Counted(1_u32, "task").to_string(), "1 task");
/// assert_eq!(Counted(0_usize, "task").to_string(), "0 tasks");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counted<N>(pub N, pub &'static str);

impl<N: fmt::Display + PartialEq + From<u8>> fmt::Display for Counted<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = self;
        let ending = if *number == N::from(1) { "" } else { "s" };
        write!(f, "{number} {noun}{ending}")
    }
}

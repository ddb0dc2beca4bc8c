//! Numbers as people read them.

use core::fmt;

/// `1234567` as `1,234,567`.
///
/// ```
/// use pto_abi::numbers::Grouped;
/// assert_eq!([0, 999, 1_000, 1_002_003].map(|n| Grouped(n).to_string()), ["0", "999", "1,000", "1,002,003"]);
/// assert_eq!(Grouped(u64::MAX).to_string(), "18,446,744,073,709,551,615");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const GROUP: u64 = 1_000;
        let mut unit = 1;
        while self.0 / unit >= GROUP {
            unit *= GROUP;
        }
        write!(f, "{}", self.0 / unit)?;
        while unit > 1 {
            unit /= GROUP;
            write!(f, ",{:03}", self.0 / unit % GROUP)?;
        }
        Ok(())
    }
}

/// A number of things, `1 run` or `1,234 runs`. For nouns whose plural ends with `s` alone.
///
/// ```
/// use pto_abi::numbers::Counted;
/// assert_eq!([0, 1, 1_000].map(|n| Counted(n, "run").to_string()), ["0 runs", "1 run", "1,000 runs"]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counted<'n>(pub u64, pub &'n str);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = self;
        let ending = if *number == 1 { "" } else { "s" };
        write!(f, "{} {noun}{ending}", Grouped(*number))
    }
}

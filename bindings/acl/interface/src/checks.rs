//! The checks that the library of entry points makes before it forwards a call: those that need no device.

/// Columns: function, parameter (from 1), what messages call it, rule.
const TABLE: &str = include_str!("../checks.tsv");

/// Arguments that a check can look at: those that every machine passes in registers.
pub const CHECKED: usize = 6;

/// The rule for an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentRule {
    /// A pointer or a handle that is not null.
    Set,
    /// A size that is not 0.
    Positive,
    /// A number of 32 bits, from 0 to this.
    To(u32),
    /// A time limit in milliseconds: -1 for none, or above 0.
    Limit,
}

/// A check of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The function.
    pub function: &'static str,
    /// The index of the argument, from 0 on.
    pub index: usize,
    /// What messages call the argument.
    pub name: &'static str,
    /// The rule.
    pub rule: ArgumentRule,
}

/// Every check. Those of one function are in the order in which they are made.
///
/// # Panics
/// The table in the source cannot be read.
pub fn checks() -> impl Iterator<Item = Check> {
    TABLE.lines().skip(1).map(|row| check(row).unwrap_or_else(|| panic!("no check: {row:?}")))
}

fn check(row: &'static str) -> Option<Check> {
    let [function, parameter, name, rule] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let index = parameter.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < CHECKED)?;
    let rule = match rule {
        "set" => ArgumentRule::Set,
        "positive" => ArgumentRule::Positive,
        "limit" => ArgumentRule::Limit,
        _ => ArgumentRule::To(rule.strip_prefix("to ")?.parse().ok()?),
    };
    Some(Check { function, index, name, rule })
}

impl ArgumentRule {
    /// Whether an argument is as it has to be; `word` is the register that it was passed in.
    #[must_use]
    pub fn holds(self, word: usize) -> bool {
        // Of numbers with 32 bits, the upper half of a register may have anything.
        let low = u32::try_from(word & 0xFFFF_FFFF).unwrap_or_default();
        match self {
            Self::Set | Self::Positive => word != 0,
            Self::To(most) => low <= most,
            Self::Limit => low.cast_signed() == -1 || low.cast_signed() > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ArgumentRule, checks};
    use crate::{all, runtime};

    #[test]
    fn every_check_is_of_a_function_that_returns_a_code() {
        let has_code: Vec<&str> =
            all().chain(runtime()).filter(|one| one.has_code).map(|one| one.name).collect();
        let mut seen = Vec::new();
        for check in checks() {
            assert!(has_code.contains(&check.function), "{check:?}");
            assert!(!seen.contains(&check), "{check:?} is there twice");
            seen.push(check);
        }
        assert!(seen.len() > 300, "{}", seen.len());
    }

    #[test]
    fn the_upper_half_of_a_register_is_ignored() {
        let dirt = 0xDEAD_BEEF << 32;
        assert!(ArgumentRule::To(2).holds(dirt | 2) && !ArgumentRule::To(2).holds(3));
        assert!(ArgumentRule::Limit.holds(dirt | 0xFFFF_FFFF) && ArgumentRule::Limit.holds(1));
        assert!(!ArgumentRule::Limit.holds(dirt) && !ArgumentRule::Limit.holds(0xFFFF_FFFE));
        assert!(ArgumentRule::Set.holds(dirt) && !ArgumentRule::Positive.holds(0));
    }
}

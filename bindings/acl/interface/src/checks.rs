//! What the library of entry points checks before it hands a call on: arguments that no device has to be asked about.

/// Columns: function, parameter (from 1), what messages call it, rule.
const TABLE: &str = include_str!("../checks.tsv");

/// Arguments that a check can look at: those that every machine passes in registers.
pub const CHECKED: usize = 6;

/// What an argument has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
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
    /// The place of the argument, from 0 on.
    pub place: usize,
    /// What messages call the argument.
    pub name: &'static str,
    /// What it has to be.
    pub rule: Rule,
}

/// Every check. Those of one function stand in the order in which they are made.
///
/// # Panics
/// The table in the source cannot be read.
pub fn checks() -> impl Iterator<Item = Check> {
    TABLE.lines().skip(1).map(|row| check(row).unwrap_or_else(|| panic!("no check: {row:?}")))
}

fn check(row: &'static str) -> Option<Check> {
    let [function, parameter, name, rule] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let place = parameter.parse::<usize>().ok()?.checked_sub(1).filter(|place| *place < CHECKED)?;
    let rule = match rule {
        "set" => Rule::Set,
        "positive" => Rule::Positive,
        "limit" => Rule::Limit,
        _ => Rule::To(rule.strip_prefix("to ")?.parse().ok()?),
    };
    Some(Check { function, place, name, rule })
}

impl Rule {
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
    use super::{Rule, checks};
    use crate::{all, runtime};

    #[test]
    fn every_check_is_of_a_function_that_returns_a_code() {
        let has_code: Vec<&str> =
            all().chain(runtime()).filter(|one| one.has_code).map(|one| one.name).collect();
        let mut seen = Vec::new();
        for check in checks() {
            assert!(has_code.contains(&check.function), "{check:?}");
            assert!(!seen.contains(&check), "{check:?} stands there twice");
            seen.push(check);
        }
        assert!(seen.len() > 300, "{}", seen.len());
    }

    #[test]
    fn the_upper_half_of_a_register_is_nobodys() {
        let dirt = 0xDEAD_BEEF << 32;
        assert!(Rule::To(2).holds(dirt | 2) && !Rule::To(2).holds(3));
        assert!(Rule::Limit.holds(dirt | 0xFFFF_FFFF) && Rule::Limit.holds(1));
        assert!(!Rule::Limit.holds(dirt) && !Rule::Limit.holds(0xFFFF_FFFE));
        assert!(Rule::Set.holds(dirt) && !Rule::Positive.holds(0));
    }
}

//! Which device of a group an example is prepared for.

use std::string::String;

use crate::args::Size;
use crate::host::error::{Error, invalid};

/// One device of a group: its number, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRank {
    /// Its rank, below `size`.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
}

impl GroupRank {
    /// The device of a run without a group.
    pub const ALONE: Self = Self { rank: 0, size: 1 };

    /// An equal share of a parameter.
    ///
    /// # Errors
    /// The ranks do not divide it.
    pub fn share(self, name: &str, whole: Size) -> Result<Size, Error> {
        let (whole, size) = (whole.get(), u64::from(self.size));
        let share = (whole % size == 0).then(|| Size::new(whole / size)).flatten();
        share.ok_or_else(|| {
            invalid!(
                "{name} = {whole} is not a multiple of the {size} ranks, which share it equally"
            )
        })
    }

    /// Refuses a group for an example that is a program for one device.
    ///
    /// # Errors
    /// There are several ranks.
    pub fn must_be_alone(self, example: &str) -> Result<(), Error> {
        if self.size == 1 {
            return Ok(());
        }
        let size = self.size;
        let hint = String::from("pto info examples says which are for groups");
        Err(invalid!("'{example}' is a program for one device, and the group has {size}; {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::GroupRank;
    use crate::args::Size;
    use std::string::ToString;

    #[test]
    fn a_parameter_is_shared_equally_or_refused() {
        let member = GroupRank { rank: 1, size: 4 };
        assert_eq!(member.share("heads", Size::new(8).unwrap()).unwrap().get(), 2);
        let error = member.share("heads", Size::new(6).unwrap()).unwrap_err().to_string();
        assert!(error.contains("heads = 6") && error.contains("4 ranks"), "{error}");
        assert!(member.must_be_alone("matmul").is_err());
        assert!(GroupRank::ALONE.must_be_alone("matmul").is_ok());
    }
}

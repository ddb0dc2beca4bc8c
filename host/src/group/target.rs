//! Where a group runs, as a user writes it: `local:8`, `mpi`, `virtual:8`, `virtual:8:a3-pod`.

use std::fmt;
use std::str::FromStr;

/// Where the ranks of a group are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupTarget {
    /// This many devices of this process.
    Local(u32),
    /// One device in each process that MPI has started.
    Mpi,
    /// So many devices in virtual time, and the name of the network's profile.
    Virtual(u32, String),
}

/// A text that names no target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget(pub String);

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = "local:RANKS, mpi, virtual:RANKS or virtual:RANKS:PROFILE, as in local:8";
        write!(f, "'{}' is no group: write {form}", self.0)
    }
}

impl std::error::Error for UnknownTarget {}

/// The network's profile if a user names none.
const DEFAULT_PROFILE: &str = "a3-pod";

impl FromStr for GroupTarget {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownTarget(text.to_owned());
        let ranks = |text: &str| text.parse().ok().filter(|ranks| *ranks > 0).ok_or_else(unknown);
        let parts: Vec<_> = text.split(':').collect();
        match parts[..] {
            ["mpi"] => Ok(Self::Mpi),
            ["local", size] => Ok(Self::Local(ranks(size)?)),
            ["virtual", size] => Ok(Self::Virtual(ranks(size)?, DEFAULT_PROFILE.to_owned())),
            ["virtual", size, profile] if !profile.is_empty() => {
                Ok(Self::Virtual(ranks(size)?, profile.to_owned()))
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GroupTarget;

    #[test]
    fn a_target_is_read_or_the_error_says_how_to_write_it() {
        assert_eq!("local:8".parse(), Ok(GroupTarget::Local(8)));
        assert_eq!("mpi".parse(), Ok(GroupTarget::Mpi));
        assert_eq!("virtual:2".parse(), Ok(GroupTarget::Virtual(2, "a3-pod".into())));
        assert_eq!("virtual:4:loopback".parse(), Ok(GroupTarget::Virtual(4, "loopback".into())));
        for bad in ["", "local", "local:0", "local:x", "mpi:2", "virtual:2:", "tcp:2"] {
            let error = bad.parse::<GroupTarget>().unwrap_err().to_string();
            assert!(error.contains("local:8"), "{error}");
        }
    }
}

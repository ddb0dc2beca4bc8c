//! The hosting modes, and the choice of the default.

use std::fmt;
use std::num::NonZeroUsize;

use crate::os_threads::default_pool_threads;
use crate::virtual_time::VirtualOptions;

/// How the device is hosted on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosting {
    /// One OS thread per AICPU instance and per core: faithful concurrency.
    Threads,
    /// A few OS threads step everything: the fastest way to run a graph here. Where neither events nor times of kernels
    /// are recorded, short kernels run where they are rung: then few cores do nearly everything (docs/decisions/pool.md).
    Pool {
        /// How many; at most [`MAX_OS_THREADS`](crate::MAX_OS_THREADS).
        os_threads: NonZeroUsize,
    },
    /// One OS thread and a virtual clock: deterministic, with the costs of a hardware profile.
    Virtual(VirtualOptions),
}

impl Default for Hosting {
    /// A pool with one OS thread per CPU (docs/decisions/pool.md).
    fn default() -> Self {
        Self::Pool { os_threads: default_pool_threads() }
    }
}

impl Hosting {
    /// The names of the modes.
    pub const NAMES: &'static [&'static str] = &["pool", "threads", "virtual"];

    /// The mode's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Pool { .. } => "pool",
            Self::Virtual(_) => "virtual",
        }
    }
}

impl fmt::Display for Hosting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => f.write_str("threads"),
            Self::Pool { os_threads } => write!(f, "pool of {os_threads}"),
            Self::Virtual(options) => {
                write!(f, "virtual ({}, seed {})", options.profile.name, options.seed)
            }
        }
    }
}

/// A name that is not that of a hosting mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownHosting(pub String);

impl fmt::Display for UnknownHosting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no hosting mode '{}'; choose one of {}",
            self.0,
            Hosting::NAMES.join(", ")
        )
    }
}

impl std::error::Error for UnknownHosting {}

impl std::str::FromStr for Hosting {
    type Err = UnknownHosting;

    /// `pool` takes the default number of OS threads, `virtual` the default options.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "threads" => Ok(Self::Threads),
            "pool" => Ok(Self::default()),
            "virtual" => Ok(Self::Virtual(VirtualOptions::default())),
            _ => Err(UnknownHosting(name.to_owned())),
        }
    }
}

//! Opens the group that a command line names: devices of this process, in real or in virtual time, or one device as a rank of an MPI job.

use std::time::Duration;

use pto_examples::host;
use pto_host::group::{Group, GroupOptions, GroupTarget};
use pto_host::virtual_time::group::NetworkProfile;
use pto_mpi::{Mpi, MpiOptions};

use crate::errors::Failure;
use crate::text::counted;

/// How long a rank waits for the others at the end of a run: their hosts may still compute references.
const AFTER_RUN: Duration = Duration::from_secs(300);

/// Cores of each kind of a device, where the command line does not say. In real time the ranks share this machine.
pub(crate) const fn cores(target: &GroupTarget) -> (u32, u32) {
    match target {
        GroupTarget::Virtual(..) => (24, 48),
        GroupTarget::Local(_) | GroupTarget::Mpi => (2, 4),
    }
}

/// A group, and the MPI job that it is part of.
pub(crate) struct Opened {
    pub(crate) group: Group,
    // After the group: its transport goes first.
    mpi: Option<Mpi>,
    /// What runs them, where it is this process.
    time: &'static str,
}

impl Opened {
    /// Opens it. Every rank of an MPI job does.
    pub(crate) fn open(target: &GroupTarget, options: &GroupOptions) -> Result<Self, Failure> {
        match target {
            GroupTarget::Local(size) => {
                let group = host::open_group(*size, options).map_err(Failure::usage)?;
                Ok(Self { group, mpi: None, time: "this process" })
            }
            GroupTarget::Mpi => {
                let mpi = Mpi::join(&MpiOptions::default()).map_err(Failure::usage)?;
                let group = host::join_group(mpi.transport(), options).map_err(Failure::usage)?;
                Ok(Self { group, mpi: Some(mpi), time: "" })
            }
            GroupTarget::Virtual(size, name) => {
                let network = NetworkProfile::by_name(name).ok_or_else(|| {
                    let names = NetworkProfile::NAMES.join(", ");
                    Failure::usage(format!("there is no network '{name}'; use one of {names}"))
                })?;
                let group = host::open_virtual_group(*size, options, network);
                let group = group.map_err(Failure::usage)?;
                Ok(Self { group, mpi: None, time: "virtual time" })
            }
        }
    }

    /// Whether this process reports the result for all ranks.
    pub(crate) fn is_teller(&self) -> bool {
        self.group.members().first().is_none_or(|member| member.rank() == 0)
    }

    /// The MPI job.
    pub(crate) fn mpi(&self) -> Option<&Mpi> {
        self.mpi.as_ref()
    }

    /// Gives a word to all other processes, and gets theirs, by rank. It waits for the slowest one.
    pub(crate) fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        let Some(mpi) = &self.mpi else { return Ok(vec![word]) };
        mpi.transport().meet(word, AFTER_RUN).map_err(Failure::faulted)
    }

    /// How many ranks it has, and of which library or clock.
    pub(crate) fn describe(&self) -> String {
        let size = counted(u64::from(self.group.size()), "rank");
        match &self.mpi {
            Some(mpi) => format!("{size} of {}", mpi.library()),
            None => format!("{size} in {}", self.time),
        }
    }
}

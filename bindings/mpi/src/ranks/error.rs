//! Why a process cannot become a rank: no MPI has started it, the plug-in is missing or another version's, or MPI refuses.

use std::fmt;
use std::path::PathBuf;

/// The variable that names the plug-in's file.
pub const PATH_VARIABLE: &str = "PTO_MPI_PLUGIN";
/// The variable that says which MPI it is, where the launcher does not.
pub const KIND_VARIABLE: &str = "PTO_MPI";

/// An MPI that a plug-in is built with. Their interfaces are the same in C, and not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Open MPI.
    OpenMpi,
    /// MPICH, and those with its binary interface.
    Mpich,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "OpenMPI",
            Self::Mpich => "MPICH",
        })
    }
}

/// Why there is no transport over MPI.
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// The environment names no MPI.
    #[error(
        "no MPI has started this process; start it with a launcher, such as `mpirun -n 8 pto run ..`, or set {variable} to \
         openmpi or mpich for a single rank",
        variable = KIND_VARIABLE
    )]
    NotLaunched,
    /// [`KIND_VARIABLE`] is not the name of an MPI.
    #[error(
        "{variable} is '{given}', which is no MPI that we know; use openmpi or mpich",
        variable = KIND_VARIABLE
    )]
    UnknownKind {
        /// What it is.
        given: String,
    },
    /// There is no plug-in.
    #[error(
        "the plug-in for {kind} is not there; build it with `cargo xtask mpi --mpich`, which installs OpenMPI and MPICH as well, or set {variable} \
         to its path. Looked for: {looked}",
        variable = PATH_VARIABLE
    )]
    NoPlugin {
        /// The MPI that has started this process.
        kind: Kind,
        /// The files that are not there.
        looked: String,
    },
    /// The loader refuses the plug-in.
    #[error("{} cannot be loaded: {why}", path.display())]
    Load {
        /// The plug-in.
        path: PathBuf,
        /// What the loader says.
        why: String,
    },
    /// The plug-in is another version's.
    #[error("{} is of another version of pto; build it again with `cargo xtask mpi`", path.display())]
    Version {
        /// The plug-in.
        path: PathBuf,
    },
    /// MPI refuses a call.
    #[error("MPI cannot {what}: {why}")]
    Refused {
        /// What it was asked to do.
        what: &'static str,
        /// What MPI says.
        why: String,
    },
    /// Ranks that do not come.
    #[error("{}", _0)]
    Bringup(#[from] crate::ranks::group::TransferError),
}

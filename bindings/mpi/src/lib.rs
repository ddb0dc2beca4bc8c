//! Ranks of a group in several processes and hosts: the transport over MPI.
//!
//! ```text
//! ranks   what a program links: the transport, which loads a plug-in for the MPI that the program was started with
//! table   the functions that a plug-in offers
//! plugin  what links MPI: a shared object for each MPI, which `cargo xtask mpi` builds (feature `plugin`)
//! ```
//!
//! Why it is so: `docs/decisions/mpi.md`.

#[cfg(feature = "plugin")]
mod plugin;
#[cfg(feature = "ranks")]
mod ranks;
pub mod table;

#[cfg(feature = "ranks")]
pub use ranks::{Mpi, MpiError, MpiOptions, find};

//! The transport over MPI, as a program has it that loads the plug-in.
//!
//! ```text
//! Mpi::join --> which MPI (find.rs) --> its plug-in, loaded at run time (library.rs) --> every rank says where it is
//!   '-- Arc<dyn Transport> for Group::join      transport.rs: the calls that wait
//!         '-- RankExchange                          exchange/: what is in flight, in steps that never wait
//!               '-- Wire: non-blocking messages of MPI, or of one process in tests
//! ```

mod error;
mod exchange;
pub mod find;
mod group;
mod idle;
mod launcher;
mod library;
mod message;
mod mpi;
mod processes;
mod transport;
mod wire;

#[cfg(test)]
mod testing;

pub use error::MpiError;
pub use mpi::{Mpi, MpiOptions};

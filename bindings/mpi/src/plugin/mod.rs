//! The calls of MPI that ranks of the PTO Runtime make, as a table of functions (`../table.rs`).
//!
//! `pto` loads this library at run time, so that neither `pto` nor any other crate needs an MPI to be built. The crate `mpi` (rsmpi)
//! brings the declarations of the MPI that it is built with: handles of OpenMPI are pointers, those of MPICH are numbers, and
//! so each of them has a library of its own.
//!
//! - `world.rs`: the start and the end of MPI, and the communicators of the channels.
//! - `messages.rs`: messages in flight.
//! - `collectives.rs`: MPI's own collectives, which `pto bench collectives` compares ours with.

mod collectives;
mod messages;
mod state;
mod world;

use crate::table::PluginTable;

/// What a program that loads this library calls.
#[unsafe(no_mangle)]
pub(crate) static pto_mpi_table: PluginTable = PluginTable {
    version: PluginTable::VERSION,
    bytes: PluginTable::BYTES,
    start: world::start,
    send: messages::send,
    receive: messages::receive,
    test: messages::test,
    cancel: messages::cancel,
    all_reduce_sum: collectives::all_reduce_sum,
    barrier: collectives::barrier,
    error_text: world::error_text,
    finish: world::finish,
};

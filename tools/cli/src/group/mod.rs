//! Groups of devices on the command line: where they are ([`open`]), examples on them ([`mod@run`]), collectives measured ([`comm`], [`mod@scaling`]),
//! campaigns over them ([`mod@soak`]).

mod bounds;
pub(crate) mod comm;
mod comm_plot;
mod comm_table;
mod explored;
mod open;
pub(crate) mod run;
pub(crate) mod scaling;
mod scaling_table;
pub(crate) mod soak;

//! Groups of devices on the command line: where they are ([`open`]), examples on them ([`mod@run`]), collectives measured ([`comm`]).

pub(crate) mod comm;
mod comm_table;
mod open;
pub(crate) mod run;

//! What the CANN interface has, for the library and for the command that starts programs on it: the names of the functions, the
//! checks of arguments, the faults that a user can ask for, what a record of calls looks like, how files in tile IR begin,
//! the tables of what programs name by handles, and what libraries above it call.

#[cfg(not(loom))]
pub mod above;
mod calls;
mod checks;
mod faults;
mod functions;
pub mod handles;
mod tile_code;

pub use calls::{ArgumentValue, Call, HEADER, Memory, NamedArgument, Unreadable, read};
pub use checks::{ArgumentRule, CHECKED, Check, checks};
pub use faults::{Fault, Strike, Unsound, list};
pub use functions::{AclFunction, PLUGIN_VERSION, all, runtime};
pub use tile_code::TileCode;

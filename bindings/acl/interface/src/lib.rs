//! What the CANN interface has, for the library and for the command that starts programs on it: the names of the functions, and the
//! faults that a user can ask for.

mod faults;
mod functions;

pub use faults::{Fault, Strike, Unsound, list};
pub use functions::{Function, all};

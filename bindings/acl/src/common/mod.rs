//! The common library: handles, messages, threads, arguments. It knows no device, and calls nothing above it.

pub(crate) mod argument;
pub(crate) mod calls;
pub(crate) mod checks;
pub(crate) mod codes;
pub(crate) mod entry;
pub(crate) mod faults;
pub(crate) mod log;
pub(crate) mod notes;
pub(crate) mod order;
pub(crate) mod races;
pub(crate) mod refusal;
pub(crate) mod spans;
pub(crate) mod table;
pub(crate) mod thread;
pub(crate) mod watch;

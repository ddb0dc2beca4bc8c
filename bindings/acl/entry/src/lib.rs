//! `libascendcl.so`: the entry points of the CANN interface. It loads the plug-in of a device when it is loaded itself, and hands every
//! call on, with one jump through a table.
//!
//! ```text
//! the program -> libascendcl.so -> libpto_acl_a2a3sim.so   a simulated device
//!                               -> the vendor's library    a real one, whose names are looked up in its own files first
//! ```
//! The library does nothing else: it has no handles, no state of threads, and no thread-local variables. A plug-in calls nothing in it.

mod entries;
mod loader;
mod plugin;
mod refusing;
mod row;

/// The loader of the system calls this before the program can call anything.
#[used]
// SAFETY: the section is a list of functions of this type.
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = plugin::load;

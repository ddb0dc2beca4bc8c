//! `libascendcl.so`: the entry points of the CANN interface. It loads the plug-in of a device when it is loaded itself, checks the arguments that
//! need no device, and forwards the call with one jump through a table.
//!
//! ```text
//! the program -> libascendcl.so -> libpto_acl.so   a simulated device, or the emulated machine
//!                               -> the vendor's library    a real one, whose names are looked up in its own files first
//! ```
//! With the vendor's library it keeps the errors of the calls that it refuses itself. It does nothing else: it has no handles, no device, and no thread-local variables. A plug-in calls nothing in it.
//!
//! Why it is so: `docs/decisions/cann-layers.md`.

mod checks;
mod entries;
mod errors;
mod loader;
mod plugin;
mod refusing;
mod row;
// The host compiles the same file. It is all of the host that this library has.
#[path = "../../../../host/src/shared_object.rs"]
#[expect(unreachable_pub, reason = "the host passes it to others")]
mod shared_object;
mod table;
mod tile_code;

/// The loader of the system calls this before the program can call anything.
#[used]
// SAFETY: the section is a list of functions of this type.
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = plugin::load;

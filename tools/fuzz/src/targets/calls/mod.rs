//! Calls of a public interface, from one thread or several, with objects that are open, closed, or of another device.
//!
//! ```text
//! seed --script--> 16 bytes of settings, then 16 bytes a call --play--> threads that call a door (rust.rs, c.rs) --finish--> all comes to rest
//! ```
//! A call says by its own bytes which thread makes it, what is called, and with which objects: those of a pool, counted modulo its size. So every part of
//! a script is a script, and one that fails can be made shorter by leaving calls out.

mod c;
mod cpp;
mod play;
mod rust;
mod scarce;
mod signals;
mod times;
mod words;

pub use cpp::{FOLDER as CPP_FOLDER, compile as compile_cpp};
pub use play::{CALL_BYTES, CALLS_OF_A_SEED, list_calls, script, throw};

pub use times::time_of_children;

/// Calls the safe interface of Rust.
pub fn rust(script: &[u8]) {
    play::play(script, rust::ObjectPools::open);
}

/// Calls the interface of C.
pub fn c(script: &[u8]) {
    play::play(script, c::HandlePools::open);
}

/// Calls the interfaces of C++, from programs in C++.
pub fn cpp(script: &[u8]) {
    cpp::play(script);
}

//! Tables of objects that programs name by handles. Looking an object up takes no lock, and allocates nothing.
//!
//! ```text
//! slot.rs         a slot for an object: which threads may use the object, and which one drops it. loom checks this file.
//! slots.rs        as many slots as there are objects, and the keys that name them
//! generation.rs   how often a table was changed: what was looked up before counts until then. loom checks this file.
//! ```
//! The tables of a plug-in use this module. Its libraries avoid thread-local variables, which old versions of the C library fail to
//! set up on AArch64; so crates for the same purpose that keep state in each thread do not fit.
//!
//! Why it is so: `docs/decisions/cann-calls.md`.

mod generation;
mod slot;
#[cfg(not(loom))]
mod slots;
mod sync;

pub use generation::Generation;
pub use slot::{Pin, Slot};
#[cfg(not(loom))]
pub use slots::{INDICES, Key, PinnedObject, ROUNDS, Slots};

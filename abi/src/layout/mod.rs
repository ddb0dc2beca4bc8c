//! Layout is a compile error: every shared struct states size, alignment and offsets, and has no padding.
//!
//! `shared_struct!` declares a struct and its checks together; [`ALL`] is the table of these structs,
//! from which the layout hash, the C header and `docs/reference/abi.md` are made.

mod table;

pub use crate::shared_struct::{FieldLayout, SharedLayout, StructLayout};
pub use table::{ALL, LAYOUT_HASH};

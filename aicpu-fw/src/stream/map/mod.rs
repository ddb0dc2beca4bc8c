//! The tensor map: which task touches which bytes of which tensor.
//!
//! ```text
//! tensor's address --> its row: one region, its last writer, its readers since
//!                       |--> writes of other regions, newest first .. until one is retired   (entries.rs)
//!                       |--> reads of other regions
//!                       `--> its cells, where it is cut into tiles: rows like this one       (cells.rs)
//! ```
//! Most tensors are always used as a whole, or in the same tiles. The accesses to one region are in one line: to look
//! at them is to compare the region once and up to four numbers of tasks with the watermark. Accesses to other regions
//! are in chains. Nothing is cleaned up: a task below the watermark is not seen, a row that has only such
//! tasks takes the next region that comes, and the entries of chains come out of a ring that retires at the watermark.
//!
//! **The rule of the direct edges.** Task `t` has an edge from an earlier task `p` if and only if an access of `p` and one
//! of `t` have a byte of a tensor in common, one of them writes, and the access of `p` is not *hidden*. An access is hidden
//! once a write of a later task of derived dependencies *covers* it ([`Region::covers`](super::region::Region::covers)): an access that meets the hidden one
//! meets that write as well, and that write waits for the hidden access; the order is transitive. For the same reason a
//! write needs no edge from an earlier write if it has one from a task that has read just what that one wrote: the
//! accesses in a row are those of tasks that have waited for its writer.
//!
//! `derive.rs` looks up and notes; `tensor_map.rs` has the tables and finds rows in them.

mod access;
mod cells;
mod derive;
mod divisor;
mod entries;
mod grid;
mod lookup;
mod row;
mod rows;
mod tensor_map;

pub use access::{AccessKind, Hide, TensorAccess};
pub use tensor_map::{MapMemory, MapPosition, TensorMap};

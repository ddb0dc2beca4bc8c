//! The graph image: how a graph that the host built travels to the firmware.
//!
//! ```text
//! GraphHeader | ImageTask[task_count] | producers u32[edge_count] | argument words u64[arg_words]
//! ```
//! [`ImageParts`] writes images. Edges are listed by consumer: task `i` owns `edge_count` producers from `first_edge`. Edges and arguments of the
//! tasks follow each other without gaps, so that a reader goes through each part once. The loader checks what
//! it reads on the way ([`SealedImage`], [`ImageTaskCheck`]); [`CheckedImage`] is for all other readers.

mod checked;
mod checksum;
mod mismatch;
mod parts;
mod reader;
mod sealed;
mod task_check;

pub use self::checked::CheckedImage;
pub use self::checksum::Checksum;
pub use self::mismatch::{FieldMismatch, expect_at_most, expect_equal};
pub use self::parts::ImageParts;
pub use self::reader::{EntryReader, ImageReaders};
pub use self::sealed::SealedImage;
pub use self::task_check::ImageTaskCheck;
pub use crate::graph_header::{GRAPH_MAGIC, GraphHeader, ImageTask, offsets};

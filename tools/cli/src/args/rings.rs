//! The sizes of the rings of a streaming program: the same options for a run and for a check.

use clap::Args;

use super::value::{heap_bytes, heap_rings, map_entries, ring_units, window};

/// What a user gives; what is left out is as large as usual.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Rings of tensormap_and_ringbuffer")]
pub(crate) struct RingArgs {
    /// Tasks that may be alive at once [default: 4096]
    ///
    /// A power of two; in build mode 0 the default is all tasks.
    #[arg(long, value_name = "N", value_parser = window)]
    pub(crate) window: Option<u32>,
    /// Heap for each depth of nested scopes [default: 64M]
    ///
    /// In bytes; K, M, G stand for KiB, MiB, GiB.
    #[arg(long, value_name = "BYTES", value_parser = heap_bytes)]
    pub(crate) heap_bytes: Option<u64>,
    /// Depths of nested scopes with a heap [default: 4]
    ///
    /// The program itself is one of them: 1 to 8.
    #[arg(long, value_name = "N", value_parser = heap_rings)]
    pub(crate) heap_rings: Option<u32>,
    /// Words of the ring of arguments [default: 17 a slot]
    ///
    /// Each task needs one more than its arguments.
    #[arg(long, value_name = "N", value_parser = ring_units)]
    pub(crate) arg_words: Option<u64>,
    /// Chunks of the ring of edges [default: 16 edges a slot]
    ///
    /// A chunk holds 15 edges of a task with more than 5 consumers.
    #[arg(long, value_name = "N", value_parser = ring_units)]
    pub(crate) edge_chunks: Option<u64>,
    /// Entries of the tensor map [default: 16384, or 4 a slot]
    ///
    /// A power of two.
    #[arg(long, value_name = "N", value_parser = map_entries)]
    pub(crate) map_entries: Option<u32>,
}

impl RingArgs {
    /// Each option, and whether it is given.
    pub(crate) const fn given(&self) -> [(&'static str, bool); 6] {
        [
            ("--window", self.window.is_some()),
            ("--heap-bytes", self.heap_bytes.is_some()),
            ("--heap-rings", self.heap_rings.is_some()),
            ("--arg-words", self.arg_words.is_some()),
            ("--edge-chunks", self.edge_chunks.is_some()),
            ("--map-entries", self.map_entries.is_some()),
        ]
    }
}

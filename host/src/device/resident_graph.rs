//! Remembers which graph of the host is in the arena, so that the graph can run again without a second load.

use pto_abi::sync::Ordering;

use crate::arena::RuntimeArena;
use crate::kernels::KernelTable;
use crate::options::Work;

/// A graph in the arena, with the kernels that it was loaded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResidentGraph {
    image: u64,
    kernels: u64,
}

impl ResidentGraph {
    /// The graph of `work`, with these kernels; `None`: it is none of the host.
    pub(super) fn of(work: Work<'_>, kernels: &KernelTable) -> Option<Self> {
        let Work::HostGraph(image) = work else { return None };
        Some(Self { image: image.id(), kernels: kernels.version() })
    }
}

/// Whether the firmware says that the graph of this run is still in the arena.
pub(super) fn is_resident_after(arena: &RuntimeArena, run_epoch: u32) -> bool {
    arena.view().progress().loaded_run.load(Ordering::Relaxed) == run_epoch
}

//! Which graph of the host stands in the arena, so that it can run again without being loaded again.

use pto_abi::sync::Ordering;

use super::Device;
use crate::Work;
use crate::arena::RuntimeArena;

/// A graph in the arena, with the kernels that it was loaded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    image: u64,
    kernels: u64,
}

impl Device {
    /// Whether the graph is the one whose tasks stand in the arena.
    pub(super) fn stands(&self, work: Work<'_>) -> bool {
        self.of(work).is_some_and(|asked| self.standing == Some(asked))
    }

    /// What stands in the arena after a run without a fault, by what the firmware says of it.
    pub(super) fn standing_after(&self, work: Work<'_>, arena: &RuntimeArena) -> Option<Standing> {
        let loaded = arena.view().progress().loaded_run.load(Ordering::Relaxed);
        self.of(work).filter(|_| loaded == self.epochs.run)
    }

    fn of(&self, work: Work<'_>) -> Option<Standing> {
        let Work::HostGraph(image) = work else { return None };
        Some(Standing { image: image.id(), kernels: self.kernels.version() })
    }
}

//! The runtime arena in GM: made, kept from run to run while capacities fit, grown otherwise.

use std::sync::Arc;

use pto_abi::GmAddr;
use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::stream::StreamCapacities;
use pto_abi::trace::TraceCapacities;

use crate::allocator::Owner;
use crate::error::Error;
use crate::logs::LogReader;
use crate::memory::Memory;

/// An arena that belongs to the runtime; gives its memory back on drop unless it was lost, or a panic drops it.
pub(crate) struct RuntimeArena {
    memory: Arc<Memory>,
    address: GmAddr,
    capacities: Capacities,
    layout: ArenaLayout,
    arena: Arena<'static>,
    /// How far the log rings have been read.
    pub(crate) logs: LogReader,
    lost: bool,
}

impl RuntimeArena {
    /// Makes an arena of zeros, with the handshake lines as before the first bring-up.
    pub(crate) fn new(memory: &Arc<Memory>, capacities: &Capacities) -> Result<Self, Error> {
        let layout = ArenaLayout::plan(capacities)?;
        let address = memory.alloc_zeroed(layout.total_bytes, Owner::Runtime).map_err(|cause| {
            Error::ArenaMemory { bytes: layout.total_bytes, cause: Box::new(cause) }
        })?;
        // SAFETY: this value keeps `memory` alive, and so does the machine that it is launched on, for as
        // long as a thread of that may touch it.
        let gm = unsafe { memory.gm().lasting_window() };
        let arena = Arena::new(gm, address, layout.total_bytes);
        let arena = arena.expect("the allocator hands out aligned ranges of GM");
        for handshake in arena.workers() {
            handshake.reset();
        }
        Ok(Self {
            memory: Arc::clone(memory),
            address,
            capacities: *capacities,
            layout,
            arena,
            logs: LogReader::default(),
            lost: false,
        })
    }

    /// The view that host and firmware share.
    pub(crate) fn view(&self) -> Arena<'static> {
        self.arena
    }

    pub(crate) fn layout(&self) -> &ArenaLayout {
        &self.layout
    }

    /// What it provides for.
    pub(crate) fn capacities(&self) -> &Capacities {
        &self.capacities
    }

    /// Whether it provides for `needed`.
    pub(crate) fn holds(&self, needed: &Capacities) -> bool {
        larger(&self.capacities, needed) == self.capacities
    }

    /// Never gives the memory back: a core may still write to it.
    pub(crate) fn lose(mut self) {
        self.lost = true;
    }
}

impl Drop for RuntimeArena {
    fn drop(&mut self) {
        // After a panic of the host, cores may still poll the arena of its run.
        if self.lost || std::thread::panicking() {
            return;
        }
        let freed = self.memory.free(self.address, Owner::Runtime);
        debug_assert!(freed.is_ok(), "only the runtime frees its arena: {freed:?}");
    }
}

/// The larger of each capacity.
pub(crate) fn larger(one: &Capacities, other: &Capacities) -> Capacities {
    Capacities {
        tasks: one.tasks.max(other.tasks),
        arg_words: one.arg_words.max(other.arg_words),
        edges: one.edges.max(other.edges),
        image_bytes: one.image_bytes.max(other.image_bytes),
        log_entries: one.log_entries.max(other.log_entries),
        trace: TraceCapacities {
            instances: one.trace.instances.max(other.trace.instances),
            instance_events: one.trace.instance_events.max(other.trace.instance_events),
            cores: one.trace.cores.max(other.trace.cores),
            core_events: one.trace.core_events.max(other.trace.core_events),
        },
        stream: StreamCapacities {
            window: one.stream.window.max(other.stream.window),
            map_entries: one.stream.map_entries.max(other.stream.map_entries),
            heap_rings: one.stream.heap_rings.max(other.stream.heap_rings),
            heap_bytes: one.stream.heap_bytes.max(other.stream.heap_bytes),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{RuntimeArena, larger};
    use crate::allocator::Owner;
    use crate::error::Error;
    use crate::memory::Memory;
    use pto_abi::arena::Capacities;
    use pto_abi::handshake::STATUS_EXITED;
    use pto_abi::stream::StreamCapacities;
    use pto_abi::trace::TraceCapacities;
    use std::sync::Arc;

    const SMALL: Capacities = Capacities {
        tasks: 10,
        arg_words: 40,
        edges: 20,
        image_bytes: 0,
        log_entries: 2,
        trace: TraceCapacities::OFF,
        stream: StreamCapacities::OFF,
    };

    #[test]
    fn an_arena_gives_its_memory_back_unless_it_is_lost() {
        let memory = Arc::new(Memory::map(1 << 20).unwrap());
        let all = memory.free_bytes();
        let arena = RuntimeArena::new(&memory, &SMALL).unwrap();
        assert!(memory.free_bytes().0 < all.0);
        drop(arena);
        assert_eq!(memory.free_bytes(), all);
        RuntimeArena::new(&memory, &SMALL).unwrap().lose();
        assert!(memory.free_bytes().0 < all.0);
    }

    #[test]
    fn an_arena_on_used_memory_starts_from_zeros() {
        let memory = Arc::new(Memory::map(1 << 20).unwrap());
        let used = memory.alloc(1 << 19, Owner::User).unwrap();
        memory.copy_in(used, &vec![0xFF; 1 << 19]).unwrap();
        memory.free(used, Owner::User).unwrap();
        let arena = RuntimeArena::new(&memory, &SMALL).unwrap();
        let status = |worker: &pto_abi::handshake::Handshake| worker.raw_status();
        assert!(arena.view().workers().iter().all(|worker| status(worker) == STATUS_EXITED));
        let tasks = arena.view().tasks(arena.layout().regions[0]).unwrap();
        tasks[9].lock.hold(|| ());
        assert!(arena.view().fault().first().is_none());
    }

    #[test]
    fn capacities_grow_field_by_field() {
        let memory = Arc::new(Memory::map(1 << 20).unwrap());
        let arena = RuntimeArena::new(&memory, &SMALL).unwrap();
        assert!(arena.holds(&SMALL) && arena.holds(&Capacities { tasks: 1, ..SMALL }));
        assert!(!arena.holds(&Capacities { edges: 21, ..SMALL }));
        let grown = larger(&SMALL, &Capacities { tasks: 99, edges: 1, ..SMALL });
        assert_eq!(grown, Capacities { tasks: 99, ..SMALL });
    }

    #[test]
    fn an_arena_that_does_not_fit_names_both_sizes() {
        let memory = Arc::new(Memory::map(1 << 16).unwrap());
        let error = RuntimeArena::new(&memory, &Capacities { tasks: 1 << 20, ..SMALL }).err();
        let Some(Error::ArenaMemory { bytes, cause }) = error else { panic!("{error:?}") };
        assert!(bytes > 1 << 26 && matches!(*cause, Error::OutOfMemory { free: 65536, .. }));
        let error = RuntimeArena::new(&memory, &Capacities { tasks: u32::MAX, ..SMALL }).err();
        assert!(matches!(error, Some(Error::Capacity(limit)) if limit.name == "tasks"));
    }
}

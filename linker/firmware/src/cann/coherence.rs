//! What an instance maintains in its caches, and when, because the host reads and writes GM by DMA.
//!
//! | when | what | why |
//! |---|---|---|
//! | enter | launch words, `Runtime`, graph image, ends of the ready queues, header of the streaming builder | the host wrote them for this run |
//! | enter, fresh arena | the whole arena | the host wrote all of it |
//! | a builder reads GM, a scheduler a predicate | the line | the host wrote the table |
//! | last one leaves | launch words, `Runtime`, ends of the queues, log rings, header of the streaming builder | the host reads or rewrites them |
//!
//! On a5 the host's DMA is coherent, and all of this is left out. What AICores write needs no maintenance on
//! AICPU. *Inferred*: that the line-wise `dc civac` of one AICPU core reaches the caches of its siblings (it is
//! architecturally a broadcast to the point of coherency), and that the DMA writes to memory and not into these caches.

use pto_abi::arena::Arena;
use pto_abi::gm::GmWindow;
use pto_abi::launch_words::Architecture;
use pto_abi::runtime::{Region, Runtime, region};
use pto_abi::stream::StreamHeader;
use pto_abi::{CoreKind, GmAddr};

use crate::cann::barrier;

/// What has to be maintained on this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// The host's DMA bypasses AICPU's caches.
    Maintained,
    /// Nothing.
    Coherent,
}

impl Coherence {
    /// As the architecture has it.
    #[must_use]
    pub const fn of(architecture: Architecture) -> Self {
        match architecture {
            Architecture::A5 => Self::Coherent,
            _ => Self::Maintained,
        }
    }

    /// Before the first look at an arena.
    pub fn enter(self, arena: &Arena<'_>, fresh: Freshness) {
        if fresh == Freshness::Fresh {
            return self.maintain(arena.window(), 0, arena.window().bytes());
        }
        self.maintain(arena.window(), 0, size_of::<Runtime>() as u64);
        // The directory is unchecked; `maintain` leaves out what is not in the arena, and the check that follows
        // refuses it.
        let regions = arena.regions();
        self.maintain_region(arena, regions[region::GRAPH]);
        self.maintain_queue_ends(arena, regions[region::READY]);
        self.maintain_stream_header(arena, regions[region::STREAM]);
    }

    /// After the last instance has done its part.
    pub fn leave(self, arena: &Arena<'_>) {
        let regions = arena.regions();
        self.maintain_region(arena, regions[region::LOGS]);
        self.maintain_queue_ends(arena, regions[region::READY]);
        self.maintain_stream_header(arena, regions[region::STREAM]);
        self.maintain(arena.window(), 0, size_of::<Runtime>() as u64);
    }

    /// Before a look at words of GM that the host may have written.
    pub fn look(self, gm: GmWindow<'_>, address: GmAddr, bytes: u64) {
        if let Some(offset) = gm.offset_of(address, bytes) {
            self.maintain(gm, offset, bytes);
        }
    }

    fn maintain_region(self, arena: &Arena<'_>, at: Region) {
        self.maintain(arena.window(), at.offset, at.bytes);
    }

    /// Its marks, and the board of shaped tasks.
    fn maintain_stream_header(self, arena: &Arena<'_>, at: Region) {
        let bytes = at.bytes.min(size_of::<StreamHeader>() as u64);
        self.maintain(arena.window(), at.offset, bytes);
    }

    fn maintain_queue_ends(self, arena: &Arena<'_>, at: Region) {
        for kind in CoreKind::ALL {
            let Some((ends, _)) = arena.ready_queue(at, *kind) else { continue };
            if self == Self::Maintained {
                let start = core::ptr::from_ref(ends).cast::<u8>();
                // SAFETY: a reference is mapped.
                unsafe { barrier::clean_and_invalidate(start, size_of_val(ends)) };
            }
        }
    }

    fn maintain(self, window: GmWindow<'_>, offset: u64, bytes: u64) {
        if self == Self::Coherent {
            return;
        }
        let Some(start) = window.pointer(offset, bytes, 1) else { return };
        let Ok(bytes) = usize::try_from(bytes) else { return };
        // SAFETY: `pointer` checked that the range is in the window, which is mapped.
        unsafe { barrier::clean_and_invalidate(start, bytes) };
    }
}

/// Whether the host wrote the whole arena since the last launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It did.
    Fresh,
    /// The words of the run only.
    Known,
}

//! The lines of streams and events in GM: taken from the device's memory, given back when nobody uses them any more.

use std::sync::Arc;

use pto_abi::GmAddr;
use pto_abi::session::{CommandEntry, CommandRing, EventLine, RingProducer};

use crate::Error;
use crate::allocator::Owner;
use crate::memory::Memory;

/// Memory of the session in GM.
struct Block {
    memory: Arc<Memory>,
    address: GmAddr,
}

impl Block {
    fn of_zeros(memory: &Arc<Memory>, bytes: u64) -> Result<Self, Error> {
        let address = memory.alloc_zeroed(bytes, Owner::Runtime)?;
        Ok(Self { memory: Arc::clone(memory), address })
    }

    /// Where it begins in GM.
    fn offset(&self) -> u64 {
        self.address.0 - self.memory.gm().address().0
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let freed = self.memory.free(self.address, Owner::Runtime);
        debug_assert!(freed.is_ok(), "only the session frees its lines: {freed:?}");
    }
}

/// The ring of a stream.
pub(super) struct RingMemory {
    ring: CommandRing<'static>,
    _block: Block,
}

impl RingMemory {
    /// An empty ring of `entries`, a power of two.
    pub(super) fn new(memory: &Arc<Memory>, entries: usize) -> Result<Self, Error> {
        let lines = size_of::<RingProducer>() as u64;
        let bytes = 2 * lines + (entries * size_of::<CommandEntry>()) as u64;
        let block = Block::of_zeros(memory, bytes)?;
        // SAFETY: the block keeps `memory` alive; the ring does not leave this value but for as long as it is borrowed.
        let gm = unsafe { block.memory.gm().lasting_window() };
        let at = block.offset();
        let ring = gm.live(at).zip(gm.live(at + lines)).and_then(|(producer, consumer)| {
            CommandRing::new(producer, consumer, gm.live_slice(at + 2 * lines, entries)?)
        });
        let ring = ring.expect("the allocator hands out aligned ranges of GM");
        Ok(Self { ring, _block: block })
    }

    /// The ring.
    pub(super) fn ring(&self) -> CommandRing<'_> {
        self.ring
    }
}

/// The line of an event.
pub(super) struct EventMemory {
    line: &'static EventLine,
    _block: Block,
}

impl EventMemory {
    pub(super) fn new(memory: &Arc<Memory>) -> Result<Self, Error> {
        let block = Block::of_zeros(memory, size_of::<EventLine>() as u64)?;
        // SAFETY: as in `RingMemory::new`.
        let gm = unsafe { block.memory.gm().lasting_window() };
        let line = gm.live(block.offset()).expect("the allocator hands out aligned ranges of GM");
        Ok(Self { line, _block: block })
    }

    /// The line.
    pub(super) fn line(&self) -> &EventLine {
        self.line
    }
}

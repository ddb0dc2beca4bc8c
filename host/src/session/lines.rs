//! The lines of streams and events in GM: taken from the device's memory, given back when nobody uses them any more.

use std::sync::Arc;

use pto_abi::GmAddr;
use pto_abi::limits::MAX_STREAMS;
use pto_abi::session::board::ASLEEP;
use pto_abi::session::{
    CommandEntry, CommandRing, EventLine, RingConsumer, RingProducer, SessionBoard, StreamLine,
};
use pto_abi::sync::Ordering;

use crate::allocator::Owner;
use crate::error::Error;
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

    /// Brings it to a device whose memory only copies reach.
    fn send(&self, bytes: u64) -> Result<(), Error> {
        self.memory.gm().send(self.address, bytes)
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
    entries: usize,
    block: Block,
}

impl RingMemory {
    /// An empty ring of `entries`, a power of two.
    pub(super) fn new(memory: &Arc<Memory>, entries: usize) -> Result<Self, Error> {
        let lines = size_of::<RingProducer>() as u64;
        let block = Block::of_zeros(memory, Self::bytes(entries))?;
        // SAFETY: the block keeps `memory` alive; the ring does not leave this value but for as long as it is borrowed.
        let gm = unsafe { block.memory.gm().lasting_window() };
        let at = block.offset();
        let ring = gm.live(at).zip(gm.live(at + lines)).and_then(|(producer, consumer)| {
            CommandRing::new(producer, consumer, gm.live_slice(at + 2 * lines, entries)?)
        });
        let ring = ring.expect("the allocator hands out aligned ranges of GM");
        Ok(Self { ring, entries, block })
    }

    /// What a ring of `entries` takes.
    pub(super) const fn bytes(entries: usize) -> u64 {
        (size_of::<RingProducer>()
            + size_of::<RingConsumer>()
            + entries * size_of::<CommandEntry>()) as u64
    }

    /// The ring.
    pub(super) fn ring(&self) -> CommandRing<'_> {
        self.ring
    }

    /// Brings it to a device whose memory only copies reach. Nobody submits meanwhile.
    pub(super) fn send(&self) -> Result<(), Error> {
        self.block.send(Self::bytes(self.entries))
    }

    /// Brings back how far the firmware is. A device that was reset meanwhile holds zeros: then the stream is where it was.
    pub(super) fn fetch_progress(&self) -> Result<(), Error> {
        let consumer = self.block.address.offset(size_of::<RingProducer>() as u64);
        let [taken, completed] = self.block.memory.gm().read_words(consumer)?;
        let known = &self.ring.consumer().completed;
        if completed > known.load(Ordering::Relaxed) {
            self.ring.take(taken);
            // Release: pairs with the Acquire load of whoever waits for the number.
            known.store(completed, Ordering::Release);
        }
        Ok(())
    }

    /// Tells the firmware where it is.
    pub(super) fn put_into(&self, line: &StreamLine) {
        let producer = self.block.address.0;
        let consumer = producer + size_of::<RingProducer>() as u64;
        line.consumer.store(consumer, Ordering::Relaxed);
        line.entries.store(consumer + size_of::<RingConsumer>() as u64, Ordering::Relaxed);
        line.entry_count.store(self.entries as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire load in the firmware's `Visit::begin`, which may look at this place because of a doorbell
        // that was rung for the stream before.
        line.producer.store(producer, Ordering::Release);
    }

    /// Tells the firmware that the place has no stream any more: this memory may soon be that of another stream's ring, which would
    /// then be read from two places. No firmware is up.
    pub(super) fn take_out_of(line: &StreamLine) {
        // Relaxed: the launch of the next firmware is behind this store.
        line.producer.store(0, Ordering::Relaxed);
    }
}

/// The board of a session.
pub(super) struct BoardMemory {
    board: SessionBoard<'static>,
    slots: u32,
    block: Block,
}

/// Launches that may be on their way at once, where memory is not scarce: more than streams.
const SLOTS: u64 = 2048;
/// Fewest.
const FEWEST_SLOTS: u64 = 64;
/// What a launch on its way takes, roughly: its task, its arguments, a note.
const BYTES_A_SLOT: u64 = 1200;

impl BoardMemory {
    /// A board of a session that nobody is up for.
    pub(super) fn new(memory: &Arc<Memory>) -> Result<Self, Error> {
        let slots = (memory.gm().bytes() / 16 / BYTES_A_SLOT).clamp(FEWEST_SLOTS, SLOTS);
        let block = Block::of_zeros(memory, SessionBoard::bytes(slots))?;
        // SAFETY: as in `RingMemory::new`.
        let gm = unsafe { block.memory.gm().lasting_window() };
        let notes = usize::try_from(slots).unwrap_or(usize::MAX);
        let board = SessionBoard::of(&gm, block.offset(), notes);
        let board = board.expect("the allocator hands out aligned ranges of GM");
        board.orders.notes.store(slots, Ordering::Relaxed);
        board.bells.iter().for_each(|bell| bell.store(ASLEEP, Ordering::Relaxed));
        Ok(Self { board, slots: u32::try_from(slots).unwrap_or(u32::MAX), block })
    }

    /// The board.
    pub(super) fn board(&self) -> &SessionBoard<'_> {
        &self.board
    }

    /// Where it is in GM.
    pub(super) fn address(&self) -> GmAddr {
        self.block.address
    }

    /// Brings it to a device whose memory only copies reach.
    pub(super) fn send(&self) -> Result<(), Error> {
        self.block.send(SessionBoard::bytes(self.slots.into()))
    }

    /// Brings back what the firmware has written.
    pub(super) fn fetch(&self) -> Result<(), Error> {
        let gm = self.block.memory.gm();
        SessionBoard::of_firmware(self.slots.into()).into_iter().try_for_each(|range| {
            gm.fetch(self.block.address.offset(range.start), range.end - range.start)
        })
    }

    /// Launches that may be on their way at once.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// The line of the stream at this place. A session gives out no other places.
    pub(super) fn stream(&self, place: usize) -> &StreamLine {
        &self.board.streams[place % MAX_STREAMS]
    }
}

/// The line of an event.
pub(super) struct EventMemory {
    line: &'static EventLine,
    block: Block,
}

impl EventMemory {
    pub(super) fn new(memory: &Arc<Memory>) -> Result<Self, Error> {
        let block = Block::of_zeros(memory, size_of::<EventLine>() as u64)?;
        // SAFETY: as in `RingMemory::new`.
        let gm = unsafe { block.memory.gm().lasting_window() };
        let line = gm.live(block.offset()).expect("the allocator hands out aligned ranges of GM");
        Ok(Self { line, block })
    }

    /// The line.
    pub(super) fn line(&self) -> &EventLine {
        self.line
    }

    /// Where it is in GM.
    pub(super) fn address(&self) -> GmAddr {
        self.block.address
    }

    /// Brings it to a device whose memory only copies reach.
    pub(super) fn send(&self) -> Result<(), Error> {
        self.block.send(size_of::<EventLine>() as u64)
    }

    /// Brings back what the firmware has written. The host may be further: it completes records as well.
    pub(super) fn fetch(&self) -> Result<(), Error> {
        let [completed, time_ns] = self.block.memory.gm().read_words(self.block.address)?;
        if completed > self.line.completed.load(Ordering::Relaxed) {
            self.line.time_ns.store(time_ns, Ordering::Relaxed);
            self.line.complete(completed);
        }
        Ok(())
    }
}

//! The lines of streams and events in GM: taken from the device's memory, given back when they are dropped.

use std::mem::offset_of;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::GmAddr;
use pto_abi::limits::MAX_STREAMS;
use pto_abi::session::board::ASLEEP;
use pto_abi::session::{
    CommandEntry, CommandRing, EventLine, RingConsumer, RingProducer, SessionBoard, SessionOrders,
    StreamLine,
};
use pto_abi::sync::{AtomicU64, Ordering};

use crate::allocator::Owner;
use crate::error::Error;
use crate::memory::Memory;

/// Memory of the session in GM.
struct Block {
    memory: Arc<Memory>,
    address: GmAddr,
    /// What a device without shared memory holds there, as far as the host knows; empty: it knows nothing.
    sent: Mutex<Vec<u8>>,
}

/// Bytes that are compared and sent at once.
const LINE: usize = 64;
/// Bytes between two changes that are sent with them: each copy of the driver takes as long as some thousand bytes.
const JOINED: usize = 4096;

/// The parts of `now` that a device lacks which holds `sent`, or holds something else, where it writes itself. Parts that are near each other are one.
fn changed(now: &[u8], sent: &[u8], written_there: &Range<usize>) -> Vec<Range<usize>> {
    let is_lacking = |at: usize| {
        let line = at..(at + LINE).min(now.len());
        let is_written = written_there.start < line.end && line.start < written_there.end;
        is_written || now.get(line.clone()) != sent.get(line)
    };
    let mut parts: Vec<Range<usize>> = Vec::new();
    for at in (0..now.len()).step_by(LINE).filter(|at| is_lacking(*at)) {
        let end = (at + LINE).min(now.len());
        match parts.last_mut().filter(|last| at - last.end < JOINED) {
            Some(last) => last.end = end,
            None => parts.push(at..end),
        }
    }
    parts
}

impl Block {
    fn of_zeros(memory: &Arc<Memory>, bytes: u64) -> Result<Self, Error> {
        let address = memory.alloc_zeroed(bytes, Owner::Runtime)?;
        Ok(Self { memory: Arc::clone(memory), address, sent: Mutex::default() })
    }

    /// What it holds on this side. Others may submit and ring meanwhile: their words are in it, or are sent the next time.
    fn here(&self, bytes: u64) -> Vec<u8> {
        debug_assert!(bytes.is_multiple_of(size_of::<u64>() as u64), "it has whole words");
        let count = usize::try_from(bytes / size_of::<u64>() as u64).unwrap_or_default();
        let window = self.memory.gm().window();
        let words: Option<&[AtomicU64]> = window.live_slice(self.offset(), count);
        debug_assert!(words.is_some(), "the block is in GM");
        let words = words.unwrap_or_default().iter();
        words.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    /// Sends a device without shared memory what it lacks, and what both sides write.
    fn send(&self, bytes: u64, written_there: Range<usize>) -> Result<(), Error> {
        let now = self.here(bytes);
        let mut sent = self.sent();
        // Whatever fails on the way, the next one sends all of it.
        let before = std::mem::take(&mut *sent);
        for part in changed(&now, &before, &written_there) {
            self.memory.gm().write(self.address.offset(part.start as u64), &now[part])?;
        }
        *sent = now;
        Ok(())
    }

    /// The device has what this side has in these parts of this many bytes.
    fn note_same(&self, bytes: u64, parts: &[Range<u64>]) {
        let mut sent = self.sent();
        // Nothing was ever sent: both sides have the same memory, or the next one sends all of it.
        if sent.is_empty() {
            return;
        }
        let now = self.here(bytes);
        for part in parts {
            let part = [part.start, part.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            let part = part[0]..part[1];
            if let (Some(to), Some(from)) = (sent.get_mut(part.clone()), now.get(part)) {
                to.copy_from_slice(from);
            }
        }
    }

    /// The device may hold anything.
    fn forget(&self) {
        self.sent().clear();
    }

    fn sent(&self) -> MutexGuard<'_, Vec<u8>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Sends a device without shared memory what it lacks. No thread submits meanwhile.
    pub(super) fn send(&self) -> Result<(), Error> {
        // How far the firmware is, it writes itself.
        let lines = size_of::<RingProducer>() + size_of::<RingConsumer>();
        self.block.send(Self::bytes(self.entries), 0..lines)
    }

    /// The device may hold anything.
    pub(super) fn forget(&self) {
        self.block.forget();
    }

    /// Brings back how far the firmware is. A device that was reset meanwhile holds zeros: then the stream is where it was.
    pub(super) fn fetch_progress(&self) -> Result<(), Error> {
        let consumer = self.block.address.offset(size_of::<RingProducer>() as u64);
        let [taken, completed] = self.block.memory.gm().read_words(consumer)?;
        let known = &self.ring.consumer().completed;
        if completed > known.load(Ordering::Relaxed) {
            self.ring.take(taken);
            // Release: pairs with the Acquire load in `StreamCore::completed`.
            known.store(completed, Ordering::Release);
        }
        Ok(())
    }

    /// Writes its addresses for the firmware.
    pub(super) fn put_into(&self, line: &StreamLine) {
        let producer = self.block.address.0;
        let consumer = producer + size_of::<RingProducer>() as u64;
        line.consumer.store(consumer, Ordering::Relaxed);
        line.entries.store(consumer + size_of::<RingConsumer>() as u64, Ordering::Relaxed);
        line.entry_count.store(self.entries as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire load in the firmware's `StreamPoll::begin`, which may look at this slot because of a doorbell
        // that rang for the previous stream.
        line.producer.store(producer, Ordering::Release);
    }

    /// Marks the slot as empty for the firmware: this memory may soon be that of another stream's ring, which would then be read
    /// through two slots. No firmware is up.
    pub(super) fn take_out_of(line: &StreamLine) {
        // Relaxed: the launch of the next firmware, which comes after this store, publishes it.
        line.producer.store(0, Ordering::Relaxed);
    }
}

/// The board of a session.
pub(super) struct BoardMemory {
    board: SessionBoard<'static>,
    slots: u32,
    block: Block,
}

/// Launches that may be in flight at once, where memory is not scarce: more than streams.
const SLOTS: u64 = 2048;
/// Fewest.
const FEWEST_SLOTS: u64 = 64;
/// Bytes of a launch in flight, roughly: its task, its arguments, a note.
const BYTES_A_SLOT: u64 = 1200;

impl BoardMemory {
    /// The board of a session whose firmware is not up.
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

    /// Sends a device without shared memory what it lacks.
    pub(super) fn send(&self) -> Result<(), Error> {
        // Orders, news and doorbells: the firmware writes some of them.
        let head = usize::try_from(SessionBoard::STREAMS_AT).unwrap_or(usize::MAX);
        self.block.send(self.bytes(), 0..head)
    }

    /// Whether the device still has the board. One that was reset holds zeros.
    pub(super) fn is_there(&self) -> Result<bool, Error> {
        let orders: [u64; size_of::<SessionOrders>() / size_of::<u64>()] =
            self.block.memory.gm().read_words(self.block.address)?;
        Ok(orders[offset_of!(SessionOrders, notes) / size_of::<u64>()] == u64::from(self.slots))
    }

    /// The device may hold anything.
    pub(super) fn forget(&self) {
        self.block.forget();
    }

    /// Brings back what the firmware has written.
    pub(super) fn fetch(&self) -> Result<(), Error> {
        let (gm, parts) = (self.block.memory.gm(), SessionBoard::of_firmware(self.slots.into()));
        parts.iter().try_for_each(|range| {
            gm.fetch(self.block.address.offset(range.start), range.end - range.start)
        })?;
        self.block.note_same(self.bytes(), &parts);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        SessionBoard::bytes(self.slots.into())
    }

    /// Launches that may be in flight at once.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// The line of the stream in this slot, which is below `MAX_STREAMS`.
    pub(super) fn stream(&self, slot: usize) -> &StreamLine {
        &self.board.streams[slot % MAX_STREAMS]
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
        let bytes = size_of::<EventLine>();
        self.block.send(bytes as u64, 0..bytes)
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

#[cfg(test)]
mod tests {
    use super::{JOINED, LINE, changed};

    #[test]
    fn only_what_a_device_lacks_is_sent() {
        let sent = vec![0; 8 * JOINED];
        let mut now = sent.clone();
        let all = changed(&now, &[], &(0..0));
        assert_eq!((all.len(), &all[0]), (1, &(0..now.len())), "nothing is known of it");
        assert_eq!(changed(&now, &sent, &(0..0)), []);
        (now[3], now[5 * JOINED + 1]) = (1, 1);
        let far = [0..LINE, 5 * JOINED..5 * JOINED + LINE];
        assert_eq!(changed(&now, &sent, &(0..0)), far);
        // What the firmware writes may be something else there.
        let both = changed(&now, &sent, &(2 * JOINED..2 * JOINED + 8));
        assert_eq!(both, [far[0].clone(), 2 * JOINED..2 * JOINED + LINE, far[1].clone()]);
        now[JOINED] = 1;
        assert_eq!(changed(&now, &sent, &(0..0))[0], 0..JOINED + LINE, "near parts are one");
        let odd = changed(&[1; LINE + 3], &[0; LINE + 3], &(0..0));
        assert_eq!((odd.len(), &odd[0]), (1, &(0..LINE + 3)));
    }
}

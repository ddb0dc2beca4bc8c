//! The board of a session: what the host and the resident firmware exchange in addition to the rings.
//!
//! ```text
//! block of GM: [ SessionOrders | SessionNews | doorbells | StreamLine; MAX_STREAMS | LaneLine; MAX_STREAMS | LaunchNote; notes ]
//! submitter: CommandRing::put, then `ring` the stream's doorbell           firmware: `take_doorbells`, then CommandRing::accept
//! ```
//! Which side has a stream's commands: while a firmware is up, it has the head of every stream, until it meets a command that is the
//! host's. Then it hands the stream over (`LaneLine::handed` differs from `StreamLine::returned`), and the host returns it.
//! The side that has the head is the consumer of the ring and writes the consumer's line. While no firmware is up, the host has all.

use crate::limits::{MAX_ARGS, MAX_STREAMS};
use crate::shared_struct::shared_struct;
use crate::symbol::symbol;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The name of the builder program that is the resident firmware. Its one word is the address of the board.
pub const RESIDENT_PROGRAM: &str = "pto.session";
/// Its symbol.
pub const RESIDENT_SYMBOL: u64 = symbol(RESIDENT_PROGRAM);

/// Argument words of a launch on its way: the arguments, and two contexts of blocks.
pub const LAUNCH_PAYLOAD_WORDS: u32 = 130;
const _: () = assert!(LAUNCH_PAYLOAD_WORDS as usize == MAX_ARGS + 2);

/// Streams that share a doorbell.
pub const STREAMS_A_BELL: usize = 62;
/// Doorbells of a session.
pub const BELLS: usize = MAX_STREAMS.div_ceil(STREAMS_A_BELL);
/// In a doorbell: no firmware looks at it, so the agent that rings wakes the host's service.
pub const ASLEEP: u64 = 1 << 63;

shared_struct! {
    /// What the host asks of the firmware. All but `leave` are written before a launch.
    #[derive(Default)]
    pub struct SessionOrders [size = 64, align = 64] {
        /// 1: finish what has begun, and return.
        0 => leave: AtomicU64,
        /// The time on the clock of the session at the launch.
        8 => base_ns: AtomicU64,
        /// How long the firmware stays when there is nothing to do.
        16 => linger_ns: AtomicU64,
        /// After this time nothing new is begun; zero: no limit.
        24 => limit_ns: AtomicU64,
        /// Decides which stream is served next; zero: they take turns.
        32 => seed: AtomicU64,
        /// The most commands that are begun; zero: no limit.
        40 => most: AtomicU64,
        /// How many launch notes there are.
        48 => notes: AtomicU64,
        /// The most launches that are on their way at once.
        56 => in_flight: AtomicU64,
    }
}

shared_struct! {
    /// What the firmware reports. Its own line.
    #[derive(Default)]
    pub struct SessionNews [size = 64, align = 64] {
        /// Streams that were handed over to the host.
        0 => handed: AtomicU64,
        /// Launches begun since the session was opened.
        8 => launches: AtomicU64,
        /// Times that the firmware has come up.
        16 => runs: AtomicU64,
        /// Not used; zero.
        24 => reserved: [AtomicU64; 5],
    }
}

shared_struct! {
    /// A stream, as the host describes it to the firmware. The host's line.
    #[derive(Default)]
    pub struct StreamLine [size = 64, align = 64] {
        /// Where the producer's line of its ring is; zero: there is no such stream.
        0 => producer: AtomicU64,
        /// Where the consumer's line is.
        8 => consumer: AtomicU64,
        /// Where the entries are.
        16 => entries: AtomicU64,
        /// How many entries.
        24 => entry_count: AtomicU64,
        /// 0 is served first, 7 last.
        32 => priority: AtomicU64,
        /// Commands up to this number are the host's, which skips them.
        40 => skip_to: AtomicU64,
        /// As `LaneLine::handed`: the firmware has the stream again.
        48 => returned: AtomicU64,
        /// How long a kernel of the stream may take, in microseconds; zero: as long as any kernel of the run.
        56 => kernel_budget_us: AtomicU64,
    }
}

shared_struct! {
    /// How far the firmware is with a stream. The firmware's line while one is up.
    #[derive(Default)]
    pub struct LaneLine [size = 64, align = 64] {
        /// Changes when the stream is handed over to the host.
        0 => handed: AtomicU64,
        /// The position of the next command to begin.
        8 => at: AtomicU64,
        /// The run that the words below are of.
        16 => run: AtomicU32,
        /// Tasks on their way.
        20 => in_flight: AtomicU32,
        /// The slot of the oldest one.
        24 => first: AtomicU32,
        /// The slot of the newest one.
        28 => last: AtomicU32,
        /// Of a launch with several blocks: blocks begun; zero: none is under way.
        32 => blocks_begun: AtomicU32,
        /// Of the same launch: blocks that are over.
        36 => blocks_over: AtomicU32,
        /// 1: the head is a launch that the firmware has refused with the fault of the run.
        40 => refused: AtomicU32,
        /// Not used; zero.
        44 => reserved: [AtomicU32; 5],
    }
}

shared_struct! {
    /// What the firmware notes of the launch whose task is in the slot of the same number.
    #[derive(Default)]
    pub struct LaunchNote [size = 32, align = 32] {
        /// The number of the command.
        0 => number: AtomicU64,
        /// The position after it.
        8 => end: AtomicU64,
        /// The slot of the next task of the stream.
        16 => next: AtomicU32,
        /// Its blocks.
        20 => blocks: AtomicU32,
        /// 1: the last one of them.
        24 => is_last: AtomicU32,
        /// Not used; zero.
        28 => reserved: AtomicU32,
    }
}

impl LaneLine {
    /// Whether the host has the head of the stream, while a firmware is up.
    #[must_use]
    #[inline]
    pub fn is_handed(&self, line: &StreamLine) -> bool {
        // Acquire: pair with the Release stores in `hand_over` and `give_back`: the side that has the head sees the consumer's line.
        self.handed.load(Ordering::Acquire) != line.returned.load(Ordering::Acquire)
    }

    /// The host has the head from now on. The firmware's call.
    pub fn hand_over(&self, line: &StreamLine) {
        let returned = line.returned.load(Ordering::Relaxed);
        // Release: pairs with the Acquire load in `is_handed`.
        self.handed.store(returned.wrapping_add(1), Ordering::Release);
    }
}

impl StreamLine {
    /// The firmware has the head again. The host's call.
    pub fn give_back(&self, lane: &LaneLine) {
        let handed = lane.handed.load(Ordering::Relaxed);
        // Release: pairs with the Acquire load in `LaneLine::is_handed`.
        self.returned.store(handed, Ordering::Release);
    }
}

/// Where a stream's bit is: its doorbell, and the bit.
#[must_use]
pub const fn bell_of(stream: usize) -> (usize, u64) {
    (stream / STREAMS_A_BELL, 1 << (stream % STREAMS_A_BELL))
}

/// Rings for a stream. `true`: no firmware looks at the doorbell.
#[inline]
pub fn ring(bell: &AtomicU64, bit: u64) -> bool {
    // AcqRel: Release pairs with the Acquire half in `take_bell`, whose firmware then sees what was submitted; the flag and the
    // bits are one word, so that of a firmware that falls asleep and a submitter one sees the other.
    bell.fetch_or(bit, Ordering::AcqRel) & ASLEEP != 0
}

/// Takes the bits of a doorbell. For the firmware.
#[inline]
pub fn take_bell(bell: &AtomicU64) -> u64 {
    if bell.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // AcqRel: see `ring`.
    bell.swap(0, Ordering::AcqRel) & !ASLEEP
}

/// No agent looks at the doorbell any more; the bits that were set before. They stay.
pub fn fall_asleep(bell: &AtomicU64) -> u64 {
    // AcqRel: see `ring`.
    bell.fetch_or(ASLEEP, Ordering::AcqRel) & !ASLEEP
}

/// An agent looks at the doorbell again.
pub fn wake_up(bell: &AtomicU64) {
    // AcqRel: see `ring`.
    bell.fetch_and(!ASLEEP, Ordering::AcqRel);
}

/// The board of a session, as both sides see it.
#[cfg(not(any(loom, shuttle)))]
#[derive(Clone, Copy)]
pub struct SessionBoard<'a> {
    /// The host's.
    pub orders: &'a SessionOrders,
    /// The firmware's.
    pub news: &'a SessionNews,
    /// Doorbells, written by both.
    pub bells: &'a [AtomicU64],
    /// The host's, one a stream.
    pub streams: &'a [StreamLine],
    /// The firmware's, one a stream.
    pub lanes: &'a [LaneLine],
    /// The firmware's, one a slot.
    pub notes: &'a [LaunchNote],
}

#[cfg(not(any(loom, shuttle)))]
impl<'a> SessionBoard<'a> {
    const BELLS_AT: u64 = (size_of::<SessionOrders>() + size_of::<SessionNews>()) as u64;
    /// Where the lines of the streams begin.
    pub const STREAMS_AT: u64 =
        (Self::BELLS_AT + (BELLS * size_of::<AtomicU64>()) as u64).next_multiple_of(64);
    const LANES_AT: u64 = Self::STREAMS_AT + (MAX_STREAMS * size_of::<StreamLine>()) as u64;
    const NOTES_AT: u64 = Self::LANES_AT + (MAX_STREAMS * size_of::<LaneLine>()) as u64;

    /// Bytes of a board with this many notes.
    #[must_use]
    pub const fn bytes(notes: u64) -> u64 {
        Self::NOTES_AT + notes * size_of::<LaunchNote>() as u64
    }

    /// Which bytes of a board with this many notes the firmware writes in addition to the doorbells.
    #[must_use]
    pub const fn of_firmware(notes: u64) -> [core::ops::Range<u64>; 2] {
        let news = size_of::<SessionOrders>() as u64..Self::BELLS_AT;
        [news, Self::LANES_AT..Self::bytes(notes)]
    }

    /// The board at `offset` of a window, with this many notes. `None`: it is not all in the window, or not aligned.
    #[must_use]
    pub fn of(gm: &crate::gm::GmWindow<'a>, offset: u64, notes: usize) -> Option<Self> {
        let at = |part: u64| offset.checked_add(part);
        Some(Self {
            orders: gm.live(offset)?,
            news: gm.live(at(size_of::<SessionOrders>() as u64)?)?,
            bells: gm.live_slice(at(Self::BELLS_AT)?, BELLS)?,
            streams: gm.live_slice(at(Self::STREAMS_AT)?, MAX_STREAMS)?,
            lanes: gm.live_slice(at(Self::LANES_AT)?, MAX_STREAMS)?,
            notes: gm.live_slice(at(Self::NOTES_AT)?, notes)?,
        })
    }

    /// The board at `address` of the device's memory, with as many notes as its orders say.
    #[must_use]
    pub fn at(gm: &crate::gm::GmWindow<'a>, address: crate::ids::GmAddr) -> Option<Self> {
        let offset = gm.offset_of(address, size_of::<SessionOrders>() as u64)?;
        let notes = gm.live::<SessionOrders>(offset)?.notes.load(Ordering::Relaxed);
        Self::of(gm, offset, usize::try_from(notes).ok()?)
    }

    /// Whether the host has the head of a stream, while a firmware is up.
    #[must_use]
    #[inline]
    pub fn is_handed(&self, stream: usize) -> bool {
        let both = self.lanes.get(stream).zip(self.streams.get(stream));
        both.is_none_or(|(lane, line)| lane.is_handed(line))
    }

    /// The host has the head from now on. The firmware's call.
    pub fn hand_over(&self, stream: usize) {
        if let Some((lane, line)) = self.lanes.get(stream).zip(self.streams.get(stream)) {
            lane.hand_over(line);
        }
        let handed = self.news.handed.load(Ordering::Relaxed);
        self.news.handed.store(handed.wrapping_add(1), Ordering::Relaxed);
    }

    /// The firmware has the head again. The host's call. `true`: the firmware does not look at the doorbell.
    pub fn give_back(&self, stream: usize) -> bool {
        if let Some((lane, line)) = self.lanes.get(stream).zip(self.streams.get(stream)) {
            line.give_back(lane);
        }
        self.ring(stream)
    }

    /// Rings for a stream. `true`: no firmware is up to hear it.
    #[inline]
    pub fn ring(&self, stream: usize) -> bool {
        let (bell, bit) = bell_of(stream);
        self.bells.get(bell).is_none_or(|bell| ring(bell, bit))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{ASLEEP, BELLS, bell_of, fall_asleep, ring, take_bell, wake_up};
    use crate::limits::MAX_STREAMS;
    use crate::sync::{AtomicU64, Ordering};

    #[test]
    fn every_stream_has_a_bit_of_its_own() {
        let (last, bit) = bell_of(MAX_STREAMS - 1);
        assert_eq!((last, bit.trailing_zeros()), (BELLS - 1, 61));
        assert_ne!(bell_of(61), bell_of(62));
        assert_eq!(bell_of(62), (1, 1));
    }

    #[test]
    fn a_ring_is_heard_or_answered() {
        let bell = AtomicU64::new(ASLEEP);
        assert!(ring(&bell, 4), "no firmware is up");
        wake_up(&bell);
        assert!(!ring(&bell, 1));
        assert_eq!((take_bell(&bell), take_bell(&bell)), (5, 0));
        assert!(!ring(&bell, 2));
        assert_eq!(fall_asleep(&bell), 2, "the agent that falls asleep sees it");
        assert_eq!(bell.load(Ordering::Relaxed), ASLEEP | 2);
    }
}

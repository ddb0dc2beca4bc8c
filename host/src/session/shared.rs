//! What a session, its streams and its service share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pto_abi::limits::MAX_STREAMS;
use pto_abi::session::CommandKind;
use pto_abi::sync::Ordering as LineOrdering;

use super::clock::SessionClock;
use super::error::SessionError;
use super::holds::Holds;
use super::ids::StreamId;
use super::lines::{BoardMemory, RingMemory};
use super::options::{SessionOptions, StreamOptions};
use super::seat::{Driver, Seat};
use super::stream_core::StreamCore;
use super::stream_table::{Entry, StreamTable};
use crate::backend::RingDoorbell;
use crate::control::RunControl;
use crate::copy_costs::CopyCosts;
use crate::device::Device;
use crate::error::Error;
use crate::kernel_kinds::KernelKinds;
use crate::memory::Memory;

/// How long somebody waits for streams that are being closed. On a busy machine what they have begun takes its time.
const CLOSING: Duration = Duration::from_secs(20);

/// What they share.
pub(super) struct Shared {
    pub(super) options: SessionOptions,
    pub(super) memory: Arc<Memory>,
    pub(super) board: Arc<BoardMemory>,
    pub(super) driver: Arc<Driver>,
    pub(super) clock: SessionClock,
    /// What copies cost in virtual time.
    pub(super) copy_costs: Option<CopyCosts>,
    /// How long a launch may take where the options do not say so.
    pub(super) launch_limit: Option<Duration>,
    /// Whether something moves transfers.
    pub(super) has_transfers: bool,
    /// Wakes a firmware that sleeps.
    doorbell: Option<RingDoorbell>,
    pub(super) holds: Holds,
    pub(super) kernels: KernelKinds,
    streams: Seat<StreamTable<Arc<StreamCore>>>,
    /// Streams that are out of the table, and whose memory is not free yet.
    retiring: AtomicU32,
    /// Where those wait for whom GM is full.
    reclaimed: Seat<()>,
    /// How many wait for a place or for memory that closed streams have.
    wanted: AtomicU32,
    /// Changes of the table, aborts and resets: when it is another one, the service looks at all streams.
    version: AtomicU64,
    /// Whoever submits a barrier has it.
    pub(super) barriers: Mutex<()>,
    /// How often the session was reset.
    resets: AtomicU64,
    events: AtomicU32,
    has_ended: AtomicBool,
    /// The firmware is up, and has the heads of streams.
    is_up: AtomicBool,
    /// Those who want the device between two runs.
    visitors: Mutex<u32>,
    /// Of the run that is on.
    control: Mutex<RunControl>,
}

impl Entry for Arc<StreamCore> {
    fn place(&self) -> usize {
        self.place
    }

    fn is_closed(&self) -> bool {
        StreamCore::is_closed(self)
    }
}

impl Shared {
    pub(super) fn new(device: &Device, options: SessionOptions) -> Result<Self, Error> {
        let memory = Arc::clone(device.shared_memory());
        let kernels = KernelKinds::default();
        kernels.read(device.runnable_kernels());
        let board = Arc::new(BoardMemory::new(&memory)?);
        Ok(Self {
            board,
            driver: Arc::default(),
            clock: SessionClock::new(device.has_virtual_clock()),
            copy_costs: device.copy_costs(),
            launch_limit: device.launch_limit(),
            has_transfers: device.has_transfers(),
            doorbell: device.doorbell(),
            holds: Holds::new(&memory),
            kernels,
            streams: Seat::new(StreamTable::new(MAX_STREAMS)),
            retiring: AtomicU32::new(0),
            reclaimed: Seat::default(),
            wanted: AtomicU32::new(0),
            version: AtomicU64::new(0),
            barriers: Mutex::default(),
            resets: AtomicU64::new(0),
            events: AtomicU32::new(0),
            has_ended: AtomicBool::new(false),
            is_up: AtomicBool::new(false),
            visitors: Mutex::default(),
            control: Mutex::default(),
            memory,
            options,
        })
    }

    /// Opens a stream. Where every place is in use, or GM is full, it waits for streams that are being closed.
    pub(super) fn open_stream(
        &self,
        options: StreamOptions,
    ) -> Result<Arc<StreamCore>, SessionError> {
        let ring = self.reclaiming(|| RingMemory::new(&self.memory, self.options.ring_entries))?;
        let mut ring = Some(ring);
        let mut open = |table: &mut StreamTable<Arc<StreamCore>>| {
            table.open(|number, place| {
                let ring = ring.take().expect("a table opens a stream once, and says so");
                Arc::new(StreamCore::new((StreamId(number), place), options, ring, &self.board))
            })
        };
        let opened = self.streams.change(&mut open);
        let opened = opened.or_else(|| {
            let _wanted = self.want();
            self.driver.wait(&self.streams, Some(CLOSING), open).ok()
        });
        let core = opened.flatten().ok_or(SessionError::TooManyStreams)?;
        self.touch();
        Ok(core)
    }

    /// Takes memory with `take`; where GM is full, again when closed streams, or commands that are over, have given some back.
    pub(super) fn reclaiming<T>(
        &self,
        mut take: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let is_full = |taken: &Result<T, Error>| matches!(taken, Err(Error::OutOfMemory { .. }));
        // Looked at before memory is taken: what comes back between the two is there for the second one.
        let mut attempt = || {
            let may_reclaim = self.may_reclaim();
            let taken = take();
            (may_reclaim && is_full(&taken), taken)
        };
        let (is_worth_waiting, first) = attempt();
        if !is_worth_waiting {
            return first;
        }
        let _wanted = self.want();
        let taken = self.driver.wait(&self.reclaimed, Some(CLOSING), |()| {
            let (is_worth_waiting, taken) = attempt();
            (!is_worth_waiting).then_some(taken)
        });
        taken.unwrap_or(first)
    }

    /// Whether memory comes back without anybody who frees it.
    fn may_reclaim(&self) -> bool {
        let is_closing = self.streams.lock().is_closing();
        // Acquire: pairs with the Release subtraction in `retire`, behind which the memory of a stream is free.
        is_closing || self.retiring.load(Ordering::Acquire) > 0 || self.memory.has_waiting()
    }

    /// For as long as the value lives, the service lets go of closed streams and of freed memory as soon as it can.
    fn want(&self) -> Wanted<'_> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        self.touch();
        Wanted(self)
    }

    /// Whether somebody waits for what closed streams have.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Memory may have come back: those who wait for some look again.
    pub(super) fn tell_reclaimed(&self) {
        self.reclaimed.change(|()| ());
    }

    /// A stream is over, and no firmware is up: another one may have its place, and its memory.
    pub(super) fn retire(&self, stream: StreamId) {
        // Relaxed: who finds the stream gone has had the lock of the table behind this.
        self.retiring.fetch_add(1, Ordering::Relaxed);
        let gone = self.streams.change(|table| {
            let gone = table.retire(|live| live.id == stream);
            gone.iter().for_each(|core| RingMemory::take_out_of(self.board.stream(core.place)));
            gone
        });
        // Its memory is free before those are told who wait for it.
        drop(gone);
        // Release: pairs with the Acquire load in `may_reclaim`.
        self.retiring.fetch_sub(1, Ordering::Release);
        self.touch();
    }

    /// The streams that there are.
    pub(super) fn streams(&self) -> Vec<Arc<StreamCore>> {
        self.streams.lock().live().to_vec()
    }

    /// The service is to look at all streams.
    pub(super) fn touch(&self) {
        // Release: pairs with the Acquire load in `version`.
        self.version.fetch_add(1, Ordering::Release);
        self.driver.bell.ring();
    }

    /// A command was submitted to the stream at this place: whoever has to know is told.
    #[inline]
    pub(super) fn tell(&self, place: usize, kind: CommandKind) {
        let looks = !self.board.board().ring(place);
        // What wakes a firmware that sleeps is no work of the service.
        if !(looks || self.is_up() && self.ring_doorbell()) || !is_for_firmware(kind) {
            self.driver.bell.ring();
        }
    }

    /// Wakes the firmware if it sleeps; `false`: on this device it does not sleep, it returns.
    #[cold]
    pub(super) fn ring_doorbell(&self) -> bool {
        self.doorbell.iter().for_each(|ring| ring());
        self.doorbell.is_some()
    }

    /// The firmware is up, or not.
    pub(super) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::Relaxed);
    }

    /// Whether the firmware is up, and the host has the heads of those streams only that were handed over to it.
    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Makes the firmware return as soon as what it has begun is over.
    pub(super) fn ask_to_leave(&self) {
        self.board.board().orders.leave.store(1, LineOrdering::Relaxed);
        self.ring_doorbell();
    }

    /// The firmware may come up; `false`: somebody wants the device first.
    pub(super) fn may_come_up(&self) -> bool {
        let visitors = self.visitors();
        self.board.board().orders.leave.store(0, LineOrdering::Relaxed);
        *visitors == 0
    }

    /// Between runs, as long as the value lives: whoever wants the device does not wait until the session is idle.
    pub(super) fn visit(&self) -> Visitor<'_> {
        *self.visitors() += 1;
        self.ask_to_leave();
        Visitor(self)
    }

    fn visitors(&self) -> MutexGuard<'_, u32> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of changes.
    pub(super) fn version(&self) -> u64 {
        // Acquire: pairs with the Release in `touch`.
        self.version.load(Ordering::Acquire)
    }

    /// Stopped streams are to take commands again.
    pub(super) fn reset(&self) -> u64 {
        // Release: pairs with the Acquire load in `resets`.
        let before = self.resets.fetch_add(1, Ordering::Release);
        self.touch();
        before + 1
    }

    /// How often the session was reset.
    pub(super) fn resets(&self) -> u64 {
        // Acquire: pairs with the Release in `reset`.
        self.resets.load(Ordering::Acquire)
    }

    /// The number of a new event.
    pub(super) fn next_event(&self) -> u32 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    /// Nothing is submitted any more, and commands that have not begun are skipped.
    pub(super) fn end(&self) {
        self.holds.close();
        // Release: pairs with the Acquire load in `has_ended`.
        self.has_ended.store(true, Ordering::Release);
        self.touch();
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        // Acquire: pairs with the Release store in `end`.
        self.has_ended.load(Ordering::Acquire)
    }

    /// A control for the next run.
    pub(super) fn new_control(&self) -> RunControl {
        let control = RunControl::new();
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = control.clone();
        control
    }

    /// Ends the run that is on.
    pub(super) fn cancel_run(&self) {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).cancel();
        self.ring_doorbell();
    }
}

/// Somebody who waits for what closed streams have; see [`Shared::want`].
struct Wanted<'s>(&'s Shared);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.wanted.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Somebody who wants the device; see [`Shared::visit`].
pub(super) struct Visitor<'s>(&'s Shared);

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        *self.0.visitors() -= 1;
        self.0.touch();
    }
}

/// Whether the firmware does commands of this kind by itself.
pub(super) fn is_for_firmware(kind: CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::LAUNCH
            | CommandKind::REPLAY
            | CommandKind::RECORD
            | CommandKind::WAIT
            | CommandKind::RESET
            | CommandKind::WRITE_VALUE
            | CommandKind::WAIT_VALUE
    )
}

#[cfg(test)]
mod tests {
    use crate::allocator::Owner;
    use crate::session::lines::RingMemory;
    use crate::session::seat::Stepped;
    use crate::session::{Drive, SessionOptions};
    use crate::{Device, DeviceOptions, Hosting, func};
    use pto_abi::GmAddr;
    use pto_abi::sync::Ordering;
    use pto_graph::NoBuilders;
    use std::num::NonZeroUsize;

    /// The ring of a closed stream becomes the ring of another stream at another place, and the doorbell of the old place was rung
    /// last: the firmware reads the ring from one place only.
    #[test]
    fn a_ring_is_read_from_one_place() {
        let hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };
        let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 64 << 20, hosting };
        let mut device = Device::open_sim(options, NoBuilders).unwrap();
        device.register_library().unwrap();
        let drive = Some(Drive::Stepped { seed: 1 });
        let session = device.session(SessionOptions { drive, ..SessionOptions::default() });
        let session = session.unwrap();
        let shared = session.shared();
        let value = session.upload(&[1.0_f32]).unwrap();
        let ring_at = |place| GmAddr(shared.board.stream(place).producer.load(Ordering::Relaxed));

        let lower = session.stream().unwrap();
        let _between = session.upload(&[0_u8]).unwrap();
        let upper = session.stream().unwrap();
        let _behind = session.upload(&[0_u8]).unwrap();
        let of_upper = ring_at(1);
        drop((lower, upper));
        while shared.driver.step() == Some(Stepped::Worked) || !shared.streams().is_empty() {}
        let bytes = RingMemory::bytes(SessionOptions::default().ring_entries);
        let _where_the_lower_one_was = shared.memory.alloc(bytes, Owner::User).unwrap();
        let stream = session.stream().unwrap();
        assert_eq!(
            ring_at(0),
            of_upper,
            "place 0 has the memory of the stream that was at place 1"
        );

        shared.board.board().ring(1);
        let at = value.address().0;
        stream.launch(func::ADD_SCALAR, &[at, 0.5_f32.to_bits().into(), at, 1]).unwrap();
        session.synchronize().unwrap();
        assert_eq!(value.read().unwrap(), [1.5], "the kernel ran once");
        assert_eq!(ring_at(1), GmAddr::NULL, "nobody is at place 1");
    }
}

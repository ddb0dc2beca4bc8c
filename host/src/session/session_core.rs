//! What a session, its streams and its service share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pto_abi::limits::MAX_STREAMS;
use pto_abi::session::CommandKind;
use pto_abi::sync::Ordering as LineOrdering;

use super::clock::SessionClock;
use super::deferred_frees::DeferredFrees;
use super::error::SessionError;
use super::ids::StreamId;
use super::lines::{BoardMemory, RingMemory};
use super::monitor::{Driver, Monitor};
use super::options::{SessionOptions, StreamOptions};
use super::stream_core::StreamCore;
use super::stream_table::{StreamTable, TableStream};
use crate::backend::RingDoorbell;
use crate::control::RunControl;
use crate::copy_costs::CopyCosts;
use crate::device::Device;
use crate::error::Error;
use crate::kernel_kinds::KernelKinds;
use crate::memory::Memory;

/// How long to wait for streams that are being closed. On a busy machine the commands that they have begun take time.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

/// The parts that a session, its streams and its service share.
pub(super) struct SessionCore {
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
    pub(super) deferred_frees: DeferredFrees,
    pub(super) kernels: KernelKinds,
    streams: Monitor<StreamTable<Arc<StreamCore>>>,
    /// Streams that have left the table, and whose memory is not free yet.
    retiring: AtomicU32,
    /// Notified when memory may have come back; threads wait on it while GM is full.
    reclaimed: Monitor<()>,
    /// How many threads wait for a slot or for memory that closed streams have.
    waiters: AtomicU32,
    /// Counts changes of the table, aborts and resets: when it changes, the service looks at all streams.
    version: AtomicU64,
    /// Held while a barrier is submitted.
    pub(super) barriers: Mutex<()>,
    /// How often the session was reset.
    resets: AtomicU64,
    events: AtomicU32,
    has_ended: AtomicBool,
    /// The firmware is up, and has the heads of streams.
    is_up: AtomicBool,
    /// How many threads want the device between two runs.
    device_requests: Mutex<u32>,
    /// The control of the present run.
    control: Mutex<RunControl>,
}

impl TableStream for Arc<StreamCore> {
    fn slot(&self) -> usize {
        self.slot
    }

    fn is_closed(&self) -> bool {
        StreamCore::is_closed(self)
    }
}

impl SessionCore {
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
            deferred_frees: DeferredFrees::new(&memory),
            kernels,
            streams: Monitor::new(StreamTable::new(MAX_STREAMS)),
            retiring: AtomicU32::new(0),
            reclaimed: Monitor::default(),
            waiters: AtomicU32::new(0),
            version: AtomicU64::new(0),
            barriers: Mutex::default(),
            resets: AtomicU64::new(0),
            events: AtomicU32::new(0),
            has_ended: AtomicBool::new(false),
            is_up: AtomicBool::new(false),
            device_requests: Mutex::default(),
            control: Mutex::default(),
            memory,
            options,
        })
    }

    /// Opens a stream. If every slot is in use, or GM is full, it waits for streams that are being closed.
    pub(super) fn open_stream(
        &self,
        options: StreamOptions,
    ) -> Result<Arc<StreamCore>, SessionError> {
        let ring = self.reclaiming(|| RingMemory::new(&self.memory, self.options.ring_entries))?;
        let mut ring = Some(ring);
        let mut open = |table: &mut StreamTable<Arc<StreamCore>>| {
            table.open(|number, slot| {
                let ring = ring.take().expect("a table opens a stream once, and says so");
                Arc::new(StreamCore::new(StreamId(number), slot, options, ring, &self.board))
            })
        };
        let opened = self.streams.change(&mut open);
        let opened = opened.or_else(|| {
            let _waiting = self.wait_for_space();
            self.driver.wait(&self.streams, Some(CLOSE_TIMEOUT), open).ok()
        });
        let core = opened.flatten().ok_or(SessionError::TooManyStreams)?;
        self.touch();
        Ok(core)
    }

    /// Takes memory with `take`; if GM is full, again when closed streams, or commands that are over, have given some back.
    pub(super) fn reclaiming<T>(
        &self,
        mut take: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let is_full = |taken: &Result<T, Error>| matches!(taken, Err(Error::OutOfMemory { .. }));
        // Checked before memory is taken: what comes back between the two is there for the second attempt.
        let mut attempt = || {
            let may_reclaim = self.may_reclaim();
            let taken = take();
            (may_reclaim && is_full(&taken), taken)
        };
        let (is_worth_waiting, first) = attempt();
        if !is_worth_waiting {
            return first;
        }
        let _waiting = self.wait_for_space();
        let taken = self.driver.wait(&self.reclaimed, Some(CLOSE_TIMEOUT), |()| {
            let (is_worth_waiting, taken) = attempt();
            (!is_worth_waiting).then_some(taken)
        });
        taken.unwrap_or(first)
    }

    /// Whether memory comes back without a call that frees it.
    fn may_reclaim(&self) -> bool {
        let is_closing = self.streams.lock().is_closing();
        // Acquire: pairs with the Release subtraction in `retire`, after which the memory of a stream is free.
        is_closing || self.retiring.load(Ordering::Acquire) > 0 || self.memory.has_waiting()
    }

    /// For as long as the value lives, the service gives closed streams and freed memory back as soon as it can.
    fn wait_for_space(&self) -> SpaceRequest<'_> {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        self.touch();
        SpaceRequest(self)
    }

    /// Whether a thread waits for a slot or for memory that closed streams have.
    pub(super) fn is_space_wanted(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Memory may have come back: threads that wait for some try again.
    pub(super) fn notify_reclaimed(&self) {
        self.reclaimed.change(|()| ());
    }

    /// A stream is over, and no firmware is up: another one may have its slot, and its memory.
    pub(super) fn retire(&self, stream: StreamId) {
        // Relaxed: a thread that finds the stream gone has taken the lock of the table after this.
        self.retiring.fetch_add(1, Ordering::Relaxed);
        let gone = self.streams.change(|table| {
            let gone = table.retire(|live| live.id == stream);
            gone.iter().for_each(|core| RingMemory::take_out_of(self.board.stream(core.slot)));
            gone
        });
        // Its memory is free before the threads are woken that wait for it.
        drop(gone);
        // Release: pairs with the Acquire load in `may_reclaim`.
        self.retiring.fetch_sub(1, Ordering::Release);
        self.touch();
    }

    /// The open streams.
    pub(super) fn streams(&self) -> Vec<Arc<StreamCore>> {
        self.streams.lock().live().to_vec()
    }

    /// Makes the service look at all streams.
    pub(super) fn touch(&self) {
        // Release: pairs with the Acquire load in `version`.
        self.version.fetch_add(1, Ordering::Release);
        self.driver.bell.ring();
    }

    /// A command was submitted to the stream in this slot: wakes what has to do it, the firmware or the service.
    #[inline]
    pub(super) fn notify(&self, slot: usize, kind: CommandKind) {
        let looks = !self.board.board().ring(slot);
        // Waking a firmware that sleeps is no work of the service.
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

    /// Whether the firmware is up, and the host has only the heads of the streams that were handed over to it.
    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Makes the firmware return as soon as the commands that it has begun are over.
    pub(super) fn ask_to_leave(&self) {
        self.board.board().orders.leave.store(1, LineOrdering::Relaxed);
        self.ring_doorbell();
    }

    /// The firmware may come up; `false`: a thread wants the device first.
    pub(super) fn may_come_up(&self) -> bool {
        let requests = self.device_requests();
        self.board.board().orders.leave.store(0, LineOrdering::Relaxed);
        *requests == 0
    }

    /// As long as the value lives, the service leaves the device between two runs, so that the caller does not wait until the session is idle.
    pub(super) fn request_device(&self) -> DeviceRequest<'_> {
        *self.device_requests() += 1;
        self.ask_to_leave();
        DeviceRequest(self)
    }

    fn device_requests(&self) -> MutexGuard<'_, u32> {
        self.device_requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of changes.
    pub(super) fn version(&self) -> u64 {
        // Acquire: pairs with the Release in `touch`.
        self.version.load(Ordering::Acquire)
    }

    /// Makes stopped streams take commands again.
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

    /// From here on no command is submitted, and commands that have not begun are skipped.
    pub(super) fn end(&self) {
        self.deferred_frees.close();
        // Release: pairs with the Acquire load in `has_ended`.
        self.has_ended.store(true, Ordering::Release);
        self.touch();
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        // Acquire: pairs with the Release store in `end`.
        self.has_ended.load(Ordering::Acquire)
    }

    /// Makes the control of the next run, and keeps a copy with which the session can cancel that run.
    pub(super) fn new_control(&self) -> RunControl {
        let control = RunControl::new();
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = control.clone();
        control
    }

    /// Cancels the current run.
    pub(super) fn cancel_run(&self) {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).cancel();
        self.ring_doorbell();
    }
}

/// Counts a thread that waits for space held by closed streams, while it waits; see [`SessionCore::wait_for_space`].
struct SpaceRequest<'s>(&'s SessionCore);

impl Drop for SpaceRequest<'_> {
    fn drop(&mut self) {
        self.0.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a thread that wants the device, until it is dropped; see [`SessionCore::request_device`].
pub(super) struct DeviceRequest<'s>(&'s SessionCore);

impl Drop for DeviceRequest<'_> {
    fn drop(&mut self) {
        *self.0.device_requests() -= 1;
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
    use crate::session::monitor::Stepped;
    use crate::session::{Drive, SessionOptions};
    use crate::{Device, DeviceOptions, Hosting, func};
    use pto_abi::GmAddr;
    use pto_abi::sync::Ordering;
    use pto_graph::NoBuilders;
    use std::num::NonZeroUsize;

    /// The ring of a closed stream becomes the ring of another stream in another slot, and the doorbell of the old slot was rung
    /// last: the firmware reads the ring through one slot only.
    #[test]
    fn a_ring_is_read_through_one_slot() {
        let hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };
        let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 64 << 20, hosting };
        let mut device = Device::open_sim(options, NoBuilders).unwrap();
        device.register_library().unwrap();
        let drive = Some(Drive::Stepped { seed: 1 });
        let session = device.session(SessionOptions { drive, ..SessionOptions::default() });
        let session = session.unwrap();
        let shared = session.shared();
        let value = session.upload(&[1.0_f32]).unwrap();
        let ring_at = |slot| GmAddr(shared.board.stream(slot).producer.load(Ordering::Relaxed));

        let lower = session.stream().unwrap();
        let _between = session.upload(&[0_u8]).unwrap();
        let upper = session.stream().unwrap();
        let _above = session.upload(&[0_u8]).unwrap();
        let of_upper = ring_at(1);
        drop((lower, upper));
        while shared.driver.step() == Some(Stepped::Worked) || !shared.streams().is_empty() {}
        let bytes = RingMemory::bytes(SessionOptions::default().ring_entries);
        let _where_the_lower_one_was = shared.memory.alloc(bytes, Owner::User).unwrap();
        let stream = session.stream().unwrap();
        assert_eq!(ring_at(0), of_upper, "slot 0 has the memory of the stream that was in slot 1");

        shared.board.board().ring(1);
        let at = value.address().0;
        stream.launch(func::ADD_SCALAR, &[at, 0.5_f32.to_bits().into(), at, 1]).unwrap();
        session.synchronize().unwrap();
        assert_eq!(value.read().unwrap(), [1.5], "the kernel ran once");
        assert_eq!(ring_at(1), GmAddr::NULL, "slot 1 has no stream");
    }
}

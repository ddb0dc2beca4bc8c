//! A session: a device that stays up, and what is opened on it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use pto_abi::session::ring::{MAX_RING_ENTRIES, MIN_RING_ENTRIES};
use pto_abi::sync::Ordering;
use pto_abi::{FuncId, GmAddr, RuntimeVariant};

use super::command_object::Barrier;
use super::error::SessionError;
use super::event::{Event, EventCore};
use super::executors::Executors;
use super::ids::EventId;
use super::job_runner::JobRunner;
use super::notify::Notify;
use super::options::{Drive, LAST_PRIORITY, SessionOptions, StreamOptions};
use super::others::Others;
use super::owned_work::OwnedWork;
use super::owner::{ServiceRunner, Session, SessionParts};
use super::running::{SteppedService, serve};
use super::service::Service;
use super::serving;
use super::session_core::SessionCore;
use super::stream::Stream;
use super::stream_core::StreamCore;
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::device_memory::DeviceMemory;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::options::RunOptions;
use crate::report::RunReport;

/// For memory that is taken while a session is open; see [`Reclaimer::reclaiming`].
#[derive(Clone)]
pub(crate) struct Reclaimer(Arc<SessionCore>);

impl Reclaimer {
    /// Takes memory with `take`; where GM is full, again when closed streams, or commands that are over, have given some back.
    pub(crate) fn reclaiming<T>(&self, take: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        self.0.reclaiming(take)
    }

    /// Whether it waits for memory of this session.
    pub(crate) fn is_of(&self, session: &Session) -> bool {
        Arc::ptr_eq(&self.0, &session.parts.shared)
    }
}

impl Device {
    /// Opens a session on the device; [`Session::close`] gives the device back.
    ///
    /// # Errors
    /// `Option`: an option that cannot be, such as more AICPU instances than the clusters of the device, and one, can do with. `Thread`: the process gets no thread. The device is closed then.
    pub fn session(self, options: SessionOptions) -> Result<Session, SessionError> {
        check(&options)?;
        // One instance feeds the others, as a builder does.
        let run = options.run.fitted(RuntimeVariant::AICPU_BUILD_GRAPH, self.clusters());
        let options = SessionOptions { run: run.into_owned(), ..options };
        check_instances(options.run.aicpu_instances, self.clusters())?;
        let stepped = Drive::Stepped { seed: 0 };
        let otherwise = if self.has_virtual_clock() { stepped } else { Drive::Thread };
        let drive = options.drive.unwrap_or(otherwise);
        let shared = Arc::new(SessionCore::new(&self, options)?);
        let device = Arc::new(Mutex::new(self));
        let runner = JobRunner { device: Arc::clone(&device), shared: Arc::clone(&shared) };
        let service = match drive {
            Drive::Thread => {
                let executors = Executors::pools(&runner)?;
                let service = Service::new(Arc::clone(&shared), executors, None);
                let of_service = Arc::clone(&shared);
                let named = std::thread::Builder::new().name("pto-session".to_owned());
                let thread = named.spawn(move || serve(&of_service, service));
                ServiceRunner::Thread(Some(thread.map_err(|cause| SessionError::Thread {
                    what: "the session",
                    cause: Arc::new(cause),
                })?))
            }
            Drive::Stepped { seed } => {
                let executors = Executors::inline(runner);
                let service = Service::new(Arc::clone(&shared), executors, Some(seed));
                let service = SteppedService::new(service);
                let step: Arc<dyn super::monitor::Step> = Arc::<SteppedService>::clone(&service);
                shared.driver.set_stepped(Arc::downgrade(&step));
                ServiceRunner::Stepped(service)
            }
        };
        Ok(Session::of(shared, device, service))
    }
}

fn check(options: &SessionOptions) -> Result<(), SessionError> {
    let entries = options.ring_entries;
    if !entries.is_power_of_two() || !(MIN_RING_ENTRIES..=MAX_RING_ENTRIES).contains(&entries) {
        let allowed = "a power of two, 32 to 1,048,576";
        return Err(refuse("ring_entries", entries.to_string(), allowed));
    }
    let counts = [
        ("batch_launches", options.batch_launches),
        ("copy_workers", options.copy_workers),
        ("host_functions", options.host_functions),
    ];
    match counts.into_iter().find(|(_, count)| *count == 0) {
        Some((option, _)) => Err(refuse(option, "0".to_owned(), "at least 1")),
        None => Ok(()),
    }
}

/// One instance reads the rings; each of the others schedules, and needs a cluster of cores of its own.
fn check_instances(instances: u32, clusters: u32) -> Result<(), SessionError> {
    if instances.saturating_sub(1) <= clusters {
        return Ok(());
    }
    let plural = if clusters == 1 { "" } else { "s" };
    let found = format!("{instances} on a device with {clusters} cluster{plural}");
    let allowed = "at most one more than the device has clusters of cores (1 AIC and 2 AIV)";
    Err(refuse("run.aicpu_instances", found, allowed))
}

fn refuse(option: &'static str, found: String, allowed: &'static str) -> SessionError {
    SessionError::Option { option, found, allowed }
}

/// Streams and events.
impl Session {
    pub(super) fn of(
        shared: Arc<SessionCore>,
        device: Arc<Mutex<Device>>,
        service: ServiceRunner,
    ) -> Self {
        let parts =
            SessionParts { shared, device: Mutex::new(Some(device)), service: Mutex::new(service) };
        Self { parts: Arc::new(parts) }
    }

    /// Whether both are owners of the same session.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts)
    }

    /// What it shares with its streams and its service.
    #[cfg(test)]
    pub(super) fn shared(&self) -> &SessionCore {
        &self.parts.shared
    }

    /// Opens a stream with the default options.
    ///
    /// # Errors
    /// `TooManyStreams`; `Device` with `OutOfMemory`: its ring does not fit GM; `Ended`.
    pub fn stream(&self) -> Result<Stream, SessionError> {
        self.stream_with(StreamOptions::default())
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// Those of [`Session::stream`]; `Option`: a priority above 7; a kernel budget below 1 us or above the task budget of the session.
    pub fn stream_with(&self, options: StreamOptions) -> Result<Stream, SessionError> {
        if options.priority > LAST_PRIORITY {
            return Err(refuse("priority", options.priority.to_string(), "0 (first) to 7 (last)"));
        }
        options.check_kernel_budget(self.run_options().task_budget)?;
        if self.parts.shared.has_ended() {
            return Err(SessionError::Ended);
        }
        let core = self.parts.shared.open_stream(options)?;
        Ok(Stream::of(core, Arc::clone(&self.parts.shared), self.clone()))
    }

    /// Makes an event.
    ///
    /// # Errors
    /// `Device` with `OutOfMemory`: its line does not fit GM.
    pub fn event(&self) -> Result<Event, SessionError> {
        let id = EventId(self.parts.shared.next_event());
        let core = EventCore::new(id, &self.parts.shared.memory, &self.parts.shared.driver)?;
        Ok(Event::of(core))
    }

    /// Makes a flag that is not raised.
    ///
    /// # Errors
    /// `Device` with `OutOfMemory`: its word does not fit GM.
    pub fn notify(&self) -> Result<Notify, SessionError> {
        Notify::new(&self.parts.shared.memory)
    }

    /// Makes these streams wait for each other: none goes on before all have reached this point.
    ///
    /// # Errors
    /// `OtherSession`; `Argument`: a stream is named twice; nothing was submitted. Those of every call that submits; then the barrier is open, and no stream
    /// waits at it.
    pub fn barrier(&self, streams: &[&Stream]) -> Result<(), SessionError> {
        self.check_barrier(streams)?;
        // Two barriers of the same streams come to each of them in the same order.
        let _one_at_a_time =
            self.parts.shared.barriers.lock().unwrap_or_else(PoisonError::into_inner);
        let barrier = Barrier::of(streams.iter().map(|stream| stream.id()).collect());
        let barrier = Arc::new(barrier);
        for (submitted, stream) in streams.iter().enumerate() {
            if let Err(error) = stream.barrier(&barrier) {
                streams[submitted..].iter().for_each(|_| barrier.arrive());
                return Err(error);
            }
        }
        Ok(())
    }

    fn check_barrier(&self, streams: &[&Stream]) -> Result<(), SessionError> {
        if let Some(foreign) = streams.iter().find(|stream| !stream.is_of(&self.parts.shared)) {
            return Err(SessionError::OtherSession { what: foreign.id().to_string() });
        }
        let mut named = BTreeSet::new();
        match streams.iter().find(|stream| !named.insert(stream.id())) {
            None => Ok(()),
            Some(twice) => Err(SessionError::Argument {
                what: "barrier: the streams",
                found: format!("{} is named twice", twice.id()),
                allowed: "each stream once; a stream that waits for itself never goes on",
            }),
        }
    }

    /// Waits until everything is over that was submitted to any stream before this call.
    ///
    /// # Errors
    /// `Failed`: the first failure of the stream with the lowest number that has one; the failures of the other streams stay with
    /// them. `Stuck`: in a session that is stepped, the streams cannot go on.
    pub fn synchronize(&self) -> Result<(), SessionError> {
        self.synchronize_within(None)
    }

    /// As [`Session::synchronize`], at most for `limit`, if there is one.
    ///
    /// # Errors
    /// Those of [`Session::synchronize`]; `TimedOut`, with the first stream that is not done.
    pub fn synchronize_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> Result<(), SessionError> {
        let limit = limit.into();
        let start = Instant::now();
        for stream in self.parts.shared.streams() {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            super::stream::await_core(&stream, &self.parts.shared.driver, left).map_err(
                |error| match (error, limit) {
                    (SessionError::TimedOut { stream, state, .. }, Some(waited)) => {
                        SessionError::TimedOut { stream, waited, state }
                    }
                    (error, _) => error,
                },
            )?;
        }
        Ok(())
    }

    /// Drops the commands of every stream that have not begun, and ends the run that is on.
    pub fn abort(&self) {
        self.abort_streams();
    }

    /// As [`Session::abort`]: the streams, and the number of the last command of each that it concerns.
    fn abort_streams(&self) -> Vec<(Arc<StreamCore>, u64)> {
        let abort = |stream: Arc<StreamCore>| {
            let last = stream.abort();
            (stream, last)
        };
        let aborted = self.parts.shared.streams().into_iter().map(abort).collect();
        self.parts.shared.cancel_run();
        self.parts.shared.touch();
        aborted
    }

    /// As [`Session::abort`]; then streams that have stopped take commands again, and failures are forgotten.
    ///
    /// # Errors
    /// `Stuck`, where a function of the host calls it in a session that is stepped.
    pub fn reset(&self) -> Result<(), SessionError> {
        // Others may go on to submit: this call waits for nothing of that.
        for (stream, last) in self.abort_streams() {
            super::stream::await_over(&stream, last, &self.parts.shared.driver)?;
        }
        let resets = self.parts.shared.reset();
        for stream in self.parts.shared.streams() {
            super::stream::await_reset(&stream, resets, &self.parts.shared.driver)?;
        }
        Ok(())
    }

    /// Runs `work` in a stream of its own, and waits for it: [`Device::run`] as a session of one command.
    ///
    /// # Errors
    /// Those of [`Session::stream`] and [`Stream::synchronize`].
    pub fn run(
        &self,
        work: impl Into<OwnedWork>,
        options: RunOptions,
    ) -> Result<RunReport, SessionError> {
        let stream = self.stream()?;
        let ticket = stream.run_with(work, options)?;
        stream.synchronize()?;
        Ok(ticket.take_report().expect("a run without a failure has a report"))
    }
}

/// Memory and kernels.
impl Session {
    /// The device's memory.
    #[must_use]
    pub fn memory(&self) -> DeviceMemory {
        DeviceMemory::of(Arc::clone(&self.parts.shared.memory))
    }

    pub(crate) fn reclaimer(&self) -> Reclaimer {
        Reclaimer(Arc::clone(&self.parts.shared))
    }

    /// As [`Device::alloc`].
    ///
    /// # Errors
    /// Those of [`Device::alloc`].
    pub fn alloc(&self, bytes: u64) -> Result<GmAddr, SessionError> {
        Ok(self.memory().alloc(bytes)?)
    }

    /// As [`Device::upload`]: at once, independent of all streams.
    ///
    /// # Errors
    /// Those of [`Device::upload`].
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<DeviceBuffer<T>, SessionError> {
        Ok(DeviceBuffer::upload(&self.parts.shared.memory, values)?)
    }

    /// As [`Device::zeroed`].
    ///
    /// # Errors
    /// Those of [`Device::zeroed`].
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceBuffer<T>, SessionError> {
        Ok(DeviceBuffer::zeroed(&self.parts.shared.memory, len)?)
    }

    /// As [`Device::register_kernel`]. Waits until the commands that the cores have are over.
    ///
    /// # Errors
    /// Those of [`Device::register_kernel`]; `Ended`.
    pub fn register_kernel(&self, func_id: FuncId, kernel: Kernel) -> Result<(), SessionError> {
        self.on_device(|device| {
            device.register_kernel(func_id, kernel)?;
            self.parts.shared.kernels.read(device.runnable_kernels());
            Ok(())
        })?
    }

    /// As [`Device::func_id_of`]. Waits until the commands that the cores have are over.
    ///
    /// # Errors
    /// Those of [`Device::func_id_of`]; `Ended`.
    pub fn func_id_of(&self, kernel: Kernel) -> Result<FuncId, SessionError> {
        self.on_device(|device| {
            let func_id = device.func_id_of(kernel)?;
            self.parts.shared.kernels.read(device.runnable_kernels());
            Ok(func_id)
        })?
    }

    /// Looks at the device, for example to build a graph for it. Waits until the commands that the cores have are over.
    ///
    /// # Errors
    /// `Ended`: the session is closed.
    pub fn with_device<R>(&self, look: impl FnOnce(&Device) -> R) -> Result<R, SessionError> {
        self.on_device(|device| look(device))
    }

    fn on_device<R>(&self, act: impl FnOnce(&mut Device) -> R) -> Result<R, SessionError> {
        let device = self.parts.device().clone().ok_or(SessionError::Ended)?;
        let _request = self.parts.shared.request_device();
        Ok(act(&mut device.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// How kernels and programs are run, where a command does not say it itself.
    pub(crate) fn run_options(&self) -> &RunOptions {
        &self.parts.shared.options.run
    }

    /// How often the firmware has come up. It returns when it is idle, before a graph or a program runs, and when the time of a run
    /// is limited.
    #[must_use]
    pub fn firmware_starts(&self) -> u64 {
        self.parts.shared.board.board().news.runs.load(Ordering::Relaxed)
    }

    /// Whether the firmware is up just now.
    #[must_use]
    pub fn is_firmware_up(&self) -> bool {
        self.parts.shared.is_up()
    }

    /// Time since the session was opened, on the clock that events have their times from: of this machine, or in virtual time
    /// the sum of the makespans of the runs.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.parts.shared.clock.now_ns())
    }

    /// One turn of a session that its waiting threads step ([`Drive::Stepped`]), for a thread that polls, or that waits for something outside of the
    /// session; whether anything was done. If nothing can be done, the clock of the session advances by at most `idle`, and waits whose limits that
    /// reaches end. A session with a thread of its own needs no turns: the call does nothing. It does nothing either while another thread steps.
    pub fn step(&self, idle: Duration) -> bool {
        self.parts.shared.driver.try_step(idle)
    }

    /// Names the outsiders that may act while a thread waits in a session that its waiting threads step. Without outsiders such a wait fails
    /// with `Stuck` as soon as nothing can happen in the session. The first call counts.
    pub fn ask_others(&self, others: &'static dyn Others) {
        self.parts.shared.driver.outside.set(others);
    }

    /// Waits until everything is over that was submitted before this call, and gives the device back. Other owners of the session are of no use any more: their
    /// calls fail with `Ended`. Failures that were not reported yet are lost. `None`: another call uses the device, such as a function of a stream
    /// that calls this, or another owner has closed the session.
    #[must_use = "the device is closed when it is dropped"]
    pub fn close(self) -> Option<Device> {
        let shared = &self.parts.shared;
        let numbered = |stream: Arc<StreamCore>| (stream.commands(), stream);
        let submitted: Vec<_> = shared.streams().into_iter().map(numbered).collect();
        for (last, stream) in submitted {
            super::stream::await_over(&stream, last, &shared.driver).unwrap_or_default();
        }
        self.parts.end(serving::is_here(shared.driver.address()));
        let device = self.parts.device().take()?;
        let device = Arc::try_unwrap(device).ok()?;
        Some(device.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the session for all of its owners, as the drop of the last one does.
    pub(crate) fn end(&self) {
        self.parts.end(serving::is_anywhere());
    }
}

impl SessionParts {
    fn device(&self) -> MutexGuard<'_, Option<Arc<Mutex<Device>>>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session, and waits until everything is over. With `later` the call does not wait, and the session ends later. A function of the host that
    /// drops a session needs this: that session may be running a function that drops the session of the first one, and the two would wait for ever.
    fn end(&self, later: bool) {
        self.shared.end();
        self.shared.streams().iter().for_each(|stream| {
            stream.abort();
        });
        self.shared.touch();
        // The lock is not held while this call waits.
        let service = {
            let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *service, ServiceRunner::Thread(None))
        };
        match service {
            ServiceRunner::Thread(thread) if later => drop(thread),
            // A service that panicked has said so on standard error.
            ServiceRunner::Thread(thread) => {
                thread.into_iter().for_each(|thread| thread.join().unwrap_or_default());
            }
            ServiceRunner::Stepped(service) if later => service.run_dry_without_waiting(),
            ServiceRunner::Stepped(service) => service.run_dry(),
        }
    }
}

impl Drop for SessionParts {
    fn drop(&mut self) {
        self.end(serving::is_anywhere());
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session with {} streams", self.parts.shared.streams().len())
    }
}

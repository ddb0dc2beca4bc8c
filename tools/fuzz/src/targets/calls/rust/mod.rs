//! The safe interface of Rust: devices, sessions, streams, events, flags, buffers, captures and runs; what is in files, and groups, in `rust/programs.rs`.

mod programs;

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pto_host::abi::session::ValueTest;
use pto_host::abi::{CoreKind, FuncId, GmAddr};
use pto_host::graph::{GraphBuilder, NoBuilders, TaskSpec};
use pto_host::session::{
    FailureCause, HostBuffer, MAX_STREAMS, Notify, OnFailure, Recording, Reduction, RunTicket,
    StreamMark, Submitted,
};
use pto_host::workloads::tile::DType;
use pto_host::{
    Device, DeviceBuffer, DeviceOptions, Error, Event, GraphImage, HostGraph, Hosting, Kernel,
    LibraryKernel, RunOptions, Session, SessionError, SessionOptions, Stream, StreamOptions,
    TraceOptions, WhenFull, Work, func,
};

use super::play::{Bomb, Deliberate, Door, LIMIT, Pool, Settings, tell, throws};
use super::scarce;
use super::words::{self, Block};
use crate::Mutator;
use crate::choices::Choices;

/// Bytes that copies of a session use.
const BYTES: u64 = 1 << 14;
/// Elements that a stream adds 1 to.
const CELLS: u64 = 16;
/// How long a call waits that need not be met.
const MOMENT: Duration = Duration::from_micros(300);
/// A kernel that takes any words.
const NOTHING: FuncId = FuncId(900);

/// Looks at none of its words.
unsafe extern "C" fn nothing(_: *const u64) {}

/// What all streams of a session share.
struct Common {
    /// Commands may have been dropped, or may have failed.
    is_disturbed: AtomicBool,
    memory: DeviceBuffer<u8>,
}

impl Common {
    fn block(&self) -> Block {
        Block { at: self.memory.address().0, bytes: BYTES }
    }

    fn disturb(&self) {
        self.is_disturbed.store(true, Ordering::Relaxed);
    }
}

struct OpenSession {
    session: Session,
    common: Arc<Common>,
}

struct OpenStream {
    stream: Stream,
    common: Arc<Common>,
    /// What launches of the stream add to, and how often they do.
    cells: DeviceBuffer<f32>,
    added: AtomicU64,
    /// Waits with limits that were taken, and calls that may take one just now.
    limits: AtomicU64,
    /// Some of its waits end by themselves never.
    may_wait: bool,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if self.may_wait {
            self.stream.abort();
        }
    }
}

impl OpenStream {
    fn check<T>(&self, result: Result<T, SessionError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.look_at(&error);
                None
            }
        }
    }

    /// Fails for an error that a caller cannot explain.
    fn look_at(&self, error: &SessionError) {
        let (SessionError::Failed(failure) | SessionError::Stopped { cause: failure, .. }) = error
        else {
            return;
        };
        self.common.disturb();
        let is_own = failure.stream == self.stream.id();
        if is_own && matches!(failure.cause, FailureCause::TimedOut(_)) {
            assert!(
                self.limits.load(Ordering::Relaxed) > 0,
                "a wait without a limit has one: {failure}"
            );
        }
    }

    /// A call that gives a wait a limit.
    fn limited(&self, call: impl FnOnce() -> Result<Submitted, SessionError>) {
        self.limits.fetch_add(1, Ordering::Relaxed);
        self.common.disturb();
        if self.check(call()).is_none() {
            self.limits.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What a thread keeps until it ends.
enum ThreadObject {
    Stream(#[expect(dead_code, reason = "dropped at the end of the thread")] Arc<OpenStream>),
    Session(#[expect(dead_code, reason = "dropped at the end of the thread")] Arc<OpenSession>),
    Event(Arc<Event>),
}

impl Drop for ThreadObject {
    fn drop(&mut self) {
        if let Self::Event(event) = self {
            let _: Result<(), _> = event.synchronize_within(MOMENT);
        }
    }
}

thread_local! {
    static KEPT: RefCell<Vec<ThreadObject>> = const { RefCell::new(Vec::new()) };
}

/// All objects.
pub(super) struct ObjectPools {
    settings: Settings,
    devices: Pool<Mutex<Device>>,
    sessions: Pool<OpenSession>,
    streams: Pool<OpenStream>,
    /// All streams that were opened: some are held by functions of streams alone.
    opened: Mutex<Vec<Weak<OpenStream>>>,
    events: Pool<Event>,
    flags: Pool<Notify>,
    recordings: Pool<Recording>,
    hosts: Pool<HostBuffer>,
    graphs: Pool<GraphImage>,
    tickets: Pool<RunTicket>,
    marks: Pool<StreamMark>,
}

impl ObjectPools {
    pub(super) fn open(settings: Settings, choices: &mut Choices<'_>) -> Self {
        let world = Self {
            settings,
            devices: Pool::default(),
            sessions: Pool::default(),
            streams: Pool::default(),
            opened: Mutex::default(),
            events: Pool::default(),
            flags: Pool::default(),
            recordings: Pool::default(),
            hosts: Pool::default(),
            graphs: Pool::default(),
            tickets: Pool::default(),
            marks: Pool::default(),
        };
        for _ in 0..2 {
            world.open_session(choices);
            world.open_stream(choices);
        }
        world
    }

    fn device(hosting: u8, gm_bytes: u64) -> Result<Device, Error> {
        let pool = |threads| Hosting::Pool {
            os_threads: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
        };
        let hosting = match hosting % 8 {
            0..=3 => pool(1),
            4 | 5 => pool(2),
            6 => Hosting::Virtual(pto_host::virtual_time::VirtualOptions::default()),
            _ => Hosting::Threads,
        };
        let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes, hosting };
        let mut device = Device::open_sim(options, NoBuilders)?;
        device.register_library()?;
        device.register_kernel(NOTHING, Kernel::from_fn("nothing", CoreKind::AIV, nothing))?;
        Ok(device)
    }

    fn open_session(&self, choices: &mut Choices<'_>) {
        let hosting = choices.byte();
        let ring_entries = choices.one_of(&[32, 32, 64, 64, 64, 33, 0]);
        tell(format_args!("session: hosting {hosting}, {ring_entries} entries"));
        let options = SessionOptions {
            ring_entries,
            copy_workers: choices.one_of(&[1, 2]),
            host_functions: choices.one_of(&[1, 2, 3]),
            run: run_options(),
            ..SessionOptions::default()
        };
        let parked = self.devices.take(choices).and_then(Arc::into_inner);
        let device = match parked {
            Some(device) => Ok(device.into_inner().unwrap_or_else(PoisonError::into_inner)),
            None => Self::device(hosting, 32 << 20),
        };
        let Ok(session) = device.map_err(SessionError::from).and_then(|it| it.session(options))
        else {
            return;
        };
        let Ok(memory) = session.zeroed(usize::try_from(BYTES).unwrap_or(0)) else { return };
        let common = Arc::new(Common { is_disturbed: AtomicBool::new(false), memory });
        self.sessions.put(OpenSession { session, common });
    }

    fn open_stream(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.sessions.any(choices) else { return };
        let options = StreamOptions {
            priority: choices.one_of(&[0, 3, 7, 7, 8]),
            on_failure: choices.one_of(&[
                OnFailure::Continue,
                OnFailure::Continue,
                OnFailure::Stop,
                OnFailure::StopAll,
            ]),
            room_budget: Duration::from_millis(5),
            kernel_budget: choices.one_of(&[
                None,
                None,
                Some(Duration::from_secs(5)),
                Some(Duration::ZERO),
            ]),
            wait_budget: None,
        };
        tell(format_args!("stream: {options:?}"));
        let Ok(stream) = of.session.stream_with(options) else { return };
        let Ok(cells) = of.session.zeroed(usize::try_from(CELLS).unwrap_or(0)) else { return };
        let common = Arc::clone(&of.common);
        let (added, limits) = (AtomicU64::new(0), AtomicU64::new(0));
        let may_wait = !self.settings.ends_alone;
        let stream = OpenStream { stream, common, cells, added, limits, may_wait };
        let stream = self.streams.put(stream);
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&stream));
    }

    /// An address in the memory of a session; seldom an invalid one.
    fn address_in(of: &Common, bytes: u64, choices: &mut Choices<'_>) -> GmAddr {
        let base = of.memory.address().0;
        match choices.byte() {
            0..=9 => GmAddr(choices.one_of(&[0, 1, u64::MAX, 1 << 63, u64::MAX - 7])),
            // Begins in the memory, and may end beyond it.
            10..=19 => GmAddr(base + choices.number() % BYTES),
            _ => GmAddr(base + u64::from(choices.byte()) * 8 % BYTES.saturating_sub(bytes).max(8)),
        }
    }

    fn bytes(choices: &mut Choices<'_>) -> u64 {
        choices.one_of(&[0, 1, 7, 8, 64, 64, 64, 4096, BYTES, BYTES + 1, u64::MAX])
    }

    fn end_session(&self, choices: &mut Choices<'_>) {
        // Most scripts would be over soon.
        if !choices.byte().is_multiple_of(8) {
            return;
        }
        let Some(of) = self.sessions.take(choices) else { return };
        of.common.disturb();
        // Who closes waits for what the others submit.
        let waits = self.settings.ends_alone || self.settings.threads == 1;
        let closes = choices.byte().is_multiple_of(2) && waits;
        tell(format_args!("session: closed {closes}"));
        match Arc::into_inner(of) {
            Some(of) if closes => {
                if !self.settings.ends_alone {
                    of.session.abort();
                }
                if let Some(device) = of.session.close() {
                    self.devices.put(Mutex::new(device));
                }
            }
            of => drop(of),
        }
    }

    fn launch(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.streams.any(choices) else { return };
        let (stream, at) = (&of.stream, of.cells.address().0);
        match choices.byte() % 8 {
            0..=3 => {
                tell(format_args!("{stream:?}: adds 1"));
                let args = [at, 1.0_f32.to_bits().into(), at, CELLS];
                match of.check(stream.launch(func::ADD_SCALAR, &args)) {
                    Some(Submitted::Captured) => of.common.disturb(),
                    Some(Submitted::Command(_)) => drop(of.added.fetch_add(1, Ordering::Relaxed)),
                    None => {}
                }
            }
            4 => {
                let blocks = choices.one_of(&[0, 1, 2, 5, 65_535, 65_536, u32::MAX]).min(70_000);
                let blocks = if blocks == 65_535 { 64 } else { blocks };
                let words: Vec<u64> =
                    (0..choices.one_of(&[0, 1, 3, 4, 127, 128, 129, 255])).collect();
                tell(format_args!("{stream:?}: {blocks} blocks, {} words", words.len()));
                of.check(stream.launch_blocks(NOTHING, blocks, &words));
            }
            5 => {
                tell(format_args!("{stream:?}: spins"));
                of.check(stream.launch(func::SPIN_AIV, &[choices.number() % 20_000]));
            }
            6 => {
                let func_id = choices.word() % 70_000;
                if func_id < 128 || func_id == u32::from(NOTHING.0) {
                    return;
                }
                let Ok(func_id) = func_id.try_into().map(FuncId) else { return };
                tell(format_args!("{stream:?}: {func_id:?}, which there is not"));
                let launched = stream.launch(func_id, &[]);
                assert!(launched.is_err(), "a kernel that there is not is launched");
            }
            _ => {
                tell(format_args!("{stream:?}: budget"));
                let budget = choices.one_of(&[None, Some(1), Some(1_000_000), Some(u64::MAX)]);
                let budget = budget.map(Duration::from_micros);
                if budget != Some(Duration::from_micros(1)) {
                    of.check(stream.set_kernel_budget(budget));
                }
            }
        }
    }

    /// A kernel of the library gets words that may be wrong: it is refused, or runs on the memory of all streams.
    fn library(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.streams.any(choices) else { return };
        let mut random = choices.more();
        let (kernel, words) = words::call(of.common.block(), &mut random);
        let blocks = random.one_of(&[1, 1, 1, 1, 2, 5, 0, 64, 65_536]);
        tell(format_args!("{:?}: {} of {words:x?} in {blocks} blocks", of.stream, kernel.name));
        of.check(of.stream.launch_blocks(func_id(kernel), blocks, &words));
    }

    fn copy(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.streams.any(choices) else { return };
        let (stream, bytes) = (&of.stream, Self::bytes(choices));
        let (to, from) = (
            Self::address_in(&of.common, bytes, choices),
            Self::address_in(&of.common, bytes, choices),
        );
        let what = choices.byte() % 8;
        tell(format_args!("{stream:?}: copy {what} of {bytes} bytes from {from:?} to {to:?}"));
        let host = self.hosts.any(choices);
        let host = host.as_deref().cloned().unwrap_or_else(|| HostBuffer::from(&[0_u8; 64][..]));
        let dtype = choices.one_of(&[DType::U8, DType::F32, DType::F16, DType::I64]);
        of.check(match what {
            0 => stream.copy_to_device(to, vec![7; usize::from(choices.byte())]),
            1 => stream.copy_to_device(to, host),
            2 => stream.copy_from_device(from, &host),
            3 => stream.copy_on_device(from, to, bytes),
            4 => stream.fill(to, choices.byte(), bytes),
            5 => stream.fill_elements(to, dtype, choices.number(), bytes),
            6 => stream.write_value(to, choices.number()),
            _ => stream.reduce((Reduction::Sum, dtype), from, to, bytes),
        });
    }

    fn host(&self, choices: &mut Choices<'_>) {
        let Some(buffer) = self.hosts.any(choices).filter(|_| choices.byte() < 200) else {
            let bytes = usize::from(choices.byte());
            tell(format_args!("host buffer of {bytes} bytes"));
            self.hosts.put(HostBuffer::from(vec![1_u8; bytes]));
            return;
        };
        tell(format_args!("host buffer: {} bytes", buffer.bytes()));
        if let Some(part) = buffer.part(choices.number(), choices.number()) {
            assert!(part.bytes() <= buffer.bytes(), "a part is larger than the whole");
            self.hosts.put(part);
        }
        let _: Option<()> = buffer.write(&[3; 16]);
        drop(buffer.to_vec());
    }

    fn event(&self, choices: &mut Choices<'_>) {
        let (stream, event) = (self.streams.any(choices), self.events.any(choices));
        let (Some(of), Some(event), what) = (stream, event, choices.byte() % 16) else {
            let Some(of) = self.sessions.any(choices) else { return };
            tell(format_args!("event"));
            of.session.event().ok().map(|event| self.events.put(event));
            return;
        };
        let stream = &of.stream;
        tell(format_args!("{stream:?}: call {what} of {:?}", event.id()));
        match what {
            0..=3 => drop(of.check(stream.record(&event))),
            4..=6 => drop(of.check(stream.wait(&event))),
            7 if !self.settings.ends_alone => drop(of.check(stream.wait_next(&event))),
            8 => of.limited(|| stream.wait_within(&event, MOMENT)),
            9 => of.limited(|| stream.wait_next_within(&event, MOMENT)),
            10 if !self.settings.ends_alone => drop(of.check(stream.reset(&event))),
            11 => {
                let _: Result<(), _> = event.synchronize_within(MOMENT);
            }
            12 => {
                let other = self.events.any(choices);
                let _: Option<Duration> = other.and_then(|other| event.since(&other));
                let _: (Option<Duration>, bool) = (event.time(), event.was_recorded());
            }
            13 => drop(self.events.take(choices)),
            _ => {
                let Some(of) = self.sessions.any(choices) else { return };
                of.session.event().ok().map(|event| self.events.put(event));
            }
        }
    }

    fn value(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.streams.any(choices) else { return };
        let stream = &of.stream;
        let at = Self::address_in(&of.common, 8, choices);
        let test = choices.one_of(&[ValueTest::EQUAL, ValueTest::AND]);
        let flag = self.flags.any(choices);
        tell(format_args!("{stream:?}: flag or word at {at:?}"));
        match (choices.byte() % 8, flag) {
            (0 | 1, _) => {
                let Some(of) = self.sessions.any(choices) else { return };
                of.session.notify().ok().map(|flag| self.flags.put(flag));
            }
            (2 | 3, Some(flag)) => drop(of.check(stream.notify(&flag))),
            (4, Some(flag)) if !self.settings.ends_alone => {
                of.check(stream.wait_notify(&flag));
            }
            (5, _) if !self.settings.ends_alone => {
                of.check(stream.wait_value(at, test, choices.number()));
            }
            (6, _) => of.limited(|| stream.wait_value_within(at, test, 1, MOMENT)),
            _ => (),
        }
    }

    fn call_back(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.streams.any(choices) else { return };
        let what = choices.byte() % 12;
        let stream = &of.stream;
        tell(format_args!("{stream:?}: calls function {what}"));
        let other = self.streams.any(choices);
        if matches!(what, 3..=6) && !throws() {
            return;
        }
        if matches!(what, 3..=6 | 8) {
            of.common.disturb();
        }
        of.check(match what {
            0 | 1 => stream.call(|| ()),
            2 => stream.call_each(|| ()),
            3 => stream.call(|| panic!("deliberate")),
            4 => stream.call(|| std::panic::panic_any(Bomb)),
            5 => {
                let bomb = Bomb;
                stream.call(move || drop(bomb))
            }
            6 => stream.call_each(|| std::panic::panic_any(Deliberate)),
            7 => stream.call(move || {
                let Some(other) = other else { return };
                other.check(other.stream.launch(NOTHING, &[]));
                let _: Result<bool, _> = other.stream.query();
            }),
            8 => {
                let own = Arc::clone(&of);
                stream.call(move || {
                    own.check(own.stream.synchronize_within(MOMENT));
                    own.stream.abort();
                })
            }
            9 => {
                // The last one that holds the stream, as often as not.
                drop(self.streams.take(choices));
                let own = Arc::clone(&of);
                stream.call(move || drop(own))
            }
            10 if choices.byte() < 40 => {
                let Some(last) = self.sessions.take(choices) else { return };
                last.common.disturb();
                stream.call(move || drop(last))
            }
            _ => stream.call(|| std::thread::sleep(MOMENT)),
        });
    }

    fn capture(&self, choices: &mut Choices<'_>) {
        let Some(of) = self.streams.any(choices) else { return };
        let (stream, what) = (&of.stream, choices.byte() % 8);
        tell(format_args!("{stream:?}: capture {what}"));
        match what {
            0 => {
                if of.check(stream.begin_capture()).is_some() {
                    of.common.disturb();
                }
            }
            1 | 2 => {
                if let Some(recording) = of.check(stream.end_capture()) {
                    self.recordings.put(recording);
                }
            }
            _ => {
                let Some(recording) = self.recordings.any(choices) else { return };
                of.common.disturb();
                let bound = (
                    Self::address_in(&of.common, 8, choices),
                    Self::address_in(&of.common, 8, choices),
                );
                let bindings = [bound];
                let bindings = &bindings[..usize::from(choices.byte() % 2)];
                of.check(stream.launch_recording(&recording, bindings));
            }
        }
    }

    fn run(&self, choices: &mut Choices<'_>) {
        let what = choices.byte() % 8;
        tell(format_args!("run {what}"));
        if let (0, Some(of)) = (what, self.sessions.any(choices)) {
            let (tasks, mut random) = (choices.byte() % 20, choices.more());
            let memory = Some(of.common.block()).filter(|_| choices.byte().is_multiple_of(2));
            let graph =
                of.session.with_device(|device| graph_of(device, tasks, memory, &mut random));
            graph.ok().flatten().map(|graph| self.graphs.put(graph));
            return;
        }
        let Some(graph) = self.graphs.any(choices) else { return };
        match (what, self.streams.any(choices), self.devices.any(choices)) {
            (1..=3, Some(of), _) => {
                // A graph of another device is refused when it runs.
                of.common.disturb();
                let ticket = of.check(of.stream.run((*graph).clone()));
                ticket.map(|ticket| self.tickets.put(ticket));
            }
            (4, Some(of), _) => {
                of.common.disturb();
                let budget = Duration::from_micros(choices.number());
                let options = RunOptions { run_budget: Some(budget), ..run_options() };
                drop(of.check(of.stream.run_with((*graph).clone(), options)));
            }
            (5, ..) => {
                let ticket = self.tickets.any(choices);
                drop(ticket.and_then(|ticket| ticket.take_report()));
            }
            (_, _, Some(device)) => {
                let mut device = device.lock().unwrap_or_else(PoisonError::into_inner);
                drop(device.run(Work::HostGraph(&graph), &run_options()));
            }
            _ => (),
        }
    }

    fn look(&self, choices: &mut Choices<'_>) {
        let (Some(of), what) = (self.streams.any(choices), choices.byte() % 16) else { return };
        let stream = &of.stream;
        tell(format_args!("{stream:?}: look {what}"));
        match what {
            0..=3 => drop(of.check(stream.query())),
            4..=6 => drop(of.check(stream.synchronize_within(MOMENT))),
            7 if self.settings.ends_alone && self.settings.threads == 1 => {
                let waited = stream.synchronize_within(LIMIT);
                assert!(!matches!(waited, Err(SessionError::TimedOut { .. })), "{waited:?}");
                of.check(waited);
            }
            8 => {
                of.common.disturb();
                stream.abort();
            }
            9 => drop(self.marks.put(stream.mark())),
            10 => {
                let mark = self.marks.any(choices);
                let _: Option<bool> = mark.map(|mark| mark.is_passed() && stream.has(&mark));
            }
            11 => drop(self.streams.take(choices)),
            12 => KEPT.with_borrow_mut(|kept| kept.push(ThreadObject::Stream(Arc::clone(&of)))),
            13 => {
                let event = self.events.any(choices);
                KEPT.with_borrow_mut(|kept| kept.extend(event.map(ThreadObject::Event)));
            }
            14 => {
                let of = self.sessions.any(choices);
                KEPT.with_borrow_mut(|kept| kept.extend(of.map(ThreadObject::Session)));
            }
            _ => scarce::begin(u32::from(choices.byte() % 3)),
        }
    }

    fn session(&self, choices: &mut Choices<'_>) {
        let (Some(of), what) = (self.sessions.any(choices), choices.byte() % 16) else { return };
        let session = &of.session;
        tell(format_args!("{session:?}: call {what}"));
        match what {
            0..=2 => {
                of.common.disturb();
                let _: Result<(), _> = session.synchronize_within(MOMENT);
            }
            3 => {
                of.common.disturb();
                session.abort();
            }
            4 => {
                of.common.disturb();
                let _: Result<(), _> = session.reset();
            }
            5..=7 => {
                let count = choices.byte() % 4;
                let streams: Vec<_> =
                    (0..count).filter_map(|_| self.streams.any(choices)).collect();
                tell(format_args!(
                    "barrier of {:?}",
                    streams.iter().map(|of| &of.stream).collect::<Vec<_>>()
                ));
                let streams: Vec<_> = streams.iter().map(|of| &of.stream).collect();
                let _: Result<(), _> = session.barrier(&streams);
            }
            8 => drop(
                session
                    .register_kernel(NOTHING, Kernel::from_fn("nothing", CoreKind::AIV, nothing)),
            ),
            9 => drop(session.func_id_of(Kernel::from_fn("other", CoreKind::AIC, nothing))),
            10 => {
                if let Ok(at) =
                    session.alloc(choices.one_of(&[0, 1, 64, 1 << 20, 1 << 40, u64::MAX]))
                {
                    drop(session.memory().copy_to_device(at, &[1]));
                    assert!(session.memory().free(at).is_ok(), "memory that was had is free'd");
                    // Another thread may have been given it meanwhile.
                    let is_alone = self.settings.threads == 1;
                    assert!(
                        !is_alone || session.memory().free(at).is_err(),
                        "memory is free'd twice"
                    );
                }
            }
            11 => drop(session.zeroed::<u64>(choices.one_of(&[0, 1, 1 << 40, usize::MAX]))),
            12 => {
                let _: (Duration, bool, u64) = (
                    session.now(),
                    session.step(Duration::from_micros(10)),
                    session.firmware_starts(),
                );
            }
            13 => self.end_session(choices),
            14 => self.open_session(choices),
            _ if self.settings.threads == 1 && choices.byte() < 64 => {
                scarce::end();
                match choices.byte() % 16 {
                    0 => Self::fill_with_streams(),
                    1..=3 => Self::open_and_drop_streams(),
                    4 | 5 => Self::run_without_threads(),
                    _ => Self::wait_for_flags_at_once(),
                }
            }
            _ => (),
        }
    }

    /// Several threads open the last streams of a session: each that is opened works.
    fn fill_with_streams() {
        tell(format_args!("all streams of a session"));
        let device = Self::device(0, 256 << 20).expect("a device opens");
        let options =
            SessionOptions { ring_entries: 32, run: run_options(), ..SessionOptions::default() };
        let session = device.session(options).expect("a session opens");
        let open = || {
            let mut opened = Vec::new();
            while let Ok(stream) = session.stream() {
                opened.push(stream);
            }
            opened
        };
        let mut streams: Vec<Stream> = Vec::new();
        for _ in 0..8 {
            let opened = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                threads.into_iter().flat_map(|it| it.join().expect("it ends")).collect::<Vec<_>>()
            });
            streams.extend(opened);
            assert!(streams.len() <= MAX_STREAMS, "{} streams", streams.len());
            streams.drain(..5);
        }
        for stream in &streams {
            stream.launch(NOTHING, &[]).expect("a stream takes a command");
        }
        for stream in &streams {
            stream.synchronize_within(LIMIT).expect("a stream goes on");
        }
    }

    /// Memory of streams that were dropped is there for others.
    fn open_and_drop_streams() {
        tell(format_args!("many streams, one after the other"));
        let session = Self::device(0, 16 << 20).map_err(SessionError::from);
        let session = session.and_then(|it| {
            it.session(SessionOptions { run: run_options(), ..SessionOptions::default() })
        });
        let session = session.expect("a session opens");
        for _ in 0..1000 {
            let stream = session.stream().expect("there is memory for one stream");
            stream.launch(NOTHING, &[]).expect("a stream takes a command");
        }
    }

    /// A run that cannot have the thread that it needs leaves no core that reads memory of others.
    fn run_without_threads() {
        tell(format_args!("a run without the thread that reads traces"));
        let mut device = Self::device(7, 64 << 20).expect("a device opens");
        let graph = graph_of(&device, 4, None, &mut Mutator::new(0)).expect("a graph");
        let trace = TraceOptions { when_full: WhenFull::Wait, ..TraceOptions::default() };
        let options = RunOptions { trace: Some(trace), ..run_options() };
        device.run(Work::HostGraph(&graph), &options).expect("a run");
        scarce::begin(1);
        let without = device.run(Work::HostGraph(&graph), &options);
        scarce::end();
        assert!(without.is_err(), "a run reads traces without a thread");
        let mut blocks = Vec::new();
        let mut bytes = 8_usize << 20;
        while bytes >= 4096 {
            match device.zeroed::<u8>(bytes) {
                Ok(block) => {
                    block.write(&vec![0xA5; bytes]).expect("memory is written");
                    blocks.push(block);
                }
                Err(_) => bytes /= 2,
            }
        }
        std::thread::sleep(Duration::from_millis(5));
        for block in &blocks {
            let is_whole = block.read().expect("memory is read").iter().all(|byte| *byte == 0xA5);
            assert!(is_whole, "memory of the caller changes");
        }
        drop(blocks);
        device.run(Work::HostGraph(&graph), &options).expect("a run after it");
    }

    /// One flag meets one of two waits of a stream.
    fn wait_for_flags_at_once() {
        tell(format_args!("two waits for one flag on one stream"));
        let session = Self::device(0, 32 << 20).map_err(SessionError::from);
        let session = session.and_then(|it| {
            it.session(SessionOptions { run: run_options(), ..SessionOptions::default() })
        });
        let session = session.expect("a session opens");
        let [one, other] = [(); 2].map(|()| session.stream().expect("a stream opens"));
        for _ in 0..20 {
            let flag = session.notify().expect("a flag");
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| one.wait_notify(&flag).expect("it is submitted"));
                }
            });
            other.notify(&flag).expect("it is submitted");
            other.synchronize_within(LIMIT).expect("it is over");
            let waited = one.synchronize_within(Duration::from_millis(1));
            assert!(waited.is_err(), "one flag meets two waits");
            other.notify(&flag).expect("it is submitted");
            one.synchronize_within(LIMIT).expect("it is over");
        }
    }
}

fn func_id(kernel: &LibraryKernel) -> FuncId {
    FuncId(u16::try_from(kernel.func_id).unwrap_or(u16::MAX))
}

/// A graph whose tasks compute nothing, or call kernels of the library with words that may be wrong.
fn graph_of(
    device: &Device,
    tasks: u8,
    memory: Option<Block>,
    random: &mut Mutator,
) -> Option<GraphImage> {
    let mut graph = HostGraph::new(device, &[]);
    for _ in 0..tasks {
        match memory {
            None => graph.submit(TaskSpec::new(NOTHING, CoreKind::AIV, &[]), &[]).ok()?,
            Some(memory) => {
                let (kernel, args) = words::call(memory, random);
                graph.submit(TaskSpec::new(func_id(kernel), kernel.kind, &args), &[]).ok()?
            }
        };
    }
    graph.finish().ok()
}

fn run_options() -> RunOptions {
    RunOptions { aicpu_instances: 2, ..RunOptions::default() }
}

impl Door for ObjectPools {
    fn call(&self, choices: &mut Choices<'_>) {
        match choices.byte() % 32 {
            0..=4 => self.launch(choices),
            5 | 6 => self.library(choices),
            7..=10 => self.copy(choices),
            11..=14 => self.event(choices),
            15 | 16 => self.value(choices),
            17..=19 => self.call_back(choices),
            20 | 21 => self.capture(choices),
            22 => self.run(choices),
            23 if choices.byte() < 128 => self.program(choices),
            23..=25 => self.look(choices),
            26..=28 => self.session(choices),
            29 => self.host(choices),
            _ => self.open_stream(choices),
        }
    }

    fn finish(&self) {
        tell(format_args!("the end"));
        for of in self.sessions.all().iter().filter(|_| !self.settings.ends_alone) {
            of.common.disturb();
            of.session.abort();
        }
        let streams = self.streams.all();
        // The last handle of a session may be gone, and so may that of a stream which waits for ever.
        let opened =
            std::mem::take(&mut *self.opened.lock().unwrap_or_else(PoisonError::into_inner));
        for of in opened.iter().filter_map(Weak::upgrade).filter(|of| of.may_wait) {
            of.common.disturb();
            of.stream.abort();
        }
        for of in &streams {
            let waited = of.stream.synchronize_within(LIMIT);
            let is_late = matches!(waited, Err(SessionError::TimedOut { .. }));
            assert!(!is_late, "a stream does not come to rest: {}", waited.unwrap_err());
            if of.check(waited).is_none() {
                of.common.disturb();
            }
        }
        for of in &streams {
            if of.common.is_disturbed.load(Ordering::Relaxed) {
                continue;
            }
            let added = of.added.load(Ordering::Relaxed);
            let cells = of.cells.read().expect("memory is read");
            #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
            let is_right = cells.iter().all(|cell| *cell == added as f32);
            assert!(is_right, "{:?}: {cells:?} after {added} additions", of.stream);
        }
    }
}

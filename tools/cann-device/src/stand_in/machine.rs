//! The state that the functions share: one device, its streams, and the emulator while the device is open.
//!
//! ```text
//! off --set_device--> on --the bootstrap of a firmware--> on, with cores --reset (last one) or reset by force--> off
//!                     on --an operation fails--> poisoned: every call but the reset by force answers 507899
//! ```
//! A stream does one operation after the other: `submit` and `answered` start the next one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Code;
use crate::emulator::{Code as ElfCode, Emulator};
use crate::faults::Faults;
use crate::memory::Memory;

pub(crate) const DRIVER_FAILED: Code = 507_899;
const AICPU_EXCEPTION: Code = 507_018;
const AICORE_EXCEPTION: Code = 507_015;
const AICPU_TIMEOUT: Code = 507_017;
const AICORE_TIMEOUT: Code = 507_014;

/// Which cores an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Aicpu,
    Aicore,
}

impl Engine {
    /// Its name, by which a fault is injected.
    const fn name(self) -> &'static str {
        match self {
            Self::Aicpu => "aicpu",
            Self::Aicore => "aicore",
        }
    }

    /// What a stream answers when the engine fails.
    const fn exception(self) -> Code {
        match self {
            Self::Aicpu => AICPU_EXCEPTION,
            Self::Aicore => AICORE_EXCEPTION,
        }
    }

    const fn timeout(self) -> Code {
        match self {
            Self::Aicpu => AICPU_TIMEOUT,
            Self::Aicore => AICORE_TIMEOUT,
        }
    }
}

/// What a stream is to do.
pub(crate) struct Operation {
    pub(crate) engine: Engine,
    /// The order without its number: the word, and what follows the number.
    pub(crate) order: (&'static str, String),
    /// The arguments in device memory, to be freed at the end.
    pub(crate) args: u64,
    id: u64,
    started: Option<Instant>,
    /// The code with which it is to end, whatever comes of it.
    injected: Option<Code>,
    /// How long the driver lets it go on, where a fault says so.
    limit: Option<Duration>,
}

impl Operation {
    pub(crate) fn new(engine: Engine, order: (&'static str, String), args: u64) -> Self {
        Self { engine, order, args, id: 0, started: None, injected: None, limit: None }
    }
}

/// A stream.
#[derive(Default)]
pub(crate) struct Stream {
    operations: VecDeque<Operation>,
    /// The first failure.
    pub(crate) failure: Code,
}

impl Stream {
    pub(crate) fn is_done(&self) -> bool {
        self.operations.is_empty()
    }
}

/// A registered AICore binary.
#[derive(Clone)]
pub(crate) struct CoreProgram {
    /// Whose code it is.
    pub(crate) code: ElfCode,
    /// The file, if it has a worker: the cores run it. Otherwise they have a worker of their own, for a blob of kernels.
    pub(crate) worker: Option<Vec<u8>>,
}

/// Everything.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) inits: u32,
    pub(crate) contexts: u32,
    pub(crate) generation: u64,
    pub(crate) memory: Option<Memory>,
    pub(crate) emulator: Option<Emulator>,
    pub(crate) streams: BTreeMap<u64, Stream>,
    /// Loaded binaries: their functions by name, each with its library.
    pub(crate) binaries: BTreeMap<u64, BTreeMap<String, (String, String)>>,
    pub(crate) functions: BTreeMap<u64, (u64, String, String)>,
    /// AICore binaries, which nothing takes back.
    pub(crate) registered: BTreeMap<u64, CoreProgram>,
    pub(crate) is_poisoned: bool,
    pub(crate) op_timeout_s: u32,
    pub(crate) faults: Faults,
    pub(crate) message: String,
    pub(crate) launches: u64,
    pub(crate) resets: u64,
    handles: u64,
}

static MACHINE: Mutex<Option<Machine>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// A change of the machine.
pub(crate) struct Held(MutexGuard<'static, Option<Machine>>);

/// The machine, for one call.
pub(crate) fn machine() -> Held {
    let mut held = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    held.get_or_insert_with(|| Machine { faults: Faults::of_environment(), ..Machine::default() });
    Held(held)
}

impl std::ops::Deref for Held {
    type Target = Machine;
    fn deref(&self) -> &Machine {
        self.0.as_ref().expect("`machine` has made it")
    }
}

impl std::ops::DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Machine {
        self.0.as_mut().expect("`machine` has made it")
    }
}

impl Held {
    /// Waits until something changes, at most until `deadline`; false: the time is over.
    pub(crate) fn wait_until(self, deadline: Instant) -> (Self, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        let (held, waited) =
            CHANGED.wait_timeout(self.0, left).unwrap_or_else(PoisonError::into_inner);
        (Self(held), !waited.timed_out())
    }
}

impl Machine {
    /// A new handle: a number that was never one.
    pub(crate) fn handle(&mut self) -> u64 {
        self.handles += 1;
        0x5000_0000 + self.handles * 64
    }

    /// Takes the device: the first context makes its memory.
    pub(crate) fn take(&mut self) -> Result<(), String> {
        if self.contexts == 0 {
            self.generation += 1;
            self.memory = Some(Memory::new().ok_or("there is no memory for the device")?);
        }
        self.contexts += 1;
        Ok(())
    }

    /// The device has cores that run this code from now on: a firmware is brought to it.
    pub(crate) fn power_up(&mut self, code: ElfCode) -> Result<(), String> {
        match &self.emulator {
            Some(emulator) if emulator.code == code => Ok(()),
            Some(_) => Err("the device runs firmware of another machine already".to_owned()),
            None => {
                let memory = self.memory.as_ref().ok_or("nobody has the device")?;
                self.emulator = Some(Emulator::start(code, memory, self.generation, on_answer)?);
                Ok(())
            }
        }
    }

    /// Everything of the device is gone.
    pub(crate) fn put_down(&mut self) {
        self.contexts = 0;
        self.emulator = None;
        self.memory = None;
        self.streams.clear();
        self.binaries.clear();
        self.functions.clear();
        self.is_poisoned = false;
    }

    /// Appends to a stream.
    pub(crate) fn submit(&mut self, stream: u64, mut operation: Operation) -> Option<()> {
        operation.id = self.handle();
        self.launches += 1;
        self.streams.get_mut(&stream)?.operations.push_back(operation);
        self.start_next(stream);
        Some(())
    }

    /// Starts the first operation of a stream, if it has not begun.
    fn start_next(&mut self, stream: u64) {
        let Some(first) = self.streams.get_mut(&stream).and_then(|one| one.operations.front_mut())
        else {
            return;
        };
        if first.started.is_some() {
            return;
        }
        first.started = Some(Instant::now());
        let (id, engine) = (first.id, first.engine);
        let line = format!("{} {id} {}", first.order.0, first.order.1);
        first.injected = self.faults.take(engine.name());
        if let Some(code @ ..=0) = first.injected {
            // A stuck stream: the operation begins, and nothing ever comes of it.
            first.limit = (code < 0).then(|| Duration::from_millis(code.unsigned_abs().into()));
            return;
        }
        let given = self.emulator.as_mut().and_then(|emulator| emulator.order(&line));
        if given.is_none() {
            self.end(stream, DRIVER_FAILED);
        }
    }

    /// The first operation of a stream has ended with this code of the interface.
    fn end(&mut self, stream: u64, code: Code) {
        let Some(one) = self.streams.get_mut(&stream) else { return };
        if code != 0 {
            one.failure = code;
            one.operations.clear();
            self.is_poisoned = true;
            return;
        }
        if let (Some(ended), Some(memory)) = (one.operations.pop_front(), &mut self.memory) {
            memory.blocks.remove(&ended.args);
        }
        self.start_next(stream);
    }

    /// Operations that take longer than the driver allows fail.
    pub(crate) fn look_at_clock(&mut self) {
        let set = Duration::from_secs(self.op_timeout_s.into());
        let set = (!set.is_zero()).then_some(set);
        let is_late = |operation: &Operation| {
            let limit = operation.limit.or(set);
            operation.started.zip(limit).is_some_and(|(at, limit)| at.elapsed() > limit)
        };
        let late = self.streams.iter().filter_map(|(stream, one)| {
            let first = one.operations.front().filter(|first| is_late(first))?;
            Some((*stream, first.engine.timeout()))
        });
        let late: Vec<_> = late.collect();
        late.into_iter().for_each(|(stream, code)| self.end(stream, code));
    }
}

/// The emulator has ended an order, or itself.
fn on_answer(generation: u64, answer: Option<(u64, i32)>) {
    match answer {
        Some((id, code)) => answered(generation, id, code),
        None => ended(generation),
    }
}

/// The emulator has ended an order.
fn answered(generation: u64, id: u64, code: i32) {
    let mut machine = machine();
    if machine.generation != generation {
        return;
    }
    let of_id = |one: &Stream| {
        let first = one.operations.front().filter(|first| first.id == id)?;
        Some((first.engine, first.injected))
    };
    let found = machine.streams.iter().find_map(|(stream, one)| Some((*stream, of_id(one)?)));
    if let Some((stream, (engine, injected))) = found {
        let own = if code == 0 { 0 } else { engine.exception() };
        let code_of_stream = injected.unwrap_or(own);
        if code_of_stream != 0 {
            machine.message = match injected {
                Some(_) => format!("{}: injected", engine.name()),
                None => format!("the emulated {} answered {code}", engine.name()),
            };
        }
        machine.end(stream, code_of_stream);
    }
    CHANGED.notify_all();
}

/// The emulator's output has ended: nothing that is still on a stream will be answered.
fn ended(generation: u64) {
    let mut machine = machine();
    if machine.generation == generation && machine.emulator.is_some() {
        let busy: Vec<u64> =
            machine.streams.iter().filter(|(_, one)| !one.is_done()).map(|(at, _)| *at).collect();
        busy.into_iter().for_each(|stream| machine.end(stream, DRIVER_FAILED));
        machine.is_poisoned = true;
    }
    CHANGED.notify_all();
}

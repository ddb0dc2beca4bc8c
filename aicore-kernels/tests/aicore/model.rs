//! One core with its registers and a cache that nobody keeps coherent, and the AICPU that gives it work.

use std::cell::RefCell;

use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::handshake::{
    DOORBELL_EXIT, DOORBELL_IDLE, FINISHED, Handshake, STATUS_IDLE, next_dispatch_id,
};
use pto_abi::sync::Ordering;

use super::cache::{Cache, LINE, Line, line_of};
use super::costs::Counts;
use super::script::{Act, Script, Seen, Task};

/// What a worker and its calls take of the stack at most.
const STACK_BYTES: u64 = 1 << 16;
/// Looks at nothing new after which a loop is stuck.
const PATIENCE: u32 = 10_000;
/// Where `Runtime::workers` begins, and how many there are.
const WORKERS: usize = std::mem::offset_of!(pto_abi::runtime::Runtime, workers);
const RUNTIME_BYTES: usize = size_of::<pto_abi::runtime::Runtime>();
/// Where `LaunchPlan::arena_address` stands in the launch words.
const ARENA_ADDRESS: usize = std::mem::offset_of!(pto_abi::launch_words::LaunchPlan, arena_address);
/// Words of GM behind the runtime: arguments, chains, and what kernels read and write.
const DATA_WORDS: usize = 512;

/// The GM of a device, as bytes of this process.
pub(crate) struct Gm {
    lines: Box<[[u64; 8]]>,
}

impl Gm {
    fn new() -> Self {
        let lines = (RUNTIME_BYTES + 8 * DATA_WORDS).div_ceil(64) + 2;
        Self { lines: vec![[0; 8]; lines].into_boxed_slice() }
    }

    /// The first address, which begins a line.
    fn start(&self) -> u64 {
        (self.lines.as_ptr().expose_provenance() as u64).next_multiple_of(LINE)
    }

    fn end(&self) -> u64 {
        self.start() + (self.lines.len() as u64 - 1) * LINE
    }

    fn has(&self, address: u64) -> bool {
        (self.start()..self.end()).contains(&address)
    }

    /// The address of a word of data.
    pub(crate) fn data(&self, index: u64) -> u64 {
        self.start() + (RUNTIME_BYTES as u64).next_multiple_of(LINE) + 8 * index
    }

    fn read(&self, address: u64) -> u8 {
        let at: *const u8 = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the address is in these lines, or in words of a worker that runs on this thread.
        unsafe { at.read() }
    }

    fn write(&self, address: u64, byte: u8) {
        assert!(self.has(address), "a store outside of GM: {address:#x}");
        let at: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the address is in these lines, which nobody holds a reference to.
        unsafe { at.write(byte) }
    }

    fn line(&self, address: u64) -> Line {
        std::array::from_fn(|at| self.read(address + at as u64))
    }

    pub(crate) fn word(&self, address: u64) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|at| self.read(address + at as u64)))
    }

    pub(crate) fn set_word(&self, address: u64, value: u64) {
        (0..).zip(value.to_le_bytes()).for_each(|(at, byte)| self.write(address + at, byte));
    }

    /// The lines of the worker with this number.
    pub(crate) fn handshake(&self, number: u32) -> &'static Handshake {
        let address = self.start() as usize + WORKERS + number as usize * size_of::<Handshake>();
        // SAFETY: aligned, within the lines, and made of atomics; the tests drop the memory when both loops have left.
        unsafe { &*std::ptr::with_exposed_provenance(address) }
    }
}

/// The core, its cache, and the AICPU that plays a script.
pub(crate) struct Model {
    pub(crate) gm: Gm,
    pub(crate) script: Script,
    number: u32,
    next_act: usize,
    idle: u32,
    looks: u32,
    rung: u32,
    /// Whether AICPU has rung since the launch of the core.
    is_open: bool,
    last_id: u32,
    status: u32,
    ticks: u64,
    pipes_busy: bool,
    cache: Cache,
    pub(crate) seen: Vec<Seen>,
    /// The operations of the loop, by their names.
    pub(crate) counts: Counts,
}

impl Model {
    /// A model for the worker with this number.
    pub(crate) fn new(script: Script, number: u32) -> Self {
        let gm = Gm::new();
        // An earlier launch has left its lines in the cache: what stands in GM was written since.
        let lines = (gm.start()..gm.end()).step_by(LINE as usize);
        let cache = Cache::of(lines.map(|line| (line, [0; 64])));
        let handshake = gm.handshake(number);
        handshake.reset();
        handshake.scheduler.aicpu_ready.store(40, Ordering::Relaxed);
        handshake.worker.aicore_done.store(40, Ordering::Relaxed);
        handshake.worker.tasks_run.store(9, Ordering::Relaxed);
        Self {
            gm,
            script,
            number,
            next_act: 0,
            idle: 0,
            looks: 0,
            // What a launch leaves in the doorbell of a core that AICPU has not greeted.
            rung: 0,
            is_open: false,
            last_id: DOORBELL_IDLE,
            status: 0,
            ticks: 0,
            pipes_busy: false,
            cache,
            seen: Vec::new(),
            counts: Counts::new(),
        }
    }

    /// The launch words, which name the arena.
    pub(crate) fn launch_words(&self) -> u64 {
        let words = self.gm.data(DATA_WORDS as u64 - 16);
        self.gm.set_word(words + ARENA_ADDRESS as u64, self.gm.start());
        words
    }

    pub(crate) fn lines(&self) -> &'static Handshake {
        self.gm.handshake(self.number)
    }

    fn line_address(&self) -> u64 {
        std::ptr::from_ref(&self.lines().worker).expose_provenance() as u64
    }

    /// What stands in the worker's line in GM.
    pub(crate) fn worker_line(&self) -> Seen {
        Seen::Line(std::array::from_fn(|word| self.gm.word(self.line_address() + 8 * word as u64)))
    }

    /// AICPU goes on as far as it can: called whenever the core looks for something to do.
    pub(crate) fn aicpu(&mut self) {
        self.looks += 1;
        assert!(
            self.looks < PATIENCE,
            "the core is stuck before {:?}",
            self.script.acts.get(self.next_act)
        );
        while let Some(act) = self.script.acts.get(self.next_act).cloned() {
            if !self.act(&act) {
                return;
            }
            self.next_act += 1;
            self.looks = 0;
        }
    }

    /// Whether the act is done.
    fn act(&mut self, act: &Act) -> bool {
        let lines = self.lines();
        match act {
            Act::Greet(epoch) => {
                (self.rung, self.last_id) = (DOORBELL_IDLE, DOORBELL_IDLE);
                self.is_open = true;
                lines.greet(*epoch);
            }
            Act::Launched => (self.rung, self.is_open) = (0, false),
            Act::RingsAgain => (self.rung, self.is_open) = (DOORBELL_IDLE, true),
            Act::Answered(epoch) => {
                return lines.answer(*epoch).is_some() && self.status == STATUS_IDLE;
            }
            Act::Dispatch(tasks) => {
                for task in tasks {
                    self.last_id = next_dispatch_id(self.last_id);
                    self.stage(self.last_id, task);
                }
                self.rung = self.last_id;
            }
            Act::Finished => return self.status == FINISHED | self.last_id,
            Act::Data(index, value) => self.gm.set_word(self.gm.data(*index), *value),
            Act::Idle(looks) => {
                self.idle += 1;
                if self.idle < *looks {
                    return false;
                }
                self.idle = 0;
            }
            Act::Exit => self.rung = DOORBELL_EXIT,
        }
        true
    }

    fn stage(&self, id: u32, task: &Task) {
        let (kernel, place, words) = match task {
            Task::Kernel { code, place, args } => (*code, *place, args),
            Task::Chain { place, words } => (CHAIN_KERNEL.0, *place, words),
        };
        for (at, word) in (place..).zip(words) {
            self.gm.set_word(self.gm.data(at), *word);
        }
        self.lines().stage(id, id, kernel, self.gm.data(place));
    }

    pub(crate) fn doorbell(&mut self) -> u32 {
        self.aicpu();
        self.rung
    }

    pub(crate) fn set_status(&mut self, status: u32) {
        assert!(!self.pipes_busy, "status {status:#x} before the pipes of a kernel are idle");
        assert!(self.is_open, "status {status:#x} before AICPU has opened the window");
        self.status = status;
        self.seen.push(Seen::Status(status));
    }

    pub(crate) fn tick(&mut self) -> u64 {
        self.ticks += 5;
        self.ticks
    }

    pub(crate) fn pipes_idle(&mut self) {
        self.pipes_busy = false;
    }

    /// A kernel: reads its arguments, adds the word that the first one points to, and writes the sum where the second one points, by a pipe.
    /// `load` is how the core reads.
    pub(crate) fn call(&mut self, code: u64, args: u64, load: impl Fn(&mut Self, u64) -> u64) {
        let count = self.script.args_of(code);
        let words: Vec<u64> = (0..count).map(|at| load(self, args + 8 * at)).collect();
        let read = match words.as_slice() {
            [source, target, ..] => {
                let (source, target) = (self.gm.data(*source), self.gm.data(*target));
                let read = load(self, source);
                self.gm.set_word(target, self.gm.word(target) + read);
                self.pipes_busy = true;
                read
            }
            _ => 0,
        };
        self.seen.push(Seen::Call { code, words, read });
    }

    // ---- the cache ----

    pub(crate) fn load(&mut self, address: u64, bytes: u64) -> u64 {
        if !self.gm.has(address) {
            // The words of a chain's kernel are on the worker's stack, which is this thread's.
            let here = std::ptr::from_ref(&bytes).addr() as u64;
            assert!(here.abs_diff(address) < STACK_BYTES, "a load outside of GM: {address:#x}");
            return self.gm.word(address);
        }
        let is_greeting =
            address == std::ptr::from_ref(&self.lines().scheduler).expose_provenance() as u64;
        let gm = &self.gm;
        let value = self.cache.load(address, bytes, |line| gm.line(line));
        if is_greeting {
            self.aicpu();
        }
        value
    }

    pub(crate) fn store(&mut self, address: u64, bytes: u64, value: u64) {
        assert!(self.gm.has(address), "a store outside of GM: {address:#x}");
        let gm = &self.gm;
        self.cache.store(address, bytes, value, |line| gm.line(line));
    }

    pub(crate) fn fresh(&mut self, address: u64) {
        self.cache.fresh(address);
    }

    pub(crate) fn write_back(&mut self, address: u64) {
        let line = line_of(address);
        if let Some(bytes) = self.cache.write_back(line) {
            (line..).zip(bytes).for_each(|(at, byte)| self.gm.write(at, byte));
        }
        if line == self.line_address() {
            let line = self.worker_line();
            self.seen.push(line);
        }
    }

    pub(crate) fn drop_cache(&mut self) {
        self.cache.drop_all();
    }
}

thread_local! {
    /// The model of the worker that runs on this thread.
    static MODEL: RefCell<Option<Model>> = const { RefCell::new(None) };
    /// Which core of its cluster the worker is, and how many clusters there are.
    static PLACE: RefCell<[u32; 4]> = const { RefCell::new([0; 4]) };
}

/// Runs `work` with the model of this thread, and takes the model back.
pub(crate) fn with_model(model: Model, place: [u32; 4], work: impl FnOnce()) -> Model {
    PLACE.with(|held| *held.borrow_mut() = place);
    MODEL.with(|held| *held.borrow_mut() = Some(model));
    work();
    MODEL.with(|held| held.borrow_mut().take().expect("it was put there"))
}

fn with<R>(work: impl FnOnce(&mut Model) -> R) -> R {
    MODEL.with(|held| work(held.borrow_mut().as_mut().expect("a worker runs with a model")))
}

fn counted<R>(what: &'static str, work: impl FnOnce(&mut Model) -> R) -> R {
    with(|model| {
        *model.counts.entry(what).or_default() += 1;
        work(model)
    })
}

fn place(index: usize) -> u32 {
    PLACE.with(|held| held.borrow()[index])
}

/// The calls of `on_this_machine.cpp`, in its order. A model that finds a fault panics, through the frames of the worker.
macro_rules! calls {
    ($($name:ident ($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        /// See `on_this_machine.cpp`.
        #[repr(C)]
        pub(crate) struct WorkerCalls {
            $($name: unsafe extern "C-unwind" fn($($type),*) -> $result,)*
        }

        /// The calls of a worker, answered by the model of the thread.
        pub(crate) const CALLS: WorkerCalls = WorkerCalls { $($name: {
            unsafe extern "C-unwind" fn call($($arg: $type),*) -> $result $body
            call
        },)* };
    };
}

calls! {
    block() -> u32 { place(0) }
    blocks() -> u32 { place(1) }
    sub() -> u32 { place(2) }
    subs() -> u32 { place(3) }
    doorbell() -> u32 { counted("doorbell", Model::doorbell) }
    status(value: u32) -> () { counted("status", |model| model.set_status(value)) }
    ticks() -> u64 { counted("ticks", Model::tick) }
    load(address: u64, bytes: u32) -> u64 { counted("load", |model| model.load(address, bytes.into())) }
    store(address: u64, bytes: u32, value: u64) -> () { counted("store", |model| model.store(address, bytes.into(), value)) }
    fresh(address: u64) -> () { counted("fresh", |model| model.fresh(address)) }
    write_back(address: u64) -> () { counted("write_back", |model| model.write_back(address)) }
    drop_cache() -> () { counted("drop_cache", Model::drop_cache) }
    pipes_idle() -> () { counted("pipes_idle", Model::pipes_idle) }
    call(code: u64, args: u64) -> () { with(|model| model.call(code, args, |model, address| model.load(address, 8))) }
    set_flags_base(address: u64) -> () { with(|model| model.seen.push(Seen::FlagsBase(address))) }
}

/// The load of a word that another agent may write.
pub(crate) fn relaxed(word: &pto_abi::sync::AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

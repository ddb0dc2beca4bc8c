//! An AICore that runs the worker in C++, and the kernels of its image: the calls that replace its registers, its cache and its pipes
//! (`aicore-kernels/aicore/machine.h`).
//!
//! ```text
//! Program::load --core--> enter --pto_worker_0_mix_aic or _aiv--> calls, answered by the core of the thread --exit signal--> the end
//! ```

use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::time::Instant;

use pto_abi::handshake::LAST_DISPATCH_ID;
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::{CoreKind, GmAddr, GmWindow};

use crate::cache::{Cache, LINE, Line, line_of};
use crate::cluster_flags::ClusterFlags;
use crate::core::{FAST_PATH_OPEN, LOOKS, REST, Watch};
use crate::image::{open, symbol};
use crate::memory::CoreRegisters;

/// The counter of a core has 50 MHz.
const NS_A_TICK: u128 = 20;

/// The worker's entries, loaded for the life of the process.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    entries: [Entry; 2],
}

/// An entry: the address where the flags between the cores of a cluster are, and the launch words.
type Entry = unsafe extern "C" fn(u64, u64);

/// One core, at the start of a launch.
pub(crate) struct Aicore {
    pub(crate) kind: CoreKind,
    /// The number of its cluster, how many clusters there are, which core of its kind it is there, how many there are.
    pub(crate) block_and_sub: [u32; 4],
    pub(crate) registers: CoreRegisters,
    pub(crate) gm: GmWindow<'static>,
    pub(crate) watch: Arc<Watch>,
    /// The flags of its cluster, and the address that its kernels reach them by.
    pub(crate) flags: Arc<ClusterFlags>,
    pub(crate) flags_base: u64,
}

/// A core while its worker runs.
struct Running {
    core: Aicore,
    cache: Cache,
    start: Instant,
    looks: u32,
    /// What the doorbell said last; `None`: it was not looked at yet.
    rung: Option<u32>,
    /// A kernel was called, and the core has not waited for its pipes.
    pipes_busy: bool,
    /// Where the worker has said that the flags of the cluster are.
    flags_base: Option<u64>,
}

thread_local! {
    /// The core whose worker runs on this thread.
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

impl Program {
    /// Loads the worker in this file.
    pub(crate) fn load(path: &str) -> Result<Self, String> {
        let handle = open(path)?;
        let function = |name: &str| symbol(handle, &CString::new(name).unwrap_or_default());
        let bind = function("pto_core_bind")?;
        let of_kind = |name: &str| {
            let found = function(name)?;
            // SAFETY: `worker.cpp` declares it so.
            Ok::<_, String>(unsafe { std::mem::transmute::<*mut c_void, Entry>(found) })
        };
        let entries = [of_kind("pto_worker_0_mix_aic")?, of_kind("pto_worker_0_mix_aiv")?];
        // SAFETY: `on_this_machine.cpp` declares it so.
        let bind =
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const Calls)>(bind) };
        // SAFETY: the table lives as long as the process.
        unsafe { bind(CALLS) };
        Ok(Self { entries })
    }

    /// The thread of a core: runs its worker until that leaves.
    pub(crate) fn run(self, core: Aicore, words: u64) {
        let given_base = core.flags_base;
        let entry = self.entries[core.kind.index()];
        let (cache, start) = (Cache::of(std::iter::empty()), Instant::now());
        let (looks, rung, pipes_busy, flags_base) = (0, None, false, None);
        let running = Running { core, cache, start, looks, rung, pipes_busy, flags_base };
        RUNNING.with(|held| *held.borrow_mut() = Some(running));
        // SAFETY: every access of the worker is a call of the table; the kernels that it calls are those of the firmware's table.
        unsafe { entry(given_base, words) };
        RUNNING.with(|held| *held.borrow_mut() = None);
    }
}

impl Running {
    /// Which core of its cluster this is: the cube core, the first or the second vector core.
    const fn slot(&self) -> usize {
        match self.core.kind {
            CoreKind::AIC => 0,
            _ => 1 + self.core.block_and_sub[2] as usize,
        }
    }

    /// The flags of the cluster, and which of its cores this is, for a kernel.
    fn flags(&self) -> (Arc<ClusterFlags>, usize) {
        if self.flags_base != Some(self.core.flags_base) {
            let said = self.flags_base.unwrap_or(0);
            self.violation("a flag of the cluster before the worker has said where they are", said);
        }
        (Arc::clone(&self.core.flags), self.slot())
    }

    fn raise(&mut self, word: u64) {
        let (flags, slot) = self.flags();
        if let Err(why) = flags.raise(slot, word) {
            self.violation(why, word);
        }
    }

    fn ticks(&self) -> u64 {
        (self.start.elapsed().as_nanos() / NS_A_TICK) as u64
    }

    fn violation(&self, what: &str, value: u64) {
        let [block, _, sub, _] = self.core.block_and_sub;
        eprintln!("{} {block}.{sub}: {what} ({value:#x})", self.core.kind.name());
        self.core.watch.violations.fetch_add(1, Ordering::Relaxed);
    }

    /// The core looks for something to do. One that has found nothing a few times rests, as `Core::serve` does.
    fn look(&mut self) {
        self.looks += 1;
        if self.looks <= LOOKS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(REST);
        }
    }

    fn doorbell(&mut self) -> u32 {
        // Acquire: pairs with the `dsb st` before the doorbell in the image's `registers::ring`.
        let rung = self.core.registers.data_main_base.load(Ordering::Acquire);
        // A launch leaves 0 there, which is a dispatch only after something else.
        let is_dispatch = rung <= LAST_DISPATCH_ID && (rung != 0 || self.rung.is_some());
        let fast_path = self.core.registers.fast_path();
        if self.rung == Some(rung) {
            self.look();
        } else if is_dispatch && fast_path != FAST_PATH_OPEN {
            self.violation("the fast path is not open", fast_path.into());
        }
        self.rung = Some(rung);
        rung
    }

    fn status(&mut self, status: u32) {
        if self.core.registers.fast_path() != FAST_PATH_OPEN {
            self.violation("a status before the window is open", status.into());
        }
        if self.pipes_busy {
            self.violation("a status before the pipes of a kernel are idle", status.into());
        }
        self.looks = 0;
        // Release: pairs with the `dsb ld` after the load of COND in the image's `registers::status`.
        self.core.registers.cond.store(status, Ordering::Release);
    }

    /// The words of a line in GM.
    fn words(&self, line: u64) -> Option<&'static [AtomicU64]> {
        let offset = self.core.gm.offset_of(GmAddr(line), LINE)?;
        self.core.gm.live_slice(offset, LINE as usize / 8)
    }

    fn load(&mut self, address: u64, bytes: u32) -> u64 {
        let Some(words) = self.words(line_of(address)) else {
            self.violation("a load outside of GM", address);
            return 0;
        };
        self.cache.load(address, bytes.into(), |_| read(words))
    }

    fn store(&mut self, address: u64, bytes: u32, value: u64) {
        match self.words(line_of(address)) {
            Some(words) => self.cache.store(address, bytes.into(), value, |_| read(words)),
            None => self.violation("a store outside of GM", address),
        }
    }

    fn write_back(&mut self, address: u64) {
        let Some(line) = self.cache.write_back(address) else { return };
        let bytes = line.as_chunks::<8>().0;
        for (to, bytes) in self.words(line_of(address)).into_iter().flatten().zip(bytes) {
            // Release: pairs with the Acquire loads in `Handshake::answer`, and with those of the other words of a line that the firmware reads.
            to.store(u64::from_le_bytes(*bytes), Ordering::Release);
        }
    }
}

fn read(words: &[AtomicU64]) -> Line {
    let mut line = [0; LINE as usize];
    for (to, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        // Acquire: pairs with the Release stores in `Handshake::greet`, and with those of the other words that the firmware writes.
        *to = word.load(Ordering::Acquire).to_le_bytes();
    }
    line
}

/// What a worker asks of its thread's core. There is none where a thread of something else calls.
fn with<R: Default>(work: impl FnOnce(&mut Running) -> R) -> R {
    RUNNING.with(|held| held.borrow_mut().as_mut().map_or_else(R::default, work))
}

/// Calls a kernel. The core is not held meanwhile: a kernel is no caller of it.
fn call_kernel(code: u64, args: u64) {
    let is_code = with(|core| core.core.gm.offset_of(GmAddr(code), 1).is_some());
    if !is_code {
        return with(|core| core.violation("a kernel outside of GM", code));
    }
    let entry = std::ptr::with_exposed_provenance::<c_void>(code as usize);
    // SAFETY: GM is mapped to be executed, and the firmware gives addresses of the kernels that the host has brought there.
    let kernel = unsafe { std::mem::transmute::<*const c_void, KernelEntry>(entry) };
    with(|core| core.pipes_busy = true);
    // SAFETY: the words of a task, or of a kernel of a chain, for a kernel that takes them.
    unsafe { kernel(args, SERVICES) };
    with(|core| core.core.watch.tasks.fetch_add(1, Ordering::Relaxed));
}

/// A kernel, and what it asks of its core besides GM.
type KernelEntry = unsafe extern "C" fn(u64, &'static Services);

/// `pto_core_services` of `aicore/this_machine/pto/pto-inst.hpp`.
#[repr(C)]
struct Services {
    raise: extern "C" fn(u64),
    wait: extern "C" fn(u32),
    ticks: extern "C" fn() -> u64,
    look: extern "C" fn(),
}

const SERVICES: &Services = &Services { raise, wait, ticks, look };

extern "C" fn raise(word: u64) {
    with(|core| core.raise(word));
}

/// The core is not held while its kernel waits.
extern "C" fn wait(flag: u32) {
    let Some((flags, slot)) = with(|core| Some(core.flags())) else { return };
    while !flags.take(slot, flag) {
        look();
    }
}

extern "C" fn ticks() -> u64 {
    with(|core| core.ticks())
}

extern "C" fn look() {
    std::thread::yield_now();
}

/// The calls of `on_this_machine.cpp`, in its order.
macro_rules! calls {
    ($($name:ident ($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        /// See `on_this_machine.cpp`.
        #[repr(C)]
        struct Calls {
            $($name: unsafe extern "C" fn($($type),*) -> $result,)*
        }

        const CALLS: &Calls = &Calls { $($name: {
            unsafe extern "C" fn call($($arg: $type),*) -> $result $body
            call
        },)* };
    };
}

calls! {
    block() -> u32 { with(|core| core.core.block_and_sub[0]) }
    blocks() -> u32 { with(|core| core.core.block_and_sub[1]) }
    sub() -> u32 { with(|core| core.core.block_and_sub[2]) }
    subs() -> u32 { with(|core| core.core.block_and_sub[3]) }
    doorbell() -> u32 { with(Running::doorbell) }
    status(value: u32) -> () { with(|core| core.status(value)) }
    ticks() -> u64 { ticks() }
    load(address: u64, bytes: u32) -> u64 { with(|core| core.load(address, bytes)) }
    store(address: u64, bytes: u32, value: u64) -> () { with(|core| core.store(address, bytes, value)) }
    fresh(address: u64) -> () { with(|core| core.cache.fresh(address)) }
    write_back(address: u64) -> () { with(|core| core.write_back(address)) }
    drop_cache() -> () { with(|core| core.cache.drop_all()) }
    pipes_idle() -> () { with(|core| core.pipes_busy = false) }
    call(code: u64, args: u64) -> () { call_kernel(code, args) }
    set_flags_base(address: u64) -> () { with(|core| core.flags_base = Some(address)) }
}

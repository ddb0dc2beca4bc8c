//! What this process says if a kernel raises a signal that ends it: which kernel, task and core, and the address that it reached for.
//!
//! A kernel of the simulator is a function of this process. [`watched`] notes what a thread runs. The handler says it with `write` alone, and leaves
//! the signal to the handler that was there before, so that the process ends by the signal as it would without this one. Where a guard
//! brings such a call back (`pto-native`), its handler is the later one, and this one is not called.

use core::fmt::{self, Write};
use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{c_int, c_void, sigaction, siginfo_t};
use pto_abi::handshake::Dispatch;
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::{CoreKind, FuncId};

/// The signals that faulty code raises.
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

/// What handled each of them before.
static BEFORE: OnceLock<[sigaction; SIGNALS.len()]> = OnceLock::new();

/// The kernel that a thread runs.
#[derive(Clone, Copy)]
struct RunningKernel {
    kernel: u64,
    task: u32,
    worker: u32,
    kind: CoreKind,
}

thread_local! {
    static RUNNING: Cell<Option<RunningKernel>> = const { Cell::new(None) };
}

/// The name of a function that is a kernel. It stays for the rest of the process, as the handler may look at it at any time.
struct KernelName {
    kernel: u64,
    func_id: FuncId,
    name: String,
    /// The address of the one that was named before; 0: none.
    older: u64,
}

/// The address of the function that was named last; 0: none.
static NEWEST: AtomicU64 = AtomicU64::new(0);

fn named() -> impl Iterator<Item = &'static KernelName> {
    let at = |address: u64| {
        let address = usize::try_from(address).ok().filter(|address| *address != 0)?;
        // SAFETY: `name_kernel` published the address of a value that it leaked, and that is never written again.
        Some(unsafe { &*core::ptr::with_exposed_provenance::<KernelName>(address) })
    };
    // Acquire pairs with the Release in `name_kernel`: the names are whole.
    let newest = at(NEWEST.load(Ordering::Acquire));
    core::iter::successors(newest, move |named| at(named.older))
}

/// The function at this address is the kernel of that func id and name.
pub fn name_kernel(kernel: u64, func_id: FuncId, name: &str) {
    static WRITER: Mutex<()> = Mutex::new(());
    let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same =
        |one: &KernelName| one.kernel == kernel && one.func_id == func_id && one.name == name;
    if named().any(is_same) {
        return;
    }
    let older = NEWEST.load(Ordering::Relaxed);
    let named = Box::leak(Box::new(KernelName { kernel, func_id, name: name.to_owned(), older }));
    let address = (&raw const *named).expose_provenance() as u64;
    // Release pairs with the Acquire in `named`.
    NEWEST.store(address, Ordering::Release);
}

/// Calls a kernel on a core; if it raises a signal, this process says so before it ends.
#[inline]
pub(crate) fn watched(dispatch: &Dispatch, (worker, kind): (u32, CoreKind), call: impl FnOnce()) {
    let Dispatch { kernel, task, .. } = *dispatch;
    RUNNING.set(Some(RunningKernel { kernel, task, worker, kind }));
    call();
    RUNNING.set(None);
}

/// Installs the handler, once in this process.
pub(crate) fn install() {
    BEFORE.get_or_init(|| {
        let before = SIGNALS.map(|(number, _)| replaced(number, None));
        for (number, _) in SIGNALS {
            replaced(number, Some(handler()));
        }
        before
    });
}

fn handler() -> sigaction {
    // SAFETY: the type consists of numbers, and all of them may be zero: no flags, no signals blocked.
    let mut action: sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action
}

/// What handled a signal, and from now on is replaced, if there is a new one.
fn replaced(number: c_int, new: Option<sigaction>) -> sigaction {
    // SAFETY: as in `handler`.
    let mut before: sigaction = unsafe { core::mem::zeroed() };
    let new = new.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: both are values of this type that live until the call returns; the handler does what one may do.
    unsafe { sigaction(number, new, &raw mut before) };
    before
}

extern "C" fn handle(number: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if let Some(running) = RUNNING.take() {
        // SAFETY: the system gives the handler a valid pointer.
        let info = unsafe { &*info };
        // SAFETY: these signals have an address, or a number that can be read as one.
        let address = unsafe { info.si_addr() }.addr();
        let has_address = number == libc::SIGSEGV || number == libc::SIGBUS;
        let mut text = Text { bytes: [0; 512], length: 0 };
        // What does not fit is left out.
        let _ = running.tell(number, has_address.then_some(address), &mut text);
        text.print();
    }
    let index = SIGNALS.iter().position(|(one, _)| *one == number);
    let before = index.and_then(|index| BEFORE.get()?.get(index));
    match before {
        Some(before) if before.sa_sigaction > libc::SIG_IGN => {
            let code = before.sa_sigaction as *const ();
            if before.sa_flags & libc::SA_SIGINFO == 0 {
                // SAFETY: the system had it as a handler of this type.
                let code = unsafe { core::mem::transmute::<*const (), extern "C" fn(c_int)>(code) };
                code(number);
            } else {
                type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                // SAFETY: the system had it as a handler of this type.
                let code = unsafe { core::mem::transmute::<*const (), Handler>(code) };
                code(number, info, context);
            }
        }
        _ => {
            // SAFETY: the default action has no code of this process.
            unsafe { libc::signal(number, libc::SIG_DFL) };
            // It ends the process when this handler returns.
            // SAFETY: any signal may be raised.
            unsafe { libc::raise(number) };
        }
    }
}

impl RunningKernel {
    fn tell(self, number: c_int, address: Option<usize>, to: &mut Text) -> fmt::Result {
        let Self { kernel, task, worker, kind } = self;
        match named().find(|named| named.kernel == kernel) {
            Some(KernelName { name, func_id, .. }) => {
                write!(to, "error: kernel {name} (func id {}) raised ", func_id.0)?;
            }
            None => write!(to, "error: the kernel at {kernel:#x} raised ")?,
        }
        let signal =
            SIGNALS.iter().find(|(one, _)| *one == number).map_or("a signal", |(_, name)| name);
        to.write_str(signal)?;
        if let Some(address) = address {
            write!(to, " at address {address:#x}")?;
        }
        writeln!(
            to,
            " in task {task} on core {worker} ({kind}). The signal ends this process. Mend the kernel, or the arguments of the task."
        )
    }
}

/// A text in the memory of the handler.
struct Text {
    bytes: [u8; 512],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..).and_then(|room| room.get_mut(..text.len()));
        room.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

impl Text {
    fn print(&self) {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        // SAFETY: so many bytes are there. If they cannot be written, nothing else can be done.
        unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
    }
}

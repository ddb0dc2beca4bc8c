//! The `log` facade on the device: what an instance logs goes to its log ring in GM.
//!
//! Instances are threads of one process, which the driver stack owns, so that a table finds the ring of the
//! calling thread by its thread pointer. (Thread-local variables of a library need the loader's help, which
//! this image does without.)

use core::fmt::Write as _;

use heapless::String;
use log::{LevelFilter, Log, Metadata};
use pto_abi::log_ring::{LogCursor, LogEntry, LogRing};
use pto_abi::sync::{AtomicU64, Ordering};
use pto_aicpu_fw::wire_level;

use crate::cann::clock;

/// Threads that can be in the firmware at once: the instances of four devices.
const MAX_THREADS: usize = 64;
/// Bytes of the longest message; what is beyond is cut, and the message says so.
const MESSAGE_BYTES: usize = 480;
const CUT: &str = " [cut]";

/// One thread in the firmware, and its ring.
struct ThreadLog {
    thread: AtomicU64,
    cursor: AtomicU64,
    entries: AtomicU64,
    entry_count: AtomicU64,
}

static TABLE: [ThreadLog; MAX_THREADS] = [const {
    ThreadLog {
        thread: AtomicU64::new(0),
        cursor: AtomicU64::new(0),
        entries: AtomicU64::new(0),
        entry_count: AtomicU64::new(0),
    }
}; MAX_THREADS];

/// While it lives, what this thread logs goes to its ring.
pub struct ThreadLogGuard(&'static ThreadLog);

impl Drop for ThreadLogGuard {
    fn drop(&mut self) {
        // Release: pairs with the Acquire exchange in `attach` of the next thread here.
        self.0.thread.store(0, Ordering::Release);
    }
}

/// Sends what this thread logs to `ring`. `None`: all entries are taken, and it logs nothing.
#[must_use]
pub fn attach(ring: LogRing<'static>) -> Option<ThreadLogGuard> {
    let me = thread_pointer();
    let free = |entry: &&ThreadLog| {
        // Acquire: pairs with the Release store in `drop`; the thread before is done with the words below.
        entry.thread.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    let entry = TABLE.iter().find(free)?;
    // Relaxed: this thread alone reads what it writes here.
    entry
        .cursor
        .store(core::ptr::from_ref(ring.cursor).expose_provenance() as u64, Ordering::Relaxed);
    entry.entries.store(ring.entries.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
    entry.entry_count.store(ring.entries.len() as u64, Ordering::Relaxed);
    Some(ThreadLogGuard(entry))
}

impl ThreadLog {
    /// The ring of this entry; to be called by its thread.
    fn ring(&self) -> LogRing<'static> {
        let word = |word: &AtomicU64| usize::try_from(word.load(Ordering::Relaxed)).unwrap_or(0);
        let cursor = core::ptr::with_exposed_provenance::<LogCursor>(word(&self.cursor));
        let entries = core::ptr::with_exposed_provenance::<LogEntry>(word(&self.entries));
        // SAFETY: `attach` stored a reference that lives as long as GM is mapped; this thread did, so that no
        // other one has changed it.
        let cursor = unsafe { &*cursor };
        // SAFETY: `attach` stored the address and the count of one slice that lives as long as GM is mapped.
        let entries = unsafe { core::slice::from_raw_parts(entries, word(&self.entry_count)) };
        LogRing { cursor, entries }
    }
}

struct RingLogger;

impl Log for RingLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let me = thread_pointer();
        let Some(log) = TABLE.iter().find(|log| log.thread.load(Ordering::Relaxed) == me) else {
            return;
        };
        let mut message = MessageBuffer(String::new());
        if message.write_fmt(*record.args()).is_err() {
            // There is room for it: `MessageBuffer` keeps it.
            message.0.push_str(CUT).unwrap_or_default();
        }
        log.ring().write(wire_level(record.level()), clock::now_ns(), &message.0);
    }

    fn flush(&self) {}
}

/// A message that keeps room to say that it was cut.
struct MessageBuffer(String<MESSAGE_BYTES>);

impl core::fmt::Write for MessageBuffer {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        if self.0.len() + text.len() + CUT.len() > MESSAGE_BYTES {
            return Err(core::fmt::Error);
        }
        self.0.push_str(text).map_err(|_| core::fmt::Error)
    }
}

/// Makes the rings the process's loggers. Again: nothing happens.
pub fn install() {
    static LOGGER: RingLogger = RingLogger;
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}

/// A number that no two living threads share; never zero.
#[cfg(target_arch = "aarch64")]
fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: reads a register; on Linux it holds the address of the thread's control block.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

/// The same on the development machine.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: reads a word of the thread's control block: its own address.
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    }
    pointer
}

/// Elsewhere the unit tests have one thread in the firmware.
#[cfg(not(any(target_arch = "aarch64", all(target_arch = "x86_64", target_os = "linux"))))]
const fn thread_pointer() -> u64 {
    1
}

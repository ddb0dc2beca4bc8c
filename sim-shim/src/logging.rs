//! The `log` facade on the simulated device: what is logged on a device thread goes to the log ring of the
//! AICPU instance that is being stepped; everything else goes to the logger of the program.

use std::cell::Cell;

use log::{Log, Metadata};
use pto_abi::log_ring::LogRing;
use pto_aicpu_fw::wire_level;

use crate::clock;

thread_local! {
    static RING: Cell<Option<LogRing<'static>>> = const { Cell::new(None) };
    static VIRTUAL_NS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What this thread logs from now on happens at this virtual time; `None`: at the time of the clock.
#[inline(never)]
pub(crate) fn set_virtual_time(time_ns: Option<u64>) {
    VIRTUAL_NS.set(time_ns);
}

/// As [`set_ring`], of a machine that may go on on another thread: a call finds the thread that it is on.
#[inline(never)]
pub(crate) fn set_ring_afresh(ring: Option<LogRing<'static>>) {
    set_ring(ring);
}

/// What this thread logs from now on goes to `ring`; `None`: to the program's logger.
#[inline]
pub(crate) fn set_ring(ring: Option<LogRing<'static>>) {
    RING.with(|cell| cell.set(ring));
}

/// Where a thread logs to, and at which time: that of one machine, where several share the thread.
#[derive(Default)]
pub(crate) struct Destination {
    ring: Option<LogRing<'static>>,
    virtual_ns: Option<u64>,
}

impl Destination {
    /// Swaps the value with that of this thread.
    pub(crate) fn exchange(&mut self) {
        self.ring = RING.replace(self.ring);
        self.virtual_ns = VIRTUAL_NS.replace(self.virtual_ns);
    }
}

/// Sends what device threads log to the device's rings, and the rest to `program`.
pub struct DeviceLogger<L> {
    program: L,
}

impl<L: Log> DeviceLogger<L> {
    /// A logger that passes on to `program` what no device thread logs.
    pub const fn new(program: L) -> Self {
        Self { program }
    }
}

/// Installs a [`DeviceLogger`] around the program's own logger. Until this is called, what the firmware logs
/// goes to whatever logger the program has, without instance and device time.
///
/// # Errors
/// When the program has installed a logger before.
pub fn install(program: impl Log + 'static) -> Result<(), log::SetLoggerError> {
    log::set_boxed_logger(Box::new(DeviceLogger::new(program)))
}

/// A program's logger that drops everything.
#[derive(Clone, Copy, Debug)]
pub struct NoLogger;

impl Log for NoLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }
    fn log(&self, _: &log::Record<'_>) {}
    fn flush(&self) {}
}

impl<L: Log> Log for DeviceLogger<L> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        RING.with(Cell::get).is_some() || self.program.enabled(metadata)
    }

    fn log(&self, entry: &log::Record<'_>) {
        match RING.with(Cell::get) {
            Some(ring) => {
                let now_ns = VIRTUAL_NS.get().unwrap_or_else(clock::now_ns);
                ring.write(wire_level(entry.level()), now_ns, &entry.args().to_string());
            }
            None => self.program.log(entry),
        }
    }

    fn flush(&self) {
        self.program.flush();
    }
}

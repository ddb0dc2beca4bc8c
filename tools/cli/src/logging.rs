//! Log messages on standard error: those of the host immediately, those of the firmware after the run.

use std::io::{Write, stderr};

use log::{LevelFilter, Log, Metadata, Record};
use pto_host::LogMessage;

use crate::errors::Failure;

/// Installs the program's logger; messages up to `level` are shown.
pub(crate) fn install(level: LevelFilter) -> Result<(), Failure> {
    log::set_max_level(level);
    pto_host::sim_logging::install(StandardError).map_err(Failure::internal)
}

/// Shows what the firmware logged in a run.
pub(crate) fn show(records: &[LogMessage], dropped: u64) {
    let mut stderr = stderr().lock();
    // Where standard error is gone, there is nobody to tell.
    for record in records.iter().filter(|record| record.level <= log::max_level()) {
        let _ = writeln!(stderr, "{record}");
    }
    if dropped > 0 {
        let _ = writeln!(stderr, "{dropped} older messages of the firmware were overwritten");
    }
}

struct StandardError;

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let _ = writeln!(stderr().lock(), "{:>5} host: {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

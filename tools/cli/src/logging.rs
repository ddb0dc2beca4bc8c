//! Log messages on standard error: those of the host immediately, those of the firmware after the run.

use std::io::{Write, stderr};

use log::{LevelFilter, Log, Metadata};
use pto_host::LogMessage;

use crate::errors::Failure;
use crate::text::plain;

/// Installs the program's logger; messages up to `level` are shown.
pub(crate) fn install(level: LevelFilter) -> Result<(), Failure> {
    log::set_max_level(level);
    pto_host::sim_logging::install(StandardError).map_err(Failure::internal)
}

/// Shows what the firmware logged in a run.
pub(crate) fn show(messages: &[LogMessage], dropped: u64) {
    let mut stderr = stderr().lock();
    // Where standard error is gone, no message can be shown.
    for message in messages.iter().filter(|message| message.level <= log::max_level()) {
        let _ = writeln!(stderr, "{}", plain(&message.to_string()));
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

    fn log(&self, entry: &log::Record<'_>) {
        if self.enabled(entry.metadata()) {
            let said = plain(&entry.args().to_string());
            let _ = writeln!(stderr().lock(), "{:>5} host: {said}", entry.level());
        }
    }

    fn flush(&self) {}
}

//! How the log ring numbers levels.

/// The level in a log entry: 1 error, 2 warning, 3 information, 4 debug, 5 trace.
#[must_use]
pub const fn wire_level(level: log::Level) -> u8 {
    match level {
        log::Level::Error => 1,
        log::Level::Warn => 2,
        log::Level::Info => 3,
        log::Level::Debug => 4,
        log::Level::Trace => 5,
    }
}

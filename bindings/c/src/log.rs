//! Logs: a callback of the program gets what host and firmware say.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, Once, PoisonError};

use log::{Level, LevelFilter, Log, Metadata};
use pto_host::LogMessage;

use crate::argument::invalid;
use crate::error::{answer, c_text};

/// Gets a message. `instance` is the AICPU instance that logged it, or UINT32_MAX for the host; `time_ns` is the
/// instance's clock, or 0; `text` is valid until the callback returns.
pub type LogCallback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        level: u32,
        instance: u32,
        time_ns: u64,
        text: *const c_char,
    ),
>;

const HOST: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Callback {
    function: LogCallback,
    user: usize,
}

static CALLBACK: Mutex<Callback> = Mutex::new(Callback { function: None, user: 0 });

fn pass_to_callback(level: Level, instance: u32, time_ns: u64, text: &str) {
    // Copied out, so that the callback may call the interface.
    let callback = *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(function) = callback.function {
        let text = c_text(text);
        let user = std::ptr::with_exposed_provenance_mut(callback.user);
        // SAFETY: the caller of `pto_log_set_callback` vouches for it until it is replaced.
        unsafe { function(user, level as u32, instance, time_ns, text.as_ptr()) };
    }
}

/// Passes on what the firmware logged in a run.
pub(crate) fn pass_on(messages: &[LogMessage]) {
    for message in messages.iter().filter(|message| message.level <= log::max_level()) {
        pass_to_callback(message.level, message.instance, message.time_ns, &message.text);
    }
}

struct Host;

impl Log for Host {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, entry: &log::Record<'_>) {
        if self.enabled(entry.metadata()) {
            pass_to_callback(entry.level(), HOST, 0, &entry.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Sets the callback that gets messages up to `level` (0 none, 1 error, 2 warning, 3 information, 4 debug, 5 trace) of all
/// devices of this process; null: messages are dropped. What the firmware logs in a run comes when the run has ended, on
/// the thread that called it; what the host logs comes as it happens, on any thread.
///
/// Fails with INVALID_ARGUMENT for another level. Thread safety: any thread. A callback that is being called when it is
/// replaced still finishes.
///
/// # Safety
/// `callback` may be called on any thread with `user` until it is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pto_set_log_callback(
    callback: LogCallback,
    user: *mut c_void,
    level: u32,
) -> i32 {
    static INSTALL: Once = Once::new();
    answer(|| {
        let filter = LevelFilter::iter().find(|filter| *filter as usize == level as usize);
        let message = || invalid(format!("level is {level}, and must be 0 to 5"));
        let filter = filter.ok_or_else(message)?;
        // A program in Rust may have a logger of its own; then the host's messages go there.
        INSTALL.call_once(|| drop(pto_host::sim_logging::install(Host)));
        let value = Callback { function: callback, user: user.expose_provenance() };
        *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner) = value;
        log::set_max_level(if callback.is_some() { filter } else { LevelFilter::Off });
        Ok(())
    })
}

//! How often the library was initialised, and what happens the first time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::{capture, defaults, fleet, profiler};
use crate::common::entry::watch_forks;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::{codes, thread};

/// How often the library was initialised.
static COUNT: Mutex<u64> = Mutex::new(0);

fn count() -> MutexGuard<'static, u64> {
    COUNT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Initialises the library. A repeated call is counted, and returns a code that says so: the first configuration holds.
pub(crate) fn initialise(configuration: Configuration) -> Answer {
    let mut count = count();
    *count += 1;
    if *count == 1 {
        configuration.hold();
        watch_forks();
        profiler::trace_program();
        return Ok(());
    }
    let text = "the library is initialised already; each call counts, and is to be finalised";
    Err(Refusal::new(codes::ALREADY_INITIALISED, text))
}

/// Takes every initialisation back.
pub(crate) fn finalise() -> Answer {
    let was = std::mem::take(&mut *count());
    require(was > 0, || {
        let text = "the library is not initialised; finalise it once";
        Refusal::new(codes::ALREADY_FINALISED, text)
    })?;
    end();
    Ok(())
}

/// The last initialisation was taken back.
fn end() {
    Configuration::default().hold();
    capture::abandon_all();
}

/// Takes one initialisation back, and says how many are left.
pub(crate) fn finalise_once() -> Answer<u64> {
    let mut count = count();
    require(*count > 0, || {
        let text = "the library is not initialised; finalise it as often as it was";
        Refusal::new(codes::ALREADY_FINALISED, text)
    })?;
    *count -= 1;
    if *count == 0 {
        end();
    }
    Ok(*count)
}

/// What a configuration asks for: a file with a JSON object. Other keys than these are for parts that this library does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Configuration {
    /// The device of threads that set none: `defaultDevice.default_device`.
    device: Option<i32>,
    /// Whether messages are those of all threads: `err_msg_mode` 1.
    has_messages_of_all: bool,
}

impl Configuration {
    /// Reads a file.
    pub(crate) fn read(path: &str) -> Answer<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let text = format!("the configuration {path} cannot be read: {error}");
            Refusal::new(codes::INVALID_FILE, text)
        })?;
        let refuse = |why: String| {
            Refusal::new(codes::UNREADABLE_FILE, format!("the configuration {path}: {why}"))
        };
        let object: Map<String, Value> =
            serde_json::from_str(&text).map_err(|why| refuse(format!("no JSON object: {why}")))?;
        let device = object.get("defaultDevice").and_then(|device| device.get("default_device"));
        let device = device.map(|value| {
            let number = number(value).and_then(|number| i32::try_from(number).ok());
            let number = number
                .ok_or_else(|| refuse(format!("default_device is {value}; write a number")))?;
            fleet::check(number).map(|_| number)
        });
        let mode = object.get("err_msg_mode").map(|value| match number(value) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(refuse(format!(
                "err_msg_mode is {value}; write 0 for messages of the thread, 1 for those of the process"
            ))),
        });
        Ok(Self {
            device: device.transpose()?,
            has_messages_of_all: mode.transpose()?.unwrap_or(false),
        })
    }

    /// From now on what it asks for holds.
    fn hold(self) {
        defaults::set(self.device);
        thread::share_messages(self.has_messages_of_all);
    }
}

/// A number, which may be in quotes.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

//! How often the library was initialised, and what happens the first time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::profiler;
use crate::common::codes;
use crate::common::entry::watch_forks;
use crate::common::refusal::{Answer, Refusal, require};

/// How often the library was initialised.
static COUNT: Mutex<u64> = Mutex::new(0);

fn count() -> MutexGuard<'static, u64> {
    COUNT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Initialises the library. Once more counts, and is told.
pub(crate) fn initialise() -> Answer {
    let mut count = count();
    *count += 1;
    if *count == 1 {
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
    })
}

/// Takes one initialisation back, and says how many are left.
pub(crate) fn finalise_once() -> Answer<u64> {
    let mut count = count();
    require(*count > 0, || {
        let text = "the library is not initialised; finalise it as often as it was";
        Refusal::new(codes::ALREADY_FINALISED, text)
    })?;
    *count -= 1;
    Ok(*count)
}

/// A configuration is a file with a JSON object; the library takes its defaults whatever stands there.
pub(crate) fn check_config(path: &str) -> Answer {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Refusal::new(
            codes::INVALID_FILE,
            format!("the configuration {path} cannot be read: {error}"),
        )
    })?;
    require(text.trim_start().starts_with('{'), || {
        Refusal::new(codes::INVALID_FILE, format!("the configuration {path} is no JSON object"))
    })
}

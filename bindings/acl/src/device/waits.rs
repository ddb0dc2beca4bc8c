//! Waits of the host that no session makes for it, and queries, which take time too.

use std::time::{Duration, Instant};

use pto_host::session::Others as _;

use super::fleet::{self, Fleet};
use super::settings::settings;

/// What a query of a stream or an event takes, at most, where nothing can be done meanwhile.
const QUERY: Duration = Duration::from_micros(10);
/// How long the host sleeps between two looks at a word of another device or process.
const LOOK: Duration = Duration::from_micros(50);

/// Whether the devices are in virtual time.
pub(crate) fn are_virtual() -> bool {
    settings().seed.is_some()
}

/// A query has found that something is not over. In virtual time the devices get on with the call.
#[cold]
pub(crate) fn query_takes_time() {
    if are_virtual() {
        fleet::step(QUERY);
    }
}

/// Waits until something is met, at most for `limit`; gives how long it has waited in vain. In virtual time it steps the devices, and gives up when
/// no thread can act any more.
pub(crate) fn wait_until(
    limit: Option<Duration>,
    mut is_met: impl FnMut() -> bool,
) -> Result<(), Duration> {
    let start = Instant::now();
    let mut quiet: Option<Instant> = None;
    while !is_met() {
        if limit.is_some_and(|limit| start.elapsed() >= limit) {
            return Err(start.elapsed());
        }
        if !are_virtual() {
            std::thread::sleep(LOOK);
            continue;
        }
        match Fleet.pause(limit.is_some()) {
            None => quiet = None,
            // A thread may have acted just before it could not any more.
            Some(_) if is_met() => break,
            Some(needed) if quiet.get_or_insert_with(Instant::now).elapsed() >= needed => {
                return Err(start.elapsed());
            }
            Some(_) => {}
        }
    }
    Ok(())
}

//! Races between streams, and memory that is given back too early: rules of the validation layer. It costs nothing while that is off.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::checks::{self, CallTrace, MisuseRule};
use super::order::{HappensBefore, LaneNumber, MemoryAccess, Touch};

const RACE: MisuseRule = MisuseRule {
    name: "ACL-RACE-01",
    remedy: "let one stream wait for an event of the other one, or wait on the host between the two calls",
};
const FREED_IN_USE: MisuseRule = MisuseRule {
    name: "ACL-MEMORY-02",
    remedy: "wait for the stream, or for an event after the last use, before memory is freed",
};

/// What is known, and the reports that were made: a loop gets one.
struct State {
    order: HappensBefore<CallTrace>,
    reported: BTreeSet<String>,
}

static STATE: Mutex<State> =
    Mutex::new(State { order: HappensBefore::new(), reported: BTreeSet::new() });

/// The order, while the layer is on.
fn with(look: impl FnOnce(&mut State)) {
    if checks::is_on() {
        let mut state: MutexGuard<'_, State> = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut state);
    }
}

/// A command is submitted to a lane.
#[inline]
pub(crate) fn submitted(lane: LaneNumber, touches: &[Touch]) {
    if checks::is_on() {
        note_submitted(lane, touches);
    }
}

#[cold]
fn note_submitted(lane: LaneNumber, touches: &[Touch]) {
    with(|state| {
        let races = state.order.submit(lane, touches, &CallTrace::here());
        for (touch, access) in races {
            state.race(&touch, &access);
        }
    });
}

/// The host itself reads or writes memory in this call.
pub(crate) fn host_uses(touches: &[Touch]) {
    with(|state| {
        for touch in touches {
            for access in state.order.host_uses(touch) {
                state.race(touch, &access);
            }
        }
    });
}

/// A lane records an event, or raises a notify: `signal` is its handle.
pub(crate) fn recorded(lane: LaneNumber, signal: usize) {
    with(|state| state.order.record(lane, signal));
}

/// A lane waits for the last record of an event.
pub(crate) fn waits(lane: LaneNumber, signal: usize) {
    with(|state| state.order.wait(lane, signal));
}

/// A lane waits for a notify, and takes it.
pub(crate) fn takes(lane: LaneNumber, signal: usize) {
    with(|state| state.order.take(lane, signal));
}

/// A lane waits for something that this library does not see: a word, another process, a later record.
pub(crate) fn waits_for_unknown(lane: LaneNumber) {
    with(|state| state.order.wait_for_unknown(lane));
}

/// The host knows that a lane has nothing left; a function of the host in the lane may report that as well.
pub(crate) fn ended(lane: LaneNumber) {
    with(|state| state.order.end(lane));
}

/// The host knows that an event is complete.
pub(crate) fn seen(signal: usize) {
    with(|state| state.order.see(signal));
}

/// The program gives memory back.
pub(crate) fn freed(start: usize, bytes: usize) {
    let made = checks::made(start);
    with(|state| {
        for access in state.order.free(start, bytes) {
            let text = format!(
                "{bytes} bytes at {start:#x}{made} are freed, and a command that has them {} may still run, submitted by {}",
                access.touch.how.name(),
                access.site
            );
            state.report(FREED_IN_USE, &text);
        }
    });
}

/// The device has forgotten what used this memory.
pub(crate) fn forget(start: usize, bytes: usize) {
    with(|state| drop(state.order.free(start, bytes)));
}

impl State {
    fn race(&mut self, touch: &Touch, access: &MemoryAccess<CallTrace>) {
        let other = &access.touch;
        let text = format!(
            "{} bytes at {:#x} are {} here, and {} bytes at {:#x} are {} by a command of another stream, submitted by {}; nothing orders \
             the two",
            touch.bytes,
            touch.start,
            touch.how.name(),
            other.bytes,
            other.start,
            other.how.name(),
            access.site
        );
        self.report(RACE, &text);
    }

    fn report(&mut self, rule: MisuseRule, text: &str) {
        // Addresses differ from round to round of a loop; the locations do not.
        let pattern: String = text
            .split("0x")
            .map(|part| part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
            .collect();
        if self.reported.insert(format!("{}{pattern}", checks::here())) {
            checks::report(rule, text);
        }
    }
}

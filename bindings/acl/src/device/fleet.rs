//! The devices of this process: opened when a thread sets them, and their primary contexts. In virtual time a thread that waits steps all of them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pto_host::session::Others;

use super::context::{CONTEXTS, Context};
use super::mapping;
use super::open::Open;
use super::settings::settings;
use super::threads::{self, Waits};
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal};
use crate::common::table::{Found, Handle};

/// One device that the program sees.
#[derive(Default)]
struct Slot {
    open: OnceLock<Arc<Open>>,
    opening: Mutex<()>,
    primary: Mutex<Primary>,
}

/// The primary context of a device, and how often it was set.
#[derive(Default)]
pub(crate) struct Primary {
    pub(crate) count: u32,
    pub(crate) context: Option<Arc<Context>>,
}

fn slots() -> &'static [Slot] {
    static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();
    SLOTS.get_or_init(|| settings().devices.iter().map(|_| Slot::default()).collect())
}

/// How many devices there are.
pub(crate) fn count() -> usize {
    slots().len()
}

/// Refuses a number that is of no device.
pub(crate) fn check(device: i32) -> Answer<usize> {
    let index = usize::try_from(device).ok().filter(|index| *index < count());
    index.ok_or_else(|| {
        let text = format!("there is no device {device}; this process sees {}", count());
        Refusal::new(codes::BAD_DEVICE, text)
    })
}

/// Opens a device, or gives the one that is open.
pub(crate) fn open(device: i32) -> Answer<Arc<Open>> {
    let slot = &slots()[check(device)?];
    let _opening = slot.opening.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = slot.open.get() {
        return Ok(Arc::clone(open));
    }
    let open = Open::new(device, &Fleet)?;
    Ok(Arc::clone(slot.open.get_or_init(|| open)))
}

/// The device, where it is open.
pub(crate) fn opened(device: i32) -> Option<Arc<Open>> {
    at(device).cloned()
}

/// As [`opened`], without a count of references: a device that is open stays so.
#[inline]
pub(crate) fn at(device: i32) -> Option<&'static Arc<Open>> {
    slots().get(usize::try_from(device).ok()?)?.open.get()
}

/// What may end a wait in a session: the other devices, and threads outside of them.
pub(crate) struct Fleet;

/// How long a thread that waits lets others act before it looks again.
const PAUSE: Duration = Duration::from_micros(500);

impl Others for Fleet {
    fn quiet(&self) -> Option<Duration> {
        if mapping::may_processes_act() { None } else { threads::quiet() }
    }

    fn pause(&self, has_limit: bool) -> Option<Duration> {
        let waits = (!has_limit).then(Waits::begin);
        let quiet = self.quiet();
        // Another device may do what this thread waits for, or the last call of a thread that cannot act any more.
        if step(if has_limit { PAUSE } else { Duration::MAX }) {
            return None;
        }
        if quiet != Some(Duration::ZERO) {
            std::thread::sleep(PAUSE);
        }
        drop(waits);
        quiet
    }
}

/// Every device that is open.
pub(crate) fn all_opened() -> impl Iterator<Item = Arc<Open>> {
    slots().iter().filter_map(|slot| slot.open.get().cloned())
}

/// One step of each device in virtual time that no other thread steps just now, in which at most `idle` passes with nothing done; whether anything was done.
pub(crate) fn step(idle: Duration) -> bool {
    let opened = slots().iter().filter_map(|slot| slot.open.get());
    opened.fold(false, |worked, open| open.session.step(idle) | worked)
}

/// The device that an address belongs to.
#[inline]
pub(crate) fn owner(address: usize) -> Option<&'static Arc<Open>> {
    let mut opened = slots().iter().filter_map(|slot| slot.open.get());
    opened.find(|open| open.has(address))
}

/// Looks at the primary context of a device.
pub(crate) fn with_primary<R>(device: i32, look: impl FnOnce(&mut Primary) -> R) -> Answer<R> {
    let slot = &slots()[check(device)?];
    Ok(look(&mut slot.primary.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// The context with this handle, unless it was destroyed.
pub(crate) fn context(handle: Handle) -> Answer<Found<'static, Context>> {
    CONTEXTS.find(handle).ok_or_else(|| {
        let text = "the context was destroyed; set another one";
        Refusal::new(codes::NO_CONTEXT, text)
    })
}

//! The devices of this process: opened when somebody sets them, and their primary contexts.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::context::{CONTEXTS, Context};
use super::open::Open;
use super::settings::settings;
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
    let open = Open::new(device)?;
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

/// Every device that is open.
pub(crate) fn all_opened() -> impl Iterator<Item = Arc<Open>> {
    slots().iter().filter_map(|slot| slot.open.get().cloned())
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

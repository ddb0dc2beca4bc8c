//! `host_api`: functions without a context argument. Each `Runtime` object that lives has a slot, and functions of its
//! own that know the slot, so that objects of several devices and threads do not disturb each other.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use super::state::State;
use crate::failure::{Failure, FailureKind};
use crate::foreign::object::HostApi;
use crate::guard::called_back;

/// `Runtime` objects that can live at once in one process.
const SLOTS: usize = 64;

static STATES: [Mutex<Option<Arc<State>>>; SLOTS] = [const { Mutex::new(None) }; SLOTS];

/// A slot, given back on drop.
#[derive(Debug)]
pub(super) struct Slot(usize);

impl Slot {
    /// Takes a free one for `state`.
    pub(super) fn take(state: &Arc<State>) -> Result<Self, Failure> {
        for (number, entry) in STATES.iter().enumerate() {
            let mut state_of_slot = entry.lock().unwrap_or_else(PoisonError::into_inner);
            if state_of_slot.is_none() {
                *state_of_slot = Some(Arc::clone(state));
                return Ok(Self(number));
            }
        }
        let message = format!("{SLOTS} Runtime objects live in this process");
        Err(Failure::new(FailureKind::RUNTIMES_LIMIT, message))
    }

    /// The slot's number.
    pub(super) fn number(&self) -> usize {
        self.0
    }

    /// The slot's functions.
    pub(super) fn api(&self) -> HostApi {
        APIS[self.0]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *STATES[self.0].lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Acts on the state in a slot; `failed` where there is none, or Rust panics. A failure is remembered.
fn on<R: Copy>(
    slot: usize,
    failed: R,
    is_fatal: IsFatal,
    act: impl FnOnce(&State) -> Result<R, Failure>,
) -> R {
    called_back(failed, || {
        let state = STATES[slot].lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(state) = state else { return failed };
        act(&state).unwrap_or_else(|failure| {
            let mut inner = state.inner();
            match is_fatal {
                IsFatal::Yes => inner.fail(failure),
                IsFatal::No => inner.last = Some(failure),
            }
            failed
        })
    })
}

/// Whether a source can go on after a failure.
#[derive(Clone, Copy)]
enum IsFatal {
    Yes,
    /// The result reports the failure, and the source may ask for less.
    No,
}

unsafe extern "C" fn device_malloc<const SLOT: usize>(size: usize) -> *mut c_void {
    on(SLOT, std::ptr::null_mut(), IsFatal::No, |state| {
        let given = state.device.memory().alloc(size as u64)?;
        state.inner().live.insert(given.0);
        let address = usize::try_from(state.alias().seen(given.0)).unwrap_or(0);
        Ok(std::ptr::with_exposed_provenance_mut(address))
    })
}

unsafe extern "C" fn device_free<const SLOT: usize>(pointer: *mut c_void) {
    on(SLOT, (), IsFatal::Yes, |state| {
        let freed = state.address(pointer);
        state.device.memory().free(freed)?;
        let mut inner = state.inner();
        inner.live.remove(&freed.0);
        // It was recorded, and the source has freed it itself.
        inner.allocs.retain(|alloc| alloc.dev_ptr != pointer);
        Ok(())
    });
}

unsafe extern "C" fn copy_to_device<const SLOT: usize>(
    to: *mut c_void,
    from: *const c_void,
    size: usize,
) -> c_int {
    on(SLOT, -1, IsFatal::Yes, |state| {
        check_host(from, size)?;
        // SAFETY: not null; the source says that there are as many bytes.
        let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
        state.device.memory().copy_to_device(state.address(to), from)?;
        Ok(0)
    })
}

unsafe extern "C" fn copy_from_device<const SLOT: usize>(
    to: *mut c_void,
    from: *const c_void,
    size: usize,
) -> c_int {
    on(SLOT, -1, IsFatal::Yes, |state| {
        check_host(to, size)?;
        // SAFETY: not null; the source says that there are as many bytes.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), size) };
        state.device.memory().copy_from_device(state.address(from.cast_mut()), to)?;
        Ok(0)
    })
}

fn check_host(pointer: *const c_void, size: usize) -> Result<(), Failure> {
    if pointer.is_null() || isize::try_from(size).is_err() {
        let message = format!("a copy of {size} bytes with the host buffer {pointer:?}");
        return Err(Failure::new(FailureKind::INVALID_ARGUMENT, message));
    }
    Ok(())
}

const fn api<const SLOT: usize>() -> HostApi {
    HostApi {
        device_malloc: device_malloc::<SLOT>,
        device_free: device_free::<SLOT>,
        copy_to_device: copy_to_device::<SLOT>,
        copy_from_device: copy_from_device::<SLOT>,
    }
}

macro_rules! apis {
    ($($number:literal)*) => { [$( api::<$number>() ),*] };
}

static APIS: [HostApi; SLOTS] = apis!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
);

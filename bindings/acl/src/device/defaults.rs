//! The device of threads that have set none, where the configuration of `aclInit` names one.

use std::sync::atomic::{AtomicI32, Ordering};

const NONE: i32 = -1;

static DEVICE: AtomicI32 = AtomicI32::new(NONE);

/// Names it, or takes the name back.
pub(crate) fn set(device: Option<i32>) {
    // Relaxed: threads that begin later see it, and a thread that calls at the same moment may or may not.
    DEVICE.store(device.unwrap_or(NONE), Ordering::Relaxed);
}

/// The device.
pub(crate) fn device() -> Option<i32> {
    // Relaxed: as for `set`.
    Some(DEVICE.load(Ordering::Relaxed)).filter(|device| *device != NONE)
}

//! Access between devices. Devices of one process can always reach each other's memory; the interface still requires a program to enable
//! that access.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fleet;
use crate::common::refusal::{Answer, Refusal, require};

/// The pairs (from, to) that are switched on.
static ENABLED: Mutex<BTreeSet<(i32, i32)>> = Mutex::new(BTreeSet::new());

fn enabled() -> MutexGuard<'static, BTreeSet<(i32, i32)>> {
    ENABLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Switches the access of a device to its peer on; again is no mistake.
pub(crate) fn enable(device: i32, peer: i32) -> Answer {
    fleet::open(peer)?;
    enabled().insert((device, peer));
    Ok(())
}

/// Switches it off.
pub(crate) fn disable(device: i32, peer: i32) -> Answer {
    let was = enabled().remove(&(device, peer));
    require(was, || {
        Refusal::value(format!("access to device {peer} is not enabled; enable it first"))
    })
}

/// Whether it is on.
pub(crate) fn is_enabled(device: i32, peer: i32) -> bool {
    enabled().contains(&(device, peer))
}

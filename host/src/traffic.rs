//! Counts the bytes that are copied. The memory of the device counts them itself, so that no copy is missed.
//!
//! The memory of a device counts what the host copies itself, and the copy workers of a session count what streams copy.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that were moved in and out of a device's memory since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From the host to the device.
    pub to_device_bytes: u64,
    /// From the device to the host.
    pub to_host_bytes: u64,
    /// From one address of the device to another.
    pub on_device_bytes: u64,
    /// Filled with one byte.
    pub filled_bytes: u64,
}

/// Where bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrafficKind {
    ToDevice,
    ToHost,
    OnDevice,
    Filled,
}

/// The counters, by kind.
#[derive(Debug, Default)]
pub(crate) struct TrafficCounters([AtomicU64; 4]);

impl TrafficCounters {
    pub(crate) fn count(&self, kind: TrafficKind, bytes: u64) {
        self.0[kind as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Traffic {
        let of = |kind: TrafficKind| self.0[kind as usize].load(Ordering::Relaxed);
        Traffic {
            to_device_bytes: of(TrafficKind::ToDevice),
            to_host_bytes: of(TrafficKind::ToHost),
            on_device_bytes: of(TrafficKind::OnDevice),
            filled_bytes: of(TrafficKind::Filled),
        }
    }
}

//! Counters of what stitched programs cost besides their kernels: copies, conversions, allocations.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::traffic::Traffic;

/// Declares the counters of a stitcher: what is counted, one by one, and their state at a moment.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// What was moved, and what was done for it: since the device was opened, or between two moments ([`Counters::since`]).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            /// What was moved in and out of the memory of the device, by whomever.
            pub traffic: Traffic,
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters while they count.
        #[derive(Debug, Default)]
        pub(super) struct Counts {
            $(pub(super) $name: Count,)*
        }

        impl Counts {
            pub(super) fn read(&self, traffic: Traffic) -> Counters {
                Counters { traffic, $($name: self.$name.get(),)* }
            }
        }

        impl Counters {
            /// What came to be since an earlier moment.
            #[must_use]
            pub fn since(&self, before: &Self) -> Self {
                Self { traffic: since(self.traffic, before.traffic), $($name: self.$name - before.$name,)* }
            }

            /// Every counter with its name.
            #[must_use]
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                let Traffic { to_device_bytes, to_host_bytes, on_device_bytes, filled_bytes } = self.traffic;
                vec![
                    ("copied_to_device_bytes", to_device_bytes),
                    ("copied_to_host_bytes", to_host_bytes),
                    ("copied_on_device_bytes", on_device_bytes),
                    ("filled_bytes", filled_bytes),
                    $((stringify!($name), self.$name),)*
                ]
            }
        }
    };
}

counters! {
    /// Bytes of the tensors that conversions wrote.
    converted_bytes;
    /// Conversions.
    conversions;
    /// Bytes of tensors that should have been on the chip, found no room there, and were used in the memory of the device.
    bounced_bytes;
    /// Blocks that were taken from the memory of the device.
    allocations;
    /// Blocks that were taken from the pool.
    pool_hits;
    /// Runs of programs, those of conversions among them.
    runs;
    /// Runs whose bindings were in the memory of the device already.
    binding_hits;
    /// Launches: a launch expands one program, or several of a stream that overlaps them.
    launches;
}

/// One counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn since(now: Traffic, before: Traffic) -> Traffic {
    Traffic {
        to_device_bytes: now.to_device_bytes - before.to_device_bytes,
        to_host_bytes: now.to_host_bytes - before.to_host_bytes,
        on_device_bytes: now.on_device_bytes - before.on_device_bytes,
        filled_bytes: now.filled_bytes - before.filled_bytes,
    }
}

impl Counters {
    /// Bytes that were copied, whichever way.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        let Traffic { to_device_bytes, to_host_bytes, on_device_bytes, .. } = self.traffic;
        to_device_bytes + to_host_bytes + on_device_bytes
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> =
            self.all().iter().map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(&texts.join(", "))
    }
}

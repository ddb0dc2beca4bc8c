//! What an address of the device turned out to be, for the errors about memory.

use std::fmt;

use pto_abi::GmAddr;

/// The state of an address that was expected to be an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressState {
    /// Not an address of this device's GM.
    OutsideGm,
    /// GM that is not allocated.
    Free,
    /// A live allocation; the address may be in its middle.
    Allocation {
        /// Where it starts.
        start: GmAddr,
        /// Its size.
        bytes: u64,
    },
    /// The runtime's own arena.
    Runtime,
    /// Memory that its user has freed, and that a run may still touch.
    Freed,
}

impl fmt::Display for AddressState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutsideGm => write!(f, "outside the device's GM"),
            Self::Free => write!(f, "in GM that is not allocated"),
            Self::Allocation { start, bytes } => {
                write!(f, "in the allocation of {bytes} bytes at {start}")
            }
            Self::Runtime => write!(f, "in the runtime's own arena"),
            Self::Freed => write!(f, "in memory that was freed during a run"),
        }
    }
}

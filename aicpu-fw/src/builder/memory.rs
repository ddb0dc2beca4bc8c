//! What a builder reads and writes of the memory of the device.

use pto_abi::{FuncId, GmAddr};

/// What a builder reads of the device in addition to the shared state.
pub trait DeviceMemory {
    /// Where the code of `func_id` is; null: not registered.
    fn kernel_addr(&self, func_id: FuncId) -> GmAddr;

    /// The word of GM at `address`; `None`: outside GM, or not aligned.
    fn read_u32(&self, address: GmAddr) -> Option<u32>;

    /// Whether [`read_element`](Self::read_element) could read an element there. Nothing is read: a kernel may be writing it.
    fn has_element(&self, _address: GmAddr, _bytes: u64) -> bool {
        false
    }

    /// The element of `bytes` bytes (1, 2, 4 or 8) at `address`; `None`: outside GM, or not aligned. Only for an element that
    /// no task under way writes.
    fn read_element(&self, _address: GmAddr, _bytes: u64) -> Option<u64> {
        None
    }

    /// Writes an element, as [`read_element`](Self::read_element) reads it.
    fn write_element(&self, _address: GmAddr, _bytes: u64, _value: u64) -> Option<()> {
        None
    }
}

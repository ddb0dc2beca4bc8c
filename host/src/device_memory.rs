//! The memory of a device as a value of its own, so that it can be used while the device runs.

use std::fmt;
use std::sync::Arc;

use pto_abi::GmAddr;

use crate::allocator::Owner;
use crate::device::Device;
use crate::error::Error;
use crate::memory::Memory;
use crate::traffic::Traffic;

/// The memory of a device: as [`Device::alloc`] and its neighbours, on any thread and during runs.
///
/// It stays mapped as long as one of these lives. What is copied while a kernel writes it is not specified.
#[derive(Clone)]
pub struct DeviceMemory(Arc<Memory>);

impl Device {
    /// A handle on the device's memory that does not borrow the device.
    #[must_use]
    pub fn memory(&self) -> DeviceMemory {
        DeviceMemory(Arc::clone(self.shared_memory()))
    }
}

impl DeviceMemory {
    pub(crate) fn of(memory: Arc<Memory>) -> Self {
        Self(memory)
    }

    /// Allocates GM, aligned to 64 bytes; its bytes are not initialised to anything in particular.
    ///
    /// # Errors
    /// `ZeroSize`, `OutOfMemory`.
    pub fn alloc(&self, bytes: u64) -> Result<GmAddr, Error> {
        self.0.alloc(bytes, Owner::User)
    }

    /// Frees what [`DeviceMemory::alloc`] or [`Device::alloc`] returned. It is invalid at once; during a run, it can be
    /// allocated again only when that run has ended.
    ///
    /// # Errors
    /// `DoubleFree`, `ForeignPointer`.
    pub fn free(&self, address: GmAddr) -> Result<(), Error> {
        self.0.free(address, Owner::User)
    }

    /// Copies `from` to `to`; the range lies in one live allocation.
    ///
    /// # Errors
    /// `CopyOutOfRange`; nothing was copied.
    pub fn copy_to_device(&self, to: GmAddr, from: &[u8]) -> Result<(), Error> {
        self.0.copy_in(to, from)
    }

    /// Fills `to` from `from`; the range lies in one live allocation.
    ///
    /// # Errors
    /// `CopyOutOfRange`; nothing was copied.
    pub fn copy_from_device(&self, from: GmAddr, to: &mut [u8]) -> Result<(), Error> {
        self.0.copy_out(from, to)
    }

    /// Bytes that users have allocated and not freed.
    #[must_use]
    pub fn user_bytes(&self) -> u64 {
        self.0.user_bytes()
    }

    /// What was moved in and out of it so far, by whomever.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.0.traffic().read()
    }

    /// The address of its first byte.
    #[must_use]
    pub fn address(&self) -> GmAddr {
        self.0.gm().address()
    }

    /// The live allocation that `address` is in: its address and its bytes.
    #[must_use]
    pub fn allocation(&self, address: GmAddr) -> Option<(GmAddr, u64)> {
        self.0.allocation(address)
    }

    pub(crate) fn shared(&self) -> &Arc<Memory> {
        &self.0
    }

    /// Size of GM in bytes, and the bytes of it that are free.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        (self.0.gm().bytes(), self.0.free_bytes().0)
    }
}

impl fmt::Debug for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, free) = self.size();
        write!(f, "{bytes} bytes of GM, {free} of them free")
    }
}

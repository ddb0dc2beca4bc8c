//! A typed allocation in GM that frees itself.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use pto_abi::GmAddr;

use crate::allocator::Owner;
use crate::error::Error;
use crate::memory::Memory;

/// `len` values of plain data in GM; frees its memory on drop.
///
/// It may be dropped while a run uses it: its memory is not given to anybody else before that run has ended. What is read
/// while a run writes it is not specified.
pub struct DeviceBuffer<T> {
    memory: Arc<Memory>,
    address: GmAddr,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Pod> DeviceBuffer<T> {
    /// A buffer with a copy of `values`.
    pub(crate) fn upload(memory: &Arc<Memory>, values: &[T]) -> Result<Self, Error> {
        let address = memory.alloc(Self::bytes_for(values.len())?, Owner::User)?;
        let buffer = Self::adopt(memory, address, values.len());
        buffer.write(values)?;
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    pub(crate) fn zeroed(memory: &Arc<Memory>, len: usize) -> Result<Self, Error> {
        let address = memory.alloc_zeroed(Self::bytes_for(len)?, Owner::User)?;
        Ok(Self::adopt(memory, address, len))
    }

    /// Size in bytes of `len` values.
    fn bytes_for(len: usize) -> Result<u64, Error> {
        let (count, element_bytes) = (len as u64, size_of::<T>() as u64);
        count.checked_mul(element_bytes).ok_or(Error::SizeOverflow { count, element_bytes })
    }

    /// Takes over an allocation of a user with room for `len` values.
    fn adopt(memory: &Arc<Memory>, address: GmAddr, len: usize) -> Self {
        Self { memory: Arc::clone(memory), address, len, values: PhantomData }
    }

    /// Whether it is in this memory.
    pub(crate) fn is_of(&self, memory: &Arc<Memory>) -> bool {
        Arc::ptr_eq(&self.memory, memory)
    }

    /// Where it is on the device.
    #[must_use]
    pub fn address(&self) -> GmAddr {
        self.address
    }

    /// How many values it holds; never zero.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies the values to the host.
    ///
    /// # Errors
    /// `CopyOutOfRange` when the memory was freed by its address in the meantime.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        self.read_first(self.len)
    }

    /// Copies the first values to the host, so many of them or all.
    pub(crate) fn read_first(&self, count: usize) -> Result<Vec<T>, Error> {
        let mut values = vec![T::zeroed(); self.len.min(count)];
        self.memory.copy_out(self.address, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// The values, without counting the copy: for words in which the device reports how a run ended.
    pub(crate) fn peek(&self) -> Result<Vec<T>, Error> {
        let mut values = vec![T::zeroed(); self.len];
        self.memory.peek(self.address, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Copies `values` to the beginning of the buffer.
    ///
    /// # Errors
    /// `CopyOutOfRange` when there are more values than elements, or the memory was freed by its address.
    pub fn write(&self, values: &[T]) -> Result<(), Error> {
        self.memory.copy_in(self.address, bytemuck::cast_slice(values))
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} at {}", self.len, std::any::type_name::<T>(), self.address)
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if let Err(error) = self.memory.free(self.address, Owner::User) {
            log::warn!("a device buffer was freed by its address before it was dropped: {error}");
        }
    }
}

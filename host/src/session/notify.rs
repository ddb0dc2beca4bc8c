//! Notifies: flags on the device that one stream raises and one stream waits for, and lowers when it has seen them.

use std::sync::Arc;

use pto_abi::GmAddr;

use crate::buffer::DeviceBuffer;
use crate::memory::Memory;
use crate::session::error::SessionError;

/// A flag in GM. It is raised by [`Stream::notify`](crate::Stream::notify), and lowered by [`Stream::wait_notify`](crate::Stream::wait_notify),
/// which waits for it. One stream at a time may wait for it. Kernels and other devices may raise it as well: it is the word at
/// [`address`](Self::address), and 1 means raised.
#[derive(Clone, Debug)]
pub struct Notify(Arc<DeviceBuffer<u64>>);

impl Notify {
    pub(super) fn new(memory: &Arc<Memory>) -> Result<Self, SessionError> {
        Ok(Self(Arc::new(DeviceBuffer::zeroed(memory, 1)?)))
    }

    /// Whether it is in this memory.
    pub(super) fn is_of(&self, memory: &Arc<Memory>) -> bool {
        self.0.is_of(memory)
    }

    /// Where its word is.
    #[must_use]
    pub fn address(&self) -> GmAddr {
        self.0.address()
    }
}

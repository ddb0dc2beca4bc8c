//! Copies between this process and memory that is not mapped here.

use pto_abi::GmAddr;

use super::error::A2a3Error;

/// Copies between this process and a device's memory. Each call has ended when it returns.
pub(crate) trait Dma: Send + Sync {
    /// Copies to the device.
    fn to_device(&self, to: GmAddr, from: &[u8]) -> Result<(), A2a3Error>;
    /// Copies to this process.
    fn to_host(&self, from: GmAddr, to: &mut [u8]) -> Result<(), A2a3Error>;
    /// Sets every byte of the range.
    fn fill(&self, to: GmAddr, bytes: u64, byte: u8) -> Result<(), A2a3Error>;
}

//! What builders read of GM, they read as the host's DMA wrote it.

use crate::c_builder::DeviceReads;
use pto_abi::GmAddr;
use pto_abi::gm::GmWindow;

use crate::cann::coherence::Coherence;

/// Reads of this device.
#[derive(Clone)]
pub struct FreshReads {
    /// All of GM.
    pub gm: GmWindow<'static>,
    /// How the host writes it.
    pub coherence: Coherence,
}

impl DeviceReads for FreshReads {
    fn look(&self, address: GmAddr, bytes: u64) {
        self.coherence.look(self.gm, address, bytes);
    }
}

//! The transport between ranks in virtual time: the simulated machines move the bytes, and this passes the calls of the host to them.

use std::sync::Arc;
use std::time::Duration;

use pto_sim_shim::group::{ByteRange, Transfer, TransferError};
use pto_sim_shim::virtual_time::group::VirtualNet;

use super::transport::{Completion, RankLocation, Transport};

/// One rank.
pub(super) struct VirtualTransport {
    pub(super) net: Arc<VirtualNet>,
    pub(super) rank: u32,
    pub(super) size: u32,
}

impl Transport for VirtualTransport {
    fn location(&self) -> RankLocation {
        let host = "the machine in virtual time".to_owned();
        let ranks_per_node = self.net.profile().ranks_per_node.min(self.size);
        RankLocation { rank: self.rank, size: self.size, host, ranks_per_node }
    }

    fn map(&self, _: u32, memory: ByteRange) -> Result<(), TransferError> {
        self.net.map(self.rank, memory);
        Ok(())
    }

    fn begin(&self, run: u64) -> Result<(), TransferError> {
        // Of all ranks at once, before any of them runs.
        if self.rank == 0 {
            self.net.begin(run);
        }
        Ok(())
    }

    fn start(&self, _: u64, _: &Transfer) -> Result<(), TransferError> {
        let what = "in virtual time the machine starts transfers, and no engine does".to_owned();
        Err(TransferError::Unsupported { what })
    }

    fn poll(&self, _: &mut Vec<Completion>) {}

    fn end(&self, cause: Option<&str>) {
        if let Some(cause) = cause {
            self.net.give_up(self.rank, cause);
        }
    }

    fn meet(&self, word: u64, _: Duration) -> Result<Vec<u64>, TransferError> {
        // All ranks run the work of one call of this process.
        Ok(vec![word; self.size as usize])
    }
}

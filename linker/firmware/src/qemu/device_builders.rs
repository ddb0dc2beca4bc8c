//! What builders read of GM on this machine: the host shares the memory, and caches are coherent with it.

use crate::c_builder::DeviceReads;
use pto_abi::GmAddr;
use pto_aicpu_fw::Launch;
use pto_graph::BuilderSet;

/// Reads of this machine.
#[derive(Clone)]
pub(crate) struct CoherentReads;

impl DeviceReads for CoherentReads {
    const STREAMS: bool = crate::qemu::STREAMS;

    fn look(&self, _: GmAddr, _: u64) {}
}

/// The builders of one launch.
pub(crate) type DeviceBuilders<B> = crate::c_builder::DeviceBuilders<B, CoherentReads>;

/// The builders of `set` for a checked launch.
pub(crate) fn of<B: BuilderSet>(set: B, launch: &Launch<'static>) -> DeviceBuilders<B> {
    DeviceBuilders::new(set, launch.arena.window(), CoherentReads)
}

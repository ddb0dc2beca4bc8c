//! A run, as a transfer engine sees it, and what the machine calls an engine for.

use pto_abi::{Fault, TaskId};
use pto_aicpu_fw::Launch;
use pto_aicpu_fw::transfers::{Posted, TransferPort};

use crate::clock;

/// The transfers of one run of a device.
pub struct RunPort {
    launch: Launch<'static>,
    port: TransferPort<'static>,
}

impl RunPort {
    pub(crate) fn new(launch: &Launch<'static>) -> Self {
        let launch = launch.clone().with_block_shapes();
        Self { port: TransferPort::new(launch.state), launch }
    }

    /// Takes the transfer that became ready first.
    #[must_use]
    pub fn take(&self) -> Option<Posted> {
        self.port.take()
    }

    /// A transfer that was taken is over.
    pub fn finish(&self, task: TaskId) {
        self.port.finish(task);
    }

    /// Whether the run has ended with a fault.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.port.has_failed()
    }

    /// Ends the run with a fault, for this transfer if there is one.
    pub fn fail(&self, fault: Fault, task: Option<TaskId>) {
        self.fail_at(fault, task, clock::now_ns());
    }

    pub(crate) fn fail_at(&self, fault: Fault, task: Option<TaskId>, now_ns: u64) {
        if let Some(epitaph) = self.port.fail(fault, task, now_ns) {
            self.launch.arena.set_epitaph(&epitaph);
            self.port.seal();
        }
    }
}

/// The engine that moves the transfers of a device.
pub trait TransferEngine: Send + Sync {
    /// A run begins: its transfers can be taken.
    fn begin(&self, run: RunPort);

    /// A thread of the device waits, perhaps for a transfer: it moves transfers meanwhile, which is sooner than to wake up a thread that does. Whether
    /// anything moved.
    fn help(&self) -> bool;

    /// The run is over, or given up: nothing of it is touched after this call.
    fn end(&self);
}

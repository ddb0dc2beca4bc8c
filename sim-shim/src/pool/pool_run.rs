//! One run, as the threads of the pool share it.

use std::sync::Arc;

use pto_abi::CoreKind;
use pto_abi::sync::{AtomicU32, Ordering};
use pto_aicpu_fw::Launch;

use super::cores::RunCores;
use crate::doorbell::{Doorbell, longest_sleep};
use crate::group::TransferEngine;
use crate::supervisor::Finish;

/// One run, without its schedulers.
pub(super) struct PoolRun<B> {
    pub(super) launch: Launch<'static>,
    pub(super) builders: Arc<B>,
    pub(super) cores: Arc<RunCores>,
    /// Threads that may have a part in it.
    pub(super) os_threads: usize,
    doorbell: Arc<Doorbell>,
    /// Who moves its transfers, if the device is in a group.
    engine: Option<Arc<dyn TransferEngine>>,
    /// Instances that have returned.
    returned: AtomicU32,
    pub(super) finish: Arc<Finish>,
}

impl<B> PoolRun<B> {
    /// A run whose instances have all yet to return.
    pub(super) fn new(
        launch: Launch<'static>,
        (builders, doorbell, engine): (Arc<B>, Arc<Doorbell>, Option<Arc<dyn TransferEngine>>),
        (cores, os_threads): (Arc<RunCores>, usize),
        finish: &Arc<Finish>,
    ) -> Self {
        let (returned, finish) = (AtomicU32::new(0), Arc::clone(finish));
        Self { launch, builders, cores, os_threads, doorbell, engine, returned, finish }
    }

    /// Sleeps until the doorbell of the resident firmware is rung; whether it was, before it is time for the firmware to return.
    pub(super) fn park(&self) -> bool {
        self.doorbell.sleep(longest_sleep(&self.launch))
    }

    /// Whether it may have transfers.
    pub(super) fn has_transfers(&self) -> bool {
        self.engine.is_some()
    }

    /// Moves transfers while there is nothing else to do. Whether anything moved.
    pub(super) fn help_transfers(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.help())
    }

    /// Whether ready tasks are in a shared queue.
    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        CoreKind::ALL.iter().any(|&kind| !self.launch.state.queue(kind).is_empty())
    }

    /// Whether every instance of the run has returned.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release addition in `one_returned`.
        self.returned.load(Ordering::Acquire) >= self.launch.aicpu_instances
    }

    /// The instances of this thread will not return any more: the run does not wait for them.
    pub(super) fn abandon(&self) {
        // Release: as in `one_returned`.
        self.returned.fetch_add(self.launch.aicpu_instances, Ordering::Release);
    }

    /// One instance has returned.
    pub(super) fn one_returned(&self) {
        // Release: pairs with the Acquire load in `is_over`.
        self.returned.fetch_add(1, Ordering::Release);
    }
}

//! A platform whose cores a test scripts in a few words: which tasks finish when they are looked at, and what is seen of them. For
//! tests of protocols around a scheduler; `firmware/mock.rs` is the one for policy.

use std::marker::PhantomData;

use pto_abi::Fault;
use pto_abi::sync::Sharing;
use pto_aicpu_fw::Machine;
use pto_aicpu_fw::platform::{CoreStatus, Platform, Staged};

/// What a test decides and sees.
pub(crate) trait Script {
    /// A core is given this.
    fn staged(&mut self, _dispatch: Staged) {}

    /// Whether the task that a core runs has finished when the core is looked at.
    fn finishes(&mut self, _task: u32) -> bool {
        true
    }

    /// The kind with which a worker answers.
    fn kind(&self, _worker: u32) -> u32 {
        1
    }
}

/// See the module.
pub(crate) struct Stub<S, T> {
    pub(crate) script: T,
    workers: Vec<u32>,
    running: Vec<Option<u32>>,
    sharing: PhantomData<S>,
}

impl<S, T: Script> Stub<S, T> {
    /// Cores that are given things without having been attached; further ones are attached.
    pub(crate) fn new(cores: usize, script: T) -> Self {
        let running = vec![None; cores];
        Self { script, workers: Vec::new(), running, sharing: PhantomData }
    }
}

impl<S, T> Machine for Stub<S, T> {
    fn now_ns(&self) -> u64 {
        0
    }
}

impl<S: Sharing, T: Script> Platform for Stub<S, T> {
    type Sharing = S;
    type Machine = Self;

    fn machine(&mut self) -> &mut Self {
        self
    }

    fn attach(&mut self, worker: u32) {
        self.workers.push(worker);
        self.running.push(None);
    }
    fn greet(&mut self, _: usize, _: u32) {}
    fn answer(&mut self, core: usize, _: u32) -> Option<(u32, u32)> {
        let worker = *self.workers.get(core)?;
        Some((worker, self.script.kind(worker)))
    }
    fn poll(&mut self, core: usize) -> CoreStatus {
        let Some(task) = self.running[core] else { return CoreStatus::Idle };
        if !self.script.finishes(task) {
            return CoreStatus::Busy;
        }
        self.running[core] = None;
        CoreStatus::Finished
    }
    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault> {
        self.running[core] = Some(dispatch.task);
        self.script.staged(dispatch);
        Ok(())
    }
    fn commit(&mut self) {}
    fn stop(&mut self, _: usize) {}
    fn stopped(&mut self, _: usize) -> bool {
        true
    }
}

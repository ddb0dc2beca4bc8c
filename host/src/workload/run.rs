//! A workload in the memory of a device, bound and ready to run.

use pto_abi::CoreKind;
use pto_graph::plan::layout::{binding, orch};
use pto_graph::plan::task::scratch;
use pto_graph::plan::{BUILDER, record};
use pto_workload::plan::{Compiled, RunFault};

use super::bindings::{BindingError, WorkloadBindings};
use crate::{Device, DeviceBuffer, Error, RunOptions, RunReport, Work};

/// Why a workload did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Something is bound wrongly, or not at all.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// The device refuses it, or the run ended with a fault that is not the workload's.
    #[error(transparent)]
    Device(#[from] Error),
    /// The expansion stopped, or a kernel ended with a fault.
    #[error("workload {workload}: {fault}")]
    Fault {
        /// The workload.
        workload: String,
        /// The fault.
        fault: RunFault,
    },
}

/// A workload in the memory of a device. It is run any number of times; the tensors are the caller's.
#[derive(Debug)]
pub struct WorkloadRun {
    compiled: Compiled,
    plan: DeviceBuffer<u32>,
    code: Option<DeviceBuffer<u8>>,
    bindings: DeviceBuffer<u64>,
    record: DeviceBuffer<u64>,
    scratch: DeviceBuffer<u64>,
    orch_args: [u64; orch::COUNT],
}

impl WorkloadRun {
    /// Puts a workload into the memory of `device`. The tensors and arrays that it is bound to must live as long as it runs.
    ///
    /// # Errors
    /// Something is not bound, or bound and not there; the device has no room.
    pub fn bind(
        device: &Device,
        compiled: Compiled,
        bound: &WorkloadBindings,
    ) -> Result<Self, WorkloadError> {
        let mut words = bound.words(&compiled)?;
        let plan = device.upload(compiled.words())?;
        let code = match compiled.code() {
            [] => None,
            code => Some(device.upload(code)?),
        };
        let record = device.zeroed(usize::try_from(record::WORDS).unwrap_or(0))?;
        let places = CoreKind::ALL.iter().map(|kind| device.cores(*kind)).sum::<u32>();
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        let scratch = device.zeroed(scratch::words(places, compiled.frame_words()))?;
        let place_words = scratch::place_words(compiled.frame_words());
        scratch.write(&[places as u64, place_words as u64])?;
        words[binding::CODE] = code.as_ref().map_or(0, |code| code.address().0);
        words[binding::CODE_BYTES] = compiled.code().len() as u64;
        words[binding::RECORD] = record.address().0;
        words[binding::SCRATCH] = scratch.address().0;
        let bindings = device.upload(&words)?;
        let orch_args =
            [plan.address().0, plan.len() as u64, bindings.address().0, bindings.len() as u64];
        Ok(Self { compiled, plan, code, bindings, record, scratch, orch_args })
    }

    /// Binds it to something else. Nothing is compiled, and the plan stays where it is.
    ///
    /// # Errors
    /// Something is not bound, or bound and not there.
    pub fn rebind(&mut self, bound: &WorkloadBindings) -> Result<(), WorkloadError> {
        let mut words = bound.words(&self.compiled)?;
        let head = self.bindings.read()?;
        for at in [binding::CODE, binding::CODE_BYTES, binding::RECORD, binding::SCRATCH] {
            words[at] = head[at];
        }
        Ok(self.bindings.write(&words)?)
    }

    /// The workload.
    #[must_use]
    pub const fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// The orchestration words of a run.
    #[must_use]
    pub const fn orch_args(&self) -> &[u64] {
        &self.orch_args
    }

    /// What a device is to do.
    #[must_use]
    pub const fn work(&self) -> Work<'_> {
        Work::Stream { builder: BUILDER, orch_args: &self.orch_args }
    }

    /// Forgets the fault of the last run. To be called before each run.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn reset(&self) -> Result<(), Error> {
        self.record.write(&vec![0; self.record.len()])
    }

    /// What the last run ended with, in the words of the workload; `None`: no fault of its own.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn fault(&self) -> Result<Option<RunFault>, Error> {
        Ok(self.compiled.fault(&self.record.read()?))
    }

    /// Runs it.
    ///
    /// # Errors
    /// The fault that ended it: of the workload, or of the device.
    pub fn run(
        &self,
        device: &mut Device,
        options: &RunOptions,
    ) -> Result<RunReport, WorkloadError> {
        self.reset()?;
        let result = device.run(self.work(), options);
        if let Some(fault) = self.fault()? {
            return Err(WorkloadError::Fault { workload: self.compiled.name().to_owned(), fault });
        }
        Ok(result?)
    }

    /// Bytes of GM that it takes beside its tensors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let words = self.bindings.len() + self.record.len() + self.scratch.len();
        4 * self.plan.len() + 8 * words + self.code.as_ref().map_or(0, DeviceBuffer::len)
    }
}

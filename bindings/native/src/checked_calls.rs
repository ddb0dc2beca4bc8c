//! Whether builder programs in other languages call kernels with what these take: the check of the host, as foreign code sees it.

use std::sync::{Arc, OnceLock};

use pto_foreign::CallCheck;
use pto_host::abi::Fault;
use pto_host::graph::{
    Bindings, Recording, TaskRange, TaskSpec, TensorRange, TensorTask, TensorView,
};
use pto_host::{BuilderCalls, Error};

use crate::failure::Failure;

/// The checks of one builder program, and the first task that was refused.
pub struct CheckedCalls {
    calls: BuilderCalls,
    refused: Arc<OnceLock<Failure>>,
}

impl CheckedCalls {
    /// Those of a program that begins to build.
    #[must_use]
    pub fn new(calls: BuilderCalls) -> Self {
        Self { calls, refused: Arc::default() }
    }

    /// Where the failure comes that says which task was refused, and why.
    #[must_use]
    pub fn refused(&self) -> Arc<OnceLock<Failure>> {
        Arc::clone(&self.refused)
    }

    /// The fault of a task that is refused: what is wrong is in [`refused`](Self::refused).
    fn fault(&self, checked: Result<(), String>) -> Result<(), Fault> {
        checked.map_err(|what| {
            self.refused.get_or_init(|| Error::Call { what }.into());
            Fault::BUILD_FAILED
        })
    }
}

impl CallCheck for CheckedCalls {
    fn task(&mut self, number: u64, task: &TaskSpec<'_>) -> Result<(), Fault> {
        let checked = self.calls.task(number, task);
        self.fault(checked)
    }

    fn range(&mut self, number: u64, range: &TaskRange<'_>) -> Result<(), Fault> {
        let checked = self.calls.range(number, range);
        self.fault(checked)
    }

    fn tensor_task(&mut self, number: u64, task: &TensorTask<'_>) -> Result<(), Fault> {
        let checked = self.calls.tensor_task(number, task);
        self.fault(checked)
    }

    fn tensor_range(&mut self, number: u64, range: &TensorRange<'_>) -> Result<(), Fault> {
        let checked = self.calls.tensor_range(number, range);
        self.fault(checked)
    }

    fn allocated(&mut self, tensor: &TensorView<'_>) {
        self.calls.allocated(tensor);
    }

    fn begin_recording(&mut self) {
        self.calls.begin_recording();
    }

    fn end_recording(&mut self, recording: &Recording) {
        self.calls.end_recording(recording);
    }

    fn replay(&mut self, recording: &Recording, bindings: &Bindings<'_>) -> Result<(), Fault> {
        let checked = self.calls.replay(recording, bindings);
        self.fault(checked)
    }
}

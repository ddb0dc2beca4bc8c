//! What a platform looks at before a task is added: whether its kernel takes what the task calls it with.

use pto_abi::Fault;
use pto_graph::{Bindings, Recording, TaskRange, TaskSpec, TensorRange, TensorTask, TensorView};

/// The checks of a platform that knows its kernels and its memory. Tasks that are refused are not added; the fault is that of the build.
pub trait CallCheck {
    /// A task, by its number in the build.
    ///
    /// # Errors
    /// The kernel does not take it; the same below.
    fn task(&mut self, number: u64, task: &TaskSpec<'_>) -> Result<(), Fault>;

    /// A range of tasks, by the number of the first one.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    fn range(&mut self, number: u64, range: &TaskRange<'_>) -> Result<(), Fault>;

    /// A task on tensors.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    fn tensor_task(&mut self, number: u64, task: &TensorTask<'_>) -> Result<(), Fault>;

    /// A range of tasks on tensors.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    fn tensor_range(&mut self, number: u64, range: &TensorRange<'_>) -> Result<(), Fault>;

    /// The run has given out a tensor of its heap.
    fn allocated(&mut self, tensor: &TensorView<'_>);

    /// A recording begins: its tasks are checked again when it is replayed.
    fn begin_recording(&mut self);

    /// It has ended.
    fn end_recording(&mut self, recording: &Recording);

    /// A replay.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    fn replay(&mut self, recording: &Recording, bindings: &Bindings<'_>) -> Result<(), Fault>;
}

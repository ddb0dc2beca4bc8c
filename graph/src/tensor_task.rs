//! Tasks of the streaming runtime: their arguments, and what they may be beyond one kernel on one core.
//!
//! | what | how | what it means |
//! |---|---|---|
//! | MIX | [`TensorTask::mix`] | kernels for several cores of one cluster, started together; complete when all are |
//! | blocks | [`TensorTask::blocks`] | the same kernels so many times, each with its number ([`BlockContext`](pto_abi::block::BlockContext)) |
//! | sync start | [`TensorTask::sync_start`] | all blocks start at once, or none does |
//! | predicate | [`TensorTask::when`] | read when the task becomes ready; if false, it completes without running |
//! | priority | [`TensorTask::priority`] | which ready task goes first |
//!
//! They go together in every way. All parts of a task get the same arguments.

use pto_abi::ids::{FuncId, TaskId};
use pto_abi::kinds::CoreKind;

use crate::block_shape::{BlockShape, Priority};
use crate::predicate::Predicate;
use crate::tensor::TensorView;

/// An argument of a task. A tensor reaches the kernel as the address of the view's first element.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// The task reads it.
    In(&'a TensorView<'a>),
    /// The task overwrites it, and does not read it.
    Out(&'a TensorView<'a>),
    /// The task reads and writes it.
    InOut(&'a TensorView<'a>),
    /// An address, no access: edges to and from this argument are not wanted.
    NoDep(&'a TensorView<'a>),
    /// A word.
    Scalar(u64),
    /// In a recording: the word that a replay binds at this index.
    BoundScalar(u32),
}

impl<'a> Arg<'a> {
    /// An `f32`, as its bits in the low half of the word.
    #[must_use]
    pub const fn f32(value: f32) -> Self {
        Self::Scalar(value.to_bits() as u64)
    }

    /// The tensor; `None`: a scalar.
    #[must_use]
    #[inline]
    pub const fn tensor(&self) -> Option<&'a TensorView<'a>> {
        match self {
            Self::In(view) | Self::Out(view) | Self::InOut(view) | Self::NoDep(view) => Some(view),
            Self::Scalar(_) | Self::BoundScalar(_) => None,
        }
    }
}

/// A task of the streaming runtime.
#[derive(Clone, Copy, Debug)]
pub struct TensorTask<'a> {
    /// Which kernel.
    pub func_id: FuncId,
    /// Which cores it runs on.
    pub kind: CoreKind,
    /// At most [`MAX_ARGS`](pto_abi::limits::MAX_ARGS), in the order of the kernel's words.
    pub args: &'a [Arg<'a>],
    /// Tasks that it waits for, in addition to those that its tensors imply.
    pub after: &'a [TaskId],
    /// What it is beyond one kernel on one core.
    pub block_shape: BlockShape<'a>,
}

impl<'a> TensorTask<'a> {
    /// A task that waits for what its tensors say.
    #[must_use]
    #[inline]
    pub const fn new(func_id: FuncId, kind: CoreKind, args: &'a [Arg<'a>]) -> Self {
        Self { func_id, kind, args, after: &[], block_shape: BlockShape::PLAIN }
    }
}

impl<'a> TensorTask<'a> {
    /// Tasks that it waits for, in addition to those that its tensors imply.
    #[must_use]
    #[inline]
    pub const fn after(mut self, after: &'a [TaskId]) -> Self {
        self.after = after;
        self
    }

    /// Runs these kernels on vector cores of the cluster in which the task's own kernel runs, started together with it.
    /// A task of a cube core takes one or two of them, one of a vector core takes one.
    #[must_use]
    #[inline]
    pub const fn mix(mut self, vectors: &'a [FuncId]) -> Self {
        self.block_shape = self.block_shape.with_vectors(vectors);
        self
    }

    /// Runs so many blocks, each on cores of its own, as they become free: 1 to
    /// [`MAX_BLOCKS`](pto_abi::limits::MAX_BLOCKS). A kernel finds its number after its arguments, see
    /// [`BlockContext`](pto_abi::block::BlockContext).
    #[must_use]
    #[inline]
    pub const fn blocks(mut self, blocks: u32) -> Self {
        self.block_shape = self.block_shape.with_blocks(blocks);
        self
    }

    /// Starts all blocks at once, as soon as there is a free core for each.
    #[must_use]
    #[inline]
    pub const fn sync_start(mut self) -> Self {
        self.block_shape = self.block_shape.with_sync_start();
        self
    }

    /// Runs only if `predicate` is true when the task becomes ready; otherwise it completes without running, and its
    /// outputs stay as they are.
    #[must_use]
    #[inline]
    pub const fn when(mut self, predicate: &'a Predicate<'a>) -> Self {
        self.block_shape = self.block_shape.with_predicate(predicate);
        self
    }

    /// Is done by the transfer engine of the device, and by no core: its arguments are the words of a
    /// [`Transfer`](crate::group::Transfer), which makes such tasks.
    #[must_use]
    pub(crate) const fn transfer(mut self) -> Self {
        self.block_shape = self.block_shape.with_transfer();
        self
    }

    /// Goes before ready tasks of lower priority.
    #[must_use]
    #[inline]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.block_shape = self.block_shape.with_priority(priority);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::TensorTask;
    use crate::block_shape::{BlockShape, Priority};
    use pto_abi::ids::FuncId;
    use pto_abi::kinds::CoreKind;

    #[test]
    fn a_task_is_plain_until_it_is_not() {
        let task = || TensorTask::new(FuncId(1), CoreKind::AIC, &[]);
        assert!(BlockShape::PLAIN.is_plain() && task().block_shape.is_plain());
        assert!(task().blocks(1).priority(Priority::NORMAL).mix(&[]).block_shape.is_plain());
        let shaped = [
            task().mix(&[FuncId(2)]),
            task().blocks(0),
            task().blocks(2),
            task().sync_start(),
            task().priority(Priority::LOW).priority(Priority::NORMAL).blocks(3),
        ];
        assert!(shaped.iter().all(|task| !task.block_shape.is_plain()));
    }
}

//! The interface of the streaming runtime (`tensormap_and_ringbuffer`): tasks with tensors, from which the
//! dependencies are derived.
//!
//! A builder implements [`stream_op`](StreamBuilder::stream_op) in addition to what every builder implements. The other calls are written
//! here, once.
//!
//! A program is `fn build<G: StreamBuilder>(stream: &mut G)`, registered in the `stream` part of
//! [`builder_set!`](crate::builder_set). Programs of [`GraphBuilder`] run under this variant as well, unchanged.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;

use crate::builder::{GraphBuilder, whole};
use crate::chain::Chain;
use crate::collective::CollectiveCall;
use crate::element::ElementType;
use crate::exchange::{Crossing, Exchange};
use crate::predicate::Predicate;
use crate::recording::{Bindings, Bound, Recording};
use crate::scope::{DependencyMode, ScopeId};
use crate::stream_op::{OpResult, StreamOp};
use crate::submission::{Submission, TaskDesc};
use crate::template::ChainTemplate;
use crate::tensor::TensorView;
use crate::tensor_range::TensorRange;
use crate::tensor_task::{Arg, TensorTask};

/// Adds tasks whose dependencies follow from their tensors.
///
/// The order of the submissions is the order of the program: a task waits for the earlier tasks that wrote what it
/// reads (read after write) or writes (write after write), and for those that read what it writes (write after
/// read), where the regions have an element in common.
pub trait StreamBuilder: GraphBuilder {
    /// Does an operation, and returns what the operation names. [`StreamOp::alone`] answers those of builders that have no transfers.
    ///
    /// # Errors
    /// Those of the call that has the name of the operation.
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault>;

    /// Opens a scope. The program itself is a scope, of derived dependencies.
    ///
    /// # Errors
    /// `STREAM_SCOPE_DEPTH`.
    #[inline]
    fn open_scope(&mut self, mode: DependencyMode) -> Result<ScopeId, Fault> {
        match self.stream_op(StreamOp::OpenScope(mode))? {
            OpResult::Scope(scope) => Ok(scope),
            _ => Err(Fault::RUNTIME_VARIANT),
        }
    }

    /// Closes the innermost scope: its tensors are given up when its tasks have completed.
    ///
    /// # Errors
    /// `STREAM_SCOPE_NOT_OPEN`: it is not the innermost open one, or closed already.
    #[inline]
    fn close_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        self.stream_op(StreamOp::CloseScope(scope)).map(drop)
    }

    /// A tensor on the heap of the innermost scope; what is in it is not initialised. Waits while the heap is full.
    /// [`Scope::tensor`] gives one that the compiler keeps inside the scope.
    ///
    /// # Errors
    /// `STREAM_VIEW_RANK`, `STREAM_VIEW_RANGE`, `STREAM_HEAP_RING`.
    #[inline]
    fn alloc(&mut self, element: ElementType, shape: &[u32]) -> Result<TensorView<'static>, Fault> {
        match self.stream_op(StreamOp::Alloc(element, shape))? {
            OpResult::Tensor(view) => Ok(view),
            _ => Err(Fault::RUNTIME_VARIANT),
        }
    }

    /// Lets the others work. A program that computes for long without adding a task calls this now and then, so that its run can
    /// end when a budget is over.
    ///
    /// # Errors
    /// The fault of the run, if it has one.
    #[inline]
    fn yield_now(&mut self) -> Result<(), Fault> {
        self.stream_op(StreamOp::Yield).map(drop)
    }

    /// Waits until everything that writes the element has completed, and reads it; the value is in the low
    /// bits of the word.
    ///
    /// # Errors
    /// `STREAM_VIEW_RANGE`, `BUILD_GM_RANGE`, `STREAM_WAIT_FOREVER` where it cannot come.
    #[inline]
    fn get(&mut self, view: &TensorView<'_>, index: &[u32]) -> Result<u64, Fault> {
        match self.stream_op(StreamOp::Get(view, index))? {
            OpResult::Value(value) => Ok(value),
            _ => Err(Fault::RUNTIME_VARIANT),
        }
    }

    /// Waits until everything that reads or writes the element has completed, and writes it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    fn set(&mut self, view: &TensorView<'_>, index: &[u32], value: u64) -> Result<(), Fault> {
        self.stream_op(StreamOp::Set(view, index, value)).map(drop)
    }

    /// Submits the transfers of an exchange, by the communicator of the run's group, which counts the collectives of the run. Without a group this
    /// is rank 0 of 1.
    ///
    /// # Errors
    /// `TRANSFER_NO_ENGINE`: this device has no transfers; those of the [`Communicator`](crate::group::Communicator)'s calls.
    fn exchange(&mut self, exchange: &Exchange<'_>) -> Result<(), Fault> {
        self.stream_op(StreamOp::Exchange(exchange)).map(drop)
    }

    /// A pipeline begins whose processes are on several ranks: this rank, and how many there are. Its [crossings](Self::cross) are those of one call
    /// that all ranks make. `print` is the same at all ranks whose pipelines are; if it is not, the run ends with an error that names two of them. A
    /// device that has no group is rank 0 of 1.
    ///
    /// # Errors
    /// `TRANSFER_WORDS`: the group's words are damaged; those of a submission.
    fn begin_crossings(&mut self, print: u32) -> Result<(u32, u32), Fault> {
        match self.stream_op(StreamOp::BeginCrossings(print))? {
            OpResult::Ranks(rank, size) => Ok((rank, size)),
            _ => Err(Fault::RUNTIME_VARIANT),
        }
    }

    /// Submits a side of a crossing of the pipeline that was begun last. It is complete when the transfer is over on this rank.
    ///
    /// # Errors
    /// `TRANSFER_NO_ENGINE`: this device has no transfers; `TRANSFER_RANK`, `TRANSFER_TENSOR`, and those of a submission.
    fn cross(&mut self, crossing: &Crossing<'_>) -> Result<TaskId, Fault> {
        match self.stream_op(StreamOp::Cross(crossing))? {
            OpResult::Task(task) => Ok(task),
            _ => Err(Fault::RUNTIME_VARIANT),
        }
    }

    /// What is submitted up to [`end_collective`](Self::end_collective) belongs to a collective call, also to one that consists of other calls. For
    /// builders that watch what collectives do; others do nothing.
    ///
    /// # Errors
    /// Those of the run.
    fn begin_collective(&mut self, call: &CollectiveCall) -> Result<(), Fault> {
        self.stream_op(StreamOp::BeginCollective(call)).map(drop)
    }

    /// All of the collective call that was begun last has been submitted.
    ///
    /// # Errors
    /// Those of the run.
    fn end_collective(&mut self) -> Result<(), Fault> {
        self.stream_op(StreamOp::EndCollective).map(drop)
    }

    /// Begins a recording: from here to [`end_recording`](Self::end_recording) tasks are written down instead of added. Returns
    /// the recording's number. [`record`](Self::record) calls both.
    ///
    /// # Errors
    /// `STREAM_RECORDING_OPEN`, `STREAM_RECORDING_FULL`, `STREAM_VIEW_*`, `STREAM_SCOPE_DEPTH`.
    #[inline]
    fn begin_recording(&mut self, shapes: &[TensorView<'_>]) -> Result<u32, Fault> {
        match self.stream_op(StreamOp::BeginRecording(shapes))? {
            OpResult::Serial(serial) => Ok(serial),
            _ => Err(Fault::RUNTIME_VARIANT),
        }
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// `STREAM_NOT_RECORDING`, `STREAM_RECORDING_FULL`, `STREAM_SCOPE_NOT_OPEN`.
    #[inline]
    fn end_recording(&mut self) -> Result<Recording, Fault> {
        match self.stream_op(StreamOp::EndRecording)? {
            OpResult::Recorded(recording) => Ok(recording),
            _ => Err(Fault::RUNTIME_VARIANT),
        }
    }

    /// Adds and publishes the tasks of a recording, on other tensors and scalars. The order to the tasks around it follows
    /// from what it reads and writes of them, the order within it from the recording.
    ///
    /// # Errors
    /// `STREAM_RECORDING_UNKNOWN`, `STREAM_REPLAY_MISFIT` and `STREAM_REPLAY_ALIAS` with the binding's index,
    /// `STREAM_STALE_TENSOR`, `STREAM_RECORDING_OPEN`, and those of a submission.
    #[inline]
    fn replay(&mut self, recording: &Recording, bindings: &Bindings<'_>) -> Result<(), Fault> {
        whole(self.submit_desc(Submission::new(TaskDesc::Replay(recording, bindings)))).map(drop)
    }

    /// Records what `body` submits: tasks, scopes and their tensors. Nothing of it runs before it is replayed. `shapes`
    /// say what the tensors look like that are bound then; tensors of the host's that are used without being bound
    /// are the same in every replay.
    ///
    /// # Errors
    /// Those of `body`, of [`begin_recording`](Self::begin_recording) and [`end_recording`](Self::end_recording).
    fn record<E: From<Fault>>(
        &mut self,
        shapes: &[TensorView<'_>],
        body: impl FnOnce(&mut Self, &Bound<'_>) -> Result<(), E>,
    ) -> Result<Recording, E>
    where
        Self: Sized,
    {
        let serial = self.begin_recording(shapes)?;
        body(self, &Bound { shapes, serial })?;
        Ok(self.end_recording()?)
    }

    /// Adds a task with its edges, unpublished. Waits while a ring is full.
    ///
    /// # Errors
    /// Those of [`GraphBuilder::add_task`] and [`GraphBuilder::add_edge`]; `STREAM_VIEW_*`, `STREAM_OUT_OVERLAP`,
    /// `STREAM_STALE_TENSOR` with the argument's index; `STREAM_*_RING` when a ring cannot hold the task.
    #[inline]
    fn add_tensor_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        whole(self.submit_desc(Submission::new(TaskDesc::Tensors(task)).unpublished()))
    }

    /// Adds a task and publishes it.
    ///
    /// # Errors
    /// Those of [`add_tensor_task`](Self::add_tensor_task) and [`GraphBuilder::publish`].
    #[inline]
    fn submit_tensors(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        whole(self.submit_desc(Submission::new(TaskDesc::Tensors(task))))
    }

    /// As [`submit_chain`](GraphBuilder::submit_chain), of a chain that runs only if `predicate` is true when it becomes ready; it completes without running
    /// otherwise. Where scopes derive dependencies, it waits for what writes the element of the predicate as well.
    ///
    /// # Errors
    /// Those of `submit_chain`, `BUILD_CHAIN_WORDS`, and those of a predicate.
    fn submit_chain_when(
        &mut self,
        chain: &Chain<'_>,
        producers: &[TaskId],
        predicate: &Predicate<'_>,
    ) -> Result<TaskId, Fault> {
        let submission = Submission::new(TaskDesc::Chain(chain)).after(producers).when(predicate);
        match self.submit_desc(submission)? {
            Some(id) => Ok(id),
            None => submit_one_by_one(self, chain, producers, predicate),
        }
    }

    /// As [`submit_template`](GraphBuilder::submit_template), of a chain with a predicate, as [`submit_chain_when`](Self::submit_chain_when) has it.
    ///
    /// # Errors
    /// Those of `submit_template`, and those of a predicate.
    fn submit_template_when(
        &mut self,
        template: &ChainTemplate,
        producers: &[TaskId],
        predicate: &Predicate<'_>,
    ) -> Result<TaskId, Fault> {
        let submission =
            Submission::new(TaskDesc::Template(template)).after(producers).when(predicate);
        match self.submit_desc(submission)? {
            Some(id) => Ok(id),
            None => {
                template.with_chain(|chain| self.submit_chain_when(chain, producers, predicate))
            }
        }
    }

    /// Adds the tasks of a range on tensors and publishes them, as if each were submitted by itself, in their order; `ids` are theirs afterwards.
    /// After a fault, some of them may have been submitted.
    ///
    /// # Errors
    /// Those of [`submit_tensors`](Self::submit_tensors), `BUILD_RANGE_LENGTH`, `BUILD_CHAIN_VARIES`, `BUILD_CHAIN_LIMIT`.
    fn submit_tensor_range(
        &mut self,
        range: &TensorRange<'_>,
        ids: &mut [TaskId],
    ) -> Result<(), Fault> {
        match self.submit_desc(Submission::new(TaskDesc::TensorRange(range, ids)))? {
            Some(_) => Ok(()),
            None => submit_tensor_range_one_by_one(self, range, ids),
        }
    }

    /// Runs `body` in a scope of its own. Its tensors cannot leave it:
    ///
    /// ```compile_fail
    /// # use pto_graph::{DependencyMode, ElementType, StreamBuilder, TensorView};
    /// # use pto_abi::Fault;
    /// fn escapes<G: StreamBuilder>(stream: &mut G) -> Result<TensorView<'_>, Fault> {
    ///     stream.scope(DependencyMode::DERIVED, |scope| scope.tensor(ElementType::F32, &[64]))
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of `body`, of [`open_scope`](Self::open_scope) and [`close_scope`](Self::close_scope).
    fn scope<R, E: From<Fault>>(
        &mut self,
        mode: DependencyMode,
        body: impl for<'s> FnOnce(&mut Scope<'s, '_, Self>) -> Result<R, E>,
    ) -> Result<R, E>
    where
        Self: Sized,
    {
        let id = self.open_scope(mode)?;
        let result = body(&mut Scope { stream: self, scope: PhantomData })?;
        self.close_scope(id)?;
        Ok(result)
    }
}

/// Adds a task for each kernel of a chain: each waits for the one before, and the first one for `producers`.
fn submit_one_by_one<G: StreamBuilder + ?Sized>(
    stream: &mut G,
    chain: &Chain<'_>,
    producers: &[TaskId],
    predicate: &Predicate<'_>,
) -> Result<TaskId, Fault> {
    chain.check()?;
    let (mut words, mut args) = ([0; MAX_CHAIN_ARGS], [Arg::Scalar(0); MAX_CHAIN_ARGS]);
    let mut last = None;
    for (link, turn) in chain.turns() {
        let task = link.task_at(turn, &mut words);
        let (args, _) = args.split_at_mut(task.args.len().min(MAX_CHAIN_ARGS));
        args.iter_mut().zip(task.args).for_each(|(arg, word)| *arg = Arg::Scalar(*word));
        let before = last.as_ref().map_or(producers, core::slice::from_ref);
        let task = TensorTask::new(task.func_id, task.kind, args).after(before).when(predicate);
        last = Some(stream.submit_tensors(&task)?);
    }
    last.ok_or(Fault::BUILD_CHAIN_EMPTY)
}

/// Submits each task of a range by itself: what a builder does that has no ranges on tensors, or cannot take this one at once.
///
/// # Errors
/// As [`StreamBuilder::submit_tensor_range`].
pub fn submit_tensor_range_one_by_one<G: StreamBuilder + ?Sized>(
    stream: &mut G,
    range: &TensorRange<'_>,
    ids: &mut [TaskId],
) -> Result<(), Fault> {
    range.check(ids.len())?;
    let count = range.task().args.len().min(MAX_CHAIN_ARGS);
    let mut views = [TensorView::default(); MAX_CHAIN_ARGS];
    for (index, id) in (0..).zip(ids) {
        for (arg, view) in views.iter_mut().enumerate().take(count) {
            *view = range.view_at(arg, index).unwrap_or_default();
        }
        let mut args = [Arg::Scalar(0); MAX_CHAIN_ARGS];
        for (arg, (slot, view)) in args.iter_mut().zip(&views).enumerate().take(count) {
            *slot = range.arg_at(arg, index, view);
        }
        let args = args.get(..count).unwrap_or(&[]);
        *id = stream.submit_tensors(&TensorTask { args, ..*range.task() })?;
    }
    Ok(())
}

/// A scope that is open: the builder, and tensors that end with the scope.
pub struct Scope<'s, 'g, G> {
    stream: &'g mut G,
    /// Invariant: a tensor of this scope fits no other.
    scope: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<'s, G: StreamBuilder> Scope<'s, '_, G> {
    /// A tensor that lives until the scope has ended and its tasks have completed.
    ///
    /// # Errors
    /// Those of [`StreamBuilder::alloc`].
    pub fn tensor(&mut self, element: ElementType, shape: &[u32]) -> Result<TensorView<'s>, Fault> {
        self.stream.alloc(element, shape)
    }
}

impl<G> Deref for Scope<'_, '_, G> {
    type Target = G;
    fn deref(&self) -> &G {
        self.stream
    }
}

impl<G> DerefMut for Scope<'_, '_, G> {
    fn deref_mut(&mut self) -> &mut G {
        self.stream
    }
}

//! The streaming builder: the calls of a program, and where they go.
//!
//! Tasks, edges and publishes are `Tasks`'s; what a task does to its tensors is looked for in the tensor map (`submit.rs`);
//! while a recording is made, tasks go to its `Draft` instead (`record.rs`). Invariant: while there is a draft, nothing is
//! added, published or waited for.

mod chain;
mod range;
mod record;
mod submit;
mod template;

use pto_abi::sync::Ordering;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    Chain, ChainTemplate, EdgeOutcome, GraphBuilder, LaunchArgs, OpResult, Predicate, Publish,
    ScopeId, StreamBuilder, StreamOp, Submission, TaskDesc, TaskSpec, TensorTask, link_and_publish,
};

use super::map::AccessKind;
use super::proof::Schedulers;
use super::recording::Draft;
use super::storage::StreamMemory;
use super::tasks::{TaskWords, Tasks};
use crate::blame::Blame;
use crate::builder::{BuilderInputs, DeviceMemory};
use crate::config::Config;

/// The builder of `tensormap_and_ringbuffer`. See the file.
pub struct Stream<'a, C: Config> {
    tasks: Tasks<'a, C>,
    args: LaunchArgs<'a>,
    /// The recording that is being made.
    draft: Option<Draft<'a>>,
}

impl<'a, C: Config> Stream<'a, C> {
    /// A builder with nothing added.
    pub fn new(
        inputs: BuilderInputs<'a>,
        stream: &'a StreamMemory<'a>,
        schedulers: Schedulers,
        memory: C::Memory,
        machine: &'a mut C::Machine,
    ) -> Self {
        let tasks = Tasks::new(&inputs, stream, schedulers, memory, machine);
        Self { tasks, args: inputs.args, draft: None }
    }

    /// How many tasks were added.
    #[must_use]
    pub const fn added(&self) -> u64 {
        self.tasks.storage().window().added()
    }

    /// The circumstances of a fault that a call returned.
    #[must_use]
    pub fn blame(&self, fault: Fault) -> Blame {
        self.tasks.blame(fault)
    }

    /// The last publish has been made: lets the run end.
    ///
    /// # Errors
    /// `BUILD_NOT_PUBLISHED`, `STREAM_SCOPE_LEFT_OPEN`.
    pub fn finish(&mut self) -> Result<(), Fault> {
        self.tasks.finish()
    }

    /// Adds a task to the run itself.
    #[inline]
    fn add_now(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if !task.block_shape.is_plain() {
            return self.add_shaped_task(task);
        }
        self.add_plain_task(task)
    }

    /// Adds a task with tensors, or writes it down.
    #[inline]
    fn add_tensors(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if self.draft.is_some() {
            return self.record(task);
        }
        self.add_now(task)
    }

    /// Adds a task with tensors and publishes it in one call, with the slot that the addition returned.
    #[inline]
    fn submit_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if self.draft.is_some() {
            return self.record(task);
        }
        let id = self.add_now(task)?;
        self.tasks.publish_added(id.slot)?;
        Ok(id)
    }

    // Inlined into `submit_kernel`, which most programs call.
    #[inline(always)]
    fn add_kernel(&mut self, spec: &TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let count = spec.args.len();
        let kernel = self.tasks.accept(spec, count)?;
        self.tasks.make_room(count)?;
        for (word, arg) in self.tasks.storage().next_words(count).iter().zip(spec.args) {
            word.store(*arg, Ordering::Relaxed);
        }
        self.tasks.open_slot(spec, kernel, TaskWords::Arguments(count))
    }

    /// Adds a task without tensors and publishes it in one call, with the number that it got.
    #[inline]
    fn submit_kernel(&mut self, spec: &TaskSpec<'_>, after: &[TaskId]) -> Result<TaskId, Fault> {
        let number = self.tasks.storage().window().next();
        let id = self.add_kernel(spec)?;
        self.tasks.publish_after((number, id.slot), after)?;
        Ok(id)
    }

    /// Adds a chain of several kernels, or one with tensors or a predicate.
    #[inline(always)]
    fn submit_links(
        &mut self,
        chain: &Chain<'_>,
        when: Option<&Predicate<'_>>,
        rest: (&[TaskId], Publish),
    ) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let (number, plan) = (self.tasks.storage().window().next(), self.check_chain(chain)?);
        let id = match when {
            None => self.add_planned_chain(chain, &plan)?,
            Some(predicate) => {
                let first = (plan.first.task(), predicate);
                self.add_with(first, |stream| stream.add_planned_chain(chain, &plan))?
            }
        };
        self.end_submission((number, id), rest)
    }

    /// Adds the chain of a filled template.
    #[inline(always)]
    fn submit_filled(
        &mut self,
        template: &ChainTemplate,
        when: Option<&Predicate<'_>>,
        rest: (&[TaskId], Publish),
    ) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let number = self.tasks.storage().window().next();
        let id = match when {
            None => self.tasks.add_template(template)?,
            Some(predicate) => self.add_with((template.task(), predicate), |stream| {
                stream.tasks.add_template(template)
            })?,
        };
        self.end_submission((number, id), rest)
    }

    /// The edges of the newest task that the program names, and its publish.
    #[inline(always)]
    fn end_submission(
        &mut self,
        (number, id): (u64, TaskId),
        (after, publish): (&[TaskId], Publish),
    ) -> Result<TaskId, Fault> {
        match publish {
            Publish::Now => self.tasks.publish_after((number, id.slot), after)?,
            Publish::Later => link_and_publish(self, id, (after, publish))?,
        }
        Ok(id)
    }

    /// A recording closes the scopes that it opened, and no others.
    fn end_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        if self.draft.as_ref().is_some_and(|draft| draft.is_in(scope)) {
            return Err(self.tasks.refuse_task(Fault::STREAM_SCOPE_NOT_OPEN, TaskId::NONE, 0, 0));
        }
        self.tasks.close_scope(scope)
    }

    /// A recording holds tasks with tensors only, and nothing that waits.
    #[inline]
    fn check_not_recording(&mut self) -> Result<(), Fault> {
        if self.draft.is_none() {
            return Ok(());
        }
        Err(self.tasks.refuse_task(Fault::STREAM_RECORDING_OPEN, TaskId::NONE, 0, 0))
    }
}

impl<C: Config> GraphBuilder for Stream<'_, C> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        self.args
    }

    #[inline(always)]
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc, after, when, publish } = submission;
        let id = match desc {
            TaskDesc::Kernel(spec) if publish == Publish::Now => {
                self.submit_kernel(&spec, after)?
            }
            TaskDesc::Kernel(spec) => {
                let id = self.add_kernel(&spec)?;
                link_and_publish(self, id, (after, publish))?;
                id
            }
            TaskDesc::Tensors(task) if publish == Publish::Now && after.is_empty() => {
                self.submit_task(task)?
            }
            TaskDesc::Tensors(task) => {
                let id = self.add_tensors(task)?;
                link_and_publish(self, id, (after, publish))?;
                id
            }
            TaskDesc::Chain(chain) if when.is_none() && is_kernel(chain) => return Ok(None),
            TaskDesc::Chain(chain) => self.submit_links(chain, when, (after, publish))?,
            TaskDesc::Template(template) => self.submit_filled(template, when, (after, publish))?,
            TaskDesc::TensorRange(range, ids) => {
                if !self.submit_range_of_tensors(range, ids)? {
                    return Ok(None);
                }
                ids.last().copied().unwrap_or(TaskId::NONE)
            }
            TaskDesc::Replay(recording, bindings) => {
                self.play(recording, bindings)?;
                TaskId::NONE
            }
            // The tasks of the others come one by one.
            _ => return Ok(None),
        };
        Ok(Some(id))
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.check_not_recording()?;
        self.tasks.explicit_edge(producer, consumer)
    }

    #[inline]
    fn publish(&mut self, id: TaskId) -> Result<(), Fault> {
        if self.draft.is_some() {
            // A replay publishes what it adds.
            return Ok(());
        }
        self.tasks.publish(id)
    }

    fn fill_template(
        &mut self,
        template: &mut ChainTemplate,
        chain: &Chain<'_>,
    ) -> Result<(), Fault> {
        self.tasks.fill_template(template, chain)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.tasks.memory().read_u32(address).ok_or(Fault::BUILD_GM_RANGE)
    }

    fn read_u64(&self, address: GmAddr) -> Result<u64, Fault> {
        let word = self.tasks.memory().read_element(address, size_of::<u64>() as u64);
        word.ok_or(Fault::BUILD_GM_RANGE)
    }

    fn has_word(&self, address: GmAddr) -> bool {
        self.tasks.memory().has_element(address, size_of::<u32>() as u64)
    }
}

/// Whether a chain is one kernel of words, which is a task like any other. With tensors, edges follow from them.
#[inline]
fn is_kernel(chain: &Chain<'_>) -> bool {
    matches!(chain.links(), [only] if only.count() == 1 && !chain.has_tensors())
}

impl<C: Config> StreamBuilder for Stream<'_, C> {
    // Always: a program says which operation it is, so that one arm is left where it calls.
    #[inline(always)]
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            StreamOp::OpenScope(mode) => self.tasks.open_scope(mode).map(OpResult::Scope),
            StreamOp::CloseScope(scope) => self.end_scope(scope).map(|()| OpResult::Done),
            StreamOp::Alloc(element, shape) => self.allocate(element, shape).map(OpResult::Tensor),
            StreamOp::BeginRecording(shapes) => self.begin(shapes).map(OpResult::Serial),
            StreamOp::EndRecording => self.end().map(OpResult::Recorded),
            StreamOp::Yield => self.tasks.give_way(None).map(|()| OpResult::Done),
            StreamOp::Get(view, index) => {
                let (address, bytes) = self.settle(view, index, AccessKind::Read)?;
                let value = self.tasks.memory().read_element(address, bytes);
                value.map(OpResult::Value).ok_or(Fault::BUILD_GM_RANGE)
            }
            StreamOp::Set(view, index, value) => {
                let (address, bytes) = self.settle(view, index, AccessKind::Write)?;
                let written = self.tasks.memory().write_element(address, bytes, value);
                written.map(|()| OpResult::Done).ok_or(Fault::BUILD_GM_RANGE)
            }
            _ => op.alone().unwrap_or(Err(Fault::RUNTIME_VARIANT)),
        }
    }
}

//! The streaming builder: what a program calls, and who does it.
//!
//! Tasks, edges and publishes are `Tasks`'s; what a task does to its tensors is looked for in the tensor map (`submit.rs`);
//! while a recording is made, tasks go to its `Draft` instead (`record.rs`). Invariant: while there is a draft, nothing is
//! added, published or waited for.

mod chain;
mod range;
mod record;
mod submit;
mod template;

use pto_abi::sync::{Ordering, Sharing};
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::{
    Bindings, Chain, ChainTemplate, DependencyMode, EdgeOutcome, ElementType, GraphBuilder,
    Predicate, Recording, ScopeId, StreamBuilder, TaskSpec, TensorRange, TensorTask, TensorView,
    submit_added, submit_chain_one_by_one,
};

use super::map::AccessKind;
use super::proof::Schedulers;
use super::recording::Draft;
use super::storage::StreamMemory;
use super::tasks::{TaskWords, Tasks, refuse_task};
use crate::blame::Blame;
use crate::builder::{BuilderHost, BuilderInputs, DeviceMemory};
use crate::fanout::FanoutPolicy;

/// The builder of `tensormap_and_ringbuffer`. See the file.
pub struct Stream<'a, S, F, M, H> {
    tasks: Tasks<'a, S, F, M, H>,
    orch_args: &'a [u64],
    /// The recording that is being made.
    draft: Option<Draft<'a>>,
}

impl<'a, S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'a, S, F, M, H> {
    /// A builder with nothing added.
    pub fn new(
        inputs: BuilderInputs<'a>,
        stream: &'a StreamMemory<'a>,
        schedulers: Schedulers,
        memory: M,
        host: H,
    ) -> Self {
        let tasks = Tasks::new(&inputs, stream, schedulers, (memory, host));
        Self { tasks, orch_args: inputs.orch_args, draft: None }
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

    /// A recording holds tasks with tensors only, and nothing that waits.
    #[inline]
    fn check_not_recording(&mut self) -> Result<(), Fault> {
        if self.draft.is_none() {
            return Ok(());
        }
        Err(refuse_task(&mut self.tasks, Fault::STREAM_RECORDING_OPEN, TaskId::NONE, (0, 0)))
    }
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> GraphBuilder
    for Stream<'_, S, F, M, H>
{
    fn orch_args(&self) -> &[u64] {
        self.orch_args
    }

    // Inlined into `submit`, which most programs call.
    #[inline(always)]
    fn add_task(&mut self, spec: TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let count = spec.args.len();
        let kernel = self.tasks.accept(&spec, count)?;
        self.tasks.make_room(count)?;
        for (word, arg) in self.tasks.storage().next_words(count).iter().zip(spec.args) {
            word.store(*arg, Ordering::Relaxed);
        }
        self.tasks.open_slot(&spec, kernel, TaskWords::Arguments(count))
    }

    /// The same calls in one, with the number of the task at hand.
    #[inline]
    fn submit(&mut self, spec: TaskSpec<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        let number = self.tasks.storage().window().next();
        let id = self.add_task(spec)?;
        self.tasks.publish_behind((number, id.slot), producers)?;
        Ok(id)
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

    fn add_chain(&mut self, chain: &Chain<'_>) -> Result<Option<TaskId>, Fault> {
        if is_task(chain) { Ok(None) } else { self.add_chain_now(chain).map(Some) }
    }

    #[inline(never)]
    fn submit_chain(&mut self, chain: &Chain<'_>, producers: &[TaskId]) -> Result<TaskId, Fault> {
        if is_task(chain) {
            return submit_chain_one_by_one(self, chain, producers);
        }
        let number = self.tasks.storage().window().next();
        let id = self.add_chain_now(chain)?;
        self.tasks.publish_behind((number, id.slot), producers)?;
        Ok(id)
    }

    fn fill_template(
        &mut self,
        template: &mut ChainTemplate,
        chain: &Chain<'_>,
    ) -> Result<(), Fault> {
        template::fill(&mut self.tasks, template, chain)
    }

    fn add_template(&mut self, template: &ChainTemplate) -> Result<Option<TaskId>, Fault> {
        self.check_not_recording()?;
        template::add(&mut self.tasks, template).map(Some)
    }

    fn submit_template(
        &mut self,
        template: &ChainTemplate,
        producers: &[TaskId],
    ) -> Result<TaskId, Fault> {
        self.check_not_recording()?;
        let number = self.tasks.storage().window().next();
        let id = template::add(&mut self.tasks, template)?;
        self.tasks.publish_behind((number, id.slot), producers)?;
        Ok(id)
    }

    fn submit_added(&mut self, task: TaskId, producers: &[TaskId]) -> Result<(), Fault> {
        let newest = self.tasks.storage().window().newest_added(task);
        let Some(number) = newest.filter(|_| self.draft.is_none()) else {
            return submit_added(self, task, producers);
        };
        self.tasks.publish_behind((number, task.slot), producers)
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

/// Whether a chain is submitted as a task: one kernel is a task like any other; with tensors, edges follow from them.
#[inline]
fn is_task(chain: &Chain<'_>) -> bool {
    matches!(chain.links(), [only] if only.count() == 1 && !chain.has_tensors())
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> StreamBuilder
    for Stream<'_, S, F, M, H>
{
    #[inline]
    fn add_tensor_task(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if self.draft.is_some() {
            return self.record(task);
        }
        self.add_now(task)
    }

    #[inline]
    fn submit_tensors(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if self.draft.is_some() {
            return self.record(task);
        }
        let id = self.add_now(task)?;
        self.tasks.publish_added(id.slot)?;
        Ok(id)
    }

    fn takes_at_once(&self, range: &TensorRange<'_>) -> bool {
        self.can_plan(range)
    }

    fn submit_tensor_range(
        &mut self,
        range: &TensorRange<'_>,
        ids: &mut [TaskId],
    ) -> Result<(), Fault> {
        self.submit_range_of_tensors(range, ids)
    }

    fn add_chain_when(
        &mut self,
        chain: &Chain<'_>,
        predicate: &Predicate<'_>,
    ) -> Result<Option<TaskId>, Fault> {
        self.check_not_recording()?;
        let plan = self.check_chain(chain)?;
        let begin = (plan.first.task(), predicate);
        self.add_with(begin, |stream| stream.add_planned_chain(chain, &plan)).map(Some)
    }

    fn add_template_when(
        &mut self,
        template: &ChainTemplate,
        predicate: &Predicate<'_>,
    ) -> Result<Option<TaskId>, Fault> {
        self.check_not_recording()?;
        let added = self.add_with((template.task(), predicate), |stream| {
            template::add(&mut stream.tasks, template)
        });
        added.map(Some)
    }

    fn open_scope(&mut self, mode: DependencyMode) -> Result<ScopeId, Fault> {
        self.tasks.open_scope(mode)
    }

    fn close_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        if self.draft.as_ref().is_some_and(|draft| draft.is_in(scope)) {
            return Err(refuse_task(
                &mut self.tasks,
                Fault::STREAM_SCOPE_NOT_OPEN,
                TaskId::NONE,
                (0, 0),
            ));
        }
        self.tasks.close_scope(scope)
    }

    fn alloc(&mut self, element: ElementType, shape: &[u32]) -> Result<TensorView<'static>, Fault> {
        self.allocate(element, shape)
    }

    fn begin_recording(&mut self, shapes: &[TensorView<'_>]) -> Result<u32, Fault> {
        self.begin(shapes)
    }

    fn end_recording(&mut self) -> Result<Recording, Fault> {
        self.end()
    }

    fn replay(&mut self, recording: &Recording, bindings: &Bindings<'_>) -> Result<(), Fault> {
        self.play(recording, bindings)
    }

    fn give_way(&mut self) -> Result<(), Fault> {
        self.tasks.give_way(None)
    }

    fn get(&mut self, view: &TensorView<'_>, index: &[u32]) -> Result<u64, Fault> {
        let (address, bytes) = self.settle(view, index, AccessKind::Read)?;
        self.tasks.memory().read_element(address, bytes).ok_or(Fault::BUILD_GM_RANGE)
    }

    fn set(&mut self, view: &TensorView<'_>, index: &[u32], value: u64) -> Result<(), Fault> {
        let (address, bytes) = self.settle(view, index, AccessKind::Write)?;
        self.tasks.memory().write_element(address, bytes, value).ok_or(Fault::BUILD_GM_RANGE)
    }
}

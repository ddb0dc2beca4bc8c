//! Records the calls of a builder program, so that the machine can charge their time and check them.
//!
//! A builder is a plain function over [`GraphBuilder`]; the firmware's builder is below this one. The records
//! are in a thread-local list, because a set of builders is shared and cannot hold the state of a run; the
//! machine empties it whenever the builder publishes, on the same thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::Hash;
use std::mem;

use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::group::CollectiveCall;
use pto_graph::{
    Arg, Bindings, BuildError, BuilderSet, Chain, ChainTemplate, DependencyMode, EdgeOutcome,
    GraphBuilder, HostedBuilder, LaunchArgs, OpResult, Predicate, Publish, Recording,
    StreamBuilder, StreamOp, Submission, TaskDesc, TaskRange, TaskSpec, TensorRange, TensorTask,
    TensorView, link_and_publish,
};

use super::digest::Digest;
use super::group::Submitted;
use super::inject::INJECTED_ERROR;
use super::paths::{Does, TensorAccess};

/// One call of a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallRecord {
    /// `tensors` of the arguments are derived from. `replayed`: the task comes from a recording, all of whose tasks have their room at once.
    Add {
        slot: u32,
        replayed: bool,
        args: usize,
        tensors: usize,
        func_and_kind: u32,
    },
    /// A chain of so many kernels in so many links, said in so many words. Parts of tensors are derived from: `dense` that are one run of bytes, and
    /// `strided` that are not.
    Chain {
        slot: u32,
        links: usize,
        words: usize,
        dense: usize,
        strided: usize,
        kernels: u64,
        func_and_kind: u32,
    },
    /// A template of this many links, in this many words.
    Template {
        links: usize,
        words: usize,
    },
    /// A chain that was added from a template. `words` counts the words of the template.
    FromTemplate {
        slot: u32,
        words: usize,
        kernels: u64,
        func_and_kind: u32,
    },
    Edge {
        producer: u32,
        generation: u32,
        consumer: u32,
        outcome: EdgeOutcome,
    },
    /// What a task does to a tensor.
    Access {
        slot: u32,
        access: TensorAccess,
    },
    /// A task waits for another one, which the program has named.
    After {
        slot: u32,
        producer: TaskId,
    },
    Publish(u32),
    Read,
    /// A collective call begins, which [`take_collectives`] has.
    Collective,
}

thread_local! {
    static RECORDS: RefCell<Vec<CallRecord>> = const { RefCell::new(Vec::new()) };
    /// What the tasks of the range on tensors depend on that is submitted just now, one after the other.
    static OF_RANGE: RefCell<VecDeque<Vec<Depends>>> = const { RefCell::new(VecDeque::new()) };
    static FAIL_AT: Cell<Option<u32>> = const { Cell::new(None) };
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
    /// Collective calls that have begun, if they are followed, and how many of them are open.
    static COLLECTIVES: RefCell<Option<(Vec<Submitted>, usize)>> = const { RefCell::new(None) };
    /// The results that a builder program has got so far, if they are wanted.
    static HISTORY: Cell<Option<Digest>> = const { Cell::new(None) };
}

/// What a task that has no slot yet depends on.
enum Depends {
    On(TensorAccess),
    After(TaskId),
}

/// Whether the results of the program's calls are kept: its stack is a function of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallHistory {
    Forgotten,
    Kept,
}

/// Forgets what an earlier run left, and lets the builder fail at its task number `fail_at`.
pub(super) fn reset(fail_at: Option<u32>, history: CallHistory) {
    HISTORY.set((history == CallHistory::Kept).then(Digest::new));
    RECORDS.with_borrow_mut(Vec::clear);
    OF_RANGE.with_borrow_mut(VecDeque::clear);
    FAIL_AT.set(fail_at);
    HAS_FAILED.set(false);
}

/// Whether collective calls are noted.
pub(super) fn follow_collectives(follows: bool) {
    COLLECTIVES.set(follows.then(|| (Vec::new(), 0)));
}

/// Passes the collective calls that have begun to `take`, and forgets them.
pub(super) fn take_collectives(take: impl FnMut(&Submitted)) {
    COLLECTIVES.with_borrow_mut(|noted| {
        if let Some((calls, _)) = noted {
            calls.iter().for_each(take);
            calls.clear();
        }
    });
}

/// What a thread has noted: that of one machine, where several share the thread.
#[derive(Default)]
pub(super) struct SavedCalls {
    records: Vec<CallRecord>,
    fail_at: Option<u32>,
    has_failed: bool,
    collectives: Option<(Vec<Submitted>, usize)>,
    history: Option<Digest>,
}

impl SavedCalls {
    /// Swaps the value with that of this thread.
    pub(super) fn exchange(&mut self) {
        RECORDS.with_borrow_mut(|records| mem::swap(records, &mut self.records));
        self.fail_at = FAIL_AT.replace(self.fail_at);
        self.has_failed = HAS_FAILED.replace(self.has_failed);
        COLLECTIVES.with_borrow_mut(|noted| mem::swap(noted, &mut self.collectives));
        self.history = HISTORY.replace(self.history);
    }
}

/// Whether the builder was made to fail since the last call.
pub(super) fn take_failure() -> bool {
    HAS_FAILED.take()
}

/// Passes the records to `take`, in order, and forgets them.
#[inline(never)]
pub(super) fn drain(take: impl FnMut(CallRecord)) {
    RECORDS.with_borrow_mut(|records| records.drain(..).for_each(take));
}

/// Passes what the next task of a range on tensors depends on to `take`. It has this slot.
pub(super) fn take_task_of_range(slot: u32, take: impl FnMut(CallRecord)) {
    let task = OF_RANGE.with_borrow_mut(VecDeque::pop_front).unwrap_or_default();
    let noted = task.into_iter().map(|depends| match depends {
        Depends::On(access) => CallRecord::Access { slot, access },
        Depends::After(producer) => CallRecord::After { slot, producer },
    });
    noted.for_each(take);
}

/// The results that the program has got so far, as one number.
#[inline(never)]
pub(super) fn history() -> u128 {
    HISTORY.get().map_or(0, Digest::number)
}

/// A call of the program returns this result. The program's calls follow from earlier results, and need not be recorded.
#[inline]
fn add_result(what: impl Hash) {
    if let Some(mut digest) = HISTORY.get() {
        what.hash(&mut digest);
        HISTORY.set(Some(digest));
    }
}

fn record_call(call: CallRecord) {
    RECORDS.with_borrow_mut(|records| records.push(call));
}

/// Notes what a task does to its tensors, and what else it waits for.
fn record_dependencies(slot: u32, task: &TensorTask<'_>, mode: Option<DependencyMode>) {
    for producer in task.after {
        record_call(CallRecord::After { slot, producer: *producer });
    }
    if mode == Some(DependencyMode::MANUAL) {
        return;
    }
    let access = |arg: &Arg<'_>| access_of(arg, arg.tensor()?);
    let predicate =
        task.block_shape.when().map(|when| TensorAccess::of(when.element(), Does::Read));
    for access in task.args.iter().filter_map(access).chain(predicate) {
        record_call(CallRecord::Access { slot, access });
    }
}

/// What task `index` of a range depends on.
fn depends(range: &TensorRange<'_>, index: u32, derives: bool) -> Vec<Depends> {
    let task = range.task();
    let after = task.after.iter().copied().map(Depends::After);
    let args = task.args.iter().enumerate().filter(|_| derives);
    let access =
        |(at, arg): (usize, &Arg<'_>)| access_of(arg, &range.view_at(at, index)?).map(Depends::On);
    after.chain(args.filter_map(access)).collect()
}

/// What an argument does to this part of its tensor, if edges are derived from it.
fn access_of(arg: &Arg<'_>, view: &TensorView<'_>) -> Option<TensorAccess> {
    match arg {
        Arg::In(_) => Some(TensorAccess::of(view, Does::Read)),
        Arg::Out(_) | Arg::InOut(_) => Some(TensorAccess::of(view, Does::Write)),
        Arg::NoDep(_) | Arg::Scalar(_) | Arg::BoundScalar(_) => None,
    }
}

/// Notes that a task reads or writes a tensor. A search compares states, of which that is no part.
fn record_access(slot: u32, access: TensorAccess) {
    if HISTORY.get().is_none() {
        record_call(CallRecord::Access { slot, access });
    }
}

/// A set of builders whose calls are noted.
pub(super) struct TracedBuilders<B>(pub(super) std::sync::Arc<B>);

impl<B: BuilderSet> BuilderSet for TracedBuilders<B> {
    fn names(&self) -> &[&str] {
        self.0.names()
    }

    fn build<G: HostedBuilder>(
        &self,
        symbol: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        let mut graph = TracedGraph::over(graph);
        let built = self.0.build(symbol, &mut graph);
        if graph.has_failed { Some(Err(BuildError::Failed(INJECTED_ERROR))) } else { built }
    }

    fn stream_names(&self) -> &[&str] {
        self.0.stream_names()
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        let mut graph = TracedGraph::over(stream);
        let built = self.0.build_stream(symbol, &mut graph);
        if graph.has_failed { Some(Err(BuildError::Failed(INJECTED_ERROR))) } else { built }
    }
}

struct TracedGraph<'g, G> {
    graph: &'g mut G,
    added: u32,
    has_failed: bool,
    is_recording: bool,
    /// The modes of the open scopes.
    modes: Vec<DependencyMode>,
}

impl<'g, G> TracedGraph<'g, G> {
    const fn over(graph: &'g mut G) -> Self {
        Self { graph, added: 0, has_failed: false, is_recording: false, modes: Vec::new() }
    }

    /// Whether the tensor map gets the tensors of tasks.
    fn derives(&self) -> bool {
        self.modes.last() != Some(&DependencyMode::MANUAL)
    }

    /// How many of a task's arguments the tensor map looks up or inserts.
    fn derived_from(&self, args: &[Arg<'_>]) -> usize {
        if !self.derives() {
            return 0;
        }
        let is_accessed = |arg: &&Arg<'_>| matches!(arg, Arg::In(_) | Arg::Out(_) | Arg::InOut(_));
        args.iter().filter(is_accessed).count()
    }

    /// One more chain, unless the builder is to fail there.
    fn added_chain(&mut self, id: TaskId, chain: &Chain<'_>) -> Result<TaskId, Fault> {
        self.count_task()?;
        add_result((id.slot, id.generation));
        let task = chain.links().first().map(|link| link.task());
        let func_and_kind = task.map_or(0, |task| func_and_kind(task.func_id, task.kind));
        let (slot, words, kernels) = (id.slot, chain.words(), chain.kernels());
        let mut strided = 0;
        let accesses = chain.uses().filter_map(|(_, arg, view)| {
            let access = access_of(arg, &view)?;
            strided += usize::from(!view.is_dense());
            Some(access)
        });
        let accesses: Vec<_> = if self.derives() { accesses.collect() } else { Vec::new() };
        let dense = accesses.len() - strided;
        let links = chain.links().len();
        record_call(CallRecord::Chain {
            slot,
            links,
            words,
            dense,
            strided,
            kernels,
            func_and_kind,
        });
        accesses.into_iter().for_each(|access| record_access(slot, access));
        Ok(id)
    }

    /// One more chain, of a template, unless the builder is to fail there.
    fn added_template(&mut self, id: TaskId, template: &ChainTemplate) -> Result<TaskId, Fault> {
        self.count_task()?;
        add_result((id.slot, id.generation));
        let task = template.task();
        let (slot, words, kernels) = (id.slot, template.word_count(), template.kernels().into());
        let func_and_kind = func_and_kind(task.func_id, task.kind);
        record_call(CallRecord::FromTemplate { slot, words, kernels, func_and_kind });
        Ok(id)
    }

    /// One more task, unless the builder is to fail there.
    fn count_task(&mut self) -> Result<(), Fault> {
        self.added += 1;
        if FAIL_AT.get().is_some_and(|at| at < self.added) {
            self.has_failed = true;
            HAS_FAILED.set(true);
            return Err(Fault::BUILD_FAILED);
        }
        Ok(())
    }
}

impl<G: GraphBuilder> TracedGraph<'_, G> {
    /// Submits what is published later.
    #[inline]
    fn add(
        &mut self,
        desc: TaskDesc<'_>,
        when: Option<&Predicate<'_>>,
    ) -> Result<Option<TaskId>, Fault> {
        let submission = Submission { desc, after: &[], when, publish: Publish::Later };
        self.graph.submit_desc(submission)
    }

    #[inline]
    fn add_kernel(&mut self, task: TaskSpec<'_>) -> Result<Option<TaskId>, Fault> {
        self.count_task()?;
        let Some(id) = self.add(TaskDesc::Kernel(task), None)? else { return Ok(None) };
        record_task(id, task.args.len(), 0, task.func_id, task.kind);
        Ok(Some(id))
    }

    #[inline]
    fn add_tensors(&mut self, task: &TensorTask<'_>) -> Result<Option<TaskId>, Fault> {
        if self.is_recording {
            add_result(1_u8);
            return self.add(TaskDesc::Tensors(task), None);
        }
        self.count_task()?;
        let Some(id) = self.add(TaskDesc::Tensors(task), None)? else { return Ok(None) };
        record_task(id, task.args.len(), self.derived_from(task.args), task.func_id, task.kind);
        // A search compares states, of which the paths are no part.
        if HISTORY.get().is_none() {
            record_dependencies(id.slot, task, self.modes.last().copied());
        }
        Ok(Some(id))
    }

    fn add_links(
        &mut self,
        chain: &Chain<'_>,
        when: Option<&Predicate<'_>>,
    ) -> Result<Option<TaskId>, Fault> {
        let Some(id) = self.add(TaskDesc::Chain(chain), when)? else { return Ok(None) };
        self.added_chain(id, chain)?;
        self.record_predicate(id, when);
        Ok(Some(id))
    }

    fn add_filled(
        &mut self,
        template: &ChainTemplate,
        when: Option<&Predicate<'_>>,
    ) -> Result<Option<TaskId>, Fault> {
        let Some(id) = self.add(TaskDesc::Template(template), when)? else { return Ok(None) };
        self.added_template(id, template)?;
        self.record_predicate(id, when);
        Ok(Some(id))
    }

    /// A chain with a predicate reads its element.
    fn record_predicate(&self, id: TaskId, when: Option<&Predicate<'_>>) {
        if let Some(predicate) = when.filter(|_| self.derives()) {
            record_access(id.slot, TensorAccess::of(predicate.element(), Does::Read));
        }
    }

    fn replay_tasks(
        &mut self,
        recording: &Recording,
        bindings: &Bindings<'_>,
    ) -> Result<Option<TaskId>, Fault> {
        (0..recording.tasks).try_for_each(|_| self.count_task())?;
        add_result(5_u8);
        self.graph.submit_desc(Submission::new(TaskDesc::Replay(recording, bindings)))
    }

    fn submit_tasks(
        &mut self,
        range: &TaskRange<'_>,
        ids: &mut [TaskId],
    ) -> Result<Option<TaskId>, Fault> {
        self.submit_counted(ids, |graph, ids| {
            graph.submit_desc(Submission::new(TaskDesc::Range(range, ids)))
        })
    }

    fn submit_tasks_on_tensors(
        &mut self,
        range: &TensorRange<'_>,
        ids: &mut [TaskId],
    ) -> Result<Option<TaskId>, Fault> {
        if HISTORY.get().is_none() && range.check(ids.len()).is_ok() {
            let tasks = (0..range.tasks()).map(|index| depends(range, index, self.derives()));
            OF_RANGE.set(tasks.collect());
        }
        let submitted = self.submit_counted(ids, |graph, ids| {
            graph.submit_desc(Submission::new(TaskDesc::TensorRange(range, ids)))
        });
        OF_RANGE.take();
        submitted
    }

    /// Submits so many tasks by `submit`. Where the builder is to fail at one of them, they come one by one.
    fn submit_counted(
        &mut self,
        ids: &mut [TaskId],
        submit: impl FnOnce(&mut G, &mut [TaskId]) -> Result<Option<TaskId>, Fault>,
    ) -> Result<Option<TaskId>, Fault> {
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let added = self.added.saturating_add(count);
        if FAIL_AT.get().is_some_and(|at| at < added) {
            return Ok(None);
        }
        let submitted = submit(self.graph, ids)?;
        if submitted.is_some() {
            self.added = added;
            ids.iter().for_each(|id| add_result((id.slot, id.generation)));
        }
        Ok(submitted)
    }
}

fn func_and_kind(func_id: FuncId, kind: CoreKind) -> u32 {
    u32::from(func_id.0) | u32::from(kind.get()) << 16
}

fn record_task(id: TaskId, args: usize, tensors: usize, func_id: FuncId, kind: CoreKind) {
    add_result((id.slot, id.generation));
    let func_and_kind = func_and_kind(func_id, kind);
    record_call(CallRecord::Add { slot: id.slot, replayed: false, args, tensors, func_and_kind });
}

impl<G: GraphBuilder> HostedBuilder for TracedGraph<'_, G> {}

impl<G: GraphBuilder> GraphBuilder for TracedGraph<'_, G> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        self.graph.launch_args()
    }

    /// The calls of which a submission consists are noted one by one: the task, its edges, its publish. A builder that takes a range at once reports to the
    /// machine each task itself.
    #[inline]
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc, after, when, publish } = submission;
        let added = match desc {
            TaskDesc::Replay(recording, bindings) => return self.replay_tasks(recording, bindings),
            TaskDesc::Kernel(task) => self.add_kernel(task)?,
            TaskDesc::Tensors(task) => self.add_tensors(task)?,
            TaskDesc::Chain(chain) => self.add_links(chain, when)?,
            TaskDesc::Template(template) => self.add_filled(template, when)?,
            TaskDesc::Range(range, ids) => return self.submit_tasks(range, ids),
            TaskDesc::TensorRange(range, ids) => return self.submit_tasks_on_tensors(range, ids),
            // The tasks of the others come one by one.
            _ => return Ok(None),
        };
        if let Some(id) = added {
            link_and_publish(self, id, (after, publish))?;
        }
        Ok(added)
    }

    #[inline]
    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        let outcome = self.graph.add_edge(producer, consumer)?;
        let (generation, consumer) = (producer.generation, consumer.slot);
        record_call(CallRecord::Edge { producer: producer.slot, generation, consumer, outcome });
        add_result(outcome == EdgeOutcome::Added);
        Ok(outcome)
    }

    #[inline]
    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        if self.is_recording {
            return self.graph.publish(task);
        }
        // Before the call: the machine looks when the firmware reports the publish.
        record_call(CallRecord::Publish(task.slot));
        add_result(0_u8);
        self.graph.publish(task)
    }

    fn fill_template(
        &mut self,
        template: &mut ChainTemplate,
        chain: &Chain<'_>,
    ) -> Result<(), Fault> {
        self.graph.fill_template(template, chain)?;
        let (links, words) = (template.link_count(), template.word_count());
        record_call(CallRecord::Template { links, words });
        Ok(())
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        record_call(CallRecord::Read);
        let word = self.graph.read_u32(address)?;
        add_result(word);
        Ok(word)
    }

    fn read_u64(&self, address: GmAddr) -> Result<u64, Fault> {
        record_call(CallRecord::Read);
        let word = self.graph.read_u64(address)?;
        add_result(word);
        Ok(word)
    }

    fn has_word(&self, address: GmAddr) -> bool {
        self.graph.has_word(address)
    }
}

impl<G: StreamBuilder> StreamBuilder for TracedGraph<'_, G> {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            StreamOp::BeginRecording(_) => {
                self.is_recording = true;
                add_result(3_u8);
            }
            StreamOp::EndRecording => {
                self.is_recording = false;
                add_result(4_u8);
            }
            StreamOp::Get(..) => {
                record_call(CallRecord::Read);
                add_result(6_u8);
            }
            StreamOp::Set(..) => {
                record_call(CallRecord::Read);
                add_result(7_u8);
            }
            StreamOp::BeginCollective(call) => record_collective(call, self.is_recording),
            StreamOp::EndCollective => end_collective(),
            _ => {}
        }
        let done = self.graph.stream_op(op)?;
        match (op, done) {
            (StreamOp::OpenScope(mode), OpResult::Scope(scope)) => {
                self.modes.push(mode);
                add_result(scope.serial);
            }
            (StreamOp::CloseScope(_), _) => {
                add_result(2_u8);
                self.modes.pop();
            }
            (_, OpResult::Tensor(view)) => add_result(view.base().0),
            (_, OpResult::Value(value)) => add_result(value),
            _ => {}
        }
        Ok(done)
    }
}

/// Notes that a collective call begins, if they are followed.
fn record_collective(call: &CollectiveCall, is_replayed: bool) {
    let is_followed = COLLECTIVES.with_borrow_mut(|noted| {
        let Some((calls, open)) = noted else { return false };
        calls.push(Submitted { call: *call, is_part: *open > 0, is_replayed });
        *open += 1;
        true
    });
    if is_followed {
        record_call(CallRecord::Collective);
    }
}

fn end_collective() {
    COLLECTIVES.with_borrow_mut(|noted| {
        if let Some((_, open)) = noted {
            *open = open.saturating_sub(1);
        }
    });
}

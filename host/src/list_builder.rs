//! A streaming program that runs on the host, for a device whose firmware has no builders of this process: what it submits is kept as a list
//! of tasks, and the firmware adds the list.
//!
//! ```text
//! program -> submit_tensors -> list ----run_all----> words in GM -> the firmware's builder of lists -> all tasks have completed
//!              get, set ------------------^ (where a task of the list writes, or reads, the element)
//! ```
//! The program reads an element of a result: then the list up to there runs, and another one begins. Tasks of different lists do not run at the
//! same time.
//!
//! Invariant: a tensor of the heap is freed when its scope has ended and the list with its last task has run.

use pto_abi::limits::MAX_ARGS;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_graph::owned::{OwnedArg, OwnedBlockShape};
use pto_graph::plan::BUILDER;
use pto_graph::plan::LaunchPart;
use pto_graph::task_list::{ListedTask, MAX_VIEWS, in_order, words};
use pto_graph::{
    Arg, EdgeOutcome, ElementType, GraphBuilder, HeapTag, LaunchArgs, OpResult, ScopeId,
    StreamBuilder, StreamOp, Submission, TaskDesc, TaskSpec, TensorTask, TensorView,
    link_and_publish,
};

use crate::device_memory::DeviceMemory;
use crate::options::Work;

/// The generation in the ids of tasks. It is constant, because a program is listed once.
const GENERATION: u32 = 1;
/// Scopes that may be open at once.
const MAX_SCOPES: usize = 64;

/// Runs a list of tasks on the device; the fault of a run that failed.
pub type RunList<'r> = dyn FnMut(Work<'_>) -> Result<(), Fault> + 'r;

/// See the file.
pub struct ListBuilder<'r> {
    memory: DeviceMemory,
    run: Box<RunList<'r>>,
    tasks: Vec<ListedTask>,
    /// Tasks of lists that have run.
    completed: usize,
    scopes: Vec<OpenScope>,
    serials: u64,
    /// Bytes that the tensors of a scope take at most.
    heap_bytes: u64,
    /// Tensors of scopes that have ended.
    ended: Vec<GmAddr>,
}

#[derive(Default)]
struct OpenScope {
    serial: u64,
    tensors: Vec<GmAddr>,
    bytes: u64,
}

impl<'r> ListBuilder<'r> {
    /// No tasks. `run` runs a list on the device whose memory this is, to its end. The tensors of a scope take `heap_bytes` at most.
    #[must_use]
    pub fn new(
        memory: DeviceMemory,
        heap_bytes: u64,
        run: impl FnMut(Work<'_>) -> Result<(), Fault> + 'r,
    ) -> Self {
        Self {
            memory,
            run: Box::new(run),
            tasks: Vec::new(),
            completed: 0,
            scopes: vec![OpenScope::default()],
            serials: 0,
            heap_bytes,
            ended: Vec::new(),
        }
    }

    /// Runs what has been submitted, to its end.
    ///
    /// # Errors
    /// The fault of the run; `STREAM_HEAP_RING`: the list has no room in GM.
    pub fn run_all(&mut self) -> Result<(), Fault> {
        if !self.tasks.is_empty() {
            let tasks = std::mem::take(&mut self.tasks);
            self.completed += tasks.len();
            let tasks = in_order(tasks).ok_or(Fault::GRAPH_CYCLE)?;
            let list: Vec<u8> = words(&tasks).iter().flat_map(|word| word.to_le_bytes()).collect();
            let room = self.memory.alloc(list.len() as u64);
            let place = room.map_err(|_| Fault::STREAM_HEAP_RING)?;
            let copied = self.memory.copy_to_device(place, &list);
            let orch_args = LaunchPart::TaskList(place).words();
            let ended = match copied {
                Ok(()) => (self.run)(Work::Stream { builder: BUILDER, orch_args: &orch_args }),
                Err(_) => Err(Fault::BUILD_GM_RANGE),
            };
            self.free(&[place]);
            ended?;
        }
        let ended = std::mem::take(&mut self.ended);
        self.free(&ended);
        Ok(())
    }

    fn free(&self, places: &[GmAddr]) {
        for place in places {
            // It was allocated by us, and is freed once.
            self.memory.free(*place).unwrap_or_default();
        }
    }

    /// Whether a task that has not run uses memory of this tensor; `writes_only`: whether one writes it.
    fn is_used(&self, view: &TensorView<'_>, writes_only: bool) -> bool {
        let (first, end) = (view.base().0, view.base().0.saturating_add(view.tensor_bytes()));
        let uses = |(used, writes): (&TensorView<'_>, bool)| {
            (writes || !writes_only)
                && used.base().0 < end
                && first < used.base().0.saturating_add(used.tensor_bytes())
        };
        let args = self.tasks.iter().flat_map(|task| &task.args);
        args.filter_map(OwnedArg::dependency).any(uses)
    }

    /// The number of a task in the list that has not run; `None`: it has completed.
    fn listed(&self, id: TaskId) -> Result<Option<usize>, Fault> {
        let number = id.slot as usize;
        if id.generation != GENERATION || number >= self.completed + self.tasks.len() {
            return Err(Fault::BUILD_UNKNOWN_TASK);
        }
        Ok(number.checked_sub(self.completed))
    }

    /// The element's address, and its bytes.
    fn element(&self, view: &TensorView<'_>, index: &[u32]) -> Result<(GmAddr, usize), Fault> {
        let at = view.element_address(index).ok_or(Fault::STREAM_VIEW_RANGE)?;
        let bytes = usize::try_from(view.element().bytes()).unwrap_or(8).min(8);
        let held = self.memory.allocation(at);
        let end = at.0.checked_add(bytes as u64).ok_or(Fault::BUILD_GM_RANGE)?;
        let is_held = held.is_some_and(|(first, held)| end <= first.0 + held);
        if is_held { Ok((at, bytes)) } else { Err(Fault::BUILD_GM_RANGE) }
    }

    /// Writes a task down.
    fn list(&mut self, task: ListedTask) -> Result<TaskId, Fault> {
        let slot = self.completed + self.tasks.len();
        let slot = u32::try_from(slot).map_err(|_| Fault::BUILD_TASKS_FULL)?;
        self.tasks.push(task);
        Ok(TaskId { slot, generation: GENERATION })
    }

    fn list_kernel(&mut self, task: &TaskSpec<'_>) -> Result<TaskId, Fault> {
        if task.args.len() > MAX_ARGS {
            return Err(Fault::BUILD_TOO_MANY_ARGS);
        }
        let args = task.args.iter().map(|word| OwnedArg::Scalar(*word)).collect();
        self.list(ListedTask { args, ..ListedTask::new(task.func_id, task.kind) })
    }

    fn list_tensors(&mut self, task: &TensorTask<'_>) -> Result<TaskId, Fault> {
        if outputs_overlap(task.args) {
            return Err(Fault::STREAM_OUT_OVERLAP);
        }
        let count = task.args.iter().filter(|arg| arg.tensor().is_some()).count();
        let is_alone = count > MAX_VIEWS;
        if is_alone {
            // More than a task of a list has. It runs by itself, so that it needs none of them.
            self.run_all()?;
        }
        let args = task.args.iter().map(|arg| match arg {
            Arg::Scalar(word) => Ok(OwnedArg::Scalar(*word)),
            Arg::BoundScalar(_) => Err(Fault::STREAM_NOT_RECORDING),
            Arg::In(view) | Arg::Out(view) | Arg::InOut(view) | Arg::NoDep(view) if is_alone => {
                Ok(OwnedArg::Scalar(view.address().0))
            }
            Arg::NoDep(view) => Ok(OwnedArg::Scalar(view.address().0)),
            Arg::In(view) => Ok(OwnedArg::In(view.detach())),
            Arg::Out(view) => Ok(OwnedArg::Out(view.detach())),
            Arg::InOut(view) => Ok(OwnedArg::InOut(view.detach())),
        });
        let args = args.collect::<Result<_, _>>()?;
        let mut producers = Vec::new();
        for id in task.after {
            producers.extend(self.listed(*id)?.filter(|number| !producers.contains(number)));
        }
        let block_shape =
            OwnedBlockShape::of(&task.block_shape, |func_id| func_id, |element| element.detach());
        let (kernel, kind) = (task.func_id, task.kind);
        let listed = ListedTask { kernel, kind, args, producers, block_shape };
        let id = self.list(listed)?;
        if is_alone {
            self.run_all()?;
        }
        Ok(id)
    }
}

impl Drop for ListBuilder<'_> {
    fn drop(&mut self) {
        let open = self.scopes.iter().flat_map(|scope| &scope.tensors);
        let all: Vec<_> = open.chain(&self.ended).copied().collect();
        self.free(&all);
    }
}

/// The address range of a view: its first element, and the end of its last one.
fn span(view: &TensorView<'_>) -> (u64, u64) {
    let first = view.address().0;
    (first, first.saturating_add(view.span_bytes()))
}

/// Whether two written arguments may have an element in common. The test compares address ranges, so it may report an overlap that does not
/// exist. The builder then submits the task with one access to the whole of each tensor.
fn outputs_overlap(args: &[Arg<'_>]) -> bool {
    let written = |arg: &Arg<'_>| match arg {
        Arg::Out(view) | Arg::InOut(view) => Some(span(view)),
        _ => None,
    };
    let spans: Vec<_> = args.iter().filter_map(written).collect();
    let meets = |one: &(u64, u64), other: &(u64, u64)| one.0 < other.1 && other.0 < one.1;
    spans
        .iter()
        .enumerate()
        .any(|(at, one)| spans.iter().skip(at + 1).any(|other| meets(one, other)))
}

impl GraphBuilder for ListBuilder<'_> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::default()
    }

    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc, after, publish, .. } = submission;
        let id = match desc {
            TaskDesc::Kernel(task) => self.list_kernel(&task)?,
            TaskDesc::Tensors(task) => self.list_tensors(task)?,
            TaskDesc::Replay(..) => return Err(Fault::STREAM_RECORDING_UNKNOWN),
            _ => return Ok(None),
        };
        link_and_publish(self, id, (after, publish))?;
        Ok(Some(id))
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        if producer == consumer {
            return Err(Fault::BUILD_SELF_EDGE);
        }
        let from = self.listed(producer)?;
        let to = self.listed(consumer)?.ok_or(Fault::BUILD_CONSUMER_PUBLISHED)?;
        let Some(from) = from else { return Ok(EdgeOutcome::AlreadySatisfied) };
        let task = self.tasks.get_mut(to).ok_or(Fault::BUILD_UNKNOWN_TASK)?;
        if !task.producers.contains(&from) {
            task.producers.push(from);
        }
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        self.listed(task).map(drop)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        let mut word = [0; 4];
        let read = self.memory.copy_from_device(address, &mut word);
        read.map(|()| u32::from_le_bytes(word)).map_err(|_| Fault::BUILD_GM_RANGE)
    }
}

impl ListBuilder<'_> {
    fn push_scope(&mut self) -> Result<ScopeId, Fault> {
        if self.scopes.len() > MAX_SCOPES {
            return Err(Fault::STREAM_SCOPE_DEPTH);
        }
        self.serials += 1;
        let id = ScopeId {
            depth: u32::try_from(self.scopes.len()).unwrap_or(u32::MAX),
            serial: self.serials,
        };
        self.scopes.push(OpenScope { serial: self.serials, ..OpenScope::default() });
        Ok(id)
    }

    fn pop_scope(&mut self, scope: ScopeId) -> Result<(), Fault> {
        let is_innermost = self.scopes.len() > 1
            && self.scopes.last().is_some_and(|open| open.serial == scope.serial);
        let open = if is_innermost { self.scopes.pop() } else { None };
        let open = open.ok_or(Fault::STREAM_SCOPE_NOT_OPEN)?;
        self.ended.extend(open.tensors);
        Ok(())
    }

    fn allocate(
        &mut self,
        element: ElementType,
        shape: &[u32],
    ) -> Result<TensorView<'static>, Fault> {
        let view = TensorView::of_heap(GmAddr::NULL, element, shape, HeapTag::default());
        let bytes = view.tensor_bytes().max(1);
        let held = self.scopes.last().map_or(0, |scope| scope.bytes);
        let sum = held.checked_add(bytes).filter(|sum| *sum <= self.heap_bytes);
        let sum = sum.ok_or(Fault::STREAM_HEAP_RING)?;
        let place = match self.memory.alloc(bytes) {
            Ok(place) => place,
            Err(_) => {
                // The memory of ended scopes becomes free after the tasks that use it.
                self.run_all()?;
                self.memory.alloc(bytes).map_err(|_| Fault::STREAM_HEAP_RING)?
            }
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.bytes = sum;
            scope.tensors.push(place);
        }
        Ok(TensorView::dense(place, element, shape))
    }

    /// Reads an element, when what writes it has run.
    fn read_element(&mut self, view: &TensorView<'_>, index: &[u32]) -> Result<u64, Fault> {
        if self.is_used(view, true) {
            self.run_all()?;
        }
        let (at, bytes) = self.element(view, index)?;
        let mut word = [0; 8];
        let (part, _) = word.split_at_mut(bytes);
        self.memory.copy_from_device(at, part).map_err(|_| Fault::BUILD_GM_RANGE)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Writes an element, when what uses it has run.
    fn write_element(
        &mut self,
        view: &TensorView<'_>,
        index: &[u32],
        value: u64,
    ) -> Result<(), Fault> {
        if self.is_used(view, false) {
            self.run_all()?;
        }
        let (at, bytes) = self.element(view, index)?;
        let word = value.to_le_bytes();
        let (part, _) = word.split_at(bytes);
        self.memory.copy_to_device(at, part).map_err(|_| Fault::BUILD_GM_RANGE)
    }
}

impl StreamBuilder for ListBuilder<'_> {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            StreamOp::OpenScope(_) => self.push_scope().map(OpResult::Scope),
            StreamOp::CloseScope(scope) => self.pop_scope(scope).map(|()| OpResult::Done),
            StreamOp::Alloc(element, shape) => self.allocate(element, shape).map(OpResult::Tensor),
            StreamOp::Get(view, index) => self.read_element(view, index).map(OpResult::Value),
            StreamOp::Set(view, index, value) => {
                self.write_element(view, index, value).map(|()| OpResult::Done)
            }
            StreamOp::Yield => Ok(OpResult::Done),
            StreamOp::BeginRecording(_) => Err(Fault::STREAM_RECORDING_FULL),
            StreamOp::EndRecording => Err(Fault::STREAM_NOT_RECORDING),
            _ => op.alone().unwrap_or(Err(Fault::RUNTIME_VARIANT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
    use pto_graph::task_list::MAX_VIEWS;
    use pto_graph::{
        Arg, DependencyMode, EdgeOutcome, ElementType, GraphBuilder, StreamBuilder, TaskSpec,
        TensorTask, TensorView,
    };

    use super::ListBuilder;
    use crate::device_memory::DeviceMemory;
    use crate::memory::Memory;
    use crate::options::Work;

    const GM_BYTES: u64 = 1 << 20;

    fn memory() -> DeviceMemory {
        // The memory has room for lists in addition to the tensors.
        DeviceMemory::of(Arc::new(Memory::map(GM_BYTES + (1 << 16)).expect("memory")))
    }

    /// Runs a program; how many tasks each list had.
    fn lists(program: impl FnOnce(&mut ListBuilder<'_>, &DeviceMemory)) -> Vec<u64> {
        let memory = memory();
        let counts = RefCell::new(Vec::new());
        let mut builder = ListBuilder::new(memory.clone(), GM_BYTES / 4, |work| {
            let Work::Stream { orch_args, .. } = work else { return Err(Fault::BUILD_FAILED) };
            let mut count = [0; 8];
            memory.copy_from_device(GmAddr(orch_args[1]), &mut count).expect("the list is there");
            counts.borrow_mut().push(u64::from_le_bytes(count));
            Ok(())
        });
        program(&mut builder, &memory);
        builder.run_all().expect("it runs");
        drop(builder);
        assert_eq!(memory.user_bytes(), 0, "all tensors are freed");
        counts.into_inner()
    }

    fn write(builder: &mut ListBuilder<'_>, view: &TensorView<'_>) -> TaskId {
        let args = [Arg::Scalar(7), Arg::Out(view)];
        builder.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args)).expect("a task")
    }

    #[test]
    fn a_list_ends_where_an_element_of_it_is_read() {
        let counts = lists(|builder, _| {
            let [a, b] = [(); 2].map(|()| builder.alloc(ElementType::F32, &[16]).expect("room"));
            builder.set(&a, &[3], 0x4040_0000).expect("nothing uses it");
            write(builder, &b);
            // No task writes it.
            assert_eq!(builder.get(&a, &[3]), Ok(0x4040_0000));
            write(builder, &b);
            builder.get(&b, &[0]).expect("an element");
            assert_eq!(builder.get(&b, &[16]), Err(Fault::STREAM_VIEW_RANGE));
            let args = [Arg::In(&a)];
            builder
                .submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))
                .expect("a task");
            // A task reads it, and must not see what is written now.
            builder.set(&a, &[0], 1).expect("an element");
        });
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn tasks_of_earlier_lists_have_completed() {
        let counts = lists(|builder, _| {
            let a = builder.alloc(ElementType::F32, &[16]).expect("room");
            let first = write(builder, &a);
            builder.run_all().expect("it runs");
            let second = write(builder, &a);
            let third = write(builder, &a);
            assert_eq!(builder.add_edge(first, third), Ok(EdgeOutcome::AlreadySatisfied));
            assert_eq!(builder.add_edge(second, third), Ok(EdgeOutcome::Added));
            assert_eq!(builder.add_edge(third, third), Err(Fault::BUILD_SELF_EDGE));
            assert_eq!(
                builder.publish(TaskId { slot: 3, generation: 1 }),
                Err(Fault::BUILD_UNKNOWN_TASK)
            );
            let after = [first, second];
            let task = TensorTask::new(FuncId(3), CoreKind::AIV, &[]).after(&after);
            builder.submit_tensors(&task).expect("a task");
        });
        assert_eq!(counts, [1, 3]);
    }

    #[test]
    fn a_task_waits_for_one_that_was_added_later() {
        let counts = lists(|builder, _| {
            let mut add = || {
                let task = TaskSpec::new(FuncId(3), CoreKind::AIV, &[7]);
                builder.add_task(task).expect("a task")
            };
            let [first, second, third] = [add(), add(), add()];
            assert_eq!(builder.add_edge(third, first), Ok(EdgeOutcome::Added));
            assert_eq!(builder.add_edge(first, second), Ok(EdgeOutcome::Added));
            builder.run_all().expect("third, first, second");
            let task = TaskSpec::new(FuncId(3), CoreKind::AIV, &[7]);
            let [one, other] = [(); 2].map(|()| builder.add_task(task).expect("a task"));
            assert_eq!(builder.add_edge(one, other), Ok(EdgeOutcome::Added));
            assert_eq!(builder.add_edge(other, one), Ok(EdgeOutcome::Added));
            assert_eq!(builder.run_all(), Err(Fault::GRAPH_CYCLE));
        });
        assert_eq!(counts, [3], "tasks that wait for each other do not run");
    }

    #[test]
    fn a_task_with_more_tensors_than_a_list_has_runs_by_itself() {
        let counts = lists(|builder, _| {
            let views: Vec<_> = (0..=MAX_VIEWS)
                .map(|_| builder.alloc(ElementType::F32, &[16]).expect("room"))
                .collect();
            write(builder, &views[0]);
            let args: Vec<_> = views.iter().map(Arg::In).collect();
            builder
                .submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))
                .expect("a task");
            write(builder, &views[0]);
            let few: Vec<_> = views.iter().take(MAX_VIEWS).map(Arg::In).collect();
            builder
                .submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &few))
                .expect("a task");
        });
        assert_eq!(counts, [1, 1, 2]);
    }

    #[test]
    fn outputs_that_meet_are_refused_as_the_runtime_does() {
        lists(|builder, _| {
            let a = builder.alloc(ElementType::F32, &[16]).expect("room");
            let [left, right] = [a.slice(0, 0, 9), a.slice(0, 8, 8)];
            let args = [Arg::Out(&left), Arg::InOut(&right)];
            let refused = builder.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args));
            assert_eq!(refused, Err(Fault::STREAM_OUT_OVERLAP));
        });
    }

    #[test]
    fn tensors_of_ended_scopes_make_room() {
        let counts = lists(|builder, memory| {
            let elements = u32::try_from(GM_BYTES / 4 / 4).expect("small");
            for _ in 0..8 {
                let scope = builder.open_scope(DependencyMode::DERIVED).expect("a scope");
                let a = builder.alloc(ElementType::F32, &[elements]).expect("room");
                write(builder, &a);
                let full = builder.alloc(ElementType::F32, &[1]).err();
                assert_eq!(full, Some(Fault::STREAM_HEAP_RING), "the heap is full");
                builder.close_scope(scope).expect("it is open");
                assert_eq!(builder.close_scope(scope), Err(Fault::STREAM_SCOPE_NOT_OPEN));
            }
            assert!(memory.user_bytes() > 0);
        });
        assert!(counts.len() > 1 && counts.iter().sum::<u64>() == 8, "{counts:?}");
    }
}

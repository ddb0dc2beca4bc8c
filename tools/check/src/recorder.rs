//! Recording: a builder that notes what a program submits, and hands it on to another builder.
//!
//! The other one decides what is accepted: it is the firmware's builder while a run goes on, or one without cores
//! (`rig.rs`). What it refuses is not noted. Builders in C, which the firmware calls with its arena, do not come through here.

use std::collections::HashMap;

use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, RuntimeVariant, TaskId};
use pto_graph::{
    Arg, Bindings, BlockShape, Chain, EdgeOutcome, ElementType, GraphBuilder, HostedBuilder,
    LaunchArgs, OpResult, Predicate, Publish, Recording, StreamBuilder, StreamOp, Submission,
    TaskDesc, TaskSpec, TensorTask, TensorView, link_and_publish,
};

use crate::program::{
    Action, Argument, ChainLink, Location, OwnedBlockShape, Program, Step, Task, Tensor, Use, View,
    row_major,
};

/// Notes what goes through it.
pub struct Recorder<'a, G> {
    graph: &'a mut G,
    program: &'a mut Program,
    ids: HashMap<TaskId, u32>,
    /// Tensors by base, and by depth and serial number of their scope.
    tensors: HashMap<(u64, u32, u64), usize>,
    /// Ids of recordings, by where the builder keeps them.
    recordings: HashMap<u32, u32>,
    /// The recording that is being made.
    open_recording: Option<u32>,
    /// Chains of a program that has them, on a builder that has none: their kernels, by the last one.
    kernels: HashMap<TaskId, Vec<TaskId>>,
}

impl<'a, G: GraphBuilder> Recorder<'a, G> {
    /// Notes into `program` what is submitted to `graph`.
    pub fn new(graph: &'a mut G, program: &'a mut Program) -> Self {
        Self {
            graph,
            program,
            ids: HashMap::new(),
            tensors: HashMap::new(),
            recordings: HashMap::new(),
            open_recording: None,
            kernels: HashMap::new(),
        }
    }

    fn step(&mut self, action: Action) {
        self.program.steps.push(Step { action, line: 0 });
    }

    fn add(&mut self, id: TaskId, task: Task) {
        self.ids.insert(id, task.id);
        self.program.tasks.push(task);
        self.step(Action::Add(self.program.tasks.len() - 1));
    }

    /// The number of the next task.
    fn next(&self) -> u32 {
        u32::try_from(self.program.tasks.len()).unwrap_or(u32::MAX)
    }

    fn id(&self, task: TaskId) -> Result<u32, Fault> {
        self.ids.get(&task).copied().ok_or(Fault::BUILD_UNKNOWN_TASK)
    }

    /// The task that was added last, if it is this one and unpublished.
    fn newest(&mut self, id: u32) -> Option<&mut Task> {
        let is_last = matches!(self.program.steps.last()?.action, Action::Add(_));
        let task = self.program.tasks.last_mut()?;
        (is_last && task.id == id && task.publish == Publish::Later).then_some(task)
    }

    /// The index of a view's tensor, which it gets if it has none.
    fn tensor(&mut self, view: &TensorView<'_>) -> usize {
        let heap = view.heap();
        let key = (view.base().0, heap.depth, heap.serial);
        if let Some(&position) = self.tensors.get(&key) {
            let tensor = &mut self.program.tensors[position];
            tensor.bytes = tensor.bytes.max(view.tensor_bytes());
            return position;
        }
        let (base, bytes, element) = (view.base(), view.tensor_bytes(), view.element());
        self.put_tensor(
            key,
            Tensor {
                id: 0,
                name: None,
                bytes,
                element,
                shape: None,
                location: Location::Host(Some(base)),
            },
        )
    }

    fn put_tensor(&mut self, key: (u64, u32, u64), tensor: Tensor) -> usize {
        let position = self.program.tensors.len();
        let id = u32::try_from(position).unwrap_or(u32::MAX);
        self.program.tensors.push(Tensor { id, ..tensor });
        self.tensors.insert(key, position);
        position
    }

    fn view(&mut self, view: &TensorView<'_>) -> View {
        let tensor = self.tensor(view);
        let offset = view.offset_bytes() / view.element().bytes();
        let extents = (view.shape(), view.strides());
        // A view that was accepted has no more dimensions than there are.
        let accepted = View::new(tensor, view.element(), offset, extents);
        accepted.unwrap_or_else(|| whole(tensor, view.element(), &[]))
    }

    fn argument(&mut self, arg: &Arg<'_>) -> Argument {
        match arg {
            Arg::In(view) => Argument::In(self.view(view)),
            Arg::Out(view) => Argument::Out(self.view(view)),
            Arg::InOut(view) => Argument::InOut(self.view(view)),
            Arg::NoDep(view) => Argument::NoDep(self.view(view), Use::Unknown),
            Arg::Scalar(word) => Argument::Scalar(*word),
            Arg::BoundScalar(number) => Argument::BoundScalar(*number),
        }
    }

    fn shape(&mut self, shape: &BlockShape<'_>) -> OwnedBlockShape {
        OwnedBlockShape::of(shape, |func_id| func_id.0, |element| self.view(element))
    }

    /// Notes a task with tensors that was accepted as `id`.
    fn note(
        &mut self,
        id: TaskId,
        task: &TensorTask<'_>,
        publish: Publish,
    ) -> Result<TaskId, Fault> {
        let args = task.args.iter().map(|arg| self.argument(arg)).collect();
        let after = task.after.iter().map(|id| self.id(*id)).collect::<Result<_, _>>()?;
        let shape = self.shape(&task.block_shape);
        // A replay publishes what a record holds.
        let publish = if self.open_recording.is_some() { Publish::Now } else { publish };
        let (func, kind) = (task.func_id.0, task.kind);
        let (id_of_file, name, links) = (self.next(), None, Vec::new());
        let task = Task {
            id: id_of_file,
            name,
            func,
            kind,
            args,
            after,
            publish,
            block_shape: shape,
            links,
        };
        self.add(id, task);
        Ok(id)
    }

    fn add_kernel(&mut self, task: &TaskSpec<'_>) -> Result<Option<TaskId>, Fault> {
        let id = self.graph.add_task(*task)?;
        self.add(
            id,
            Task {
                id: self.next(),
                name: None,
                func: task.func_id.0,
                kind: task.kind,
                args: task.args.iter().map(|word| Argument::Scalar(*word)).collect(),
                after: Vec::new(),
                publish: Publish::Later,
                block_shape: OwnedBlockShape::default(),
                links: Vec::new(),
            },
        );
        Ok(Some(id))
    }

    fn add_tensors(
        &mut self,
        task: &TensorTask<'_>,
        publish: Publish,
    ) -> Result<Option<TaskId>, Fault> {
        let (desc, when) = (TaskDesc::Tensors(task), None);
        let added = self.graph.submit_desc(Submission { desc, after: &[], when, publish })?;
        added.map(|id| self.note(id, task, publish)).transpose()
    }

    fn add_links(
        &mut self,
        chain: &Chain<'_>,
        when: Option<&Predicate<'_>>,
    ) -> Result<Option<TaskId>, Fault> {
        // What is built on the device has chains, wherever it is recorded.
        let has_chains = self.program.variant == RuntimeVariant::AICPU_BUILD_GRAPH;
        let (desc, publish) = (TaskDesc::Chain(chain), Publish::Later);
        let id = match self.graph.submit_desc(Submission { desc, after: &[], when, publish })? {
            Some(id) => id,
            None if has_chains && chain.kernels() > 1 => self.add_kernels(chain)?,
            None => return Ok(None),
        };
        let shape = match when {
            Some(predicate) => {
                let task = TensorTask::new(FuncId(0), CoreKind::AIV, &[]).when(predicate);
                self.shape(&task.block_shape)
            }
            None => OwnedBlockShape::default(),
        };
        self.note_chain(id, chain, shape);
        Ok(Some(id))
    }

    /// Adds the kernels of a chain to a builder that has no chains; the last one.
    fn add_kernels(&mut self, chain: &Chain<'_>) -> Result<TaskId, Fault> {
        chain.check()?;
        let (mut words, mut kernels) = ([0; MAX_CHAIN_ARGS], Vec::new());
        for (link, turn) in chain.turns() {
            let id = self.graph.add_task(link.task_at(turn, &mut words))?;
            if let Some(before) = kernels.last() {
                self.graph.add_edge(*before, id)?;
            }
            kernels.push(id);
        }
        let last = *kernels.last().ok_or(Fault::BUILD_CHAIN_EMPTY)?;
        self.kernels.insert(last, kernels);
        Ok(last)
    }

    /// Notes a chain that was accepted as `id`, and is not published.
    fn note_chain(&mut self, id: TaskId, chain: &Chain<'_>, shape: OwnedBlockShape) {
        let mut links = Vec::new();
        for link in chain.links() {
            // Its tensors get their indices first.
            for view in link.args().iter().filter_map(Arg::tensor) {
                self.tensor(view);
            }
            let bases: HashMap<usize, GmAddr> = self
                .tensors
                .iter()
                .map(|((base, ..), position)| (*position, GmAddr(*base)))
                .collect();
            let base = |position: usize| bases.get(&position).copied();
            links.push(ChainLink::of(link, |arg| self.argument(arg), base));
        }
        let first = chain.links().first().map(|link| link.task());
        let (func, kind) = first.map_or((0, CoreKind::AIV), |task| (task.func_id.0, task.kind));
        let (args, after, publish) = (Vec::new(), Vec::new(), Publish::Later);
        let task = Task {
            id: self.next(),
            name: None,
            func,
            kind,
            args,
            after,
            publish,
            block_shape: shape,
            links,
        };
        self.add(id, task);
    }
}

/// The view of a whole tensor.
pub(crate) fn whole(tensor: usize, element: ElementType, shape: &[u32]) -> View {
    let none = || View::new(tensor, element, 0, (&[], &[]));
    let view = View::new(tensor, element, 0, (shape, &row_major(shape))).or_else(none);
    view.expect("a view without dimensions is one")
}

impl<G: GraphBuilder> HostedBuilder for Recorder<'_, G> {}

impl<G: GraphBuilder> GraphBuilder for Recorder<'_, G> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        self.graph.launch_args()
    }

    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc, after, when, publish } = submission;
        let added = match desc {
            TaskDesc::Kernel(task) => self.add_kernel(&task)?,
            TaskDesc::Tensors(task) if after.is_empty() => return self.add_tensors(task, publish),
            TaskDesc::Tensors(task) => self.add_tensors(task, Publish::Later)?,
            TaskDesc::Chain(chain) => self.add_links(chain, when)?,
            TaskDesc::Replay(record, bindings) => return self.replay_recording(record, bindings),
            // The tasks of the others come one by one.
            _ => return Ok(None),
        };
        if let Some(id) = added {
            link_and_publish(self, id, (after, publish))?;
        }
        Ok(added)
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        let first = self.kernels.get(&consumer).and_then(|kernels| kernels.first());
        let outcome = self.graph.add_edge(producer, *first.unwrap_or(&consumer))?;
        let (producer, consumer) = (self.id(producer)?, self.id(consumer)?);
        match self.newest(consumer).filter(|_| producer < consumer) {
            Some(task) => task.after.push(producer),
            None => self.step(Action::Edge { producer, consumer }),
        }
        Ok(outcome)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        match self.kernels.get(&task) {
            Some(kernels) => kernels.iter().try_for_each(|kernel| self.graph.publish(*kernel))?,
            None => self.graph.publish(task)?,
        }
        if self.open_recording.is_some() {
            return Ok(());
        }
        let id = self.id(task)?;
        match self.newest(id) {
            Some(task) => task.publish = Publish::Now,
            None => self.step(Action::Publish(id)),
        }
        Ok(())
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        self.graph.read_u32(address)
    }

    fn has_word(&self, address: GmAddr) -> bool {
        self.graph.has_word(address)
    }
}

impl<G: GraphBuilder> Recorder<'_, G> {
    fn note_heap(&mut self, view: &TensorView<'_>, shape: &[u32]) {
        let heap = view.heap();
        let (bytes, element, shape) = (view.tensor_bytes(), view.element(), Some(shape.to_vec()));
        let position = self.put_tensor(
            (view.base().0, heap.depth, heap.serial),
            Tensor { id: 0, name: None, bytes, element, shape, location: Location::Heap },
        );
        self.program.heap.push((position, view.base()));
        self.step(Action::Allocate(position));
    }

    fn note_recording(&mut self, serial: u32, shapes: &[TensorView<'_>]) {
        self.open_recording = Some(serial);
        let tensors = shapes.iter().enumerate().map(|(index, shape)| {
            let bound = shape.placeholder(index, serial);
            let (heap, bytes, element) = (bound.heap(), bound.tensor_bytes(), bound.element());
            let location = Location::Bound(index);
            let position = self.put_tensor(
                (bound.base().0, heap.depth, heap.serial),
                Tensor { id: 0, name: None, bytes, element, shape: None, location },
            );
            (position, self.view(&bound))
        });
        let (record, tensors) = (serial, tensors.collect());
        self.step(Action::BeginRecording { record, tensors });
    }

    fn replay_recording(
        &mut self,
        record: &Recording,
        bindings: &Bindings<'_>,
    ) -> Result<Option<TaskId>, Fault> {
        let submission = Submission::new(TaskDesc::Replay(record, bindings));
        let replayed = self.graph.submit_desc(submission)?;
        let tensors = bindings.tensors.iter().map(|view| self.view(view)).collect();
        let id = *self.recordings.get(&record.at).ok_or(Fault::STREAM_RECORDING_UNKNOWN)?;
        let scalars = bindings.scalars.to_vec();
        self.step(Action::Replay { record: id, tensors, scalars });
        Ok(replayed)
    }
}

impl<G: StreamBuilder> StreamBuilder for Recorder<'_, G> {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        let done = self.graph.stream_op(op)?;
        match (op, done) {
            (StreamOp::OpenScope(mode), _) => self.step(Action::OpenScope(mode)),
            (StreamOp::CloseScope(_), _) => self.step(Action::CloseScope),
            (StreamOp::Alloc(_, shape), OpResult::Tensor(view)) => self.note_heap(&view, shape),
            (StreamOp::Get(view, index), _) => {
                let element = self.view(&element_of(view, index));
                self.step(Action::Get(element));
            }
            (StreamOp::Set(view, index, value), _) => {
                let element = self.view(&element_of(view, index));
                self.step(Action::Set(element, Some(value)));
            }
            (StreamOp::BeginRecording(shapes), OpResult::Serial(serial)) => {
                self.note_recording(serial, shapes);
            }
            (_, OpResult::Recorded(record)) => {
                if let Some(serial) = self.open_recording.take() {
                    self.recordings.insert(record.at, serial);
                }
                self.step(Action::EndRecording);
            }
            _ => {}
        }
        Ok(done)
    }
}

/// One element, as a view of its own.
fn element_of<'s>(view: &TensorView<'s>, index: &[u32]) -> TensorView<'s> {
    let one = |view: TensorView<'s>, (dim, at): (usize, &u32)| view.slice(dim, *at, 1);
    index.iter().enumerate().fold(*view, one)
}

//! Submitting a program once more: its steps as calls of a builder.

use std::collections::HashMap;

use pto_abi::limits::MAX_ARGS;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{
    Arg, Bindings, Chain, DependencyMode, HeapTag, Predicate, RawView, Recording, ScopeId,
    StartMode, StreamBuilder, Submission, TaskDesc, TensorTask, TensorView,
};

use crate::held::{Held, argument};
use crate::memory_map::Addresses;
use crate::program::{Action, Location, Program, Publish, Step, Task, View};

/// How `get` and `set` are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostAccess {
    /// As tasks that read or write the element: what they wait for is derived, and nothing has to complete.
    AsTask,
    /// As they are.
    AsItIs,
}

/// What the program itself does with an element.
#[derive(Clone, Copy)]
enum HostTouch {
    /// It reads the element.
    Get,
    /// It writes this value.
    Set(u64),
}

/// What the builder refused, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What it said.
    pub(crate) fault: Fault,
    /// The step, by its index; `None`: the end of the program.
    pub(crate) step: Option<usize>,
}

/// A tensor as the builder knows it.
#[derive(Clone, Copy)]
struct Known {
    base: GmAddr,
    bytes: u64,
    heap: HeapTag,
}

/// Submits programs.
pub(crate) struct Submitter<'p, G: ?Sized> {
    program: &'p Program,
    graph: &'p mut G,
    host_access: HostAccess,
    tensors: Vec<Option<Known>>,
    /// Tasks by id.
    ids: HashMap<u32, TaskId>,
    scopes: Vec<(ScopeId, DependencyMode)>,
    recordings: HashMap<u32, Recording>,
    open_recording: Option<u32>,
}

impl<'p, G: StreamBuilder + ?Sized> Submitter<'p, G> {
    pub(crate) fn new(
        (program, addresses): (&'p Program, &Addresses),
        graph: &'p mut G,
        host_access: HostAccess,
    ) -> Self {
        let known = |(tensor, base): (&crate::program::Tensor, &GmAddr)| {
            let heap = HeapTag::default();
            let is_host = matches!(tensor.location, Location::Host(_));
            is_host.then_some(Known { base: *base, bytes: tensor.bytes, heap })
        };
        Self {
            program,
            graph,
            host_access,
            tensors: program.tensors.iter().zip(&addresses.bases).map(known).collect(),
            ids: HashMap::new(),
            scopes: Vec::new(),
            recordings: HashMap::new(),
            open_recording: None,
        }
    }

    /// Submits all of it.
    pub(crate) fn submit(mut self) -> Result<(), Refused> {
        for (at, step) in self.program.steps.iter().enumerate() {
            self.step(step).map_err(|fault| Refused { fault, step: Some(at) })?;
        }
        Ok(())
    }

    fn step(&mut self, step: &'p Step) -> Result<(), Fault> {
        match &step.action {
            Action::OpenScope(mode) => {
                let scope = self.graph.open_scope(*mode)?;
                self.scopes.push((scope, *mode));
                Ok(())
            }
            Action::CloseScope => match self.scopes.pop() {
                Some((scope, _)) => self.graph.close_scope(scope),
                None => Err(Fault::STREAM_SCOPE_NOT_OPEN),
            },
            Action::Allocate(position) => self.allocate(*position),
            Action::Add(position) => self.add(&self.program.tasks[*position]),
            Action::Edge { producer, consumer } => self.edge(*producer, *consumer),
            Action::Publish(id) => match self.ids.get(id) {
                Some(id) => self.graph.publish(*id),
                None => Err(Fault::BUILD_UNKNOWN_TASK),
            },
            Action::Get(view) => self.touch(view, HostTouch::Get),
            Action::Set(view, value) => self.touch(view, HostTouch::Set(value.unwrap_or(0))),
            Action::BeginRecording { record, tensors } => self.begin_recording(*record, tensors),
            Action::EndRecording => {
                let record = self.graph.end_recording()?;
                self.open_recording.take().map(|id| self.recordings.insert(id, record));
                Ok(())
            }
            Action::Replay { record, tensors, scalars } => self.replay(*record, tensors, scalars),
        }
    }

    fn allocate(&mut self, position: usize) -> Result<(), Fault> {
        let tensor = &self.program.tensors[position];
        let shape = tensor.shape.as_deref().unwrap_or(&[]);
        let view = self.graph.alloc(tensor.element, shape)?;
        let (base, bytes, heap) = (view.base(), view.tensor_bytes(), view.heap());
        self.tensors[position] = Some(Known { base, bytes, heap });
        Ok(())
    }

    fn view(&self, view: &View) -> Result<TensorView<'static>, Fault> {
        // Who reads files sees to it that tensors are there before they are used.
        let known = self.tensors.get(view.tensor).copied().flatten();
        let known = known.ok_or(Fault::STREAM_STALE_TENSOR)?;
        Ok(tensor_view(view, known.base, known.bytes).tagged(known.heap))
    }

    fn add(&mut self, task: &'p Task) -> Result<(), Fault> {
        if task.is_chain() {
            let id = self.chain(task)?;
            self.ids.insert(task.id, id);
            return Ok(());
        }
        if task.args.len() > MAX_ARGS {
            return Err(Fault::BUILD_TOO_MANY_ARGS);
        }
        let none = TensorView::default();
        let mut views = vec![none; task.args.len()];
        for (slot, arg) in views.iter_mut().zip(&task.args) {
            if let Some((view, _)) = arg.view() {
                *slot = self.view(view)?;
            }
        }
        let args: Vec<Arg<'_>> =
            task.args.iter().zip(&views).map(|(a, v)| argument(a, v)).collect();
        // Those that are not there, or later, are findings of their own.
        let after: Vec<_> = task.after.iter().filter_map(|id| self.ids.get(id).copied()).collect();
        let mix: Vec<_> = task.block_shape.mix.iter().map(|func| FuncId(*func)).collect();
        let when = self.predicate(task)?;
        let shape = &task.block_shape;
        let mut tensors = TensorTask::new(FuncId(task.func), task.kind, &args)
            .after(&after)
            .mix(&mix)
            .blocks(shape.blocks)
            .priority(shape.priority);
        if shape.start == StartMode::SYNC {
            tensors = tensors.sync_start();
        }
        if let Some(when) = &when {
            tensors = tensors.when(when);
        }
        let id = match task.publish {
            Publish::Now => self.graph.submit_tensors(&tensors)?,
            Publish::Later => self.graph.add_tensor_task(&tensors)?,
        };
        self.ids.insert(task.id, id);
        Ok(())
    }

    fn predicate(&self, task: &Task) -> Result<Option<Predicate<'static>>, Fault> {
        let Some(when) = &task.block_shape.when else { return Ok(None) };
        let view = self.view(&when.element)?;
        let index = vec![0; view.shape().len()];
        Ok(Some(Predicate::new(&view, &index, when.comparison, when.value)))
    }

    fn chain(&mut self, task: &Task) -> Result<TaskId, Fault> {
        let held = Held::of(task, |view| self.view(view))?;
        let parts: Vec<_> = held.iter().map(Held::parts).collect();
        let links: Vec<_> = held.iter().zip(&parts).map(|(held, parts)| held.link(parts)).collect();
        let (chain, when) = (Chain::new(&links), self.predicate(task)?);
        let after = task.after.iter().filter_map(|id| self.ids.get(id).copied());
        let (desc, after): (_, Vec<_>) = (TaskDesc::Chain(&chain), after.collect());
        let (when, publish) = (when.as_ref(), task.publish);
        let added = self.graph.submit_desc(Submission { desc, after: &after, when, publish })?;
        match (added, when) {
            (Some(id), _) => Ok(id),
            // No chain: one kernel without tensors.
            (None, Some(when)) => self.graph.submit_chain_when(&chain, &after, when),
            (None, None) => self.graph.submit_chain(&chain, &after),
        }
    }

    fn edge(&mut self, producer: u32, consumer: u32) -> Result<(), Fault> {
        let (Some(from), Some(to)) = (self.ids.get(&producer), self.ids.get(&consumer)) else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
        self.graph.add_edge(*from, *to).map(|_| ())
    }

    /// The program reads or writes an element.
    fn touch(&mut self, view: &View, touch: HostTouch) -> Result<(), Fault> {
        let view = self.view(view)?;
        if self.host_access == HostAccess::AsItIs {
            let index = vec![0; view.shape().len()];
            return match touch {
                HostTouch::Get => self.graph.get(&view, &index).map(|_| ()),
                HostTouch::Set(value) => self.graph.set(&view, &index, value),
            };
        }
        let mode = self.scopes.last().map_or(DependencyMode::DERIVED, |(_, mode)| *mode);
        let args = match touch {
            HostTouch::Get => [Arg::In(&view)],
            HostTouch::Set(_) => [Arg::InOut(&view)],
        };
        let task = TensorTask::new(FuncId(0), CoreKind::AIV, &args);
        if mode == DependencyMode::DERIVED {
            return self.graph.submit_tensors(&task).map(|_| ());
        }
        let scope = self.graph.open_scope(DependencyMode::DERIVED)?;
        self.graph.submit_tensors(&task)?;
        self.graph.close_scope(scope)
    }

    fn begin_recording(&mut self, record: u32, tensors: &[(usize, View)]) -> Result<(), Fault> {
        // Where the tensors are does not matter here, but how they look.
        let shape = |(position, view): &(usize, View)| {
            tensor_view(view, GmAddr(64), self.program.tensors[*position].bytes)
        };
        let shapes: Vec<_> = tensors.iter().map(shape).collect();
        let serial = self.graph.begin_recording(&shapes)?;
        for (index, ((position, _), shape)) in tensors.iter().zip(&shapes).enumerate() {
            let bound = shape.placeholder(index, serial);
            let (base, bytes, heap) = (bound.base(), bound.tensor_bytes(), bound.heap());
            self.tensors[*position] = Some(Known { base, bytes, heap });
        }
        self.open_recording = Some(record);
        Ok(())
    }

    fn replay(&mut self, id: u32, tensors: &[View], scalars: &[u64]) -> Result<(), Fault> {
        let record = *self.recordings.get(&id).ok_or(Fault::STREAM_RECORDING_UNKNOWN)?;
        let tensors: Vec<_> =
            tensors.iter().map(|view| self.view(view)).collect::<Result<_, _>>()?;
        self.graph.replay(&record, &Bindings { tensors: &tensors, scalars })
    }
}

/// A view of a tensor of so many bytes at an address.
pub(crate) fn tensor_view(view: &View, base: GmAddr, bytes: u64) -> TensorView<'static> {
    TensorView::alleged(&RawView {
        base,
        bytes,
        element: view.element.get(),
        offset: view.offset,
        shape: view.shape(),
        strides: view.strides(),
    })
}

//! Builders and plans that run concurrently in one launch of a simulated device: the programs of a stream that overlaps.
//!
//! What a builder submits with tensors is ordered to the other programs by them, tile by tile. A builder may also touch memory that the runtime cannot see: a
//! word of a task is an address, a scope derives no edges, the builder reads an element while it builds. A builder that is alone in its launch may do so. In a launch with other programs, [`LaunchBranch`]
//! wraps the runtime and keeps the order: before the first such task it submits a **gate**, which uses all tensors of the program, each such task waits for the gate,
//! and a gate after the builder waits for all of them. So these tasks begin when the earlier programs have finished with the tensors, and later users of the tensors wait for them.
//!
//! ```text
//! programs before --tensor--> gate --> what the builder hides --> gate --tensor--> programs after
//! ```
//! The host writes the words of such a builder (`host/src/stitch/builder_words.rs`) to the memory of the device, and the launch has a part with their address
//! ([`LaunchPart::Builder`]).

use std::cell::RefCell;

use pto_abi::gm::GmWindow;
use pto_abi::limits::MAX_ARGS;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::group::GroupWords;
use pto_graph::plan::{BUILDER, LaunchPart};
use pto_graph::task_list::Words;
use pto_graph::{
    Arg, Bindings, BuildError, Comparison, DependencyMode, EdgeOutcome, ElementType, GraphBuilder,
    HostedBuilder, LaunchArgs, OpResult, Predicate, Publish, Recording, StreamBuilder, StreamOp,
    Submission, TaskDesc, TensorTask, TensorView, link_and_publish,
};

/// A builder of a run that streams. Programs of a set run on it.
pub(crate) trait HostedStream: StreamBuilder + HostedBuilder {}

impl<G: StreamBuilder + HostedBuilder> HostedStream for G {}

/// The parts of a launch, if it has other builders in addition to plans.
pub(crate) fn with_builders(orch_args: &[u64]) -> Option<Vec<LaunchPart>> {
    let (parts, []) = orch_args.as_chunks() else { return None };
    let parts: Vec<_> =
        parts.iter().map(|words| LaunchPart::of(*words).ok()).collect::<Option<_>>()?;
    parts.iter().any(|part| matches!(part, LaunchPart::Builder(_))).then_some(parts)
}

/// Runs the parts of a launch, each with `run`, by the symbol of its builder.
pub(crate) fn build(
    stream: &mut dyn HostedStream,
    parts: Vec<LaunchPart>,
    run: impl Fn(u64, &mut LaunchBranch<'_>) -> Option<Result<(), BuildError>>,
) -> Result<(), BuildError> {
    let in_group = !stream.launch_args().group.is_empty();
    let mut group = GroupWords::decode(stream.launch_args().group)?;
    for (number, part) in (0..).zip(parts) {
        let (symbol, mut part) = match part {
            LaunchPart::Builder(words) => LaunchBranch::of_builder(stream, words)?,
            _ => (pto_graph::symbol(BUILDER), LaunchBranch::of_plan(stream, part)),
        };
        if in_group {
            group.part = number;
            group.encode(|word| part.group.push(word));
        }
        run(symbol, &mut part).ok_or(Fault::BUILD_NO_BUILDER)??;
        part.end()?;
    }
    Ok(())
}

/// One part of a launch: the runtime, as the builder of this part sees it.
pub(crate) struct LaunchBranch<'p> {
    stream: RefCell<&'p mut dyn HostedStream>,
    /// Its own words.
    args: Vec<u64>,
    /// The words of the group.
    group: Vec<u64>,
    /// `None`: a plan, whose tasks hide nothing.
    order: Option<MemoryGate>,
}

/// Orders the tasks of a builder that use memory which the runtime does not see.
struct MemoryGate {
    /// The address of the words.
    at: GmAddr,
    gate_kernel: (FuncId, CoreKind),
    tensors: Vec<(GmAddr, u64, bool)>,
    gate: Option<TaskId>,
    /// The tasks that touch what the runtime cannot see.
    hidden: Vec<TaskId>,
    /// The modes of the scopes that are open.
    scopes: Vec<DependencyMode>,
    is_recording: bool,
}

impl MemoryGate {
    /// The words at an address: the builder's symbol, its arguments, and the order.
    fn read(stream: &dyn HostedStream, at: GmAddr) -> Result<(u64, Vec<u64>, Self), Fault> {
        let mut words = Words { at: at.0 };
        let symbol = words.next(stream)?;
        let mut args = Vec::new();
        for _ in 0..words.next(stream)? {
            args.push(words.next(stream)?);
        }
        let gate_kernel = (words.func(stream)?, words.code(stream, CoreKind::try_from)?);
        let mut tensors = Vec::new();
        for _ in 0..words.next(stream)? {
            let (base, bytes) = (GmAddr(words.next(stream)?), words.next(stream)?);
            tensors.push((base, bytes, words.next(stream)? != 0));
        }
        let (gate, hidden, scopes) = (None, Vec::new(), Vec::new());
        let order = Self { at, gate_kernel, tensors, gate, hidden, scopes, is_recording: false };
        Ok((symbol, args, order))
    }

    /// The tensor of the program that has the byte at an address.
    fn tensor_at(&self, address: u64) -> Option<(GmAddr, u64, bool)> {
        let has = |(base, bytes, _): &&(GmAddr, u64, bool)| {
            address.checked_sub(base.0).is_some_and(|offset| offset < *bytes)
        };
        self.tensors.iter().find(has).copied()
    }

    fn derives(&self) -> bool {
        self.scopes.last().is_none_or(|mode| *mode == DependencyMode::DERIVED)
    }

    /// Whether the runtime takes a view for another tensor than that of the program, or does not look at it.
    fn hides_view(&self, view: &TensorView<'_>) -> bool {
        // A tensor of the heap belongs to this program alone.
        let is_own = view.heap().depth != 0;
        !(is_own || self.derives() && self.is_known(view))
    }

    /// Whether the runtime knows whose element a view has: it waits for those that use it then.
    fn is_known(&self, view: &TensorView<'_>) -> bool {
        self.tensor_at(view.base().0).is_none_or(|(base, _, _)| base == view.base())
    }

    /// The first of the words, which gates read.
    fn mark(&self) -> TensorView<'static> {
        TensorView::dense(self.at, ElementType::U64, &[1])
    }

    /// A task that uses all tensors of the program, as it uses them, and waits for these tasks.
    fn submit_gate(
        &self,
        stream: &mut dyn HostedStream,
        after: &[TaskId],
    ) -> Result<Option<TaskId>, Fault> {
        let (func, kind) = self.gate_kernel;
        let mark = self.mark();
        let symbol = stream.get(&mark, &[0])?;
        // No core runs it: the builder's symbol is another one.
        let never = Predicate::new(&mark, &[0], Comparison::NOT_EQUAL, symbol);
        let mut last = None;
        for tensors in self.tensors.chunks(MAX_ARGS) {
            let whole =
                |(base, bytes, _): &(GmAddr, u64, bool)| TensorView::all_bytes(*base, *bytes);
            let views: Vec<_> = tensors.iter().map(whole).collect();
            let args = views.iter().zip(tensors).map(|(view, (_, _, is_written))| {
                if *is_written { Arg::InOut(view) } else { Arg::In(view) }
            });
            let args: Vec<_> = args.collect();
            let id = stream.add_tensor_task(&TensorTask::new(func, kind, &args).when(&never))?;
            for producer in after.iter().chain(&last) {
                stream.add_edge(*producer, id)?;
            }
            stream.publish(id)?;
            last = Some(id);
        }
        Ok(last)
    }
}

impl<'p> LaunchBranch<'p> {
    fn of_plan(stream: &'p mut dyn HostedStream, part: LaunchPart) -> Self {
        let args = part.words().to_vec();
        Self { stream: RefCell::new(stream), args, group: Vec::new(), order: None }
    }

    fn of_builder(stream: &'p mut dyn HostedStream, at: GmAddr) -> Result<(u64, Self), Fault> {
        let (symbol, args, order) = MemoryGate::read(stream, at)?;
        let (stream, group) = (RefCell::new(stream), Vec::new());
        Ok((symbol, Self { stream, args, group, order: Some(order) }))
    }

    /// The end of the branch: what follows it waits for the tasks that use hidden memory.
    fn end(self) -> Result<(), Fault> {
        match self.order {
            Some(order) if !order.hidden.is_empty() => {
                order.submit_gate(self.stream.into_inner(), &order.hidden).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Whether a recording is being made, whose tasks have no gate.
    fn records(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.is_recording)
    }

    /// The gate in front of what is hidden; `None`: the program has no tensors.
    fn gate(&mut self) -> Result<Option<TaskId>, Fault> {
        let Some(order) = &mut self.order else { return Ok(None) };
        if order.is_recording {
            return Err(Fault::STREAM_RECORDING_OPEN);
        }
        if order.gate.is_none() {
            order.gate = order.submit_gate(*self.stream.get_mut(), &[])?;
        }
        Ok(order.gate)
    }

    /// As the gate, and waits until all programs before this branch have finished with the tensors.
    fn wait_at_gate(&mut self) -> Result<(), Fault> {
        self.gate()?;
        let Some(order) = &self.order else { return Ok(()) };
        let (mark, stream) = (order.mark(), self.stream.get_mut());
        let symbol = stream.get(&mark, &[0])?;
        // The gate reads the mark, so a writer of the mark waits for the gate.
        stream.set(&mark, &[0], symbol)
    }

    /// Waits at the gate for the element of a view, if the runtime does not know whose it is.
    fn wait_for(&mut self, view: &TensorView<'_>) -> Result<(), Fault> {
        match &self.order {
            Some(order) if !order.is_known(view) => self.wait_at_gate(),
            _ => Ok(()),
        }
    }

    /// Adds a task that hides something, unpublished.
    fn behind_gate(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let gate = self.gate()?;
        let stream = self.stream.get_mut();
        let added = stream.submit_desc(submission)?;
        if let (Some(id), Some(gate), Some(order)) = (added, gate, &mut self.order) {
            stream.add_edge(gate, id)?;
            order.hidden.push(id);
        }
        Ok(added)
    }

    fn hides_word(&self, word: u64) -> bool {
        // An address need not be one of a word of four bytes.
        self.order.is_some() && self.stream.borrow().has_word(GmAddr(word & !3))
    }

    /// Reads an element of a tensor of the program when all programs before this branch have written it; `None`: no tensor of the program has it.
    fn element_of_tensor(
        &self,
        address: GmAddr,
        element: ElementType,
    ) -> Result<Option<u64>, Fault> {
        let tensor = self.order.as_ref().and_then(|order| order.tensor_at(address.0));
        let Some((base, bytes, _)) = tensor else { return Ok(None) };
        let size = element.bytes();
        let in_elements = |bytes: u64| u32::try_from(bytes / size).ok();
        let (Some(count), Some(index)) = (in_elements(bytes), in_elements(address.0 - base.0))
        else {
            return Err(Fault::STREAM_VIEW_RANGE);
        };
        if !address.0.is_multiple_of(size) {
            return Err(Fault::BUILD_GM_RANGE);
        }
        let view = TensorView::dense(base, element, &[count]);
        self.stream.borrow_mut().get(&view, &[index]).map(Some)
    }

    fn hides_view(&self, view: &TensorView<'_>) -> bool {
        self.order.as_ref().is_some_and(|order| order.hides_view(view))
    }

    /// Replays a recording. What it would hide is refused: its tasks have no ids.
    fn replay_known(
        &mut self,
        recording: &Recording,
        bindings: &Bindings<'_>,
    ) -> Result<Option<TaskId>, Fault> {
        let hides = bindings.scalars.iter().any(|word| self.hides_word(*word))
            || bindings.tensors.iter().any(|view| self.hides_view(view))
            || self.order.as_ref().is_some_and(|order| !order.derives());
        if hides {
            return Err(Fault::STREAM_RECORDING_OPEN);
        }
        self.stream.get_mut().submit_desc(Submission::new(TaskDesc::Replay(recording, bindings)))
    }

    /// Whether a description names memory whose tasks the runtime cannot put in order.
    fn hides_any(&self, desc: &TaskDesc<'_>) -> bool {
        match desc {
            TaskDesc::Kernel(task) => task.args.iter().any(|word| self.hides_word(*word)),
            TaskDesc::Tensors(task) => self.hides(task),
            // Its words vary from kernel to kernel.
            _ => self.order.is_some(),
        }
    }

    fn hides(&self, task: &TensorTask<'_>) -> bool {
        let hides = |arg: &Arg<'_>| match arg {
            Arg::Scalar(word) => self.hides_word(*word),
            Arg::NoDep(view) => view.heap().depth == 0,
            Arg::In(view) | Arg::Out(view) | Arg::InOut(view) => self.hides_view(view),
            // What is bound there is looked at when it is.
            Arg::BoundScalar(_) => false,
        };
        let predicate = task.block_shape.when();
        self.order.is_some()
            && (task.args.iter().any(hides)
                || predicate.is_some_and(|predicate| self.hides_view(predicate.element())))
    }
}

impl GraphBuilder for LaunchBranch<'_> {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs { program: &self.args, group: &self.group }
    }

    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let Submission { desc, after, when, publish } = submission;
        match desc {
            TaskDesc::Kernel(_) | TaskDesc::Tensors(_) | TaskDesc::Chain(_) => {}
            TaskDesc::Replay(recording, bindings) => return self.replay_known(recording, bindings),
            // The tasks of the others come one by one.
            _ => return Ok(None),
        }
        let hides = self.hides_any(&desc);
        let added = Submission { desc, after: &[], when, publish: Publish::Later };
        let added = match hides {
            true => self.behind_gate(added)?,
            false => self.stream.get_mut().submit_desc(added)?,
        };
        if let Some(id) = added {
            link_and_publish(self, id, (after, publish))?;
        }
        Ok(added)
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.stream.get_mut().add_edge(producer, consumer)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        self.stream.get_mut().publish(task)
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        match self.element_of_tensor(address, ElementType::U32)? {
            Some(word) => u32::try_from(word).map_err(|_| Fault::BUILD_GM_RANGE),
            None => self.stream.borrow().read_u32(address),
        }
    }

    fn read_u64(&self, address: GmAddr) -> Result<u64, Fault> {
        match self.element_of_tensor(address, ElementType::U64)? {
            Some(word) => Ok(word),
            None => self.stream.borrow().read_u64(address),
        }
    }

    fn has_word(&self, address: GmAddr) -> bool {
        self.stream.borrow().has_word(address)
    }
}

impl HostedBuilder for LaunchBranch<'_> {
    fn as_stream(&mut self) -> Option<&mut dyn StreamBuilder> {
        Some(self)
    }

    /// `None`: a program that reads the memory directly cannot be ordered.
    fn arena(&self) -> Option<GmWindow<'_>> {
        None
    }
}

impl StreamBuilder for LaunchBranch<'_> {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            // The edges of a gate are derived: it has to are in front of a scope that derives none.
            StreamOp::OpenScope(mode) if mode != DependencyMode::DERIVED && !self.records() => {
                self.gate()?;
            }
            StreamOp::Get(view, _) | StreamOp::Set(view, ..) => self.wait_for(view)?,
            StreamOp::EndRecording => {
                self.order.iter_mut().for_each(|order| order.is_recording = false);
            }
            _ => {}
        }
        let done = self.stream.get_mut().stream_op(op)?;
        if let Some(order) = &mut self.order {
            match op {
                StreamOp::OpenScope(mode) => order.scopes.push(mode),
                StreamOp::CloseScope(_) => drop(order.scopes.pop()),
                StreamOp::BeginRecording(_) => order.is_recording = true,
                _ => {}
            }
        }
        Ok(done)
    }
}

//! Whether the tasks that a builder program of this process adds call kernels with what these take.
//!
//! ```text
//! program --submit_desc--> CheckedGraph --> DeviceCall::check (call_check.rs) --> why not
//!                               '--> the builder: tensors of the heap, calls of a recording, which a replay checks again with what it binds
//! ```
//! The table of kernels is the host's, so that only programs of this process are checked before their tasks run. Tasks that bring the address of their
//! code are not looked at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::gm::GmWindow;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_aicore_kernels::LibraryKernel;
use pto_graph::signature::Signature;
use pto_graph::{
    Arg, Bindings, BuildError, BuilderSet, Chain, HostedBuilder, OpResult, PLACEHOLDER, Recording,
    StreamBuilder, StreamOp, Submission, TaskDesc, TaskRange, TaskSpec, TensorRange, TensorTask,
    TensorView, forward_graph_builder,
};

use crate::call_check::{ArgumentValue, ArgumentView, DeviceCall, Heap, OfBuilder};
use crate::error::Error;
use crate::kernel_kinds::KernelKinds;
use crate::memory::Memory;

/// In the base of a tensor on the heap of a recording.
const OF_RECORDED_HEAP: u64 = PLACEHOLDER | 1 << 61;

/// The checks of the tasks of one builder program, for as long as it builds.
struct BuilderCalls {
    kernels: Arc<KernelKinds>,
    memory: Arc<Memory>,
    heap: Heap,
    /// Those of recordings, by the number of the recording in its run.
    recordings: BTreeMap<u32, Vec<RecordedCall>>,
    /// Those of the recording that is being made.
    open: Option<Vec<RecordedCall>>,
    /// The call that is checked.
    given: Vec<ArgumentValue>,
    words: Vec<u64>,
}

/// A task of a recording.
struct RecordedCall {
    number: u64,
    kernels: Vec<(FuncId, CoreKind)>,
    blocks: u32,
    given: Vec<ArgumentValue>,
}

/// What the builder programs of a device are checked with, and which task was refused.
pub(crate) struct BuilderCheck {
    kernels: Arc<KernelKinds>,
    pub(crate) memory: Arc<Memory>,
    refused: Mutex<Option<String>>,
}

impl BuilderCheck {
    /// Checks the calls of programs that add tasks on this memory; no kernel is registered.
    pub(crate) fn of(memory: Arc<Memory>) -> Self {
        Self { kernels: Arc::default(), memory, refused: Mutex::default() }
    }

    /// The table that says which kernels there are.
    pub(crate) fn kernels(&self) -> Arc<KernelKinds> {
        Arc::clone(&self.kernels)
    }

    /// What is wrong with the task that was refused since the last build began.
    pub(crate) fn refused(&self) -> MutexGuard<'_, Option<String>> {
        // It is whole wherever a panic leaves it.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checked<'g>(&'g self, graph: &'g mut dyn HostedBuilder) -> CheckedGraph<'g> {
        *self.refused() = None;
        let calls = BuilderCalls::of(Arc::clone(&self.kernels), Arc::clone(&self.memory));
        CheckedGraph { graph, calls, added: 0, recorded: 0, check: self }
    }
}

/// Why a task of a builder program was refused. It can be read while the run goes on.
#[derive(Clone)]
pub struct CallRefusal(pub(crate) Arc<BuilderCheck>);

impl CallRefusal {
    /// What is wrong with the task; `None`: none was refused since the last program began to build.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.0.refused().clone().map(|what| Error::Call { what })
    }
}

/// A set of builder programs, the tasks of which are checked before they are added. A program whose task is refused fails.
pub(crate) struct CheckedSet<B> {
    pub(crate) programs: B,
    pub(crate) check: Arc<BuilderCheck>,
}

impl<B: BuilderSet> BuilderSet for CheckedSet<B> {
    fn names(&self) -> &[&str] {
        self.programs.names()
    }

    fn build<G: HostedBuilder>(&self, symbol: u64, graph: &mut G) -> Built {
        self.programs.build(symbol, &mut self.check.checked(graph))
    }

    fn stream_names(&self) -> &[&str] {
        self.programs.stream_names()
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(&self, symbol: u64, stream: &mut G) -> Built {
        self.programs.build_stream(symbol, &mut self.check.checked(stream))
    }
}

type Built = Option<Result<(), BuildError>>;

/// A builder whose tasks are checked before they are added.
struct CheckedGraph<'g> {
    graph: &'g mut dyn HostedBuilder,
    calls: BuilderCalls,
    /// Tasks that were added: of the program, and of the recording that is being made.
    added: u64,
    recorded: u64,
    check: &'g BuilderCheck,
}

impl CheckedGraph<'_> {
    /// Tasks so far, by which an error names the next one.
    fn count(&mut self) -> &mut u64 {
        if self.calls.open.is_some() { &mut self.recorded } else { &mut self.added }
    }

    fn submit_checked(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        let number = *self.count();
        let (checked, tasks) = match &submission.desc {
            TaskDesc::Kernel(task) => (self.calls.task(number, task), 1),
            TaskDesc::Tensors(task) => (self.calls.tensor_task(number, task), 1),
            TaskDesc::Chain(chain) => (self.calls.chain(number, chain, |task| task.kernel), 1),
            TaskDesc::Template(template) => {
                (template.with_chain(|chain| self.calls.chain(number, chain, |_| GmAddr::NULL)), 1)
            }
            TaskDesc::Range(range, _) => (self.calls.range(number, range), range.tasks()),
            TaskDesc::TensorRange(range, _) => {
                (self.calls.tensor_range(number, range), range.tasks())
            }
            TaskDesc::Replay(recording, bindings) => {
                (self.calls.replay(recording, bindings), recording.tasks)
            }
            // The tasks of the others come one by one.
            _ => return Ok(None),
        };
        if let Err(what) = checked {
            self.check.refused().get_or_insert(what);
            return Err(Fault::BUILD_FAILED);
        }
        let submitted = self.graph.submit_desc(submission)?;
        if submitted.is_some() {
            *self.count() += u64::from(tasks);
        }
        Ok(submitted)
    }
}

forward_graph_builder!(['g] CheckedGraph<'g> => graph, submit_checked);

impl HostedBuilder for CheckedGraph<'_> {
    fn as_stream(&mut self) -> Option<&mut dyn StreamBuilder> {
        self.graph.as_stream().is_some().then_some(self)
    }

    fn arena(&self) -> Option<GmWindow<'_>> {
        self.graph.arena()
    }
}

impl StreamBuilder for CheckedGraph<'_> {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        let stream = self.graph.as_stream().ok_or(Fault::BUILD_NOT_STREAMING)?;
        let done = stream.stream_op(op)?;
        match done {
            OpResult::Tensor(view) => self.calls.allocated(&view),
            OpResult::Serial(_) => {
                self.recorded = 0;
                self.calls.open = Some(Vec::new());
            }
            OpResult::Recorded(recording) => self.calls.end_recording(&recording),
            _ => {}
        }
        Ok(done)
    }
}

impl BuilderCalls {
    fn of(kernels: Arc<KernelKinds>, memory: Arc<Memory>) -> Self {
        Self {
            kernels,
            memory,
            heap: Heap::default(),
            recordings: BTreeMap::new(),
            open: None,
            given: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Whether the kernel of the task with this number takes its words.
    ///
    /// # Errors
    /// What is wrong with them: task, kernel, argument and what to give.
    fn task(&mut self, number: u64, task: &TaskSpec<'_>) -> Result<(), String> {
        if task.kernel != GmAddr::NULL {
            return self
                .kernels
                .check_code(task.func_id, task.kernel)
                .map_err(|what| format!("task {number}: {what}"));
        }
        let checked = self.looked_at(task.func_id, task.kind).and_then(|library| {
            let Some(library) = library else { return Ok(()) };
            self.given.clear();
            self.given.extend(task.args.iter().map(|word| ArgumentValue::Word(*word)));
            self.check_given(library, task.kind, 1, false)
        });
        checked.map_err(|what| format!("task {number}: {what}"))
    }

    /// Whether the kernel of the tasks of a range takes their words, of which the first task has `number`.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    fn range(&mut self, number: u64, range: &TaskRange<'_>) -> Result<(), String> {
        // Of a kernel that is not of the library only the cores are known, which are the same for all.
        let is_of_library = self.is_of_library(range.task().func_id);
        let looked_at = if is_of_library { range.tasks() } else { range.tasks().min(1) };
        if range.check(range.tasks() as usize).is_err() {
            // The runtime says why.
            return Ok(());
        }
        let mut words = [0; MAX_CHAIN_ARGS];
        (0..looked_at).try_for_each(|index| {
            self.task(number + u64::from(index), &range.task_at(index, &mut words))
        })
    }

    /// Whether the kernels of a chain take their words. `code` is where the code of a link is, as far as it is looked at: a template has the address of
    /// each kernel, also of those that are registered.
    fn chain(
        &mut self,
        number: u64,
        chain: &Chain<'_>,
        code: fn(&TaskSpec<'_>) -> GmAddr,
    ) -> Result<(), String> {
        if chain.check().is_err() {
            // The runtime says why.
            return Ok(());
        }
        let mut check = |task: TaskSpec<'_>| {
            let kernel = code(&task);
            self.task(number, &TaskSpec { kernel, ..task })
        };
        let mut words = [0; MAX_CHAIN_ARGS];
        chain.turns().try_for_each(|(link, turn)| check(link.task_at(turn, &mut words)))
    }

    /// Whether the kernels of the task with this number take its arguments.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    fn tensor_task(&mut self, number: u64, task: &TensorTask<'_>) -> Result<(), String> {
        let checked = self.check_tensor_task(number, task);
        checked.map_err(|what| format!("task {number}: {what}"))
    }

    fn check_tensor_task(&mut self, number: u64, task: &TensorTask<'_>) -> Result<(), String> {
        let shape = &task.block_shape;
        let is_defective = |view: &TensorView<'_>| view.defect().is_some();
        if shape.is_transfer() || task.args.iter().filter_map(Arg::tensor).any(is_defective) {
            // What is wrong with a view, the runtime says.
            return Ok(());
        }
        let vectors = shape.vectors().iter().map(|func_id| (*func_id, CoreKind::AIV));
        let kernels = std::iter::once((task.func_id, task.kind)).chain(vectors);
        let is_recorded = self.open.is_some();
        let mut is_given = false;
        for (func_id, kind) in kernels.clone() {
            let Some(library) = self.looked_at(func_id, kind)? else { continue };
            if !is_given {
                self.given.clear();
                self.given.extend(task.args.iter().map(given));
                is_given = true;
            }
            self.check_given(library, kind, shape.blocks(), is_recorded)?;
        }
        if let Some(open) = self.open.as_mut().filter(|_| is_given) {
            let (kernels, given) = (kernels.collect(), self.given.clone());
            open.push(RecordedCall { number, kernels, blocks: shape.blocks(), given });
        }
        Ok(())
    }

    /// Whether the kernels of the tasks of a range take their arguments, of which the first task has `number`.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    fn tensor_range(&mut self, number: u64, range: &TensorRange<'_>) -> Result<(), String> {
        let task = range.task();
        let mut kernels = std::iter::once(&task.func_id).chain(task.block_shape.vectors());
        if !kernels.any(|func_id| self.is_of_library(*func_id)) {
            return self.tensor_task(number, task);
        }
        if range.check(range.tasks() as usize).is_err() {
            return Ok(());
        }
        for index in 0..range.tasks() {
            let number = number + u64::from(index);
            let views: Vec<_> = (0..task.args.len())
                .map(|arg| range.view_at(arg, index).unwrap_or_default())
                .collect();
            let arg = |(at, (arg, view))| match arg {
                &Arg::Scalar(first) => Arg::Scalar(range.word_at(at, index, first)),
                Arg::BoundScalar(bound) => Arg::BoundScalar(*bound),
                // What the task does to it does not matter here.
                _ => Arg::NoDep(view),
            };
            let args: Vec<_> = task.args.iter().zip(&views).enumerate().map(arg).collect();
            let own = TensorTask { args: &args, ..*task };
            self.tensor_task(number, &own)?;
        }
        Ok(())
    }

    fn is_of_library(&self, func_id: FuncId) -> bool {
        self.kernels.of(func_id).is_some_and(|(_, library)| library.is_some())
    }

    /// The run has given out a tensor of its heap.
    fn allocated(&mut self, tensor: &TensorView<'_>) {
        if self.open.is_none() {
            self.heap.add(tensor.base(), tensor.tensor_bytes());
        }
    }

    /// A recording has ended.
    fn end_recording(&mut self, recording: &Recording) {
        if let Some(calls) = self.open.take() {
            self.recordings.insert(recording.at, calls);
        }
    }

    /// Whether the kernels of a recording take what a replay binds.
    ///
    /// # Errors
    /// As [`task`](Self::task), with the number of the task in the recording.
    fn replay(&mut self, recording: &Recording, bindings: &Bindings<'_>) -> Result<(), String> {
        let Some(calls) = self.recordings.remove(&recording.at) else { return Ok(()) };
        let checked = calls.iter().try_for_each(|call| {
            let checked = self.check_replayed(call, bindings);
            checked.map_err(|what| format!("task {} of a recording: {what}", call.number))
        });
        self.recordings.insert(recording.at, calls);
        checked
    }

    fn check_replayed(
        &mut self,
        call: &RecordedCall,
        bindings: &Bindings<'_>,
    ) -> Result<(), String> {
        self.given.clear();
        self.given.extend(call.given.iter().map(|given| bound(given, bindings)));
        for (func_id, kind) in &call.kernels {
            if let Some(library) = self.looked_at(*func_id, *kind)? {
                self.check_given(library, *kind, call.blocks, false)?;
            }
        }
        Ok(())
    }

    /// The kernel of the library that a func id is, whose arguments are to be looked at.
    #[inline]
    fn looked_at(
        &self,
        func_id: FuncId,
        kind: CoreKind,
    ) -> Result<Option<&'static LibraryKernel>, String> {
        match self.kernels.of(func_id) {
            Some((own, None)) if own != kind => Err(other_kind(func_id, own, kind)),
            Some((_, library)) => Ok(library),
            // The runtime says that there is none.
            None => Ok(None),
        }
    }

    fn check_given(
        &mut self,
        library: &LibraryKernel,
        kind: CoreKind,
        blocks: u32,
        is_recorded: bool,
    ) -> Result<(), String> {
        let Self { given, words, heap, memory, .. } = self;
        words.clear();
        words.extend(given.iter().map(|given| match given {
            ArgumentValue::Word(word) => *word,
            ArgumentValue::Bound(_) | ArgumentValue::View(_) => 0,
        }));
        let builder = Some(OfBuilder { given, heap, is_recorded });
        DeviceCall { words, blocks, memory, builder }.check(&library.signature(), kind)
    }
}

#[cold]
fn other_kind(func_id: FuncId, own: CoreKind, kind: CoreKind) -> String {
    let name = format!("the kernel of func id {}", func_id.0);
    let signature = Signature::own(&name, own, None);
    let defect = signature.check_form(kind, 0).err();
    defect.map(|defect| defect.describe_form(&signature).to_string()).unwrap_or_default()
}

fn given(arg: &Arg<'_>) -> ArgumentValue {
    match arg {
        Arg::Scalar(word) => ArgumentValue::Word(*word),
        Arg::BoundScalar(at) => ArgumentValue::Bound(*at),
        Arg::In(view) | Arg::Out(view) | Arg::InOut(view) | Arg::NoDep(view) => {
            ArgumentValue::View(given_view(view))
        }
    }
}

fn given_view(view: &TensorView<'_>) -> ArgumentView {
    ArgumentView { base: view.base(), bytes: view.tensor_bytes(), address: view.address() }
}

/// An argument of a recording, converted for a replay.
fn bound(given: &ArgumentValue, bindings: &Bindings<'_>) -> ArgumentValue {
    match *given {
        ArgumentValue::Bound(at) => {
            let word = usize::try_from(at).ok().and_then(|at| bindings.scalars.get(at));
            // A replay without it is refused.
            ArgumentValue::Word(word.copied().unwrap_or(0))
        }
        ArgumentValue::View(view) if view.base.0 & OF_RECORDED_HEAP == PLACEHOLDER => {
            let [_, at, ..] = view.base.0.to_le_bytes();
            let Some(tensor) = bindings.tensors.get(usize::from(at)) else { return *given };
            let tensor = given_view(tensor);
            let address = tensor.address.offset(view.address.0.wrapping_sub(view.base.0));
            ArgumentValue::View(ArgumentView { address, ..tensor })
        }
        _ => *given,
    }
}

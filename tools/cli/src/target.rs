//! What `pto run` runs: an example, or a graph file with kernels of the library.
//!
//! A graph file becomes an example whose tensors are those of the file: each of them may be given and written, and
//! those that are not given are drawn. Nothing knows what the result should be but the files of `--expect`.

use std::path::Path;
use std::sync::Arc;

use pto_abi::arena::Capacities;
use pto_abi::{BuildMode, CoreKind};
use pto_aicore_kernels::{func, parts};
use pto_check::program::{
    Action, Argument, Location, Program as GraphProgram, Step, Task, Tensor as GraphTensor,
};
use pto_check::{
    Cores, FileProgram, Kind, Options, Rings, Signatures, with_kept_heap, without_recordings,
};
use pto_examples::host::job::{Check, GraphSize, Prepared};
use pto_examples::host::random::Rng;
use pto_examples::host::{
    DType, ElementVec, Error, Example, ExampleDescription, Inputs, Needs, ParamSpec, Params,
    Program, Tensor, TensorSpec, TestSizes, Together, Verdict,
};
use pto_host::{Device, DeviceBuffer, Error as DeviceError, GraphImage, HostGraph};

use crate::errors::Failure;
use crate::kernels::KernelSet;
use crate::program;
use crate::program::{NamedProgram, ProgramRequest};
use crate::programs::ProgramSource;
use crate::tensor_folder::array_of;

/// What is run.
pub(crate) struct Target {
    pub(crate) example: &'static dyn Example,
    /// The program, if it is in a file.
    pub(crate) file: Option<FileProgram>,
    /// What its tasks call.
    pub(crate) kernels: KernelSet,
    /// The program as it is in the file, where another one runs that keeps its heap.
    pub(crate) before: Option<GraphProgram>,
    /// Whether it is a workload, whose tasks are known when its program is recorded.
    is_workload: bool,
}

/// What becomes of the tensors of a file's heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heap {
    /// The heap takes them back.
    Shared,
    /// Each has memory of its own, and what it holds is there after the run.
    Kept,
}

impl Target {
    /// An example with the kernels of the library.
    fn of(example: &'static dyn Example) -> Self {
        let (kernels, is_workload) = (KernelSet::default(), false);
        Self { example, file: None, kernels, before: None, is_workload }
    }

    /// The example of this name, or the graph file.
    pub(crate) fn find(name: &str, kernels: Option<&Path>, heap: Heap) -> Result<Self, Failure> {
        let path = match NamedProgram::find(name)? {
            NamedProgram::Example(_) if kernels.is_some() => {
                return Err(Failure::usage(format!(
                    "--kernels adds kernels for graph files, and the example {name} uses those of the library; leave it out"
                )));
            }
            NamedProgram::Workload(_) if kernels.is_some() => {
                return Err(Failure::usage(
                    "--kernels adds kernels for graph files, and a workload has its kernels in its own file; leave it out",
                ));
            }
            NamedProgram::Workload(_) if heap == Heap::Kept => {
                return Err(Failure::usage(
                    "--dump writes tensors of examples and graph files; for a workload use --output NAME=FILE.npy",
                ));
            }
            NamedProgram::Example(example) => return Ok(Self::of(example)),
            NamedProgram::Workload(example) => {
                example.warnings().for_each(|warning| eprintln!("warning: '{name}', {warning}"));
                return Ok(Self { is_workload: true, ..Self::of(example) });
            }
            NamedProgram::Graph(path) => path,
        };
        let graph = program::read(path)?;
        let before = (heap == Heap::Kept).then(|| graph.clone());
        let is_of_heap =
            graph.tensors.iter().map(|tensor| tensor.location == Location::Heap).collect();
        let graph = if heap == Heap::Kept { with_kept_heap(&graph).0 } else { graph };
        let kernels = KernelSet::with(kernels)?;
        let example = FileExample::new(path, (graph, is_of_heap), &kernels)?;
        let file = Some(example.submission.clone());
        // For the rest of the process, as the table of examples is.
        let (example, is_workload) = (Box::leak(Box::new(example)), false);
        Ok(Self { example, file, kernels, before, is_workload })
    }

    /// What its tasks are called, in the order in which they are added; none, if they have no names. `source` is the text of a workload.
    pub(crate) fn task_names(&self, source: &ProgramRequest<'_>) -> Vec<String> {
        let program = match &self.file {
            Some(file) => without_recordings(file.program()).ok(),
            // That it cannot be recorded, is no reason to lose the timeline.
            None if self.is_workload => source.program().ok().map(|(program, _)| program),
            None => None,
        };
        let Some(program) = program else { return Vec::new() };
        let added = program.steps.iter().filter_map(|step| match step.action {
            Action::Add(index) => Some(program.tasks[index].name.clone().unwrap_or_default()),
            _ => None,
        });
        let names: Vec<_> = added.collect();
        if names.iter().all(String::is_empty) { Vec::new() } else { names }
    }

    /// What the firmware of a device is to have; `None`: the examples.
    pub(crate) fn programs(&self) -> Option<ProgramSource> {
        self.file.clone().map(ProgramSource::File)
    }

    /// A failure of a run, with the line of the file that was refused.
    pub(crate) fn with_line(&self, failure: Failure) -> Failure {
        match self.file.as_ref().and_then(FileProgram::refused_line) {
            Some(line) => {
                failure.and(format!("The runtime refused line {line} of the graph file."))
            }
            None if self.file.is_some() && failure.is_circle() => failure.and(
                "`pto check` names the lines of tasks that wait for each other in a graph file.",
            ),
            None => failure,
        }
    }

    /// The graph, built on the host.
    pub(crate) fn build_on_host(
        &self,
        prepared: &Prepared,
        device: &Device,
    ) -> Result<GraphImage, Failure> {
        match &self.file {
            Some(file) => {
                let words = prepared.orch_args();
                let built = HostGraph::build(device, words, |graph| file.build(graph));
                built.map_err(|error| self.with_line(error.into()))
            }
            None => Ok(prepared.build_on_host(device)?),
        }
    }
}

static PARAMS: &[ParamSpec] = &[ParamSpec::seed("of the tensors that are not given")];

/// A graph file as an example.
struct FileExample {
    name: &'static str,
    submission: FileProgram,
    /// The tensors that can be given: those of the host's.
    inputs: &'static [TensorSpec],
    /// The tensors that can be had: those, and after them those of a heap that is kept.
    outputs: &'static [TensorSpec],
    /// By the order of `outputs`: the index of the tensor in the program.
    places: Vec<usize>,
}

/// A text for the rest of the process.
fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl FileExample {
    fn new(
        path: &Path,
        (graph, is_of_heap): (GraphProgram, Vec<bool>),
        kernels: &KernelSet,
    ) -> Result<Self, Failure> {
        let shown = path.display();
        let signatures = kernels.signatures();
        let findings = signatures.compare(&graph);
        if let Some(finding) = findings.first() {
            let (kind, listed) = (Kind::Kernel.name(), kernels.listed_by());
            return Err(Failure::usage(format!("'{shown}', {finding} ({kind}; {listed})")));
        }
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
        let name = kept(if graph.name.is_empty() { stem } else { graph.name.clone() });
        let submission = FileProgram::new(Arc::new(graph));
        if let Some(defect) = submission.defect() {
            return Err(Failure::usage(format!("'{shown}' cannot run: {defect}")));
        }
        if let Some(defect) = signatures.compare_arguments(submission.program()).first() {
            return Err(Failure::usage(format!("'{shown}' cannot run: {defect}")));
        }
        check_views(path, submission.program(), signatures)?;
        let mut specs = specs(submission.program());
        specs.sort_by_key(|(_, index)| is_of_heap[*index]);
        let given = specs.iter().filter(|(_, index)| !is_of_heap[*index]).count();
        let (specs, places): (Vec<_>, Vec<_>) = specs.into_iter().unzip();
        let outputs: &'static [TensorSpec] = Vec::leak(specs);
        Ok(Self { name, submission, inputs: &outputs[..given], outputs, places })
    }
}

/// Warns of each view that is smaller than what its kernel touches, and refuses those that make a race: what a run computes then, depends on which
/// task is faster.
fn check_views(path: &Path, graph: &GraphProgram, kernels: Signatures) -> Result<(), Failure> {
    let rings = Rings::of(&Capacities::default().streamed_whole(), BuildMode::CONCURRENT)
        .ok_or_else(|| Failure::internal("the rings that a run has are beyond all limits"))?;
    let options = Options { rings, cores: Cores::default(), kernels: Some(kernels) };
    let (warnings, races) = pto_check::check_views(graph, &options);
    let shown = path.display();
    if let Some((race, view)) = races.first().zip(warnings.first()) {
        let message = format!("'{shown}' cannot run: {view}. That makes a race: {race}");
        return Err(Failure::usage(message));
    }
    for warning in &warnings {
        eprintln!("warning: '{shown}', {warning}");
    }
    Ok(())
}

/// The tensors of the host's that a NumPy file can hold.
fn specs(graph: &GraphProgram) -> Vec<(TensorSpec, usize)> {
    let tensors = graph.tensors.iter().enumerate();
    let spec = |(index, tensor): (usize, &GraphTensor)| {
        matches!(tensor.location, Location::Host(_)).then_some(())?;
        let (dtype, shape) = array_of(tensor);
        let dims: Vec<_> = shape.iter().map(|extent| kept(extent.to_string())).collect();
        let name = kept(tensor.name.clone().unwrap_or_else(|| tensor.id.to_string()));
        let help = "a tensor of the file";
        Some((TensorSpec { name, dtype, dims: Vec::leak(dims), help }, index))
    };
    tensors.filter_map(spec).collect()
}

impl Example for FileExample {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: self.name,
            summary: "a graph file",
            program: program_of(self.submission.program()),
            params: PARAMS,
            sizes: TestSizes::OWN,
            inputs: self.inputs,
            outputs: self.outputs,
        }
    }

    fn needs(&self, _: &Params) -> Needs {
        let tasks = &self.submission.program().tasks;
        let runs_on = |kind| tasks.iter().any(|task| task.kind == kind);
        let has_mix = tasks.iter().any(|task| !task.block_shape.mix.is_empty());
        let kinds: &[CoreKind] = match (runs_on(CoreKind::AIC), has_mix || runs_on(CoreKind::AIV)) {
            (true, false) => &[CoreKind::AIC],
            (false, true) => &[CoreKind::AIV],
            _ => CoreKind::ALL,
        };
        let meets = tasks.iter().any(waits_for_others);
        Needs { kinds, cores: if meets { Together::Needed } else { Together::NotNeeded } }
    }

    fn extent(&self, dim: &str, _: &Params) -> Option<u64> {
        dim.parse().ok()
    }

    fn implied(&self, _: &'static str, _: u64, _: &Params) -> Option<(&'static str, u64)> {
        None
    }

    fn prepare(
        &self,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let blocks = self.submission.blocks().into_iter().map(|bytes| device.zeroed(index(bytes)));
        let blocks: Vec<DeviceBuffer<u8>> = blocks.collect::<Result<_, _>>()?;
        let addresses: Vec<_> = blocks.iter().map(DeviceBuffer::address).collect();
        self.submission.set_blocks(&addresses);
        let mut contents: Vec<Vec<u8>> = blocks.iter().map(|block| vec![0; block.len()]).collect();
        let mut tensors = Vec::new();
        for (number, (spec, tensor)) in self.outputs.iter().zip(&self.places).enumerate() {
            let Some((block, offset)) = self.submission.block_of(*tensor) else { continue };
            let bytes = self.submission.program().tensors[*tensor].bytes;
            let range = index(offset)..index(offset + bytes);
            let held = HeldTensor { spec, block, range };
            if number < self.inputs.len() {
                held.fill(&mut contents[block], params.get("seed"), inputs.get(spec.name));
            }
            tensors.push(held);
        }
        let size = size_of(self.submission.program());
        let check = FileCheck { blocks, contents, tensors };
        Prepared::new(FileProgram::NAME, (Vec::new(), &[]), size, Box::new(check))
    }
}

/// What the program of a file is.
fn program_of(graph: &GraphProgram) -> Program {
    let is_value = |step: &Step| matches!(step.action, Action::Get(_) | Action::Set(..));
    match graph.streams() {
        false => Program::Graph,
        true if graph.steps.iter().any(is_value) => Program::TensorsAndValues,
        true => Program::Tensors,
    }
}

/// Whether a kernel of the task waits for one on another core.
fn waits_for_others(task: &Task) -> bool {
    let is_part = [func::PART_AIC.0, func::PART_AIV.0].contains(&task.func);
    // The last word says how many parts wait for each other.
    is_part && task.args.last().is_some_and(|group| *group != Argument::Scalar(parts::ALONE))
}

/// How large the graph is.
fn size_of(graph: &GraphProgram) -> GraphSize {
    let tasks = graph.task_count() as u64;
    let arg_words = graph.tasks.iter().map(Task::arg_words).sum();
    let after: usize = graph.tasks.iter().map(|task| task.after.len()).sum();
    // A line of the file has one edge at most in addition to those of its task, and a kernel of a chain one to the next.
    let edges = (after + graph.steps.len()) as u64 + tasks;
    GraphSize { tasks, arg_words, edges }
}

/// Host and device have 64-bit addresses.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A tensor in its block.
struct HeldTensor {
    spec: &'static TensorSpec,
    block: usize,
    range: std::ops::Range<usize>,
}

impl HeldTensor {
    /// What the tensor holds before a run: what was given, or what is drawn; numbers of things are zero.
    fn fill(&self, block: &mut [u8], seed: u64, given: Option<&Tensor>) {
        let Some(bytes) = block.get_mut(self.range.clone()) else { return };
        let held = match (given, self.spec.dtype) {
            (Some(tensor), _) => tensor.bytes(),
            (None, DType::F32) => {
                let units = Rng::new(seed, self.spec.name).units(bytes.len() / 4);
                units.into_iter().flat_map(f32::to_le_bytes).collect()
            }
            (None, _) => return,
        };
        for (target, byte) in bytes.iter_mut().zip(held) {
            *target = byte;
        }
    }

    /// The tensor, out of its block.
    fn read(&self, block: &[u8]) -> Option<Tensor> {
        let shape: Vec<u64> = self.spec.dims.iter().filter_map(|dim| dim.parse().ok()).collect();
        let bytes = index(shape.iter().product()) * self.spec.dtype.bytes();
        let held = block.get(self.range.clone())?.get(..bytes)?;
        Tensor::new(shape, ElementVec::from_bytes(self.spec.dtype, held))
    }
}

/// The memory of a graph file.
struct FileCheck {
    blocks: Vec<DeviceBuffer<u8>>,
    contents: Vec<Vec<u8>>,
    tensors: Vec<HeldTensor>,
}

impl Check for FileCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.blocks.iter().zip(&self.contents).try_for_each(|(block, bytes)| block.write(bytes))
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        // The file does not say what the result should be.
        Ok(Verdict::exact(0, 0, None))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        let blocks: Vec<Vec<u8>> =
            self.blocks.iter().map(DeviceBuffer::read).collect::<Result<_, _>>()?;
        let tensor = |held: &HeldTensor| Some((held.spec.name, held.read(&blocks[held.block])?));
        Ok(self.tensors.iter().filter_map(tensor).collect())
    }
}

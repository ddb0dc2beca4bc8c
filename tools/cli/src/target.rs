//! What `pto run` runs: an example, or a graph file with kernels of the library.
//!
//! A graph file becomes an example whose tensors are those of the file: each of them may be given and written, and
//! those that are not given are drawn. Nothing knows what the result should be but the files of `--expect`.

use std::path::Path;
use std::sync::Arc;

use pto_abi::CoreKind;
use pto_check::program::{Place, Program as GraphProgram, Tensor as GraphTensor};
use pto_check::{Kind, Submission};
use pto_examples::host::job::{Check, GraphSize, Prepared};
use pto_examples::host::random::Random;
use pto_examples::host::{
    self, DType, Elements, Error, Example, Inputs, Needs, ParamSpec, Params, Program, Sizes,
    Tensor, TensorSpec, Verdict,
};
use pto_examples::workload::WorkloadFile;
use pto_graph::ElementType;
use pto_host::{Device, DeviceBuffer, Error as DeviceError, GraphImage, HostGraph};

use crate::errors::Failure;
use crate::{library, program};

/// What is run.
pub(crate) struct Target {
    pub(crate) example: &'static dyn Example,
    /// The program, if it stands in a file.
    pub(crate) file: Option<Submission>,
}

impl Target {
    /// The example of this name, or the graph file.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        let unknown = match host::find(name) {
            Ok(example) => return Ok(Self { example, file: None }),
            Err(unknown) => unknown,
        };
        let path = Path::new(name);
        if !path.exists() && path.extension().is_none() {
            return Err(Failure::from(unknown).and("There is no file of that name either."));
        }
        if path.extension().is_some_and(|extension| extension == WORKLOAD) {
            return Ok(Self { example: workload(path)?, file: None });
        }
        let graph = program::read(path)?;
        let example = FileExample::new(path, graph)?;
        let file = Some(example.submission.clone());
        // For the rest of the process, as the table of examples is.
        Ok(Self { example: Box::leak(Box::new(example)), file })
    }

    /// The graph, built on the host.
    pub(crate) fn build_on_host(
        &self,
        prepared: &Prepared,
        device: &Device,
    ) -> Result<GraphImage, Failure> {
        match &self.file {
            Some(file) => {
                Ok(HostGraph::build(device, prepared.orch_args(), |graph| file.build(graph))?)
            }
            None => Ok(prepared.build_on_host(device)?),
        }
    }
}

/// The extension of a file that holds a workload.
const WORKLOAD: &str = "workload";

/// The workload in a file.
fn workload(path: &Path) -> Result<&'static dyn Example, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::internal(format!("'{shown}': {error}")))?;
    let file = WorkloadFile::read(&text);
    Ok(file.map_err(|error| Failure::usage(format!("'{shown}', {error}")))?)
}

static PARAMS: &[ParamSpec] = &[ParamSpec::seed("of the tensors that are not given")];

/// A graph file as an example.
struct FileExample {
    name: &'static str,
    submission: Submission,
    specs: &'static [TensorSpec],
    /// By the order of `specs`: the place of the tensor in the program.
    places: Vec<usize>,
}

/// A text for the rest of the process.
fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl FileExample {
    fn new(path: &Path, graph: GraphProgram) -> Result<Self, Failure> {
        let shown = path.display();
        let findings = library::signatures().compare(&graph);
        if let Some(finding) = findings.first() {
            return Err(Failure::usage(format!(
                "'{shown}', {finding} ({}; pto list kernels shows the library)",
                Kind::Kernel.name()
            )));
        }
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
        let name = kept(if graph.name.is_empty() { stem } else { graph.name.clone() });
        let submission = Submission::new(Arc::new(graph));
        if let Some(defect) = submission.defect() {
            return Err(Failure::usage(format!("'{shown}' cannot be run: {defect}")));
        }
        let (specs, places): (Vec<_>, Vec<_>) = specs(submission.program()).into_iter().unzip();
        Ok(Self { name, submission, specs: Vec::leak(specs), places })
    }
}

/// The tensors of the host's that a NumPy file can hold.
fn specs(graph: &GraphProgram) -> Vec<(TensorSpec, usize)> {
    let tensors = graph.tensors.iter().enumerate();
    let spec = |(place, tensor): (usize, &GraphTensor)| {
        let dtype = match tensor.element {
            ElementType::F32 => DType::F32,
            // The bits of one are those of the other.
            ElementType::I32 | ElementType::U32 => DType::I32,
            _ => return None,
        };
        matches!(tensor.place, Place::Host(_)).then_some(())?;
        let shape: Vec<u64> =
            tensor.shape.iter().flatten().map(|extent| u64::from(*extent)).collect();
        // A tensor that was recorded has a size and no shape.
        let shape = if tensor.shape.is_none() { vec![tensor.bytes / 4] } else { shape };
        let dims: Vec<_> = shape.iter().map(|extent| kept(extent.to_string())).collect();
        let name = kept(tensor.name.clone().unwrap_or_else(|| tensor.id.to_string()));
        let help = "a tensor of the file";
        Some((TensorSpec { name, dtype, dims: Vec::leak(dims), help }, place))
    };
    tensors.filter_map(spec).collect()
}

impl Example for FileExample {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        "a graph file"
    }

    fn program(&self) -> Program {
        // Programs of the streaming runtime are refused.
        Program::Graph
    }

    fn needs(&self, _: &Params) -> Needs {
        let tasks = &self.submission.program().tasks;
        let runs_on = |kind| tasks.iter().any(|task| task.kind == kind);
        let beside = tasks.iter().any(|task| !task.shape.mix.is_empty());
        let kinds: &[CoreKind] = match (runs_on(CoreKind::AIC), beside || runs_on(CoreKind::AIV)) {
            (true, false) => &[CoreKind::AIC],
            (false, true) => &[CoreKind::AIV],
            _ => CoreKind::ALL,
        };
        Needs { kinds, ..Needs::USUAL }
    }

    fn params(&self) -> &'static [ParamSpec] {
        PARAMS
    }

    fn sizes(&self) -> Sizes {
        // A file is as large as it is.
        Sizes { whole: &[], little: &[] }
    }

    fn inputs(&self) -> &'static [TensorSpec] {
        self.specs
    }

    fn outputs(&self) -> &'static [TensorSpec] {
        self.specs
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
        self.submission.place(&addresses);
        let mut contents: Vec<Vec<u8>> = blocks.iter().map(|block| vec![0; block.len()]).collect();
        let mut tensors = Vec::new();
        for (spec, place) in self.specs.iter().zip(&self.places) {
            let Some((block, offset)) = self.submission.place_of(*place) else { continue };
            let bytes = self.submission.program().tensors[*place].bytes;
            let range = index(offset)..index(offset + bytes);
            let held = HeldTensor { spec, block, range };
            held.fill(&mut contents[block], params.get("seed"), inputs.get(spec.name));
            tensors.push(held);
        }
        let size = size_of(self.submission.program());
        let check = FileCheck { blocks, contents, tensors };
        Prepared::new(Submission::NAME, Vec::new(), size, Box::new(check))
    }
}

/// How large the graph is.
fn size_of(graph: &GraphProgram) -> GraphSize {
    let tasks = graph.task_count() as u64;
    let arg_words = graph.tasks.iter().map(|task| task.args.len() as u64).sum();
    let after: usize = graph.tasks.iter().map(|task| task.after.len()).sum();
    // A line of the file has one edge at most beside those of its task.
    let edges = (after + graph.steps.len()) as u64;
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
        let words: Vec<u32> = match (given, self.spec.dtype) {
            (Some(tensor), _) => tensor.bits(),
            (None, DType::F32) => {
                let units = Random::new(seed, self.spec.name).units(bytes.len() / 4);
                units.into_iter().map(f32::to_bits).collect()
            }
            (None, DType::I32) => return,
        };
        for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
    }

    /// The tensor, out of its block.
    fn read(&self, block: &[u8]) -> Option<Tensor> {
        let words = block.get(self.range.clone())?.as_chunks::<4>().0.iter();
        let words = words.map(|word| u32::from_le_bytes(*word));
        let shape: Vec<u64> = self.spec.dims.iter().filter_map(|dim| dim.parse().ok()).collect();
        let count = index(shape.iter().product());
        let elements = match self.spec.dtype {
            DType::F32 => Elements::F32(words.map(f32::from_bits).take(count).collect()),
            DType::I32 => Elements::I32(words.map(u32::cast_signed).take(count).collect()),
        };
        Tensor::new(shape, elements)
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

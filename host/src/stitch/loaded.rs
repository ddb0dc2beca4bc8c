//! A program in the memory of a device, and what it was bound to.
//!
//! A binding is kept under the words that it consists of: a loop that runs a program on the same tensors again writes nothing to
//! the device.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pto_abi::{CoreKind, FuncId, GmAddr, RuntimeVariant};
use pto_aicore_kernels::library;
use pto_graph::plan::LaunchPart;
use pto_graph::plan::epitaph;
use pto_graph::plan::layout::binding;
use pto_graph::plan::task::scratch;
use pto_graph::task_list::{self, ListedTask};
use pto_graph::{BuildError, GraphBuilder, TaskSpec};
use pto_workload::plan::{Compiled, RunFault};
use pto_workload::program::{
    BuilderReference, Format, GraphTask, Program, ProgramBody, Role, TensorLayout, dense_strides,
};

use super::builder_words::BuilderWords;
use super::error::StitchError;
use super::listed::{Listing, words_of};
use super::stitcher_core::StitcherCore;
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::host_graph::HostGraph;
use crate::image::GraphImage;
use crate::session::OwnedWork;
use crate::session::Session;
use crate::workload::{BindingError, TensorBinding, WorkloadBindings, plan_part};

/// Bindings of a program that are kept.
const KEPT_BINDINGS: usize = 256;
/// What programs have to be for, unless they are for any target.
const TARGET: &str = "a2a3";

/// A program in the memory of a device. Clones are the same program.
#[derive(Clone)]
pub struct LoadedProgram(pub(super) Arc<ProgramCore>);

pub(super) struct ProgramCore {
    pub(super) program: Program,
    code: LoadedCode,
    /// The elements of the constants, by the number of the tensor.
    pub(super) constants: Vec<Option<DeviceBuffer<u8>>>,
    bindings: Mutex<VecDeque<(Vec<u64>, Arc<BoundProgram>)>>,
    pub(super) shared: Arc<StitcherCore>,
}

/// The part of a loaded program that does not change from run to run.
enum LoadedCode {
    Plan {
        plan: DeviceBuffer<u32>,
        kernels: Option<DeviceBuffer<u8>>,
        scratch: DeviceBuffer<u64>,
    },
    /// For each task the func ids of its kernels, its own one first.
    Graph(Vec<Vec<FuncId>>),
    /// A builder program; its code is on the device.
    Builder,
}

/// A program that is bound to its tensors, ready to launch.
pub(super) enum BoundProgram {
    Plan {
        part: LaunchPart,
        epitaph: DeviceBuffer<u64>,
        /// The bindings of the part.
        _bindings: DeviceBuffer<u64>,
    },
    /// A graph that needs a launch of its own.
    Graph(Arc<GraphImage>),
    /// A graph, or a builder, that can share a launch.
    Listed {
        /// `None`: the device adds no lists.
        part: Option<ListedPart>,
        /// What the host needs to join the graph with other graphs; `None`: it cannot.
        tasks: Option<Vec<ListedTask>>,
        /// Whether it is a graph that is better loaded than added (`grain`).
        is_fine: bool,
    },
    /// A builder with its words, that has a launch for itself.
    Builder(OwnedWork),
}

/// A part of a launch that is a list of tasks or a builder.
pub(super) struct ListedPart {
    part: LaunchPart,
    /// What the part is the address of.
    _words: DeviceBuffer<u64>,
}

impl BoundProgram {
    /// Its part of a launch; `None`: it is not one part of several on the device.
    pub(super) fn part(&self) -> Option<LaunchPart> {
        match self {
            Self::Plan { part, .. } => Some(*part),
            Self::Listed { part, .. } => part.as_ref().map(|listed| listed.part),
            Self::Graph(_) | Self::Builder(_) => None,
        }
    }

    /// Its tasks, if the host can join them with those of other graphs.
    pub(super) fn tasks(&self) -> Option<&[ListedTask]> {
        match self {
            Self::Listed { tasks, .. } => tasks.as_deref(),
            Self::Plan { .. } | Self::Graph(_) | Self::Builder(_) => None,
        }
    }

    /// Whether it is a graph whose tasks are too short to be added one by one.
    const fn is_fine(&self) -> bool {
        matches!(self, Self::Listed { is_fine: true, .. })
    }

    /// Whether it can share the launch that these are to be in, and no time is lost by it: all of them are joined on the host, or no graph among
    /// them is better loaded as an image.
    pub(super) fn belongs<'b>(&'b self, pending: impl Iterator<Item = &'b Self> + Clone) -> bool {
        let mut all = pending.chain([self]);
        let is_part = |bound: &Self| bound.part().is_some() && !bound.is_fine();
        all.clone().all(|bound| bound.tasks().is_some()) || all.all(is_part)
    }
}

/// What a program shares its launch with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbours {
    /// Nothing.
    None,
    /// Other programs of its stream.
    Programs,
}

impl LoadedProgram {
    /// `native`: the kernels of the program, and others that it may call, with their func ids.
    pub(super) fn load(
        shared: &Arc<StitcherCore>,
        program: Program,
        native: &[(String, CoreKind, FuncId)],
    ) -> Result<Self, StitchError> {
        program.check_target(TARGET)?;
        let code = match program.body() {
            ProgramBody::Plan(compiled) => plan_code(shared, compiled)?,
            ProgramBody::Graph(tasks) => LoadedCode::Graph(kernels(&program, tasks, native)?),
            ProgramBody::Builder(_) => LoadedCode::Builder,
        };
        let constant = |number| {
            let elements = program.constant(number);
            elements.map(|elements| shared.upload(elements)).transpose()
        };
        let constants = (0..program.tensors().len()).map(constant).collect::<Result<_, _>>()?;
        let (bindings, shared) = (Mutex::default(), Arc::clone(shared));
        Ok(Self(Arc::new(ProgramCore { program, code, constants, bindings, shared })))
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// The layout that the program needs of a tensor.
    ///
    /// # Errors
    /// The program has no such tensor.
    pub fn input_layout(&self, name: &str) -> Result<TensorLayout, StitchError> {
        Ok(self.0.program.tensor(name)?.layout.clone())
    }
}

fn plan_code(shared: &Arc<StitcherCore>, compiled: &Compiled) -> Result<LoadedCode, StitchError> {
    let plan = shared.upload(compiled.words())?;
    let kernels = match compiled.code() {
        [] => None,
        code => Some(shared.upload(code)?),
    };
    let words = scratch::words(shared.cores, compiled.frame_words());
    let scratch = shared.zeroed(words)?;
    let words_a_core = scratch::place_words(compiled.frame_words());
    scratch.write(&[shared.cores as u64, words_a_core as u64])?;
    Ok(LoadedCode::Plan { plan, kernels, scratch })
}

/// The func ids of each task's kernels: the program's own, those of the library, and last those that were only given.
fn kernels(
    program: &Program,
    tasks: &[GraphTask],
    native: &[(String, CoreKind, FuncId)],
) -> Result<Vec<Vec<FuncId>>, StitchError> {
    let given = |kernel: &str, of_kind: CoreKind| {
        let is_kernel =
            |(name, kind, _): &&(String, CoreKind, FuncId)| *name == kernel && *kind == of_kind;
        native.iter().find(is_kernel).map(|(_, _, func_id)| *func_id)
    };
    let of_kernel = |(kernel, of_kind): (&String, CoreKind)| {
        if program.native().is_some_and(|own| own.kernel(kernel).is_some()) {
            return given(kernel, of_kind).ok_or_else(|| StitchError::Native {
                program: program.name().to_owned(),
                kernel: kernel.to_owned(),
            });
        }
        let found = library::by_name(kernel).filter(|found| found.kind == of_kind);
        let found = found.and_then(|kernel| u16::try_from(kernel.func_id).ok()).map(FuncId);
        found.or_else(|| given(kernel, of_kind)).ok_or_else(|| StitchError::Kernel {
            program: program.name().to_owned(),
            kernel: kernel.to_owned(),
        })
    };
    tasks.iter().map(|task| task.kernels().map(of_kernel).collect()).collect()
}

impl ProgramCore {
    /// Binds the program to tensors at these addresses, by their numbers, or finds the binding.
    pub(super) fn bind(
        &self,
        addresses: &[u64],
        (values, neighbours): (WorkloadBindings, Neighbours),
        session: &Session,
    ) -> Result<Arc<BoundProgram>, StitchError> {
        let words = match self.program.body() {
            ProgramBody::Plan(compiled) => self.plan_words(compiled, addresses, values)?,
            ProgramBody::Graph(_) | ProgramBody::Builder(_) => {
                values.check_empty().map_err(|cause| self.binding(cause))?;
                let shares = u64::from(neighbours == Neighbours::Programs);
                addresses.iter().copied().chain([shares]).collect()
            }
        };
        let mut kept = self.bindings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bound)) = kept.iter().find(|(known, _)| *known == words) {
            self.shared.counts.binding_hits.add(1);
            return Ok(Arc::clone(bound));
        }
        let bound = Arc::new(match (&self.code, self.program.body()) {
            (LoadedCode::Graph(funcs), ProgramBody::Graph(tasks))
                if has_block_shapes(tasks)
                    || (neighbours == Neighbours::Programs && self.shared.expands_plans) =>
            {
                self.list(tasks, funcs, addresses)?
            }
            (LoadedCode::Graph(funcs), ProgramBody::Graph(tasks)) => {
                let joined = match neighbours {
                    Neighbours::Programs => self.listing(tasks, funcs, addresses).visible(),
                    Neighbours::None => None,
                };
                if joined.is_some() {
                    BoundProgram::Listed { part: None, tasks: joined, is_fine: false }
                } else {
                    let image =
                        session.with_device(|device| graph(device, tasks, funcs, addresses))?;
                    BoundProgram::Graph(Arc::new(image?))
                }
            }
            (LoadedCode::Plan { plan, kernels, scratch }, ProgramBody::Plan(_)) => {
                self.bind_plan((plan, kernels.as_ref(), scratch), words.clone())?
            }
            (LoadedCode::Builder, ProgramBody::Builder(reference)) => {
                self.builder(reference, addresses, neighbours)?
            }
            _ => unreachable!("the code is that of the body"),
        });
        if kept.len() == KEPT_BINDINGS {
            kept.pop_front();
        }
        kept.push_back((words, Arc::clone(&bound)));
        Ok(bound)
    }

    fn plan_words(
        &self,
        compiled: &Compiled,
        addresses: &[u64],
        values: WorkloadBindings,
    ) -> Result<Vec<u64>, StitchError> {
        let mut bound = values;
        if let Some(costs) = self.shared.on_chip_costs {
            let there = self.program.tensors().iter().zip(addresses);
            let there = there.filter(|(_, address)| self.shared.is_on_chip(GmAddr(**address)));
            bound = bound.on_chip(costs, there.map(|(tensor, _)| tensor.name.clone()).collect());
        }
        for ((tensor, of_plan), address) in
            self.program.tensors().iter().zip(compiled.tensors()).zip(addresses)
        {
            let strides = match &tensor.layout.format {
                Format::Strided(strides) => strides.clone(),
                _ => dense_strides(&of_plan.shape),
            };
            let (base, bytes) = (GmAddr(*address), tensor.bytes());
            let binding = TensorBinding { base, bytes, first: 0, strides };
            bound = bound.strided(&tensor.name, binding);
        }
        bound.words(compiled).map_err(|cause| self.binding(cause))
    }

    /// A graph as a list of tasks.
    fn list(
        &self,
        tasks: &[GraphTask],
        funcs: &[Vec<FuncId>],
        addresses: &[u64],
    ) -> Result<BoundProgram, StitchError> {
        let listing = self.listing(tasks, funcs, addresses);
        let words = |at| task_list::words(&listing.tasks(at));
        // Gates read a word of the list, so that they contain its address.
        let list = DeviceBuffer::zeroed(self.shared.memory.shared(), words(GmAddr::NULL).len())?;
        list.write(&words(list.address()))?;
        let part = LaunchPart::TaskList(list.address());
        let tasks = if has_block_shapes(tasks) { None } else { listing.visible() };
        let is_fine = tasks.as_ref().is_some_and(|tasks| self.shared.grain.is_fine(tasks));
        let part = Some(ListedPart { part, _words: list });
        Ok(BoundProgram::Listed { part, tasks, is_fine })
    }

    const fn listing<'l>(
        &'l self,
        tasks: &'l [GraphTask],
        funcs: &'l [Vec<FuncId>],
        addresses: &'l [u64],
    ) -> Listing<'l> {
        Listing { program: &self.program, tasks, funcs, addresses }
    }

    /// A builder; it shares a launch where the device can keep the order, and what it builds is of the runtime that plans are of.
    fn builder(
        &self,
        reference: &BuilderReference,
        addresses: &[u64],
        neighbours: Neighbours,
    ) -> Result<BoundProgram, StitchError> {
        let args = words_of(&reference.words, addresses);
        let gate = self.shared.gate.filter(|_| {
            neighbours == Neighbours::Programs
                && reference.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER
        });
        let Some(gate) = gate else {
            return Ok(BoundProgram::Builder(self.builder_work(reference, args)));
        };
        let described = self.program.tensors().iter().zip(addresses);
        let tensors: Vec<_> = described
            .map(|(tensor, address)| {
                let is_written = !matches!(tensor.role, Role::Input | Role::Constant);
                (GmAddr(*address), tensor.bytes(), is_written)
            })
            .collect();
        let words =
            BuilderWords { builder: &reference.name, args: &args, gate, tensors: &tensors }.words();
        let words = self.shared.upload(&words)?;
        let part = LaunchPart::Builder(words.address());
        let part = Some(ListedPart { part, _words: words });
        Ok(BoundProgram::Listed { part, tasks: None, is_fine: false })
    }

    /// The run of a builder that has a launch of its own.
    fn builder_work(&self, reference: &BuilderReference, args: Vec<u64>) -> OwnedWork {
        let builder = reference.name.clone();
        match reference.variant {
            RuntimeVariant::AICPU_BUILD_GRAPH => {
                OwnedWork::AicpuBuilder { builder, orch_args: args }
            }
            _ => OwnedWork::Stream { builder, orch_args: args },
        }
    }

    fn binding(&self, cause: BindingError) -> StitchError {
        StitchError::Binding { program: self.program.name().to_owned(), cause }
    }

    fn bind_plan(
        &self,
        (plan, kernels, scratch): (
            &DeviceBuffer<u32>,
            Option<&DeviceBuffer<u8>>,
            &DeviceBuffer<u64>,
        ),
        mut words: Vec<u64>,
    ) -> Result<BoundProgram, StitchError> {
        let epitaph = self.shared.zeroed(usize::try_from(epitaph::WORDS).unwrap_or(0))?;
        words[binding::CODE] = kernels.map_or(0, |code| code.address().0);
        words[binding::CODE_BYTES] = kernels.map_or(0, |code| code.len() as u64);
        words[binding::EPITAPH] = epitaph.address().0;
        words[binding::SCRATCH] = scratch.address().0;
        words[binding::CORES] = self.shared.cores as u64;
        let bindings = self.shared.upload(&words)?;
        let part = plan_part(plan, &bindings);
        Ok(BoundProgram::Plan { part, epitaph, _bindings: bindings })
    }

    /// What a run of the program ended with, in the words of the workload; the epitaph is empty then. `None`: no fault of the program.
    pub(super) fn take_fault(&self, bound: &BoundProgram) -> Result<Option<RunFault>, StitchError> {
        let (BoundProgram::Plan { epitaph, .. }, ProgramBody::Plan(compiled)) =
            (bound, self.program.body())
        else {
            return Ok(None);
        };
        let found = compiled.fault(&epitaph.peek()?);
        if found.is_some() {
            epitaph.write(&vec![0; epitaph.len()])?;
        }
        Ok(found)
    }
}

/// Whether a task is more than one kernel on one core.
pub(super) fn has_block_shapes(tasks: &[GraphTask]) -> bool {
    tasks.iter().any(|task| !task.block_shape.is_plain())
}

/// The image of a graph whose tensors are at these addresses.
fn graph(
    device: &Device,
    tasks: &[GraphTask],
    funcs: &[Vec<FuncId>],
    addresses: &[u64],
) -> Result<GraphImage, crate::error::Error> {
    HostGraph::build(device, &[], |graph| {
        let mut ids = Vec::with_capacity(tasks.len());
        for (task, func) in tasks.iter().zip(funcs) {
            let args = words_of(&task.args, addresses);
            let after: Vec<_> = task.producers.iter().map(|producer| ids[*producer]).collect();
            let kind: CoreKind = task.kind;
            let spec = TaskSpec::new(func[0], kind, &args);
            ids.push(graph.submit(spec, &after).map_err(BuildError::Fault)?);
        }
        Ok(())
    })
}

impl fmt::Debug for LoadedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedProgram {}", self.0.program.name())
    }
}

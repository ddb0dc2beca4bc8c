//! The checked content of a program file.

use pto_abi::CoreKind;
use pto_abi::numbers::Counted;

use super::builder::{self, BuilderReference};
use super::description::{Role, TensorDescription, name_defect};
use super::error::ProgramError;
use super::format::Section;
use super::graph::{self, GraphTask};
use super::model::ModelDescription;
use super::native::NativeKernels;
use crate::plan::{Compiled, SymbolUse};

/// The target of programs that run on every device.
pub const ANY_TARGET: &str = "any";

/// What a program does.
#[derive(Clone, Debug)]
pub enum ProgramBody {
    /// A plan, which the device expands, and its tile kernels.
    Plan(Box<Compiled>),
    /// Tasks and edges, with kernels of the library and native ones.
    Graph(Vec<GraphTask>),
    /// A builder program of the device, which adds the tasks.
    Builder(BuilderReference),
}

impl ProgramBody {
    /// The name in texts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plan",
            Self::Graph(_) => "graph",
            Self::Builder(_) => "builder",
        }
    }
}

/// A program that was checked: every tensor has a layout, the body fits the tensors, and each constant has its elements.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) name: String,
    pub(super) producer: String,
    pub(super) target: String,
    pub(super) tensors: Vec<TensorDescription>,
    pub(super) body: ProgramBody,
    /// For each tensor: the elements, where it is a constant.
    pub(super) constants: Vec<Option<Vec<u8>>>,
    pub(super) source: Option<String>,
    pub(super) native: Option<NativeKernels>,
    pub(super) model: Option<ModelDescription>,
    pub(super) sections: Vec<Section>,
}

impl Program {
    /// A program for every target, without constants. The tensors of a plan are in its order, and have its names.
    ///
    /// # Errors
    /// A file cannot hold the name; a tensor cannot be as described; the body does not fit the tensors.
    pub fn new(
        name: &str,
        body: ProgramBody,
        tensors: Vec<TensorDescription>,
    ) -> Result<Self, ProgramError> {
        let program = Self {
            name: name.to_owned(),
            producer: concat!("pto ", env!("CARGO_PKG_VERSION")).to_owned(),
            target: ANY_TARGET.to_owned(),
            constants: vec![None; tensors.len()],
            tensors,
            body,
            source: None,
            native: None,
            model: None,
            sections: Vec::new(),
        };
        check_name("program", name)?;
        program.check_tensors()?;
        Ok(program)
    }

    /// The program for this target alone.
    ///
    /// # Errors
    /// `Name`: a file cannot hold the name of the target.
    pub fn for_target(mut self, target: &str) -> Result<Self, ProgramError> {
        check_name("target", target)?;
        self.target = target.to_owned();
        Ok(self)
    }

    /// The program with the text that it was made of.
    #[must_use]
    pub fn with_source(mut self, source: &str) -> Self {
        self.source = Some(source.to_owned());
        self
    }

    /// The program with kernels of its own.
    ///
    /// # Errors
    /// `Section`: a task of the graph runs such a kernel on cores of another kind; the program is no graph.
    pub fn with_native(mut self, native: NativeKernels) -> Result<Self, ProgramError> {
        self.native = Some(native);
        self.check_native()?;
        Ok(self)
    }

    pub(super) fn check_native(&self) -> Result<(), ProgramError> {
        let Some(native) = &self.native else { return Ok(()) };
        let refused = |what| Err(ProgramError::Section { section: "native", at: 0, what });
        let ProgramBody::Graph(tasks) = &self.body else {
            return refused(format!(
                "the body is a {}, and only tasks of a graph call native kernels",
                self.body.name()
            ));
        };
        let differs = |(name, kind): &(&String, CoreKind)| {
            native.kernel(name).is_some_and(|kernel| kernel.kind != *kind)
        };
        match tasks.iter().flat_map(GraphTask::kernels).find(differs) {
            None => Ok(()),
            Some((name, kind)) => refused(format!(
                "a task runs kernel {name} on {kind} cores, which it is not written for"
            )),
        }
    }

    /// The program with what it says of its model.
    ///
    /// # Errors
    /// `Section`: an input or an output is none of the program's, or has another number of elements there.
    pub fn with_model(mut self, model: ModelDescription) -> Result<Self, ProgramError> {
        self.model = Some(model);
        self.check_model()?;
        Ok(self)
    }

    pub(super) fn check_model(&self) -> Result<(), ProgramError> {
        let defect = self.model.as_ref().and_then(|model| model.defect(&self.tensors));
        let refused = |what| Err(ProgramError::Section { section: "model", at: 0, what });
        defect.map_or(Ok(()), refused)
    }

    /// Makes a tensor that the program only reads a constant with these elements.
    ///
    /// # Errors
    /// There is no such tensor, the program writes it, or there are not as many bytes as it has.
    pub fn with_constant(mut self, name: &str, elements: Vec<u8>) -> Result<Self, ProgramError> {
        let number = self.number_of(name)?;
        let tensor = &mut self.tensors[number];
        if !matches!(tensor.role, Role::Input | Role::Constant) {
            let what = format!("is {}, and only an input can be a constant", tensor.role.name());
            return Err(ProgramError::Tensor { name: name.to_owned(), what });
        }
        tensor.role = Role::Constant;
        self.constants[number] = Some(elements);
        self.check_constants()?;
        Ok(self)
    }

    /// The program with another layout of a tensor.
    ///
    /// # Errors
    /// There is no such tensor, or its plan does not have the extents that the layout takes in memory.
    pub fn with_tensor(
        mut self,
        name: &str,
        change: impl FnOnce(&mut TensorDescription),
    ) -> Result<Self, ProgramError> {
        let number = self.number_of(name)?;
        change(&mut self.tensors[number]);
        name.clone_into(&mut self.tensors[number].name);
        self.check_tensors()?;
        Ok(self)
    }

    pub(super) fn check_tensors(&self) -> Result<(), ProgramError> {
        for (number, tensor) in self.tensors.iter().enumerate() {
            let named = |what| ProgramError::Tensor { name: tensor.name.clone(), what };
            if let Some(what) = tensor.defect() {
                return Err(named(what));
            }
            if self.tensors[..number].iter().any(|other| other.name == tensor.name) {
                return Err(named("is there twice".to_owned()));
            }
        }
        match &self.body {
            ProgramBody::Plan(compiled) => self.check_plan(compiled),
            ProgramBody::Graph(tasks) => match graph::defect(tasks, &self.tensors) {
                None => Ok(()),
                Some(what) => Err(ProgramError::Section { section: "graph", at: 0, what }),
            },
            ProgramBody::Builder(reference) => match builder::defect(reference, &self.tensors) {
                None => Ok(()),
                Some(what) => Err(ProgramError::Section { section: "builder", at: 0, what }),
            },
        }
    }

    /// Whether each tensor is in memory in the layout that the plan expects.
    fn check_plan(&self, compiled: &Compiled) -> Result<(), ProgramError> {
        if compiled.tensors().len() != self.tensors.len() {
            let (plan, found) = (compiled.tensors().len(), self.tensors.len());
            let what = format!(
                "the file describes {}, and the plan has {plan}",
                Counted(found as u64, "tensor")
            );
            return Err(ProgramError::Section { section: "tensors", at: 0, what });
        }
        for (tensor, of_plan) in self.tensors.iter().zip(compiled.tensors()) {
            let stored = tensor.layout.storage_shape(&tensor.shape).unwrap_or_default();
            let fits = has_extents(&of_plan.shape, &stored, &tensor.layout.format);
            if of_plan.name != tensor.name || of_plan.dtype != tensor.dtype || !fits {
                let what = format!(
                    "is {}{:?} with the layout '{}', so that it takes the extents {stored:?} in memory; the plan has {} {}{:?} there",
                    tensor.dtype,
                    tensor.shape,
                    tensor.layout,
                    of_plan.name,
                    of_plan.dtype,
                    of_plan.shape
                );
                return Err(ProgramError::Tensor { name: tensor.name.clone(), what });
            }
        }
        Ok(())
    }

    pub(super) fn check_constants(&self) -> Result<(), ProgramError> {
        for (tensor, elements) in self.tensors.iter().zip(&self.constants) {
            let (found, wanted) = (elements.as_ref().map(Vec::len), tensor.bytes());
            let is_constant = tensor.role == Role::Constant;
            if found.is_some() != is_constant || found.is_some_and(|found| found as u64 != wanted) {
                let role = tensor.role.name();
                let found = found.map_or("none".to_owned(), |bytes| bytes.to_string());
                let what = format!("is {role} of {wanted} bytes, and the file has {found} of it");
                return Err(ProgramError::Tensor { name: tensor.name.clone(), what });
            }
        }
        Ok(())
    }

    fn number_of(&self, name: &str) -> Result<usize, ProgramError> {
        let number = self.tensors.iter().position(|tensor| tensor.name == name);
        number.ok_or_else(|| {
            let known: Vec<_> = self.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
            ProgramError::NoTensor { name: name.to_owned(), known: known.join(", ") }
        })
    }
}

/// Whether a plan's tensor of these extents is memory of the extents `stored`. Of tiles the plan may also have rows of tiles as a
/// dimension of its own.
fn has_extents(of_plan: &[u64], stored: &[u64], format: &super::layout::Format) -> bool {
    use super::layout::Format;
    match (format, of_plan, stored) {
        (Format::Tiles { rows, .. }, [n, blocks, inner, cols], [all_n, m, all_cols]) => {
            n == all_n
                && cols == all_cols
                && *inner == u64::from(*rows)
                && blocks.checked_mul(*inner) == Some(*m)
        }
        _ => of_plan == stored,
    }
}

/// What is known of it.
impl Program {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who wrote it.
    #[must_use]
    pub fn producer(&self) -> &str {
        &self.producer
    }

    /// The target; [`ANY_TARGET`] for every one.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The tensors.
    #[must_use]
    pub fn tensors(&self) -> &[TensorDescription] {
        &self.tensors
    }

    /// The tensor of this name.
    ///
    /// # Errors
    /// `NoTensor`, with the names that there are.
    pub fn tensor(&self, name: &str) -> Result<&TensorDescription, ProgramError> {
        Ok(&self.tensors[self.number_of(name)?])
    }

    /// What it does.
    #[must_use]
    pub const fn body(&self) -> &ProgramBody {
        &self.body
    }

    /// The sizes and symbols that are bound by name; of a program that is no plan, none.
    #[must_use]
    pub fn symbols(&self) -> &[(String, SymbolUse)] {
        match &self.body {
            ProgramBody::Plan(compiled) => compiled.symbols(),
            ProgramBody::Graph(_) | ProgramBody::Builder(_) => &[],
        }
    }

    /// The arrays of ragged and sparse axes; of a program that is no plan, none.
    #[must_use]
    pub fn arrays(&self) -> &[String] {
        match &self.body {
            ProgramBody::Plan(compiled) => compiled.arrays(),
            ProgramBody::Graph(_) | ProgramBody::Builder(_) => &[],
        }
    }

    /// The elements of a constant, by the number of its tensor.
    #[must_use]
    pub fn constant(&self, tensor: usize) -> Option<&[u8]> {
        self.constants.get(tensor)?.as_deref()
    }

    /// Its kernels of its own; `None`: it has tile kernels and those of the library.
    #[must_use]
    pub const fn native(&self) -> Option<&NativeKernels> {
        self.native.as_ref()
    }

    /// The model that it was made of; `None`: it was made of something else.
    #[must_use]
    pub const fn model(&self) -> Option<&ModelDescription> {
        self.model.as_ref()
    }

    /// The text that it was made of.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The sections of the file that it was read from; of a program that was made here none.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Refuses a program that is for another target than this one.
    ///
    /// # Errors
    /// `Target`.
    pub fn check_target(&self, wanted: &str) -> Result<(), ProgramError> {
        let fits = self.target == ANY_TARGET || self.target == wanted;
        let (found, wanted) = (self.target.clone(), wanted.to_owned());
        if fits { Ok(()) } else { Err(ProgramError::Target { found, wanted }) }
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), ProgramError> {
    match name_defect(name) {
        None => Ok(()),
        Some(defect) => Err(ProgramError::Name { what, name: name.to_owned(), defect }),
    }
}

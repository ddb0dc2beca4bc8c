//! `Program`: what a file `.ptop` holds; `LoadedProgram`: one in the memory of a device.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pto_host::abi::CoreKind;
use pto_host::abi::numbers::Counted;
use pto_host::stitch::LoadedProgram as Loaded;
use pto_host::whole_file::write_whole;
use pto_host::workloads::program::{BlockShape, GraphArgument, GraphTask, Program as Content};
use pto_models::{Given, Model, ModelError};
use pto_native::stitch::{Choices, DescribedTensor, program_of_tasks, with_objects};
use pto_native::{Failure, FailureKind};
use pto_operators::{DType, LowerOptions, Tensor, TensorType};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Bytes;
use crate::failure::{raised, raised_from, unknown};
use crate::py_resource::PyResource;
use crate::workload::CheckedWorkload;

/// A program: plan, kernels, and a description of every tensor.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct Program {
    pub(crate) content: Content,
}

/// Roles and layouts by tensor, arrays of constants, the target.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ProgramChoices<'py> {
    roles: BTreeMap<String, String>,
    layouts: BTreeMap<String, String>,
    constants: BTreeMap<String, Bound<'py, PyAny>>,
    target: Option<String>,
}

impl ProgramChoices<'_> {
    fn choices(self) -> PyResult<Choices> {
        let elements =
            |(name, array): (String, Bound<'_, PyAny>)| Ok((name, Bytes::of(&array)?.copied()?));
        Ok(Choices {
            roles: self.roles.into_iter().collect(),
            layouts: self.layouts.into_iter().collect(),
            constants: self.constants.into_iter().map(elements).collect::<PyResult<_>>()?,
            target: self.target,
        })
    }
}

fn in_file(path: &Path, error: &dyn std::fmt::Display) -> PyErr {
    raised(&Failure::new(FailureKind::PROGRAM, format!("'{}': {error}", path.display())))
}

/// Reads a program file.
pub(crate) fn read(path: &Path) -> PyResult<Content> {
    let file = std::fs::read(path).map_err(|error| in_file(path, &error))?;
    Content::from_bytes(&file).map_err(|error| in_file(path, &error))
}

/// The name of a kernel, the kind of its cores, its arguments (of a tensor its number and a byte, or a word), the tasks that are waited for.
type TaskParts = (String, String, Vec<(Option<usize>, u64)>, Vec<usize>);

/// A task.
fn of_task((kernel, kind, args, producers): TaskParts) -> PyResult<GraphTask> {
    let known = CoreKind::ALL.iter().copied().find(|known| known.to_string() == kind);
    let kind = known.ok_or_else(|| unknown("kind of cores", &kind, "aic, aiv"))?;
    let args = args.into_iter().map(|(tensor, value)| match tensor {
        Some(tensor) => GraphArgument::Tensor { tensor, offset: value },
        None => GraphArgument::Word(value),
    });
    let args = args.collect();
    Ok(GraphTask { kernel, kind, args, producers, block_shape: BlockShape::plain() })
}

#[pymethods]
impl Program {
    /// Reads a program file. Nothing in it is trusted.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        Ok(Self { content: read(&path)? })
    }

    /// The program of a workload: its text, or one that is checked, with what is chosen.
    #[staticmethod]
    fn _of(workload: &Bound<'_, PyAny>, chosen: ProgramChoices<'_>) -> PyResult<Self> {
        let choices = chosen.choices()?;
        let made = match workload.cast::<CheckedWorkload>() {
            Ok(checked) => choices.program_of(&checked.get().checked),
            Err(_) => choices.program_of_text(&workload.extract::<String>()?),
        };
        Ok(Self { content: made.map_err(raised_from)? })
    }

    /// The program of tasks on tensors, with the kernels of these shared objects.
    #[staticmethod]
    fn _of_tasks(
        name: &str,
        tensors: Vec<(String, String, String, Vec<u64>, String)>,
        tasks: Vec<TaskParts>,
        objects: Vec<PathBuf>,
    ) -> PyResult<Self> {
        let described = tensors.iter().map(|(name, role, element, shape, layout)| {
            DescribedTensor { name, role, element, shape, layout }
        });
        let described: Vec<_> = described.collect();
        let tasks = tasks.into_iter().map(of_task).collect::<PyResult<Vec<_>>>()?;
        let objects: Vec<_> = objects.iter().map(PathBuf::as_path).collect();
        let made = program_of_tasks(name, &described, tasks);
        let made = made.and_then(|program| with_objects(program, &objects));
        Ok(Self { content: made.map_err(raised_from)? })
    }

    /// The program of a model in a file of ONNX, for extents of its inputs, and for the values of some of them.
    #[staticmethod]
    fn _of_model(
        py: Python<'_>,
        path: PathBuf,
        shapes: BTreeMap<String, Vec<usize>>,
        symbols: BTreeMap<String, usize>,
        values: Vec<(String, String, Vec<usize>, Vec<u8>)>,
    ) -> PyResult<Self> {
        let refused = |what: String| raised(&Failure::new(FailureKind::PROGRAM, what));
        let mut given = Given { shapes, symbols, ..Given::default() };
        for (name, dtype, shape, bytes) in values {
            let dtype = DType::from_name(&dtype).ok_or_else(|| {
                refused(format!("value of {name}: no tensor has elements of type {dtype}"))
            })?;
            let tensor =
                Tensor::from_bytes(TensorType::new(dtype, &shape), bytes).map_err(|found| {
                    refused(format!("value of {name}: {found} bytes are not {dtype}{shape:?}"))
                })?;
            given.values.insert(name, tensor);
        }
        let content = py.detach(|| {
            let built = Model::read(&path)?.build(&given)?;
            Ok(built.lower(&LowerOptions::default())?.program)
        });
        Ok(Self { content: content.map_err(|error: ModelError| refused(error.to_string()))? })
    }

    /// Writes the program file, and replaces one that is there. If it cannot be written, that one stays as it was.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| {
            let file = self.content.to_bytes();
            write_whole(&path, |to| to.write_all(&file))
        });
        written.map_err(|error| in_file(&path, &error))
    }

    #[getter]
    fn name(&self) -> &str {
        self.content.name()
    }

    #[getter]
    fn target(&self) -> &str {
        self.content.target()
    }

    /// The text that it was made of, if it is in the file.
    #[getter]
    fn source(&self) -> Option<&str> {
        self.content.source()
    }

    /// What it says of its tensors, by name: role, dtype, shape, layout, nbytes.
    #[getter]
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let described = PyDict::new(py);
        for tensor in self.content.tensors() {
            let one = PyDict::new(py);
            one.set_item("role", tensor.role.name())?;
            one.set_item("dtype", tensor.dtype.name())?;
            one.set_item("shape", pyo3::types::PyTuple::new(py, &tensor.shape)?)?;
            one.set_item("layout", tensor.layout.to_string())?;
            one.set_item("nbytes", tensor.bytes())?;
            described.set_item(&tensor.name, one)?;
        }
        Ok(described)
    }

    fn __repr__(&self) -> String {
        let tensors = Counted(self.content.tensors().len() as u64, "tensor");
        format!("<Program {} with {tensors}>", self.content.name())
    }
}

/// A program in the memory of a device.
#[pyclass(frozen, module = "pto_runtime")]
pub(crate) struct LoadedProgram(pub(crate) PyResource<Loaded>);

#[pymethods]
impl LoadedProgram {
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.0.get()?.program().name())
    }

    /// The program as it was loaded.
    #[getter]
    fn program(&self) -> PyResult<Program> {
        Ok(Program { content: self.0.get()?.program().clone() })
    }

    /// The layout that the program needs of a tensor.
    fn layout(&self, tensor: &str) -> PyResult<String> {
        let layout = self.0.get()?.input_layout(tensor).map_err(raised_from)?;
        Ok(layout.to_string())
    }

    fn __repr__(&self) -> String {
        format!("<LoadedProgram {}>", self.name().unwrap_or("of another process"))
    }
}

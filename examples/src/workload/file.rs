//! A workload in a file, as an example: its symbols are parameters, its tensors and arrays inputs, what its tasks write outputs.

use std::borrow::ToOwned;
use std::boxed::Box;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use pto_abi::CoreKind;
use pto_host::workloads::Workload;
use pto_host::workloads::plan::{Compiled, SymbolUse, compile};
use pto_host::workloads::tile::Op;
use pto_host::workloads::tree::{Checked, TaskArgument, TreeNode, Warning, children};

use super::memory::file_type;
use crate::host::{DType, Error, ParamSpec, Program, TensorSpec};

/// The value of a parameter that has none: it must be given.
pub(super) const REQUIRED: u64 = u64::MAX;

/// The parameter that tensors are drawn from.
pub(super) const SEED: &str = "seed";

/// The parameter that says how many calls of a kernel one dispatch has at most. A symbol of this name has it for itself.
pub(super) const GRAIN: &str = "grain";

/// A workload in a file.
pub struct WorkloadFile {
    pub(super) name: &'static str,
    pub(super) checked: Checked,
    pub(super) compiled: Compiled,
    pub(super) params: &'static [ParamSpec],
    pub(super) inputs: &'static [TensorSpec],
    pub(super) outputs: &'static [TensorSpec],
    pub(super) kinds: &'static [CoreKind],
    pub(super) program: Program,
}

/// A text for the rest of the process, as the table of examples is.
pub(super) fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl WorkloadFile {
    /// What is allowed in it, and may not be meant: a text for each, with its path in the workload.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let text = |warning: &Warning| {
            format!("workload {}{}: {}", self.name, warning.path, warning.message)
        };
        self.checked.warnings().iter().map(text)
    }

    /// Reads, checks and compiles a workload. It is kept for the rest of the process, as the table of examples is.
    ///
    /// # Errors
    /// What is wrong with the text or the workload, and where.
    pub fn read(text: &str) -> Result<&'static Self, Error> {
        let invalid = |error: &dyn std::fmt::Display| Error::Invalid(error.to_string());
        let workload = Workload::parse(text).map_err(|error| invalid(&error))?;
        let checked = workload.check().map_err(|error| invalid(&error))?;
        let compiled = compile(&checked).map_err(|error| invalid(&error))?;
        let tree = &checked.workload().root;
        let program = match any(tree, &|node| matches!(node, TreeNode::SlotLoad { .. })) {
            true => Program::TensorsAndValues,
            false => Program::Tensors,
        };
        let file = Self {
            name: kept(compiled.name().to_owned()),
            params: Vec::leak(params(&compiled)),
            inputs: Vec::leak(inputs(&compiled)),
            outputs: Vec::leak(outputs(&checked, &compiled)),
            kinds: kinds(&checked),
            program,
            checked,
            compiled,
        };
        Ok(Box::leak(Box::new(file)))
    }

    /// The compiled workload.
    #[must_use]
    pub const fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Whether a task writes the tensor of this name.
    pub(super) fn is_written(&self, name: &str) -> bool {
        written(&self.checked).iter().any(|written| written == name)
    }

    /// The symbols of type `f32`.
    pub(super) fn is_float(&self, name: &str) -> bool {
        let mut symbols = self.compiled.symbols().iter();
        symbols.any(|(symbol, used)| symbol == name && *used == SymbolUse::Float)
    }
}

/// Whether a node, or one inside of it, is such.
fn any(node: &TreeNode, is_such: &dyn Fn(&TreeNode) -> bool) -> bool {
    is_such(node) || children(node).into_iter().any(|node| any(node, is_such))
}

/// The tensors that tasks write.
fn written(checked: &Checked) -> Vec<String> {
    let workload = checked.workload();
    let is_written = |number: usize| {
        any(&workload.root, &|node| {
            let (TreeNode::Task(task) | TreeNode::Send { task, .. }) = node else { return false };
            let params = workload.kernels[task.kernel].params();
            params.iter().zip(&task.arguments).any(|(param, argument)| {
                let is_output = param.tensor().is_some_and(|(direction, _)| direction.is_written());
                is_output && matches!(argument, TaskArgument::View(view) if view.tensor == number)
            })
        })
    };
    let tensors = workload.tensors.iter().enumerate().filter(|(number, _)| is_written(*number));
    tensors.map(|(_, tensor)| tensor.name.clone()).collect()
}

fn kinds(checked: &Checked) -> &'static [CoreKind] {
    let is_product = |op: &Op| matches!(op, Op::Matmul { .. });
    let products = checked.workload().kernels.iter().map(|kernel| kernel.ops().any(is_product));
    match (products.clone().any(|is| is), products.clone().any(|is| !is)) {
        (true, false) => &[CoreKind::AIC],
        (false, true) => &[CoreKind::AIV],
        _ => CoreKind::ALL,
    }
}

fn params(compiled: &Compiled) -> Vec<ParamSpec> {
    let mut params = vec![ParamSpec::seed("of the tensors that are not given")];
    for (name, used) in compiled.symbols() {
        let help = match used {
            SymbolUse::Size(_) => "the size of a dynamic axis",
            SymbolUse::Number => "a number of the workload",
            SymbolUse::Float => "a number of type f32 of the workload",
        };
        let default = match used {
            SymbolUse::Size(default) => default.unwrap_or(REQUIRED),
            SymbolUse::Number | SymbolUse::Float => REQUIRED,
        };
        if params.iter().all(|param| param.name != name) {
            params.push(ParamSpec {
                name: kept(name.clone()),
                default,
                min: 0,
                max: REQUIRED - 1,
                help,
            });
        }
    }
    if !has_symbol(compiled, GRAIN) {
        let help =
            "tasks of a kernel in one dispatch at most; 1: each alone; 0: the device chooses";
        params.push(ParamSpec { name: GRAIN, default: 0, min: 0, max: 16_383, help });
    }
    params
}

/// Whether the workload has a symbol of this name.
pub(super) fn has_symbol(compiled: &Compiled, name: &str) -> bool {
    compiled.symbols().iter().any(|(symbol, _)| symbol == name)
}

fn tensor_spec(tensor: &pto_host::workloads::tree::Tensor, help: &'static str) -> TensorSpec {
    let dims: Vec<_> = tensor.shape.iter().map(|extent| kept(extent.to_string())).collect();
    let (name, dtype) = (kept(tensor.name.clone()), file_type(tensor.dtype));
    TensorSpec { name, dtype, dims: Vec::leak(dims), help }
}

fn inputs(compiled: &Compiled) -> Vec<TensorSpec> {
    let tensors = compiled.tensors().iter();
    let tensors = tensors.map(|tensor| tensor_spec(tensor, "a tensor of the workload"));
    let arrays = compiled.arrays().iter().map(|name| {
        let (name, help) = (kept(name.clone()), "an array of an axis");
        TensorSpec { name, dtype: DType::I32, dims: &["any"], help }
    });
    tensors.chain(arrays).collect()
}

fn outputs(checked: &Checked, compiled: &Compiled) -> Vec<TensorSpec> {
    let written = written(checked);
    let tensors = compiled.tensors().iter().filter(|tensor| written.contains(&tensor.name));
    tensors.map(|tensor| tensor_spec(tensor, "a tensor that tasks write")).collect()
}

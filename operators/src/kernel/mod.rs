//! The code of the operators.

use pto_abi::CoreKind;
use pto_aicore_kernels::KernelFn;
use pto_workload::program::Program;

use crate::error::{Argument, OperatorError};
use crate::operator::Operator;
use crate::tensor::Tensor;

/// A kernel that a program's tasks call: give `pto_host::Kernel::from_fn(name, kind, entry)` to `Stitcher::load_with`.
#[derive(Clone, Debug)]
pub struct OperatorKernel {
    /// The name that tasks have.
    pub name: String,
    /// The cores.
    pub kind: CoreKind,
    /// The code.
    pub entry: KernelFn,
}

/// The kernels of operators that a program calls, each once; none of a program without operators.
///
/// # Errors
/// A task's description was changed: it does not fit the tensors.
pub fn kernels(program: &Program) -> Result<Vec<OperatorKernel>, OperatorError> {
    let _ = program;
    Ok(Vec::new())
}

pub(crate) fn run(
    operator: &Operator,
    _inputs: &[Option<&Tensor>],
    _outputs: &mut [Tensor],
) -> Result<(), OperatorError> {
    let rule = "is not implemented yet".to_owned();
    Err(OperatorError { operator: operator.name(), argument: Argument::Operator, rule })
}

//! From a workload to a program.

use super::content::{Program, ProgramBody};
use super::description::TensorDescription;
use super::error::ProgramError;
use super::layout::TensorLayout;
use super::roles::roles;
use crate::plan::compile;
use crate::tree::Checked;

impl Program {
    /// The program of a workload: its tensors are row-major in the device's memory, and are inputs, outputs or updated as its tasks
    /// use them. The text of the workload is kept in it.
    ///
    /// # Errors
    /// The workload has no plan.
    pub fn of_workload(checked: &Checked) -> Result<Self, ProgramError> {
        let compiled = compile(checked)?;
        let of_tensors = roles(checked).into_iter().zip(compiled.tensors());
        let tensors = of_tensors.map(|((role, begins_with_zeros), tensor)| TensorDescription {
            name: tensor.name.clone(),
            role,
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            layout: TensorLayout::device(),
            begins_with_zeros,
        });
        let (tensors, name) = (tensors.collect(), compiled.name().to_owned());
        let program = Self::new(&name, ProgramBody::Plan(Box::new(compiled)), tensors)?;
        Ok(program.with_source(&checked.workload().to_string()))
    }
}

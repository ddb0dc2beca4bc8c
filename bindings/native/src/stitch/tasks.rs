//! A program of tasks, as other languages describe it: tensors and kernels by name, the machine code of kernels in shared objects.

use std::path::Path;

use pto_host::workloads::program::{GraphTask, Program, ProgramBody, TensorDescription};

use crate::failure::{Failure, FailureKind};
use crate::program;

/// A tensor, described by texts.
#[derive(Clone, Copy, Debug)]
pub struct DescribedTensor<'t> {
    /// The tensor's name.
    pub name: &'t str,
    /// `input`, `output`, `updated` or `temporary`.
    pub role: &'t str,
    /// The element type: `f32`, `i32`, ..
    pub element: &'t str,
    /// The extents.
    pub shape: &'t [u64],
    /// The layout: `row-major`, `nz`, `on-chip, row-major`, ..
    pub layout: &'t str,
}

/// A program of these tasks, whose arguments number the tensors in this order.
///
/// # Errors
/// `PROGRAM`: a tensor cannot be as described, or a task does not fit the tensors.
pub fn program_of_tasks(
    name: &str,
    tensors: &[DescribedTensor<'_>],
    tasks: Vec<GraphTask>,
) -> Result<Program, Failure> {
    let described = |tensor: &DescribedTensor<'_>| {
        let DescribedTensor { name, role, element, shape, layout } = *tensor;
        let described = TensorDescription::of_texts(name, role, element, shape, layout);
        described
            .map_err(|what| Failure::new(FailureKind::PROGRAM, format!("tensor {name}: {what}")))
    };
    let described = tensors.iter().map(described).collect::<Result<Vec<_>, _>>()?;
    Ok(Program::new(name, ProgramBody::Graph(tasks), described)?)
}

/// A program with the kernels that these shared objects list, one object for each processor; the first one is for this processor.
///
/// # Errors
/// `LOAD_FAILED`: a file cannot be read; those of [`with_kernels`](program::with_kernels) and of
/// [`kernel_table::of_bytes`](crate::kernel_table::of_bytes).
pub fn with_objects(program: Program, objects: &[&Path]) -> Result<Program, Failure> {
    let code = |path: &&Path| {
        let shown = path.display().to_string();
        let code = std::fs::read(path).map_err(|error| {
            let message = format!("'{shown}' cannot be read: {error}");
            Failure::new(FailureKind::LOAD_FAILED, message)
        })?;
        Ok((shown, code))
    };
    let codes = objects.iter().map(code).collect::<Result<Vec<_>, Failure>>()?;
    let Some((shown, first)) = codes.first() else { return Ok(program) };
    let listed = crate::kernel_table::of_bytes(first, shown)?;
    program::with_kernels(program, &listed, codes)
}

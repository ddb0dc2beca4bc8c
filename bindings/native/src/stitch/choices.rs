//! The choices of the maker of a program file, as texts: roles, layouts, constants, the target.

use pto_host::workloads::Workload;
use pto_host::workloads::program::{Program, Role};
use pto_host::workloads::tree::Checked;

use crate::failure::{Failure, FailureKind};

/// The choices, by the names of tensors.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// Layouts: `row-major`, `nz:500x300`, `on-chip, row-major`.
    pub layouts: Vec<(String, String)>,
    /// Roles: `output`, `updated`, `temporary`.
    pub roles: Vec<(String, String)>,
    /// The elements of constants, as they are in memory.
    pub constants: Vec<(String, Vec<u8>)>,
    /// The only target; `None`: any.
    pub target: Option<String>,
}

impl Choices {
    /// The program of a workload's text.
    ///
    /// # Errors
    /// `PROGRAM`: the text is no workload, it has no plan, or a choice does not fit it.
    pub fn program_of_text(&self, text: &str) -> Result<Program, Failure> {
        let refused = |error: &dyn std::fmt::Display| {
            Failure::new(FailureKind::PROGRAM, format!("the workload, {error}"))
        };
        let workload = Workload::parse(text).map_err(|error| refused(&error))?;
        let checked = workload.check().map_err(|error| refused(&error))?;
        self.program_of(&checked)
    }

    /// The program of a workload.
    ///
    /// # Errors
    /// As [`program_of_text`](Self::program_of_text).
    pub fn program_of(&self, checked: &Checked) -> Result<Program, Failure> {
        let mut program = Program::of_workload(checked)?;
        for (name, layout) in &self.layouts {
            program = program.with_layout_text(name, layout)?;
        }
        for (name, text) in &self.roles {
            let role = Role::from_name(text).ok_or_else(|| {
                let message =
                    format!("'{text}' is no role of {name}; use output, updated or temporary");
                Failure::new(FailureKind::PROGRAM, message)
            })?;
            program = program.with_role(name, role)?;
        }
        for (name, elements) in &self.constants {
            program = program.with_constant(name, elements.clone())?;
        }
        Ok(match &self.target {
            Some(target) => program.for_target(target)?,
            None => program,
        })
    }
}

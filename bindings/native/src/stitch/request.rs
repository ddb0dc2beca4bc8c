//! The arguments of a run: tensors by name, lent or given, and numbers.

use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};

use pto_host::stitch::{Inputs, LoadedProgram, ProgramStream, Tensor};
use pto_host::workloads::plan::SymbolUse;
use pto_host::workloads::program::{Program, Role, TensorDescription};

use super::tensor::{SharedTensor, State};
use crate::failure::{Failure, FailureKind};

/// A number for a size or a symbol of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// For sizes of axes and integer symbols.
    Integer(u64),
    /// For symbols of type `f32`.
    Real(f32),
}

/// The arguments of a run.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    tensors: Vec<(String, Arc<SharedTensor>, IsGiven)>,
    numbers: Vec<(String, Number)>,
}

/// Whether a tensor is gone after the run.
type IsGiven = bool;

impl RunRequest {
    /// Lends a tensor: the program reads it, changes it or writes it, as its role says.
    pub fn lend(&mut self, name: &str, tensor: Arc<SharedTensor>) {
        self.tensors.push((name.to_owned(), tensor, false));
    }

    /// Gives a tensor to the run for good. One that the program updates is among the outputs.
    pub fn give(&mut self, name: &str, tensor: Arc<SharedTensor>) {
        self.tensors.push((name.to_owned(), tensor, true));
    }

    /// Gives a number to a size or a symbol.
    pub fn number(&mut self, name: &str, number: Number) {
        self.numbers.push((name.to_owned(), number));
    }

    /// Whether a run gives these outputs.
    ///
    /// # Errors
    /// `PROGRAM_ARGUMENT`: it gives no output of a name, or a name is there twice.
    pub fn check_outputs(&self, program: &Program, names: &[&str]) -> Result<(), Failure> {
        let held = |name: &str| self.tensors.iter().find(|(known, ..)| known == name);
        let is_result = |tensor: &&TensorDescription| match tensor.role {
            Role::Output => held(&tensor.name).is_none(),
            Role::Updated => held(&tensor.name).is_some_and(|(_, _, is_given)| *is_given),
            _ => false,
        };
        let known: Vec<&str> =
            program.tensors().iter().filter(is_result).map(|one| one.name.as_str()).collect();
        let is_wrong = |(index, name): &(usize, &&str)| {
            !known.contains(*name) || names[..*index].contains(*name)
        };
        match names.iter().enumerate().find(is_wrong) {
            None => Ok(()),
            Some((_, name)) => {
                let message = format!(
                    "the run of program {} gives no output {name}, or it is asked for twice; it gives: {}",
                    program.name(),
                    known.join(", ")
                );
                Err(Failure::new(FailureKind::PROGRAM_ARGUMENT, message))
            }
        }
    }

    /// Runs a program, and returns at once: the outputs by name, which may be given to the next run, and the tensors that were given and
    /// that the program updates.
    ///
    /// # Errors
    /// Those of [`ProgramStream::run`]; `TENSOR_MOVED`. Then nothing ran, and nothing was taken.
    pub fn run(
        &self,
        stream: &ProgramStream,
        program: &LoadedProgram,
    ) -> Result<Vec<(String, Arc<SharedTensor>)>, Failure> {
        let described = program.program();
        let mut uses = self.locked(described)?;
        let mut inputs = Inputs::new();
        for one in &mut uses {
            inputs = one.lend(described, inputs)?;
        }
        let outputs = stream.run(program, self.numbered(described, inputs)?)?;
        drop(uses);
        let mut results: Vec<_> =
            outputs.into_iter().map(|(name, tensor)| (name, SharedTensor::new(tensor))).collect();
        let call = format!("program {}", described.name());
        for (name, tensor, is_updated) in self.given(described) {
            // The same tensor may be given under two names.
            let taken = tensor.write().take(name, &call);
            if let (Ok(taken), true) = (taken, is_updated) {
                results.push((name.to_owned(), SharedTensor::new(taken)));
            }
        }
        Ok(results)
    }

    /// The tensors that are gone after the run: name, tensor, whether the program updates it.
    fn given<'r>(
        &'r self,
        program: &'r Program,
    ) -> impl Iterator<Item = (&'r str, &'r Arc<SharedTensor>, bool)> {
        self.tensors.iter().filter(|(_, _, is_given)| *is_given).map(|(name, tensor, _)| {
            (name.as_str(), tensor, role_of(program, name) == Role::Updated)
        })
    }

    /// The tensors of the run, each locked as the program uses it.
    fn locked<'r>(&'r self, program: &Program) -> Result<Vec<LockedTensor<'r>>, Failure> {
        let mut uses: Vec<LockedTensor<'r>> = Vec::with_capacity(self.tensors.len());
        // In the order of their addresses, so that two threads do not wait for each other.
        let mut ordered: Vec<_> = self.tensors.iter().collect();
        ordered.sort_by_key(|(_, tensor, _)| Arc::as_ptr(tensor).addr());
        for (name, tensor, is_given) in ordered {
            let role = role_of(program, name);
            if role == Role::Output && *is_given {
                let message = format!(
                    "program {}: {name} is an output, and cannot be given; lend it, and the program writes into it",
                    program.name()
                );
                return Err(Failure::new(FailureKind::PROGRAM_ARGUMENT, message));
            }
            match uses.last_mut().filter(|last| last.is_of(tensor)) {
                Some(last) => last.again(program.name(), name, role)?,
                None => uses.push(LockedTensor::of(name, tensor, role)),
            }
        }
        Ok(uses)
    }

    /// The numbers of the run, as the program uses each.
    fn numbered<'t>(&self, program: &Program, inputs: Inputs<'t>) -> Result<Inputs<'t>, Failure> {
        let of_plan = program.symbols();
        let mut inputs = inputs;
        for (name, number) in &self.numbers {
            let used = of_plan.iter().find(|(known, _)| known == name).map(|(_, used)| *used);
            inputs = match (used, *number) {
                (Some(SymbolUse::Size(_)), Number::Integer(value)) => inputs.size(name, value),
                (Some(SymbolUse::Number), Number::Integer(value)) => inputs.symbol(name, value),
                (Some(SymbolUse::Float), Number::Real(value)) => inputs.symbol_f32(name, value),
                #[expect(clippy::cast_precision_loss, reason = "the program wants an f32")]
                (Some(SymbolUse::Float), Number::Integer(value)) => {
                    inputs.symbol_f32(name, value as f32)
                }
                (Some(_), Number::Real(value)) => {
                    let message = format!(
                        "program {}: {name} is an integer, and {value} was given",
                        program.name()
                    );
                    return Err(Failure::new(FailureKind::PROGRAM_ARGUMENT, message));
                }
                (None, _) => {
                    let known: Vec<_> = of_plan.iter().map(|(name, _)| name.as_str()).collect();
                    let message = format!(
                        "program {} has no number {name}; it has: {}",
                        program.name(),
                        known.join(", ")
                    );
                    return Err(Failure::new(FailureKind::PROGRAM_ARGUMENT, message));
                }
            };
        }
        Ok(inputs)
    }
}

/// What a tensor is to a program; of one that it does not have, an input: the run refuses it by its name.
fn role_of(program: &Program, name: &str) -> Role {
    program.tensor(name).map_or(Role::Input, |tensor| tensor.role)
}

/// A tensor of a run, locked for reading under several names, or for writing under one.
pub(super) struct LockedTensor<'r> {
    names: Vec<&'r str>,
    role: Role,
    tensor: &'r Arc<SharedTensor>,
    lock: Lock<'r>,
}

enum Lock<'r> {
    Read(RwLockReadGuard<'r, State>),
    Write(RwLockWriteGuard<'r, State>),
}

impl<'r> LockedTensor<'r> {
    fn of(name: &'r str, tensor: &'r Arc<SharedTensor>, role: Role) -> Self {
        let lock = match role {
            Role::Updated | Role::Output => Lock::Write(tensor.write()),
            _ => Lock::Read(tensor.read()),
        };
        Self { names: vec![name], role, tensor, lock }
    }

    fn is_of(&self, tensor: &Arc<SharedTensor>) -> bool {
        Arc::ptr_eq(self.tensor, tensor)
    }

    /// The tensor under another name as well.
    fn again(&mut self, program: &str, name: &'r str, role: Role) -> Result<(), Failure> {
        if matches!(self.lock, Lock::Read(_)) && !matches!(role, Role::Updated | Role::Output) {
            self.names.push(name);
            return Ok(());
        }
        let message = format!(
            "program {program} is given one tensor as {} and as {name}, and writes it; give it two tensors",
            self.names.join(" and as ")
        );
        Err(Failure::new(FailureKind::PROGRAM_ARGUMENT, message))
    }

    /// Lends the tensor to a run, under the name of an array as that array.
    pub(super) fn lend<'t>(
        &'t mut self,
        program: &Program,
        inputs: Inputs<'t>,
    ) -> Result<Inputs<'t>, Failure> {
        let what = format!("tensor {}", self.names.join(" and "));
        match &mut self.lock {
            Lock::Read(state) => {
                let tensor: &Tensor = state.tensor(&what)?;
                let is_array = |name: &&str| program.arrays().iter().any(|known| known == name);
                Ok(self.names.iter().fold(inputs, |inputs, name| match is_array(name) {
                    true => inputs.array(name, tensor),
                    false => inputs.borrow(name, tensor),
                }))
            }
            Lock::Write(state) => {
                let tensor = state.tensor_mut(&what)?;
                let name = self.names.first().copied().unwrap_or_default();
                Ok(match self.role {
                    Role::Output => inputs.into(name, tensor),
                    _ => inputs.update(name, tensor),
                })
            }
        }
    }
}

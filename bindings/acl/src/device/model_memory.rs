//! What a program that was made of a model needs beside the buffers of its data sets: the status in which its operators report an index outside of an axis,
//! and memory for tensors without elements.
//!
//! A program file has a vector of one element where the model has none, and programs of the interface pass no buffer for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::abi::GmAddr;
use pto_host::workloads::program::{Program, Role, TensorDescription};
use pto_operators::{STATUS, Status, node_titles};

use super::open::Open;
use crate::common::codes;
use crate::common::refusal::{Answer, Refusal};

/// Bytes of a status.
const STATUS_BYTES: usize = 32;

/// Where a tensor of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// In the data set of the inputs.
    Input,
    /// In the data set of the outputs.
    Output,
    /// In memory of the library: what operators report.
    Status,
    /// In memory of the program: constants and temporaries.
    Program,
}

/// Where a tensor of this program is.
pub(crate) fn side_of(program: &Program, tensor: &TensorDescription) -> Side {
    match tensor.role {
        Role::Output if program.model().is_some() && tensor.name == STATUS => Side::Status,
        Role::Output => Side::Output,
        Role::Input | Role::Updated => Side::Input,
        Role::Temporary | Role::Constant => Side::Program,
    }
}

/// Memory that the library has for a loaded model.
pub(crate) struct OwnMemory {
    open: Arc<Open>,
    /// What messages call its nodes.
    nodes: Arc<[String]>,
    has_status: bool,
    /// Memory of each status, whether a run has it. A run takes the first that is free, so that most runs have the same one, and find their bindings.
    statuses: Arc<Mutex<Vec<(GmAddr, bool)>>>,
    /// For tensors without elements: as long as the longest of them in the program.
    scratch: Option<GmAddr>,
}

/// The status of one run.
pub(crate) struct StatusReport {
    open: Arc<Open>,
    nodes: Arc<[String]>,
    statuses: Arc<Mutex<Vec<(GmAddr, bool)>>>,
    at: GmAddr,
}

impl OwnMemory {
    /// The memory for a program.
    pub(crate) fn new(open: &Arc<Open>, program: &Program) -> Answer<Self> {
        let empty = program.tensors().iter().filter(|tensor| is_empty(program, tensor));
        let longest = empty.map(TensorDescription::bytes).max();
        let mut sides = program.tensors().iter().map(|tensor| side_of(program, tensor));
        Ok(Self {
            open: Arc::clone(open),
            nodes: node_titles(program).into(),
            has_status: sides.any(|side| side == Side::Status),
            statuses: Arc::default(),
            scratch: longest.map(|bytes| open.session.alloc(bytes)).transpose()?,
        })
    }

    /// The address for a tensor that has no elements; `None`: it has some.
    pub(crate) fn of_empty(&self, program: &Program, tensor: &TensorDescription) -> Option<usize> {
        let scratch = self.scratch.filter(|_| is_empty(program, tensor))?;
        usize::try_from(scratch.0).ok()
    }

    /// A status for a run; `None`: the program reports none.
    pub(crate) fn status(&self) -> Answer<Option<StatusReport>> {
        if !self.has_status {
            return Ok(None);
        }
        let mut statuses = locked(&self.statuses);
        let at = match statuses.iter_mut().find(|(_, is_taken)| !is_taken) {
            Some((at, is_taken)) => {
                *is_taken = true;
                *at
            }
            None => {
                let at = self.open.session.alloc(STATUS_BYTES as u64)?;
                statuses.push((at, true));
                at
            }
        };
        Ok(Some(StatusReport {
            open: Arc::clone(&self.open),
            nodes: Arc::clone(&self.nodes),
            statuses: Arc::clone(&self.statuses),
            at,
        }))
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        let statuses = std::mem::take(&mut *locked(&self.statuses));
        for at in statuses.into_iter().map(|(at, _)| at).chain(self.scratch) {
            // The memory of a device that is gone is gone as well.
            self.open.session.memory().free(at).unwrap_or_default();
        }
    }
}

impl StatusReport {
    pub(crate) fn address(&self) -> usize {
        usize::try_from(self.at.0).unwrap_or(0)
    }

    /// What the operators of the run reported. Ask when the run is over.
    pub(crate) fn check(self) -> Answer {
        let mut bytes = [0; STATUS_BYTES];
        self.open.session.memory().copy_from_device(self.at, &mut bytes)?;
        let words: Vec<u64> =
            bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let reason = Status::read(&words).reason(&self.nodes);
        reason.map_or(Ok(()), |why| Err(Refusal::new(codes::AICORE_EXCEPTION, why)))
    }
}

impl Drop for StatusReport {
    fn drop(&mut self) {
        let mut statuses = locked(&self.statuses);
        statuses
            .iter_mut()
            .filter(|(at, _)| *at == self.at)
            .for_each(|(_, is_taken)| *is_taken = false);
    }
}

/// Whether a tensor has no elements in the model.
fn is_empty(program: &Program, tensor: &TensorDescription) -> bool {
    let Some(model) = program.model() else { return false };
    let mut tensors = model.inputs.iter().chain(&model.outputs);
    tensors.any(|found| found.name == tensor.name && found.elements() == 0)
}

fn locked(statuses: &Mutex<Vec<(GmAddr, bool)>>) -> MutexGuard<'_, Vec<(GmAddr, bool)>> {
    statuses.lock().unwrap_or_else(PoisonError::into_inner)
}

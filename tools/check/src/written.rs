//! Which tensors a program writes, and a program whose heap keeps what its tasks compute.

use std::collections::HashMap;

use crate::program::{Action, Argument, Location, Program, Use, View};

/// Of each tensor, whether a task, a replay or the program itself may write to it.
#[must_use]
pub fn written(program: &Program) -> Vec<bool> {
    let mut written = vec![false; program.tensors.len()];
    let mut bound: HashMap<u32, Vec<usize>> = HashMap::new();
    for step in &program.steps {
        match &step.action {
            Action::Add(index) => {
                for kernel in program.tasks[*index].kernels() {
                    let views = kernel.args.iter().filter_map(written_by);
                    views.for_each(|view| written[view.tensor] = true);
                }
            }
            Action::Set(view, _) => written[view.tensor] = true,
            Action::BeginRecording { record, tensors } => {
                bound.insert(*record, tensors.iter().map(|(index, _)| *index).collect());
            }
            Action::Replay { record, tensors, .. } => {
                // The record is above, and so are its tasks.
                for (inner, view) in bound.get(record).into_iter().flatten().zip(tensors) {
                    written[view.tensor] |= written[*inner];
                }
            }
            _ => {}
        }
    }
    written
}

/// The view of an argument, if the task may write to it.
const fn written_by(arg: &Argument) -> Option<&View> {
    match arg {
        Argument::Out(view)
        | Argument::InOut(view)
        | Argument::NoDep(view, Use::Write | Use::Unknown) => Some(view),
        _ => None,
    }
}

/// The same program with its heap tensors in memory of their own, so that what they hold is there after the run. Those that a
/// record allocates stay on the heap, because each replay has its own; they are named, by their indices.
#[must_use]
pub fn with_kept_heap(program: &Program) -> (Program, Vec<usize>) {
    let mut kept = Program { steps: Vec::new(), ..program.clone() };
    let (mut left, mut recordings) = (Vec::new(), false);
    for step in &program.steps {
        match &step.action {
            Action::BeginRecording { .. } => recordings = true,
            Action::EndRecording => recordings = false,
            Action::Allocate(index) if recordings => left.push(*index),
            Action::Allocate(index) => {
                kept.tensors[*index].location = Location::Host(None);
                continue;
            }
            _ => {}
        }
        kept.steps.push(step.clone());
    }
    (kept, left)
}

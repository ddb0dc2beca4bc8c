//! What is checked of a pipeline whose processes are on several ranks of a group: each rank has tensors of its own, and only tokens move tiles.

use pto_aicore_kernels::tile::{Direction, ParamKind};
use pto_graph::plan::layout::limits;

use super::node::{Process, Task, TaskArgument, TreeNode, children, takes};
use super::workload::Workload;

/// A call of a kernel in a process, and the channel of its token.
type Call<'w> = (&'w Process, &'w Task, Option<usize>);

/// Checks the processes; what is wrong, and what to do.
pub(super) fn check(workload: &Workload, processes: &[Process]) -> Result<(), String> {
    if processes.iter().all(|process| process.rank == 0) {
        return Ok(());
    }
    let mut calls = Vec::new();
    for process in processes {
        if reads_slots(&process.body) {
            return Err(format!(
                "Process {} reads an element of a tensor into a slot, and processes of other ranks do not have it. Let the value be that of a token, or put all processes on one rank.",
                process.name
            ));
        }
        calls_of(&process.body, process, &mut calls);
    }
    calls.iter().try_for_each(|call| carried(workload, call))?;
    for reader in &calls {
        for tensor in tensors(workload, reader.1, |direction| direction != Direction::Out) {
            let lost =
                calls.iter().find(|writer| is_lost(workload, (processes, tensor), writer, reader));
            if let Some((writer, ..)) = lost {
                let (name, [writer, reader]) = (
                    &workload.tensors[tensor].name,
                    [writer, reader.0].map(Process::called_in_full),
                );
                return Err(format!(
                    "Process {reader} reads the tensor {name}, which process {writer} writes in a task that sends no token there. Send one with that task, or put both on one rank."
                ));
            }
        }
    }
    Ok(())
}

impl Workload {
    /// Whether processes of it are on another rank than the first one.
    #[must_use]
    pub fn is_on_ranks(&self) -> bool {
        matches!(&self.root, TreeNode::Pipeline(processes) if processes.iter().any(|process| process.rank > 0))
    }

    /// Whether a rank of a group of `size` has all of a tensor after a run: what tasks of other ranks write of it comes with their tokens.
    #[must_use]
    pub fn is_whole_at(&self, tensor: usize, rank: u32, size: u32) -> bool {
        let TreeNode::Pipeline(processes) = &self.root else { return true };
        let is_here = |process: &Process| u32::from(process.rank).checked_rem(size) == Some(rank);
        let mut calls = Vec::new();
        for process in processes.iter().filter(|process| !is_here(process)) {
            calls_of(&process.body, process, &mut calls);
        }
        let takers =
            |channel| processes.iter().filter(move |process| takes(&process.body, channel));
        calls.iter().all(|(_, task, channel)| {
            let written = tensors(self, task, |direction| direction != Direction::In);
            !written.contains(&tensor)
                || channel.is_some_and(|channel| takers(channel).all(is_here))
        })
    }
}

impl Process {
    fn called_in_full(&self) -> String {
        format!("{} on rank {}", self.name, self.rank)
    }
}

/// Whether what a task writes of a tensor does not come to a task that reads it.
fn is_lost(
    workload: &Workload,
    (processes, tensor): (&[Process], usize),
    (writer, task, channel): &Call<'_>,
    (reader, ..): &Call<'_>,
) -> bool {
    let comes = channel.is_some_and(|channel| {
        processes.iter().any(|process| process.rank == reader.rank && takes(&process.body, channel))
    });
    let writes = || tensors(workload, task, |direction| direction != Direction::In);
    writer.rank != reader.rank && !comes && writes().contains(&tensor)
}

/// Whether a token has room for what its task writes.
fn carried(workload: &Workload, (_, task, channel): &Call<'_>) -> Result<(), String> {
    let written = tensors(workload, task, |direction| direction != Direction::In).len();
    if channel.is_none() || written <= limits::CARRIED {
        return Ok(());
    }
    let kernel = workload.kernels.get(task.kernel).map_or("", |kernel| kernel.name());
    Err(format!(
        "Kernel {kernel} writes {written} tiles and sends a token, which brings {} to another rank at most. Divide the kernel.",
        limits::CARRIED
    ))
}

/// The tensors of a task with which it does what `is_one` says.
fn tensors(workload: &Workload, task: &Task, is_one: impl Fn(Direction) -> bool) -> Vec<usize> {
    let params = workload.kernels.get(task.kernel).map_or(&[][..], |kernel| kernel.params());
    let pairs = params.iter().zip(&task.arguments);
    let found = pairs.filter_map(|(param, argument)| match (param.kind, argument) {
        (ParamKind::Tensor { direction, .. }, TaskArgument::View(view)) if is_one(direction) => {
            Some(view.tensor)
        }
        _ => None,
    });
    found.collect()
}

fn calls_of<'w>(node: &'w TreeNode, process: &'w Process, calls: &mut Vec<Call<'w>>) {
    match node {
        TreeNode::Task(task) => calls.push((process, task, None)),
        TreeNode::Send { channel, task } => calls.push((process, task, Some(*channel))),
        _ => children(node).into_iter().for_each(|node| calls_of(node, process, calls)),
    }
}

fn reads_slots(node: &TreeNode) -> bool {
    matches!(node, TreeNode::SlotLoad { .. }) || children(node).into_iter().any(reads_slots)
}

//! Whether the tasks of a graph file give kernels of the library what they take: a kernel is trusted with its words, so that a
//! number in the place of an address, or more rows than a tensor has, would end this process.

use pto_aicore_kernels::{LIBRARY, LibraryKernel};
use pto_check::program::{Action, Argument, Program, View};
use pto_check::{Extents, Finding, Kernel, Operand};

use crate::kernels::Kernels;
use crate::operands::operands;

/// The first argument of each task that its kernel cannot take.
pub(crate) fn defects(program: &Program, kernels: &Kernels) -> impl Iterator<Item = Finding> {
    program.steps.iter().filter_map(|step| {
        let Action::Add(place) = step.action else { return None };
        let task = &program.tasks[place];
        let what = task.calls().find_map(|kernel| {
            // Only the author of another kernel knows what it takes.
            let what = (!kernels.is_own(kernel.func)).then(|| of_kernel(program, &kernel))??;
            Some(if task.is_chain() { format!("kernel {}, {what}", kernel.number) } else { what })
        })?;
        Some(Finding::of_kernel(task.id, step.line, format!("{task}: {what}")))
    })
}

/// The first address of a recorded program that points into no tensor that the recording knows: on tensors in other memory it would still
/// point to where it did.
pub(crate) fn lost_address(program: &Program) -> Option<String> {
    program.tasks.iter().find_map(|task| {
        task.calls().find_map(|kernel| {
            let words: Vec<u64> = kernel.args.iter().map(word).collect();
            let lost = operands(kernel.func, &words)?.into_iter().find(|operand| {
                let is_word = matches!(kernel.args.get(operand.arg), Some(Argument::Scalar(_)));
                is_word && address(operand).is_some()
            })?;
            let name = library_kernel(kernel.func)?.args.get(lost.arg)?;
            Some(format!("{task}: argument {} of its kernel {}, {name}", lost.arg, kernel.number))
        })
    })
}

/// An argument that is a word.
const fn word(arg: &Argument) -> u64 {
    match arg {
        Argument::Scalar(word) => *word,
        _ => 0,
    }
}

/// Why a kernel that executes tile kernels cannot stand in a graph file.
const OF_A_PLAN: &str = "executes a tile kernel of a plan, which it finds by an address, and a graph file holds no plan; \
     run the .workload file, or make a program file of it (pto program build)";

/// The first task that executes a tile kernel, and so cannot stand in a graph file.
pub(crate) fn of_a_plan(program: &Program) -> Option<String> {
    program.tasks.iter().find_map(|task| {
        let funcs = std::iter::once(task.func).chain(task.links.iter().map(|link| link.func));
        let kernel = funcs.filter_map(library_kernel).find(|kernel| kernel.takes_more)?;
        Some(format!("{task}: {} {OF_A_PLAN}", kernel.name))
    })
}

fn library_kernel(func: u16) -> Option<&'static LibraryKernel> {
    LIBRARY.get(usize::from(func))
}

fn of_kernel(program: &Program, task: &Kernel<'_>) -> Option<String> {
    let is_bound = task.args.iter().any(|arg| matches!(arg, Argument::BoundScalar(_)));
    let words: Vec<u64> = task.args.iter().map(word).collect();
    let kernel = library_kernel(task.func)?;
    if kernel.takes_more {
        return Some(format!("{} {OF_A_PLAN}", kernel.name));
    }
    let names = kernel.args;
    let operands = operands(task.func, &words)?;
    task.args.iter().zip(names).enumerate().find_map(|(at, (arg, name))| {
        let operand = operands.iter().find(|operand| operand.arg == at);
        let what = match (operand, arg.view()) {
            (None, Some(_)) => "is a number, and the file gives a view; give the number".to_owned(),
            (Some(operand), None) => address(operand)?,
            // What a replay binds is known to the replay.
            (Some(_), Some(_)) if is_bound => return None,
            (Some(operand), Some((view, _))) => extent(program, view, operand)?,
            (None, None) => return None,
        };
        Some(format!("argument {at}, {name}, {what}"))
    })
}

/// What is wrong with a number where an address is wanted; `None`: the kernel uses nothing there.
fn address(operand: &Operand) -> Option<String> {
    if operand.extents.is_some_and(|extents| elements(extents) == Some(0)) {
        return None;
    }
    Some("is an address, and the file gives a number; give a view of a tensor".to_owned())
}

/// What is wrong with a view that a kernel reaches so far into.
fn extent(program: &Program, view: &View, operand: &Operand) -> Option<String> {
    let tensor = &program.tensors[view.tensor];
    let elements = elements(operand.extents?);
    let start = view.offset.saturating_mul(view.element.bytes());
    let end = elements.and_then(|elements| elements.checked_mul(4)?.checked_add(start));
    if elements == Some(0) || end.is_some_and(|end| end <= tensor.bytes) {
        return None;
    }
    let end = end.map_or_else(|| "more than 2^64".to_owned(), |end| end.to_string());
    Some(format!(
        "reaches to byte {end} of {tensor}, which has {}; check the sizes that the task gives",
        tensor.bytes
    ))
}

/// From the first element to behind the last one; `None`: more than there are.
fn elements(extents: Extents) -> Option<u64> {
    match extents {
        Extents::Vector(n) => Some(n),
        Extents::Matrix([0, ..] | [_, 0, _]) => Some(0),
        Extents::Matrix([rows, cols, ld]) => (rows - 1).checked_mul(ld)?.checked_add(cols),
    }
}

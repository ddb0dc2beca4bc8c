//! A graph file as a program: tensors instead of addresses, edges as the runtime derives them.

use std::path::Path;

use pto_check::program::{
    Action, Argument, Condition, Location, Program as GraphProgram, Task, Tensor, Use, View,
};
use pto_check::{
    Cores, FileProgram, task_graph, with_kept_heap, without_chains, without_recordings, written,
};
use pto_host::abi::CoreKind;
use pto_host::workloads::program::{
    BlockShape, GraphArgument, GraphTask, OwnedPredicate, Program, ProgramBody, Role,
    TensorDescription, TensorElement, TensorLayout,
};
use pto_host::workloads::tile::DType;

use crate::errors::Failure;
use crate::kernels::KernelSet;
use crate::program;

/// The program of a graph file.
pub(super) fn program_of(path: &Path, kernels: &KernelSet) -> Result<Program, Failure> {
    let shown = path.display();
    let of_file = program::read(path)?;
    let refused = |what: &dyn std::fmt::Display| {
        Failure::usage(format!("'{shown}' cannot become a program: {what}"))
    };
    check_steps(&of_file).map_err(|what| refused(&what))?;
    let of_file = without_recordings(&of_file).map_err(|what| refused(&what))?;
    // A program file has no chains.
    let (graph, _) = with_kept_heap(&without_chains(&of_file));
    check_memory(&graph).map_err(|what| refused(&what))?;
    let edges = task_graph(&graph, Cores::default()).map_err(|finding| refused(&finding))?;
    let tensors = (0..graph.tensors.len()).map(|index| description(&of_file, &graph, index));
    let tensors = tensors.collect::<Result<Vec<_>, _>>().map_err(|what| refused(&what))?;
    let tasks = edges.tasks.iter().zip(0_u32..).map(|(index, number)| {
        let producers = edges.edges.iter().filter(|(_, consumer)| *consumer == number);
        let producers = producers.map(|(producer, _)| *producer as usize).collect();
        task(&graph.tasks[*index], producers, kernels)
    });
    let tasks = tasks.collect::<Result<Vec<_>, _>>().map_err(|what| refused(&what))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Program::new(&name, ProgramBody::Graph(tasks), tensors).map_err(|error| refused(&error))
}

/// Refuses what a program with a graph does not hold.
fn check_steps(graph: &GraphProgram) -> Result<(), String> {
    for step in &graph.steps {
        if let Action::Get(_) | Action::Set(..) = &step.action {
            return Err(format!(
                "line {} reads or writes a value while it builds; a program file holds tasks with edges alone",
                step.line
            ));
        }
    }
    Ok(())
}

/// Refuses tensors that share memory: a program binds each of them for itself.
fn check_memory(graph: &GraphProgram) -> Result<(), String> {
    let submission = FileProgram::new(std::sync::Arc::new(graph.clone()));
    let mut ranges: Vec<_> = (0..graph.tensors.len())
        .filter_map(|index| {
            let (block, offset) = submission.block_of(index)?;
            Some((block, offset, offset + graph.tensors[index].bytes, index))
        })
        .collect();
    ranges.sort_unstable();
    let shared = ranges.iter().zip(ranges.iter().skip(1));
    let shared = shared.into_iter().find(|(a, b)| a.0 == b.0 && b.1 < a.2);
    shared.map_or(Ok(()), |(a, b)| {
        let [a, b] = [a.3, b.3].map(|index| graph.tensor_name(index));
        Err(format!("{a} and {b} share memory; give each its own"))
    })
}

fn description(
    of_file: &GraphProgram,
    graph: &GraphProgram,
    index: usize,
) -> Result<TensorDescription, String> {
    let tensor = &graph.tensors[index];
    let dtype = DType::from_name(&tensor.element.to_string());
    let dtype = dtype.ok_or_else(|| format!("{tensor} has elements of type {}", tensor.element))?;
    let shape = match &tensor.shape {
        Some(shape) => shape.iter().map(|extent| u64::from(*extent)).collect(),
        None => vec![tensor.bytes / dtype.bytes() as u64],
    };
    let is_of_heap = of_file.tensors[index].location == Location::Heap;
    let role = role(graph, index, is_of_heap);
    Ok(TensorDescription {
        name: name(tensor),
        role,
        dtype,
        shape,
        layout: TensorLayout::device(),
        // Which elements a kernel of the library writes is not known here.
        begins_with_zeros: role == Role::Output,
    })
}

fn name(tensor: &Tensor) -> String {
    tensor.name.clone().unwrap_or_else(|| format!("tensor_{}", tensor.id))
}

fn role(graph: &GraphProgram, index: usize, is_of_heap: bool) -> Role {
    if is_of_heap {
        return Role::Temporary;
    }
    if !written(graph)[index] {
        return Role::Input;
    }
    // A task reads its predicate before it does anything.
    let is_tested = |task: &&Task| {
        task.block_shape.when.as_ref().is_some_and(|when| when.element.tensor == index)
    };
    let is_arg = |arg: &&Argument| arg.view().is_some_and(|(view, _)| view.tensor == index);
    let first =
        graph.tasks.iter().find(|task| is_tested(task) || task.args.iter().any(|arg| is_arg(&arg)));
    match first.filter(|task| !is_tested(task)).and_then(|task| task.args.iter().find(is_arg)) {
        Some(Argument::Out(_) | Argument::NoDep(_, Use::Write)) => Role::Output,
        _ => Role::Updated,
    }
}

fn task(task: &Task, producers: Vec<usize>, kernels: &KernelSet) -> Result<GraphTask, String> {
    let named = |func: u16, of_kind: CoreKind| {
        let (kernel, kind) = kernels.named(func).ok_or_else(|| {
            format!(
                "{task} calls the kernel with func id {func}, which neither the library nor an object has; {}",
                kernels.listed_by()
            )
        })?;
        if kind != of_kind {
            return Err(format!("{task} runs {kernel} on {of_kind} cores, and it is for {kind}"));
        }
        Ok(kernel.to_owned())
    };
    let (kernel, kind) = (named(task.func, task.kind)?, task.kind);
    let mix = task.block_shape.mix.iter().map(|func| named(*func, CoreKind::AIV));
    let shape = BlockShape {
        mix: mix.collect::<Result<_, _>>()?,
        blocks: task.block_shape.blocks,
        start: task.block_shape.start,
        priority: task.block_shape.priority,
        when: task.block_shape.when.as_ref().map(condition),
    };
    let args = task.args.iter().map(|arg| argument(task, arg)).collect::<Result<_, _>>()?;
    Ok(GraphTask { kernel, kind, args, producers, block_shape: shape })
}

fn condition(when: &Condition) -> OwnedPredicate<TensorElement> {
    let OwnedPredicate { element: view, comparison, value } = *when;
    let (tensor, element) = (view.tensor, view.element);
    let element = TensorElement { tensor, offset: view.offset * element.bytes(), element };
    OwnedPredicate { element, comparison, value }
}

fn argument(task: &Task, arg: &Argument) -> Result<GraphArgument, String> {
    let of = |view: &View| GraphArgument::Tensor {
        tensor: view.tensor,
        offset: view.offset * view.element.bytes(),
    };
    match arg {
        Argument::In(view)
        | Argument::Out(view)
        | Argument::InOut(view)
        | Argument::NoDep(view, _) => Ok(of(view)),
        Argument::Scalar(word) => Ok(GraphArgument::Word(*word)),
        Argument::BoundScalar(_) => Err(format!("{task} has a word that a replay binds")),
    }
}

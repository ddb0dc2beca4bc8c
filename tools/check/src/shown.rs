//! A program as a graph to be shown: its tasks, who waits for whom, and what a predicate says.

use pto_graph::ElementType;

use crate::derive::derive;
use crate::diagnostics;
use crate::finding::Finding;
use crate::layout::take_apart;
use crate::memory_map::Addresses;
use crate::program::{Condition, Program, Tensor};
use crate::rig::Cores;

/// The tasks of a program, and who waits for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGraph {
    /// Each task, by its index in the program; those of records once for each replay.
    pub tasks: Vec<usize>,
    /// Producers and consumers, by their indices in `tasks`, in the order of consumers; those that the program states, and those
    /// that are derived.
    pub edges: Vec<(u32, u32)>,
}

/// The graph of a program. What the program itself waits for (`get`, `set`) is not in it.
///
/// # Errors
/// What the runtime refuses.
pub fn task_graph(program: &Program, cores: Cores) -> Result<TaskGraph, Box<Finding>> {
    let addresses = Addresses::of(program);
    let layout = take_apart(program, &addresses);
    let mut edges = layout.edges.clone();
    if program.streams() {
        let derived = derive((program, &addresses), layout.nodes.len(), cores);
        let derived =
            derived.map_err(|trouble| Box::new(diagnostics::refused(program, &trouble)))?;
        edges.extend(derived.edges);
    }
    let mut graph = TaskGraph::default();
    let mut numbers = Vec::new();
    for node in (0_u32..).take(layout.nodes.len()) {
        let task = layout.task(node);
        numbers.push(task.and_then(|_| u32::try_from(graph.tasks.len()).ok()));
        graph.tasks.extend(task);
    }
    let number = |node: u32| numbers.get(node as usize).copied().flatten();
    let between = edges.iter().filter_map(|(from, to)| Some((number(*from)?, number(*to)?)));
    graph.edges = between.collect();
    graph.edges.sort_unstable_by_key(|(producer, consumer)| (*consumer, *producer));
    graph.edges.dedup();
    Ok(graph)
}

impl Program {
    /// What a predicate says: `tensor 3 'counts'[5] > 0`.
    #[must_use]
    pub fn condition(&self, condition: &Condition) -> String {
        let Condition { element, comparison, value } = condition;
        let tensor = self.tensors.get(element.tensor);
        let name = self.tensor_name(element.tensor);
        let index = tensor.map_or_else(|| vec![element.offset], |of| index_of(of, element.offset));
        let value = number(element.element, *value);
        format!("{name}{index:?} {} {value}", comparison.name())
    }
}

/// The index of an element of a tensor, counted from its first one; of one whose extents are not known, the count.
fn index_of(tensor: &Tensor, offset: u64) -> Vec<u64> {
    let shape = tensor.shape.as_deref().filter(|shape| shape.iter().all(|extent| *extent > 0));
    let Some(shape) = shape else { return vec![offset] };
    let mut left = offset;
    let mut index: Vec<u64> = Vec::new();
    for extent in shape.iter().rev().map(|extent| u64::from(*extent)) {
        index.push(left % extent);
        left /= extent;
    }
    index.reverse();
    index
}

/// A value in the low bits of a word.
fn number(element: ElementType, word: u64) -> String {
    let unused = 64_u32.saturating_sub(8 * u32::try_from(element.bytes()).unwrap_or(8));
    let bits = word << unused >> unused;
    match element {
        // 32 bits are left.
        ElementType::F32 => f32::from_bits((bits & 0xFFFF_FFFF) as u32).to_string(),
        ElementType::F64 => f64::from_bits(bits).to_string(),
        ElementType::F16 | ElementType::BF16 => format!("{bits:#06x} ({})", element.name()),
        ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => {
            ((word << unused).cast_signed() >> unused).to_string()
        }
        _ => bits.to_string(),
    }
}

//! How many tasks a tree has at least, as its loops say before anything runs.

use crate::tree::{Axis, Node};

use super::bindings::Bindings;

/// So many tasks a tree has, or more: loops over arrays, and what depends on values or tokens, count as none.
pub(super) fn least_tasks(node: &Node, bindings: &Bindings) -> u64 {
    let sum = |nodes: &mut dyn Iterator<Item = &Node>| {
        nodes.fold(0_u64, |sum, node| sum.saturating_add(least_tasks(node, bindings)))
    };
    match node {
        Node::Task(_) | Node::Send { .. } => 1,
        Node::ParallelFor(around, body)
        | Node::Select(around, body)
        | Node::ForEach(around, body) => {
            turns(&around.axis, bindings).saturating_mul(least_tasks(body, bindings))
        }
        Node::Cond { then, otherwise, .. } => {
            least_tasks(then, bindings).min(least_tasks(otherwise, bindings))
        }
        Node::Combine(nodes) | Node::Sequential(nodes) => sum(&mut nodes.iter()),
        Node::Pipeline(processes) => sum(&mut processes.iter().map(|process| &process.body)),
        Node::Empty
        | Node::SlotSet { .. }
        | Node::SlotLoad { .. }
        | Node::Consume { .. }
        | Node::Exchange(_) => 0,
    }
}

/// So many turns of a loop over an axis, or more.
fn turns(axis: &Axis, bindings: &Bindings) -> u64 {
    match axis {
        Axis::Dense(turns) => *turns,
        // That a size is not bound, is told when its loop is reached.
        Axis::DenseDyn { name, default } => bindings.find_size(name, *default).unwrap_or(0),
        Axis::Ragged { .. } | Axis::Sparse { .. } => 0,
    }
}

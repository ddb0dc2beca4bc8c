//! How many tasks a tree has at least, as its loops say before anything runs.

use crate::tree::{Axis, TreeNode};

use super::bindings::Bindings;

/// So many tasks a tree has, or more: loops over arrays, and what depends on values or tokens, count as none.
pub(super) fn least_tasks(node: &TreeNode, bindings: &Bindings) -> u64 {
    let sum = |nodes: &mut dyn Iterator<Item = &TreeNode>| {
        nodes.fold(0_u64, |sum, node| sum.saturating_add(least_tasks(node, bindings)))
    };
    match node {
        TreeNode::Task(_) | TreeNode::Send { .. } => 1,
        TreeNode::ParallelFor(around, body)
        | TreeNode::Select(around, body)
        | TreeNode::ForEach(around, body) => {
            turns(&around.axis, bindings).saturating_mul(least_tasks(body, bindings))
        }
        TreeNode::Cond { then, otherwise, .. } => {
            least_tasks(then, bindings).min(least_tasks(otherwise, bindings))
        }
        TreeNode::Combine(nodes) | TreeNode::Sequential(nodes) => sum(&mut nodes.iter()),
        TreeNode::Pipeline(processes) => sum(&mut processes.iter().map(|process| &process.body)),
        TreeNode::Empty
        | TreeNode::SlotSet { .. }
        | TreeNode::SlotLoad { .. }
        | TreeNode::Consume { .. }
        | TreeNode::Exchange(_) => 0,
    }
}

/// The least number of turns of a loop over an axis.
fn turns(axis: &Axis, bindings: &Bindings) -> u64 {
    match axis {
        Axis::Dense(turns) => *turns,
        // A size that is not bound is reported when its loop is reached.
        Axis::DenseDyn { name, default } => bindings.find_size(name, *default).unwrap_or(0),
        Axis::Ragged { .. } | Axis::Sparse { .. } => 0,
    }
}

//! What each tensor is to a workload: read, written, both; and whether what is written is all of it.

use std::collections::BTreeMap;

use super::description::Role;
use crate::tree::{
    Axis, BinaryOp, Checked, ExchangeKind, Expr, Index, Task, TaskArgument, TensorExchange,
    TensorSlice, TreeNode, Workload,
};
use pto_aicore_kernels::tile::{Direction, TileType};

/// What was seen of a tensor.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    is_read: bool,
    is_written: bool,
    /// A task that writes came before every task that reads.
    is_written_first: bool,
    /// The first task that writes does so everywhere.
    is_covered: bool,
}

/// For each tensor its role, and whether it has to hold zeros before a run, because not every element is certain to be written.
pub(super) fn roles(checked: &Checked) -> Vec<(Role, bool)> {
    let workload = checked.workload();
    let mut reader = RoleReader { workload, seen: vec![Seen::default(); workload.tensors.len()] };
    reader.node(&workload.root, Some(&BTreeMap::new()));
    let role = |seen: &Seen| match seen {
        Seen { is_written: false, .. } => (Role::Input, false),
        Seen { is_written_first: true, is_covered, .. } => (Role::Output, !is_covered),
        _ => (Role::Updated, false),
    };
    reader.seen.iter().map(role).collect()
}

struct RoleReader<'w> {
    workload: &'w Workload,
    seen: Vec<Seen>,
}

/// The loops around a node, by their variables; `None`: something around it may not be done.
type Loops<'l> = Option<&'l BTreeMap<String, u64>>;

impl RoleReader<'_> {
    fn node(&mut self, node: &TreeNode, loops: Loops<'_>) {
        match node {
            TreeNode::ParallelFor(around, body) | TreeNode::ForEach(around, body) => {
                let size = match &around.axis {
                    Axis::Dense(size) => Some(*size),
                    _ => None,
                };
                let inner = loops.zip(size).map(|(loops, size)| {
                    let mut inner = loops.clone();
                    inner.insert(around.var.clone(), size);
                    inner
                });
                self.node(body, inner.as_ref());
            }
            TreeNode::Select(_, body) | TreeNode::Consume { body, .. } => self.node(body, None),
            TreeNode::Cond { then, otherwise, .. } => {
                self.node(then, None);
                self.node(otherwise, None);
            }
            TreeNode::Combine(nodes) | TreeNode::Sequential(nodes) => {
                nodes.iter().for_each(|node| self.node(node, loops));
            }
            TreeNode::Pipeline(processes) => {
                processes.iter().for_each(|process| self.node(&process.body, None));
            }
            TreeNode::SlotLoad { view, .. } => self.seen[view.tensor].is_read = true,
            TreeNode::Task(task) | TreeNode::Send { task, .. } => self.task(task, loops),
            TreeNode::Exchange(exchange) => self.exchange(exchange, loops),
            TreeNode::Empty | TreeNode::SlotSet { .. } => {}
        }
    }

    /// What is received is all of the tensor; all other exchanges begin with what is in it.
    fn exchange(&mut self, exchange: &TensorExchange, loops: Loops<'_>) {
        let seen = &mut self.seen[exchange.tensor];
        seen.is_read |= exchange.kind != ExchangeKind::RECEIVE;
        if exchange.kind != ExchangeKind::SEND && !seen.is_written {
            seen.is_written = true;
            seen.is_written_first = !seen.is_read;
            seen.is_covered = loops.is_some();
        }
    }

    fn task(&mut self, task: &Task, loops: Loops<'_>) {
        let params = self.workload.kernels[task.kernel].params();
        let views = params.iter().zip(&task.arguments).filter_map(|(param, argument)| {
            let TaskArgument::View(view) = argument else { return None };
            Some((param.tensor()?, view))
        });
        let views: Vec<_> = views.collect();
        // A task reads before it writes.
        for ((direction, _), view) in &views {
            if *direction != Direction::Out {
                self.seen[view.tensor].is_read = true;
            }
        }
        for ((direction, tile), view) in views {
            let shape = &self.workload.tensors[view.tensor].shape;
            let seen = &mut self.seen[view.tensor];
            if direction.is_written() && !seen.is_written {
                seen.is_written = true;
                seen.is_written_first = !seen.is_read;
                seen.is_covered = loops.is_some_and(|loops| covers(view, shape, tile, loops));
            }
        }
    }
}

/// Whether the tiles of a view, over all rounds of the loops, are the whole tensor. No is said where it is not certain.
fn covers(
    view: &TensorSlice,
    shape: &[u64],
    tile: TileType,
    loops: &BTreeMap<String, u64>,
) -> bool {
    let free: Vec<_> = view.free(shape.len()).collect();
    let sides: &[u16] = if free.len() == 1 { &[tile.cols] } else { &[tile.rows, tile.cols] };
    let mut used = Vec::new();
    shape.iter().enumerate().all(|(dim, extent)| {
        let side = free.iter().position(|free| *free == dim);
        let side = side.and_then(|at| sides.get(at)).map_or(1, |side| u64::from(*side));
        match view.indices.get(dim) {
            None => side >= *extent,
            Some(Index::At(Expr::Var(var))) => covered(var, 1, *extent, loops, &mut used),
            Some(Index::At(Expr::Int(0))) => *extent == 1,
            Some(Index::Range { start, length }) => {
                let length = match length {
                    Expr::Int(length) => u64::try_from(*length).unwrap_or(0).min(side),
                    _ => 0,
                };
                match start {
                    Expr::Int(0) => length >= *extent,
                    Expr::Var(var) => length > 0 && covered(var, 1, *extent, loops, &mut used),
                    Expr::Binary(BinaryOp::Mul, operands) => match &**operands {
                        (Expr::Var(var), Expr::Int(step)) => {
                            u64::try_from(*step).is_ok_and(|step| step <= length && step > 0)
                                && covered(var, step.unsigned_abs(), *extent, loops, &mut used)
                        }
                        _ => false,
                    },
                    _ => false,
                }
            }
            Some(Index::At(_)) => false,
        }
    })
}

/// Whether steps of a loop variable reach an extent. Each variable counts for one dimension.
fn covered<'v>(
    var: &'v String,
    step: u64,
    extent: u64,
    loops: &BTreeMap<String, u64>,
    used: &mut Vec<&'v String>,
) -> bool {
    let is_fresh = !used.contains(&var);
    used.push(var);
    is_fresh && loops.get(var).is_some_and(|size| size.saturating_mul(step) >= extent)
}

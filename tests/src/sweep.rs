//! The floor: a sequential topological sweep with atomic counters over the same graphs, no runtime at all.
//!
//! It builds the graph (tasks with a counter and a list of consumers) and runs it from a stack of ready
//! tasks, calling an empty kernel for each: what any scheduler has to do at least.

use std::hint::black_box;

use pto_abi::sync::{AtomicU32, Ordering};
use pto_abi::{
    EdgeOutcome, Fault, GmAddr, GraphBuilder, TaskId, TaskSpec, graph::BuilderSet, symbol::symbol,
};

use crate::graphs::{Shapes, counts};

#[derive(Default)]
struct Node {
    fanin: AtomicU32,
    consumers: Vec<u32>,
}

/// A graph that is built and swept again and again.
pub struct Sweep {
    name: String,
    asked: [u64; 1],
    nodes: Vec<Node>,
    added: usize,
    ready: Vec<u32>,
}

impl Sweep {
    /// The shape `name` with about `tasks` tasks.
    #[must_use]
    pub fn new(name: &str, tasks: u32) -> Self {
        let (count, _) = counts(name, tasks);
        let nodes = (0..count).map(|_| Node::default()).collect();
        Self { name: name.to_owned(), asked: [tasks.into()], nodes, added: 0, ready: Vec::new() }
    }

    /// Builds the graph and sweeps it; returns how many tasks ran.
    pub fn build_and_run(&mut self) -> usize {
        self.added = 0;
        self.ready.clear();
        if let Some(Err(error)) = Shapes.build(symbol(&self.name.clone()), self) {
            panic!("the sweep takes every shape: {error}");
        }
        let mut run = 0;
        while let Some(slot) = self.ready.pop() {
            black_box(slot);
            run += 1;
            let consumers = std::mem::take(&mut self.nodes[slot as usize].consumers);
            for &consumer in &consumers {
                // AcqRel: pairs with itself; what a parallel sweep would need.
                if self.nodes[consumer as usize].fanin.fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.ready.push(consumer);
                }
            }
            self.nodes[slot as usize].consumers = consumers;
        }
        run
    }
}

impl GraphBuilder for Sweep {
    fn orch_args(&self) -> &[u64] {
        &self.asked
    }

    fn add_task(&mut self, _: TaskSpec<'_>) -> Result<TaskId, Fault> {
        let slot = self.added;
        let node = self.nodes.get_mut(slot).ok_or(Fault::BUILD_TASKS_FULL)?;
        node.fanin.store(0, Ordering::Relaxed);
        node.consumers.clear();
        self.added += 1;
        Ok(TaskId { slot: u32::try_from(slot).unwrap_or(u32::MAX), generation: 1 })
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.nodes[producer.slot as usize].consumers.push(consumer.slot);
        self.nodes[consumer.slot as usize].fanin.fetch_add(1, Ordering::Relaxed);
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, task: TaskId) -> Result<(), Fault> {
        if self.nodes[task.slot as usize].fanin.load(Ordering::Relaxed) == 0 {
            self.ready.push(task.slot);
        }
        Ok(())
    }

    fn read_u32(&self, _: GmAddr) -> Result<u32, Fault> {
        Err(Fault::BUILD_GM_RANGE)
    }
}

#[cfg(test)]
mod tests {
    use super::Sweep;
    use crate::graphs::{NAMES, counts};

    #[test]
    fn a_sweep_runs_every_task_again_and_again() {
        for name in NAMES {
            let mut sweep = Sweep::new(name, 1000);
            for _ in 0..2 {
                assert_eq!(sweep.build_and_run(), counts(name, 1000).0 as usize, "{name}");
            }
        }
    }
}

//! The floor: a sequential topological sweep over the same graphs, without a runtime, with and without atomic
//! counters.
//!
//! It builds the graph (for each task a counter and a list of consumers) and runs it from a stack of ready tasks,
//! calling a kernel for each: what any scheduler has to do at least.

use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use pto_abi::sync::{AtomicU32, Concurrent, Exclusive, Ordering, Sharing};
use pto_aicore_kernels::{dag_value, spin};

use super::{Class, Error, LoadedGraph, Runner, Sample, own_ns_per_iteration};
use crate::csr::{Csr, fold_values};

/// Consumers in a node itself; more are in chunks.
const INLINE: usize = 12;
const CHUNK: usize = 14;
const NONE: u32 = u32::MAX;

/// A task of the sweep: one line.
#[derive(Debug)]
#[repr(align(64))]
struct SweepNode {
    fanin: AtomicU32,
    count: u32,
    chunk: u32,
    consumers: [u32; INLINE],
}

/// Further consumers.
#[derive(Debug)]
#[repr(align(64))]
struct Chunk {
    next: u32,
    consumers: [u32; CHUNK],
}

/// A graph that is built and swept again and again; the counters are atomic, or not, by `S`.
#[derive(Debug)]
pub struct Sweep<S> {
    graph: Arc<Csr>,
    nodes: Vec<SweepNode>,
    chunks: Vec<Chunk>,
    ready: Vec<u32>,
    counting: PhantomData<S>,
}

/// A sweep with atomic counters, as several threads would need.
pub type AtomicSweep = Sweep<Concurrent>;
/// A sweep without atomics.
pub type PlainSweep = Sweep<Exclusive>;

impl<S: Sharing> Default for Sweep<S> {
    fn default() -> Self {
        let graph = Arc::new(Csr::with_capacity(0, 0));
        let (nodes, chunks, ready) = (Vec::new(), Vec::new(), Vec::new());
        Self { graph, nodes, chunks, ready, counting: PhantomData }
    }
}

impl<S: Sharing> Sweep<S> {
    fn build(&mut self) {
        self.nodes.clear();
        self.chunks.clear();
        self.ready.clear();
        for (task, producers) in self.graph.iter() {
            let fanin = u32::try_from(producers.len()).unwrap_or(u32::MAX);
            let consumers = [0; INLINE];
            self.nodes.push(SweepNode {
                fanin: AtomicU32::new(fanin),
                count: 0,
                chunk: NONE,
                consumers,
            });
            if producers.is_empty() {
                self.ready.push(task);
            }
            for &producer in producers {
                let node = &mut self.nodes[producer as usize];
                let at = node.count as usize;
                node.count += 1;
                match node.consumers.get_mut(at) {
                    Some(entry) => *entry = task,
                    None => push_further(node, &mut self.chunks, at - INLINE, task),
                }
            }
        }
    }

    fn run(&mut self, mut kernel: impl FnMut(u32)) -> u32 {
        let mut ran = 0;
        while let Some(task) = self.ready.pop() {
            kernel(task);
            ran += 1;
            let node = &self.nodes[task as usize];
            let count = node.count as usize;
            for &consumer in &node.consumers[..count.min(INLINE)] {
                release::<S>(&self.nodes, &mut self.ready, consumer);
            }
            let (mut left, mut chunk) = (count.saturating_sub(INLINE), node.chunk);
            while left > 0 {
                // Chunks are linked newest first: only the newest one is not full.
                let held = (left - 1) % CHUNK + 1;
                let Chunk { next, consumers } = &self.chunks[chunk as usize];
                for &consumer in &consumers[..held] {
                    release::<S>(&self.nodes, &mut self.ready, consumer);
                }
                (left, chunk) = (left - held, *next);
            }
        }
        ran
    }
}

#[cold]
fn push_further(node: &mut SweepNode, chunks: &mut Vec<Chunk>, beyond: usize, task: u32) {
    if beyond.is_multiple_of(CHUNK) {
        chunks.push(Chunk { next: node.chunk, consumers: [0; CHUNK] });
        node.chunk = u32::try_from(chunks.len() - 1).unwrap_or(NONE);
    }
    chunks[node.chunk as usize].consumers[beyond % CHUNK] = task;
}

#[inline]
fn release<S: Sharing>(nodes: &[SweepNode], ready: &mut Vec<u32>, consumer: u32) {
    // AcqRel: pairs with itself, the other producers' decrements, as a sweep of several threads would need.
    if S::fetch_sub_u32(&nodes[consumer as usize].fanin, 1, Ordering::AcqRel) == 1 {
        ready.push(consumer);
    }
}

/// Sweeps have names.
pub trait SweepName {
    /// The name.
    const NAME: &'static str;
}

/// The name of the sweep with atomic counters.
pub const SWEEP: &str = "sweep";

impl SweepName for Concurrent {
    const NAME: &'static str = SWEEP;
}

impl SweepName for Exclusive {
    const NAME: &'static str = "sweep without atomics";
}

impl<S: Sharing + SweepName> Runner for Sweep<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn class(&self) -> Class {
        Class::Floor
    }

    fn threads(&self) -> usize {
        1
    }

    fn load(&mut self, loaded: LoadedGraph<'_>) -> Result<(), Error> {
        *self = Self { graph: Arc::clone(loaded.graph), ..Self::default() };
        Ok(())
    }

    fn check(&mut self) -> Result<u64, Error> {
        self.build();
        let graph = Arc::clone(&self.graph);
        let mut values = vec![0; graph.tasks() as usize];
        self.run(|task| {
            let inputs = graph.producers_of(task).iter().map(|producer| values[*producer as usize]);
            let value = dag_value(0, task.into(), inputs);
            // A task that runs twice adds twice.
            values[task as usize] = value.wrapping_add(values[task as usize]);
        });
        Ok(fold_values(values))
    }

    fn ns_per_iteration(&mut self) -> Result<f64, Error> {
        Ok(own_ns_per_iteration())
    }

    fn sample(&mut self, iterations: u64) -> Result<Sample, Error> {
        let start = Instant::now();
        self.build();
        let built = start.elapsed();
        let kernel: extern "C" fn(u64) = black_box(kernel);
        let ran = self.run(|_| kernel(iterations));
        debug_assert_eq!(ran, self.graph.tasks());
        let total = start.elapsed();
        Ok(Sample { build: Some(built), run: Some(total - built), total })
    }

    fn memory_bytes(&mut self) -> Result<Option<u64>, Error> {
        self.build();
        let bytes =
            self.nodes.len() * size_of::<SweepNode>() + self.chunks.len() * size_of::<Chunk>();
        Ok(Some(bytes as u64))
    }
}

extern "C" fn kernel(iterations: u64) {
    if iterations > 0 {
        spin(iterations);
    }
}

#[cfg(test)]
mod tests {
    use super::{AtomicSweep, PlainSweep};
    use crate::family::Family;
    use crate::runner::{LoadedGraph, Runner};
    use std::sync::Arc;

    #[test]
    fn a_sweep_runs_every_task_in_order_again_and_again() {
        let runners: [&mut dyn Runner; 2] =
            [&mut AtomicSweep::default(), &mut PlainSweep::default()];
        for runner in runners {
            for family in Family::all() {
                let graph = Arc::new(family.graph(2_000));
                runner.load(LoadedGraph { graph: &graph, file: None }).unwrap();
                for _ in 0..2 {
                    assert_eq!(runner.check().unwrap(), graph.checksum(), "{family}");
                    runner.sample(0).unwrap();
                }
            }
        }
    }
}

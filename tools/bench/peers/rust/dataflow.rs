//! Counters of producers and lists of consumers: a line for each task, as in `../cpp/dataflow.h`.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::protocol::Graph;

const INLINE: usize = 12;
const CHUNK: usize = 14;
const NONE: u32 = u32::MAX;

#[repr(align(64))]
struct FlowNode {
    fanin: AtomicU32,
    count: u32,
    chunk: u32,
    consumers: [u32; INLINE],
}

#[repr(align(64))]
struct Chunk {
    next: u32,
    consumers: [u32; CHUNK],
}

/// A graph whose tasks are ready when their counter is zero.
#[derive(Default)]
pub(crate) struct Dataflow {
    nodes: Vec<FlowNode>,
    chunks: Vec<Chunk>,
    pub(crate) roots: Vec<u32>,
}

impl Dataflow {
    pub(crate) fn tasks(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn build(&mut self, graph: &Graph) {
        self.nodes.clear();
        self.chunks.clear();
        self.roots.clear();
        for task in 0..graph.tasks {
            let producers = graph.producers_of(task);
            let fanin = AtomicU32::new(u32::try_from(producers.len()).unwrap_or(u32::MAX));
            self.nodes.push(FlowNode { fanin, count: 0, chunk: NONE, consumers: [0; INLINE] });
            if producers.is_empty() {
                self.roots.push(task);
            }
            for &producer in producers {
                self.add(producer, task);
            }
        }
    }

    fn add(&mut self, producer: u32, consumer: u32) {
        let node = &mut self.nodes[producer as usize];
        let at = node.count as usize;
        node.count += 1;
        if let Some(entry) = node.consumers.get_mut(at) {
            *entry = consumer;
            return;
        }
        let beyond = at - INLINE;
        if beyond.is_multiple_of(CHUNK) {
            self.chunks.push(Chunk { next: node.chunk, consumers: [0; CHUNK] });
            node.chunk = u32::try_from(self.chunks.len() - 1).unwrap_or(NONE);
        }
        self.chunks[node.chunk as usize].consumers[beyond % CHUNK] = consumer;
    }

    /// Calls `ready` with each consumer that waited for nothing but this task.
    #[inline]
    pub(crate) fn complete(&self, task: u32, mut ready: impl FnMut(u32)) {
        let node = &self.nodes[task as usize];
        let count = node.count as usize;
        for &consumer in &node.consumers[..count.min(INLINE)] {
            self.release(consumer, &mut ready);
        }
        // Chunks are linked newest first: only the newest one is not full.
        let (mut left, mut at) = (count.saturating_sub(INLINE), node.chunk);
        while left > 0 {
            let held = (left - 1) % CHUNK + 1;
            let Chunk { next, consumers } = &self.chunks[at as usize];
            for &consumer in &consumers[..held] {
                self.release(consumer, &mut ready);
            }
            (left, at) = (left - held, *next);
        }
    }

    #[inline]
    fn release(&self, consumer: u32, ready: &mut impl FnMut(u32)) {
        // AcqRel: pairs with itself, in the other producers.
        if self.nodes[consumer as usize].fanin.fetch_sub(1, Ordering::AcqRel) == 1 {
            ready(consumer);
        }
    }
}

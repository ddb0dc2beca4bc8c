//! The graph of `random_dag`: whatever the tables in GM say. Node `i` has the producers
//! `producers[first[i] .. first[i + 1]]`, each below `i` and at most [`MAX_WINDOW`] before it, so that a ring
//! of that many ids is all that the program has to remember.
//!
//! Kernels know nodes by their places in the output tables, `i * stride`, and so does the table of producers: with a
//! stride of 16 each node writes lines of its own, as a device needs whose cores' caches are not coherent.

use core::num::NonZeroU64;

use pto_abi::{CoreKind, GmAddr, TaskId};
use pto_aicore_kernels::library;
use pto_graph::{BuildError, GraphBuilder};

/// How far before a node its producers may stand.
pub const MAX_WINDOW: u64 = 1024;
/// Argument words of a node.
pub const WORDS_PER_NODE: u64 = 6;
/// The builder's own error: `first` does not ascend from node to node.
pub const BAD_FIRST: i32 = 1;
/// The builder's own error: a producer is not before its node, or too far before it.
pub const BAD_PRODUCER: i32 = 2;
/// The builder's own error: a node's core kind is neither AIC nor AIV.
pub const BAD_KIND: i32 = 3;

const U32: u64 = 4;

crate::orch_args! {
    /// The words of `random_dag`.
    pub struct Args {
        /// Nodes.
        nodes: u64,
        /// What the checksums start from.
        seed: u64,
        /// Output: `u64 [nodes * stride]`, the checksums.
        values: GmAddr,
        /// Output: `u32 [nodes * stride]`, how often each node ran.
        counters: GmAddr,
        /// `u32 [nodes + 1]`: where the producers of a node start.
        first: GmAddr,
        /// `u32 [first[nodes]]`: places of the producers, node by node.
        producers: GmAddr,
        /// `u32 [nodes]`: a `CoreKind` each.
        kinds: GmAddr,
        /// The distance from the entry of a node to that of the next one.
        stride: NonZeroU64,
    }
}

/// Builds the graph.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, [`BAD_FIRST`], [`BAD_PRODUCER`], [`BAD_KIND`], and those of [`GraphBuilder`].
pub fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(graph.orch_args())?;
    let mut window = RecentIds::new();
    let mut first = u64::from(graph.read_u32(args.first)?);
    for node in 0..args.nodes {
        let next = u64::from(graph.read_u32(entry(args.first, node + 1))?);
        let count = next.checked_sub(first).ok_or(BuildError::Failed(BAD_FIRST))?;
        let producers = entry(args.producers, first);
        let position = node.wrapping_mul(args.stride.get());
        let kind = kind_of(graph.read_u32(entry(args.kinds, node))?)?;
        let (seed, values, counters) = (args.seed, args.values, args.counters);
        let task = match kind {
            CoreKind::AIC => {
                library::dag_node_aic(position, seed, values, counters, producers, count)
            }
            _ => library::dag_node_aiv(position, seed, values, counters, producers, count),
        };
        let task = graph.add_task(task.task())?;
        for index in 0..count {
            let position = u64::from(graph.read_u32(entry(producers, index))?);
            let producer = position / args.stride;
            let producer = window.get(producer, node).ok_or(BuildError::Failed(BAD_PRODUCER))?;
            graph.add_edge(producer, task)?;
        }
        graph.publish(task)?;
        window.put(node, task);
        first = next;
    }
    Ok(())
}

const fn entry(table: GmAddr, index: u64) -> GmAddr {
    table.offset(index.wrapping_mul(U32))
}

fn kind_of(kind: u32) -> Result<CoreKind, BuildError> {
    let kind = u8::try_from(kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
    kind.ok_or(BuildError::Failed(BAD_KIND))
}

/// The ids of the last [`MAX_WINDOW`] nodes.
struct RecentIds {
    ids: [TaskId; SLOTS],
}

const SLOTS: usize = 1024;
const _: () = assert!(SLOTS as u64 == MAX_WINDOW);

impl RecentIds {
    const fn new() -> Self {
        Self { ids: [TaskId::NONE; SLOTS] }
    }

    /// The id of `producer`, seen from `node`.
    fn get(&self, producer: u64, node: u64) -> Option<TaskId> {
        let distance = node.checked_sub(producer)?;
        if distance == 0 || distance > MAX_WINDOW {
            return None;
        }
        self.ids.get(slot(producer)).copied()
    }

    fn put(&mut self, node: u64, id: TaskId) {
        if let Some(entry) = self.ids.get_mut(slot(node)) {
            *entry = id;
        }
    }
}

const fn slot(node: u64) -> usize {
    (node % MAX_WINDOW) as usize
}

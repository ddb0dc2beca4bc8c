//! Shapes of the tasks of a random graph: how they are drawn, what a node holds then, and the kernel of a part.
//!
//! A node with a shape has a *cell* for each part of each block: the part writes its own `dag_value` there, and counts. Who
//! waits for the node folds all of its cells, so that a consumer that starts before the last part has finished gets another
//! value. The cells of a node that does not run stay zero.

use pto_abi::block::BlockContext;
use pto_abi::{BuildMode, CoreKind, Fault, FuncId, TaskId};
use pto_aicore_kernels::library::entry::{dag_node_aic, dag_node_aiv};
use pto_aicore_kernels::{KernelFn, args};
use pto_graph::{Arg, Predicate, StreamBuilder, TensorTask, TensorView};

use super::super::random::RandomStream;
use super::graph::{EdgesFrom, PublishOrder, RandomGraph, STRIDE};
use super::node_block_shape::NodeBlockShape;
use super::program::Program;
use super::setup::Setup;

/// The kernels of parts, as they are registered.
pub(super) const KERNELS: [(FuncId, KernelFn); CoreKind::COUNT] =
    [(FuncId(1000), part_aic), (FuncId(1001), part_aiv)];
/// Argument words of a part.
const PART_ARGS: usize = 7;

impl RandomGraph {
    /// The kernel of a node, on the first of its cores.
    pub(super) fn func_id(&self, node: u32) -> FuncId {
        let node = &self.nodes[node as usize];
        let [(cube, _), (vector, _)] = KERNELS;
        match node.block_shape {
            Some(shape) if shape.lanes.has(0) => cube,
            Some(_) => vector,
            None => Program::func_id(node),
        }
    }

    /// Gives block shapes to two of three nodes.
    pub(super) fn shape_up(&mut self, random: &mut RandomStream, setup: &Setup) {
        for node in &mut self.nodes {
            if random.below(3) > 0 {
                node.block_shape = Some(NodeBlockShape::draw(random, setup, &node.producers));
            }
        }
    }

    /// The same, of two shapes alone, with several parts each: what follows one another on a core is alike.
    pub(super) fn shape_alike(&mut self, random: &mut RandomStream, setup: &Setup) {
        let shapes = [(); 2].map(|()| NodeBlockShape::draw_with_parts(random, setup));
        for node in &mut self.nodes {
            if random.below(3) > 0 {
                node.block_shape = Some(random.pick(&shapes).for_node(random, &node.producers));
            }
        }
    }

    /// Takes the edges from tensors, in two of three.
    pub(super) fn derive_edges(
        &mut self,
        random: &mut RandomStream,
        setup: &Setup,
        values: EdgesFrom,
    ) {
        if random.below(3) > 0 {
            // Where schedulers wait for the builder it cannot wait for values.
            let waits = setup.build_mode == BuildMode::SEQUENTIAL;
            self.edges = if waits { EdgesFrom::Tensors } else { values };
            if matches!(self.order, PublishOrder::Backwards(_) | PublishOrder::Ranges(_)) {
                self.order = PublishOrder::AtOnce;
            }
        }
    }

    /// The first cell of each node, and after them how many there are.
    #[must_use]
    pub fn first_cells(&self) -> Vec<u32> {
        let mut cells = vec![0];
        for node in &self.nodes {
            let count = node.block_shape.map_or(1, |shape| shape.cells());
            cells.push(cells.last().copied().unwrap_or(0) + count);
        }
        cells
    }

    /// The cells that each node reads: those of its producers, in their order.
    pub(super) fn read_cells(&self) -> Vec<Vec<u32>> {
        let first = self.first_cells();
        let of = |producer: &u32| first[*producer as usize]..first[*producer as usize + 1];
        self.nodes.iter().map(|node| node.producers.iter().flat_map(of).collect()).collect()
    }
}

/// A node as a streaming program submits it: its arguments, from its first cell on.
pub(super) struct NodeCall<'a> {
    pub(super) first_cell: u32,
    /// What its predicate is on.
    pub(super) element: TensorView<'a>,
    pub(super) args: [u64; 6],
    /// What it reads and writes, as far as edges come from that.
    pub(super) tensors: &'a [Arg<'a>],
    pub(super) after: &'a [TaskId],
}

/// Adds a node with a block shape.
pub(super) fn add<G: StreamBuilder>(
    stream: &mut G,
    shape: &NodeBlockShape,
    node: &NodeCall<'_>,
) -> Result<TaskId, Fault> {
    let has_cube = shape.lanes.has(0);
    let lanes = u64::from(shape.lanes.count()) | u64::from(has_cube) << 8;
    let lanes = lanes | (node.tensors.len() as u64) << 16;
    let [_, seed, values, counters, producers, count] = node.args;
    let index = u64::from(node.first_cell) * u64::from(STRIDE);
    let words = [index, seed, values, counters, producers, count, lanes];
    let args: Vec<_> =
        words.into_iter().map(Arg::Scalar).chain(node.tensors.iter().copied()).collect();
    let [(cube, _), (vector, _)] = KERNELS;
    let (func, kind) = if has_cube { (cube, CoreKind::AIC) } else { (vector, CoreKind::AIV) };
    let vectors = [vector; 2];
    let others = &vectors[..shape.lanes.count() as usize - 1];
    let task = TensorTask::new(func, kind, &args).mix(others).blocks(shape.blocks);
    let task = task.priority(shape.priority).after(node.after);
    let task = if shape.starts_at_once { task.sync_start() } else { task };
    let Some(when) = shape.when else { return stream.add_tensor_task(&task) };
    let predicate = Predicate::new(&node.element, &[0], when.comparison, when.value);
    stream.add_tensor_task(&task.when(&predicate))
}

/// A part on a cube core. Arguments: those of `dag_node` with the index of the first cell, then how many kernels a block has,
/// in bit 8 whether one of them is for a cube core, and from bit 16 on how many words are before the one after the arguments.
///
/// # Safety
/// As `dag_node_aic`, for every cell of the node.
unsafe extern "C" fn part_aic(args: *const u64) {
    // SAFETY: the caller keeps the contract.
    let own = unsafe { own_args(args, CoreKind::AIC) };
    // SAFETY: the cell of this part, which no other part writes.
    unsafe { dag_node_aic(own.as_ptr()) }
}

/// As [`part_aic`], on a vector core.
///
/// # Safety
/// As [`part_aic`].
unsafe extern "C" fn part_aiv(args: *const u64) {
    // SAFETY: the caller keeps the contract.
    let own = unsafe { own_args(args, CoreKind::AIV) };
    // SAFETY: the cell of this part, which no other part writes.
    unsafe { dag_node_aiv(own.as_ptr()) }
}

/// # Safety
/// `args` are those of a part, and the word after them.
unsafe fn own_args(args: *const u64, kind: CoreKind) -> [u64; 6] {
    // SAFETY: by this function's contract.
    let words: [u64; PART_ARGS] = unsafe { args::words(args) };
    let [first, seed, values, counters, producers, count, lanes] = words;
    let context_word = args.wrapping_add(PART_ARGS + (lanes >> 16) as usize);
    // SAFETY: by this function's contract, the word after the arguments, of which there are this many.
    let [context] = unsafe { args::words(context_word) };
    let BlockContext { block, lane, .. } = BlockContext::of(context);
    let lane = if kind == CoreKind::AIC { 0 } else { (lanes >> 8 & 1) + u64::from(lane) };
    let cell = u64::from(block) * (lanes & 0xFF) + lane;
    [first + cell * u64::from(STRIDE), seed, values, counters, producers, count]
}

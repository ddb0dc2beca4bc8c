//! A random graph as a streaming program with tensors: each node writes its cells and reads those of its producers, so that its
//! edges are derived. Scopes come and go, and the program may look at values on its way: `get` waits for who writes them.

use pto_abi::{Fault, TaskId};
use pto_graph::{
    Arg, BuildError, DependencyMode, ElementType, ScopeId, StreamBuilder, TensorTask, TensorView,
};

use super::super::random::Random;
use super::graph::{EdgesFrom, PublishOrder, STRIDE};
use super::program::{Program, publish_last};
use super::shaped::{self, Submission};

/// The program found another value than the node has.
const WRONG_VALUE: i32 = 77;
/// Scopes that are open at once: one fewer than heaps, the first of which is that of the program.
const DEEPEST: usize = 3;

pub(super) fn run<G: StreamBuilder>(program: &Program, stream: &mut G) -> Result<(), BuildError> {
    let graph = &program.graph;
    let mut random = Random::new(graph.seed);
    let expected = graph.values();
    let at_once = graph.order == PublishOrder::AtOnce;
    let mut scopes: Vec<ScopeId> = Vec::new();
    let mut ids: Vec<TaskId> = Vec::new();
    let mut first_producer = 0;
    for index in 0..graph.nodes.len() {
        match random.below(6) {
            0 if at_once && scopes.len() < DEEPEST => {
                scopes.push(stream.open_scope(DependencyMode::DERIVED)?);
            }
            1 => scopes.pop().map_or(Ok(()), |scope| stream.close_scope(scope))?,
            _ => {}
        }
        ids.push(add(program, stream, index, first_producer)?);
        first_producer += u64::from(program.reads[index]);
        if at_once {
            publish_last(stream, &ids, 1)?;
        }
        if at_once && graph.edges == EdgesFrom::TensorsAndValues && random.below(4) == 0 {
            let of = random.below(u32::try_from(index).unwrap_or(0) + 1) as usize;
            let cell = program.first_cells[of];
            let value = stream.get(&table(program), &[cell * STRIDE])?;
            if value != expected[cell as usize].0 {
                return Err(BuildError::Failed(WRONG_VALUE));
            }
        }
    }
    while let Some(scope) = scopes.pop() {
        stream.close_scope(scope)?;
    }
    if !at_once {
        publish_last(stream, &ids, u32::MAX)?;
    }
    Ok(())
}

/// All values.
fn table(program: &Program) -> TensorView<'static> {
    let cells = program.first_cells.last().copied().unwrap_or(0);
    TensorView::dense(program.tables.values, ElementType::U64, &[cells * STRIDE])
}

fn add<G: StreamBuilder>(
    program: &Program,
    stream: &mut G,
    index: usize,
    first_producer: u64,
) -> Result<TaskId, Fault> {
    let node = &program.graph.nodes[index];
    let table = table(program);
    let cells = |node: usize| {
        let [first, end] = [node, node + 1].map(|at| program.first_cells[at] * STRIDE);
        table.slice(0, first, end - first)
    };
    let own = cells(index);
    let read: Vec<_> = node.producers.iter().map(|producer| cells(*producer as usize)).collect();
    let tensors: Vec<_> = [Arg::Out(&own)].into_iter().chain(read.iter().map(Arg::In)).collect();
    let args = program.args(index, first_producer);
    let Some(shape) = &node.block_shape else {
        let args: Vec<_> = args.into_iter().map(Arg::Scalar).chain(tensors).collect();
        return stream.add_tensor_task(&TensorTask::new(Program::func_id(node), node.kind, &args));
    };
    let on = shape.when.map_or(0, |when| program.first_cells[when.producer as usize]);
    let submission = Submission {
        first_cell: program.first_cells[index],
        element: table.slice(0, on * STRIDE, 1),
        args,
        tensors: &tensors,
        after: &[],
    };
    shaped::add(stream, shape, &submission)
}

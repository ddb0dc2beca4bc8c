//! Our builders in Rust. A builder is a function over [`GraphBuilder`]; what the host marshalled is in `orch_args`.

use pto_firmware::graph::{
    Arg, Comparison, ElementType, Predicate, Priority, StreamBuilder, TensorTask, TensorView,
};
use pto_firmware::{BuildError, CoreKind, Fault, FuncId, GmAddr, GraphBuilder, TaskSpec, func};

/// Our kernels (`kernels.rs`).
const AXPY: FuncId = FuncId(64);
const POLYNOMIAL: FuncId = FuncId(65);
const COUNT_CUBE: FuncId = FuncId(66);
const COUNT_VECTOR: FuncId = FuncId(67);

/// Adds 1.0 to a vector, `times` over: a chain of tasks on vector cores.
///
/// Words: address of the vector (`f32`), its length, how often.
pub(crate) fn increments<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[vector, length, times] = graph.orch_args() else { return Err(BuildError::Failed(1)) };
    let one = u64::from(1.0_f32.to_bits());
    let mut previous = None;
    for _ in 0..times {
        let args = [vector, one, vector, length];
        let task = TaskSpec::new(func::ADD_SCALAR, CoreKind::AIV, &args);
        previous = Some(graph.submit(task, previous.as_slice())?);
    }
    Ok(())
}

/// Sums polynomials of rows, with our own kernels: `y = y + weight * polynomial(x[row])` for each row, in order.
///
/// Words: address of `x` (`f32`, rows * length), of room of the same size, of `y` (`f32`, length), rows, length,
/// weight.
pub(crate) fn polynomials<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let &[x, room, y, rows, length, weight] = graph.orch_args() else {
        return Err(BuildError::Fault(Fault::BUILD_ORCH_ARGS));
    };
    let mut previous = None;
    for row in 0..rows {
        let at = 4 * length * row;
        let words = [x + at, room + at, length];
        let value = graph.submit(TaskSpec::new(POLYNOMIAL, CoreKind::AIC, &words), &[])?;
        let words = [room + at, y, length, weight];
        let sum = TaskSpec::new(AXPY, CoreKind::AIV, &words);
        previous = Some(match previous {
            None => graph.submit(sum, &[value])?,
            Some(previous) => graph.submit(sum, &[value, previous])?,
        });
    }
    Ok(())
}

/// A diamond of four tasks without arguments. Words: their func id.
pub(crate) fn diamond<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let func_id = graph.orch_args().first().and_then(|word| u16::try_from(*word).ok());
    let task = TaskSpec::new(FuncId(func_id.ok_or(Fault::BUILD_ORCH_ARGS)?), CoreKind::AIV, &[]);
    let top = graph.submit(task, &[])?;
    let left = graph.submit(task, &[top])?;
    let right = graph.submit(task, &[top])?;
    graph.submit(task, &[left, right])?;
    Ok(())
}

/// Counts in a table, in every shape of work: each part of a block has a cell.
///
/// Words: address of the table (`u64`, 3 cells a block), blocks, address of a flag (`u32`).
pub(crate) fn shapes<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let &[table, blocks, flag] = stream.orch_args() else {
        return Err(BuildError::Fault(Fault::BUILD_ORCH_ARGS));
    };
    let blocks = u32::try_from(blocks).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    let table = TensorView::dense(GmAddr(table), ElementType::U64, &[3 * blocks]);
    let flag = TensorView::dense(GmAddr(flag), ElementType::U32, &[1]);
    let [is_set, is_clear] = [Comparison::NOT_EQUAL, Comparison::EQUAL]
        .map(|comparison| Predicate::new(&flag, &[0], comparison, 0));
    let args = [Arg::InOut(&table)];
    let cube = TensorTask::new(COUNT_CUBE, CoreKind::AIC, &args);
    let cluster = cube.mix(&[COUNT_VECTOR, COUNT_VECTOR]);
    let vector = TensorTask::new(COUNT_VECTOR, CoreKind::AIV, &args);
    let tasks = [
        cluster.blocks(blocks),
        vector.blocks(blocks).priority(Priority::HIGH),
        cluster.sync_start(),
        vector.blocks(2).sync_start(),
        vector.when(&is_set),
        cluster.when(&is_clear),
    ];
    for task in &tasks {
        stream.submit_tensors(task)?;
    }
    Ok(())
}

//! Our builders. A builder is a function over [`GraphBuilder`]; what the host marshalled is in `orch_args`.

use pto_abi::{BuildError, CoreKind, Fault, FuncId, GraphBuilder, TaskSpec};

/// A diamond of four empty tasks. Orchestration words: the func id.
pub(crate) fn diamond<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let func_id = graph.orch_args().first().and_then(|word| u16::try_from(*word).ok());
    let task = TaskSpec::new(FuncId(func_id.ok_or(Fault::BUILD_ORCH_ARGS)?), CoreKind::AIV, &[]);
    let top = graph.submit(task, &[])?;
    let left = graph.submit(task, &[top])?;
    let right = graph.submit(task, &[top])?;
    graph.submit(task, &[left, right])?;
    Ok(())
}

/// Reads memory that is not there, as a builder in C might: shows what becomes of it.
pub(crate) fn crashing<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let nowhere = core::ptr::without_provenance::<u32>(8);
    // SAFETY: none; the exception is the point.
    let word = unsafe { nowhere.read_volatile() };
    let task = TaskSpec::new(FuncId(14), CoreKind::AIV, &[]);
    graph.submit(task, &[])?;
    Err(BuildError::Failed(word.cast_signed()))
}

/// Adds a task and gives up.
pub(crate) fn failing<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.add_task(TaskSpec::new(FuncId(14), CoreKind::AIV, &[]))?;
    Err(BuildError::Failed(-7))
}

/// Panics, as no builder should: shows what becomes of it.
pub(crate) fn panicking<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let words = graph.orch_args();
    assert!(words.is_empty(), "the first of {} words is {}", words.len(), words[0]);
    Ok(())
}

//! Builders that do what no builder should, to see what becomes of it.

use pto_firmware::{BuildError, CoreKind, GraphBuilder, TaskSpec, func};

/// Reads memory that is not there, as a builder in C might.
pub(crate) fn crashing<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let nowhere = core::ptr::without_provenance::<u32>(8);
    // SAFETY: none; the exception is the point.
    let word = unsafe { nowhere.read_volatile() };
    let task = TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]);
    graph.submit(task, &[])?;
    Err(BuildError::Failed(word.cast_signed()))
}

/// Adds a task and gives up.
pub(crate) fn failing<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.add_task(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]))?;
    Err(BuildError::Failed(-7))
}

/// Panics.
pub(crate) fn panicking<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let words = graph.orch_args();
    assert!(words.is_empty(), "the first of {} words is {}", words.len(), words[0]);
    Ok(())
}

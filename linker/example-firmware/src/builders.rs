//! Our builders in Rust. A builder is a function over [`GraphBuilder`]; what the host marshalled is in `orch_args`.

use pto_firmware::{BuildError, CoreKind, GraphBuilder, TaskSpec, func};

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

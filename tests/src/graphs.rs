//! Graph programs of known shape with empty kernels, for benchmarks and whole-system tests. Each reads the
//! number of tasks that it makes from the first orchestration word.

use pto_abi::{BuildError, CoreKind, Fault, GraphBuilder, TaskId, TaskSpec, builder_set};
use pto_aicore_kernels::func;

builder_set! {
    /// The shapes, by name.
    pub struct Shapes {
        "chain" => chain,
        "independent" => independent,
        "fork_join" => fork_join,
        "wavefront" => wavefront,
    }
}

/// The names of the shapes.
pub const NAMES: [&str; 4] = ["chain", "independent", "fork_join", "wavefront"];
/// Tasks between fork and join.
pub const FORK_WIDTH: usize = 64;

/// How many tasks and edges a shape has, when about `tasks` are asked for.
#[must_use]
pub fn counts(name: &str, tasks: u32) -> (u32, u64) {
    match name {
        "chain" => (tasks, u64::from(tasks.saturating_sub(1))),
        "fork_join" => {
            let width = u32::try_from(FORK_WIDTH).unwrap_or(u32::MAX);
            let stages = tasks.saturating_sub(1).div_ceil(width + 1);
            (1 + stages * (width + 1), u64::from(stages) * u64::from(2 * width))
        }
        "wavefront" => {
            let side = u64::from(tasks.isqrt());
            let count = u32::try_from(side * side).unwrap_or(u32::MAX);
            (count, 2 * side * side.saturating_sub(1))
        }
        _ => (tasks, 0),
    }
}

fn asked<G: GraphBuilder>(graph: &G) -> u32 {
    graph.orch_args().first().and_then(|word| u32::try_from(*word).ok()).unwrap_or(0)
}

fn empty<G: GraphBuilder>(graph: &mut G) -> Result<TaskId, Fault> {
    graph.add_task(TaskSpec::new(func::EMPTY_AIV, CoreKind::AIV, &[]))
}

fn chain<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let mut last = None;
    for _ in 0..asked(graph) {
        let task = empty(graph)?;
        if let Some(last) = last {
            graph.add_edge(last, task)?;
        }
        graph.publish(task)?;
        last = Some(task);
    }
    Ok(())
}

fn independent<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    for _ in 0..asked(graph) {
        let task = empty(graph)?;
        graph.publish(task)?;
    }
    Ok(())
}

fn fork_join<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let (tasks, _) = counts("fork_join", asked(graph));
    let mut join = empty(graph)?;
    graph.publish(join)?;
    let mut made = 1;
    while made < tasks {
        let mut forked = [join; FORK_WIDTH];
        for slot in &mut forked {
            let task = empty(graph)?;
            graph.add_edge(join, task)?;
            graph.publish(task)?;
            *slot = task;
        }
        join = empty(graph)?;
        for task in forked {
            graph.add_edge(task, join)?;
        }
        graph.publish(join)?;
        made += u32::try_from(FORK_WIDTH).unwrap_or(u32::MAX) + 1;
    }
    Ok(())
}

fn wavefront<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let side = asked(graph).isqrt() as usize;
    let mut above: Vec<TaskId> = Vec::with_capacity(side);
    for row in 0..side {
        let mut left = None;
        for column in 0..side {
            let task = empty(graph)?;
            if let Some(left) = left {
                graph.add_edge(left, task)?;
            }
            match above.get_mut(column) {
                Some(over) => {
                    graph.add_edge(*over, task)?;
                    *over = task;
                }
                None => above.push(task),
            }
            graph.publish(task)?;
            left = Some(task);
        }
        debug_assert_eq!(above.len(), side, "row {row}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn counts_of_small_shapes() {
        assert_eq!(counts("chain", 4), (4, 3));
        assert_eq!(counts("independent", 4), (4, 0));
        assert_eq!(counts("wavefront", 10), (9, 12));
        assert_eq!(counts("fork_join", 2), (66, 128));
        assert_eq!(counts("fork_join", 1), (1, 0));
    }
}

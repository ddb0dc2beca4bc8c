//! Graph programs of known shape with empty kernels; the first orchestration word says how many tasks, about.

use pto_abi::{CoreKind, Fault, FuncId, TaskId};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, GraphBuilder, TaskSpec, builder_set};

builder_set! {
    /// The patterns, by name.
    pub struct Patterns {
        "chain" => chain,
        "independent" => independent,
        "fork_join" => fork_join,
        "wavefront" => wavefront,
        "attention" => attention,
    }
}

fn asked<G: GraphBuilder>(graph: &G) -> u64 {
    graph.orch_args().first().copied().unwrap_or(0)
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
    let mut join = empty(graph)?;
    graph.publish(join)?;
    let mut made = 1;
    while made < asked(graph) {
        let mut forked = [join; 64];
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
        made += 65;
    }
    Ok(())
}

/// As the example `paged_attention`: rows (of 24 blocks) of units qk -> softmax -> pv -> update, where the updates
/// of a row are a chain. The first orchestration word: tasks, about; the second: blocks of a row.
fn attention<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    const STAGES: [(FuncId, CoreKind, usize); 4] = [
        (func::EMPTY_AIC, CoreKind::AIC, 9),
        (func::EMPTY_AIV, CoreKind::AIV, 9),
        (func::ATTENTION_PV, CoreKind::AIC, 9),
        (func::ATTENTION_UPDATE, CoreKind::AIV, 12),
    ];
    let blocks = graph.orch_args().get(1).copied().unwrap_or(24);
    let mut last = None;
    for unit in 0..asked(graph) / 4 {
        if unit % blocks == 0 {
            last = None;
        }
        let mut before = None;
        for (number, (func_id, kind, args)) in STAGES.into_iter().enumerate() {
            let task = graph.add_task(TaskSpec::new(func_id, kind, &[0; 12][..args]))?;
            for producer in before.into_iter().chain(last.filter(|_| number == 3)) {
                graph.add_edge(producer, task)?;
            }
            graph.publish(task)?;
            before = Some(task);
        }
        last = before;
    }
    Ok(())
}

fn wavefront<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let side = asked(graph).isqrt();
    let mut above: Vec<TaskId> = Vec::new();
    for row in 0..side {
        for column in 0..usize::try_from(side).unwrap_or(0) {
            let task = empty(graph)?;
            if column > 0 {
                graph.add_edge(above[column - 1], task)?;
            }
            if row > 0 {
                graph.add_edge(above[column], task)?;
                above[column] = task;
            } else {
                above.push(task);
            }
            graph.publish(task)?;
        }
    }
    Ok(())
}

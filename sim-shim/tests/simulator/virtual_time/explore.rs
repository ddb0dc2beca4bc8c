//! Small graphs in every interleaving of the machine's steps.

use std::sync::Arc;

use pto_abi::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};
use pto_sim_shim::virtual_time::soak::{
    EdgesFrom, GraphNode, KeepCores, PublishOrder, RandomGraph, Setup, explore, explore_bring_up,
    explore_states,
};

/// AIC: one core a cluster, so that two schedulers need no more than two cores.
fn graph(producers: &[&[u32]]) -> Arc<RandomGraph> {
    let node = |producers: &&[u32]| GraphNode {
        kind: CoreKind::AIC,
        producers: producers.to_vec(),
        block_shape: None,
    };
    let nodes = producers.iter().map(node).collect();
    Arc::new(RandomGraph { nodes, seed: 7, order: PublishOrder::AtOnce, edges: EdgesFrom::Program })
}

fn setup(aicpu: u32, aic: u32, fanout: FanoutStrategy) -> Setup {
    Setup {
        variant: RuntimeVariant::AICPU_BUILD_GRAPH,
        aicpu,
        aic,
        aiv: 0,
        build_mode: BuildMode::CONCURRENT,
        fanout,
        window: None,
        keeps_cores: KeepCores::Stay,
        task_budget_ns: 100_000,
        stall_budget_ns: 100_000,
        bring_up_budget_ns: 100_000,
    }
}

/// One by one, and each state once: both ways see the same orders.
fn in_every_interleaving(producers: &[&[u32]], setup: Setup) {
    let graph = graph(producers);
    let found = explore(&graph, setup, 3_000_000);
    println!(
        "{producers:?} on {} AICPU, {} AIC, {}: {found:?}",
        setup.aicpu, setup.aic, setup.fanout
    );
    assert_eq!(found.failure, None);
    assert!(found.is_complete, "more than {} interleavings", found.runs);
    assert!(found.traces > 1);
    assert_eq!(by_states(&graph, setup), found.runs.into());
}

/// How many interleavings there are, by states.
fn by_states(graph: &Arc<RandomGraph>, setup: Setup) -> u128 {
    let found = explore_states(graph, setup, 3_000_000);
    println!("by states: {found:?}");
    assert_eq!((found.failure, found.is_complete), (None, true));
    assert!(found.orders > found.runs.into(), "orders meet in states");
    found.orders
}

#[test]
fn a_chain_of_three() {
    for &fanout in FanoutStrategy::ALL {
        in_every_interleaving(&[&[], &[0], &[1]], setup(2, 1, fanout));
    }
}

#[test]
fn two_producers_of_one() {
    for &fanout in FanoutStrategy::ALL {
        in_every_interleaving(&[&[], &[], &[0, 1]], setup(2, 2, fanout));
    }
}

#[test]
fn two_schedulers_and_one_task() {
    for &fanout in FanoutStrategy::ALL {
        in_every_interleaving(&[&[]], setup(3, 2, fanout));
    }
}

#[test]
fn two_schedulers_share_an_edge() {
    let orders = by_states(&graph(&[&[], &[0]]), setup(3, 2, FanoutStrategy::LOCK_FREE));
    assert!(orders > 1_000_000, "{orders}");
}

#[test]
fn bring_up_and_stop() {
    let found = explore_bring_up(&graph(&[&[]]), setup(2, 2, FanoutStrategy::LOCK_FREE), 3_000_000);
    println!("{found:?}");
    assert!(found.is_complete && found.failure.is_none(), "{found:?}");
}

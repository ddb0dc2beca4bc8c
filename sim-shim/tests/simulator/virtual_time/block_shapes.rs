//! Shaped tasks in virtual time: small graphs in every interleaving of the machine's steps, and campaigns of random ones.
//!
//! In a build with `--cfg pto_mutants` also: wrong firmwares, and that the checkers find each.

use std::sync::Arc;

use pto_abi::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};
use pto_aicpu_fw::block_shapes::Lanes;
use pto_graph::Priority;
use pto_sim_shim::virtual_time::soak::{
    EdgesFrom, Exploration, GraphNode, KeepCores, NodeBlockShape, PublishOrder, RandomGraph, Setup,
    explore_states,
};

const CUBE: Lanes = Lanes(1);
const VECTOR: Lanes = Lanes(2);

fn at_once(lanes: Lanes, blocks: u32) -> NodeBlockShape {
    NodeBlockShape { lanes, blocks, starts_at_once: true, priority: Priority::NORMAL, when: None }
}

fn graph(shapes: &[NodeBlockShape]) -> Arc<RandomGraph> {
    let node = |shape: &NodeBlockShape| GraphNode {
        kind: CoreKind::AIC,
        producers: Vec::new(),
        block_shape: Some(*shape),
    };
    let nodes = shapes.iter().map(node).collect();
    Arc::new(RandomGraph { nodes, seed: 7, order: PublishOrder::AtOnce, edges: EdgesFrom::Program })
}

fn device(schedulers: u32, (aic, aiv): (u32, u32), build_mode: BuildMode) -> Setup {
    Setup {
        variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
        aicpu: 1 + schedulers,
        aic,
        aiv,
        build_mode,
        fanout: FanoutStrategy::LOCK_FREE,
        window: None,
        keeps_cores: KeepCores::Stay,
        task_budget_ns: 100_000,
        stall_budget_ns: 100_000,
        bring_up_budget_ns: 100_000,
    }
}

/// In every order of steps, each state once; of the builder too where it runs at the same time as the schedulers.
fn explored(shapes: &[NodeBlockShape], device: Setup) -> Exploration {
    let found = explore_states(&graph(shapes), device, 400_000);
    let Exploration { runs, orders, states, .. } = &found;
    let text: Vec<_> = shapes.iter().map(|s| (s.lanes, s.blocks, s.starts_at_once)).collect();
    println!("{text:?}, {device}: {orders} orders, {states} states, {runs} runs");
    found
}

#[cfg(not(pto_mutants))]
mod right {
    use std::sync::Arc;

    use super::{CUBE, VECTOR, at_once, device, explored, graph};
    use super::{NodeBlockShape, Priority, Setup};
    use pto_abi::BuildMode;
    use pto_aicpu_fw::block_shapes::Lanes;
    use pto_graph::Comparison;
    use pto_sim_shim::virtual_time::soak::{
        NodePredicate, RandomGraph, Troubles, explore, explore_states, soak_block_shapes,
    };

    const PAIR: Lanes = Lanes(6);
    const ALL: Lanes = Lanes(7);

    fn spread(lanes: Lanes, blocks: u32) -> NodeBlockShape {
        NodeBlockShape { starts_at_once: false, ..at_once(lanes, blocks) }
    }

    fn in_every_order(shapes: &[NodeBlockShape], device: Setup) {
        let found = explored(shapes, device);
        assert_eq!(found.failure, None);
        assert!(found.is_complete, "more than {} runs", found.runs);
        assert!(found.orders > found.runs.into(), "orders meet in states");
    }

    /// Two schedulers with one or two cores each, or with a cluster each; every task needs more than half of the cores, so that
    /// no two of them can gather at once.
    #[test]
    fn two_schedulers() {
        let two = |cores| device(2, cores, BuildMode::SEQUENTIAL);
        let urgent = NodeBlockShape { priority: Priority::URGENT, ..spread(CUBE, 2) };
        for second in [at_once(CUBE, 2), at_once(CUBE, 1), urgent] {
            in_every_order(&[at_once(CUBE, 2), second], two((2, 0)));
        }
        let high = NodeBlockShape { priority: Priority::HIGH, ..at_once(CUBE, 3) };
        for second in [at_once(CUBE, 2), high] {
            in_every_order(&[at_once(CUBE, 2), second], two((3, 0)));
        }
        in_every_order(&[at_once(CUBE, 2); 3], two((2, 0)));
        in_every_order(&[at_once(ALL, 2), at_once(VECTOR, 3)], two((2, 4)));
        in_every_order(&[at_once(VECTOR, 3), spread(ALL, 1)], two((2, 4)));
    }

    /// As above, and the program submits while they run: each task may come at any moment of the others. Larger ones are in
    /// `examples/every_order.rs`.
    #[test]
    fn two_schedulers_while_the_builder_builds() {
        let two = device(2, (2, 0), BuildMode::CONCURRENT);
        in_every_order(&[at_once(CUBE, 2); 2], two);
        // The second one displaces the first one at the gate, as long as that has no core.
        let [low, high] = [Priority::LOW, Priority::HIGH]
            .map(|p| NodeBlockShape { priority: p, ..at_once(CUBE, 2) });
        in_every_order(&[low, high], two);
    }

    /// The builder's own state hides nothing: one by one, the orders are as many.
    #[test]
    fn a_builder_under_way_has_a_state() {
        let predicate = NodePredicate { producer: 0, comparison: Comparison::NOT_EQUAL, value: 0 };
        let predicated = NodeBlockShape { when: Some(predicate), ..spread(CUBE, 1) };
        for second in [predicated, at_once(CUBE, 1)] {
            let mut graph = RandomGraph::clone(&graph(&[at_once(CUBE, 1), second]));
            graph.nodes[1].producers = second.when.iter().map(|when| when.producer).collect();
            let (graph, device) = (Arc::new(graph), device(1, (2, 0), BuildMode::CONCURRENT));
            let paths = explore(&graph, device, 100_000);
            let states = explore_states(&graph, device, 100_000);
            assert_eq!((paths.failure, states.failure), (None, None));
            assert!(paths.is_complete && paths.runs > 1_000, "{}", paths.runs);
            assert_eq!(u128::from(paths.runs), states.orders);
            assert!(states.runs < paths.runs / 4, "{} of {}", states.runs, paths.runs);
        }
    }

    #[test]
    fn one_scheduler_while_the_builder_builds() {
        let one = |cores| device(1, cores, BuildMode::CONCURRENT);
        in_every_order(&[at_once(VECTOR, 2), at_once(VECTOR, 2)], one((0, 2)));
        in_every_order(&[at_once(VECTOR, 2), spread(PAIR, 1)], one((0, 2)));
        in_every_order(&[spread(ALL, 1), at_once(VECTOR, 2)], one((1, 2)));
    }

    #[test]
    fn random_shapes_pass() {
        for troubles in [Troubles::None, Troubles::Some] {
            let report = soak_block_shapes(0..600, troubles);
            assert!(report.failures.is_empty(), "{}", report.failures[0]);
            assert!(troubles == Troubles::None || report.faulted > 100, "{report:?}");
        }
    }
}

#[cfg(pto_mutants)]
mod wrong {
    use super::{CUBE, VECTOR, at_once, device, explored};
    use pto_abi::BuildMode;
    use pto_aicpu_fw::mutant::{Mutant, choose};
    use pto_sim_shim::virtual_time::soak::{Troubles, soak_block_shapes};

    /// Mutant, and a part of what the campaign says.
    const TABLE: &[(Mutant, &str)] = &[
        (Mutant::IgnoresPriority, "Priority"),
        (Mutant::LetsPlainTasksWait, "Priority"),
        (Mutant::IgnoresPredicates, "Predicate"),
        (Mutant::SkipsTheConsumersToo, "STALL"),
        (Mutant::ForgetsAPart, ""),
        (Mutant::RunsABlockTwice, "ExactlyOnce"),
        (Mutant::StartsBeforeAllAreThere, "Together"),
        (Mutant::GathersForTwo, "STALL"),
        // Its cores wait for the others for ever, as in the searches below.
        (Mutant::LeavesTheGateEarly, "STALL"),
        (Mutant::ForgetsWhatItPledged, "STALL"),
    ];

    #[test]
    fn every_mutant_is_found() {
        for &(mutant, words) in TABLE {
            choose(mutant);
            let report = soak_block_shapes(0..600, Troubles::None);
            choose(Mutant::None);
            let found = report.failures.first();
            let text = found.map(|found| found.failure.to_string()).unwrap_or_default();
            println!("{mutant:?}: {text}");
            assert!(found.is_some() && text.contains(words), "{mutant:?}: {text:?}");
        }
        // In the same test: which mutant is chosen, is so for the whole process.
        wrong_gates_fail_in_some_order();
    }

    /// Each fails with two schedulers and two tasks that need more than half of the cores, in a search that passes without it.
    fn wrong_gates_fail_in_some_order() {
        let gates = [
            // A stall, or blocks of one task in the places of another.
            (Mutant::GathersForTwo, ""),
            (Mutant::StartsBeforeAllAreThere, "Together"),
            (Mutant::LeavesTheGateEarly, "STALL"),
            (Mutant::ForgetsWhatItPledged, "STALL"),
        ];
        let machines = [(CUBE, (2, 0)), (CUBE, (3, 0)), (VECTOR, (2, 4))];
        for ((lanes, cores), (mutant, words)) in
            machines.into_iter().flat_map(|machine| gates.map(|gate| (machine, gate)))
        {
            let blocks = if lanes == VECTOR { 3 } else { 2 };
            let shapes = [at_once(lanes, blocks); 2];
            for build_mode in [BuildMode::SEQUENTIAL, BuildMode::CONCURRENT] {
                choose(mutant);
                let found = explored(&shapes, device(2, cores, build_mode));
                choose(Mutant::None);
                let failure = found.failure.map(|(_, failure)| failure.to_string());
                let text = failure.unwrap_or_default();
                println!("{mutant:?}, {build_mode}: {text}");
                assert!(!text.is_empty() && text.contains(words), "{mutant:?} on {cores:?}");
            }
        }
    }
}

//! Tasks that start at once, submitted while two schedulers run, in every order of steps: larger cases than the tests have time for.
//!
//! `cargo run --release -p pto-sim-shim --example every_order [-- CASE]`

use std::sync::Arc;
use std::time::Instant;

use pto_abi::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};
use pto_aicpu_fw::block_shapes::Lanes;
use pto_graph::Priority;
use pto_sim_shim::virtual_time::soak::{
    EdgesFrom, GraphNode, KeepCores, NodeBlockShape, PublishOrder, RandomGraph, Setup,
    explore_states,
};

const CUBE: Lanes = Lanes(1);
const VECTOR: Lanes = Lanes(2);
const ALL: Lanes = Lanes(7);
/// Runs after which a search is given up.
const LIMIT: u64 = 20_000_000;

const fn at_once(lanes: Lanes, blocks: u32) -> NodeBlockShape {
    NodeBlockShape { lanes, blocks, starts_at_once: true, priority: Priority::NORMAL, when: None }
}

const fn spread(lanes: Lanes, blocks: u32) -> NodeBlockShape {
    NodeBlockShape { starts_at_once: false, ..at_once(lanes, blocks) }
}

/// Cube cores, vector cores, and the tasks.
type Case = ((u32, u32), &'static [NodeBlockShape]);

const LOW: NodeBlockShape = NodeBlockShape { priority: Priority::LOW, ..at_once(CUBE, 2) };
const HIGH: NodeBlockShape = NodeBlockShape { priority: Priority::HIGH, ..at_once(CUBE, 3) };
const URGENT: NodeBlockShape = NodeBlockShape { priority: Priority::URGENT, ..spread(CUBE, 2) };

const CASES: &[Case] = &[
    ((2, 0), &[at_once(CUBE, 2), at_once(CUBE, 2)]),
    ((2, 0), &[LOW, at_once(CUBE, 2)]),
    ((2, 0), &[at_once(CUBE, 2), URGENT]),
    ((3, 0), &[at_once(CUBE, 2), at_once(CUBE, 2)]),
    ((3, 0), &[at_once(CUBE, 2), HIGH]),
    ((2, 0), &[at_once(CUBE, 2), at_once(CUBE, 2), at_once(CUBE, 2)]),
    ((2, 4), &[at_once(VECTOR, 3), spread(ALL, 1)]),
    ((2, 4), &[at_once(ALL, 2), at_once(VECTOR, 3)]),
    ((2, 4), &[at_once(ALL, 2), at_once(ALL, 2)]),
];

fn main() {
    let only = std::env::args().nth(1).map(|case| case.parse::<usize>().expect("a number"));
    for (number, ((aic, aiv), shapes)) in CASES.iter().enumerate() {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let node = |shape: &NodeBlockShape| GraphNode {
            kind: CoreKind::AIC,
            producers: Vec::new(),
            block_shape: Some(*shape),
        };
        let nodes = shapes.iter().map(node).collect();
        let graph = Arc::new(RandomGraph {
            nodes,
            seed: 7,
            order: PublishOrder::AtOnce,
            edges: EdgesFrom::Program,
        });
        let device = Setup {
            variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
            aicpu: 3,
            aic: *aic,
            aiv: *aiv,
            build_mode: BuildMode::CONCURRENT,
            fanout: FanoutStrategy::LOCK_FREE,
            window: None,
            keeps_cores: KeepCores::Stay,
            task_budget_ns: 100_000,
            stall_budget_ns: 100_000,
            bring_up_budget_ns: 100_000,
        };
        let start = Instant::now();
        let found = explore_states(&graph, device, LIMIT);
        let of = |s: &NodeBlockShape| (s.lanes.0, s.blocks, s.starts_at_once, s.priority);
        println!(
            "{number}: {aic} AIC, {aiv} AIV, {:?}: {} orders, {} states, {} runs, complete {}, {:?}; {:.1?}",
            shapes.iter().map(of).collect::<Vec<_>>(),
            found.orders,
            found.states,
            found.runs,
            found.is_complete,
            found.failure,
            start.elapsed()
        );
    }
}

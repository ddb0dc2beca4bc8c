//! Campaigns: seeds pass, a seed replays, threads do not matter, and a failure is found and shrunk.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use pto_abi::runtime::region;
use pto_abi::sync::Ordering;
use pto_abi::{BuildMode, CoreKind, FanoutStrategy, Fault, RuntimeVariant};
use pto_aicore_kernels::func;
use pto_aicpu_fw::block_shapes::Lanes;
use pto_graph::Priority;
use pto_sim_shim::virtual_time::soak::{
    EdgesFrom, GraphNode, KeepCores, NodeBlockShape, PublishOrder, RandomGraph, Scenario, Setup,
    Troubles, record, replay, shrink, try_scenario,
};
use pto_sim_shim::virtual_time::{
    Injection, KernelCosts, SoakOptions, Trouble, VirtualOptions, soak,
};

/// Seeds of each campaign, unless more are asked for.
pub(crate) const SEEDS_OF_A_CAMPAIGN: u64 = 3_000;

fn threads(count: usize) -> SoakOptions {
    let threads = NonZeroUsize::new(count).expect("not zero");
    SoakOptions { threads, ..SoakOptions::default() }
}

#[test]
fn seeds_pass_with_and_without_trouble() {
    // `cargo xtask test` asks for many more, and shows what is printed.
    let asked = std::env::var("PTO_SOAK_SEEDS").ok();
    let count = asked.map_or(SEEDS_OF_A_CAMPAIGN, |n| n.parse().expect("a number"));
    for troubles in [Troubles::Some, Troubles::None] {
        let options = SoakOptions { troubles, ..SoakOptions::default() };
        let start = Instant::now();
        let report = soak(0..count, &options, |_| ControlFlow::Continue(()));
        println!(
            "{troubles:?} trouble: {count} seeds, {} runs, {} ended with the fault expected of them, {:.1?}",
            report.runs,
            report.faulted,
            start.elapsed()
        );
        assert!(report.failures.is_empty(), "{}", report.failures[0]);
        assert_eq!(report.seeds, count);
        assert!(troubles == Troubles::None || report.faulted > count / 4);
        assert!(troubles == Troubles::Some || (report.faulted, report.injected) == (0, 0));
    }
}

/// The budgets of a scenario follow from its tasks.
#[test]
fn graphs_of_other_sizes_pass() {
    for (tasks, seeds) in [(1, 300), (3, 300), (150, 60), (400, 60)] {
        for troubles in [Troubles::Some, Troubles::None] {
            let options = SoakOptions { tasks, troubles, ..SoakOptions::default() };
            let report = soak(0..seeds, &options, |_| ControlFlow::Continue(()));
            assert!(report.failures.is_empty(), "{tasks} tasks: {}", report.failures[0]);
        }
    }
}

/// Programs of many tasks, of which schedulers see none for longer than anything else takes.
#[test]
fn a_program_that_publishes_at_its_end_is_no_stall() {
    let seeds = (0..).map(|seed| Scenario::shaped(seed, 400, Troubles::None));
    let late = seeds.filter(|scenario| scenario.graph.order == PublishOrder::AtEnd);
    for scenario in late.take(8) {
        let passed = try_scenario(&scenario);
        assert!(passed.is_ok(), "seed {}: {}", scenario.seed, passed.unwrap_err());
    }
}

#[test]
fn a_campaign_does_not_depend_on_its_threads() {
    let [one, three] =
        [1, 3].map(|count| soak(500..900, &threads(count), |_| ControlFlow::Continue(())));
    assert_eq!(
        (one.runs, one.tasks, one.injected, one.faulted, one.hash),
        (three.runs, three.tasks, three.injected, three.faulted, three.hash)
    );
}

#[test]
fn a_seed_replays() {
    for seed in 0..50 {
        let [first, again] =
            [(); 2].map(|()| replay(seed, &SoakOptions::default()).expect("it passes"));
        assert_eq!(first, again);
    }
}

#[test]
fn progress_is_told() {
    let most_done = std::sync::Mutex::new(0);
    soak(0..200, &threads(2), |done| {
        let mut most = most_done.lock().unwrap();
        *most = done.max(*most);
        ControlFlow::Continue(())
    });
    assert_eq!(*most_done.lock().unwrap(), 200);
}

/// What a campaign that was stopped says is what one of as many seeds says: none of them was left out.
#[test]
fn a_campaign_that_is_stopped_has_tried_the_first_seeds() {
    for count in [1, 3] {
        let stopped = soak(700..2_000, &threads(count), |done| match done >= 128 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        assert!((128..1_000).contains(&stopped.seeds), "{}", stopped.seeds);
        let whole = soak(700..700 + stopped.seeds, &threads(1), |_| ControlFlow::Continue(()));
        assert_eq!((stopped.hash, stopped.runs), (whole.hash, whole.runs));
    }
}

#[test]
fn a_failing_scenario_is_shrunk_to_what_matters() {
    // Some kernels take longer than the task budget: a scenario of many tasks fails because of one.
    let mut scenario = Scenario::draw(1, 40, Troubles::None);
    scenario.options.costs = KernelCosts::Drawn { low: 0, high: 400_000, seed: 1 };
    let failure = try_scenario(&scenario).expect_err("a kernel takes too long");
    assert!(failure.what.contains("STALL_CORE"), "{failure}");
    let (small, small_failure) = shrink(&scenario, failure.clone());
    assert_eq!(small.graph.nodes.len(), 1, "{small_failure}");
    assert_eq!(small_failure.cause, failure.cause);
    assert_eq!(try_scenario(&small), Err(small_failure), "and it replays");
}

/// Six tasks on a cluster. Of them the second vector core runs a part of task 5 and then one of task 4, with nothing else at a look of the watchdog between.
pub(crate) fn parts_behind_parts(seed: u64) -> Scenario {
    let node = |kind, producers: &[u32], lanes: u8| {
        let shape = |lanes| NodeBlockShape {
            lanes: Lanes(lanes),
            blocks: 1,
            starts_at_once: false,
            priority: Priority::NORMAL,
            when: None,
        };
        let block_shape = (lanes > 0).then(|| shape(lanes));
        GraphNode { kind, producers: producers.to_vec(), block_shape }
    };
    let (aic, aiv) = (CoreKind::AIC, CoreKind::AIV);
    let nodes = vec![
        node(aic, &[], 0),
        node(aic, &[0], 0),
        node(aiv, &[1], 2),
        node(aiv, &[1], 0),
        node(aic, &[3], 3),
        node(aiv, &[0], 6),
    ];
    let (order, edges) = (PublishOrder::AtOnce, EdgesFrom::Program);
    let graph = Arc::new(RandomGraph { nodes, seed: 7, order, edges });
    let setup = Setup {
        variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
        aicpu: 2,
        aic: 1,
        aiv: 2,
        build_mode: BuildMode::CONCURRENT,
        fanout: FanoutStrategy::LOCK_FREE,
        window: None,
        keeps_cores: KeepCores::Stay,
        task_budget_ns: 80_000,
        stall_budget_ns: 60_000,
        bring_up_budget_ns: 120_000,
    };
    // Parts have kernels of the campaign's own, which are beyond the table.
    let mut by_func = vec![0; 1 + usize::from(func::DAG_NODE_AIC.0.max(func::DAG_NODE_AIV.0))];
    by_func[usize::from(func::DAG_NODE_AIC.0)] = 60_000;
    by_func[usize::from(func::DAG_NODE_AIV.0)] = 8_000;
    let costs = KernelCosts::Table { by_func: by_func.leak(), fallback: 70_000 };
    let options = VirtualOptions { seed, costs, ..VirtualOptions::default() };
    Scenario { seed: 0, graph, setup, options }
}

#[test]
fn a_core_is_not_blamed_for_the_part_that_it_ran_before() {
    for seed in 0..400 {
        let passed = try_scenario(&parts_behind_parts(seed));
        assert!(passed.is_ok(), "machine seed {seed}: {}", passed.unwrap_err());
    }
}

/// A run that is traced is the same run, and a fault names the task that has the slot now.
#[test]
fn a_scenario_is_recorded_with_the_task_that_its_fault_concerns() {
    let mut scenario = parts_behind_parts(3);
    scenario.options.injection = Some(Injection { trouble: Trouble::Hang, worker: 1, at: 1 });
    let (task, generation, cores) = record(&scenario, 0, |run| {
        assert_eq!((run.fault, run.epitaph.core), (Some(Fault::STALL_CORE), 1));
        let (task, regions) = (run.epitaph.task, run.arena.regions());
        assert!(run.arena.trace_header(regions[region::TRACE]).is_some());
        let tasks = run.arena.tasks(regions[region::TASKS]).expect("it has tasks");
        let generation = tasks[task.slot as usize].generation.load(Ordering::Relaxed);
        (task, generation, run.cores.clone())
    })
    .expect("it fits");
    assert_eq!(task.generation, generation);
    assert_eq!(cores, [CoreKind::AIC, CoreKind::AIV, CoreKind::AIV]);
    let again = record(&scenario, 1, |run| run.fault).expect("it fits");
    assert_eq!(again, None, "the run after it has no trouble");
}

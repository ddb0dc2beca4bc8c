//! Hosting mode `virtual` of `SimulatedMachine`: the same graphs as in every mode, determinism, and what the clock says.

use super::graphs::Patterns;
use crate::common::{Device, LaunchOptions};
use pto_abi::arena::Capacities;
use pto_abi::sync::{AtomicU32, AtomicU64};
use pto_abi::{BuildMode, CoreKind, FanoutStrategy};
use pto_aicore_kernels::func;
use pto_graph::{BuildError, GraphBuilder, TaskSpec};
use pto_sim_shim::virtual_time::{
    EventKind, Invariant, Keep, KernelCosts, LineModel, Profile, VirtualOptions, VirtualReport,
};
use pto_sim_shim::{Hosting, LaunchOutcome};

const SHAPES: [&str; 4] = ["chain", "independent", "fork_join", "wavefront"];

fn capacities(tasks: u32) -> Capacities {
    let edges = 3 * u64::from(tasks);
    Capacities {
        tasks: tasks + 100,
        arg_words: 0,
        edges,
        image_bytes: 0,
        log_entries: 16,
        ..Capacities::default()
    }
}

fn device(options: VirtualOptions, tasks: u32, shape: LaunchOptions) -> Device {
    let shape = LaunchOptions { capacities: capacities(tasks), ..shape };
    Device::new(Hosting::Virtual(options), shape, Patterns)
}

fn report(outcome: LaunchOutcome) -> VirtualReport {
    assert_eq!((outcome.fault, outcome.arena_lost), (None, false));
    let report = *outcome.virtual_report.expect("the mode is virtual");
    assert_eq!(report.violation_count, 0, "{:?}", report.violations);
    assert_eq!(u128::from(report.makespan_ns), outcome.makespan.as_nanos());
    for instance in &report.instances {
        assert!(instance.worked_ns <= instance.returned_ns, "{instance:?}");
    }
    report
}

#[test]
fn every_shape_in_every_mode_runs_and_can_be_repeated() {
    for profile in ["a2a3", "ideal"].map(|name| Profile::by_name(name).unwrap()) {
        for build_mode in [BuildMode::CONCURRENT, BuildMode::SEQUENTIAL] {
            for &fanout in FanoutStrategy::ALL {
                let costs = KernelCosts::Drawn { low: 100, high: 9_000, seed: 3 };
                let options = VirtualOptions { profile, costs, ..VirtualOptions::default() };
                let shape = LaunchOptions { build_mode, fanout, ..LaunchOptions::default() };
                let mut device = device(options, 1_000, shape);
                let mut tasks = 0;
                for name in SHAPES.into_iter().chain(SHAPES) {
                    tasks += report(device.run(name, &[1_000])).tasks;
                    assert_eq!(device.tasks_run(), tasks, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_seed_is_a_trace() {
    let run = |seed, name| {
        let costs = KernelCosts::Constant(1_000);
        let options = VirtualOptions { seed, costs, ..VirtualOptions::default() };
        let mut device = device(options, 2_000, LaunchOptions::default());
        let first = report(device.run(name, &[2_000]));
        let second = report(device.run(name, &[2_000]));
        (first, second)
    };
    for name in SHAPES {
        // Other memory, other thread: the same run.
        let (first, again) = (run(1, name), run(1, name));
        assert_eq!(first, again, "{name}");
        assert_ne!(first.0.trace_hash, first.1.trace_hash, "the second has no bring-up");
        assert_ne!(first.0.trace_hash, run(2, name).0.trace_hash, "{name}");
        assert!(first.0.choices > 1_000);
    }
}

#[test]
fn on_the_ideal_machine_time_is_that_of_the_graph() {
    let costs = KernelCosts::Constant(700);
    let options = VirtualOptions { profile: Profile::ideal(), costs, ..VirtualOptions::default() };
    let shape = LaunchOptions { aic: 2, aiv: 4, aicpu: 2, ..LaunchOptions::default() };
    let mut device = device(options, 1_000, shape);
    let chain = report(device.run("chain", &[100]));
    assert_eq!((chain.graph_ns, chain.critical_path_ns), (70_000, 70_000));
    let independent = report(device.run("independent", &[1_000]));
    assert_eq!((independent.graph_ns, independent.lower_bound_ns()), (175_000, 175_000));
    assert_eq!(independent.overhead(CoreKind::AIV), 0.0);
    assert!(independent.utilisation(CoreKind::AIV) > 0.999);
    let forks = report(device.run("fork_join", &[65]));
    assert_eq!((forks.graph_ns, forks.critical_path_ns), (700 * 18, 700 * 3));
}

#[test]
fn on_the_a2a3_a_chain_pays_every_latency() {
    let costs = KernelCosts::Constant(5_000);
    let options = VirtualOptions { costs, ..VirtualOptions::default() };
    let mut device = device(options, 1_000, LaunchOptions::default());
    let chain = report(device.run("chain", &[1_000]));
    let per_task = chain.graph_ns / 1_000;
    // Doorbell 140, switch 800, finish to visible 600 on average, about 50 until the next poll, and the scheduler's own
    // instructions.
    assert!((5_000 + 1_590..5_000 + 2_300).contains(&per_task), "{per_task}");
    assert_eq!(chain.critical_path_ns, 5_000_000);
    assert_eq!(chain.overhead(CoreKind::AIC), 0.0);
    let waits = [chain.waits.start_ns, chain.waits.report_ns].map(|sum| sum / 1_000);
    assert!(waits[0] == 20 + 140 + 568 && (830..1_000).contains(&waits[1]), "{waits:?}");
    // A task of a chain is staged ahead: from its release to its doorbell it is ready for ten instructions or so, and every
    // core is idle then.
    assert!(
        (0.001..0.01).contains(&chain.overhead(CoreKind::AIV)),
        "{}",
        chain.overhead(CoreKind::AIV)
    );
}

/// Profile `a2a3` charges half a nanosecond for each instruction of the AArch64 image, as far as its parts say.
#[test]
fn the_instructions_are_those_of_the_image() {
    let golden = include_str!("../../../../linker/images/tests/emulated/goldens/instructions.txt");
    let count = |graph: &str, column: usize| -> f64 {
        let lines = golden.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut rows = lines.filter(|row| row.first() == Some(&graph));
        let row = rows.find(|row| row[1] == "lock-free").expect("a row of the table");
        row[column].parse().expect("a number")
    };
    let p = Profile::a2a3();
    let [step, complete, release, dispatch] =
        [p.step_ns, p.complete_ns, p.release_ns, p.dispatch_ns].map(|span| span.low);
    let [add, edge, publish] = [p.add_ns, p.edge_ns, p.publish_ns].map(|span| span.low);
    let [range, range_task, range_ready, range_edge] =
        [p.range_ns, p.range_task_ns, p.range_ready_ns, p.range_edge_ns].map(|span| span.low);
    // Of 64 tasks, of which the outer ones have a neighbour less.
    let of_range = range_task + range / 64;
    let task = complete + dispatch;
    let in_stream = add + publish + p.stream_ns.low;
    // Of eight tasks with two tiles and an edge each.
    let of_tiles = 2 * (p.argument_ns.low + p.range_tensor_ns.low) + edge;
    let tiles_in_range = range_task + range / 8 + of_tiles;
    let (of_chain, link) = (add + publish + p.chain_ns.low, p.chain_link_ns.low);
    let of_template = add + publish + p.from_template_ns.low;
    // A task on a tile, and a chain of one link with three tensors, which have seven edges together: eight chains to a tensor.
    let solve = in_stream + p.argument_ns.low + p.tensor_ns.low;
    let update = |part: u64| in_stream + p.chain_ns.low + link + 3 * part;
    let tile_chains = (solve + update(p.chain_tensor_ns.low) + 7 * p.edge_ns.low) / 2;
    // The same of parts that are one run of bytes, with two edges.
    let dense_chains = (solve + update(p.chain_part_ns.low) + 2 * p.edge_ns.low) / 2;
    let tensors = in_stream + 2 * (p.argument_ns.low + p.tensor_ns.low);
    let words = in_stream + 4 * p.argument_ns.low;
    let words_of_chain = in_stream + p.chain_ns.low + link + 28 * p.chain_word_ns.low;
    for (graph, column, charged_ns) in [
        ("independent", 2, add + publish),
        ("chain", 2, add + publish + edge),
        ("fork_join", 2, add + publish + 2 * edge),
        ("wavefront", 2, add + publish + 2 * edge),
        ("apart", 2, tensors),
        ("derived", 2, tensors + 2 * edge),
        ("tiles", 2, tensors + edge),
        ("tiles_range", 2, tiles_in_range),
        ("tile_chains", 2, tile_chains),
        ("dense_chains", 2, dense_chains),
        ("chain_of_16", 2, of_chain + link + 28 * p.chain_word_ns.low),
        ("chain_of_48", 2, of_chain + link + 60 * p.chain_word_ns.low),
        ("three_links", 2, of_chain + 3 * link + 84 * p.chain_word_ns.low),
        ("stream_4", 2, words),
        ("stream_4_edge", 2, words + edge),
        ("stream_16", 2, words_of_chain),
        ("stream_16_edge", 2, words_of_chain + edge),
        ("template_16", 2, of_template + 28 * p.chain_word_ns.low),
        ("template_48", 2, of_template + 60 * p.chain_word_ns.low),
        ("template_links", 2, of_template + 84 * p.chain_word_ns.low),
        ("template_each", 2, of_template + p.template_ns.low + link + 56 * p.chain_word_ns.low),
        (
            "stream_template",
            2,
            in_stream + edge + p.from_template_ns.low + 28 * p.chain_word_ns.low,
        ),
        ("rows", 2, of_range + range_ready),
        ("rows_one", 2, of_range + range_edge),
        ("rows_three", 2, of_range + 3 * range_edge),
        ("row_listed", 2, of_range + range_edge),
        ("row_of_one", 2, range_task + range_ready + range),
        ("chain", 3, task + release + 2 * step),
        ("wavefront", 3, task + 2 * release),
        // Through the shared queue, whose instructions no key has.
        ("independent", 3, task + step / 8),
    ] {
        let ns = charged_ns as f64 / count(graph, column);
        assert!((0.33..0.6).contains(&ns), "{graph}, column {column}: {ns:.2} ns an instruction");
    }
    let word = (count("words_12", 2) - count("words_4", 2)) / 8.0;
    let ns = p.argument_ns.low as f64 / word;
    assert!((0.33..0.6).contains(&ns), "a word: {ns:.2} ns an instruction");
}

#[test]
fn events_tell_the_life_of_every_task() {
    let options = VirtualOptions { keep: Keep::Events(100_000), ..VirtualOptions::default() };
    let mut device = device(options, 500, LaunchOptions::default());
    let wavefront = report(device.run("wavefront", &[400]));
    let order = [
        EventKind::Published,
        EventKind::Ready,
        EventKind::Dispatched,
        EventKind::Started,
        EventKind::Finished,
        EventKind::Completed,
    ];
    for task in 0..400 {
        let mut times = Vec::new();
        for kind in order {
            let mut found = wavefront.events.iter().filter(|e| e.task == task && e.kind == kind);
            times.push(found.next().expect("each task has each event").time_ns);
            assert!(found.next().is_none(), "{kind:?} of task {task} twice");
        }
        assert!(times.is_sorted(), "task {task}: {times:?}");
    }
    assert_eq!(wavefront.events_dropped, 0);
}

/// Two nodes of a graph without edges, whose values are in one line.
fn neighbours<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let [values, counters, stride] = *graph.orch_args() else { return Err(BuildError::Failed(1)) };
    for node in 0..2 {
        let args = [node * stride, 5, values, counters, 0, 0];
        graph.submit(TaskSpec::new(func::DAG_NODE_AIV, CoreKind::AIV, &args), &[])?;
    }
    Ok(())
}

pto_graph::builder_set! {
    struct Neighbours { "neighbours" => neighbours }
}

#[test]
fn two_cores_that_write_one_line_are_found() {
    let values: Box<[AtomicU64]> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let counters: Box<[AtomicU32]> = (0..64).map(|_| AtomicU32::new(0)).collect();
    let [values, counters] =
        [values.as_ptr().expose_provenance(), counters.as_ptr().expose_provenance()];
    let violations = |stride, lines| {
        let options = VirtualOptions { lines, ..VirtualOptions::default() };
        let shape = LaunchOptions { capacities: capacities(10), ..LaunchOptions::default() };
        let mut device = Device::new(Hosting::Virtual(options), shape, Neighbours);
        let outcome = device.run("neighbours", &[values as u64, counters as u64, stride]);
        assert_eq!(outcome.fault, None, "the host's memory is coherent");
        outcome.virtual_report.unwrap().violations
    };
    let found = violations(1, LineModel::Results);
    assert!(found.iter().all(|violation| violation.rule == Invariant::LineOwnership));
    assert!(!found.is_empty() && found[0].what.contains("another core is writing"), "{found:?}");
    assert_eq!(violations(16, LineModel::Results), [], "in lines of their own");
    assert_eq!(violations(1, LineModel::Handshake), [], "not looked at");
}

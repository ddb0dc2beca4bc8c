//! Whole-system tests: every example in every runtime variant, build mode, fanout strategy and hosting mode,
//! against its reference; and that all of them give the same bits.

use std::num::NonZeroUsize;

use pto_examples::Builders;
use pto_examples::host::{self, Inputs, Params, Prepared, Program, Tensor};
use pto_host::abi::{FanoutStrategy, RuntimeVariant};
use pto_host::graph::BuilderSet;
use pto_host::virtual_time::VirtualOptions;
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, RunReport, Work};

/// Sizes that have every part of the example in them: tails, several blocks, contexts of unequal length.
const SIZES: &[(&str, &[(&str, &str)])] = &[
    ("vector_example", &[]),
    ("matmul", &[("m", "130"), ("n", "70"), ("k", "200")]),
    (
        "paged_attention",
        &[
            ("batch", "5"),
            ("heads", "8"),
            ("kv_heads", "2"),
            ("head_dim", "40"),
            ("max_context", "300"),
        ],
    ),
    ("random_dag", &[("tasks", "3000"), ("max_predecessors", "9")]),
    ("cholesky", &[("n", "100"), ("tile", "16")]),
    (
        "newton_solve",
        &[("batch", "5"), ("n", "40"), ("tile", "16"), ("columns", "3"), ("wave", "3")],
    ),
    (
        "decoder_layer",
        &[
            ("batch", "4"),
            ("hidden", "96"),
            ("intermediate", "200"),
            ("heads", "4"),
            ("kv_heads", "2"),
            ("head_dim", "16"),
            ("block_size", "16"),
            ("max_context", "70"),
            ("tile_n", "32"),
            ("tile_k", "40"),
        ],
    ),
    (
        "moe_layer",
        &[
            ("tokens", "11"),
            ("hidden", "60"),
            ("intermediate", "72"),
            ("experts", "16"),
            ("top_k", "2"),
            ("tile_n", "32"),
        ],
    ),
    ("task_shapes", &[("tasks", "30"), ("layers", "9")]),
];

fn hostings() -> [Hosting; 5] {
    let pool = |n| Hosting::Pool { os_threads: NonZeroUsize::new(n).expect("not zero") };
    [pool(1), pool(2), pool(4), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
}

fn prepare(name: &str, sizes: &[(&str, &str)], device: &Device) -> Prepared {
    let example = host::find(name).expect("the example exists");
    let mut params = Params::defaults(example.params());
    for (param, value) in sizes {
        params.set(param, value).expect("the size is accepted");
    }
    host::resolve(example, &mut params, &Inputs::default()).expect("the sizes agree");
    example.prepare(&params, &Inputs::default(), device).expect("the device has room")
}

fn run(
    device: &mut Device,
    prepared: &Prepared,
    variant: RuntimeVariant,
    options: &RunOptions,
) -> RunReport {
    let result = if variant == RuntimeVariant::HOST_BUILD_GRAPH {
        let image = prepared.build_on_host(device).expect("the host builds the graph");
        device.run(Work::HostGraph(&image), options)
    } else {
        let streams = variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        let given = options.capacities;
        let capacities = if streams { given.streamed_whole() } else { given };
        device.run(prepared.work(variant), &RunOptions { capacities, ..options.clone() })
    };
    result.unwrap_or_else(|error| panic!("{variant} {options:?}: {error}"))
}

/// Every way to run one example on one device; the outputs of the first are those of all.
fn every_way(
    name: &str,
    sizes: &[(&str, &str)],
    hosting: Hosting,
    first: &mut Option<Vec<(&'static str, Tensor)>>,
) {
    let mut device = host::open_sim(DeviceOptions { hosting, ..DeviceOptions::default() })
        .expect("the device opens");
    device.register_library().expect("the library registers");
    let mut prepared = prepare(name, sizes, &device);
    let program = host::find(name).expect("the example exists").program();
    for &variant in program.variants() {
        for &build_mode in program.build_modes() {
            for &fanout in FanoutStrategy::ALL {
                let way = format!("{name}, {hosting}, {variant}, {build_mode}, {fanout}");
                prepared.reset().expect("the outputs are reset");
                let capacities = prepared.capacities();
                let options =
                    RunOptions { build_mode, fanout, capacities, ..RunOptions::default() };
                let report = run(&mut device, &prepared, variant, &options);
                // What a program submits that waits for values is known when it has ended.
                if program == Program::TensorsAndValues {
                    assert!((1..=prepared.size().tasks).contains(&report.tasks), "{way}");
                } else {
                    assert_eq!(report.tasks, prepared.size().tasks, "{way}");
                }
                // A streaming program derives its edges, and has none from tasks that are retired.
                let derives = Builders.stream_names().contains(&name);
                if report.stream.is_none() || !derives {
                    assert_eq!(report.edges, prepared.size().edges, "{way}");
                }
                // A task with a shape may run on several cores, or not at all.
                if program == Program::Graph {
                    assert_eq!(report.tasks_run.iter().sum::<u64>(), report.tasks, "{way}");
                }
                let verdict = prepared.verify().expect("the outputs are read");
                assert!(verdict.passed(), "{way}: {verdict:?}");
                let outputs = prepared.outputs().expect("the outputs are read");
                assert!(
                    *first.get_or_insert_with(|| outputs.clone()) == outputs,
                    "{way}: other bits"
                );
            }
        }
    }
}

fn in_every_way(name: &str) {
    let (_, sizes) = SIZES.iter().find(|(example, _)| *example == name).expect("it has sizes");
    let mut first = None;
    for hosting in hostings() {
        every_way(name, sizes, hosting, &mut first);
    }
}

#[test]
fn vector_example_in_every_way() {
    in_every_way("vector_example");
}

#[test]
fn matmul_in_every_way() {
    in_every_way("matmul");
}

#[test]
fn paged_attention_in_every_way() {
    in_every_way("paged_attention");
}

#[test]
fn random_dag_in_every_way() {
    in_every_way("random_dag");
}

#[test]
fn cholesky_in_every_way() {
    in_every_way("cholesky");
}

#[test]
fn newton_solve_in_every_way() {
    in_every_way("newton_solve");
}

#[test]
fn decoder_layer_in_every_way() {
    in_every_way("decoder_layer");
}

#[test]
fn moe_layer_in_every_way() {
    in_every_way("moe_layer");
}

#[test]
fn task_shapes_in_every_way() {
    in_every_way("task_shapes");
}

#[test]
fn no_example_is_left_out() {
    let names: Vec<_> = host::EXAMPLES.iter().map(|example| example.name()).collect();
    assert_eq!(names, SIZES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

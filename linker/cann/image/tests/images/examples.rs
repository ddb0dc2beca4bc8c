//! The examples of `pto run`, whole, on the default image: with the library's kernels, checked against their references,
//! and the same bits as on a2a3sim.

use std::time::Duration;

use pto_abi::image::Checksum;
use pto_examples::host::{self, Inputs, Params};
use pto_host::{DeviceOptions, Hosting, RunOptions};

use crate::common;

/// Small, because an emulated core is slow: all parts of the examples, little of each.
const RUNS: [&str; 10] = [
    "vector_example:rows=20:cols=70",
    "matmul:m=70:n=33:k=90",
    "paged_attention:batch=3:heads=4:kv_heads=2:head_dim=24:block_size=16:max_context=70",
    "random_dag:tasks=600:max_predecessors=9",
    "cholesky:n=50:tile=16",
    "newton_solve:batch=3:n=20:tile=16:columns=3:wave=2",
    "decoder_layer:batch=2:hidden=40:intermediate=70:heads=4:kv_heads=2:head_dim=8:block_size=8:max_context=30:tile_n=16:tile_k=24",
    "moe_layer:tokens=5:hidden=24:intermediate=20:experts=8:top_k=2:tile_n=16",
    "task_shapes:tasks=24:layers=9:rows=6",
    // Parts that start together wait for each other.
    "task_shapes:tasks=12:layers=4:rows=3:meet=1",
];

/// The checksum of what the simulator makes of it, on this machine. Parts that wait for each other need a thread each.
pub(crate) fn on_simulator(run: &str) -> u64 {
    let options = if run.ends_with("meet=1") {
        DeviceOptions { aic: 4, aiv: 8, hosting: Hosting::Threads, ..DeviceOptions::default() }
    } else {
        DeviceOptions::default()
    };
    let mut device = host::open_sim(options).expect("it opens");
    device.register_library().expect("the library registers");
    let (name, words) = run.split_once(':').expect("a run names parameters");
    let example = host::find(name).expect("the example exists");
    let mut params = Params::defaults(example.params());
    for (param, value) in words.split(':').filter_map(|word| word.split_once('=')) {
        params.set(param, value).expect("the size is accepted");
    }
    host::resolve(example, &mut params, &Inputs::default()).expect("the sizes agree");
    let prepared = example.prepare(&params, &Inputs::default(), &device);
    let mut prepared = prepared.expect("the device has room");
    prepared.reset().expect("the outputs are reset");
    let variant = example.program().variants()[0];
    let options = RunOptions { capacities: prepared.capacities(), ..RunOptions::default() };
    let report = device.run(prepared.work(variant), &options);
    report.unwrap_or_else(|error| panic!("{error}"));
    let outputs = prepared.outputs().expect("the outputs are read");
    let words = outputs.iter().flat_map(|(_, tensor)| tensor.bits());
    Checksum::of(&words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
}

#[test]
fn examples_with_their_kernels_in_every_way() {
    for run in RUNS {
        let image = common::default_image();
        let printed = common::load(&format!("run:{run}"), &image, Duration::from_secs(120));
        let expected = format!("bits {:#018x}", on_simulator(run));
        let ways: Vec<_> = printed.lines().filter(|line| line.starts_with("ok ")).collect();
        // Each variant in its build modes with both fanout strategies.
        let name = run.split(':').next().unwrap_or_default();
        let program = host::find(name).expect("the example exists").program();
        let all = 2 * program.variants().len() * program.build_modes().len();
        assert_eq!(ways.len(), all, "{run}");
        assert!(ways.iter().all(|line| line.ends_with(&expected)), "{expected} in\n{printed}");
    }
}

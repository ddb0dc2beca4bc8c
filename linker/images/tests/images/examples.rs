//! The examples of `pto run`, whole, on the default image: with the library's kernels, checked against their references,
//! and the same bits as on a2a3sim.

use std::time::Duration;

use pto_abi::image::Checksum;
use pto_examples::host;
use pto_host::fw::Machine;
use pto_host::{DeviceOptions, Hosting, RunOptions};

use crate::common;

/// Parts that start together wait for each other.
const MEETING: &str = "task_shapes:tasks=12:layers=4:rows=3:meet=1";

/// Every example, and one in which parts wait for each other. Little of each, because an emulated core is slow.
fn runs() -> Vec<String> {
    let run = |example: &&dyn host::Example| {
        let params = example.sizes().little.iter().map(|(name, value)| format!(":{name}={value}"));
        format!("{}{}", example.name(), params.collect::<String>())
    };
    host::EXAMPLES.iter().map(run).chain([MEETING.to_owned()]).collect()
}

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
    let given: Vec<_> = words.split(':').filter_map(|word| word.split_once('=')).collect();
    let mut prepared = host::prepare(example, &given, &device).expect("the sizes are accepted");
    prepared.reset().expect("the outputs are reset");
    let variant = example.program().variants()[0];
    let options = RunOptions { capacities: prepared.capacities(), ..RunOptions::default() };
    let report = device.run(prepared.work(variant), &options);
    report.unwrap_or_else(|error| panic!("{error}"));
    let outputs = prepared.outputs().expect("the outputs are read");
    let bytes: Vec<u8> = outputs.iter().flat_map(|(_, tensor)| tensor.bytes()).collect();
    Checksum::of(&bytes)
}

/// Whether every line of the loader's output is about success and the simulator's bits; how many ways were run.
fn ways(machine: Machine, run: &str, set: &str) -> usize {
    let image = common::default_image(machine);
    let printed = common::load(machine, &format!("{set}:{run}"), &image, Duration::from_secs(120));
    let expected = format!("bits {:#018x}", on_simulator(run));
    let ways: Vec<_> = printed.lines().filter(|line| line.starts_with("ok ")).collect();
    assert!(ways.iter().all(|line| line.ends_with(&expected)), "{expected} in\n{printed}");
    ways.len()
}

/// The code of this machine, which needs no emulated processor, runs every way; that of a device one way of each example.
#[test]
fn examples_with_their_kernels_in_every_way() {
    let native = *common::MACHINES.last().expect("there is one");
    for run in runs() {
        let name = run.split(':').next().unwrap_or_default();
        let program = host::find(name).expect("the example exists").program();
        assert_eq!(ways(native, &run, "run"), host::RunMode::of(program).count(), "{run}");
        if native != Machine::Aarch64 {
            assert_eq!(ways(Machine::Aarch64, &run, "once"), 1, "{run}");
        }
    }
}

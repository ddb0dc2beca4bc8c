//! What may not change while the structure does: for every example, variant, build mode and fanout strategy the trace of some seeds in virtual
//! time, its makespan, and the bits of the outputs. The lines stand in `tests/system/frozen/EXAMPLE.txt`.
//!
//! After a change that is meant to change them: `PTO_BLESS=1 cargo test --workspace --test system frozen`, and say in the commit why.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use pto_examples::host::{self, Example, RunMode};
use pto_host::abi::symbol::extend;
use pto_host::virtual_time::{Profile, VirtualOptions};
use pto_host::{DeviceOptions, Hosting, RunOptions};

/// A seed on a device.
struct DeviceSetup {
    seed: u64,
    profile: fn() -> &'static Profile,
    /// AICPU instances, cube cores, vector cores.
    size: [u32; 3],
}

const MACHINES: [DeviceSetup; 3] = [
    DeviceSetup { seed: 0, profile: Profile::a2a3, size: [4, 24, 48] },
    DeviceSetup { seed: 1, profile: Profile::a2a3, size: [2, 4, 8] },
    DeviceSetup { seed: 2, profile: Profile::a5, size: [3, 8, 16] },
];

fn in_every_way(example: &dyn Example) {
    let mut found = String::new();
    for DeviceSetup { seed, profile, size: [aicpu, aic, aiv] } in MACHINES {
        let options = VirtualOptions { seed, profile: profile(), ..VirtualOptions::default() };
        let hosting = Hosting::Virtual(options);
        for way in RunMode::of(example.program()) {
            let options = DeviceOptions { hosting, aic, aiv, ..DeviceOptions::default() };
            let mut device = host::open_sim(options).expect("the device opens");
            device.register_library().expect("the library registers");
            let prepared = host::prepare(example, example.sizes().whole, &device);
            let mut prepared = prepared.expect("the sizes are accepted");
            let run = RunOptions { aicpu_instances: aicpu, ..RunOptions::default() };
            let report = way.run(&mut device, &mut prepared, &run).expect("it runs");
            let report = report.virtual_report.expect("the run was in virtual time");
            let outputs = prepared.outputs().expect("the outputs are read");
            let bits = outputs.iter().fold(0, |bits, (_, tensor)| extend(bits, &tensor.bytes()));
            let (hash, ns) = (report.trace_hash, report.makespan_ns);
            writeln!(found, "{hash:016x} {ns:>9} ns {bits:016x}  seed {seed}, {way}")
                .expect("a string takes text");
        }
    }
    compare(example.name(), &found);
}

fn compare(example: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/frozen");
    let path = folder.join(format!("{example}.txt"));
    if env::var_os("PTO_BLESS").is_some() {
        fs::create_dir_all(&folder).expect("the sources can be written");
        fs::write(&path, found).expect("the sources can be written");
    }
    let frozen = fs::read_to_string(&path).expect("every example has its lines among the sources");
    let pairs = frozen.lines().zip(found.lines()).filter(|(frozen, found)| frozen != found);
    let changed: Vec<_> = pairs.map(|(frozen, found)| format!("- {frozen}\n+ {found}")).collect();
    assert!(frozen == found, "{example} runs differently:\n{}", changed.join("\n"));
}

mod examples {
    pto_examples::examples! { [crate::ways::test_each] }
}

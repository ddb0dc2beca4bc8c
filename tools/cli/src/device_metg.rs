//! `pto bench --device-metg`: the graphs that it measures, which are examples and patterns of Task Bench.

use std::num::NonZeroU32;
use std::sync::Arc;

use pto_abi::RuntimeVariant;
use pto_bench::csr::Csr;
use pto_bench::device_metg::{DeviceMetg, On, TASKS, WIDTH};
use pto_bench::family;
use pto_bench::metg::PATTERNS;
use pto_bench::runner::pto::Die;
use pto_check::{Cores, demanded_path};
use pto_examples::host::Prepared;
use pto_host::virtual_time::{Compute, VirtualOptions, VirtualReport};
use pto_host::{DeviceOptions, Hosting, RunOptions, StreamCapacities};

use crate::args::profile;
use crate::errors::Failure;
use crate::program::ProgramRequest;
use crate::request::{request, variant_of};
use crate::run::streamed_in;
use crate::target::{Heap, Target};
use crate::virtual_report::virtual_report;

/// The examples that are measured. The predicates of `moe_layer` read what its kernels compute.
const EXAMPLES: [(&str, Compute); 5] = [
    ("paged_attention", Compute::Off),
    ("decoder_layer", Compute::Off),
    ("moe_layer", Compute::Run),
    ("matmul", Compute::Off),
    ("cholesky", Compute::Off),
];
/// Memory of the simulated device.
const GM_BYTES: u64 = 4 << 30;

/// The graphs with these names, on profile a2a3; without names, all. Of a pattern, that number of `instances` which gives the shortest kernel.
pub(crate) fn measure(
    names: &[String],
    die: Die,
    instances: &[u32],
    say: &mut dyn FnMut(&str),
) -> Result<Vec<DeviceMetg>, Failure> {
    known(names)?;
    let profile = profile("a2a3")?;
    let is_wanted = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let mut all = Vec::new();
    for (name, compute) in EXAMPLES.into_iter().filter(|(name, _)| is_wanted(name)) {
        say(&format!("device METG of {name}"));
        let (on, path) = (On { profile, compute }, path(name, die)?);
        all.push(DeviceMetg::search(name, on, path, &mut |options| example(name, die, options))?);
    }
    for name in PATTERNS.into_iter().filter(is_wanted) {
        say(&format!("device METG of {name}"));
        let on = On { profile, compute: Compute::Off };
        let graph = Arc::new(pattern(name)?);
        let mut best: Option<DeviceMetg> = None;
        for &aicpu in instances {
            let found = DeviceMetg::of_pattern(name, &graph, on, Die { aicpu, ..die })?;
            if best.as_ref().is_none_or(|best| found.is_shorter_than(best)) {
                best = Some(found);
            }
        }
        all.extend(best);
    }
    Ok(all)
}

/// Every name is one of a graph that is measured.
fn known(names: &[String]) -> Result<(), Failure> {
    let all: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).chain(PATTERNS).collect();
    match names.iter().find(|name| !all.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(format!(
            "`--device-metg` measures no graph `{name}`; the graphs are {}",
            all.join(", ")
        ))),
    }
}

fn pattern(name: &str) -> Result<Csr, Failure> {
    let graph = NonZeroU32::new(WIDTH).and_then(|width| family::pattern(name, width, TASKS));
    graph.ok_or_else(|| {
        let what = format!("{name} has no rows of {WIDTH}; this is an error of `pto`: report it");
        Failure::internal(what)
    })
}

/// How many kernels of an example have to run one after another, with its default parameters.
fn path(name: &str, die: Die) -> Result<u64, Failure> {
    let cores = Cores { aic: die.aic, aiv: die.aiv };
    let source = ProgramRequest { target: name, params: &[], inputs: &[], runtime: None, cores };
    let (program, _) = source.program()?;
    demanded_path(&program).ok_or_else(|| {
        Failure::internal(format!(
            "the tasks of {name} wait for each other in a circle; this is an error of `pto`: report it"
        ))
    })
}

/// Runs an example with its default parameters.
fn example(name: &str, die: Die, options: VirtualOptions) -> Result<Box<VirtualReport>, Failure> {
    let target = Target::find(name, None, Heap::Shared)?;
    let hosting = Hosting::Virtual(options);
    let device = DeviceOptions { aic: die.aic, aiv: die.aiv, gm_bytes: GM_BYTES, hosting };
    let (params, inputs) = request(target.example, &[], &[])?;
    let variant = variant_of(target.example, None)?;
    let run = |prepared: &Prepared| {
        let whole = prepared.capacities();
        let capacities = match variant {
            RuntimeVariant::TENSORMAP_AND_RINGBUFFER => {
                streamed_in(whole, StreamCapacities::STANDARD.window)
            }
            _ => whole,
        };
        RunOptions { aicpu_instances: die.aicpu, capacities, ..RunOptions::default() }
    };
    virtual_report(&target, (&params, &inputs), (device, variant), run)
}

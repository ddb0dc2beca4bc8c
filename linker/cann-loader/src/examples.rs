//! An example of `pto run`, whole: prepared and checked as on the simulator, with the library's kernels on the cores,
//! scheduled by the image.

use pto_abi::image::Checksum;
use pto_abi::launch_record::Architecture;
use pto_abi::{FanoutStrategy, RuntimeVariant};
use pto_examples::Builders;
use pto_examples::host::{self, Inputs, Params, Prepared, Program};
use pto_host::{DeviceOptions, Hosting};

use crate::Scenario;
use crate::device::{Device, Options, Work};
use crate::image::Image;
use crate::memory::Gm;
use crate::scenarios::{expect_success, expect_way_down};

const GM_BYTES: u64 = 256 << 20;
/// For the arena and the launch record.
const BLOCK_BYTES: u64 = 64 << 20;

/// Every variant, build mode and fanout strategy of the example that `run:NAME:PARAM=VALUE:..` names.
pub(crate) fn scenarios(run: &str) -> Vec<Scenario> {
    let mut words = run.split(':').skip(1).map(str::to_owned);
    let name = words.next().unwrap_or_default();
    let params: Vec<String> = words.collect();
    let mut scenarios: Vec<Scenario> = Vec::new();
    // An example that is not there has a scenario that says so.
    let program = host::find(&name).map_or(Program::Graph, |example| example.program());
    for &variant in program.variants() {
        for &build_mode in program.build_modes() {
            for &fanout in FanoutStrategy::ALL {
                let (example, params) = (name.clone(), params.clone());
                let options = Options { fanout, build_mode, ..Options::default() };
                let run = move |image: &Image| run_one(image, &example, &params, variant, &options);
                let way = format!("{name}, {variant}, {build_mode}, {fanout}");
                scenarios.push((way, Box::new(run)));
            }
        }
    }
    scenarios
}

fn prepare(name: &str, params: &[String], device: &pto_host::Device) -> Result<Prepared, String> {
    let text = |error: host::Error| error.to_string();
    let example = host::find(name).map_err(text)?;
    let mut chosen = Params::defaults(example.params());
    for param in params {
        let (param, value) = param.split_once('=').ok_or("a parameter is NAME=VALUE")?;
        chosen.set(param, value).map_err(text)?;
    }
    host::resolve(example, &mut chosen, &Inputs::default()).map_err(text)?;
    example.prepare(&chosen, &Inputs::default(), device).map_err(text)
}

fn run_one(
    image: &Image,
    name: &str,
    params: &[String],
    variant: RuntimeVariant,
    options: &Options,
) -> Result<String, String> {
    // Its memory, and what prepares and checks; it runs nothing.
    let hosting = Hosting::Pool { os_threads: std::num::NonZeroUsize::MIN };
    let sim_options = DeviceOptions { gm_bytes: GM_BYTES, hosting, ..DeviceOptions::default() };
    let mut sim = pto_host::Device::open_sim(sim_options, Builders).map_err(|e| e.to_string())?;
    sim.register_library().map_err(|error| error.to_string())?;
    let mut prepared = prepare(name, params, &sim)?;
    prepared.reset().map_err(|error| error.to_string())?;
    let work = if variant == RuntimeVariant::HOST_BUILD_GRAPH {
        let graph = prepared.build_on_host(&sim).map_err(|error| error.to_string())?;
        Work::Graph(graph.to_bytes())
    } else {
        let (builder, orch_args) = (prepared.builder(), prepared.orch_args().to_vec());
        match variant {
            RuntimeVariant::TENSORMAP_AND_RINGBUFFER => Work::Stream(builder, orch_args),
            _ => Work::Builder(builder, orch_args),
        }
    };
    let block = sim.alloc(BLOCK_BYTES).map_err(|error| error.to_string())?;
    let gm = Gm::of(&sim, block, BLOCK_BYTES);
    let mut device = Device::on(gm, Architecture::A2A3);
    expect_success(&device.run(image, &work, options))?;
    expect_way_down(&device)?;
    let verdict = prepared.verify().map_err(|error| error.to_string())?;
    if !verdict.passed() {
        return Err(format!("{verdict:?}"));
    }
    let outputs = prepared.outputs().map_err(|error| error.to_string())?;
    let bits: Vec<u8> =
        outputs.iter().flat_map(|(_, tensor)| tensor.bits()).flat_map(u32::to_le_bytes).collect();
    Ok(format!("{} tasks, bits {:#018x}", prepared.size().tasks, Checksum::of(&bits)))
}

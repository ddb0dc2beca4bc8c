//! An example of `pto run`, whole: prepared and checked as on the simulator, with the library's kernels on the cores,
//! scheduled by the image.

use pto_abi::image::Checksum;
use pto_abi::launch_words::Architecture;
use pto_abi::{FanoutStrategy, RuntimeVariant};
use pto_examples::host::{self, Prepared, Program, RunMode};
use pto_host::{DeviceOptions, Hosting};

use crate::device::{Device, Options, Work};
use crate::image::Image;
use crate::memory::Gm;
use crate::scenario::{Scenario, expect_success, expect_way_down};

const GM_BYTES: u64 = 256 << 20;
/// For the arena and the launch words.
const BLOCK_BYTES: u64 = 64 << 20;

/// Every variant, build mode and fanout strategy of the example that `run:NAME:PARAM=VALUE:..` names; of `once:..` the first.
pub(crate) fn scenarios(run: &str) -> Vec<Scenario> {
    let mut words = run.split(':').skip(1).map(str::to_owned);
    let name = words.next().unwrap_or_default();
    let params: Vec<String> = words.collect();
    let mut scenarios: Vec<Scenario> = Vec::new();
    // An example that is not there has a scenario that says so.
    let program = host::find(&name).map_or(Program::Graph, |example| example.program());
    let count = if run.starts_with("once:") { 1 } else { usize::MAX };
    for RunMode { variant, build_mode, fanout } in RunMode::of(program).take(count) {
        let options = Options { fanout, build_mode, ..Options::default() };
        let way = format!("{name}, {variant}, {build_mode}, {fanout}");
        let (example, params) = (name.clone(), params.clone());
        let architecture = Architecture::A2A3;
        let run = Run { example, params, builder: None, variant, options, architecture };
        scenarios.push((way, Box::new(move |image: &Image| run.on(image))));
    }
    scenarios
}

/// The example `task_shapes`, whose program the image has in C++; parts that start together wait for each other.
pub(crate) fn shapes_in_cpp() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let params = ["tasks=12", "layers=4", "rows=3", "meet=1"].map(str::to_owned);
    for (name, architecture) in [("a2a3", Architecture::A2A3), ("a5", Architecture::A5)] {
        for &fanout in FanoutStrategy::ALL {
            let run = Run {
                example: "task_shapes".to_owned(),
                params: params.to_vec(),
                builder: Some("shapes_in_cpp"),
                variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER,
                options: Options { fanout, ..Options::default() },
                architecture,
            };
            let way = format!("patterns, in C++, {fanout}, {name}");
            scenarios.push((way, Box::new(move |image: &Image| run.on(image))));
        }
    }
    scenarios
}

fn prepare(name: &str, params: &[String], device: &pto_host::Device) -> Result<Prepared, String> {
    let text = |error: host::Error| error.to_string();
    let given = params.iter().map(|param| param.split_once('='));
    let given: Vec<_> = given.collect::<Option<_>>().ok_or("a parameter is NAME=VALUE")?;
    host::prepare(host::find(name).map_err(text)?, &given, device).map_err(text)
}

/// An example, and how it is run.
struct Run {
    example: String,
    params: Vec<String>,
    /// Another program for it than its own.
    builder: Option<&'static str>,
    variant: RuntimeVariant,
    options: Options,
    architecture: Architecture,
}

impl Run {
    fn on(&self, image: &Image) -> Result<String, String> {
        // Its memory, and what prepares and checks; it runs nothing.
        let hosting = Hosting::Pool { os_threads: std::num::NonZeroUsize::MIN };
        let sim_options = DeviceOptions { gm_bytes: GM_BYTES, hosting, ..DeviceOptions::default() };
        let mut sim = pto_examples::host::open_sim(sim_options).map_err(|e| e.to_string())?;
        sim.register_library().map_err(|error| error.to_string())?;
        let mut prepared = prepare(&self.example, &self.params, &sim)?;
        prepared.reset().map_err(|error| error.to_string())?;
        let work = if self.variant == RuntimeVariant::HOST_BUILD_GRAPH {
            let graph = prepared.build_on_host(&sim).map_err(|error| error.to_string())?;
            Work::Graph(graph.to_bytes())
        } else {
            let (builder, orch_args) =
                (self.builder.unwrap_or(prepared.builder()), prepared.orch_args().to_vec());
            match self.variant {
                RuntimeVariant::TENSORMAP_AND_RINGBUFFER => Work::Stream(builder, orch_args),
                _ => Work::Builder(builder, orch_args),
            }
        };
        let block = sim.alloc(BLOCK_BYTES).map_err(|error| error.to_string())?;
        let gm = Gm::of(&sim, block, BLOCK_BYTES);
        let mut device = Device::on(gm, self.architecture);
        expect_success(&device.run(image, &work, &self.options))?;
        expect_way_down(&device)?;
        let verdict = prepared.verify().map_err(|error| error.to_string())?;
        if !verdict.passed() {
            return Err(format!("{verdict:?}"));
        }
        let outputs = prepared.outputs().map_err(|error| error.to_string())?;
        let bits: Vec<u8> = outputs.iter().flat_map(|(_, tensor)| tensor.bytes()).collect();
        Ok(format!("{} tasks, bits {:#018x}", prepared.size().tasks, Checksum::of(&bits)))
    }
}

//! Every example once in each way that has more than one thread: modes `threads` and `pool`, every runtime variant,
//! build mode and fanout strategy, at small sizes.
//!
//! `cargo xtask race` builds this program with ThreadSanitizer, which stops it at the first data race. It is small on
//! purpose: the sanitizer's build must not cost the suite more than the run.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use pto_examples::host::{self, Example, Inputs, Params, Prepared};
use pto_host::abi::{BuildMode, FanoutStrategy, RuntimeVariant};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, Work};

type Failure = Box<dyn std::error::Error>;

/// Small sizes that still have tasks of every kind, several cores at work, and retired slots that are used again.
const SIZES: &[(&str, &[(&str, &str)])] = &[
    ("vector_example", &[]),
    ("matmul", &[("m", "40"), ("n", "40"), ("k", "40")]),
    (
        "paged_attention",
        &[
            ("batch", "2"),
            ("heads", "4"),
            ("kv_heads", "2"),
            ("head_dim", "16"),
            ("max_context", "70"),
        ],
    ),
    ("random_dag", &[("tasks", "200")]),
    ("cholesky", &[("n", "48"), ("tile", "16")]),
    (
        "newton_solve",
        &[("batch", "2"), ("n", "24"), ("tile", "16"), ("columns", "3"), ("wave", "2")],
    ),
    (
        "decoder_layer",
        &[
            ("batch", "2"),
            ("hidden", "32"),
            ("intermediate", "48"),
            ("heads", "2"),
            ("kv_heads", "2"),
            ("head_dim", "16"),
            ("block_size", "16"),
            ("max_context", "33"),
            ("tile_n", "32"),
            ("tile_k", "32"),
        ],
    ),
    (
        "moe_layer",
        &[
            ("tokens", "5"),
            ("hidden", "32"),
            ("intermediate", "40"),
            ("experts", "4"),
            ("top_k", "2"),
            ("tile_n", "32"),
        ],
    ),
    ("task_shapes", &[("tasks", "40"), ("layers", "12")]),
];

/// How often each way is run. Threads meet where the machine happens to put them: in one round the sanitizer found a race
/// that had been put there on purpose in 3 of 15 tries.
const ROUNDS: usize = 4;

/// One way to run an example.
struct Way {
    hosting: Hosting,
    variant: RuntimeVariant,
    build_mode: BuildMode,
    fanout: FanoutStrategy,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { hosting, variant, build_mode, fanout } = self;
        write!(f, "{hosting}, {variant}, {build_mode}, {fanout}")
    }
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |name: &str| asked.is_empty() || asked.iter().any(|word| word == name);
    let mut runs = 0;
    for example in host::EXAMPLES.iter().filter(|example| chosen(example.name())) {
        match every_way(*example) {
            Ok(ways) => runs += ways,
            Err(why) => {
                eprintln!("{}: {why}", example.name());
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{runs} whole runs passed");
    if runs == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs `example` in every way, and says how many there were.
fn every_way(example: &dyn Example) -> Result<usize, Failure> {
    let two = NonZeroUsize::new(2).ok_or("two is not zero")?;
    let mut runs = 0;
    for hosting in [Hosting::Pool { os_threads: two }, Hosting::Threads] {
        let mut device = host::open_sim(DeviceOptions { hosting, ..DeviceOptions::default() })?;
        device.register_library()?;
        let mut prepared = prepare(example, &device)?;
        for way in ways(example, hosting) {
            for _ in 0..ROUNDS {
                run(&mut device, &mut prepared, &way).map_err(|why| format!("{way}: {why}"))?;
                runs += 1;
            }
        }
    }
    println!("{}: {runs} runs", example.name());
    Ok(runs)
}

fn ways(example: &dyn Example, hosting: Hosting) -> Vec<Way> {
    let program = example.program();
    let mut ways = Vec::new();
    for &variant in program.variants() {
        for &build_mode in program.build_modes() {
            for &fanout in FanoutStrategy::ALL {
                ways.push(Way { hosting, variant, build_mode, fanout });
            }
        }
    }
    ways
}

fn prepare(example: &dyn Example, device: &Device) -> Result<Prepared, Failure> {
    let name = example.name();
    let (_, sizes) = SIZES.iter().find(|(of, _)| *of == name).ok_or("it has no size here")?;
    let mut params = Params::defaults(example.params());
    for (param, value) in *sizes {
        params.set(param, value)?;
    }
    host::resolve(example, &mut params, &Inputs::default())?;
    Ok(example.prepare(&params, &Inputs::default(), device)?)
}

fn run(device: &mut Device, prepared: &mut Prepared, way: &Way) -> Result<(), Failure> {
    prepared.reset()?;
    let given = prepared.capacities();
    let streams = way.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
    let capacities = if streams { given.streamed_whole() } else { given };
    let Way { build_mode, fanout, .. } = *way;
    let options = RunOptions { build_mode, fanout, capacities, ..RunOptions::default() };
    if way.variant == RuntimeVariant::HOST_BUILD_GRAPH {
        let image = prepared.build_on_host(device)?;
        device.run(Work::HostGraph(&image), &options)?;
    } else {
        device.run(prepared.work(way.variant), &options)?;
    }
    let verdict = prepared.verify()?;
    if verdict.passed() { Ok(()) } else { Err(format!("{verdict:?}").into()) }
}

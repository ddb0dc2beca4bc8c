//! Whole graphs on the default image, and the builders of the example image.

use pto_abi::kinds::RunFlags;
use pto_abi::launch_words::Architecture;
use pto_abi::{BuildMode, FanoutStrategy};
use pto_aicore_kernels::dag_value;

use crate::core::Conduct;
use crate::device::{Device, Options, Work};
use crate::graphs::{Tables, chain, patterns};
use crate::image::Image;
use crate::scenario::{Scenario, expect_fault, expect_success, expect_way_down};

const FAST_PATH_OPEN: u32 = 0xE;

/// Who builds the graph.
#[derive(Clone, Copy)]
enum Variant {
    Host,
    Aicpu(BuildMode),
}

/// Every shape x who builds x fanout strategy on a2a3, one each on a5, and the life of a device.
pub(crate) fn graphs() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let variants = [
        ("host", Variant::Host),
        ("aicpu sequential", Variant::Aicpu(BuildMode::SEQUENTIAL)),
        ("aicpu concurrent", Variant::Aicpu(BuildMode::CONCURRENT)),
    ];
    for shape in 0..patterns().len() {
        for (name, variant) in variants {
            for fanout in FanoutStrategy::ALL {
                let name = format!("{}, {name}, {fanout}, a2a3", patterns()[shape].name);
                let run =
                    move |image: &Image| graph(image, shape, variant, *fanout, Architecture::A2A3);
                scenarios.push((name, Box::new(run)));
            }
        }
        let run = move |image: &Image| {
            graph(image, shape, Variant::Host, FanoutStrategy::LOCK_FREE, Architecture::A5)
        };
        scenarios.push((format!("{}, host, lock-free, a5", patterns()[shape].name), Box::new(run)));
    }
    scenarios.push(("cores stay in service".to_owned(), Box::new(in_service)));
    scenarios.push(("a surplus instance has no part".to_owned(), Box::new(surplus)));
    scenarios.push(("log rings".to_owned(), Box::new(logs)));
    scenarios.push(("two devices at once".to_owned(), Box::new(two_devices)));
    scenarios
}

fn graph(
    image: &Image,
    shape: usize,
    variant: Variant,
    fanout: FanoutStrategy,
    architecture: Architecture,
) -> Result<String, String> {
    let mut device = Device::new(architecture);
    let tables = Tables::upload(&device.gm, &patterns()[shape]);
    let mut options = Options { fanout, ..Options::default() };
    let work = match variant {
        Variant::Host => tables.image(&device.gm),
        Variant::Aicpu(build_mode) => {
            options.build_mode = build_mode;
            tables.builder()
        }
    };
    let outcome = device.run(image, &work, &options);
    expect_success(&outcome)?;
    let tasks = tables.check(&device.gm, 1)?;
    expect_way_down(&device)?;
    let each = outcome.makespan.as_secs_f64() * 1e6 / tasks as f64;
    Ok(format!(
        "{tasks} tasks, {:.1} ms, {each:.1} us a task",
        outcome.makespan.as_secs_f64() * 1e3
    ))
}

/// Three runs of one bring-up: ids go on from COND, fast paths stay open; then a run that ends it.
fn in_service(image: &Image) -> Result<String, String> {
    let mut device = Device::new(Architecture::A2A3);
    let tables = Tables::upload(&device.gm, &chain(100));
    device.start_cores(|_| Conduct::Good);
    let keep = Options { flags: RunFlags::KEEP_CORES, ..Options::default() };
    for run in 1..=3 {
        device.prepare(&tables.builder(), &keep, |_| ());
        expect_success(&device.launch(image, &keep))?;
        tables.check(&device.gm, run)?;
        if device.fast_paths().iter().any(|path| *path != FAST_PATH_OPEN) {
            return Err("a fast path was closed under a core in service".to_owned());
        }
    }
    let last = Options::default();
    device.prepare(&tables.builder(), &last, |_| ());
    expect_success(&device.launch(image, &last))?;
    tables.check(&device.gm, 4)?;
    expect_way_down(&device)?;
    Ok("4 runs, 1 bring-up".to_owned())
}

fn surplus(image: &Image) -> Result<String, String> {
    let mut device = Device::new(Architecture::A2A3);
    let tables = Tables::upload(&device.gm, &chain(50));
    let options = Options { surplus: 2, ..Options::default() };
    let outcome = device.run(image, &tables.builder(), &options);
    expect_success(&outcome)?;
    tables.check(&device.gm, 1)?;
    Ok(format!("{} instances entered, 4 took part", outcome.codes.len()))
}

fn logs(image: &Image) -> Result<String, String> {
    let mut device = Device::new(Architecture::A2A3);
    let tables = Tables::upload(&device.gm, &chain(50));
    expect_success(&device.run(image, &tables.builder(), &Options::default()))?;
    let text = device.log(0);
    if text.contains("instance 0: graph of 50 tasks is built") {
        return Ok(format!("{:?}", text.trim_end()));
    }
    Err(format!("instance 0 logged {text:?}"))
}

/// One image in one process serves two devices: each keeps its graph and its log.
fn two_devices(image: &Image) -> Result<String, String> {
    let device = |nodes: u32| {
        let mut device = Device::new(Architecture::A2A3);
        let tables = Tables::upload(&device.gm, &chain(nodes));
        expect_success(&device.run(image, &tables.builder(), &Options::default()))?;
        tables.check(&device.gm, 1)?;
        let (text, expected) = (device.log(0), format!("graph of {nodes} tasks is built"));
        if text.contains(&expected) {
            Ok(())
        } else {
            Err(format!("{expected:?} is not in {text:?}"))
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| device(70));
        device(90).and(other.join().expect("it does not panic"))
    })?;
    Ok("70 and 90 tasks".to_owned())
}

/// The builders of `linker/example-firmware`.
pub(crate) fn example() -> Vec<Scenario> {
    let increments_by = |builder| move |image: &Image| increments(image, builder);
    let mut scenarios: Vec<Scenario> = vec![
        ("increments, in Rust".to_owned(), Box::new(increments_by("increments"))),
        ("increments, in C++".to_owned(), Box::new(increments_by("increments_in_cpp"))),
    ];
    for width in [1, 40, 700] {
        let run = move |image: &Image| c_fork_join(image, width);
        scenarios.push((format!("fork-join {width} wide, in C"), Box::new(run)));
    }
    scenarios.push(("words that the builder in C refuses".to_owned(), Box::new(c_refuses)));
    scenarios
}

fn increments(image: &Image, builder: &'static str) -> Result<String, String> {
    let mut device = Device::new(Architecture::A2A3);
    let vector = device.gm.upload(&[0.5_f32; 1000]);
    let work = Work::Builder(builder, vec![vector.0, 1000, 20]);
    expect_success(&device.run(image, &work, &Options::default()))?;
    let found: Vec<f32> = device.gm.download(vector, 1000);
    match found.iter().find(|value| value.to_bits() != 20.5_f32.to_bits()) {
        None => Ok("20 tasks, 1000 values".to_owned()),
        Some(value) => Err(format!("an element is {value}, not 20.5")),
    }
}

fn c_fork_join(image: &Image, width: u32) -> Result<String, String> {
    const SEED: u64 = 99;
    let mut device = Device::new(Architecture::A2A3);
    let nodes = width as usize + 2;
    let values = device.gm.upload(&vec![0_u64; nodes]);
    let counters = device.gm.upload(&vec![0_u32; nodes]);
    let producers: Vec<u32> = vec![0; width as usize].into_iter().chain(1..=width).collect();
    let producers = device.gm.upload(&producers);
    let words = vec![values.0, counters.0, producers.0, width.into(), SEED];
    let work = Work::Builder("build_graph_aicpu", words);
    let outcome = device.run(image, &work, &Options::default());
    expect_success(&outcome)?;
    let fork = dag_value(SEED, 0, std::iter::empty());
    let middle = (1..=u64::from(width)).map(|node| dag_value(SEED, node, std::iter::once(fork)));
    let join = dag_value(SEED, u64::from(width) + 1, middle);
    let found: Vec<u64> = device.gm.download(values, nodes);
    let ran: Vec<u32> = device.gm.download(counters, nodes);
    if found[nodes - 1] == join && ran.iter().all(|count| *count == 1) {
        return Ok(format!("{nodes} tasks"));
    }
    Err(format!("the join holds {:#x}, not {join:#x}", found[nodes - 1]))
}

fn c_refuses(image: &Image) -> Result<String, String> {
    let mut device = Device::new(Architecture::A2A3);
    let work = Work::Builder("build_graph_aicpu", vec![1]);
    let outcome = device.run(image, &work, &Options::default());
    expect_fault(&outcome, pto_abi::Fault::BUILD_FAILED)?;
    if outcome.epitaph.detail[0] != 7 {
        return Err(format!("the epitaph holds {:?}, not the builder's 7", outcome.epitaph.detail));
    }
    Ok("BUILD_FAILED 7".to_owned())
}

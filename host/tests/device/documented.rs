//! The program of `docs/rust.md`, as it stands there.

use pto_host::abi::CoreKind;
use pto_host::graph::{GraphBuilder, NoBuilders, TaskSpec};
use pto_host::{Device, DeviceOptions, HostGraph, RunOptions, Work, func};

#[test]
fn the_documented_program_runs() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::open_sim(DeviceOptions::default(), NoBuilders)?;
    device.register_library()?;
    let (a, b) = (device.upload(&[2.0_f32; 64])?, device.upload(&[3.0_f32; 64])?);
    let sum = device.zeroed::<f32>(64)?;

    let mut graph = HostGraph::new(&device, &[]);
    let args = [a.address().0, b.address().0, sum.address().0, 64];
    graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &args), &[])?;

    let report = device.run(Work::HostGraph(&graph.finish()?), &RunOptions::default())?;
    assert_eq!(report.tasks, 1);
    assert_eq!(sum.read()?, [5.0; 64]);
    Ok(())
}

#[test]
fn the_documentation_shows_this_file() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let here = lines(include_str!("documented.rs"));
    let page = include_str!("../../../docs/rust.md");
    let example = page.split("```rust\n").nth(1).expect("the page has a program");
    let program = example.split("```").next().expect("the program ends");
    let (imports, body) = program.split_once("\n\n").expect("imports stand apart");
    for part in [imports, body] {
        assert!(here.contains(lines(part).trim()), "not in this file:\n{part}");
    }
}

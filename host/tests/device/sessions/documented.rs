//! The program of `docs/how-to/sessions.md`.

use pto_host::graph::NoBuilders;
use pto_host::session::HostBuffer;
use pto_host::{Device, DeviceOptions, SessionOptions, func};

#[test]
fn the_documented_program_runs() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::open_sim(DeviceOptions::default(), NoBuilders)?;
    device.register_library()?;
    let session = device.session(SessionOptions::default())?;
    let (input, output) = (session.zeroed::<f32>(64)?, session.zeroed::<f32>(64)?);
    let (copies, kernels) = (session.stream()?, session.stream()?);
    let (arrived, computed) = (session.event()?, session.event()?);
    let result = HostBuffer::new(256)?;

    copies.copy_to_device(input.address(), 2.0_f32.to_le_bytes().repeat(64))?;
    copies.record(&arrived)?;
    kernels.wait(&arrived)?;
    let (from, to) = (input.address().0, output.address().0);
    kernels.launch(func::ADD, &[from, from, to, 64])?;
    kernels.record(&computed)?;
    copies.wait(&computed)?;
    copies.copy_from_device(output.address(), &result)?;
    copies.synchronize()?;

    assert_eq!(result.to_vec(), 4.0_f32.to_le_bytes().repeat(64));
    let device = session.close().expect("the session has one owner");
    assert_eq!(device.name(), "a2a3sim");
    Ok(())
}

#[test]
fn the_documentation_shows_this_file() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let here = lines(include_str!("documented.rs"));
    let page = include_str!("../../../../docs/how-to/sessions.md");
    let example = page.split("```rust\n").nth(1).expect("the page has a program");
    let program = example.split("```").next().expect("the program ends");
    let (imports, body) = program.split_once("\n\n").expect("imports come first");
    for part in [imports, body] {
        assert!(here.contains(lines(part).trim()), "not in this file:\n{part}");
    }
}

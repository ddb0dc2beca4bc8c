//! Runs a model from Rust: `run_model MODEL.onnx [--expect NAME=FILE.npy].. [NAME=FILE.npy]..`
//!
//! It reads the inputs from NumPy files, builds the model for their extents, runs it on the simulator, and compares outputs with files. `pto run`
//! does the same, and more; this shows the interface.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use pto_host::graph::NoBuilders;
use pto_host::{Device, DeviceOptions, RunOptions, SessionOptions};
use pto_models::{Given, Model, Runner};
use pto_operators::{LowerOptions, Tensor};

type Failed = Box<dyn std::error::Error>;

/// A file of `f32`, `i32` or `i64`.
fn read(path: &str) -> Result<Tensor, Failed> {
    let bytes = std::fs::read(path)?;
    let file = npyz::NpyFile::new(&bytes[..])?;
    let shape: Vec<usize> = file
        .shape()
        .iter()
        .map(|extent| usize::try_from(*extent).expect("an extent of 64 bits"))
        .collect();
    let text = file.dtype().descr();
    let tensor = match text.trim_matches('\'') {
        "<f4" => Tensor::from_elements(&shape, &file.into_vec::<f32>()?),
        "<i4" => Tensor::from_elements(&shape, &file.into_vec::<i32>()?),
        "<i8" => Tensor::from_elements(&shape, &file.into_vec::<i64>()?),
        other => return Err(format!("{path} has elements of type {other}").into()),
    };
    Ok(tensor.ok_or("the file has another number of elements")?)
}

fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which model?")?;
    let (mut given, mut expected) = (Given::default(), BTreeMap::new());
    while let Some(arg) = args.next() {
        let is_expected = arg == "--expect";
        let pair = if is_expected || arg == "--input" {
            args.next().ok_or("NAME=FILE.npy is missing")?
        } else {
            arg
        };
        let (name, file) = pair.rsplit_once('=').ok_or("NAME=FILE.npy is wanted")?;
        if is_expected { &mut expected } else { &mut given.values }
            .insert(name.to_owned(), read(file)?);
    }
    let begun = Instant::now();
    let model = Model::read(Path::new(&path))?;
    let built = model.build(&given)?;
    let lowered = built.lower(&LowerOptions::default())?;
    println!(
        "{} nodes, {} operators, {} tasks; activations {} bytes, of {} without reuse; built in {:?}",
        model.node_count(),
        built.graph.nodes().len(),
        lowered.nodes.len(),
        lowered.activation_peak,
        lowered.activation_bytes,
        begun.elapsed()
    );
    let mut device = Device::open_sim(DeviceOptions::default(), NoBuilders)?;
    device.register_library()?;
    let session = device
        .session(SessionOptions { run: RunOptions::default(), ..SessionOptions::default() })?;
    let runner = Runner::new(&session)?;
    let loaded = runner.load(lowered)?;
    for round in 0..3 {
        let begun = Instant::now();
        let outputs = runner.run(&loaded, &given.values)?;
        println!("run {round}: {:?}", begun.elapsed());
        if round > 0 {
            continue;
        }
        for (name, found) in &outputs {
            let Some(wanted) = expected.get(name) else { continue };
            let pairs: Vec<_> = found.to_doubles().into_iter().zip(wanted.to_doubles()).collect();
            let absolute = pairs.iter().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let far = pairs.iter().filter(|(a, b)| (a - b).abs() > 1e-4 + 1e-3 * b.abs()).count();
            println!(
                "{name} {}: the largest difference is {absolute:.3e}; {far} of {} beyond 1e-4 + 1e-3 x",
                found.ty(),
                pairs.len()
            );
        }
    }
    Ok(())
}

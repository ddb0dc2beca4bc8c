//! Runs the node cases that `node_cases.py` has written through our operators, in one process, and prints what became of them.
//!
//! ```text
//! node_cases FOLDER [--host] [--only WORD] [--least RIGHT]
//! ```
//! A case is right, refused (with the reason), wrong, or ends with a panic. With `--host` the operators run on the host, one after another,
//! instead of as a program on the simulator.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use prost::Message;
use pto_host::{Device, DeviceOptions, RunOptions, SessionOptions};
use pto_models::proto::TensorProto;
use pto_models::{Given, Model, ModelError, Runner, tensor_of};
use pto_operators::{DType, LowerOptions, Tensor};

/// What became of a case.
enum Outcome {
    Right,
    /// Its results are random numbers: type and extents are right.
    Random,
    /// It differs by what the expected values were rounded.
    Rounded,
    Refused(String),
    Wrong(String),
    Panicked(String),
}

/// A case whose expected values come from a generator that no other one has.
fn is_random(name: &str) -> bool {
    name.starts_with("test_bernoulli")
}

/// Cases whose expected values have the rounding of a Fourier transform in `f32` where the result is 0: more than their absolute tolerance.
const ROUNDED: &[&str] = &["test_dft_inverse", "test_dft_inverse_opset19"];

struct Case {
    name: String,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut folder, mut on_host, mut only, mut least) = (None, false, None, 0);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--host" => on_host = true,
            "--only" => only = args.next(),
            "--least" => least = args.next().and_then(|count| count.parse().ok()).unwrap_or(0),
            _ => folder = Some(PathBuf::from(arg)),
        }
    }
    let Some(folder) = folder else {
        eprintln!("usage: node_cases FOLDER [--host] [--only WORD] [--least RIGHT]");
        return ExitCode::from(2);
    };
    let mut cases = match cases(&folder) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::from(2);
        }
    };
    cases.retain(|case| only.as_ref().is_none_or(|only| case.name.contains(only.as_str())));
    std::panic::set_hook(Box::new(|_| {}));
    let mut counts = BTreeMap::new();
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for case in &cases {
        let ran = catch_unwind(AssertUnwindSafe(|| run(case, on_host)));
        let outcome = ran.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Outcome::Panicked(
                text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_default(),
            )
        });
        let (kind, line) = match outcome {
            Outcome::Right => ("right", None),
            Outcome::Random => ("random", Some(String::new())),
            Outcome::Rounded => ("rounded", Some(String::new())),
            Outcome::Refused(reason) => ("refused", Some(reason)),
            Outcome::Wrong(reason) => ("wrong", Some(reason)),
            Outcome::Panicked(reason) => ("panicked", Some(reason)),
        };
        *counts.entry(kind).or_insert(0) += 1;
        if let Some(line) = line {
            lines.entry(kind).or_default().push(format!("{}: {line}", case.name));
        }
    }
    for (kind, lines) in &lines {
        lines.iter().for_each(|line| println!("{kind:<8} {line}"));
    }
    let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    println!(
        "{} cases: {} right, {} random numbers, {} within the rounding of what is expected, {} refused, {} wrong, {} panicked",
        cases.len(),
        count("right"),
        count("random"),
        count("rounded"),
        count("refused"),
        count("wrong"),
        count("panicked")
    );
    let is_good = count("wrong") == 0 && count("panicked") == 0 && count("right") >= least;
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cases(folder: &Path) -> std::io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        cases.push(Case {
            name: entry.file_name().to_string_lossy().into_owned(),
            folder: entry.path(),
        });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// A side of a case: a tensor for each number, or why there is none.
fn side(folder: &Path, side: &str) -> Result<Vec<Tensor>, String> {
    let mut tensors = Vec::new();
    for at in 0.. {
        let path = folder.join(format!("{side}_{at}.tensor.pb"));
        let others =
            ["sequence", "optional"].map(|kind| folder.join(format!("{side}_{at}.{kind}.pb")));
        if others.iter().any(|path| path.exists()) {
            return Err(format!("{side} {at} is no tensor"));
        }
        if !path.exists() {
            break;
        }
        let bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
        let proto = TensorProto::decode(&bytes[..]).map_err(|error| error.to_string())?;
        tensors.push(tensor_of(proto, None)?);
    }
    Ok(tensors)
}

fn run(case: &Case, on_host: bool) -> Outcome {
    let refused = |error: ModelError| match error {
        ModelError::Nodes(problems) => {
            let reasons: Vec<_> = problems
                .iter()
                .map(|problem| format!("{}: {}", problem.op_type, problem.reason))
                .collect();
            Outcome::Refused(reasons.join("; "))
        }
        other => Outcome::Refused(other.to_string()),
    };
    let model = match Model::read(&case.folder.join("model.onnx")) {
        Ok(model) => model,
        Err(error) => return refused(error),
    };
    let inputs = match side(&case.folder, "input") {
        Ok(inputs) => inputs,
        // What the model says of its inputs comes first.
        Err(reason) => {
            return model
                .build(&Given::default())
                .map_or_else(refused, |_| Outcome::Refused(reason));
        }
    };
    let outputs = side(&case.folder, "output");
    let names = model.inputs().iter().map(|input| input.name.clone());
    let values: BTreeMap<_, _> = names.zip(inputs).collect();
    let built = match model.build(&Given { values: values.clone(), ..Given::default() }) {
        Ok(built) => built,
        Err(error) => return refused(error),
    };
    let expected = match outputs {
        Ok(expected) => expected,
        Err(reason) => return Outcome::Refused(reason),
    };
    let results = if on_host {
        built.evaluate(&values)
    } else {
        let options = LowerOptions { most_names: 0, ..LowerOptions::default() };
        let lowered = match built.lower(&options) {
            Ok(lowered) => lowered,
            Err(error) => return refused(error),
        };
        on_device(lowered, &values)
    };
    match results {
        Ok(results) => judge(case, &results, &expected),
        Err(error) => Outcome::Wrong(error.to_string()),
    }
}

fn on_device(
    lowered: pto_operators::Lowered,
    values: &BTreeMap<String, Tensor>,
) -> Result<Vec<(String, Tensor)>, ModelError> {
    let error = |error: &dyn std::fmt::Display| ModelError::Device(error.to_string());
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 64 << 20, ..DeviceOptions::default() };
    let mut device =
        Device::open_sim(options, pto_host::graph::NoBuilders).map_err(|e| error(&e))?;
    device.register_library().map_err(|e| error(&e))?;
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let session = device
        .session(SessionOptions { run, ..SessionOptions::default() })
        .map_err(|e| error(&e))?;
    let runner = Runner::new(&session)?;
    let model = runner.load(lowered)?;
    runner.run(&model, values)
}

fn judge(case: &Case, results: &[(String, Tensor)], expected: &[Tensor]) -> Outcome {
    let text = std::fs::read_to_string(case.folder.join("tolerance")).unwrap_or_default();
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (rtol, atol) = (numbers.next().unwrap_or(1e-3), numbers.next().unwrap_or(1e-7));
    if results.len() < expected.len() {
        return Outcome::Wrong(format!(
            "{} outputs, and {} are expected",
            results.len(),
            expected.len()
        ));
    }
    for ((name, result), expected) in results.iter().zip(expected) {
        if result.ty() != expected.ty() {
            return Outcome::Wrong(format!(
                "output {name} is {}, and {} is expected",
                result.ty(),
                expected.ty()
            ));
        }
        if is_random(&case.name) {
            continue;
        }
        // As the package itself compares: two units in the last place of `bf16`.
        let rtol = if result.dtype() == DType::BF16 { rtol.max(0.015_625) } else { rtol };
        let pairs = result.to_doubles().into_iter().zip(expected.to_doubles());
        let is_near = |(found, wanted): &(f64, f64)| {
            found == wanted
                || (found.is_nan() && wanted.is_nan())
                || (found - wanted).abs() <= atol + rtol * wanted.abs()
        };
        if ROUNDED.contains(&case.name.as_str()) {
            let largest = expected
                .to_doubles()
                .into_iter()
                .fold(0.0, |largest: f64, value| largest.max(value.abs()));
            let is_rounded = |(found, wanted): (f64, f64)| {
                (found - wanted).abs() <= largest * 8.0 * f64::from(f32::EPSILON)
            };
            if result.to_doubles().into_iter().zip(expected.to_doubles()).all(is_rounded) {
                return Outcome::Rounded;
            }
        }
        let wrong: Vec<_> = pairs.enumerate().filter(|(_, pair)| !is_near(pair)).collect();
        if let Some((at, (found, wanted))) = wrong.first() {
            return Outcome::Wrong(format!(
                "output {name}: {} elements; element {at} is {found}, and {wanted} is expected",
                wrong.len()
            ));
        }
    }
    if is_random(&case.name) { Outcome::Random } else { Outcome::Right }
}

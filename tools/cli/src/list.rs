//! The lists of `pto info`: examples, runtimes, devices, kernels.

use pto_abi::{FanoutStrategy, RuntimeVariant};
use pto_aicore_kernels::LIBRARY;
use pto_examples::host::{EXAMPLES, Example, ParamSpec, TensorSpec};
use pto_examples::training_loop::NAME;
use serde_json::{Value, json};

use crate::text::{filled, grouped, table};
use crate::training;

/// Devices that this build can open: name, what it is.
const DEVICES: &[(&str, &str)] = &[
    ("a2a3sim", "an a2a3 die in this process: 4 AICPU, 24 AIC, 48 AIV by default"),
    (
        "qemu",
        "the flashed firmware image on an emulated AArch64 machine: 4 AICPU, 4 AIC, 8 AIV by default",
    ),
    (
        "a2a3",
        "an Ascend 910B or 910C, through CANN, which is loaded when the device is opened: the cores in service",
    ),
];

/// All examples, with their parameters and tensors.
pub(crate) fn examples_text() -> String {
    let mut examples: Vec<_> = EXAMPLES.iter().map(|example| example_text(*example)).collect();
    examples.push(loop_text());
    examples.join("\n")
}

/// A short form of all lists.
pub(crate) fn overview() -> String {
    let examples: Vec<_> = EXAMPLES
        .iter()
        .map(|example| [example.name(), example.summary()])
        .chain([[NAME, training::SUMMARY]])
        .map(|row| row.map(str::to_owned).to_vec())
        .collect();
    let names: Vec<_> = LIBRARY.iter().map(|kernel| kernel.name).collect();
    let kernels: Vec<_> = filled(&names).into_iter().map(|line| vec![line]).collect();
    format!(
        "examples\n{}\nruntimes\n{}\ndevices\n{}\nkernels\n{}",
        table(&examples, &[]),
        runtimes_text(),
        devices_text(),
        table(&kernels, &[]),
    )
}

fn example_text(example: &dyn Example) -> String {
    let mut text = format!("{}\n  {}\n", example.name(), example.summary());
    text += "  parameters (--param name=value)\n";
    text += &indented(example.params().iter().map(param_row).collect(), &[1]);
    for (specs, title) in [
        (example.inputs(), "  inputs (--input name=file.npy)\n"),
        (example.outputs(), "  outputs (--output name=file.npy)\n"),
    ] {
        if !specs.is_empty() {
            text += title;
            text += &indented(specs.iter().map(tensor_row).collect(), &[]);
        }
    }
    text
}

/// The loop of programs, which has no tensors that a user could give.
fn loop_text() -> String {
    let rows = training::parameters().map(|param| param.to_vec()).to_vec();
    let head = format!("{NAME}\n  {}\n  parameters (--param name=value)\n", training::SUMMARY);
    head + &indented(rows, &[1])
}

fn indented(rows: Vec<Vec<String>>, right: &[usize]) -> String {
    table(&rows, right).lines().map(|line| format!("  {line}\n")).collect()
}

fn param_row(spec: &ParamSpec) -> Vec<String> {
    let max = if spec.max == u64::MAX { "2^64 - 1".to_owned() } else { grouped(spec.max) };
    let range = format!("{} to {max}", grouped(spec.min));
    vec![spec.name.into(), grouped(spec.default), range, spec.help.into()]
}

fn tensor_row(spec: &TensorSpec) -> Vec<String> {
    let shape = format!("{} [{}]", spec.dtype, spec.dims.join(", "));
    vec![spec.name.into(), shape, spec.help.into()]
}

/// The runtime variants.
pub(crate) fn runtimes_text() -> String {
    let row = |variant: &RuntimeVariant| vec![variant.to_string(), summary_of(*variant).to_owned()];
    table(&RuntimeVariant::ALL.iter().map(row).collect::<Vec<_>>(), &[])
}

fn summary_of(variant: RuntimeVariant) -> &'static str {
    match variant {
        RuntimeVariant::HOST_BUILD_GRAPH => "the host builds the graph and sends it as an image",
        RuntimeVariant::AICPU_BUILD_GRAPH => {
            "AICPU instance 0 builds the graph while the others schedule (the default)"
        }
        _ => "AICPU instance 0 submits tasks with tensors: edges are derived, memory is bounded",
    }
}

/// The devices.
pub(crate) fn devices_text() -> String {
    let row = |(name, what): &(&str, &str)| vec![(*name).into(), (*what).into()];
    table(&DEVICES.iter().map(row).collect::<Vec<_>>(), &[])
}

/// The kernels of the library.
pub(crate) fn kernels_text() -> String {
    let row = |kernel: &pto_aicore_kernels::LibraryKernel| {
        let kind = kernel.kind.name().to_uppercase();
        let more = kernel.takes_more.then_some("..");
        let args: Vec<_> = kernel.args.iter().copied().chain(more).collect();
        let call = format!("{}({})", kernel.name, args.join(", "));
        vec![kernel.func_id.to_string(), kind, call, kernel.summary.into()]
    };
    table(&LIBRARY.iter().map(row).collect::<Vec<_>>(), &[0])
}

pub(crate) fn examples_json() -> Value {
    let param = |spec: &ParamSpec| json!({ "name": spec.name, "default": spec.default, "min": spec.min, "max": spec.max, "help": spec.help });
    let tensors = |specs: &[TensorSpec]| -> Vec<Value> {
        let tensor = |spec: &TensorSpec| {
            let dtype = spec.dtype.to_string();
            json!({ "name": spec.name, "dtype": dtype, "shape": spec.dims, "help": spec.help })
        };
        specs.iter().map(tensor).collect()
    };
    let example = |example: &&dyn Example| {
        json!({
            "name": example.name(),
            "summary": example.summary(),
            "params": example.params().iter().map(param).collect::<Vec<_>>(),
            "inputs": tensors(example.inputs()),
            "outputs": tensors(example.outputs()),
        })
    };
    EXAMPLES.iter().map(example).collect()
}

pub(crate) fn loops_json() -> Value {
    let param = |[name, default, range, help]: training::Param| json!({ "name": name, "default": default, "range": range, "help": help });
    json!([{
        "name": NAME,
        "summary": training::SUMMARY,
        "params": training::parameters().into_iter().map(param).collect::<Vec<_>>(),
    }])
}

pub(crate) fn runtimes_json() -> Value {
    let fanout: Vec<_> = FanoutStrategy::ALL.iter().map(|strategy| strategy.name()).collect();
    let runtime = |variant: &RuntimeVariant| json!({ "name": variant.name(), "summary": summary_of(*variant), "fanout": fanout });
    RuntimeVariant::ALL.iter().map(runtime).collect()
}

pub(crate) fn devices_json() -> Value {
    DEVICES.iter().map(|(name, what)| json!({ "name": name, "summary": what })).collect()
}

pub(crate) fn kernels_json() -> Value {
    let kernel = |kernel: &pto_aicore_kernels::LibraryKernel| {
        json!({
            "func_id": kernel.func_id,
            "name": kernel.name,
            "kind": kernel.kind.name(),
            "args": kernel.args,
            "takes_more": kernel.takes_more,
            "summary": kernel.summary,
        })
    };
    LIBRARY.iter().map(kernel).collect()
}

#[cfg(test)]
mod tests {
    use pto_abi::RuntimeVariant;

    #[test]
    fn every_runtime_has_a_sentence() {
        assert!(RuntimeVariant::ALL.iter().all(|variant| !super::summary_of(*variant).is_empty()));
    }
}

//! Parts of a program as text and as JSON.

use pto_host::workloads::plan::SymbolUse;
use pto_host::workloads::program::{
    GraphTask, NativeKernel, NativeObject, Program, ProgramBody, TensorDescription, TensorLayout,
    describe_block_shape,
};
use serde_json::{Value, json};

use crate::text::{bytes, table};

/// The tensors, a line each.
pub(super) fn tensors(program: &Program) -> String {
    let rows: Vec<_> = program.tensors().iter().map(row).collect();
    table(&rows, &[3])
}

fn row(tensor: &TensorDescription) -> Vec<String> {
    let zeros = if tensor.begins_with_zeros { ", begins as zeros" } else { "" };
    vec![
        tensor.role.name().to_owned(),
        tensor.name.clone(),
        format!("{}{:?}", tensor.dtype, tensor.shape),
        bytes(tensor.bytes()),
        format!("{}{zeros}", tensor.layout),
    ]
}

/// A tensor for programs.
pub(super) fn tensor(tensor: &TensorDescription) -> Value {
    json!({
        "name": tensor.name,
        "role": tensor.role.name(),
        "dtype": tensor.dtype.name(),
        "shape": tensor.shape,
        "bytes": tensor.bytes(),
        "layout": layout(tensor),
        "begins_with_zeros": tensor.begins_with_zeros,
    })
}

fn layout(tensor: &TensorDescription) -> Value {
    let TensorLayout { memory, format, padding } = &tensor.layout;
    json!({
        "place": memory.name(),
        "format": format.to_string(),
        "strides": tensor.layout.strides(&tensor.shape),
        "stored_shape": tensor.layout.storage_shape(&tensor.shape),
        "padding_bits": padding,
    })
}

/// The symbols with what they are, and the arrays.
pub(super) fn bound(program: &Program) -> (Vec<(String, String)>, Vec<String>) {
    let symbols = program.symbols().iter().map(|(name, used)| {
        let used = match used {
            SymbolUse::Size(None) => "a size, which has to be given".to_owned(),
            SymbolUse::Size(Some(size)) => format!("a size, {size} unless given"),
            SymbolUse::Number => "a number".to_owned(),
            SymbolUse::Float => "a number of type f32".to_owned(),
        };
        (name.clone(), used)
    });
    (symbols.collect(), program.arrays().to_vec())
}

/// How often each operation is in the program: instructions of tile kernels, or kernels of the library.
pub(super) fn operations(program: &Program) -> Vec<(String, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    let mut count = |name: &str| *counts.entry(name.to_owned()).or_insert(0_usize) += 1;
    match program.body() {
        ProgramBody::Plan(compiled) => {
            compiled
                .tile_kernels()
                .iter()
                .flat_map(|kernel| kernel.ops())
                .for_each(|op| count(op.name()));
        }
        ProgramBody::Graph(tasks) => {
            tasks.iter().flat_map(GraphTask::kernels).for_each(|(name, _)| count(name));
        }
        // Which tasks it adds is not known before it runs.
        ProgramBody::Builder(_) => {}
    }
    counts.into_iter().collect()
}

/// What tasks of a graph are beyond one kernel on one core: their numbers, and what it is in words.
pub(super) fn shapes(program: &Program) -> Vec<(usize, String)> {
    let ProgramBody::Graph(tasks) = program.body() else { return Vec::new() };
    let shapes = tasks
        .iter()
        .map(|task| describe_block_shape(&task.block_shape, program.tensors()))
        .enumerate();
    shapes.filter_map(|(number, shape)| Some((number, shape?))).collect()
}

/// The native kernels: who they are, and the code for each processor; nothing where there are none.
pub(super) fn native(program: &Program) -> Vec<String> {
    let Some(native) = program.native() else { return Vec::new() };
    let kernel = |kernel: &NativeKernel| format!("{} ({})", kernel.name, kernel.kind);
    let kernels: Vec<_> = native.kernels().iter().map(kernel).collect();
    let object =
        |one: &NativeObject| format!("{}, {}", one.processor, bytes(one.code.len() as u64));
    std::iter::once(kernels.join(", ")).chain(native.objects().iter().map(object)).collect()
}

/// The native kernels for programs; without elements where there are none.
pub(super) fn native_as_json(program: &Program) -> Value {
    let kernel =
        |kernel: &NativeKernel| json!({ "name": kernel.name, "kind": kernel.kind.to_string() });
    let object =
        |one: &NativeObject| json!({ "processor": one.processor, "bytes": one.code.len() });
    let kernels = program.native().map_or(&[][..], |native| native.kernels());
    let objects = program.native().map_or(&[][..], |native| native.objects());
    json!({
        "kernels": kernels.iter().map(kernel).collect::<Vec<_>>(),
        "objects": objects.iter().map(object).collect::<Vec<_>>(),
    })
}

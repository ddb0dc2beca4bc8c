//! The native part of the Python package `pto_runtime`: devices, graphs, runs, `class Runtime`.
//!
//! ```text
//! device.rs    Device       graph.rs    Graph      field.rs    FieldRuntime (class Runtime of C++ sources)
//! options.rs   keyword arguments of a run          report.rs   Report, Trace
//! array.rs     NumPy arrays without copies         failure.rs  exceptions    running.rs  the GIL, interrupts
//! held.rs      what objects hold of a device       callbacks.rs  functions of Python that a session calls
//! workload.rs  CheckedWorkload   tile_kernel.rs TileKernelBuilder   memory.rs  tensors of a workload
//! session.rs  Session   program.rs  Program, LoadedProgram   program_stream.rs  ProgramStream, Tensor
//! kernel_stream.rs  KernelStream, HostBuffer, Event, Notify, Recording
//! scene_device.rs FieldDevice, FieldCallable (programs of the field of today)      scene_outcome.rs  FieldOutcome
//! device_workload.rs  DeviceWorkload, a workload on a device          device_tensors.rs  its tensors there
//! operators.rs  OperatorArray, operators on arrays      dlpack.rs  arrays of others
//! group.rs  Group, devices with ranks      group_program.rs  the program that they run
//! ```
//! The part of the package that is written in Python is in `pto_runtime/`.
//!
//! Why it is so: `docs/decisions/python.md`.

mod array;
mod callbacks;
mod device;
mod device_tensors;
mod device_workload;
mod dlpack;
mod failure;
mod field;
mod foreign_kernel;
mod graph;
mod group;
mod group_program;
mod group_workload;
mod kernel_stream;
mod memory;
mod operators;
mod options;
mod program;
mod program_stream;
mod py_resource;
mod report;
mod running;
mod scene_device;
mod scene_outcome;
mod session;
mod tile_kernel;
mod workload;

use pyo3::prelude::*;

/// The headers that sources in C and C++ include, by name.
const HEADERS: [(&str, &str); 7] = [
    ("runtime.h", include_str!("../../include/runtime.h")),
    ("pto_range.h", include_str!("../../include/pto_range.h")),
    ("pto_stream.h", include_str!("../../include/pto_stream.h")),
    ("pto_stream.hpp", include_str!("../../include/pto_stream.hpp")),
    ("pto_table.hpp", include_str!("../../include/pto_table.hpp")),
    ("pto_runtime.h", include_str!("../../include/pto_runtime.h")),
    ("pto_abi.h", include_str!("../../include/pto_abi.h")),
];

#[pyfunction]
fn headers() -> Vec<(&'static str, &'static str)> {
    HEADERS.to_vec()
}

/// Headers of the field's programs of today, by their paths.
#[pyfunction]
fn field_headers() -> Vec<(&'static str, &'static str)> {
    pto_field::HEADERS.to_vec()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<device::Device>()?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<group::Group>()?;
    module.add_class::<field::FieldRuntime>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<program::Program>()?;
    module.add_class::<program::LoadedProgram>()?;
    module.add_class::<program_stream::ProgramStream>()?;
    module.add_class::<program_stream::Tensor>()?;
    module.add_class::<kernel_stream::KernelStream>()?;
    module.add_class::<kernel_stream::HostBuffer>()?;
    module.add_class::<kernel_stream::Event>()?;
    module.add_class::<kernel_stream::Notify>()?;
    module.add_class::<kernel_stream::Recording>()?;
    module.add_class::<scene_device::FieldDevice>()?;
    module.add_class::<scene_device::FieldCallable>()?;
    module.add_class::<scene_outcome::FieldOutcome>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<report::Trace>()?;
    module.add_class::<workload::CheckedWorkload>()?;
    module.add_class::<device_workload::DeviceWorkload>()?;
    module.add_class::<tile_kernel::TileKernelBuilder>()?;
    module.add_function(wrap_pyfunction!(foreign_kernel::foreign_call, module)?)?;
    module.add_function(wrap_pyfunction!(headers, module)?)?;
    module.add_class::<operators::OperatorArray>()?;
    module.add_function(wrap_pyfunction!(operators::operator_table, module)?)?;
    module.add_function(wrap_pyfunction!(operators::operator_array, module)?)?;
    module.add_function(wrap_pyfunction!(operators::operator_array_of, module)?)?;
    module.add_function(wrap_pyfunction!(operators::operator_array_of_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(operators::run_operator, module)?)?;
    callbacks::register(module)?;
    module.add_function(wrap_pyfunction!(field_headers, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

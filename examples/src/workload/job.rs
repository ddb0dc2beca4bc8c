//! The host side of a workload in a file: its memory, the reference, the run on a device, the comparison.

use std::borrow::ToOwned;
use std::boxed::Box;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use pto_abi::limits::MAX_TASKS;
use pto_graph::plan::BUILDER;
use pto_host::workload::{WorkloadBindings, WorkloadError, WorkloadRun};
use pto_host::workloads::clock::{self, Bindings, BoundTensor};
use pto_host::workloads::plan::{Compiled, SymbolUse};
use pto_host::workloads::tile::view::tensor_of;
use pto_host::workloads::tree::Tensor as WorkloadTensor;
use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use super::file::{GRAIN, REQUIRED, SEED, WorkloadFile, has_symbol};
use super::memory::Memory;
use crate::host::check::{ElementPosition, Verdict, index_of};
use crate::host::error::invalid;
use crate::host::job::{Check, GraphSize, Prepared, check_room_for};
use crate::host::{Error, GroupRank, Inputs, Params, Tensor};

/// Makes the tensors, runs the reference, and puts everything into the memory of `device`.
pub(super) fn prepare(
    file: &WorkloadFile,
    member: GroupRank,
    (params, inputs): (&Params, &Inputs),
    device: &Device,
) -> Result<Prepared, Error> {
    let compiled = &file.compiled;
    let whole = whole_tensors(file, member)?;
    let arrays = arrays(compiled, inputs)?;
    let symbols = symbols(compiled, params)?;
    // How many tasks there are is known when the reference has run, which needs the tensors.
    check_room_for(
        device,
        compiled.tensors().iter().map(Memory::bytes_of),
        &GraphSize::streamed(1),
    )?;
    let before: Vec<Memory> = compiled
        .tensors()
        .iter()
        .map(|tensor| memory(file, tensor, params, inputs))
        .collect::<Result<_, _>>()?;
    let mut after = before.clone();
    let tasks = reference(file, &mut after, &arrays, &symbols)?;

    let buffers = before.iter().map(|memory| device.upload(&memory.words));
    let buffers: Vec<DeviceBuffer<u64>> = buffers.collect::<Result<_, _>>()?;
    let array_buffers = arrays.iter().map(|(_, elements)| match elements.as_slice() {
        // An empty array has an address, and no elements.
        [] => device.zeroed(1),
        elements => device.upload(elements),
    });
    let array_buffers: Vec<DeviceBuffer<i32>> = array_buffers.collect::<Result<_, _>>()?;
    let grain = if has_symbol(compiled, GRAIN) { 0 } else { params.get(GRAIN) };
    let mut bound = WorkloadBindings::new().grain(grain);
    for (tensor, buffer) in compiled.tensors().iter().zip(&buffers) {
        bound = bound.tensor(&tensor.name, buffer.address());
    }
    for ((name, elements), buffer) in arrays.iter().zip(&array_buffers) {
        let array = pto_host::workload::ArrayBinding {
            address: buffer.address(),
            length: elements.len() as u64,
        };
        bound = bound.array(name, array);
    }
    for (name, used, value) in &symbols {
        bound = match used {
            SymbolUse::Size(_) => bound.size(name, *value),
            SymbolUse::Number | SymbolUse::Float => bound.symbol(name, *value),
        };
    }
    let run = WorkloadRun::bind(device, compiled.clone(), &bound).map_err(refused)?;
    let (words, size) = (run.orch_args().to_vec(), GraphSize::streamed(tasks));
    let tensors = compiled.tensors().iter().zip(before).zip(after).zip(buffers).zip(whole);
    let held = tensors.map(|((((tensor, before), after), buffer), is_whole)| CheckedTensor {
        tensor: tensor.clone(),
        name: super::file::kept(tensor.name.clone()),
        is_written: file.is_written(&tensor.name),
        is_whole,
        before,
        after,
        buffer,
    });
    let check = WorkloadCheck { run, held: held.collect(), _arrays: array_buffers };
    Prepared::new(BUILDER, (words, &[]), size, Box::new(check))
}

/// Which tensors this member has all of after a run. Some member has each.
fn whole_tensors(
    file: &WorkloadFile,
    GroupRank { rank, size }: GroupRank,
) -> Result<Vec<bool>, Error> {
    let workload = file.checked.workload();
    let of = |number, tensor: &WorkloadTensor| {
        if (0..size).any(|rank| workload.is_whole_at(number, rank, size)) {
            return Ok(workload.is_whole_at(number, rank, size));
        }
        Err(invalid!(
            "no rank has all of the tensor '{}' after a run, so that nothing can be compared; give each rank a tensor of its own to write",
            tensor.name
        ))
    };
    workload.tensors.iter().enumerate().map(|(number, tensor)| of(number, tensor)).collect()
}

fn refused(error: WorkloadError) -> Error {
    match error {
        WorkloadError::Device(error) => error.into(),
        other => Error::Invalid(other.to_string()),
    }
}

/// The arrays of the axes, which the user gives.
fn arrays(compiled: &Compiled, inputs: &Inputs) -> Result<Vec<(String, Vec<i32>)>, Error> {
    let given = |name: &String| match inputs.i32(name) {
        Some(elements) => Ok((name.clone(), elements.to_vec())),
        None => Err(invalid!(
            "the array '{name}' of an axis is not given; give --input {name}=FILE.npy with elements of type i32"
        )),
    };
    compiled.arrays().iter().map(given).collect()
}

/// The symbols, with their values.
fn symbols(compiled: &Compiled, params: &Params) -> Result<Vec<(String, SymbolUse, u64)>, Error> {
    let value = |(name, used): &(String, SymbolUse)| match params.get(name) {
        REQUIRED => Err(invalid!("parameter '{name}' has no default; give --param {name}=VALUE")),
        value => Ok((name.clone(), *used, value)),
    };
    compiled.symbols().iter().map(value).collect()
}

/// What a tensor holds before a run: what the user gave; else zeros if tasks write it, and what is drawn if none does.
fn memory(
    file: &WorkloadFile,
    tensor: &WorkloadTensor,
    params: &Params,
    inputs: &Inputs,
) -> Result<Memory, Error> {
    match inputs.get(&tensor.name) {
        Some(given) => Memory::given(tensor, given).ok_or_else(|| {
            invalid!("input '{}' has another number of elements than the tensor", tensor.name)
        }),
        None if file.is_written(&tensor.name) => Ok(Memory::zeroed(tensor)),
        None => Ok(Memory::drawn(tensor, params.get(SEED))),
    }
}

/// Executes the workload on this machine, in program order; how many tasks it has.
fn reference(
    file: &WorkloadFile,
    memories: &mut [Memory],
    arrays: &[(String, Vec<i32>)],
    symbols: &[(String, SymbolUse, u64)],
) -> Result<u64, Error> {
    let mut bindings = Bindings::new();
    for (tensor, memory) in file.compiled.tensors().iter().zip(memories) {
        let used = memory.bytes;
        let bound = BoundTensor {
            memory: &tensor_of(&mut memory.words)[..used],
            first: 0,
            strides: clock::row_major(&tensor.shape),
        };
        bindings = bindings.tensor(&tensor.name, bound);
    }
    for (name, elements) in arrays {
        bindings = bindings.array(name, elements);
    }
    for (name, used, value) in symbols {
        bindings = match used {
            SymbolUse::Size(_) => bindings.size(name, *value),
            SymbolUse::Number | SymbolUse::Float => bindings.symbol(name, *value),
        };
    }
    let tasks = clock::results(&file.checked, &bindings, u64::from(MAX_TASKS));
    tasks.map_err(|error| invalid!("the reference cannot be computed: {error}"))
}

/// A tensor: before a run, what it must be after it, and on the device.
struct CheckedTensor {
    tensor: WorkloadTensor,
    name: &'static str,
    is_written: bool,
    /// Whether all of it is on this device after a run: of a group, one device may have a part.
    is_whole: bool,
    before: Memory,
    after: Memory,
    buffer: DeviceBuffer<u64>,
}

impl CheckedTensor {
    fn read(&self) -> Result<Memory, DeviceError> {
        Ok(Memory { words: self.buffer.read()?, bytes: self.before.bytes })
    }

    /// The comparison, bit for bit.
    fn verdict(&self) -> Result<Verdict, DeviceError> {
        let (found, size) = (self.read()?, self.tensor.dtype.bytes());
        let elements = || found.as_bytes().chunks(size).zip(self.after.as_bytes().chunks(size));
        let wrong = elements().filter(|(found, expected)| found != expected).count() as u64;
        let first = elements().position(|(found, expected)| found != expected);
        let first_wrong = first.map(|at| ElementPosition {
            tensor: self.name,
            index: index_of(at as u64, &self.tensor.shape),
            found: shown(&found, &self.tensor, at),
            expected: shown(&self.after, &self.tensor, at),
        });
        Ok(Verdict::exact(elements().count() as u64, wrong, first_wrong))
    }
}

/// An element, for people.
fn shown(memory: &Memory, tensor: &WorkloadTensor, at: usize) -> String {
    let size = tensor.dtype.bytes();
    let of_its_type = memory.tensor(tensor).filter(|_| !is_half(tensor));
    let number = of_its_type.and_then(|tensor| tensor.elements().text_of(at));
    number.unwrap_or_else(|| format!("{:02x?}", &memory.as_bytes()[at * size..][..size]))
}

/// Whether a file holds the bits of its elements.
const fn is_half(tensor: &WorkloadTensor) -> bool {
    tensor.dtype.is_float() && tensor.dtype.bytes() == 2
}

/// A workload on a device.
struct WorkloadCheck {
    run: WorkloadRun,
    held: Vec<CheckedTensor>,
    _arrays: Vec<DeviceBuffer<i32>>,
}

impl Check for WorkloadCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.run.reset()?;
        self.held.iter().try_for_each(|held| held.buffer.write(&held.before.words))
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        if let Some(message) = self.explain() {
            return Err(Error::Invalid(message));
        }
        let mut verdict = Verdict::exact(0, 0, None);
        for held in self.held.iter().filter(|held| held.is_whole) {
            verdict = verdict.and(held.verdict()?);
        }
        Ok(verdict)
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        let mut tensors = Vec::new();
        for held in self.held.iter().filter(|held| held.is_written && held.is_whole) {
            tensors.extend(held.read()?.tensor(&held.tensor).map(|tensor| (held.name, tensor)));
        }
        Ok(tensors)
    }

    fn facts(&self) -> Result<Vec<(String, String)>, DeviceError> {
        self.run.cycle_facts()
    }

    fn explain(&self) -> Option<String> {
        let fault = self.run.fault().ok()??;
        let name = self.run.compiled().name().to_owned();
        Some(format!("workload {name}: {fault}"))
    }
}

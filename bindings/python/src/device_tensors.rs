//! The tensors of a workload in the memory of a device. Arrays that share memory share it there, too: those whose bytes lie
//! between each other's are parts of one buffer, at the same distances. An array that shares nothing becomes a dense tensor.

use std::cell::Cell;

use pto_host::workload::{TensorBinding, WorkloadBindings};
use pto_host::{Device, DeviceBuffer};
use pto_workload::clock::{BoundTensor, row_major};
use pto_workload::tree::Workload;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::workload::TensorMemory;

/// An array, and its position in a buffer.
struct PlacedArray {
    name: String,
    shape: Vec<u64>,
    here: BoundTensor<'static>,
    /// Elements of the buffer in front of its first one.
    first: i64,
    strides: Vec<i64>,
    item: usize,
    is_written: bool,
}

/// Arrays that share memory.
struct ArrayGroup {
    bytes: usize,
    arrays: Vec<PlacedArray>,
}

/// The tensors of a run, before they are on a device.
pub(crate) struct HostTensors(Vec<ArrayGroup>);

/// The tensors of a run, on a device.
pub(crate) struct OnDevice(Vec<(ArrayGroup, DeviceBuffer<u8>)>);

impl HostTensors {
    /// Finds out which arrays share memory.
    ///
    /// # Safety
    /// The arrays live as long as the result, and nothing else uses their memory while its methods run.
    pub(crate) unsafe fn of(workload: &Workload, operands: &[TensorMemory]) -> PyResult<Self> {
        let mut sorted: Vec<&TensorMemory> = operands.iter().collect();
        sorted.sort_by_key(|operand| operand.memory.addresses().start);
        let mut groups: Vec<(std::ops::Range<usize>, Vec<&TensorMemory>)> = Vec::new();
        for operand in sorted {
            let bytes = operand.memory.addresses();
            match groups.last_mut().filter(|(known, _)| bytes.start < known.end) {
                Some((known, members)) => {
                    known.end = known.end.max(bytes.end);
                    members.push(operand);
                }
                None => groups.push((bytes, vec![operand])),
            }
        }
        let mut found = Vec::new();
        for (bytes, members) in groups {
            let is_alone = members.len() == 1;
            let start = if is_alone { None } else { Some(bytes.start) };
            // SAFETY: the caller keeps the contract.
            let place_in_buffer =
                |operand: &&TensorMemory| unsafe { placed(workload, operand, start) };
            let arrays: Vec<PlacedArray> =
                members.iter().map(place_in_buffer).collect::<PyResult<_>>()?;
            let dense = |one: &PlacedArray| elements(&one.shape).saturating_mul(one.item);
            let bytes = if is_alone { arrays.iter().map(dense).sum() } else { bytes.len() };
            found.push(ArrayGroup { bytes, arrays });
        }
        Ok(Self(found))
    }

    /// Copies them to a device.
    pub(crate) fn upload(self, device: &Device) -> Result<OnDevice, pto_host::Error> {
        let upload = |group: ArrayGroup| {
            let mut bytes = Vec::new();
            let refused = |_| pto_host::Error::HostMemory { bytes: group.bytes };
            bytes.try_reserve_exact(group.bytes).map_err(refused)?;
            bytes.resize(group.bytes, 0);
            for array in &group.arrays {
                array.each_run(|here, there| {
                    let to = bytes.get_mut(there).into_iter().flatten();
                    to.zip(here).for_each(|(to, from)| *to = from.get());
                });
            }
            let buffer = device.upload(&bytes)?;
            Ok((group, buffer))
        };
        self.0.into_iter().map(upload).collect::<Result<_, _>>().map(OnDevice)
    }
}

impl OnDevice {
    /// Where a workload finds them.
    pub(crate) fn bind(&self, mut bindings: WorkloadBindings) -> WorkloadBindings {
        for (group, buffer) in &self.0 {
            for array in &group.arrays {
                // Strides that are negative were refused.
                let unsigned = |stride: &i64| u64::try_from(*stride).unwrap_or(u64::MAX);
                let binding = TensorBinding {
                    base: buffer.address(),
                    bytes: group.bytes as u64,
                    first: unsigned(&array.first),
                    strides: array.strides.iter().map(unsigned).collect(),
                };
                bindings = bindings.strided(&array.name, binding);
            }
        }
        bindings
    }

    /// Copies what tasks write back to the arrays.
    pub(crate) fn download(&self) -> Result<(), pto_host::Error> {
        for (group, buffer) in &self.0 {
            if !group.arrays.iter().any(|array| array.is_written) {
                continue;
            }
            let bytes = buffer.read()?;
            for array in group.arrays.iter().filter(|array| array.is_written) {
                array.each_run(|here, there| {
                    let from = bytes.get(there).into_iter().flatten();
                    here.iter().zip(from).for_each(|(to, from)| to.set(*from));
                });
            }
        }
        Ok(())
    }
}

/// An array in a buffer that begins at the address `start`, or, where it is alone, in one of its own.
///
/// # Safety
/// As [`HostTensors::of`].
unsafe fn placed(
    workload: &Workload,
    operand: &TensorMemory,
    start: Option<usize>,
) -> PyResult<PlacedArray> {
    let (tensor, memory) = (&workload.tensors[operand.number], &operand.memory);
    let item = memory.item();
    let refused = |what: &str| {
        let name = &tensor.name;
        PyRuntimeError::new_err(format!(
            "The tensor {name} shares memory with another one and {what}. A device has no such tensor. Pass a copy."
        ))
    };
    // SAFETY: the caller keeps the contract.
    let here = unsafe { memory.bound() };
    let (first, strides) = match start {
        None => (0, row_major(&tensor.shape)),
        Some(start) => {
            let before = memory.addresses().start - start;
            if !before.is_multiple_of(item) {
                return Err(refused("is not aligned to its elements there"));
            }
            if memory.strides().iter().any(|stride| *stride < 0) {
                return Err(refused("goes backwards in it"));
            }
            let before = i64::try_from(before / item).unwrap_or(i64::MAX);
            (before + memory.first(), memory.strides().to_vec())
        }
    };
    let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
    Ok(PlacedArray { name, shape, here, first, strides, item, is_written: operand.is_written })
}

/// How many elements there are.
fn elements(shape: &[u64]) -> usize {
    let product = shape.iter().fold(1_u64, |product, extent| product.saturating_mul(*extent));
    usize::try_from(product).unwrap_or(usize::MAX)
}

impl PlacedArray {
    /// Calls `f` for all elements, with their bytes here and their range in the buffer: for whole rows, if both have them
    /// contiguously.
    fn each_run(&self, mut f: impl FnMut(&[Cell<u8>], std::ops::Range<usize>)) {
        if self.shape.contains(&0) {
            return;
        }
        let is_contiguous = self.here.strides.last() == Some(&1) && self.strides.last() == Some(&1);
        let outer = self.shape.len() - usize::from(is_contiguous);
        let length = self.shape.get(outer).map_or(1, |extent| elements(&[*extent])) * self.item;
        let mut index = vec![0_i64; outer];
        loop {
            let at = |first: i64, strides: &[i64]| {
                let steps = index.iter().zip(strides).map(|(index, stride)| index * stride);
                usize::try_from(first + steps.sum::<i64>()).unwrap_or(0) * self.item
            };
            let (here, there) =
                (at(self.here.first, &self.here.strides), at(self.first, &self.strides));
            if let Some(bytes) = self.here.memory.get(here..here + length) {
                f(bytes, there..there + length);
            }
            if !self.advance(&mut index) {
                return;
            }
        }
    }

    /// The next index; false: that was the last one.
    fn advance(&self, index: &mut [i64]) -> bool {
        for (at, extent) in index.iter_mut().zip(&self.shape).rev() {
            *at += 1;
            if at.cast_unsigned() < *extent {
                return true;
            }
            *at = 0;
        }
        false
    }
}

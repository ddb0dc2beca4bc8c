//! The arguments of a call, and their copies in the device's memory.

use std::ffi::c_void;

use pto_host::DeviceMemory;
use pto_host::abi::GmAddr;
use pto_native::{Failure, FailureKind};

use crate::wire::{ChipTensor, MAX_DIMS, element_of};

/// What a program does to an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads it.
    In,
    /// It writes it. The device's copy begins as the host's.
    Out,
    /// Both.
    InOut,
}

/// Where an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySpace {
    /// In memory of the host: copied in before the run, and back after it.
    Host,
    /// In memory of the device, or in memory that stays where it is: used as it is.
    Device,
}

/// A tensor of a call: dense, the last dimension the innermost one.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// The tensor's first byte.
    pub pointer: *mut c_void,
    /// At most 5 extents.
    pub shape: &'a [u32],
    /// The number of a `DataType`.
    pub dtype: u8,
    /// What the program does to it.
    pub role: Role,
    /// Where it is.
    pub space: MemorySpace,
}

/// The arguments of a program.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Tensors, at most 256.
    pub tensors: &'a [Tensor<'a>],
    /// Scalars, at most 128.
    pub scalars: &'a [u64],
}

/// A host buffer and its copy.
struct HostCopy {
    host: *mut u8,
    bytes: usize,
    device: GmAddr,
    goes_back: bool,
}

/// The tensors of a call where the device finds them. Copies are freed on drop.
pub(crate) struct DeviceTensors<'m> {
    memory: &'m DeviceMemory,
    tensors: Vec<ChipTensor>,
    copies: Vec<HostCopy>,
}

impl<'m> DeviceTensors<'m> {
    /// Copies the host's tensors into the device's memory. Tensors at the same address share a copy.
    ///
    /// # Safety
    /// Host pointers are valid for their sizes.
    pub(crate) unsafe fn new(memory: &'m DeviceMemory, call: &Call<'_>) -> Result<Self, Failure> {
        let refused = |message: String| Err(Failure::new(FailureKind::INVALID_ARGUMENT, message));
        if call.tensors.len() > 256 || call.scalars.len() > 128 {
            let (tensors, scalars) = (call.tensors.len(), call.scalars.len());
            return refused(format!(
                "{tensors} tensors and {scalars} scalars: a program takes at most 256 and 128"
            ));
        }
        let mut arguments = Self { memory, tensors: Vec::new(), copies: Vec::new() };
        for (at, tensor) in call.tensors.iter().enumerate() {
            if tensor.shape.len() > MAX_DIMS || element_of(tensor.dtype).is_none() {
                return refused(format!(
                    "tensor {at} has {} dimensions and the data type {}: at most 5, and a DataType",
                    tensor.shape.len(),
                    tensor.dtype
                ));
            }
            let mut descriptor =
                ChipTensor::dense(tensor.pointer.addr() as u64, tensor.dtype, tensor.shape);
            if tensor.space == MemorySpace::Host && !descriptor.is_empty() {
                if tensor.pointer.is_null() {
                    return refused(format!("tensor {at} is a null pointer"));
                }
                // SAFETY: the caller vouches for the pointer.
                descriptor.address = unsafe { arguments.copy(tensor, descriptor.bytes) }?.0;
            }
            descriptor.address_space = u8::from(tensor.space == MemorySpace::Device);
            arguments.tensors.push(descriptor);
        }
        Ok(arguments)
    }

    /// # Safety
    /// As `new`.
    unsafe fn copy(&mut self, tensor: &Tensor<'_>, bytes: u64) -> Result<GmAddr, Failure> {
        let host = tensor.pointer.cast::<u8>();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let goes_back = tensor.role != Role::In;
        let is_same = |copy: &&mut HostCopy| copy.host == host && copy.bytes == bytes;
        if let Some(copy) = self.copies.iter_mut().find(is_same) {
            copy.goes_back |= goes_back;
            return Ok(copy.device);
        }
        let device = self.memory.alloc(bytes as u64)?;
        self.copies.push(HostCopy { host, bytes, device, goes_back });
        // SAFETY: the caller vouches for the pointer.
        let from = unsafe { std::slice::from_raw_parts(host, bytes) };
        self.memory.copy_to_device(device, from)?;
        Ok(device)
    }

    /// The tensors, in the order of the call.
    pub(crate) fn tensors(&self) -> &[ChipTensor] {
        &self.tensors
    }

    /// Copies back what the program wrote.
    ///
    /// # Safety
    /// As `new`; nothing else uses the memory meanwhile.
    pub(crate) unsafe fn finish(&self, memory: &DeviceMemory) -> Result<(), Failure> {
        for copy in self.copies.iter().filter(|copy| copy.goes_back) {
            // SAFETY: the caller vouches for the pointer.
            let to = unsafe { std::slice::from_raw_parts_mut(copy.host, copy.bytes) };
            memory.copy_from_device(copy.device, to)?;
        }
        Ok(())
    }
}

impl Drop for DeviceTensors<'_> {
    fn drop(&mut self) {
        for copy in &self.copies {
            // It was allocated by us, and is freed once.
            self.memory.free(copy.device).unwrap_or_default();
        }
    }
}

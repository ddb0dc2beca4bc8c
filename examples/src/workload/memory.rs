//! The memory of a workload's tensors on this machine: what is given, what is drawn, what the reference makes of it.

use std::vec;
use std::vec::Vec;

use pto_host::workloads::tile::DType as TileDType;
use pto_host::workloads::tree::Tensor as WorkloadTensor;

use crate::host::dtype::{DType, ElementVec};
use crate::host::job::index;
use crate::host::random::Rng;
use crate::host::tensor::Tensor;

/// A tensor's memory, aligned to every element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) words: Vec<u64>,
    pub(super) bytes: usize,
}

impl Memory {
    /// Bytes of a tensor; `u64::MAX` means more than 64 bits can hold.
    pub(super) fn bytes_of(tensor: &WorkloadTensor) -> u64 {
        let elements =
            tensor.shape.iter().fold(1_u64, |product, extent| product.saturating_mul(*extent));
        elements.saturating_mul(tensor.dtype.bytes() as u64)
    }

    /// Zeros. The device has been seen to have room for the tensor.
    pub(super) fn zeroed(tensor: &WorkloadTensor) -> Self {
        let bytes = index(Self::bytes_of(tensor));
        Self { words: vec![0; bytes.div_ceil(8).max(1)], bytes }
    }

    /// Numbers in [-1, 1), where the tensor has floats; zeros where it has integers, which are numbers of things.
    pub(super) fn drawn(tensor: &WorkloadTensor, seed: u64) -> Self {
        use pto_host::workloads::tile::element::bits_of;
        let mut memory = Self::zeroed(tensor);
        if !tensor.dtype.is_float() {
            return memory;
        }
        let mut random = Rng::new(seed, &tensor.name);
        let size = tensor.dtype.bytes();
        let used = memory.bytes;
        for element in bytemuck::cast_slice_mut::<_, u8>(&mut memory.words)[..used].chunks_mut(size)
        {
            let bits = bits_of(tensor.dtype, random.unit()).to_le_bytes();
            element.copy_from_slice(&bits[..size]);
        }
        memory
    }

    /// The elements that a user gave; `None`: another number of them.
    pub(super) fn given(tensor: &WorkloadTensor, given: &Tensor) -> Option<Self> {
        let mut memory = Self::zeroed(tensor);
        let used = memory.bytes;
        let bytes = given.bytes();
        let to = &mut bytemuck::cast_slice_mut::<_, u8>(&mut memory.words)[..used];
        (to.len() == bytes.len()).then_some(())?;
        to.copy_from_slice(&bytes);
        Some(memory)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    /// As a NumPy file holds it.
    pub(super) fn tensor(&self, tensor: &WorkloadTensor) -> Option<Tensor> {
        let elements = ElementVec::from_bytes(file_type(tensor.dtype), self.as_bytes());
        Tensor::new(tensor.shape.clone(), elements)
    }
}

/// The type of a tensor's elements in a NumPy file. Floats of 16 bits are held as their bits, as in the files of a graph.
pub(super) const fn file_type(dtype: TileDType) -> DType {
    match dtype {
        TileDType::F32 => DType::F32,
        TileDType::F64 => DType::F64,
        TileDType::I8 => DType::I8,
        TileDType::I16 => DType::I16,
        TileDType::I32 => DType::I32,
        TileDType::I64 => DType::I64,
        TileDType::U8 => DType::U8,
        TileDType::U16 | TileDType::F16 | TileDType::BF16 => DType::U16,
        TileDType::U32 => DType::U32,
        TileDType::U64 => DType::U64,
    }
}

//! The memory of a workload's tensors on this machine: what is given, what is drawn, what the reference makes of it.

use std::vec;
use std::vec::Vec;

use pto_host::workloads::tile::DType as TileDType;
use pto_host::workloads::tree::Tensor as WorkloadTensor;

use crate::host::dtype::DType;
use crate::host::job::index;
use crate::host::random::Random;
use crate::host::tensor::{Elements, Tensor};

/// A tensor's memory, aligned to every element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) words: Vec<u64>,
    pub(super) bytes: usize,
}

impl Memory {
    /// Zeros.
    pub(super) fn zeroed(tensor: &WorkloadTensor) -> Self {
        let elements =
            tensor.shape.iter().fold(1_u64, |product, extent| product.saturating_mul(*extent));
        let bytes = index(elements.saturating_mul(tensor.dtype.bytes() as u64));
        Self { words: vec![0; bytes.div_ceil(8).max(1)], bytes }
    }

    /// Numbers in [-1, 1), where the tensor has floats; zeros where it has integers, which are numbers of things.
    pub(super) fn drawn(tensor: &WorkloadTensor, seed: u64) -> Self {
        use pto_host::workloads::tile::element::bits_of;
        let mut memory = Self::zeroed(tensor);
        if !tensor.dtype.is_float() {
            return memory;
        }
        let mut random = Random::new(seed, &tensor.name);
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
        let bits = given.bits();
        let to = &mut bytemuck::cast_slice_mut::<_, u8>(&mut memory.words)[..used];
        (to.len() == 4 * bits.len()).then_some(())?;
        to.copy_from_slice(bytemuck::cast_slice(&bits));
        Some(memory)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    /// As a NumPy file holds it; `None`: its elements are of a type that has none here.
    pub(super) fn tensor(&self, tensor: &WorkloadTensor) -> Option<Tensor> {
        let words = self.as_bytes().as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let elements = match file_type(tensor.dtype)? {
            DType::F32 => Elements::F32(words.map(f32::from_bits).collect()),
            DType::I32 => Elements::I32(words.map(u32::cast_signed).collect()),
        };
        Tensor::new(tensor.shape.clone(), elements)
    }
}

/// The type of a tensor's elements in a NumPy file.
pub(super) const fn file_type(dtype: TileDType) -> Option<DType> {
    match dtype {
        TileDType::F32 => Some(DType::F32),
        // The bits of one are those of the other.
        TileDType::I32 | TileDType::U32 => Some(DType::I32),
        _ => None,
    }
}

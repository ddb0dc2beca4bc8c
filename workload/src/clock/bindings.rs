//! What a run gets: the memory of tensors, sizes, symbols and arrays, by name.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::scalars::Scalars;
use crate::tree::{Checked, Workload};
use pto_aicore_kernels::tile::view::tensor_of;

use super::foreign::Foreign;
use super::report::RunError;

/// The memory of a tensor.
#[derive(Clone, Debug)]
pub struct BoundTensor<'a> {
    /// The whole memory: no access leaves it.
    pub memory: &'a [Cell<u8>],
    /// The first element, in elements.
    pub first: i64,
    /// A stride for each dimension, in elements.
    pub strides: Vec<i64>,
}

/// What a run gets.
#[derive(Clone, Default)]
pub struct Bindings<'a> {
    tensors: BTreeMap<String, BoundTensor<'a>>,
    scalars: Scalars,
    arrays: BTreeMap<String, &'a [i32]>,
    foreign: BTreeMap<String, &'a dyn Foreign>,
}

impl std::fmt::Debug for Bindings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tensors, scalars, arrays, foreign } = self;
        f.debug_struct("Bindings")
            .field("tensors", tensors)
            .field("scalars", scalars)
            .field("arrays", arrays)
            .field("foreign", &foreign.keys())
            .finish()
    }
}

impl<'a> Bindings<'a> {
    /// An empty set of bindings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The memory of a tensor.
    #[must_use]
    pub fn tensor(mut self, name: &str, bound: BoundTensor<'a>) -> Self {
        self.tensors.insert(name.to_owned(), bound);
        self
    }

    /// The memory of a dense tensor in row-major order.
    ///
    /// # Errors
    /// The workload has no such tensor.
    pub fn dense<T: bytemuck::Pod>(
        self,
        checked: &Checked,
        name: &str,
        elements: &'a mut [T],
    ) -> Result<Self, RunError> {
        let tensor = checked.workload().tensors.iter().find(|tensor| tensor.name == name);
        let tensor = tensor.ok_or_else(|| RunError::UnknownTensor(name.to_owned()))?;
        let strides = row_major(&tensor.shape);
        Ok(self.tensor(name, BoundTensor { memory: tensor_of(elements), first: 0, strides }))
    }

    crate::scalar_setters!();

    /// A symbol that is an array.
    #[must_use]
    pub fn array(mut self, name: &str, elements: &'a [i32]) -> Self {
        self.arrays.insert(name.to_owned(), elements);
        self
    }

    /// The body of the kernel with this name, instead of its instructions.
    #[must_use]
    pub fn foreign(mut self, kernel: &str, body: &'a dyn Foreign) -> Self {
        self.foreign.insert(kernel.to_owned(), body);
        self
    }

    pub(super) fn find_foreign(&self, kernel: &str) -> Option<&'a dyn Foreign> {
        self.foreign.get(kernel).copied()
    }

    pub(super) fn find_symbol(&self, name: &str) -> Result<u64, RunError> {
        let found = self.scalars.symbols.get(name).copied();
        found.ok_or_else(|| RunError::MissingSymbol(name.to_owned()))
    }

    /// A symbol that need not be bound.
    pub(super) fn symbol_or(&self, name: &str, default: u64) -> u64 {
        self.scalars.symbols.get(name).copied().unwrap_or(default)
    }

    pub(super) fn find_size(&self, name: &str, default: Option<u64>) -> Result<u64, RunError> {
        let found = self.scalars.sizes.get(name).copied().or(default);
        found.ok_or_else(|| RunError::MissingSymbol(name.to_owned()))
    }

    /// At least `needed` elements of an array.
    pub(super) fn find_array(&self, name: &str, needed: u64) -> Result<&'a [i32], RunError> {
        let found = self.arrays.get(name).copied();
        let found = found.ok_or_else(|| RunError::MissingArray(name.to_owned()))?;
        let enough = usize::try_from(needed).ok().and_then(|needed| found.get(..needed));
        enough.ok_or_else(|| RunError::ArrayTooShort {
            name: name.to_owned(),
            needed,
            found: found.len(),
        })
    }

    /// The tensors of a workload, in its order.
    pub(super) fn bound(&self, workload: &Workload) -> Result<Vec<BoundTensor<'a>>, RunError> {
        let of = |tensor: &crate::tree::Tensor| {
            let bound = self.tensors.get(&tensor.name);
            let bound = bound.ok_or_else(|| RunError::MissingTensor(tensor.name.clone()))?;
            let (needed, found) = (tensor.shape.len(), bound.strides.len());
            if needed == found {
                return Ok(bound.clone());
            }
            Err(RunError::Strides { name: tensor.name.clone(), needed, found })
        };
        workload.tensors.iter().map(of).collect()
    }
}

/// The strides of a dense tensor.
#[must_use]
pub fn row_major(shape: &[u64]) -> Vec<i64> {
    let mut stride = 1i64;
    let mut strides: Vec<i64> = shape
        .iter()
        .rev()
        .map(|extent| {
            let found = stride;
            stride = stride.saturating_mul(i64::try_from(*extent).unwrap_or(i64::MAX));
            found
        })
        .collect();
    strides.reverse();
    strides
}

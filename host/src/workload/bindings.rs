//! What a workload is bound to: addresses of tensors and arrays, sizes and symbols, by name.

use std::collections::{BTreeMap, BTreeSet};

use pto_abi::GmAddr;
use pto_aicore_kernels::KernelFn;
use pto_aicore_kernels::cost::{self, OnChip};
use pto_graph::TensorView;
use pto_graph::plan::layout::binding;
use pto_graph::plan::task::descriptor;
use pto_workload::TileKernel;
use pto_workload::plan::{Compiled, SymbolUse};
use pto_workload::scalars::Scalars;
use pto_workload::tree::Tensor;

use crate::buffer::DeviceBuffer;

/// Something that is bound wrongly, or not at all.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    /// A tensor, array, size or symbol is not bound.
    #[error("the {what} {name} is not bound; bind it before the run")]
    Missing {
        /// What it is.
        what: &'static str,
        /// The name of the missing binding.
        name: String,
    },
    /// A tensor is bound with strides for another number of dimensions.
    #[error("the tensor {name} has {needed} dimensions, and is bound with {found} strides")]
    Strides {
        /// The tensor.
        name: String,
        /// Its dimensions.
        needed: usize,
        /// The strides.
        found: usize,
    },
    /// Something is bound that the workload does not have.
    #[error("the workload has no {what} {name}")]
    Unknown {
        /// What it was bound as.
        what: &'static str,
        /// The name.
        name: String,
    },
}

crate::debug_as_display::debug_as_display!(BindingError);

/// An array of an axis in GM: elements of type `i32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayBinding {
    /// The array's first element.
    pub address: GmAddr,
    /// How many elements it has.
    pub length: u64,
}

/// A tensor in GM, as a strided part of some memory. Tensors that share memory are parts of the same memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorBinding {
    /// The first byte of the memory.
    pub base: GmAddr,
    /// Bytes of the memory.
    pub bytes: u64,
    /// Elements in front of the tensor's first one.
    pub first: u64,
    /// Distances in elements, one for each dimension.
    pub strides: Vec<u64>,
}

/// Where a tensor is.
#[derive(Clone, Debug)]
enum TensorPlacement {
    /// In row-major order, with nothing else in its memory.
    Dense(GmAddr),
    Strided(TensorBinding),
}

/// What a workload is bound to.
#[derive(Clone, Debug, Default)]
pub struct WorkloadBindings {
    tensors: BTreeMap<String, TensorPlacement>,
    arrays: BTreeMap<String, ArrayBinding>,
    scalars: Scalars,
    grain: u64,
    functions: BTreeMap<String, KernelFn>,
    on_chip: Option<(OnChip, BTreeSet<String>)>,
}

impl WorkloadBindings {
    /// An empty set of bindings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where a tensor is that is dense, in row-major order.
    #[must_use]
    pub fn tensor(mut self, name: &str, address: GmAddr) -> Self {
        self.tensors.insert(name.to_owned(), TensorPlacement::Dense(address));
        self
    }

    /// Where a tensor is that has strides, or shares its memory with another one.
    #[must_use]
    pub fn strided(mut self, name: &str, tensor: TensorBinding) -> Self {
        self.tensors.insert(name.to_owned(), TensorPlacement::Strided(tensor));
        self
    }

    /// Where an array is, and how many elements it has.
    #[must_use]
    pub fn array(mut self, name: &str, array: ArrayBinding) -> Self {
        self.arrays.insert(name.to_owned(), array);
        self
    }

    /// An array that is a buffer.
    #[must_use]
    pub fn array_of(self, name: &str, buffer: &DeviceBuffer<i32>) -> Self {
        let array = ArrayBinding { address: buffer.address(), length: buffer.len() as u64 };
        self.array(name, array)
    }

    pto_workload::scalar_setters!();

    /// How many calls of a kernel one dispatch has at most: 1 puts none together. Without it, the expansion chooses by the work of the
    /// kernel and the cores of the device.
    #[must_use]
    pub const fn grain(mut self, calls: u64) -> Self {
        self.grain = calls;
        self
    }

    /// The body of this kernel is a function of this process, which gets the words of a task ([`pto_graph::plan::task`]): what [`run_body`](super::run_body)
    /// reads. Such a workload runs on the simulator only. The time that the function takes is unknown.
    #[must_use]
    pub fn function(mut self, kernel: &str, body: KernelFn) -> Self {
        self.functions.insert(kernel.to_owned(), body);
        self
    }

    /// Kernels whose bodies are functions.
    pub(super) const fn functions(&self) -> &BTreeMap<String, KernelFn> {
        &self.functions
    }

    /// These tensors are in the fast region of the device, where a transfer costs less.
    pub(crate) fn on_chip(mut self, costs: OnChip, tensors: BTreeSet<String>) -> Self {
        self.on_chip = (!tensors.is_empty()).then_some((costs, tensors));
        self
    }

    /// Picoseconds of each tile kernel, as it is bound.
    fn kernel_costs(&self, compiled: &Compiled) -> Vec<u64> {
        let kernels = compiled.tile_kernels().iter();
        let Some((costs, there)) = &self.on_chip else {
            return kernels.map(|kernel| cost::tile_kernel(kernel.code())).collect();
        };
        let is_there = |tensor: usize| {
            compiled.tensors().get(tensor).is_some_and(|tensor| there.contains(&tensor.name))
        };
        let of = |(kernel, params): (&TileKernel, Vec<usize>)| {
            cost::tile_kernel_on_chip(kernel.code(), &params, *costs)
        };
        kernels.zip(compiled.params_of(is_there)).map(of).collect()
    }

    /// The words of the bindings of a workload, all but those of the head.
    pub(crate) fn words(&self, compiled: &Compiled) -> Result<Vec<u64>, BindingError> {
        self.check_known(compiled)?;
        let (symbols, arrays, tensors) =
            (compiled.symbols(), compiled.arrays(), compiled.tensors());
        let kernels = compiled.tile_kernels();
        let sizes = [symbols.len(), arrays.len(), tensors.len(), kernels.len()];
        let mut words = vec![0; binding::words(sizes)];
        let counts = sizes.map(|count| count as u64);
        words[binding::COUNTS] = counts[0] | counts[1] << 16 | counts[2] << 32 | counts[3] << 48;
        words[binding::GRAIN] = self.grain;
        for (word, (name, used)) in words[binding::HEAD..].iter_mut().zip(symbols) {
            *word = self.symbol_value(name, *used)?;
        }
        let at = binding::arrays_at(symbols.len());
        for (words, name) in words[at..].chunks_mut(binding::ARRAY).zip(arrays) {
            let found = self.arrays.get(name).ok_or_else(|| missing("array", name))?;
            words.copy_from_slice(&[found.address.0, found.length]);
        }
        let at = binding::tensors_at(symbols.len(), arrays.len());
        for (words, tensor) in words[at..].chunks_mut(binding::TENSOR).zip(tensors) {
            let placed = self.tensors.get(&tensor.name);
            describe(tensor, placed.ok_or_else(|| missing("tensor", &tensor.name))?, words)?;
        }
        let at = binding::costs_at([symbols.len(), arrays.len(), tensors.len()]);
        for (word, picoseconds) in words[at..].iter_mut().zip(self.kernel_costs(compiled)) {
            *word = picoseconds.div_ceil(1_000);
        }
        for (word, (name, _)) in words[at..].iter_mut().zip(compiled.kernels()) {
            if self.functions.contains_key(name) {
                *word = 0;
            }
        }
        Ok(words)
    }

    fn symbol_value(&self, name: &str, used: SymbolUse) -> Result<u64, BindingError> {
        match used {
            SymbolUse::Size(default) => self
                .scalars
                .sizes
                .get(name)
                .copied()
                .or(default)
                .ok_or_else(|| missing("size", name)),
            SymbolUse::Number | SymbolUse::Float => {
                self.scalars.symbols.get(name).copied().ok_or_else(|| missing("symbol", name))
            }
        }
    }

    /// Refuses everything that is bound by a name: a program that is no plan has nothing of the kind.
    pub(crate) fn check_empty(&self) -> Result<(), BindingError> {
        check("array", &self.arrays, |_| false)?;
        check("kernel", &self.functions, |_| false)?;
        check("size", &self.scalars.sizes, |_| false)?;
        check("symbol", &self.scalars.symbols, |_| false)
    }

    /// Whether the workload has everything that is bound.
    fn check_known(&self, compiled: &Compiled) -> Result<(), BindingError> {
        let is_size = |used: &SymbolUse| matches!(used, SymbolUse::Size(_));
        let symbols = compiled.symbols();
        let known = |name: &str, size: bool| {
            symbols.iter().any(|(known, used)| known == name && is_size(used) == size)
        };
        check("tensor", &self.tensors, |name| {
            compiled.tensors().iter().any(|tensor| tensor.name == name)
        })?;
        check("kernel", &self.functions, |name| {
            compiled.kernels().any(|(known, _)| known == name)
        })?;
        check("array", &self.arrays, |name| compiled.arrays().iter().any(|known| known == name))?;
        check("size", &self.scalars.sizes, |name| known(name, true))?;
        check("symbol", &self.scalars.symbols, |name| known(name, false))
    }
}

fn check<T>(
    what: &'static str,
    bound: &BTreeMap<String, T>,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), BindingError> {
    let unknown = bound.keys().find(|name| !is_known(name));
    unknown.map_or(Ok(()), |name| Err(BindingError::Unknown { what, name: name.clone() }))
}

fn missing(what: &'static str, name: &str) -> BindingError {
    BindingError::Missing { what, name: name.to_owned() }
}

/// The descriptor of a tensor; its extents fit, as compiling it has seen.
fn describe(
    tensor: &Tensor,
    placed: &TensorPlacement,
    words: &mut [u64],
) -> Result<(), BindingError> {
    let shape: Vec<u32> =
        tensor.shape.iter().map(|extent| u32::try_from(*extent).unwrap_or(u32::MAX)).collect();
    let (base, bytes, first, strides) = match placed {
        TensorPlacement::Dense(address) => {
            let view = TensorView::dense(*address, Compiled::element(tensor), &shape);
            (*address, view.tensor_bytes(), 0, view.strides().to_vec())
        }
        TensorPlacement::Strided(of) => (of.base, of.bytes, of.first, of.strides.clone()),
    };
    if strides.len() != shape.len() {
        let (needed, found) = (shape.len(), strides.len());
        return Err(BindingError::Strides { name: tensor.name.clone(), needed, found });
    }
    words[descriptor::BASE] = base.0;
    words[descriptor::BYTES] = bytes;
    words[descriptor::FIRST] = first;
    words[descriptor::STRIDES..descriptor::STRIDES + strides.len()].copy_from_slice(&strides);
    Ok(())
}

//! What a run is given: tensors by name, borrowed or moved, and sizes and symbols.

use super::tensor::Tensor;
use crate::workload::WorkloadBindings;

/// What a run is given. Each call adds one thing.
#[derive(Default)]
pub struct Inputs<'t> {
    pub(super) tensors: Vec<(String, RunInput<'t>)>,
    /// The arrays of ragged and sparse axes.
    pub(super) arrays: Vec<(String, &'t Tensor)>,
    pub(super) values: WorkloadBindings,
}

/// How a tensor is given.
pub(super) enum RunInput<'t> {
    /// The program reads it, and the caller keeps it.
    Borrowed(&'t Tensor),
    /// The program changes it, and the caller keeps it.
    Updated(&'t mut Tensor),
    /// The program's output goes there.
    Into(&'t mut Tensor),
    /// The caller has moved the tensor into the run.
    Moved(Tensor),
}

impl RunInput<'_> {
    pub(super) const fn tensor(&self) -> &Tensor {
        match self {
            Self::Borrowed(tensor) => tensor,
            Self::Updated(tensor) | Self::Into(tensor) => tensor,
            Self::Moved(tensor) => tensor,
        }
    }

    /// How, in a sentence.
    pub(super) const fn how(&self) -> &'static str {
        match self {
            Self::Borrowed(_) => "borrowed",
            Self::Updated(_) => "given to be updated",
            Self::Into(_) => "given as a target",
            Self::Moved(_) => "moved",
        }
    }
}

impl<'t> Inputs<'t> {
    /// An empty set of inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, name: &str, given: RunInput<'t>) -> Self {
        self.tensors.push((name.to_owned(), given));
        self
    }

    /// The program reads a tensor, and the caller keeps it.
    #[must_use]
    pub fn borrow(self, name: &str, tensor: &'t Tensor) -> Self {
        self.with(name, RunInput::Borrowed(tensor))
    }

    /// The program updates a tensor in place, and the caller keeps it.
    #[must_use]
    pub fn update(self, name: &str, tensor: &'t mut Tensor) -> Self {
        self.with(name, RunInput::Updated(tensor))
    }

    /// The program gets a tensor for good. An input's memory goes to later tensors of the stream; a tensor that is updated is among the
    /// outputs.
    #[must_use]
    pub fn give(self, name: &str, tensor: Tensor) -> Self {
        self.with(name, RunInput::Moved(tensor))
    }

    /// An output goes into a tensor that there is, instead of a new one.
    #[must_use]
    pub fn into(self, name: &str, tensor: &'t mut Tensor) -> Self {
        self.with(name, RunInput::Into(tensor))
    }

    /// An array of a ragged or sparse axis: a dense tensor of type `i32`. The builder reads it when the run begins, so that this run begins
    /// when the one before it has ended, also in a stream that overlaps them.
    #[must_use]
    pub fn array(mut self, name: &str, array: &'t Tensor) -> Self {
        self.arrays.push((name.to_owned(), array));
        self
    }

    /// The size of a dynamic axis.
    #[must_use]
    pub fn size(mut self, name: &str, size: u64) -> Self {
        self.values = self.values.size(name, size);
        self
    }

    /// A number of the program.
    #[must_use]
    pub fn symbol(mut self, name: &str, value: u64) -> Self {
        self.values = self.values.symbol(name, value);
        self
    }

    /// How many calls of a tile kernel share a dispatch at most; without it the device chooses (docs/how-to/workloads.md).
    #[must_use]
    pub fn grain(mut self, calls: u64) -> Self {
        self.values = self.values.grain(calls);
        self
    }

    /// A number of type `f32` of the program.
    #[must_use]
    pub fn symbol_f32(mut self, name: &str, value: f32) -> Self {
        self.values = self.values.symbol_f32(name, value);
        self
    }
}

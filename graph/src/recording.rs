//! Recording a part of a streaming program, to be replayed with other tensors and scalars.

use crate::tensor::{TensorView, ViewDefect};
use crate::tensor_task::Arg;

/// Tensors that a recording may leave open, and scalars.
pub const MAX_BOUND: usize = 64;

/// A part of a program that was recorded: its tasks, their arguments, the edges between them, and what it reads and
/// writes of the tensors that it leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The generation of the run that it was made in; it is good for that run only.
    pub run: u32,
    /// Where the builder keeps it.
    pub at: u32,
    /// How many tasks it has.
    pub tasks: u32,
}

/// The tensors and words that a replay binds to the open arguments of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bindings<'a> {
    /// A view for each tensor, of the same element type, extents and strides. No two of them may overlap where the recording
    /// writes one.
    pub tensors: &'a [TensorView<'a>],
    /// A word for each scalar.
    pub scalars: &'a [u64],
}

/// The placeholders that the body of a recording uses for its open arguments.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// What the tensors look like.
    pub(crate) shapes: &'a [TensorView<'a>],
    /// The number of the recording in its run.
    pub(crate) serial: u32,
}

impl Bound<'_> {
    /// The tensor that a replay binds to this argument; a defective view where the recording has none.
    #[must_use]
    pub fn tensor(&self, index: usize) -> TensorView<'static> {
        match self.shapes.get(index) {
            Some(shape) => shape.placeholder(index, self.serial),
            None => TensorView::placeholder(&TensorView::default(), index, self.serial)
                .defective(ViewDefect::Range),
        }
    }

    /// The word that a replay binds to this argument.
    #[must_use]
    pub const fn scalar(&self, index: u32) -> Arg<'static> {
        Arg::BoundScalar(index)
    }
}

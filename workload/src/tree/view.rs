//! Tensors, and the views of them that tasks get.

use pto_aicore_kernels::tile::DType;

use super::expr::{BinaryOp, Expr};

/// A tensor: its memory and strides are bound when the workload runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The tensor's name.
    pub name: String,
    /// The tensor's element type.
    pub dtype: DType,
    /// The tensor's extents.
    pub shape: Vec<u64>,
}

/// The part of one dimension that a view selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// One index; the dimension is dropped.
    At(Expr),
    /// `length` indices from `start` on; the view keeps the dimension. Where the range exceeds the tensor, the tile is partial.
    Range {
        /// The first index.
        start: Expr,
        /// The number of indices.
        length: Expr,
    },
}

impl Index {
    /// The index in the tensor of an index of the view: a range counts from its beginning.
    #[must_use]
    pub(crate) fn element_at(&self, of_view: Expr) -> Expr {
        match self {
            Self::At(index) => index.clone(),
            Self::Range { start: Expr::Int(0), .. } => of_view,
            Self::Range { start, .. } => Expr::binary(BinaryOp::Add, start.clone(), of_view),
        }
    }
}

/// A view: indices for the leading dimensions; all others are whole. One or two dimensions stay, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSlice {
    /// The number of the tensor.
    pub tensor: usize,
    /// The indices.
    pub indices: Vec<Index>,
}

impl TensorSlice {
    /// A whole tensor, or a tensor at some indices of its leading dimensions.
    #[must_use]
    pub fn at(tensor: usize, places: impl IntoIterator<Item = Expr>) -> Self {
        Self { tensor, indices: places.into_iter().map(Index::At).collect() }
    }

    /// The dimensions that stay, of a tensor with this many.
    pub(crate) fn free(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        (0..rank).filter(|dimension| !matches!(self.indices.get(*dimension), Some(Index::At(_))))
    }
}

//! What a kernel is called with.

use super::view::TileView;

/// What a kernel is called with: a view for each tensor and the bits of each scalar, in the order of the parameters.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tensors.
    pub tensors: &'a [TileView<'a>],
    /// The scalars: the bits of an element of the parameter's type.
    pub scalars: &'a [u64],
}

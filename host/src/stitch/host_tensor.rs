//! A tensor of the host: its elements side by side, the last dimension the innermost one.

use pto_workload::tile::DType;

use super::error::StitchError;

/// A tensor of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    dtype: DType,
    shape: Vec<u64>,
    elements: Vec<u8>,
}

impl HostTensor {
    /// A tensor with these elements, in the order of memory.
    ///
    /// # Errors
    /// `Elements`: they are not as many as the extents say.
    pub fn new(dtype: DType, shape: &[u64], elements: Vec<u8>) -> Result<Self, StitchError> {
        let count = shape.iter().try_fold(1_u64, |product, extent| product.checked_mul(*extent));
        let bytes = count.and_then(|count| count.checked_mul(dtype.bytes() as u64));
        let (bytes, found) = (bytes.unwrap_or(u64::MAX), elements.len() as u64);
        if bytes == found && bytes > 0 {
            return Ok(Self { dtype, shape: shape.to_vec(), elements });
        }
        Err(StitchError::Elements { wanted: format!("{dtype}{shape:?}"), bytes, found })
    }

    /// A tensor of type `f32`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_f32(shape: &[u64], elements: &[f32]) -> Result<Self, StitchError> {
        let elements = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        Self::new(DType::F32, shape, elements)
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements, in the order of memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.elements
    }

    /// The elements, if they are of type `f32`.
    #[must_use]
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        let of_word = |word: &[u8; 4]| f32::from_le_bytes(*word);
        (self.dtype == DType::F32)
            .then(|| self.elements.as_chunks().0.iter().map(of_word).collect())
    }
}

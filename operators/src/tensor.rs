//! Types of tensors, and tensors in the memory of the host.

use std::fmt;

use crate::dtype::DType;
use crate::element::Element;
use crate::words::words;

words! {
    /// The type of a tensor: its elements, and its extents from the outermost dimension inwards. A scalar has no extents. An extent may be 0.
    #[derive(Eq, Hash)]
    pub struct TensorType {
        /// The element type.
        pub dtype: DType,
        /// The extents.
        pub shape: Vec<usize>,
    }
}

impl TensorType {
    /// The type of these elements and extents.
    #[must_use]
    pub fn new(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: shape.to_vec() }
    }

    /// How many dimensions it has.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// How many elements it has; saturates where 64 bits do not count them.
    #[must_use]
    pub fn elements(&self) -> usize {
        elements(&self.shape)
    }

    /// The extents of the tensor on a device or in a program file, which has one to five, each at least 1: where the type has other ones, those of a vector.
    #[must_use]
    pub fn stored_shape(&self) -> Vec<u64> {
        let is_kept = (1..=5).contains(&self.rank()) && self.elements() > 0;
        if is_kept {
            self.shape.iter().map(|extent| *extent as u64).collect()
        } else {
            vec![self.elements().max(1) as u64]
        }
    }

    /// Bytes of a dense tensor of this type; saturates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.elements().saturating_mul(self.dtype.bytes())
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// How many elements a tensor of these extents has; saturates.
#[must_use]
pub fn elements(shape: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(1, |product: usize, extent| product.saturating_mul(*extent))
}

/// A dense tensor in the memory of the host, row-major.
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor {
    ty: TensorType,
    bytes: Vec<u8>,
}

impl Tensor {
    /// A tensor of these bytes: elements in native byte order, row-major.
    ///
    /// # Errors
    /// The number of bytes, where it is not that of the type.
    pub fn from_bytes(ty: TensorType, bytes: Vec<u8>) -> Result<Self, usize> {
        if bytes.len() != ty.bytes() {
            return Err(bytes.len());
        }
        Ok(Self { ty, bytes })
    }

    /// A tensor of these elements; `None`: there are not as many as the shape says.
    #[must_use]
    pub fn from_elements<T: Element>(shape: &[usize], values: &[T]) -> Option<Self> {
        let ty = TensorType::new(T::DTYPE, shape);
        let bytes = values.iter().flat_map(|value| value.to_bytes()).collect();
        Self::from_bytes(ty, bytes).ok()
    }

    /// A tensor of one dimension.
    #[must_use]
    pub fn vector<T: Element>(values: &[T]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_bytes()).collect();
        Self { ty: TensorType::new(T::DTYPE, &[values.len()]), bytes }
    }

    /// A tensor without dimensions.
    #[must_use]
    pub fn scalar<T: Element>(value: T) -> Self {
        Self { ty: TensorType::new(T::DTYPE, &[]), bytes: value.to_bytes().collect() }
    }

    /// A tensor of zeros.
    #[must_use]
    pub fn zeros(ty: TensorType) -> Self {
        let bytes = vec![0; ty.bytes()];
        Self { ty, bytes }
    }

    /// The type.
    #[must_use]
    pub const fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }

    /// The elements, in native byte order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The bytes, without the type.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The elements; `None`: they have another type.
    #[must_use]
    pub fn to_elements<T: Element>(&self) -> Option<Vec<T>> {
        (self.ty.dtype == T::DTYPE)
            .then(|| self.bytes.chunks_exact(T::DTYPE.bytes()).map(T::from_slice).collect())
    }

    /// The elements as 64-bit integers; `None`: they are floats, or do not fit.
    #[must_use]
    pub fn to_integers(&self) -> Option<Vec<i64>> {
        if self.ty.dtype.is_float() {
            return None;
        }
        let chunks = self.bytes.chunks_exact(self.ty.dtype.bytes());
        chunks.map(|bytes| crate::element::integer(self.ty.dtype, bytes)).collect()
    }

    /// The elements as `f64`, each rounded to the nearest one.
    #[must_use]
    pub fn to_doubles(&self) -> Vec<f64> {
        let chunks = self.bytes.chunks_exact(self.ty.dtype.bytes());
        chunks.map(|bytes| crate::element::double(self.ty.dtype, bytes)).collect()
    }

    /// The same elements in other extents; `None`: these have another number of elements.
    #[must_use]
    pub fn reshaped(self, shape: &[usize]) -> Option<Self> {
        (elements(shape) == self.ty.elements())
            .then(|| Self { ty: TensorType::new(self.ty.dtype, shape), bytes: self.bytes })
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.ty)?;
        let shown: Vec<_> = self.to_doubles().into_iter().take(16).collect();
        write!(f, "{shown:?}")?;
        if self.ty.elements() > shown.len() { f.write_str("..") } else { Ok(()) }
    }
}

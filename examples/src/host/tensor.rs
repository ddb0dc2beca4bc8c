//! Tensors on the host side, and what an example says of the ones that it takes and gives.

use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

use crate::host::dtype::{DType, ElementVec};
use crate::host::error::{Error, shape_text};

/// A tensor, rows one after another (C order).
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<u64>,
    elements: ElementVec,
}

impl Tensor {
    /// A tensor; `None`: the shape has another number of elements.
    #[must_use]
    pub fn new(shape: Vec<u64>, elements: ElementVec) -> Option<Self> {
        let product = shape.iter().try_fold(1_u64, |a, b| a.checked_mul(*b));
        (product == u64::try_from(elements.count()).ok()).then_some(Self { shape, elements })
    }

    /// A tensor of `f32`.
    ///
    /// # Panics
    /// The shape has another number of elements.
    #[must_use]
    pub fn f32(shape: Vec<u64>, values: Vec<f32>) -> Self {
        match Self::new(shape, ElementVec::F32(values)) {
            Some(tensor) => tensor,
            None => panic!("the shape has another number of elements"),
        }
    }

    /// A tensor of `i32`.
    ///
    /// # Panics
    /// The shape has another number of elements.
    #[must_use]
    pub fn i32(shape: Vec<u64>, values: Vec<i32>) -> Self {
        match Self::new(shape, ElementVec::I32(values)) {
            Some(tensor) => tensor,
            None => panic!("the shape has another number of elements"),
        }
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements.
    #[must_use]
    pub const fn elements(&self) -> &ElementVec {
        &self.elements
    }

    /// The elements' bytes: two tensors with the same ones are the same to the last bit.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.elements.to_bytes()
    }

    /// How many elements are not finite.
    #[must_use]
    pub fn not_finite(&self) -> NotFinite {
        let count = |is: fn(&f64) -> bool| match &self.elements {
            ElementVec::F32(values) => {
                values.iter().filter(|value| is(&f64::from(**value))).count() as u64
            }
            ElementVec::F64(values) => values.iter().filter(|value| is(value)).count() as u64,
            _ => 0,
        };
        let (nan, infinite) = (count(|value| value.is_nan()), count(|value| value.is_infinite()));
        NotFinite { nan, infinite, of: self.shape.iter().product() }
    }

    /// The type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.elements.dtype()
    }
}

/// How many elements of a tensor are not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotFinite {
    /// Not a number.
    pub nan: u64,
    /// Infinite.
    pub infinite: u64,
    /// Of so many elements.
    pub of: u64,
}

/// A tensor that an example takes or gives.
#[derive(Clone, Copy, Debug)]
pub struct TensorSpec {
    /// Its name, as in `--input name=file.npy`.
    pub name: &'static str,
    /// The type of its elements.
    pub dtype: DType,
    /// What its extents are called: parameters, or extents that the example derives from them.
    pub dims: &'static [&'static str],
    /// What it means, in one line.
    pub help: &'static str,
}

impl TensorSpec {
    /// A tensor of `f32`.
    #[must_use]
    pub const fn f32(
        name: &'static str,
        dims: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, dtype: DType::F32, dims, help }
    }

    /// A tensor of `i32`.
    #[must_use]
    pub const fn i32(
        name: &'static str,
        dims: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, dtype: DType::I32, dims, help }
    }

    /// Checks type and rank.
    pub(crate) fn check_type(&self, tensor: &Tensor) -> Result<(), Error> {
        if tensor.dtype() != self.dtype {
            let (found, expected) = (tensor.dtype(), self.dtype);
            return Err(Error::InputType { input: self.name, found, expected });
        }
        if tensor.shape().len() != self.dims.len() {
            let expected = format!("{} extents: [{}]", self.dims.len(), self.dims.join(", "));
            return Err(self.refuse(tensor, expected));
        }
        Ok(())
    }

    /// Checks the extents; `extent` gives that of a dimension, `None`: any.
    pub(crate) fn check_shape(
        &self,
        tensor: &Tensor,
        extent: impl Fn(&str) -> Option<u64>,
    ) -> Result<(), Error> {
        let expected: Vec<_> = self.dims.iter().map(|dim| (*dim, extent(dim))).collect();
        let mut pairs = expected.iter().zip(tensor.shape());
        if pairs.all(|((_, expected), found)| expected.is_none_or(|extent| extent == *found)) {
            return Ok(());
        }
        let named: Vec<_> = expected
            .iter()
            .map(|(dim, extent)| match extent {
                Some(extent) => format!("{dim} = {extent}"),
                None => (*dim).to_owned(),
            })
            .collect();
        Err(self.refuse(tensor, format!("[{}]", named.join(", "))))
    }

    fn refuse(&self, tensor: &Tensor, expected: String) -> Error {
        Error::InputShape { input: self.name, found: shape_text(tensor.shape()), expected }
    }
}

/// The tensors that a user gives, by name.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    tensors: BTreeMap<String, Tensor>,
}

impl Inputs {
    /// Adds a tensor; returns the one that had the name before.
    pub fn insert(&mut self, name: &str, tensor: Tensor) -> Option<Tensor> {
        self.tensors.insert(name.to_owned(), tensor)
    }

    /// The tensor of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The values of an `f32` tensor, if the user gave it.
    #[must_use]
    pub fn f32(&self, name: &str) -> Option<&[f32]> {
        match self.get(name)?.elements() {
            ElementVec::F32(values) => Some(values),
            _ => None,
        }
    }

    /// The values of an `i32` tensor, if the user gave it.
    #[must_use]
    pub fn i32(&self, name: &str) -> Option<&[i32]> {
        match self.get(name)?.elements() {
            ElementVec::I32(values) => Some(values),
            _ => None,
        }
    }
}

/// How many elements a tensor of these extents has, saturating: more than memory can hold is too many,
/// whatever the number.
#[must_use]
pub fn count(extents: &[u64]) -> u64 {
    extents.iter().fold(1, |product: u64, extent| product.saturating_mul(*extent))
}

#[cfg(test)]
mod tests {
    use super::{DType, ElementVec, Tensor, TensorSpec};
    use std::string::ToString;
    use std::vec;

    const SPEC: TensorSpec =
        TensorSpec { name: "a", dtype: DType::F32, dims: &["m", "k"], help: "" };

    #[test]
    fn a_shape_that_does_not_hold_the_elements_makes_no_tensor() {
        assert!(Tensor::new(vec![2, 3], ElementVec::F32(vec![0.0; 5])).is_none());
        assert!(Tensor::new(vec![u64::MAX, 2], ElementVec::I32(vec![])).is_none());
        assert!(Tensor::new(vec![], ElementVec::I32(vec![7])).is_some());
    }

    #[test]
    fn type_rank_and_extents_are_checked() {
        let integers = Tensor::i32(vec![1, 1], vec![0]);
        let error = SPEC.check_type(&integers).unwrap_err().to_string();
        assert_eq!(error, "input 'a' has elements of type i32; it must have f32");

        let line = Tensor::f32(vec![2], vec![0.0; 2]);
        let error = SPEC.check_type(&line).unwrap_err().to_string();
        assert_eq!(error, "input 'a' has the shape [2]; it must have 2 extents: [m, k]");

        let matrix = Tensor::f32(vec![1, 2], vec![0.0; 2]);
        let extent = |dim: &str| (dim == "k").then_some(3);
        let error = SPEC.check_shape(&matrix, extent).unwrap_err().to_string();
        assert_eq!(error, "input 'a' has the shape [1, 2]; it must have [m, k = 3]");
        assert!(SPEC.check_shape(&matrix, |_| None).is_ok());
    }
}

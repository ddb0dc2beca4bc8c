//! The memory of a workload's tensors: NumPy arrays with any strides, found by their array interface.

use std::cell::Cell;

use pto_workload::clock::BoundTensor;
use pto_workload::tree::Tensor;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Where the elements of an array are. The holder of the object keeps the array alive.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The lowest byte.
    start: usize,
    bytes: usize,
    /// The first element, in elements from the lowest one.
    first: i64,
    /// In elements.
    strides: Vec<i64>,
    /// Bytes of an element.
    item: usize,
}

/// What an array says of itself.
struct Interface {
    address: usize,
    is_read_only: bool,
    shape: Vec<i64>,
    /// In bytes.
    strides: Vec<i64>,
    item: i64,
}

impl Interface {
    fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let interface = array.getattr("__array_interface__")?.cast_into::<PyDict>()?;
        let part = |name: &str| {
            let missing = || PyTypeError::new_err(format!("__array_interface__ has no {name:?}."));
            interface.get_item(name)?.ok_or_else(missing)
        };
        let type_name: String = part("typestr")?.extract()?;
        let item = type_name.get(2..).and_then(|size| size.parse::<i64>().ok());
        let item = item.filter(|item| *item > 0 && !type_name.contains('O'));
        let item = item.ok_or_else(|| {
            PyTypeError::new_err(format!("An array of type {type_name:?} is no tensor."))
        })?;
        let shape: Vec<i64> = part("shape")?.extract()?;
        let (address, is_read_only): (usize, bool) = part("data")?.extract()?;
        let strides = interface.get_item("strides")?.filter(|strides| !strides.is_none());
        let strides = match strides {
            Some(strides) => strides.extract()?,
            None => row_major(&shape, item),
        };
        Ok(Self { address, is_read_only, shape, strides, item })
    }
}

fn row_major(shape: &[i64], item: i64) -> Vec<i64> {
    let mut stride = item;
    let mut strides = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        strides.push(stride);
        stride = stride.saturating_mul(*extent);
    }
    strides.reverse();
    strides
}

impl Memory {
    /// The memory of an array, which must have the shape and the size of elements of `tensor`.
    pub(crate) fn of(
        array: &Bound<'_, PyAny>,
        tensor: &Tensor,
        is_written: bool,
    ) -> PyResult<Self> {
        let found = Interface::of(array)?;
        let wrong = |what: String| {
            PyValueError::new_err(format!("The data of the tensor {}: {what}", tensor.name))
        };
        let wanted: Vec<i64> =
            tensor.shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        if found.shape != wanted {
            let (found, wanted) = (&found.shape, &wanted);
            return Err(wrong(format!(
                "the array has the shape {found:?}, the tensor {wanted:?}."
            )));
        }
        if i64::try_from(tensor.dtype.bytes()).ok() != Some(found.item) {
            let (found, wanted) = (found.item, tensor.dtype.bytes());
            return Err(wrong(format!(
                "an element of the array has {found} bytes, and one of the tensor {wanted}."
            )));
        }
        if is_written && found.is_read_only {
            return Err(wrong("a kernel writes it, and the array is read-only. Copy it.".into()));
        }
        if found.strides.iter().any(|stride| stride % found.item != 0) {
            return Err(wrong("its strides are not whole elements. Copy it.".to_owned()));
        }
        Ok(Self::within(&found))
    }

    /// From the lowest to the highest byte that the array's elements take.
    fn within(found: &Interface) -> Self {
        let item = found.item;
        let size = usize::try_from(item).unwrap_or(1);
        let strides = found.strides.iter().map(|stride| stride / item).collect();
        if found.shape.contains(&0) {
            return Self { start: found.address, bytes: 0, first: 0, strides, item: size };
        }
        let steps = found.shape.iter().zip(&found.strides);
        let ends = steps.map(|(extent, stride)| (extent - 1) * stride);
        let (low, high) =
            ends.fold((0, 0), |(low, high), end| (low + end.min(0), high + end.max(0)));
        let start = found.address.wrapping_add_signed(isize::try_from(low).unwrap_or(0));
        let bytes = usize::try_from(high - low + item).unwrap_or(0);
        Self { start, bytes, first: -low / item, strides, item: size }
    }

    /// The addresses of its bytes, from the lowest to the highest one.
    pub(crate) const fn addresses(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.bytes
    }

    /// The number of its first element, counted from the lowest one.
    pub(crate) const fn first(&self) -> i64 {
        self.first
    }

    /// The distances of its elements, for each dimension.
    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Bytes of an element.
    pub(crate) const fn item(&self) -> usize {
        self.item
    }

    /// The tensor that a run is given.
    ///
    /// # Safety
    /// The array must live for `'a`, and nothing but runs that go through cells may use its memory meanwhile.
    pub(crate) unsafe fn bound<'a>(&self) -> BoundTensor<'a> {
        let memory: &[Cell<u8>] = if self.bytes == 0 {
            &[]
        } else {
            let start = std::ptr::with_exposed_provenance::<Cell<u8>>(self.start);
            // SAFETY: the array says that its elements are there, and the caller that they stay; cells may overlap.
            unsafe { std::slice::from_raw_parts(start, self.bytes) }
        };
        BoundTensor { memory, first: self.first, strides: self.strides.clone() }
    }
}

//! Arrays by their array interface, which NumPy and others give: where the bytes are, without a copy.

use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The bytes of an array; the holder of the object keeps the array alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    pub(crate) address: usize,
    pub(crate) length: usize,
    is_read_only: bool,
}

impl Bytes {
    /// The bytes of a contiguous array.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind =
            || array.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        let interface = array.getattr("__array_interface__").map_err(|_| {
            PyTypeError::new_err(format!("a NumPy array is needed, and {} is none", kind()))
        })?;
        let interface = interface.cast_into::<PyDict>()?;
        let part = |name: &str| {
            let missing = || PyTypeError::new_err(format!("__array_interface__ has no {name:?}"));
            interface.get_item(name)?.ok_or_else(missing)
        };
        let strides = interface.get_item("strides")?.filter(|strides| !strides.is_none());
        if strides.is_some() {
            return Err(PyValueError::new_err(
                "the array is not contiguous: pass numpy.ascontiguousarray(array)",
            ));
        }
        let type_name: String = part("typestr")?.extract()?;
        let shape: Vec<usize> = part("shape")?.extract()?;
        let (address, is_read_only): (usize, bool) = part("data")?.extract()?;
        let item = type_name.get(2..).and_then(|size| size.parse::<usize>().ok());
        let item = item.filter(|_| !type_name.contains('O')).ok_or_else(|| {
            PyTypeError::new_err(format!("arrays of type {type_name:?} have no bytes to copy"))
        })?;
        let length = shape.iter().try_fold(item, |bytes, extent| bytes.checked_mul(*extent));
        let length = length.filter(|length| isize::try_from(*length).is_ok()).ok_or_else(|| {
            PyValueError::new_err(format!(
                "an array of shape {shape:?} has more bytes than there are addresses"
            ))
        })?;
        Ok(Self { address, length, is_read_only })
    }

    /// A copy of them, made while this thread has the interpreter.
    pub(crate) fn copied(self) -> PyResult<Vec<u8>> {
        let mut copy = Vec::new();
        let made = copy.try_reserve_exact(self.length);
        made.map_err(|_| {
            PyMemoryError::new_err(format!(
                "there is no memory for a copy of {} bytes",
                self.length
            ))
        })?;
        // SAFETY: the array lives as long as the call, and no other thread writes it while this one has the GIL.
        copy.extend_from_slice(unsafe { self.read() });
        Ok(copy)
    }

    /// To be read; the array must live, and must not be written, for as long as the result is used.
    ///
    /// # Safety
    /// As said.
    pub(crate) unsafe fn read<'a>(self) -> &'a [u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the array interface says that the bytes are there; the caller that they stay.
        unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(self.address), self.length)
        }
    }

    /// To be written; the array must live, and must not be used otherwise, for as long as the result is used.
    ///
    /// # Safety
    /// As said.
    pub(crate) unsafe fn write<'a>(self) -> PyResult<&'a mut [u8]> {
        if self.is_read_only {
            return Err(PyValueError::new_err("the array is read-only"));
        }
        if self.length == 0 {
            return Ok(&mut []);
        }
        let start = std::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: as in `read`.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.length) })
    }
}

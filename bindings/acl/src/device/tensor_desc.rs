//! Descriptions of tensors as single operators take them, and as data sets give them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::element::Element;
use crate::common::refusal::{Answer, Refusal, require};
use crate::common::table::{Handle, HandleTable, Kind};

static DESCRIPTIONS: HandleTable<Mutex<TensorDesc>> = HandleTable::new(Kind::TensorDesc);

/// The number of an element type that says that there is no tensor.
pub(crate) const NO_TYPE: i32 = -1;

/// A description: type, extents, format, and the elements where they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorDesc {
    /// `aclDataType`.
    pub(crate) data_type: i32,
    /// The extents; none: a scalar.
    pub(crate) shape: Vec<i64>,
    /// `aclFormat`.
    pub(crate) format: i32,
    /// The elements of a constant, which an operator may need before it runs.
    pub(crate) constant: Option<Vec<u8>>,
}

impl TensorDesc {
    /// The number of elements.
    pub(crate) fn elements(&self) -> Answer<usize> {
        let product = self.shape.iter().try_fold(1_usize, |product, extent| {
            product.checked_mul(usize::try_from(*extent).ok()?)
        });
        product.ok_or_else(|| {
            Refusal::value(format!(
                "a tensor with the extents {:?} has no number of elements; extents are known, and 0 or more",
                self.shape
            ))
        })
    }

    /// Bytes of all elements.
    pub(crate) fn bytes(&self) -> Answer<usize> {
        let size = Element::of(self.data_type).map(Element::bytes).ok_or_else(|| {
            Refusal::value(format!("elements of the type {} have no whole bytes", self.data_type))
        })?;
        self.elements()?.checked_mul(size).ok_or_else(|| {
            Refusal::value(format!("a tensor with the extents {:?} is too large", self.shape))
        })
    }
}

/// Makes a description; its handle is returned.
pub(crate) fn create(data_type: i32, shape: Vec<i64>, format: i32) -> Answer<Handle> {
    let is_type = data_type == NO_TYPE || Element::of(data_type).is_some();
    require(is_type, || {
        Refusal::argument(format!("there is no data type {data_type} with whole bytes"))
    })?;
    if let Some(extent) = shape.iter().find(|extent| **extent < -2) {
        let text =
            format!("there is an extent of {extent}; pass 0 and more, or -1 where it is not known");
        return Err(Refusal::argument(text));
    }
    Ok(share(TensorDesc { data_type, shape, format, constant: None }))
}

/// A handle of a description.
pub(crate) fn share(description: TensorDesc) -> Handle {
    DESCRIPTIONS.open(Mutex::new(description))
}

/// Forgets a description.
pub(crate) fn destroy(description: Handle) -> Answer {
    DESCRIPTIONS.take(description).map(drop)
}

/// Forgets a description of the library's own, if it is still there.
pub(crate) fn forget(description: Handle) {
    DESCRIPTIONS.forget(description);
}

/// What a description says.
pub(crate) fn get(description: Handle) -> Answer<TensorDesc> {
    Ok(locked(&*DESCRIPTIONS.get(description)?).clone())
}

/// Keeps the elements of a constant: as many bytes as the tensor takes.
pub(crate) fn set_constant(description: Handle, elements: Vec<u8>) -> Answer {
    locked(&*DESCRIPTIONS.get(description)?).constant = Some(elements);
    Ok(())
}

fn locked(description: &Mutex<TensorDesc>) -> MutexGuard<'_, TensorDesc> {
    description.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Attributes of single operators.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::refusal::Answer;
use crate::common::table::{Handle, HandleTable, Kind};

static ATTRIBUTES: HandleTable<Mutex<OperatorAttributes>> =
    HandleTable::new(Kind::OperatorAttributes);

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AttributeValue {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A number.
    Float(f32),
    /// Numbers.
    Ints(Vec<i64>),
    /// Text.
    Text(String),
}

/// The attributes of an operator, by their names.
pub(crate) type OperatorAttributes = BTreeMap<String, AttributeValue>;

/// No attributes yet; the handle of the list is returned.
pub(crate) fn create() -> Handle {
    ATTRIBUTES.open(Mutex::default())
}

/// Forgets a list.
pub(crate) fn destroy(attributes: Handle) -> Answer {
    ATTRIBUTES.take(attributes).map(drop)
}

/// Sets an attribute.
pub(crate) fn set(attributes: Handle, name: String, value: AttributeValue) -> Answer {
    locked(&*ATTRIBUTES.get(attributes)?).insert(name, value);
    Ok(())
}

/// The attributes of a list.
pub(crate) fn get(attributes: Handle) -> Answer<OperatorAttributes> {
    Ok(locked(&*ATTRIBUTES.get(attributes)?).clone())
}

fn locked(attributes: &Mutex<OperatorAttributes>) -> MutexGuard<'_, OperatorAttributes> {
    attributes.lock().unwrap_or_else(PoisonError::into_inner)
}
